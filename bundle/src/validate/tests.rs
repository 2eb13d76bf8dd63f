//! Every rule's cases: the examples of its documentation, and the bundles in `testdata/CODE/`, whose findings stand
//! beside them in `CASE.snap`. Then what holds for every rule: its messages, and that nothing makes it panic.

use std::collections::BTreeSet;
use std::path::Path;

use super::*;
use crate::load::{BundleFile, BundleFiles, Content};

mod install;

/// A finding as a line, with the path below the case's directory.
fn line(finding: &Finding, root: &str) -> String {
    let place = finding.place.as_ref().map(|place| {
        let path = place.path.strip_prefix(root).unwrap_or(&place.path).trim_start_matches('/');
        match place.position {
            Some(position) => format!(" {path}:{}:{}", position.line, position.column),
            None => format!(" {path}"),
        }
    });
    format!("{}[{}]{}: {}", finding.level, finding.code.name, place.unwrap_or_default(), finding.message)
}

/// The findings of one rule, a line each.
fn run(rule: &Rule, files: &BundleFiles) -> String {
    let own = validate_with(&Bundle::parse(files), SUITES, &options(files));
    let own = own.into_iter().filter(|finding| finding.code == &rule.code);
    own.map(|finding| line(&finding, &files.name)).collect::<Vec<_>>().join("\n")
}

/// What is said beside an example: a file `Dockerfile` is named with `--index-path`.
fn options(files: &BundleFiles) -> Options {
    let dockerfile = files.files.iter().find(|file| file.path == "Dockerfile");
    let index_image = dockerfile.and_then(|file| file.content.text()).map(str::to_owned);
    // A file `platforms` says what registries would.
    let answers =
        files.files.iter().find(|file| file.path == "platforms").and_then(|file| file.content.text());
    let answer = |line: &str| {
        let (image, platforms) = line.split_once(": ").unwrap();
        let platform = |text: &str| {
            let (os, arch) = text.split_once('/').ok_or("the registry has no such image")?;
            Ok((os.to_owned(), arch.to_owned()))
        };
        (image.to_owned(), platforms.split(", ").map(platform).collect())
    };
    let platforms = answers.map(|text| text.lines().filter(|line| !line.is_empty()).map(answer).collect());
    Options { index_image, platforms, ..Options::default() }
}

/// The examples of a page: the word behind `yaml` (`bad` or `good`) and the text.
fn examples(docs: &str) -> Vec<(&str, &str)> {
    let mut examples = Vec::new();
    for block in docs.split("```yaml ").skip(1) {
        let (kind, rest) = block.split_once('\n').unwrap();
        examples.push((kind.trim(), rest.split_once("```").unwrap().0));
    }
    examples
}

/// An example as a bundle. A line `# manifests/NAME`, `# metadata/NAME` or `# Dockerfile` starts a file; what stands before the first
/// such line is the ClusterServiceVersion, and gets its kind where the example leaves it out.
fn example_bundle(text: &str) -> BundleFiles {
    let mut files = vec![("manifests/operator.clusterserviceversion.yaml".to_owned(), String::new())];
    for line in text.lines() {
        match line.strip_prefix("# ").filter(|rest| {
            ["manifests/", "metadata/", "Dockerfile", "platforms", "second.yaml"]
                .iter()
                .any(|start| rest.starts_with(start))
        }) {
            Some(path) => files.push((path.trim().to_owned(), String::new())),
            None => files.last_mut().unwrap().1 += &format!("{line}\n"),
        }
    }
    let csv = &mut files[0].1;
    if !csv.is_empty() && !csv.contains("kind: ClusterServiceVersion") {
        csv.insert_str(0, "kind: ClusterServiceVersion\n");
    }
    files.retain(|(_, text)| !text.is_empty());
    let files = files.into_iter().map(|(path, text)| BundleFile { path, content: content(text) });
    BundleFiles { name: "example".into(), files: files.collect() }
}

