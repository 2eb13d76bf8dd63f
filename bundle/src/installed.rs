//! The Deployment that OLM makes of an entry of `spec.install.spec.deployments`: with the certificate of its webhooks, the
//! annotations of the ClusterServiceVersion, the name of its OperatorCondition and the settings of the Subscription.
//!
//! Every rule about pods looks at the pod that OLM makes (operator-lifecycle-manager
//! `pkg/controller/install/{deployment,certresources}.go`;
//! operator-controller `internal/operator-controller/rukpak/render/registryv1/generators`).

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{KeyToPath, PodSpec, SecretVolumeSource, Volume, VolumeMount};
use serde_json::{Map, Value as Json, json};

use crate::csv::{ClusterServiceVersionSpec, DeploymentDescription};
use crate::manifests;

/// A volume with the certificate that OLM issues, and where every container gets it.
#[derive(Debug)]
pub struct CertificateVolume {
    /// The name of the volume.
    pub name: &'static str,
    /// The directory that it is mounted at.
    pub path: &'static str,
    /// The file with the certificate.
    pub certificate: &'static str,
    /// The file with its key.
    pub key: &'static str,
}

/// The certificate as servers of APIs expect it.
pub const API_CERTIFICATE: CertificateVolume = CertificateVolume {
    name: "apiservice-cert",
    path: "/apiserver.local.config/certificates",
    certificate: "apiserver.crt",
    key: "apiserver.key",
};

/// The certificate as servers of webhooks expect it.
pub const WEBHOOK_CERTIFICATE: CertificateVolume = CertificateVolume {
    name: "webhook-cert",
    path: "/tmp/k8s-webhook-server/serving-certs",
    certificate: "tls.crt",
    key: "tls.key",
};

/// Both, in the order in which OLM adds them; a Deployment that serves either gets both.
const CERTIFICATES: [&CertificateVolume; 2] = [&API_CERTIFICATE, &WEBHOOK_CERTIFICATE];

/// The keys of the Secret with the certificate. cert-manager's has `ca.crt` too.
pub const CERTIFICATE_KEYS: [&str; 3] = ["olmCAKey", "tls.crt", "tls.key"];

/// The Secret with the certificate that OLM issues for a Deployment that serves webhooks or APIs.
pub fn certificate_of(deployment: &str) -> String {
    format!("{deployment}-service-cert")
}

/// Whether OLM mounts its certificate at a directory, instead of what is mounted there.
pub fn is_certificate_path(path: &str) -> bool {
    let path = path.trim_end_matches('/');
    CERTIFICATES.iter().any(|own| own.path == path)
}

/// The names of the Deployments that serve webhooks or APIs, and get a certificate.
pub fn serving(spec: &ClusterServiceVersionSpec) -> BTreeSet<&str> {
    let webhooks = spec.webhook_definitions.iter().map(|own| own.deployment_name.as_str());
    let services = spec.api_service_definitions.owned.iter().map(|own| own.deployment_name.as_str());
    webhooks.chain(services).collect()
}

impl CertificateVolume {
    fn volume(&self, secret: &str) -> Volume {
        let item = |key: &str, path: &str| KeyToPath { key: key.into(), path: path.into(), mode: None };
        let items = vec![item("tls.crt", self.certificate), item("tls.key", self.key)];
        let secret = SecretVolumeSource {
            secret_name: Some(secret.into()),
            items: Some(items),
            ..SecretVolumeSource::default()
        };
        Volume { name: self.name.into(), secret: Some(secret), ..Volume::default() }
    }

    fn mount(&self) -> VolumeMount {
        VolumeMount { name: self.name.into(), mount_path: self.path.into(), ..VolumeMount::default() }
    }
}

