//! What a base and a catalog say.

use super::*;

#[test]
fn a_bundle_instead_of_manifests_is_named() {
    insta::assert_snapshot!(outcome(&[CRD, BASE]), @r"
    error[generate-no-deployment] 1.yaml:4:9: no Deployment among the manifests: there would be nothing to install (`echo.v0.0.0` is already a bundle: pass the manifests that it was generated from, and the bundle as `--base`)
    warning[generate-base-overruled] 1.yaml:18:7: the base owns `gone.example.com v1`, for which there is no CRD among the manifests: it is left out (add the CRD to the manifests, or move the entry to `required`)
    warning[generate-base-overruled] 1.yaml:20:56: the base has a Deployment `former`, and the manifests have none: it is left out (add it to the manifests)
    warning[generate-base-overruled] 1.yaml:20:97: the base grants rights to `helper`, which is not a service account in the manifests: they are left out (to keep them, add `helper` to `extraServiceAccounts` in the package file)
    ");
}

#[test]
fn a_base_is_kept_where_the_manifests_do_not_know_better() {
    let package = Some("{package: echo, version: 0.1.0, extraServiceAccounts: [helper]}");
    let input =
        Input { texts: &[CRD, DEPLOYMENT, RBAC, SAMPLE], base: Some(BASE), package, ..Input::default() };
    let generated = input.run();
    insta::assert_snapshot!(generated.lines(), @r"
    warning[generate-base-overruled] base.yaml:18:7: the base owns `gone.example.com v1`, for which there is no CRD among the manifests: it is left out (add the CRD to the manifests, or move the entry to `required`)
    warning[generate-base-overruled] base.yaml:20:56: the base has a Deployment `former`, and the manifests have none: it is left out (add it to the manifests)
    + manifests/echo-viewer_rbac.authorization.k8s.io_v1_clusterrole.yaml
    + manifests/echo.clusterserviceversion.yaml
    + manifests/example.com_echoes.yaml
    + manifests/manager_rbac.authorization.k8s.io_v1_clusterrole.yaml
    + manifests/manager_rbac.authorization.k8s.io_v1_clusterrolebinding.yaml
    + metadata/annotations.yaml
    ");
    let csv = generated.csv();
    let examples: serde_json::Value =
        serde_json::from_str(csv["metadata"]["annotations"]["alm-examples"].as_str().unwrap()).unwrap();
    let names: Vec<_> =
        examples.as_array().unwrap().iter().map(|example| &example["metadata"]["name"]).collect();
    assert_eq!(names, ["hello", "other"]);
    assert_eq!(csv["spec"]["somethingNew"]["kept"], true);
    assert_eq!(csv["metadata"].get("namespace"), None);
    let paths = [
        "metadata.name",
        "spec.displayName",
        "spec.customresourcedefinitions.owned[0].description",
        "spec.customresourcedefinitions.owned[0].displayName",
        "spec.relatedImages",
        "spec.install.spec.permissions",
        "spec.installModes[3]",
    ];
    let origins: Vec<_> = paths.iter().map(|path| generated.origins_of(path)).collect();
    insta::assert_snapshot!(origins.join("\n"), @r#"
    metadata.name = "echo.v0.1.0" <- package and version make the name olmkit.yaml:1:11, MadeOf package file olmkit.yaml:1:26, InsteadOf base base.yaml:4:9
    spec.displayName = "Echo of old" <- base base.yaml:10:16
    spec.customresourcedefinitions.owned[0].description = "By hand" <- base base.yaml:17:72, InsteadOf manifest 0.yaml:12:59
    spec.customresourcedefinitions.owned[0].displayName = "Echo" <- the kind, in words 0.yaml:7:17
    spec.relatedImages[0].image = "cache:2" <- base base.yaml:13:40
    spec.relatedImages[0].name = "cache" <- base base.yaml:13:26
    spec.relatedImages[1].image = "echo:1" <- manifest 1.yaml:11:32
    spec.relatedImages[1].name = "manager" <- the container's or variable's name 1.yaml:11:9
    spec.install.spec.permissions[0].rules[0].apiGroups[0] = "coordination.k8s.io" <- manifest 2.yaml:8:22
    spec.install.spec.permissions[0].rules[0].resources[0] = "leases" <- manifest 2.yaml:8:56
    spec.install.spec.permissions[0].rules[0].verbs[0] = "get" <- manifest 2.yaml:8:73
    spec.install.spec.permissions[0].serviceAccountName = "echo" <- manifest 1.yaml:9:27
    spec.install.spec.permissions[1].rules = [] <- base base.yaml:20:133
    spec.install.spec.permissions[1].serviceAccountName = "helper" <- base base.yaml:20:118
    spec.installModes[3].supported = true <- all namespaces, by default
    spec.installModes[3].type = "AllNamespaces" <- all namespaces, by default
    "#);
}

#[test]
fn the_catalog_has_the_say_over_edges() {
    let package = "{package: echo, version: 0.2.0, replaces: echo.v0.1.0, skipRange: '<0.1.0'}";
    let edges = |edge| {
        let input = Input { texts: &[DEPLOYMENT], package: Some(package), edge, ..Input::default() };
        let csv = input.run().csv();
        (csv["spec"]["replaces"].clone(), csv["metadata"]["annotations"]["olm.skipRange"].clone())
    };
    assert_eq!(edges(None), ("echo.v0.1.0".into(), "<0.1.0".into()));
    let edge = Edge { replaces: Some("echo.v0.1.5".into()), ..Edge::default() };
    assert_eq!(edges(Some(edge)), ("echo.v0.1.5".into(), serde_json::Value::Null));
}

#[test]
fn rights_of_an_account_that_only_the_base_has_are_left_out_and_said() {
    let base = "
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: echo.v0.0.0}
spec:
  install:
    strategy: deployment
    spec:
      deployments: null
      clusterPermissions:
      - {serviceAccountName: former, rules: [{apiGroups: [example.com], resources: [echoes], verbs: null}]}
";
    let run = |package| {
        let package = Some(package);
        Input { texts: &[CRD, DEPLOYMENT, RBAC], base: Some(base), package, ..Input::default() }.run()
    };
    let left_out = run("{package: echo, version: 0.1.0}");
    let lines = left_out.lines();
    assert!(lines.contains(
        "warning[generate-base-overruled] base.yaml:11:9: the base grants rights to `former`, which is not a service account in \
         the manifests: they are left out (to keep them, add `former` to `extraServiceAccounts` in the package file)"
    ), "{lines}");
    assert!(!left_out.csv().to_string().contains("former"));
    let kept = run("{package: echo, version: 0.1.0, extraServiceAccounts: [former]}").lines();
    assert!(!kept.contains("`former`, which") && kept.contains("has no verbs"), "{kept}");
}

#[test]
fn an_image_of_the_base_that_nothing_runs_is_said() {
    let run = |image: &str, package: &str| {
        let base = format!(
            "kind: ClusterServiceVersion\nmetadata: {{name: echo.v0.0.0, annotations: {{containerImage: '{image}'}}}}\n"
        );
        let texts = &[CRD, DEPLOYMENT, RBAC];
        Input { texts, base: Some(&base), package: Some(package), ..Input::default() }.run()
    };
    let package = "{package: echo, version: 0.1.0}";
    let other = run("echo:0", package);
    insta::assert_snapshot!(said(&other, "generate-base-overruled"), @"warning[generate-base-overruled] base.yaml:2:61: the base says `containerImage: echo:0`, and no Deployment runs that image: consoles show it (remove the annotation from the base, for the image of the Deployment, or set `containerImage` in the package file)");
    for same in
        [run("echo:1", package), run("echo:0", "{package: echo, version: 0.1.0, containerImage: 'echo:2'}")]
    {
        assert_eq!(said(&same, "generate-base-overruled"), "");
    }
}
