//! Images, and what they are called.

use super::*;

#[test]
fn images_in_other_variables_are_one_finding() {
    let deployment = DEPLOYMENT.replace("{name: OTHER, value: 'yes'}", "{name: A_IMAGE, value: 'quay.io/x/a:1'}, {name: B_IMAGES, value: \"1=quay.io/x/b:1\\n2=quay.io/x/b:2\"}, {name: URL, value: 'https://quay.io/x:1'}");
    insta::assert_snapshot!(said(&run(&[CRD, &deployment]), "generate-related-image-unknown"), @"warning[generate-related-image-unknown] 1.yaml:11:86: `A_IMAGE`, `B_IMAGES` of `Deployment/echo-operator` name images that are not among `relatedImages` (list the images under `relatedImages` in the package file, or name the variables `RELATED_IMAGE_…`, so that mirrors copy them)");
}

#[test]
fn images_are_named_as_the_command_line_says() {
    let run = |image: &str| {
        let overrides = Overrides { images: vec![image.parse().unwrap()], ..Overrides::default() };
        Input { texts: &[CRD, DEPLOYMENT], overrides, ..Input::default() }.run()
    };
    let generated = run("echo=quay.io/example/echo:v2");
    let csv = generated.csv();
    let container =
        &csv["spec"]["install"]["spec"]["deployments"][0]["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["image"], "quay.io/example/echo:v2");
    assert_eq!(csv["spec"]["relatedImages"][0]["image"], "quay.io/example/echo:v2");
    assert_eq!(csv["metadata"]["annotations"]["containerImage"], "quay.io/example/echo:v2");
    insta::assert_snapshot!(said(&run("ecko=quay.io/example/echo:v2"), "package-value-invalid"), @"error[package-value-invalid]: `--image`: no image of the operator is named `ecko` (did you mean `echo`?)");
}