/// Gives every container the certificate, as OLM v0 does: volumes and mounts keep their places, and a mount of another volume at
/// the same directory becomes one of the certificate. Init containers get none.
///
/// ```
/// use k8s_openapi::api::core::v1::PodSpec;
/// let mut pod: PodSpec = serde_json::from_value(serde_json::json!({"containers": [{"name": "manager",
///     "volumeMounts": [{"name": "cert", "mountPath": "/tmp/k8s-webhook-server/serving-certs"}]}]}))?;
/// olmkit_bundle::installed::mount_certificates(&mut pod, "redis-service-cert");
/// let mounts = pod.containers[0].volume_mounts.as_ref().expect("there were some");
/// assert_eq!((mounts[0].name.as_str(), mounts[1].name.as_str()), ("webhook-cert", "apiservice-cert"));
/// # Ok::<(), serde_json::Error>(())
/// ```
pub fn mount_certificates(pod: &mut PodSpec, secret: &str) {
    // A volume takes kilobytes: room for as many again would be copied to, and never used.
    pod.volumes.get_or_insert_default().reserve_exact(CERTIFICATES.len());
    for certificate in CERTIFICATES {
        let volumes = pod.volumes.get_or_insert_default();
        match volumes.iter_mut().find(|own| own.name == certificate.name) {
            Some(own) => *own = certificate.volume(secret),
            None => volumes.push(certificate.volume(secret)),
        }
        for container in &mut pod.containers {
            let mounts = container.volume_mounts.get_or_insert_default();
            let found = mounts
                .iter_mut()
                .find(|own| own.name == certificate.name || own.mount_path == certificate.path);
            match found {
                // One of that name stays, wherever it is mounted.
                Some(own) if own.name == certificate.name => {}
                Some(own) => *own = certificate.mount(),
                None => mounts.push(certificate.mount()),
            }
        }
    }
}

/// Gives every container the certificate, as OLM v1 does: volumes with its names, or mounted at its directories, are removed first.
pub(crate) fn replace_certificates(pod: &mut PodSpec, secret: &str) {
    let mut gone: BTreeSet<String> = CERTIFICATES.iter().map(|own| own.name.to_owned()).collect();
    for mount in pod.containers.iter().flat_map(|own| own.volume_mounts.iter().flatten()) {
        if CERTIFICATES.iter().any(|own| own.path == mount.mount_path) {
            gone.insert(mount.name.clone());
        }
    }
    // OLM v1 adds them the other way round.
    let certificates = || CERTIFICATES.iter().rev();
    let volumes = pod.volumes.get_or_insert_default();
    volumes.retain(|own| !gone.contains(&own.name));
    volumes.extend(certificates().map(|own| own.volume(secret)));
    for container in &mut pod.containers {
        let mounts = container.volume_mounts.get_or_insert_default();
        mounts.retain(|own| !gone.contains(&own.name));
        mounts.extend(certificates().map(|own| own.mount()));
    }
}

/// The pods of a Deployment as OLM v0 makes them, before the settings of a Subscription; none without a `spec`.
pub fn pod(description: &DeploymentDescription, is_serving: bool) -> Option<PodSpec> {
    let mut pod = description.spec.template.spec.clone()?;
    if is_serving {
        mount_certificates(&mut pod, &certificate_of(&description.name));
    }
    Some(pod)
}

/// What goes into a Deployment besides its description.
#[derive(Clone, Copy, Debug)]
pub struct Owner<'o> {
    /// The name of the ClusterServiceVersion.
    pub csv: &'o str,
    /// Its annotations.
    pub annotations: Option<&'o BTreeMap<String, String>>,
    /// Whether the Deployment serves webhooks or APIs.
    pub is_serving: bool,
    /// `spec.config` of the Subscription.
    pub config: Option<&'o Map<String, Json>>,
}

