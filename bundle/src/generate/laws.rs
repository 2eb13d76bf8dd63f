//! Laws that hold for any operator, on generated ones.

mod rights;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::source::Source;
use crate::validate::validate;

/// A made-up operator.
#[derive(Clone, Debug)]
struct Operator {
    deployments: Vec<Workload>,
    apis: Vec<Api>,
    roles: Vec<Role>,
    /// Whether a Service and an admission webhook lead to the first Deployment.
    webhook: bool,
    settings: usize,
}

#[derive(Clone, Debug)]
struct Workload {
    account: Option<usize>,
    containers: usize,
    watches: bool,
    related: bool,
}

#[derive(Clone, Debug)]
struct Api {
    versions: usize,
    converts: bool,
    samples: usize,
    fields: Vec<&'static str>,
}

#[derive(Clone, Debug)]
struct Role {
    cluster: bool,
    /// The Deployment whose account it is bound to, counted round.
    bound: Option<usize>,
    resource: &'static str,
}

fn operators() -> impl Strategy<Value = Operator> {
    let workload = (any::<Option<u8>>(), 1..3usize, any::<bool>(), any::<bool>()).prop_map(
        |(account, containers, watches, related)| Workload {
            account: account.map(|account| usize::from(account % 3)),
            containers,
            watches,
            related,
        },
    );
    let field = prop::sample::select(vec![
        "replicas",
        "tlsSecretName",
        "enabled",
        "resources",
        "conditions",
        "level",
    ]);
    let api = (1..4usize, any::<bool>(), 0..3usize, prop::collection::vec(field, 0..5))
        .prop_map(|(versions, converts, samples, fields)| Api { versions, converts, samples, fields });
    let resource = prop::sample::select(vec!["pods", "secrets", "leases"]);
    let role = (any::<bool>(), any::<Option<u8>>(), resource).prop_map(|(cluster, bound, resource)| Role {
        cluster,
        bound: bound.map(usize::from),
        resource,
    });
    let many = |most| 0..most;
    (
        prop::collection::vec(workload, 1..4),
        prop::collection::vec(api, many(4)),
        prop::collection::vec(role, many(5)),
        any::<bool>(),
        0..3usize,
    )
        .prop_map(|(deployments, apis, roles, webhook, settings)| Operator {
            deployments,
            apis,
            roles,
            webhook,
            settings,
        })
}

