//! Catalog images that serve themselves, as the pods that OLM makes of a CatalogSource.

use std::env;
use std::path::{Path, PathBuf};

use libtest_mimic::{Failed, Trial};

use crate::cluster::Namespace;
use crate::harness::{Company, trial_with};
use crate::images::{bundle, olmkit, pushed};
use crate::support::Part;

/// What OLM puts beside its catalogs' containers: rights, and the probes of operator-lifecycle-manager
/// `pkg/controller/registry/reconciler`.
const CONTAINER: &str = r#"
      ports: [{name: grpc, containerPort: 50051}]
      startupProbe: {exec: {command: [grpc_health_probe, "-addr=:50051", "-rpc-timeout=5s"]}, periodSeconds: 10, failureThreshold: 10, timeoutSeconds: 5}
      readinessProbe: {exec: {command: [grpc_health_probe, "-addr=:50051", "-rpc-timeout=5s"]}, initialDelaySeconds: 5, timeoutSeconds: 5}
      livenessProbe: {exec: {command: [grpc_health_probe, "-addr=:50051", "-rpc-timeout=5s"]}, initialDelaySeconds: 10, timeoutSeconds: 5}
      resources: {requests: {cpu: 10m, memory: 50Mi}}
      terminationMessagePolicy: FallbackToLogsOnError
      securityContext: {readOnlyRootFilesystem: true, allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}"#;

/// A catalog's pod behind its Service. `{more}` is what its way of getting at the catalog takes.
const POD: &str = r#"
apiVersion: v1
kind: Service
metadata: {name: catalog}
spec: {selector: {olm.catalogSource: catalog}, ports: [{name: grpc, port: 50051, targetPort: 50051}]}
---
apiVersion: v1
kind: Pod
metadata: {name: catalog, labels: {olm.catalogSource: catalog, olm.managed: "true"}}
spec:
  terminationGracePeriodSeconds: 1
  securityContext: {runAsUser: 1001, runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}
{more}"#;

pub(crate) fn trials() -> Vec<Trial> {
    let server = server();
    let missing = "OLMKIT_SERVER names no static olmkit-serve for catalog images";
    let needed = Part::new("catalog-server", server.is_none().then(|| missing.to_owned()));
    let (for_image, for_extracted) = (Some(needed.clone()), Some(needed));
    let given = server.clone();
    vec![
        trial_with("a_catalog_image_serves_itself", Company::Any, for_image, move |namespace| {
            let image = small_catalog(namespace, given)?;
            let more =
                format!("  containers:\n    - name: registry-server\n      image: {image}{CONTAINER}\n");
            serves(namespace, &more)
        }),
        // As with `grpcPodConfig.extractContent`: the catalog alone comes out of the image, another one brings the server.
        trial_with("a_catalog_is_extracted_and_served", Company::Any, for_extracted, move |namespace| {
            let image = small_catalog(namespace, server)?;
            let more = format!(
                r#"  volumes: [{{name: utilities, emptyDir: {{}}}}, {{name: catalog-content, emptyDir: {{}}}}, {{name: tmp, emptyDir: {{}}}}]
  initContainers:
    - name: extract-utilities
      image: {{probe}}
      command: [/probe, install, /utilities/probe]
      volumeMounts: [{{name: utilities, mountPath: /utilities}}]
    - name: extract-content
      image: {image}
      command: [/utilities/probe, copy, /configs, /extracted-catalog/catalog]
      volumeMounts: [{{name: utilities, mountPath: /utilities}}, {{name: catalog-content, mountPath: /extracted-catalog}}]
  containers:
    - name: registry-server
      image: {image}
      command: [/bin/olmkit-serve]
      args: [serve, /extracted-catalog/catalog]
      volumeMounts: [{{name: catalog-content, mountPath: /extracted-catalog}}, {{name: tmp, mountPath: /tmp}}]{CONTAINER}
"#
            );
            serves(namespace, &more)
        }),
    ]
}

/// The static server for catalog images.
pub(crate) fn server() -> Option<PathBuf> {
    env::var_os("OLMKIT_SERVER").map(PathBuf::from).filter(|file| file.is_file())
}

/// Pushes the directory `catalog` with its server; the image, by digest.
pub(crate) fn catalog_image(dir: &Path, server: &Path, to: &str) -> Result<String, Failed> {
    let platform = match env::consts::ARCH {
        "x86_64" => "linux/amd64",
        "aarch64" => "linux/arm64",
        other => other,
    };
    let server = format!("{platform}={}", server.display());
    pushed(dir, &["catalog", "build", "catalog", "--server-binary", &server, "--to", to])
}

/// A catalog of one bundle with its server, pushed.
fn small_catalog(namespace: &Namespace, server: Option<PathBuf>) -> Result<String, Failed> {
    let server = server.ok_or("OLMKIT_SERVER names no file")?;
    let dir = tempfile::tempdir()?;
    bundle(dir.path())?;
    let reference = "registry.example.com/{{.Package}}:v{{.Version}}";
    let add =
        ["catalog", "add", "catalog", "bundle", "--channels", "stable", "--image-ref-template", reference];
    olmkit(dir.path(), &add)?;
    catalog_image(dir.path(), &server, &namespace.image("catalog:v1"))
}

/// Whether the pod becomes ready by its probes, and answers gRPC and HTTP through the Service.
fn serves(namespace: &Namespace, more: &str) -> Result<(), Failed> {
    namespace.apply(&POD.replace("{more}", more))?;
    namespace.wait("pod/catalog", "condition=Ready")?;
    let address = format!("catalog.{}.svc:50051", namespace.name);
    let said = namespace.ask(&address, &list_packages())?;
    // Length and field of the only message; what follows is compressed headers.
    assert!(said.contains("\0\0\0\0\u{10}\n\u{e}redis-operator"), "{said:?}");
    let request =
        "GET /api/v1/metas?schema=olm.bundle HTTP/1.1\\r\\nhost: x\\r\\nconnection: close\\r\\n\\r\\n";
    let said = namespace.ask(&address, request)?;
    assert!(said.starts_with("HTTP/1.1 200 OK") && said.contains("redis-operator.v0.1.0"), "{said:?}");
    let restarts = "jsonpath={.status.containerStatuses[0].restartCount}";
    assert_eq!(namespace.kubectl(&["get", "pod", "catalog", "-o", restarts])?, "0");
    Ok(())
}

/// A request for the packages over HTTP/2 as `probe ask` sends it: preface, settings, headers without compression, an empty message.
fn list_packages() -> String {
    let frame = |kind: u8, flags: u8, stream: u8, payload: &str| {
        let head = [0, 0, payload.len() as u8, kind, flags, 0, 0, 0, stream];
        head.into_iter().map(char::from).collect::<String>() + payload
    };
    let field = |name: &str, value: &str| {
        format!("\0{}{name}{}{value}", char::from(name.len() as u8), char::from(value.len() as u8))
    };
    let fields = [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", "/api.Registry/ListPackages"),
        (":authority", "catalog"),
        ("content-type", "application/grpc"),
        ("te", "trailers"),
    ];
    let fields: String = fields.iter().map(|(name, value)| field(name, value)).collect();
    let frames = [frame(4, 0, 0, ""), frame(1, 4, 1, &fields), frame(0, 1, 1, "\0\0\0\0\0")];
    format!("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n{}", frames.concat()).replace('\0', "\\0")
}
