//! Small bundles and their blobs; the corpus has the large ones.

use olmkit_bundle::load::{BundleFile, BundleFiles};

use super::*;

const CSV: &str = "\
# manifests/redis.clusterserviceversion.yaml
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata:
  name: redis.v1.2.0
  annotations: {olm.skipRange: <1.2.0}
spec:
  version: 1.2.0
  replaces: redis.v1.1.0
  description: A <b>cache</b>.
  customresourcedefinitions:
    owned:
    - {name: redis.cache.example.com, version: v1, kind: Redis, resources: [{kind: Pod, version: v1}]}
    required:
    - {name: certificates.cert-manager.io, version: v1, kind: Certificate}
  install:
    strategy: deployment
    spec:
      deployments:
      - name: redis
        spec:
          selector: {}
          template:
            spec:
              initContainers: [{name: init, image: example.com/init:1}]
              containers: [{name: redis, image: example.com/redis:1}]
  relatedImages:
  - {name: server, image: example.com/server:7}
  - {name: operator, image: example.com/redis:1}
";
const CRD: &str = "\
# manifests/redis.yaml
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: redis.cache.example.com}
spec:
  group: cache.example.com
  names: {kind: Redis, plural: redis}
  versions: [{name: v1}, {name: v1beta1}]
";
const ANNOTATIONS: &str = "\
# metadata/annotations.yaml
annotations:
  operators.operatorframework.io.bundle.package.v1: redis
";