/// Puts in what an example only names: `<N random characters>` and `<a byte that is not UTF-8>`.
fn content(mut text: String) -> Content {
    if let Some((before, rest)) = text.split_once('<')
        && let Some((count, after)) = rest.split_once(" random characters>")
    {
        let mut random = Random(1);
        let letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let random = (0..count.parse().unwrap()).map(|_| char::from(letters[random.below(64)]));
        text = before.chars().chain(random).chain(after.chars()).collect();
    }
    match text.split_once("<a byte that is not UTF-8>") {
        Some((before, after)) => Content::from_bytes([before.as_bytes(), b"\xff", after.as_bytes()].concat()),
        None => Content::Text(text),
    }
}

/// Numbers that look random and are the same in every run (Knuth's linear congruential generator).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % limit
    }
}

/// The bundles in `testdata`, each with the code it is about and its name: a directory, or a text like an example's.
fn testdata() -> Vec<(String, String, BundleFiles)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata");
    let list = |path: &Path| {
        let mut paths: Vec<_> = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        paths
    };
    let mut cases = Vec::new();
    for directory in list(&root) {
        let code = directory.file_name().unwrap().to_str().unwrap();
        for case in list(&directory) {
            let files = match case.extension() {
                _ if case.is_dir() => BundleFiles::load(&case).unwrap(),
                Some(extension) if extension == "yaml" => {
                    example_bundle(&std::fs::read_to_string(&case).unwrap())
                }
                _ => continue,
            };
            cases.push((code.to_owned(), case.file_stem().unwrap().to_str().unwrap().to_owned(), files));
        }
    }
    cases
}

/// Every bundle there is: the examples of the pages and `testdata`.
fn bundles() -> Vec<BundleFiles> {
    let examples = rules().iter().flat_map(|rule| examples(rule.code.docs));
    let examples = examples.map(|(_, text)| example_bundle(text));
    examples.chain(testdata().into_iter().map(|(_, _, files)| files)).collect()
}

#[test]
fn the_examples_of_every_page_are_true() {
    for rule in rules() {
        let examples = examples(rule.code.docs);
        for kind in ["bad", "good"] {
            assert!(examples.iter().any(|(k, _)| *k == kind), "{} has no {kind} example", rule.code.name);
        }
        for (kind, text) in examples {
            let found = run(rule, &example_bundle(text));
            match kind {
                "bad" => {
                    assert!(!found.is_empty(), "{}: the bad example is not found\n{text}", rule.code.name)
                }
                "good" => assert_eq!(found, "", "{}: the good example is found\n{text}", rule.code.name),
                other => panic!("{}: an example is `bad` or `good`, not `{other}`", rule.code.name),
            }
        }
    }
}

#[test]
fn further_cases() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata");
    for (code, name, files) in testdata() {
        let Some(rule) = rules().iter().find(|rule| rule.code.name == code) else {
            panic!("testdata/{code} belongs to no rule");
        };
        insta::with_settings!({ prepend_module_to_snapshot => false, snapshot_path => directory.join(&code), omit_expression => true }, {
            insta::assert_snapshot!(name, run(rule, &files));
        });
    }
}

#[test]
fn codes_are_sorted_and_unique() {
    let names: Vec<_> = rules().iter().map(|rule| rule.code.name).collect();
    assert!(names.is_sorted_by(|a, b| a < b), "{names:?}");
}

#[test]
fn every_file_of_rules_is_in_the_table() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/validate/rules");
    let names =
        std::fs::read_dir(directory).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
    let files: BTreeSet<_> = names.filter_map(|name| name.strip_suffix(".rs").map(str::to_owned)).collect();
    let in_table: BTreeSet<_> = rules().iter().map(|rule| rule.code.name.replace('-', "_")).collect();
    assert_eq!(files, in_table);
}

#[test]
fn suites_are_known() {
    for Rule { code, .. } in rules() {
        assert!(SUITES.contains(&code.suite), "{}: {}", code.name, code.suite);
    }
}

