//! What would not install, or not everywhere: namespaces that are written down, Deployments that Kubernetes refuses, flags that
//! contradict the bundle.

use super::*;

/// The findings of one code, a line each without places and help.
#[track_caller]
fn said(outcome: &Outcome, code: &str) -> String {
    let own = outcome.findings.iter().filter(|finding| finding.code.name == code);
    own.map(|finding| finding.message.as_str()).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_binding_to_a_role_of_the_cluster_depends_on_the_namespace() {
    for role in ["cluster-admin", "admin", "edit", "view"] {
        let binding = bound("ClusterRoleBinding", "", &format!("ClusterRole, name: {role}"), ECHO);
        let generated = run(&[CRD, DEPLOYMENT, &binding]);
        let expected = "the service account `echo` of the namespace `echo-system` has the rights of `ClusterRoleBinding/bound` only where the operator is installed in that namespace";
        assert_eq!(said(&generated, "generate-namespace-fixed"), expected);
        assert!(!generated.files.is_empty());
    }
    // A service account of the manifests, beside the one that the Deployment runs as.
    let accounts = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: metrics, namespace: echo-system}";
    let second = format!("{ECHO}, {{kind: ServiceAccount, name: metrics, namespace: echo-system}}");
    let binding = bound("ClusterRoleBinding", "", "ClusterRole, name: manager", &second);
    let generated = run(&[CRD, DEPLOYMENT, RBAC, accounts, &binding]);
    assert_eq!(
        said(&generated, "generate-namespace-fixed"),
        "the service account `metrics` of the namespace `echo-system` has the rights of `ClusterRoleBinding/bound` only where the operator is installed in that namespace"
    );
}

#[test]
fn bindings_of_one_service_account_are_one_finding() {
    let binding = |name: &str| {
        let binding = bound("ClusterRoleBinding", "", "ClusterRole, name: view", ECHO);
        binding.replace("name: bound", &format!("name: {name}"))
    };
    let bindings: Vec<_> = ["a", "b", "c", "d", "e"].into_iter().map(binding).collect();
    let generated = run(&[CRD, DEPLOYMENT, &bindings.join("---\n")]);
    assert_eq!(
        said(&generated, "generate-namespace-fixed"),
        "the service account `echo` of the namespace `echo-system` has the rights of `ClusterRoleBinding/a`, `ClusterRoleBinding/b`, `ClusterRoleBinding/c` and 2 other bindings only where the operator is installed in that namespace"
    );
}

#[test]
fn a_binding_to_a_group_of_service_accounts_is_said() {
    let group = |name: &str| format!("{{kind: Group, apiGroup: rbac.authorization.k8s.io, name: '{name}'}}");
    for (name, expected) in [
        (
            "system:serviceaccounts:echo-system",
            "to every service account of the namespace `echo-system`, and the operator gets it only where it is installed there",
        ),
        ("system:serviceaccounts", "to every service account, not only the operator's"),
    ] {
        let binding = bound("ClusterRoleBinding", "", "ClusterRole, name: view", &group(name));
        let generated = run(&[CRD, DEPLOYMENT, &binding]);
        let said = said(&generated, "generate-subject-group");
        assert_eq!(
            said,
            format!("`ClusterRoleBinding/bound` grants what `ClusterRole/view` allows {expected}")
        );
        // What the group may do everywhere decides on the install modes.
        assert_eq!(generated.csv()["spec"]["installModes"][3]["supported"], true);
    }
    let other = bound(
        "ClusterRoleBinding",
        "",
        "ClusterRole, name: view",
        &group("system:serviceaccounts:monitoring"),
    );
    assert_eq!(said(&run(&[CRD, DEPLOYMENT, &other]), "generate-subject-group"), "");
}

#[test]
fn a_binding_to_a_role_that_nobody_has_is_said() {
    for (kind, role) in
        [("RoleBinding", "Role, name: gone"), ("ClusterRoleBinding", "ClusterRole, name: gone")]
    {
        let namespace = if kind == "RoleBinding" { "echo-system" } else { "" };
        let generated = run(&[CRD, DEPLOYMENT, &bound(kind, namespace, role, ECHO)]);
        let role = role.replace(", name: ", "/");
        let expected = format!("`{kind}/bound` refers to `{role}`, which is not among the manifests");
        assert_eq!(said(&generated, "generate-role-unknown"), expected);
        assert_eq!(said(&generated, "generate-namespace-fixed"), "");
    }
}