/// A bundle from parts in which a line `# PATH` starts a file.
fn files(parts: &[&str]) -> BundleFiles {
    let mut files: Vec<BundleFile> = Vec::new();
    let mut text = String::new();
    for line in parts.concat().lines().rev() {
        match line.strip_prefix("# ").filter(|path| path.contains('/')) {
            Some(path) => {
                let content = Content::Text(std::mem::take(&mut text));
                files.push(BundleFile { path: path.into(), content });
            }
            None => text = format!("{line}\n{text}"),
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    BundleFiles { name: "bundle".into(), files }
}

/// The blob as YAML, or the error.
fn render(parts: &[&str], image: &str, form: Form) -> String {
    let files = files(parts);
    match bundle(&Bundle::parse(&files), &Options { image: image.into(), form }) {
        Ok(rendered) => olmkit_bundle::yaml::write::to_string(&rendered.blob.to_json()).unwrap(),
        Err(error) => {
            let place = error.place().map(|place| format!("{place}: "));
            format!("{}{error}", place.unwrap_or_default())
        }
    }
}

#[test]
fn with_an_image_the_blob_has_what_consoles_show() {
    insta::assert_snapshot!(render(&[CSV, CRD, ANNOTATIONS], "example.com/redis-bundle:v1.2.0", Form::Metadata), @r#"
    image: example.com/redis-bundle:v1.2.0
    name: redis.v1.2.0
    package: redis
    properties:
    - type: olm.gvk
      value:
        group: cache.example.com
        kind: Redis
        version: v1
    - type: olm.gvk
      value:
        group: cache.example.com
        kind: Redis
        version: v1beta1
    - type: olm.gvk.required
      value:
        group: cert-manager.io
        kind: Certificate
        version: v1
    - type: olm.package
      value:
        packageName: redis
        version: "1.2.0"
    - type: olm.csv.metadata
      value:
        annotations:
          olm.skipRange: <1.2.0
        apiServiceDefinitions: {}
        crdDescriptions:
          owned:
          - kind: Redis
            name: redis.cache.example.com
            resources:
            - kind: Pod
              name: ""
              version: v1
            version: v1
          required:
          - kind: Certificate
            name: certificates.cert-manager.io
            version: v1
        description: A <b>cache</b>.
        provider: {}
    relatedImages:
    - image: example.com/init:1
      name: ""
    - image: example.com/redis-bundle:v1.2.0
      name: ""
    - image: example.com/redis:1
      name: operator
    - image: example.com/server:7
      name: server
    schema: olm.bundle
    "#);
}

#[test]
fn without_an_image_it_has_the_manifests() {
    let text = render(&[CSV, CRD, ANNOTATIONS], "", Form::Metadata);
    let objects: Vec<_> = text
        .lines()
        .filter_map(|line| line.trim().strip_prefix("data: "))
        .map(|data| String::from_utf8(base64::decode(data).unwrap()).unwrap())
        .collect();
    assert_eq!(objects.len(), 2);
    assert!(
        objects[0]
            .starts_with(r#"{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition""#)
    );
    assert!(objects[1].contains(r#""description":"A \u003cb\u003ecache\u003c/b\u003e.""#), "{}", objects[1]);
    assert!(!text.contains("olm.csv.metadata"));
}

#[test]
fn dependencies_and_properties_of_every_kind() {
    let metadata = "\
# metadata/dependencies.yaml
dependencies:
- {type: olm.package, value: {packageName: etcd, version: '>=3.0.0'}}
- {type: olm.gvk, value: {group: cert-manager.io, version: v1, kind: Certificate}}
- {type: olm.constraint, value: {failureMessage: no, all: {constraints: []}}}
# metadata/properties.yaml
properties:
- {type: olm.maxOpenShiftVersion, value: '4.20'}
- {type: olm.gvk, value: {group: cache.example.com, version: v2, kind: Redis}}
- {type: olm.maxOpenShiftVersion, value: '4.20'}
";
    let csv =
        CSV.replace("{olm.skipRange: <1.2.0}", r#"{olm.properties: '[{"type": "my.own", "value": [1]}]'}"#);
    let text = render(&[&csv, CRD, ANNOTATIONS, metadata], "example.com/b:1", Form::Objects);
    insta::assert_snapshot!(text.split("- type: olm.bundle.object").next().unwrap(), @r#"
    image: example.com/b:1
    name: redis.v1.2.0
    package: redis
    properties:
    - type: my.own
      value:
      - 1
    - type: olm.constraint
      value:
        all:
          constraints: []
        failureMessage: false
    - type: olm.gvk
      value:
        group: cache.example.com
        kind: Redis
        version: v1
    - type: olm.gvk
      value:
        group: cache.example.com
        kind: Redis
        version: v1beta1
    - type: olm.gvk
      value:
        group: cache.example.com
        kind: Redis
        version: v2
    - type: olm.gvk.required
      value:
        group: cert-manager.io
        kind: Certificate
        version: v1
    - type: olm.maxOpenShiftVersion
      value: "4.20"
    - type: olm.package
      value:
        packageName: redis
        version: "1.2.0"
    - type: olm.package.required
      value:
        packageName: etcd
        versionRange: ">=3.0.0"
    "#);
}

#[test]
fn what_else_the_csv_says() {
    let files = files(&[CSV, CRD, ANNOTATIONS]);
    let rendered = bundle(&Bundle::parse(&files), &Options::default()).unwrap();
    insta::assert_debug_snapshot!(rendered.csv, @r#"
    CsvFacts {
        version: "1.2.0",
        release: "",
        replaces: "redis.v1.1.0",
        skips: [],
        skip_range: "<1.2.0",
        description: "A <b>cache</b>.",
        icon: None,
    }
    "#);
}

#[test]
fn what_cannot_be_read_is_named() {
    let check = |parts: &[&str]| render(parts, "", Form::Objects);
    let errors = [
        check(&[CRD, ANNOTATIONS]),
        check(&[CSV, ANNOTATIONS]),
        check(&[CSV, CRD]),
        check(&[CSV, CRD, ANNOTATIONS, "# manifests/broken.yaml\na: b: c\n"]),
        check(&[CSV, CRD, ANNOTATIONS, "# manifests/list.yaml\n- a\n"]),
        check(&[CSV, CRD, ANNOTATIONS, "# manifests/nameless.yaml\na: b\n"]),
        check(&[CSV, CRD, ANNOTATIONS, "# manifests/z.yaml\nkind: ClusterServiceVersion\n"]),
        check(&[CSV, CRD, ANNOTATIONS, "# metadata/dependencies.yaml\ndependencies:\n- type: olm.gvk\n"]),
        check(&[CSV, CRD, ANNOTATIONS, "# metadata/properties.yaml\nproperties: {}\n"]),
        check(&[
            CSV,
            CRD,
            ANNOTATIONS,
            "# metadata/properties.yaml\nproperties:\n- type: olm.gvk\n  value: {version: 1}\n",
        ]),
        check(&[&CSV.replace("version: 1.2.0", "version: []"), CRD, ANNOTATIONS]),
        check(&[&CSV.replace("certificates.cert-manager.io", "certificates"), CRD, ANNOTATIONS]),
    ];
    insta::assert_snapshot!(errors.join("\n"), @r"
    `bundle` has no ClusterServiceVersion in `manifests/`
    bundle/manifests/redis.clusterserviceversion.yaml:12:14: `Redis` v1 `redis.cache.example.com` is owned but not in the bundle
    `bundle` does not name its package
    bundle/manifests/broken.yaml:1:5: cannot read a file of the bundle: mapping values are not allowed in this context
    bundle/manifests/list.yaml:1:1: cannot read a file of the bundle: it is not a Kubernetes object
    bundle/manifests/nameless.yaml:1:1: cannot read a file of the bundle: the object has no kind
    bundle/manifests/z.yaml:1:7: cannot read a file of the bundle: it is a second ClusterServiceVersion
    bundle/metadata/dependencies.yaml:2:3: cannot read a file of the bundle: `dependencies` has a `olm.gvk` without value
    bundle/metadata/properties.yaml:1:13: cannot read a file of the bundle: `properties` is not a list
    bundle/metadata/properties.yaml:2:3: cannot read a file of the bundle: `properties` has a `olm.gvk` that does not fit: `version`: expected a string, found a number
    bundle/manifests/redis.clusterserviceversion.yaml:7:12: the ClusterServiceVersion cannot be read
    bundle/manifests/redis.clusterserviceversion.yaml:14:14: cannot read a file of the bundle: `certificates` is not the name of a CRD, which is `PLURAL.GROUP`
    ");
}

#[test]
fn files_without_a_value_and_hidden_files_are_passed_over() {
    let more = "# manifests/empty.yaml\n# only a comment\n# manifests/.hidden.yaml\na: b: c\n";
    assert!(render(&[CSV, CRD, ANNOTATIONS, more], "", Form::Objects).contains("schema: olm.bundle"));
}
