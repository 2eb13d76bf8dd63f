//! Owned APIs and their examples.

use super::*;

#[test]
fn a_version_that_is_not_served_is_not_owned() {
    let crd = CRD.replace("  versions:\n", "  versions:\n  - {name: v1alpha1, served: false, storage: false, schema: {openAPIV3Schema: {type: object}}}\n");
    let owned = |compat| {
        let csv = Input { texts: &[&crd, DEPLOYMENT, RBAC], compat, ..Input::default() }.run().csv();
        let owned = csv["spec"]["customresourcedefinitions"]["owned"].as_array().cloned().unwrap_or_default();
        owned.iter().map(|entry| entry["version"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(owned(None), ["v1"]);
    assert_eq!(owned(Some(Compat::OperatorSdk)), ["v1"]);
    let base = BASE.replace(
        "gone.example.com, version: v1, kind: Gone",
        "echoes.example.com, version: v1alpha1, kind: Echo",
    );
    let generated = Input { texts: &[&crd, DEPLOYMENT, RBAC], base: Some(&base), ..Input::default() }.run();
    assert!(
        generated.lines().contains("a version that the CRD does not serve: it is left out"),
        "{}",
        generated.lines()
    );
}

/// The examples of a bundle, as `APIVERSION NAME TEXT`.
fn examples(generated: &Outcome) -> Vec<String> {
    let text = generated.csv()["metadata"]["annotations"]["alm-examples"].as_str().unwrap().to_owned();
    let examples: Vec<serde_json::Value> = serde_json::from_str(&text).unwrap();
    let shown = |own: &serde_json::Value| {
        let text = |at: &str| own.pointer(at).and_then(|value| value.as_str()).unwrap_or("-").to_owned();
        format!("{} {} {}", text("/apiVersion"), text("/metadata/name"), text("/spec/text"))
    };
    examples.iter().map(shown).collect()
}

#[test]
fn samples_of_one_name_and_several_versions_are_all_kept() {
    let crd = CRD.replace("  versions:\n", "  versions:\n  - {name: v1beta1, served: true, storage: false, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}\n");
    let older = SAMPLE.replace("example.com/v1", "example.com/v1beta1");
    let generated =
        Input { texts: &[&crd, DEPLOYMENT], samples: &[SAMPLE, &older], ..Input::default() }.run();
    assert_eq!(examples(&generated), ["example.com/v1 hello hi", "example.com/v1beta1 hello hi"]);
    assert_eq!(generated.findings, []);
}

#[test]
fn files_of_samples_that_are_none_do_not_fail() {
    let samples = [
        SAMPLE,
        "resources: [a.yaml]\napiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n",
        "a: [",
        "- just\n- a list\n",
        "apiVersion: v1\nkind: Secret\nmetadata: {name: password}\n",
        "apiVersion: example.com/v1\nkind: Echo\nmetadata: {name: hello}\nspec: {text: ho}\n",
    ];
    let generated = Input { texts: &[CRD, DEPLOYMENT], samples: &samples, ..Input::default() }.run();
    insta::assert_snapshot!(generated.lines(), @r"
    warning[generate-yaml-syntax] samples/2.yaml:1:4: a sample that is not YAML is left out: unclosed bracket '['
    info[generate-kind-left-out] samples/3.yaml:1:1: 2 files among the samples hold more than custom resources, and that is left out: `samples/3.yaml`, `samples/4.yaml`
    warning[generate-duplicate-object] samples/5.yaml:3:18: an example is left out, because another of the same version, kind and name is kept: `Echo/hello` (give the examples different names)
    + manifests/echo.clusterserviceversion.yaml
    + manifests/example.com_echoes.yaml
    + metadata/annotations.yaml
    ");
    assert_eq!(examples(&generated), ["example.com/v1 hello hi"]);
}

#[test]
fn a_custom_resource_that_the_operator_reads_is_not_only_an_example() {
    let deployment = DEPLOYMENT.replace("name: OTHER, value: 'yes'", "name: SETTINGS, value: hello");
    insta::assert_snapshot!(said(&run(&[CRD, &deployment, SAMPLE]), "generate-custom-resource-needed"), @"warning[generate-custom-resource-needed] 2.yaml:3:18: `Deployment/echo-operator` names the custom resource `Echo/hello`, which OLM does not create (have the operator create it, or tell users to create it after they install)");
    assert_eq!(run(&[CRD, DEPLOYMENT, SAMPLE]).findings, []);
}

#[test]
fn an_operator_without_crds_is_a_finding() {
    insta::assert_snapshot!(said(&run(&[DEPLOYMENT, RBAC]), "generate-no-api"), @"warning[generate-no-api] 1.yaml:20:16: the operator has rights on `example.com`, and there is no CustomResourceDefinition among the manifests: the bundle owns no API (give the CRDs of the operator too; many projects keep them in a file of their own)");
    // Most charts are no operators.
    let from_chart =
        |texts| Input { texts, chart: Some("name: echo\nversion: 0.1.0\n"), ..Input::default() }.run();
    insta::assert_snapshot!(said(&from_chart(&[DEPLOYMENT]), "generate-no-api"), @"warning[generate-no-api] 0.yaml:2:7: the chart has no CustomResourceDefinition: the bundle owns no API (give the CRDs of the operator too, which many charts leave out by default; if it has none, pass `--allow generate-no-api`)");
    assert_eq!(said(&from_chart(&[CRD, DEPLOYMENT]), "generate-no-api"), "");
    assert_eq!(said(&run(&[DEPLOYMENT]), "generate-no-api"), "");
    assert_eq!(said(&run(&[CRD, DEPLOYMENT, RBAC]), "generate-no-api"), "");
}

/// What `bundle validate --suite schema` says of the examples, said of the samples.
#[test]
fn samples_are_held_against_their_schema_as_examples_are() {
    let schema = "type: object, properties: {spec: {type: object, properties: {step: {type: integer, multipleOf: 2}, \
                  data: {type: string, format: byte}, word: {type: string, pattern: '^a'}}}}";
    let crd = CRD.replace(
        "type: object, description: Says it again., x-kubernetes-preserve-unknown-fields: true",
        schema,
    );
    assert!(crd.contains(schema));
    let sample = "apiVersion: example.com/v1\nkind: Echo\nmetadata: {name: a}\nspec: {step: 3, data: '?', word: b, wrod: a}\n";
    let said = outcome(&[&crd, DEPLOYMENT, RBAC, sample]);
    for expected in [
        "at `spec.step`: 3 is not a multiple of 2",
        "at `spec.data`: `?` is not base64",
        "at `spec.word`: `b` does not match `^a`",
        "`wrod` is not a field of the schema: it would be dropped (did you mean `word`?)",
    ] {
        assert!(said.contains(expected), "{said}");
    }
}

const SIZED: &str = "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: echoes.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Echo, plural: echoes, singular: echo, listKind: EchoList}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}, newer: {type: string}}}, status: {type: object, properties: {phase: {type: string}}}}}}}
  - {name: v1beta1, served: true, storage: false, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}}}
";

#[test]
fn descriptors_of_fields_that_do_not_exist_are_named_with_the_nearest() {
    let run = |descriptors: &str| {
        let package = format!("{{package: echo, version: 0.1.0, descriptors: [{descriptors}]}}");
        let input = Input { texts: &[SIZED, DEPLOYMENT, RBAC], package: Some(&package), ..Input::default() };
        input.run()
    };
    let wrong = run(
        "{kind: Echo, spec: [{path: siez, displayName: Size}, {path: newer}], status: [{path: phaes}], hide: [spec.sizes]}",
    );
    insta::assert_snapshot!(said(&wrong, "csv-descriptor-unknown"), @r"
    warning[csv-descriptor-unknown] olmkit.yaml:1:74: `Echo v1` has no field `spec.siez` (did you mean `size`?)
    warning[csv-descriptor-unknown] olmkit.yaml:1:132: `Echo v1` has no field `status.phaes` (did you mean `phase`?)
    warning[csv-descriptor-unknown] olmkit.yaml:1:148: `Echo v1` has no field `spec.sizes` (did you mean `spec.size`?)
    ");
    assert!(wrong.files.contains_key("metadata/annotations.yaml"));
    // One field that is gone, whatever was below it; what is proposed exists.
    let gone = run("{kind: Echo, spec: [{path: sizes.a.b}, {path: sizes.a.c}, {path: sizes.d}]}");
    insta::assert_snapshot!(said(&gone, "csv-descriptor-unknown"), @"warning[csv-descriptor-unknown] olmkit.yaml:1:74: `Echo v1` has no field `spec.sizes`, which 3 paths begin with (the fields there are `size`, `newer`)");
    // Said of one version alone.
    let older = run("{kind: Echo, version: v1beta1, spec: [{path: newer}]}");
    insta::assert_snapshot!(said(&older, "csv-descriptor-unknown"), @"warning[csv-descriptor-unknown] olmkit.yaml:1:92: `Echo v1beta1` has no field `spec.newer` (the fields there are `size`)");
    assert_eq!(run("{kind: Echo, spec: [{path: size}, {path: newer}], hide: [status.phase]}").findings, []);
}

#[test]
fn an_aggregated_api_that_no_deployment_serves_is_refused() {
    let run = |deployment: &str| {
        let api = format!("group: m.example.com, version: v1, kind: Metric, name: metrics{deployment}");
        let package = format!("{{package: echo, version: 0.1.0, apiServices: [{{{api}}}]}}");
        Input { texts: &[CRD, DEPLOYMENT, RBAC], package: Some(&package), ..Input::default() }.run()
    };
    insta::assert_snapshot!(run(", deploymentName: echo-operater").lines(), @"error[api-service-without-deployment] olmkit.yaml:1:128: there is no deployment `echo-operater` to serve the API `v1.m.example.com` (did you mean `echo-operator`?)");
    let nobody = run("");
    assert!(nobody.files.is_empty());
    let said_of_nobody = said(&nobody, "api-service-without-deployment");
    assert!(
        said_of_nobody
            .contains("the API `v1.m.example.com` names no deployment that serves it (set `deploymentName`"),
        "{said_of_nobody}"
    );
    assert_eq!(said(&run(", deploymentName: echo-operator"), "api-service-without-deployment"), "");
}
