//! The container with redis_exporter, where `spec.exporter` wants one, and how it gets the password.
//!
//! The exporter reads passwords only from a JSON file, when it starts and when it is asked to (`/-/reload`). Its image has no shell,
//! so the scripts of the Redis container write that file: when Redis starts, and when the readiness probe finds that Redis accepts
//! another password. The exporter's liveness probe asks it to read the file again, so a new password needs no restart.
//! Without the file the exporter ends, but the kubelet starts containers in their order, and the first thing that Redis' does is to
//! write it.

use k8s_openapi::{
    api::core::v1::{
        Container, ContainerPort, EmptyDirVolumeSource, EnvVar, HTTPGetAction, Probe, Volume, VolumeMount,
    },
    apimachinery::pkg::util::intstr::IntOrString,
};

use super::children::{resources, restricted};
use crate::crd::exporter::Exporter;

/// The name of the container, and of the volume that it shares with Redis.
pub const EXPORTER: &str = "exporter";
/// Where it serves metrics.
pub const METRICS_PORT: u16 = 9121;
/// Where that volume is, in both containers.
const PLACE: &str = "/run/exporter";

/// Defines `tell_exporter PASSWORD`, which writes the file in pods with an exporter and never fails. Passwords have neither `"` nor
/// `\`. The file is replaced as a whole: the exporter may read it at any time.
pub(super) const TELL_EXPORTER: &str = r#"tell_exporter() {
  [ -d /run/exporter ] || return 0
  wanted=$(printf '{"redis://localhost:6379":"%s"}' "$1")
  told=
  [ ! -r /run/exporter/passwords.json ] || IFS= read -r told < /run/exporter/passwords.json || :
  [ "$told" != "$wanted" ] || return 0
  (
    umask 077
    printf '%s\n' "$wanted" > /run/exporter/new && mv /run/exporter/new /run/exporter/passwords.json
  ) || :
}
"#;

/// The volume for the file: in memory, like everything with a password in it.
pub(super) fn volume() -> Volume {
    Volume {
        name: EXPORTER.into(),
        empty_dir: Some(EmptyDirVolumeSource { medium: Some("Memory".into()), ..Default::default() }),
        ..Default::default()
    }
}

/// Where the volume is. Only Redis writes to it.
pub(super) fn mount(read_only: Option<bool>) -> VolumeMount {
    VolumeMount { name: EXPORTER.into(), mount_path: PLACE.into(), read_only, ..Default::default() }
}

/// The container. It has no readiness probe: if it does not run, its pod is not ready anyway.
pub(super) fn container(exporter: &Exporter, tls: bool) -> Container {
    let env = |(name, value): &(&str, &str)| EnvVar {
        name: (*name).into(),
        value: Some((*value).into()),
        ..Default::default()
    };
    // Its own Redis, whatever certificate that presents.
    let encrypted =
        [("REDIS_ADDR", "rediss://localhost:6379"), ("REDIS_EXPORTER_SKIP_TLS_VERIFICATION", "true")];
    let address = if tls { &encrypted[..] } else { &[("REDIS_ADDR", "redis://localhost:6379")] };
    let wanted = exporter.resources.clone().unwrap_or_default();
    let listen = format!(":{METRICS_PORT}");
    let file = format!("{PLACE}/passwords.json");
    Container {
        name: EXPORTER.into(),
        image: Some(exporter.image.clone()),
        env: Some(
            [
                ("REDIS_PASSWORD_FILE", &*file),
                ("REDIS_EXPORTER_WEB_LISTEN_ADDRESS", &listen),
                // It would show the values of keys to everyone who reaches the port.
                ("REDIS_EXPORTER_DISABLE_SCRAPE_ENDPOINT", "true"),
                // It writes a line whenever it reads the file.
                ("REDIS_EXPORTER_LOG_LEVEL", "WARN"),
            ]
            .iter()
            .chain(address)
            .map(env)
            .collect(),
        ),
        ports: Some(vec![ContainerPort {
            name: Some("metrics".into()),
            container_port: METRICS_PORT.into(),
            ..Default::default()
        }]),
        liveness_probe: Some(Probe {
            http_get: Some(HTTPGetAction {
                path: Some("/-/reload".into()),
                port: IntOrString::String("metrics".into()),
                ..Default::default()
            }),
            period_seconds: Some(10),
            timeout_seconds: Some(5),
            failure_threshold: Some(6),
            ..Default::default()
        }),
        resources: Some(resources(wanted)),
        security_context: Some(restricted()),
        volume_mounts: Some(vec![mount(Some(true))]),
        ..Default::default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A container without a shell, which reads the password and nothing else.
    #[test]
    fn the_container() {
        let exporter: Exporter =
            serde_json::from_value(json!({"resources": {"limits": {"memory": "32Mi"}}})).unwrap();
        let found = serde_json::to_value(container(&exporter, false)).unwrap();
        assert_eq!(found["image"], "docker.io/oliver006/redis_exporter:v1.88.0");
        assert_eq!(found["resources"], json!({"limits": {"memory": "32Mi"}}));
        assert_eq!(found["ports"], json!([{"containerPort": 9121, "name": "metrics"}]));
        assert_eq!(
            found["volumeMounts"],
            json!([{"mountPath": "/run/exporter", "name": "exporter", "readOnly": true}])
        );
        assert_eq!(found["livenessProbe"]["httpGet"]["path"], "/-/reload");
        assert_eq!(found["readinessProbe"], json!(null));
        let context = &found["securityContext"];
        assert_eq!(context["readOnlyRootFilesystem"], true);
        assert_eq!(context["capabilities"], json!({"drop": ["ALL"]}));
        let variables = found["env"].as_array().unwrap();
        assert!(
            variables.iter().all(|one| one.get("valueFrom").is_none()),
            "it would be as old as the container"
        );
        assert!(TELL_EXPORTER.contains(PLACE));
        let address = |tls: bool| {
            let variables = container(&exporter, tls).env.unwrap();
            variables.into_iter().find(|variable| variable.name == "REDIS_ADDR").unwrap().value.unwrap()
        };
        for (tls, script) in
            [(false, TELL_EXPORTER.to_owned()), (true, super::super::tls::script(TELL_EXPORTER))]
        {
            assert!(
                script.contains(&format!("\"{}\"", address(tls))),
                "the file has the password of another address"
            );
        }
    }
}