#[test]
fn messages_and_help_are_in_the_house_style() {
    for finding in
        bundles().iter().flat_map(|files| validate_with(&Bundle::parse(files), SUITES, &options(files)))
    {
        let help = finding.help.as_deref().unwrap_or_else(|| panic!("no help: {finding:?}"));
        assert!(
            finding.subject.as_deref().is_some_and(|subject| !subject.is_empty()),
            "no subject: {finding:?}"
        );
        assert!(finding.place.is_some(), "no place: {finding:?}");
        for text in [finding.message.as_str(), help] {
            let starts_well = text.starts_with(|c: char| c.is_lowercase() || c == '`' || c.is_ascii_digit());
            let is_name =
                ["OLM", "JSON", "YAML", "CRD", "Kubernetes"].iter().any(|name| text.starts_with(name));
            assert!(starts_well || is_name, "{text}");
            assert!(!text.ends_with('.') && !text.contains('\n'), "{text}");
            assert_eq!(text.matches('`').count() % 2, 0, "{text}");
        }
    }
}

#[test]
fn pages_are_short_and_say_something() {
    for Rule { code, .. } in rules() {
        let (text, _) = code.docs.split_once("\n\n```yaml ").unwrap();
        let sentences = text.matches(". ").count() + 1;
        assert!(
            (1..=6).contains(&sentences) && text.ends_with('.') && !text.contains('\n'),
            "{}: {text}",
            code.name
        );
    }
}

/// Whatever happens to a bundle's text, every rule returns, twice the same, and its places are in the files.
#[test]
fn broken_bundles_break_no_rule() {
    let seeds = bundles();
    let seeds: Vec<_> =
        seeds.iter().filter(|files| size(files) < 20_000 && !files.files.is_empty()).collect();
    let mut random = Random(7);
    let mut codes = BTreeSet::new();
    for round in 0..6_000 {
        let mut files = seeds[round % seeds.len()].clone();
        for _ in 0..1 + random.below(4) {
            let file = random.below(files.files.len());
            if let Content::Text(text) = &mut files.files[file].content {
                *text = broken(text, &mut random);
            }
        }
        let bundle = Bundle::parse(&files);
        let findings = validate(&bundle, SUITES);
        assert_eq!(findings, validate(&bundle, SUITES), "round {round}: {files:?}");
        for finding in &findings {
            codes.insert(finding.code.name);
            let place = finding.place.as_ref().unwrap();
            if let Some(position) = place.position {
                let file = bundle.files.iter().find(|file| file.source.path() == place.path).unwrap();
                let lines = file.source.text().lines().count() as u32;
                assert!(position.line <= lines + 1, "round {round}: {finding:?}");
            }
        }
    }
    // The mutations reach the rules: most of them speak at some time. Those on size and on answers of registries cannot here.
    assert!(codes.len() * 10 >= rules().len() * 7, "{codes:?}");
}

fn size(files: &BundleFiles) -> usize {
    files.files.iter().map(|file| file.content.text().map_or(0, str::len)).sum()
}

/// A text with one line cut, doubled, exchanged, indented or emptied, or one character exchanged.
fn broken(text: &str, random: &mut Random) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    if lines.is_empty() {
        return "- ".into();
    }
    let (at, other) = (random.below(lines.len()), random.below(lines.len()));
    match random.below(7) {
        0 => drop(lines.remove(at)),
        1 => lines.insert(other, lines[at].clone()),
        2 => lines.swap(at, other),
        3 => lines[at].insert_str(0, "  "),
        4 => lines[at] = lines[at].split_once(": ").map_or("", |(key, _)| key).to_owned() + ":",
        5 => lines[at] = lines[at].split_once(": ").map_or("-", |(key, _)| key).to_owned() + ": [1, {a: ~}]",
        _ => {
            let mut chars: Vec<char> = lines[at].chars().collect();
            if !chars.is_empty() {
                let position = random.below(chars.len());
                chars[position] = ['x', ' ', '"', '{', '-', ':', '\u{0}', 'ü', '\t'][random.below(9)];
            }
            lines[at] = chars.into_iter().collect();
        }
    }
    lines.join("\n") + "\n"
}

