//! The webhooks' certificate: the one that OLM mounts, read again when it changes, or one of our own.
//!
//! Where no certificate is mounted, the operator makes one, keeps it in a Secret that its replicas share, and tells the
//! API server to trust it by writing it into the CRD and the webhook configuration.

use std::{
    fs, io,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{Arc, RwLock},
    time::Duration,
};

use k8s_openapi::{
    ByteString,
    api::{admissionregistration::v1::ValidatingWebhookConfiguration, core::v1::Secret},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::{
    Api, Client,
    api::{Patch, PatchParams, PostParams},
};
use rustls::{
    ServerConfig,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};
use serde_json::json;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::mpsc,
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};
use tracing::{debug, info, warn};

use crate::{
    manifests::{NAME, WEBHOOK_SERVICE},
    telemetry::chain,
};

/// The Secret that holds the certificate of our own.
pub const SECRET: &str = "redis-operator-webhook";

/// How often a mounted certificate is looked at.
const LOOK_AGAIN: Duration = Duration::from_secs(10);

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CertificateError {
    /// A file could not be read.
    #[error("cannot read `{}`", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is no certificate, or no key.
    #[error("not a certificate with its key, in PEM")]
    Pem(#[source] rustls::pki_types::pem::Error),
    /// Certificate and key do not belong together, or are of a kind that is not supported.
    #[error("cannot serve with this certificate and key")]
    Unusable(#[source] rustls::Error),
    /// One could not be made.
    #[error("cannot make a certificate")]
    Make(#[source] rcgen::Error),
    /// The API server would not keep or give it.
    #[error("cannot share a certificate")]
    Api(#[source] Box<kube::Error>),
    /// The Secret is there and holds something else.
    #[error("Secret `{SECRET}` lacks `tls.crt` or `tls.key`: delete it, and a new one is made")]
    Secret,
}

/// The certificate that is served with now.
#[derive(Clone, Debug, Default)]
pub struct Current(Arc<RwLock<Option<Arc<CertifiedKey>>>>);

impl Current {
    /// Whether there is one.
    pub fn is_loaded(&self) -> bool {
        self.0.read().unwrap_or_else(std::sync::PoisonError::into_inner).is_some()
    }

    fn set(&self, certificate: &[u8], key: &[u8]) -> Result<(), CertificateError> {
        let chain = CertificateDer::pem_slice_iter(certificate).collect::<Result<Vec<_>, _>>();
        let chain = chain.map_err(CertificateError::Pem)?;
        let key = PrivateKeyDer::from_pem_slice(key).map_err(CertificateError::Pem)?;
        let certified = CertifiedKey::from_der(chain, key, &ring::default_provider())
            .map_err(CertificateError::Unusable)?;
        *self.0.write().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(Arc::new(certified));
        Ok(())
    }

    /// Reads the certificate in this directory, and again whenever it changes. Ends only when polled no more.
    pub async fn follow(self, dir: PathBuf) {
        let mut seen = None;
        loop {
            let pair = read(&dir.join("tls.crt")).and_then(|crt| Ok((crt, read(&dir.join("tls.key"))?)));
            match pair {
                Ok(pair) if seen.as_ref() != Some(&pair) => {
                    match self.set(&pair.0, &pair.1) {
                        Ok(()) => info!(dir = %dir.display(), "certificate loaded"),
                        // The old one goes on; both files are replaced at once, so this is no half of a change.
                        Err(error) => {
                            warn!(error = chain(&error), "certificate not loaded")
                        }
                    }
                    seen = Some(pair);
                }
                Ok(_) => {}
                Err(error) => warn!(error = chain(&error), "certificate not read"),
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    /// Makes a certificate, or takes the one that another replica made, and lets the API server trust it.
    ///
    /// # Errors
    /// When it cannot be made, kept or announced.
    pub async fn make(&self, client: &Client, namespace: &str) -> Result<(), CertificateError> {
        let api_error = |source| CertificateError::Api(Box::new(source));
        let secrets: Api<Secret> = Api::namespaced(client.clone(), namespace);
        let secret = match secrets.get_opt(SECRET).await.map_err(api_error)? {
            Some(secret) => secret,
            None => match secrets.create(&PostParams::default(), &new_secret(namespace)?).await {
                Ok(secret) => secret,
                // Another replica was faster.
                Err(kube::Error::Api(status)) if status.code == 409 => {
                    secrets.get(SECRET).await.map_err(api_error)?
                }
                Err(error) => return Err(api_error(error)),
            },
        };
        let data = secret.data.unwrap_or_default();
        let (Some(certificate), Some(key)) = (data.get("tls.crt"), data.get("tls.key")) else {
            return Err(CertificateError::Secret);
        };
        self.set(&certificate.0, &key.0)?;
        announce(client, certificate).await.map_err(api_error)
    }
}

fn read(path: &Path) -> Result<Vec<u8>, CertificateError> {
    fs::read(path).map_err(|source| CertificateError::Read { path: path.into(), source })
}

fn new_secret(namespace: &str) -> Result<Secret, CertificateError> {
    let host = format!("{WEBHOOK_SERVICE}.{namespace}.svc");
    let names = vec![host.clone(), format!("{host}.cluster.local")];
    let made = rcgen::generate_simple_self_signed(names).map_err(CertificateError::Make)?;
    Ok(Secret {
        metadata: ObjectMeta { name: Some(SECRET.into()), ..Default::default() },
        type_: Some("kubernetes.io/tls".into()),
        data: Some(
            [("tls.crt", made.cert.pem()), ("tls.key", made.signing_key.serialize_pem())]
                .into_iter()
                .map(|(key, pem)| (key.to_owned(), ByteString(pem.into_bytes())))
                .collect(),
        ),
        ..Default::default()
    })
}

async fn announce(client: &Client, certificate: &ByteString) -> Result<(), kube::Error> {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let name = "redisclusters.cache.example.com";
    let known = definitions
        .get(name)
        .await?
        .spec
        .conversion
        .and_then(|conversion| conversion.webhook?.client_config?.ca_bundle);
    if known.as_ref() != Some(certificate) {
        let patch = json!({"spec": {"conversion": {"webhook": {"clientConfig": {"caBundle": certificate}}}}});
        definitions.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?;
    }
    let configurations: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
    let Some(configuration) = configurations.get_opt(NAME).await? else { return Ok(()) };
    let mut webhooks = configuration.webhooks.unwrap_or_default();
    if webhooks.iter().any(|webhook| webhook.client_config.ca_bundle.as_ref() != Some(certificate)) {
        for webhook in &mut webhooks {
            webhook.client_config.ca_bundle = Some(certificate.clone());
        }
        let patch = json!({"webhooks": webhooks});
        configurations.patch(NAME, &PatchParams::default(), &Patch::Merge(patch)).await?;
    }
    Ok(())
}

impl ResolvesServerCert for Current {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.0.read().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }
}

/// Accepts connections, each with a handshake of its own: a slow client delays nobody else.
pub struct Listener {
    address: SocketAddr,
    accepted: mpsc::Receiver<(TlsStream<TcpStream>, SocketAddr)>,
}

impl Listener {
    /// Begins to accept.
    ///
    /// # Errors
    /// When the address cannot be listened on.
    pub async fn bind(address: SocketAddr, certificate: Current) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let provider = Arc::new(ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(certificate));
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let (sender, accepted) = mpsc::channel(64);
        tokio::spawn(async move {
            loop {
                let (stream, peer) = match listener.accept().await {
                    Ok(accepted) => accepted,
                    Err(error) => {
                        // Too many open files, most likely: they become fewer.
                        warn!(error = chain(&error), "accepting");
                        tokio::time::sleep(Duration::from_millis(100)).await;
                        continue;
                    }
                };
                let (acceptor, sender) = (acceptor.clone(), sender.clone());
                tokio::spawn(async move {
                    match tokio::time::timeout(Duration::from_secs(5), acceptor.accept(stream)).await {
                        Ok(Ok(stream)) => drop(sender.send((stream, peer)).await),
                        Ok(Err(error)) => debug!(error = chain(&error), "handshake"),
                        Err(_) => debug!("handshake took too long"),
                    }
                });
            }
        });
        Ok(Self { address, accepted })
    }
}

impl axum::serve::Listener for Listener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        match self.accepted.recv().await {
            Some(accepted) => accepted,
            // The task that accepts does not end.
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.address)
    }
}
