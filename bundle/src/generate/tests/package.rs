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

/// A package file with one key a line, and every key that makes a field of the ClusterServiceVersion as it is.
const EVERY_FIELD: &str = "\
package: echo
version: 0.1.0
release: '1'
displayName: Echo
description: Says it again.
provider: {name: Example}
maintainers: [{name: Somebody, email: somebody@example.com}]
links: [{name: Docs, url: 'https://example.com'}]
keywords: [echo]
categories: [Database]
capabilities: Basic Install
maturity: alpha
minKubeVersion: 1.28.0
installModes: [AllNamespaces]
license: Apache-2.0
repository: https://example.com/echo
support: Example
containerImage: quay.io/example/echo:v1
suggestedNamespace: echo-system
replaces: echo.v0.0.9
skips: [echo.v0.0.8]
skipRange: '>=0.0.1 <0.1.0'
descriptors: [{kind: Echo, displayName: Echo, spec: [{path: size, displayName: Size}]}]
requiredCrds: [{name: stores.example.com, version: v1, kind: Store}]
requiredApiServices: [{group: metrics.example.com, version: v1, kind: Metric, name: metrics}]
nativeAPIs: [{group: apps, version: v1, kind: Deployment}]
relatedImages: [{name: cache, image: 'quay.io/example/cache:v1'}]
annotations: {example.com/team: things}
labels: {example.com/team: things}
csv: {spec: {cleanup: {enabled: true}}}
";

#[test]
fn every_field_knows_the_key_that_makes_it() {
    let generated = Input { texts: &[CRD, DEPLOYMENT, RBAC], package: Some(EVERY_FIELD), ..Input::default() };
    let generated = generated.run();
    let mut keys = std::collections::BTreeSet::new();
    for origin in &generated.origins {
        let (field, origin) = origin.rsplit_once(" <- ").unwrap();
        let Some(place) = origin.strip_prefix("package file olmkit.yaml:") else { continue };
        let line = place.split(':').next().unwrap().parse::<usize>().unwrap();
        let (key, _) = EVERY_FIELD.lines().nth(line - 1).unwrap().split_once(':').unwrap();
        let path = super::super::explain::parse(field.split(" = ").next().unwrap()).unwrap();
        let path = path.iter().map(|step| match step {
            PathStep::Key(key) => crate::yaml::Step::Key(key),
            PathStep::Index(at) => crate::yaml::Step::Index(*at),
        });
        assert_eq!(keys::of_csv(&path.collect::<Vec<_>>()), Some(key), "{field}");
        keys.insert(key);
    }
    // The name is made of two.
    assert_eq!(keys.len(), EVERY_FIELD.lines().count() - 1, "{keys:?}");
}

#[test]
fn findings_about_a_generated_bundle_name_the_key() {
    let package = "{package: echo, version: 0.1.0, links: [{name: Docs, url: docs}], categories: [Echoes], \
                    csv: {spec: {nonsense: 1}}}";
    let generated =
        Input { texts: &[CRD, DEPLOYMENT, RBAC], package: Some(package), ..Input::default() }.run();
    let file = |(path, text)| BundleFile { path, content: Content::Text(text) };
    let files = generated.files.into_iter().map(file);
    let files = BundleFiles { name: "bundle".into(), files: files.collect() };
    let said = validate::validate(&Bundle::parse(&files), validate::SUITES);
    let said = said.iter().map(|finding| {
        let key = finding.place.as_ref().and_then(|place| place.made_by.key.as_deref());
        format!("{} {}", finding.code.name, key.unwrap_or("-"))
    });
    insta::assert_snapshot!(said.collect::<Vec<_>>().join("\n"), @r"
    csv-category-unknown categories
    csv-icon-missing icon
    csv-min-kube-version-missing minKubeVersion
    csv-api-without-example samples
    openshift-finalizers-right -
    security-wildcard -
    openshift-image-by-tag -
    container-without-requests -
    csv-link-url-invalid links
    csv-field-unknown csv
    csv-provider-missing provider
    security-wildcard -
    security-wildcard -
    openshift-channel-name channels
    ");
    // What somebody wrote by hand is theirs to change.
    let own = files.files.into_iter().map(|mut file| {
        let text = file.content.text().unwrap().strip_prefix(HEADER).unwrap().to_owned();
        file.content = Content::Text(text);
        file
    });
    let files = BundleFiles { name: "bundle".into(), files: own.collect() };
    let said = validate::validate(&Bundle::parse(&files), validate::SUITES);
    assert!(said.iter().all(|finding| finding.generated().is_none()));
}

/// What a package file says in several ways, and what its base says.
#[test]
fn findings_about_a_generated_bundle_name_the_value_or_the_base() {
    const BASE: &str = "apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: echo.v0.0.0, annotations: {categories: Echoes}}
spec: {version: 0.0.0, maintainers: [{name: Q, email: nope}], provider: {name: \"\"}}";
    let package = "{package: echo, version: 0.1.0, release: '1', base: base.yaml, provider: {name: ''},
        links: [{name: Docs, url: docs}], annotations: {capabilities: Wow},
        csv: {spec: {minKubeVersion: null, nonsense: 1, links: [{name: Docs, url: docs}]}}}";
    let generated =
        Input { texts: &[CRD, DEPLOYMENT, RBAC, BASE], package: Some(package), ..Input::default() }.run();
    assert!(!generated.files.is_empty(), "{:?}", generated.findings);
    let file = |(path, text)| BundleFile { path, content: Content::Text(text) };
    let files = generated.files.into_iter().map(file);
    let files = BundleFiles { name: "bundle".into(), files: files.collect() };
    let mut said = validate::validate(&Bundle::parse(&files), validate::SUITES);
    let file = PackageFile::parse(Source::new("olmkit.yaml", package)).unwrap();
    keys::trace(&mut said, &file, Some(("base.yaml", BASE)));
    let said = said.iter().filter_map(|finding| {
        let made_by = &finding.place.as_ref()?.made_by;
        let key = made_by.key.as_deref().or(made_by.base.as_deref())?;
        Some(format!("{} {key}", finding.code.name))
    });
    let said: Vec<String> = said.collect();
    for expected in [
        "csv-name-convention release",
        "csv-link-url-invalid csv.spec.links",
        "csv-field-unknown csv.spec.nonsense",
        "csv-min-kube-version-missing csv.spec.minKubeVersion",
        "csv-capability-unknown annotations.capabilities",
        "csv-category-unknown base.yaml",
        "csv-maintainer-email-invalid base.yaml",
        "csv-provider-missing provider",
        "csv-icon-missing icon",
    ] {
        assert!(said.iter().any(|own| own == expected), "{expected}: {said:#?}");
    }
}

#[test]
fn a_dependency_that_is_refused_is_shown_in_the_package_file() {
    let package = "package: echo\nversion: 0.1.0\ndependencies:\n- {type: olm.package, value: {packageName: x}}\n- {type: olm.gvk, value: {group: a, version: v1}}\n";
    let run = Input { texts: &[CRD, DEPLOYMENT, RBAC], package: Some(package), ..Input::default() }.run();
    insta::assert_snapshot!(run.lines(), @r"
    error[dependency-package-invalid] olmkit.yaml:4:23: a dependency on a package has no `version` (write a range of full versions, such as `>=1.2.0 <2.0.0` or `1.x`)
    error[dependency-gvk-incomplete] olmkit.yaml:5:19: a dependency on an API has no `kind` (name `group`, `version` and `kind` of the API that another operator provides)
    ");
}