#[test]
fn a_namespace_in_arguments_and_variables_is_said() {
    let with = "image: 'echo:1', args: ['--namespace=echo-system', --id, echo], env: [{name: URL, value: 'http://a.echo-system.svc:80'}, ";
    let deployment = DEPLOYMENT.replace("image: 'echo:1', env: [", with);
    let generated = run(&[CRD, &deployment, RBAC]);
    assert_eq!(
        said(&generated, "generate-namespace-fixed"),
        "`Deployment/echo-operator` hard-codes the namespace `echo-system` (`--namespace=echo-system`, `URL=http://a.echo-system.svc:80`), but OLM installs it into the one that users choose"
    );
}

#[test]
fn a_deployment_that_kubernetes_refuses_is_an_error() {
    for (from, to, expected) in [
        ("  selector: {matchLabels: {app: echo}}\n", "", "the Deployment has no selector for its pods"),
        (
            "    metadata: {labels: {app: echo}}",
            "    metadata: {labels: {app: ecko}}",
            "the selector does not select the Deployment's own pods: they have `app: ecko`",
        ),
        (", image: 'echo:1'", "", "the container `manager` has no image"),
        (
            "image: 'echo:1'",
            "image: 'echo:1', volumeMounts: [{name: cache, mountPath: /cache}]",
            "the container `manager` mounts the volume `cache`, which the pods do not have",
        ),
        (
            "value: 'yes'",
            "value: yes",
            "expected a string in `template.spec.containers[0].env[1].value`, found a boolean",
        ),
        ("image: 'echo:1'", "image: 'echo:1', livenessProbe: {httpGet: {path: /}}", "the probe has no port"),
    ] {
        assert!(DEPLOYMENT.contains(from), "{from}");
        let generated = run(&[CRD, &DEPLOYMENT.replacen(from, to, 1), RBAC]);
        let found = said(&generated, "generate-deployment-invalid");
        assert_eq!(found, format!("`Deployment/echo-operator`: {expected}"));
        let finding = generated.findings.iter().find(|own| own.code == &codes::DEPLOYMENT_INVALID).unwrap();
        assert!(
            finding.place.is_some() && finding.help.is_some() && generated.files.is_empty(),
            "{finding:?}"
        );
    }
    let old = DEPLOYMENT.replace("apps/v1", "apps/v1beta1");
    let generated = run(&[CRD, &old, RBAC]);
    assert_eq!(
        said(&generated, "generate-deployment-invalid"),
        "`Deployment/echo-operator` is written for `apps/v1beta1`, which Kubernetes no longer serves: OLM creates it as `apps/v1`"
    );
    assert!(!generated.files.is_empty());
}

#[test]
fn an_image_that_is_set_is_not_missing() {
    let deployment = DEPLOYMENT.replace("image: 'echo:1'", "image: CONTROLLER");
    assert!(run(&[CRD, &deployment, RBAC]).files.is_empty());
    let images = vec!["CONTROLLER=quay.io/example/echo:v1".parse().unwrap()];
    let overrides = Overrides { images, ..Overrides::default() };
    let generated = Input { texts: &[CRD, &deployment, RBAC], overrides, ..Input::default() }.run();
    assert!(!generated.files.is_empty(), "{}", generated.lines());
}

#[test]
fn an_image_that_a_scaffold_wrote_is_said_once() {
    let deployment = DEPLOYMENT.replace("image: 'echo:1', env: [", "image: 'controller:latest', env: [{name: RELATED_IMAGE_SELF, value: 'controller:latest'}, {name: RELATED_IMAGE_CACHE, value: 'example.com/cache:v1'}, ");
    let outcome = |images: &[&str]| {
        let images = images.iter().map(|image| image.parse().unwrap()).collect();
        let overrides = Overrides { images, ..Overrides::default() };
        Input { texts: &[CRD, &deployment, RBAC], overrides, ..Input::default() }.run()
    };
    let generated = outcome(&[]);
    let places: Vec<_> = generated
        .findings
        .iter()
        .filter(|own| own.code == &codes::IMAGE_PLACEHOLDER)
        .map(|own| (own.place.as_ref().unwrap().to_string(), own.help.clone().unwrap()))
        .collect();
    assert_eq!(
        places,
        [
            ("1.yaml:11:32".to_owned(), "pass `--image controller:latest=REGISTRY/NAME:TAG`".to_owned()),
            ("1.yaml:11:150".to_owned(), "pass `--image example.com/cache:v1=REGISTRY/NAME:TAG`".to_owned()),
        ]
    );
    assert!(!generated.files.is_empty());
    // The help as it stands, with a name filled in, is the way out.
    let named =
        ["controller:latest=quay.io/example/echo:v1", "example.com/cache:v1=registry.example.com/cache:v1"];
    assert_eq!(said(&outcome(&named), "generate-image-placeholder"), "");
    let compat = Some(Compat::OperatorSdk);
    let theirs = Input { texts: &[CRD, &deployment, RBAC], compat, ..Input::default() }.run();
    assert_eq!(said(&theirs, "generate-image-placeholder"), "");
}