/// What the rules are, so that a change of a level or a suite is seen in review.
#[test]
fn the_table_of_rules() {
    let lines =
        rules().iter().map(|Rule { code, .. }| format!("{} {} {}", code.name, code.level, code.suite));
    insta::assert_snapshot!(lines.collect::<Vec<_>>().join("\n"), @r"
    access-rule-invalid error install
    annotation-empty error olm
    annotation-manifests-unexpected error olm
    annotation-mediatype-unexpected error olm
    annotation-metadata-unexpected warning strict
    annotation-missing error olm
    annotations-missing error olm
    annotations-not-text error olm
    api-no-longer-served warning removed-apis
    api-service-without-deployment error install
    bundle-nearly-too-large warning olm
    bundle-too-large error olm
    container-without-requests warning good-practices
    crd-api-version-unsupported error olm
    crd-conversion-invalid error olm
    crd-conversion-unmatched warning install
    crd-duplicate error olm
    crd-field-unknown warning strict
    crd-group-invalid error olm
    crd-group-not-approved error olm
    crd-metadata-invalid error olm
    crd-name-invalid error olm
    crd-names-invalid error olm
    crd-not-owned error olm
    crd-preserve-unknown-fields error olm
    crd-printer-columns-invalid error olm
    crd-scale-invalid error olm
    crd-scope-invalid error olm
    crd-selectable-fields-invalid error olm
    crd-type-mismatch error olm
    crd-version-fields-mixed error olm
    crd-versions-invalid error olm
    csv-annotation-case error olm
    csv-annotations-missing warning olm
    csv-api-version-missing error olm
    csv-api-version-unknown warning install
    csv-api-without-example warning olm
    csv-capability-unknown error capabilities
    csv-category-unknown error categories
    csv-conversion-install-modes error olm
    csv-crd-description-missing warning good-practices
    csv-deployments-missing error good-practices
    csv-descriptor-unknown warning strict
    csv-example-without-api error olm
    csv-examples-ambiguous warning olm
    csv-examples-missing warning olm
    csv-examples-not-json error olm
    csv-examples-not-objects error olm
    csv-field-missing error olm
    csv-field-unknown warning strict
    csv-icon-count error operatorhub
    csv-icon-data-url warning install
    csv-icon-incomplete error operatorhub
    csv-icon-media-type error operatorhub
    csv-icon-missing warning operatorhub
    csv-install-modes-missing error olm
    csv-install-modes-unsupported error olm
    csv-link-incomplete error operatorhub
    csv-link-url-invalid error operatorhub
    csv-maintainer-email-invalid error operatorhub
    csv-maintainer-incomplete error operatorhub
    csv-manages-crds warning good-practices
    csv-metadata-invalid error install
    csv-min-kube-version-invalid error olm
    csv-min-kube-version-missing warning olm
    csv-missing error olm
    csv-multiple error olm
    csv-name-convention warning good-practices
    csv-name-invalid error olm
    csv-name-version warning good-practices
    csv-owned-crd-missing error olm
    csv-owned-crd-name-invalid error olm
    csv-owned-version-unserved error olm
    csv-properties-annotation warning olm
    csv-properties-invalid error install
    csv-provider-missing error operatorhub
    csv-release-invalid warning strict
    csv-release-name-mismatch warning strict
    csv-release-with-substitutes warning strict
    csv-replaces-invalid error olm
    csv-replaces-itself error install
    csv-required-crd-name-invalid error install
    csv-skip-range-invalid error install
    csv-strategy-unknown error install
    csv-type-mismatch error olm
    csv-version-invalid error olm
    csv-version-missing error operatorhub
    csv-version-short error olm
    default-channel-unknown warning install
    dependencies-not-a-map warning install
    dependency-constraint-invalid error olm
    dependency-gvk-incomplete error olm
    dependency-label-missing error olm
    dependency-package-invalid error olm
    dependency-unreadable error olm
    deployment-invalid error install
    document-ignored warning strict
    document-unreadable warning strict
    example-against-schema warning schema
    example-field-unknown warning schema
    file-not-in-bundle warning strict
    file-unreadable error olm
    image-platform-missing error multiarch
    image-platform-narrower warning multiarch
    image-uninspected warning multiarch
    manifest-api-removed error install
    manifest-content-invalid error install
    manifest-duplicate warning install
    manifest-field-unknown warning strict
    manifest-kind-missing error olm
    manifest-kind-unsupported error olm
    manifest-metadata-invalid error olm
    manifest-needs-crd warning install
    manifests-hidden-file error olm
    manifests-missing error olm
    manifests-subdirectory error olm
    metadata-file-ignored warning strict
    metadata-missing error olm
    node-affinity-platforms warning multiarch
    openshift-channel-name warning openshift
    openshift-feature-annotation warning openshift
    openshift-finalizers-right warning openshift
    openshift-image-by-tag warning openshift
    openshift-label-invalid error community
    openshift-label-unchecked warning community
    openshift-max-version-invalid error community
    openshift-max-version-missing error community
    openshift-max-version-patch warning community
    openshift-max-version-too-high error community
    openshift-max-version-twice error openshift
    openshift-versions-label warning openshift
    package-name-invalid error install
    permission-cluster-scoped warning install
    platform-label-missing warning multiarch
    pod-reference-missing warning olm
    property-invalid error install
    related-image-invalid error install
    removed-api warning removed-apis
    removed-api-permission warning removed-apis
    removed-api-version-unreadable error removed-apis
    schema-default-invalid error install
    schema-not-structural error install
    schema-rule-invalid error install
    security-escalation warning security
    security-privileged-pod warning security
    security-secrets warning security
    security-wildcard warning security
    service-account-conflict error olm
    service-account-name-invalid error install
    size-csv warning size
    size-install-plan warning size
    size-manifest warning size
    size-object error install
    size-v1-secret warning size
    v1-api-service warning olm-v1
    v1-dependency warning olm-v1
    v1-deployment-name warning olm-v1
    v1-install-mode warning olm-v1
    v1-webhook warning olm-v1
    value-read-otherwise warning strict
    webhook-invalid error install
    yaml-key-duplicate warning strict
    yaml-old-syntax warning strict
    yaml-syntax error olm
    ");
}

/// To list a version that no cluster serves would make OLM wait for ever.
#[test]
fn a_crd_that_no_version_of_is_served_is_not_to_be_owned_as_it_is() {
    let csv = "apiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion\nmetadata: {name: a.v1.0.0}\nspec: {}\n";
    let crd = |served: [bool; 2]| {
        let [v1, v2] = served;
        format!(
            "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: as.example.com}}\nspec:\n  group: example.com\n  \
             names: {{kind: A}}\n  versions: [{{name: v1, served: {v1}}}, {{name: v2, served: {v2}}}]\n"
        )
    };
    let helps = |served| {
        let file = |path: &str, text: String| BundleFile { path: path.into(), content: Content::Text(text) };
        let files = vec![file("manifests/crd.yaml", crd(served)), file("manifests/csv.yaml", csv.to_owned())];
        let files = BundleFiles { name: "a".into(), files };
        let found = validate_with(&Bundle::parse(&files), SUITES, &options(&files));
        let own = found.into_iter().filter(|finding| finding.code.name == "crd-not-owned");
        own.map(|finding| finding.help.unwrap_or_default()).collect::<Vec<_>>()
    };
    let unserved = helps([false, false]);
    assert!(unserved.iter().all(|help| help.starts_with("no version of the CRD is served")), "{unserved:?}");
    let mixed = helps([true, false]);
    assert!(
        mixed[0].starts_with("list it under") && mixed[1].starts_with("list a version that is served"),
        "{mixed:?}"
    );
}
