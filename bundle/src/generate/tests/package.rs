//! What the package file and the command line say.

use super::*;

#[test]
fn package_files_with_mistakes() {
    let check = |file: &str| Input { package: Some(file), ..Input::default() }.run().lines();
    insta::assert_snapshot!(check("package: echo\nversoin: 1.0.0\nprovider: {nam: me}\n"), @r"
    error[package-key-unknown] olmkit.yaml:2:1: `versoin` is not a key here (did you mean `version`?)
    error[package-key-unknown] olmkit.yaml:3:12: `nam` is not a key here (did you mean `name`?)
    ");
    insta::assert_snapshot!(check("package: Echo Operator\nversion: '1.0'\ninstallModes: [AllNamespace]\ncapabilities: Good\nminKubeVersion: 1.29\nchannels: [a b]\ndefaultChannel: c\n"), @r"
    error[package-value-invalid] olmkit.yaml:1:10: `Echo Operator` is not a package name: only lower case letters, digits and `-` are allowed
    error[package-value-invalid] olmkit.yaml:2:10: `1.0` is not a valid `version`: unexpected end of input while parsing minor version number
    error[package-value-invalid] olmkit.yaml:6:12: `a b` is not a channel name: white space, commas and control characters are not allowed
    error[package-value-invalid] olmkit.yaml:7:17: the default channel `c` is not among the channels
    error[package-value-invalid] olmkit.yaml:5:17: `1.29` is not a version such as `1.28.0`: unexpected end of input while parsing minor version number
    error[package-value-invalid] olmkit.yaml:3:16: `AllNamespace` is not an install mode (did you mean `AllNamespaces`?)
    error[package-value-invalid] olmkit.yaml:4:15: `Good` is not a capability level (one of `Basic Install`, `Seamless Upgrades`, `Full Lifecycle`, `Deep Insights`, `Auto Pilot`)
    ");
    insta::assert_snapshot!(check("{}"), @r"
    error[package-value-invalid] olmkit.yaml:1:1: `package` is missing (set `package` in the package file, or give `--package`)
    error[package-value-invalid] olmkit.yaml:1:1: `version` is missing (set `version` in the package file, or give `--version`)
    ");
    insta::assert_snapshot!(check("keywords: redis"), @"error[package-value-invalid] olmkit.yaml:1:11: `keywords`: expected a list, found a string");
    insta::assert_snapshot!(check("keywords: redis\nversoin: 1.0.0\nprovider: me\nlinks: [{nam: a}]\n"), @r"
    error[package-value-invalid] olmkit.yaml:1:11: `keywords`: expected a list, found a string
    error[package-key-unknown] olmkit.yaml:2:1: `versoin` is not a key here (did you mean `version`?)
    error[package-value-invalid] olmkit.yaml:3:11: `provider`: expected a map, found a string
    error[package-key-unknown] olmkit.yaml:4:10: `nam` is not a key here (did you mean `name`?)
    ");
    insta::assert_snapshot!(check("a: [b"), @"error[generate-yaml-syntax] olmkit.yaml:1:4: unclosed bracket '['");
}

#[test]
fn an_icon_that_is_none() {
    let file = PackageFile::parse(Source::new("olmkit.yaml", "{package: echo, version: 0.1.0, icon: a.png}"))
        .unwrap();
    let attachments = Attachments { icon: Some(b"hello".to_vec()), description: None };
    let sources = Sources { file: Some(&file), ..Sources::default() };
    let findings = Package::resolve(sources, Overrides::default(), attachments).unwrap_err();
    insta::assert_snapshot!(line(&findings[0]), @"error[generate-icon-not-an-image] olmkit.yaml:1:39: the icon is not a PNG, JPEG, GIF or SVG image");
}

#[test]
fn what_is_set_is_held_against_the_type() {
    let run = |set: &str| {
        let overrides = Overrides { set: vec![set.parse().unwrap()], ..Overrides::default() };
        Input { texts: &[CRD, DEPLOYMENT], overrides, ..Input::default() }.run()
    };
    insta::assert_snapshot!(said(&run("spec.maturty=stable"), "package-value-invalid"), @"error[package-value-invalid]: `--set spec.maturty`: a ClusterServiceVersion has no field `maturty` there (did you mean `maturity`?)");
    insta::assert_snapshot!(said(&run("spec.keywords=redis"), "package-value-invalid"), @"error[package-value-invalid]: `--set spec.keywords`: expected a list, found a string (write `--set 'spec.keywords=[…, …]'`, or one item, `--set 'spec.keywords[0]=…'`)");
    assert_eq!(run("spec.maturity=stable").findings, []);
    assert_eq!(run("spec.cleanup={enabled: true}").findings, []);
    assert_eq!(run("metadata.annotations['a.b/c']=x").findings, []);
}

#[test]
fn findings_can_be_allowed_on_the_command_line() {
    let run = |code: &str| {
        let overrides = Overrides { allow: vec![code.to_owned()], ..Overrides::default() };
        Input { texts: &[DEPLOYMENT, RBAC], overrides, ..Input::default() }.run()
    };
    assert_eq!(run("generate-no-api").findings, []);
    insta::assert_snapshot!(said(&run("generate-no-apis"), "package-value-invalid"), @"error[package-value-invalid]: `--allow`: unknown finding code `generate-no-apis` (did you mean `generate-no-api`?)");
}

#[test]
fn a_release_is_part_of_the_name() {
    let package = "{package: echo, version: 0.2.0, release: rc.1}";
    let csv = Input { texts: &[DEPLOYMENT], package: Some(package), ..Input::default() }.run().csv();
    assert_eq!(
        (&csv["metadata"]["name"], &csv["spec"]["release"]),
        (&"echo-v0.2.0-rc.1".into(), &"rc.1".into())
    );
}

/// YAML reads `1.10` as a number and `N` as a boolean; a channel, a name and an annotation are texts.
#[test]
fn texts_of_the_package_file_are_as_they_are_written() {
    let package = "{package: echo, version: 0.1.0, channels: [1.10, on], displayName: N, maturity: 1.10, keywords: [no], \
         annotations: {a: 1.10, c: 010}, descriptors: [{kind: Echo, displayName: N, description: 1.10}], \
         csv: {metadata: {annotations: {x: 1.20}}}}";
    let input = Input { texts: &[CRD, DEPLOYMENT], package: Some(package), ..Input::default() };
    let generated = input.run();
    let csv = generated.csv();
    assert_eq!(csv["spec"]["displayName"], "N");
    assert_eq!(csv["spec"]["maturity"], "1.10");
    assert_eq!(csv["spec"]["keywords"][0], "no");
    let annotations = &csv["metadata"]["annotations"];
    let texts = ["a", "c", "x"].map(|name| annotations[name].as_str().unwrap_or("none"));
    assert_eq!(texts, ["1.10", "010", "1.20"]);
    let owned = &csv["spec"]["customresourcedefinitions"]["owned"][0];
    assert_eq!((owned["displayName"].as_str(), owned["description"].as_str()), (Some("N"), Some("1.10")));
    let channels = &generated.files["metadata/annotations.yaml"];
    assert!(channels.contains("channels.v1: 1.10,on"), "{channels}");
}

#[test]
fn an_extra_service_account_that_nothing_knows_is_refused() {
    let overrides =
        |name: &str| Overrides { extra_service_accounts: vec![name.to_owned()], ..Overrides::default() };
    let run = |overrides, package| {
        Input { texts: &[CRD, DEPLOYMENT, RBAC], package, overrides, ..Input::default() }.run()
    };
    insta::assert_snapshot!(run(overrides("ecko"), None).lines(), @"error[package-value-invalid]: `--extra-service-accounts`: no ServiceAccount, binding or pod of the manifests has the name `ecko` (did you mean `echo`?)");
    let file = Some("{package: echo, version: 0.1.0, extraServiceAccounts: [echo, nothing-like-it]}");
    insta::assert_snapshot!(run(Overrides::default(), file).lines(), @"error[package-value-invalid] olmkit.yaml:1:62: no ServiceAccount, binding or pod of the manifests has the name `nothing-like-it` (add its ServiceAccount and its bindings to the manifests, or remove the name)");
    // An account of a binding, and one of a pod that OLM does not install.
    let helper = "{kind: ServiceAccount, name: helper}";
    let bound = bound("RoleBinding", "echo-system", "Role, name: leases", helper);
    let job = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: once}\nspec: {template: {spec: {serviceAccountName: worker}}}\n";
    for name in ["helper", "worker", "default", "echo"] {
        let texts = [CRD, DEPLOYMENT, RBAC, bound.as_str(), job];
        let found = Input { texts: &texts, overrides: overrides(name), ..Input::default() }.run();
        assert_eq!(said(&found, "package-value-invalid"), "", "{name}");
    }
}