#[test]
fn a_claim_that_nobody_makes_is_said() {
    let deployment = DEPLOYMENT.replace(
        "      containers:",
        "      volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]\n      containers:",
    );
    let said = said(&run(&[CRD, &deployment, RBAC]), "generate-reference-missing");
    assert_eq!(
        said,
        "the Deployment `echo-operator` needs the PersistentVolumeClaim `data`, which nothing in the bundle creates"
    );
}

/// What is said about flags and the package file's `csv`.
fn refused(package: &str, set: &[&str]) -> String {
    let set = set.iter().map(|text| text.parse().unwrap()).collect();
    let overrides = Overrides { set, ..Overrides::default() };
    let package = format!("package: echo\nversion: 0.1.0\n{package}\n");
    let input =
        Input { texts: &[CRD, DEPLOYMENT, RBAC], package: Some(&package), overrides, ..Input::default() };
    let outcome = input.run();
    let errors = outcome.findings.iter().filter(|own| own.level == Level::Error);
    let errors: Vec<_> = errors.map(|own| own.message.clone()).collect();
    assert_eq!(errors.is_empty(), !outcome.files.is_empty());
    errors.join("\n")
}

/// Each has its own place.
#[test]
fn numbers_where_kubernetes_expects_text_are_errors() {
    let deployment = DEPLOYMENT
        .replace("value: 'yes'", "value: 5")
        .replace("image: 'echo:1'", "image: 'echo:1', args: [--port, 8080]");
    let generated = run(&[CRD, &deployment, RBAC]);
    assert!(generated.files.is_empty());
    let found = generated.findings.iter().filter(|own| own.code == &codes::DEPLOYMENT_INVALID).map(line);
    insta::assert_snapshot!(found.collect::<Vec<_>>().join("\n"), @r"
    error[generate-deployment-invalid] 1.yaml:11:57: `Deployment/echo-operator`: expected a string in `template.spec.containers[0].args[1]`, found a number (quote it, so that it is a string)
    error[generate-deployment-invalid] 1.yaml:11:129: `Deployment/echo-operator`: expected a string in `template.spec.containers[0].env[1].value`, found a number (quote it, so that it is a string)
    ");
}

#[test]
fn what_contradicts_the_bundle_is_refused() {
    for (set, expected) in [
        (
            "metadata.name=other.v0.1.0",
            "`--set`: `metadata.name` is `other.v0.1.0`, and the bundle's is `echo.v0.1.0`",
        ),
        ("spec.version=0.2.0", "`--set`: `spec.version` is `0.2.0`, and the bundle's is `0.1.0`"),
        ("kind=Deployment", "`--set`: `kind` is `Deployment`, and the bundle's is `ClusterServiceVersion`"),
        (
            "apiVersion=v1",
            "`--set`: `apiVersion` is `v1`, and the bundle's is `operators.coreos.com/v1alpha1`",
        ),
        ("spec.release=2", "`--set`: `spec.release` is `2`, and the bundle has none"),
        ("spec.replaces=echo.v0.1.0", "`--set`: `echo.v0.1.0` replaces itself"),
        ("spec.skips=[echo.v0.1.0]", "`--set`: `echo.v0.1.0` skips itself"),
        ("spec.version=0.1.0", ""),
    ] {
        assert_eq!(refused("", &[set]), expected, "{set}");
    }
    assert_eq!(
        refused("csv: {spec: {version: 1.0.0}}", &[]),
        "`spec.version` is `1.0.0`, and the bundle's is `0.1.0`"
    );
    assert_eq!(
        refused("csv: {metadata: {name: x.v0.1.0}}", &[]),
        "`metadata.name` is `x.v0.1.0`, and the bundle's is `echo.v0.1.0`"
    );
    assert_eq!(refused("replaces: echo.v0.1.0", &[]), "`echo.v0.1.0` replaces itself");
    assert_eq!(refused("channels: [a, b, a]", &[]), "the channel `a` is given twice");
}

#[test]
fn flags_that_contradict_one_another_are_refused() {
    let lines = |overrides: Overrides, created_at: Option<&str>| {
        let file = PackageFile::parse(Source::new("olmkit.yaml", "{package: echo, version: 0.1.0}")).unwrap();
        let sources = Sources { file: Some(&file), ..Sources::default() };
        let package = match Package::resolve(sources, overrides, Attachments::default()) {
            Ok(package) => package,
            Err(findings) => return findings.iter().map(|own| own.message.clone()).collect::<Vec<_>>(),
        };
        let manifests =
            Manifests::parse([CRD, DEPLOYMENT, RBAC].map(|text| Source::new("a.yaml", text)).into());
        let created_at =
            created_at.map(|time| (time.to_owned(), Origin::unwritten(By::Flag("--created-at"))));
        let generated = generate(&Request { created_at, ..Request::new(&package, &manifests) });
        generated.findings.iter().map(|own| own.message.clone()).collect()
    };
    let images = vec!["echo=a:1".parse().unwrap(), "echo=b:1".parse().unwrap()];
    let overrides = Overrides { images, ..Overrides::default() };
    assert_eq!(lines(overrides, None), ["`--image`: `echo` is replaced by two different images"]);
    let images = vec!["echo=a:1".parse().unwrap(), "echo=a:1".parse().unwrap()];
    let overrides = Overrides { images, ..Overrides::default() };
    assert!(!lines(overrides, None).iter().any(|line| line.contains("--image")));
    let set = vec!["metadata.annotations.createdAt='2020-01-01T00:00:00Z'".parse().unwrap()];
    let overrides = Overrides { set, ..Overrides::default() };
    assert_eq!(
        lines(overrides, Some("2026-01-01T00:00:00Z")),
        [
            "`--set`: `--created-at` is `2026-01-01T00:00:00Z`, and `createdAt` is set to `2020-01-01T00:00:00Z`"
        ]
    );
}

#[test]
fn set_takes_positions_and_keys_with_dots() {
    let set = [
        "spec.maintainers[0].name=Jo",
        "spec.maintainers[0].email=jo@example.com",
        r"metadata.annotations.example\.com/team=db",
        "metadata.annotations['example.com/more']=x",
    ];
    let set = set.iter().map(|text| text.parse().unwrap()).collect();
    let overrides = Overrides { set, ..Overrides::default() };
    let generated = Input { texts: &[CRD, DEPLOYMENT, RBAC], overrides, ..Input::default() }.run();
    let csv = generated.csv();
    assert_eq!(csv["spec"]["maintainers"], serde_json::json!([{"name": "Jo", "email": "jo@example.com"}]));
    let annotations = &csv["metadata"]["annotations"];
    assert_eq!(
        (&annotations["example.com/team"], &annotations["example.com/more"]),
        (&"db".into(), &"x".into())
    );
    assert_eq!(
        refused("", &["spec.maintainers[2].name=Jo"]),
        "`--set spec.maintainers[2].name`: the list has 0 items, counted from 0"
    );
    let dots = refused("", &["metadata.annotations.example.com/team=db"]);
    assert!(dots.starts_with("`--set`: `metadata.annotations"), "{dots}");
}

#[test]
fn a_package_file_among_the_manifests_is_left_out() {
    for text in ["package: other\nversion: 1.0.0\nmanifests: [deploy]\n", "package: other\n"] {
        insta::allow_duplicates! {
            insta::assert_snapshot!(said(&run(&[CRD, DEPLOYMENT, RBAC, text]), "generate-kind-left-out"), @"a package file is left out: package files are not manifests");
        }
    }
    assert!(outcome(&["a: b\n"]).contains("generate-not-an-object"));
}

#[test]
fn a_name_that_the_cluster_makes_is_none() {
    let text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {generateName: settings-}\n";
    let said = outcome(&[DEPLOYMENT, text]);
    assert!(said.contains("the object has only `metadata.generateName`"), "{said}");
}

#[test]
fn a_kustomization_of_samples_is_nothing_to_say() {
    let text = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [a.yaml]\n";
    let manifests = Manifests::parse(vec![
        Source::new("all.yaml", DEPLOYMENT),
        Source::new("samples/kustomization.yaml", text),
    ]);
    let manifests = manifests.with_samples(vec![Source::new("samples/kustomization.yaml", text)]);
    let mut findings = Findings::new();
    manifests.classify(None, &mut findings);
    assert_eq!(findings.into_sorted(""), []);
}