impl Operator {
    fn manifests(&self) -> Vec<String> {
        let mut all: Vec<Value> = Vec::new();
        for (at, workload) in self.deployments.iter().enumerate() {
            let container = |index: usize| {
                let mut env = Vec::new();
                if workload.watches {
                    env.push(json!({"name": "WATCH_NAMESPACE", "value": ""}));
                }
                if workload.related {
                    env.push(
                        json!({"name": "RELATED_IMAGE_CACHE", "value": format!("quay.io/x/cache:{at}")}),
                    );
                }
                json!({"name": format!("c{index}"), "image": format!("quay.io/x/op{at}:v{index}"), "env": env,
                       "ports": [{"name": "hooks", "containerPort": 9443 + index}]})
            };
            let containers: Vec<_> = (0..workload.containers).map(container).collect();
            let mut pod = json!({ "containers": containers });
            if let Some(account) = workload.account {
                pod["serviceAccountName"] = json!(format!("account{account}"));
                all.push(json!({"apiVersion": "v1", "kind": "ServiceAccount",
                    "metadata": {"name": format!("account{account}"), "namespace": "system"}}));
            }
            all.push(json!({
                "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": format!("op{at}"), "namespace": "system"},
                "spec": {"selector": {"matchLabels": {"app": format!("op{at}")}},
                         "template": {"metadata": {"labels": {"app": format!("op{at}")}}, "spec": pod}},
            }));
        }
        let service = json!({"name": "hooks", "namespace": "system", "path": "/x"});
        let needs_service = self.webhook || self.apis.iter().any(|api| api.converts);
        if needs_service {
            all.push(json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "hooks", "namespace": "system"},
                "spec": {"selector": {"app": "op0"}, "ports": [{"port": 443, "targetPort": "hooks"}]}}));
        }
        if self.webhook {
            all.push(json!({
                "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
                "metadata": {"name": "hooks"},
                "webhooks": [{"name": "m.example.com", "clientConfig": {"service": service}, "sideEffects": "None",
                              "admissionReviewVersions": ["v1"]}],
            }));
        }
        for (at, api) in self.apis.iter().enumerate() {
            let properties: serde_json::Map<_, _> =
                api.fields.iter().map(|field| ((*field).to_owned(), json!({"type": "string"}))).collect();
            let schema = json!({"openAPIV3Schema": {"type": "object",
                "properties": {"spec": {"type": "object", "properties": properties}}}});
            let version = |index: usize| json!({"name": format!("v{}", index + 1), "served": true, "storage": index == 0, "schema": schema});
            let mut spec = json!({
                "group": "example.com", "scope": "Namespaced",
                "names": {"kind": format!("Thing{at}"), "plural": format!("things{at}"), "singular": format!("thing{at}"),
                          "listKind": format!("Thing{at}List")},
                "versions": (0..api.versions).map(version).collect::<Vec<_>>(),
            });
            if api.converts {
                spec["conversion"] = json!({"strategy": "Webhook",
                    "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": {"service": service}}});
            }
            all.push(json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                "metadata": {"name": format!("things{at}.example.com")}, "spec": spec}));
            for sample in 0..api.samples {
                all.push(json!({"apiVersion": format!("example.com/v{}", sample % api.versions + 1),
                    "kind": format!("Thing{at}"), "metadata": {"name": format!("s{sample}")}}));
            }
        }
        for (at, role) in self.roles.iter().enumerate() {
            let prefix = if role.cluster { "Cluster" } else { "" };
            let api_version = "rbac.authorization.k8s.io/v1";
            let metadata = |name: String| match role.cluster {
                true => json!({ "name": name }),
                false => json!({ "name": name, "namespace": "system" }),
            };
            all.push(json!({"apiVersion": api_version, "kind": format!("{prefix}Role"), "metadata": metadata(format!("r{at}")),
                "rules": [{"apiGroups": [""], "resources": [role.resource], "verbs": ["get"]}]}));
            let Some(bound) = role.bound else { continue };
            let account = self.deployments[bound % self.deployments.len()].account;
            let name = account.map_or("default".to_owned(), |account| format!("account{account}"));
            all.push(json!({"apiVersion": api_version, "kind": format!("{prefix}RoleBinding"), "metadata": metadata(format!("b{at}")),
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": format!("{prefix}Role"), "name": format!("r{at}")},
                "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": "system"}]}));
        }
        for at in 0..self.settings {
            all.push(
                json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("c{at}")}}),
            );
        }
        all.iter().map(|object| crate::yaml::write::to_string(object).unwrap()).collect()
    }
}

/// The bundle of these texts, each a file.
fn bundle(texts: &[String]) -> (BTreeMap<String, String>, Vec<Finding>) {
    let overrides = Overrides {
        package: Some("thing".parse().unwrap()),
        version: Some("1.2.3".parse().unwrap()),
        ..Overrides::default()
    };
    let package = Package::resolve(Sources::default(), overrides, Attachments::default()).unwrap();
    // The name of a file says nothing about its place in the order.
    let manifests = Manifests::parse(texts.iter().map(|text| Source::new("manifests.yaml", text)).collect());
    let generated = generate(&Request::new(&package, &manifests));
    (generated.files, generated.findings)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn generate_then_validate_finds_no_error(operator in operators()) {
        let (files, findings) = bundle(&operator.manifests());
        prop_assert!(!files.is_empty(), "{findings:?}");
        let file = |(path, text): (String, String)| BundleFile { path, content: Content::Text(text) };
        let files = BundleFiles { name: "bundle".into(), files: files.into_iter().map(file).collect() };
        let found = validate(&Bundle::parse(&files), &[OLM, INSTALL]);
        let errors: Vec<_> = found.iter().filter(|finding| finding.level == Level::Error).collect();
        prop_assert!(errors.is_empty(), "{errors:?}");
    }

    #[test]
    fn any_input_order_gives_the_same_bytes(
        (operator, seed) in (operators(), any::<u64>()),
    ) {
        let texts = operator.manifests();
        let mut shuffled = texts.clone();
        // Fisher and Yates, with Knuth's generator.
        let mut state = seed;
        for at in (1..shuffled.len()).rev() {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            shuffled.swap(at, (state >> 33) as usize % (at + 1));
        }
        let together = [shuffled.join("---\n")];
        prop_assert_eq!(bundle(&texts).0, bundle(&together).0);
    }
}