/// The `metadata` and `spec` of the Deployment that OLM v0 makes. Namespace, owner, and the labels of the owner are missing.
pub fn deployment(description: &DeploymentDescription, owner: Owner<'_>) -> Json {
    let mut spec = description.spec.clone();
    spec.template.spec = pod(description, owner.is_serving);
    spec.revision_history_limit = Some(1);
    let annotations = spec.template.metadata.get_or_insert_default().annotations.get_or_insert_default();
    annotations
        .extend(owner.annotations.into_iter().flatten().map(|(key, value)| (key.clone(), value.clone())));
    let mut object = json!({
        "metadata": {"name": description.name, "labels": description.label},
        // The types of Kubernetes are JSON.
        "spec": serde_json::to_value(&spec).unwrap_or_default(),
    });
    if let Some(config) = owner.config {
        manifests::apply_config(&mut object, config);
    }
    let name = json!({"env": [{"name": "OPERATOR_CONDITION_NAME", "value": owner.csv}]});
    if let Some(name) = name.as_object() {
        manifests::apply_config(&mut object, name);
    }
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    fn description(json: Json) -> DeploymentDescription {
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn what_olm_adds_to_a_deployment() {
        let description = description(json!({"name": "op", "label": {"app": "op"}, "spec": {
            "selector": {}, "template": {"metadata": {"annotations": {"a": "theirs", "b": "theirs"}}, "spec": {
                "containers": [{
                    "name": "manager",
                    "env": [{"name": "OPERATOR_CONDITION_NAME", "value": "x"}, {"name": "A", "value": "1"}],
                    "volumeMounts": [
                        {"name": "cert", "mountPath": "/tmp/k8s-webhook-server/serving-certs", "readOnly": true},
                        {"name": "data", "mountPath": "/data"},
                    ],
                }],
                "initContainers": [{"name": "init", "volumeMounts": [{"name": "cert", "mountPath": "/certs"}]}],
                "volumes": [{"name": "cert", "secret": {"secretName": "tls"}}, {"name": "data", "emptyDir": {}}],
            }},
        }}));
        let annotations = BTreeMap::from([("a".to_owned(), "of the CSV".to_owned())]);
        let config = json!({"env": [{"name": "A", "value": "2"}], "nodeSelector": {"disk": "fast"}});
        let owner = Owner {
            csv: "op.v1.0.0",
            annotations: Some(&annotations),
            is_serving: true,
            config: config.as_object(),
        };
        let made = deployment(&description, owner);
        insta::assert_snapshot!(crate::yaml::write::to_string(&made).unwrap(), @r#"
        metadata:
          labels:
            app: op
          name: op
        spec:
          revisionHistoryLimit: 1
          selector: {}
          template:
            metadata:
              annotations:
                a: of the CSV
                b: theirs
            spec:
              containers:
              - env:
                - name: OPERATOR_CONDITION_NAME
                  value: op.v1.0.0
                - name: A
                  value: "2"
                name: manager
                volumeMounts:
                - mountPath: /tmp/k8s-webhook-server/serving-certs
                  name: webhook-cert
                - mountPath: /data
                  name: data
                - mountPath: /apiserver.local.config/certificates
                  name: apiservice-cert
              initContainers:
              - name: init
                volumeMounts:
                - mountPath: /certs
                  name: cert
              nodeSelector:
                disk: fast
              volumes:
              - name: cert
                secret:
                  secretName: tls
              - emptyDir: {}
                name: data
              - name: apiservice-cert
                secret:
                  items:
                  - key: tls.crt
                    path: apiserver.crt
                  - key: tls.key
                    path: apiserver.key
                  secretName: op-service-cert
              - name: webhook-cert
                secret:
                  items:
                  - key: tls.crt
                    path: tls.crt
                  - key: tls.key
                    path: tls.key
                  secretName: op-service-cert
        "#);
    }

    #[test]
    fn a_volume_with_the_name_of_olms_is_replaced_and_its_mount_stays() {
        let mut pod: PodSpec = serde_json::from_value(json!({
            "containers": [{"name": "manager", "volumeMounts": [{"name": "webhook-cert", "mountPath": "/certs"}]}],
            "volumes": [{"name": "webhook-cert", "secret": {"secretName": "mine"}}],
        }))
        .unwrap();
        mount_certificates(&mut pod, "op-service-cert");
        let pod = serde_json::to_value(&pod).unwrap();
        assert_eq!(pod["volumes"][0]["secret"]["secretName"], "op-service-cert");
        assert_eq!(pod["containers"][0]["volumeMounts"][0]["mountPath"], "/certs");
        assert_eq!(pod["containers"][0]["volumeMounts"][1]["name"], "apiservice-cert");
        assert_eq!(pod["containers"][0]["volumeMounts"].as_array().map(Vec::len), Some(2));
    }
}
