//! A mutating webhook that the API server asks about new pods, as a registry mirror installs one: it changes the host of their images.

use std::error::Error;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use libtest_mimic::Failed;
use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};

use crate::cluster::Namespace;

/// What images come from, once the webhook has changed them.
pub(crate) const MIRROR: &str = "mirror.example.com";

/// The webhook of a namespace, until it is dropped.
pub(crate) struct Webhook<'n> {
    namespace: &'n Namespace,
}

impl<'n> Webhook<'n> {
    pub(crate) fn install(namespace: &'n Namespace) -> Result<Self, Failed> {
        let path = "jsonpath={.clusters[0].cluster.server}";
        let server = namespace.kubectl(&["config", "view", "--minify", "--output", path])?;
        // The address by which this machine is seen from there.
        let asked = UdpSocket::bind("0.0.0.0:0")?;
        asked.connect(server.trim_start_matches("https://"))?;
        let host = asked.local_addr()?.ip().to_string();
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::new([host.clone()])?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(
                vec![CertificateDer::from(certificate.der().to_vec())],
                PrivateKeyDer::try_from(key.serialize_der())?,
            )?;
        let listener = TcpListener::bind((host, 0))?;
        let address = listener.local_addr()?;
        let config = Arc::new(config);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                // One that hangs up asks again.
                let _ = answer(client, &config);
            }
        });
        let webhook = json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "MutatingWebhookConfiguration",
            "metadata": {"name": namespace.name},
            "webhooks": [{
                "name": "mirror.example.com",
                "clientConfig": {"url": format!("https://{address}/"), "caBundle": STANDARD.encode(certificate.pem())},
                "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}],
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace.name}},
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
            }],
        });
        namespace.apply(&webhook.to_string())?;
        Ok(Self { namespace })
    }
}

impl Drop for Webhook<'_> {
    fn drop(&mut self) {
        let _ = self.namespace.kubectl(&["delete", "mutatingwebhookconfiguration", &self.namespace.name]);
    }
}

/// Answers one question.
fn answer(client: TcpStream, config: &Arc<ServerConfig>) -> Result<(), Box<dyn Error>> {
    client.set_read_timeout(Some(Duration::from_secs(10)))?;
    let mut stream = BufReader::new(StreamOwned::new(ServerConnection::new(Arc::clone(config))?, client));
    let (mut length, mut line) = (0, String::new());
    while line != "\r\n" {
        line.clear();
        if stream.read_line(&mut line)? == 0 {
            return Ok(());
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse()?;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    let request = serde_json::from_slice::<Value>(&body)?["request"].take();
    let patch = serde_json::to_vec(&mirrored(&request["object"]))?;
    let review = json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": {"uid": request["uid"], "allowed": true, "patchType": "JSONPatch", "patch": STANDARD.encode(patch)},
    })
    .to_string();
    let stream = stream.get_mut();
    let length = review.len();
    write!(
        stream,
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{review}"
    )?;
    stream.conn.send_close_notify();
    stream.flush()?;
    Ok(())
}

/// The patch that gives each image of a pod the mirror for its host.
fn mirrored(pod: &Value) -> Vec<Value> {
    let containers = pod["spec"]["containers"].as_array().into_iter().flatten().enumerate();
    let patch = containers.filter_map(|(at, container)| {
        let (_, path) = container["image"].as_str()?.split_once('/')?;
        let image = format!("{MIRROR}/{path}");
        Some(json!({"op": "replace", "path": format!("/spec/containers/{at}/image"), "value": image}))
    });
    patch.collect()
}
