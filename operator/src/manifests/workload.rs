//! How the operator runs: its Deployment, and the Service for its metrics.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::{
        admissionregistration::v1::{
            RuleWithOperations, ServiceReference as AdmissionService, ValidatingWebhook,
            ValidatingWebhookConfiguration, WebhookClientConfig,
        },
        apps::v1::{Deployment, DeploymentSpec},
        core::v1::{
            Capabilities, ConfigMapEnvSource, Container, ContainerPort, EnvFromSource, EnvVar, EnvVarSource,
            HTTPGetAction, ObjectFieldSelector, PodSecurityContext, PodSpec, PodTemplateSpec, Probe,
            ResourceRequirements, SeccompProfile, SecurityContext, Service, ServicePort, ServiceSpec,
        },
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::ServiceReference,
    apimachinery::pkg::{
        api::resource::Quantity,
        apis::meta::v1::{LabelSelector, ObjectMeta},
        util::intstr::IntOrString,
    },
};

use super::{NAME, NAMESPACE, Release, WEBHOOK_SERVICE, cluster_metadata, metadata};
use crate::webhook::{CONVERT, VALIDATE};

/// Labels of the operator's own objects, and the Deployment's selector. A selector cannot be changed after
/// creation, so nothing that differs between releases belongs here.
pub(super) fn labels() -> BTreeMap<String, String> {
    BTreeMap::from([
        ("app.kubernetes.io/component".into(), "operator".into()),
        ("app.kubernetes.io/name".into(), NAME.into()),
    ])
}

pub(super) fn deployment(release: &Release) -> Deployment {
    Deployment {
        metadata: metadata(NAME),
        spec: Some(DeploymentSpec {
            // One leads, the other waits with warm caches and serves webhooks.
            replicas: Some(2),
            selector: LabelSelector { match_labels: Some(labels()), ..Default::default() },
            template: PodTemplateSpec {
                metadata: Some(ObjectMeta { labels: Some(labels()), ..Default::default() }),
                spec: Some(PodSpec {
                    service_account_name: Some(NAME.into()),
                    // The user id is the image's: OpenShift gives each namespace its own range, and refuses
                    // a pod that names another.
                    security_context: Some(PodSecurityContext {
                        run_as_non_root: Some(true),
                        seccomp_profile: Some(SeccompProfile {
                            type_: "RuntimeDefault".into(),
                            ..Default::default()
                        }),
                        ..Default::default()
                    }),
                    containers: vec![manager(release)],
                    ..Default::default()
                }),
            },
            ..Default::default()
        }),
        ..Default::default()
    }
}

fn manager(release: &Release) -> Container {
    Container {
        name: "manager".into(),
        image: Some(format!("registry.example.com/{NAME}:{release}")),
        args: Some(vec!["run".into()]),
        env: Some(vec![
            from_pod("POD_NAME", "metadata.name"),
            from_pod("POD_NAMESPACE", "metadata.namespace"),
            // OLM puts the namespaces of the OperatorGroup into this annotation, joined by commas. Empty, or
            // not there as in a plain installation, means all.
            from_pod("WATCH_NAMESPACE", "metadata.annotations['olm.targetNamespaces']"),
        ]),
        // Every flag has a variable, so this is where a ConfigMap comes in.
        env_from: Some(vec![EnvFromSource {
            config_map_ref: Some(ConfigMapEnvSource {
                name: "redis-operator-config".into(),
                optional: Some(true),
            }),
            ..Default::default()
        }]),
        ports: Some(vec![port("metrics", 8080), port("health", 8081), port("webhook", 9443)]),
        liveness_probe: Some(probe("/healthz", 20)),
        readiness_probe: Some(probe("/readyz", 10)),
        // No CPU limit: throttling an operator slows the repair of what it cares for.
        resources: Some(ResourceRequirements {
            requests: Some(quantities(&[("cpu", "100m"), ("memory", "30Mi")])),
            limits: Some(quantities(&[("memory", "128Mi")])),
            ..Default::default()
        }),
        security_context: Some(SecurityContext {
            allow_privilege_escalation: Some(false),
            capabilities: Some(Capabilities { drop: Some(vec!["ALL".into()]), ..Default::default() }),
            read_only_root_filesystem: Some(true),
            ..Default::default()
        }),
        // So that the reason of a crash is in the pod's status, where people and tools look first.
        termination_message_policy: Some("FallbackToLogsOnError".into()),
        ..Default::default()
    }
}

pub(super) fn metrics_service() -> Service {
    Service {
        metadata: metadata("redis-operator-metrics"),
        spec: Some(ServiceSpec {
            selector: Some(labels()),
            ports: Some(vec![ServicePort {
                name: Some("metrics".into()),
                port: 8080,
                target_port: Some(IntOrString::String("metrics".into())),
                ..Default::default()
            }]),
            ..Default::default()
        }),
        ..Default::default()
    }
}

pub(super) fn webhook_service() -> Service {
    Service {
        metadata: metadata(WEBHOOK_SERVICE),
        spec: Some(ServiceSpec {
            selector: Some(labels()),
            ports: Some(vec![ServicePort {
                name: Some("webhook".into()),
                port: 443,
                target_port: Some(IntOrString::String("webhook".into())),
                ..Default::default()
            }]),
            ..Default::default()
        }),
        ..Default::default()
    }
}

/// Where the API server has objects converted.
pub(super) fn convert_service() -> ServiceReference {
    ServiceReference {
        name: WEBHOOK_SERVICE.into(),
        namespace: NAMESPACE.into(),
        path: Some(CONVERT.into()),
        port: Some(443),
    }
}

/// Asked for advice, not for leave: when the operator is away, RedisClusters can still be made.
pub(super) fn validating_webhooks() -> ValidatingWebhookConfiguration {
    ValidatingWebhookConfiguration {
        metadata: cluster_metadata(NAME),
        webhooks: Some(vec![ValidatingWebhook {
            name: "redisclusters.cache.example.com".into(),
            admission_review_versions: vec!["v1".into()],
            client_config: WebhookClientConfig {
                service: Some(AdmissionService {
                    name: WEBHOOK_SERVICE.into(),
                    namespace: NAMESPACE.into(),
                    path: Some(VALIDATE.into()),
                    port: Some(443),
                }),
                ..Default::default()
            },
            failure_policy: Some("Ignore".into()),
            rules: Some(vec![RuleWithOperations {
                api_groups: Some(vec!["cache.example.com".into()]),
                api_versions: Some(vec!["v1".into()]),
                operations: Some(vec!["CREATE".into(), "UPDATE".into()]),
                resources: Some(vec!["redisclusters".into()]),
                ..Default::default()
            }]),
            side_effects: "None".into(),
            timeout_seconds: Some(5),
            ..Default::default()
        }]),
    }
}

fn from_pod(name: &str, field_path: &str) -> EnvVar {
    let field = ObjectFieldSelector { field_path: field_path.into(), ..Default::default() };
    EnvVar {
        name: name.into(),
        value_from: Some(EnvVarSource { field_ref: Some(field), ..Default::default() }),
        ..Default::default()
    }
}

fn port(name: &str, number: i32) -> ContainerPort {
    ContainerPort { name: Some(name.into()), container_port: number, ..Default::default() }
}

fn probe(path: &str, period_seconds: i32) -> Probe {
    Probe {
        http_get: Some(HTTPGetAction {
            path: Some(path.into()),
            port: IntOrString::String("health".into()),
            ..Default::default()
        }),
        period_seconds: Some(period_seconds),
        ..Default::default()
    }
}

fn quantities(pairs: &[(&str, &str)]) -> BTreeMap<String, Quantity> {
    pairs.iter().map(|(name, quantity)| (name.to_string(), Quantity(quantity.to_string()))).collect()
}
