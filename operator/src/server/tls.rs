//! TLS to the nodes of a cluster.
//!
//! The operator connects to pods by their addresses, which no certificate has. So it verifies that a CA of the cluster signed the
//! certificate of a node, and not for which names.

use std::{collections::BTreeMap, io, net::IpAddr, sync::Arc};

use redis::cmd;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
    client::{
        Resumption,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
        verify_server_cert_signed_by_trust_anchor,
    },
    crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, ServerName, UnixTime},
    server::{ParsedCertificate, WebPkiClientVerifier},
};
use sha2::{Digest, Sha256};
use tokio::net::TcpStream;
use tokio_rustls::{TlsConnector, client::TlsStream};
use tracing::debug;

use super::{
    Access, CommandError,
    act::Permit,
    configure::{answer, connect_to},
};
use crate::{
    plan::{Fingerprint, Pod},
    telemetry::chain,
};

/// The CAs that sign certificates of nodes. By default none.
#[derive(Clone, Debug)]
pub struct Trust(Arc<Verifier>);

impl Default for Trust {
    fn default() -> Self {
        Self(Arc::new(Verifier {
            roots: RootCertStore::empty(),
            provider: Arc::new(ring::default_provider()),
        }))
    }
}

/// Why there is no TLS connection.
pub(super) enum ConnectError {
    /// The certificate of the node is not trusted.
    Untrusted(Error),
    /// Anything else.
    Io(io::Error),
}

impl Trust {
    /// Trusts these CAs.
    ///
    /// # Errors
    /// When one is not a certificate.
    pub fn of<'a>(authorities: impl IntoIterator<Item = &'a CertificateDer<'static>>) -> Result<Self, Error> {
        let mut roots = RootCertStore::empty();
        for authority in authorities {
            roots.add(authority.clone())?;
        }
        Ok(Self(Arc::new(Verifier { roots, provider: Arc::new(ring::default_provider()) })))
    }

    /// Checks the certificate of a node with its intermediates: nodes present it as servers and as clients.
    ///
    /// # Errors
    /// When it is not valid at this time, or is for other purposes.
    pub fn check(&self, chain: &[CertificateDer<'_>], time: UnixTime) -> Result<(), Error> {
        let (certificate, intermediates) = chain.split_first().ok_or(Error::NoCertificatesPresented)?;
        self.0.verify(certificate, intermediates, time)?;
        let roots = Arc::new(self.0.roots.clone());
        let clients = WebPkiClientVerifier::builder_with_provider(roots, self.0.provider.clone()).build();
        let clients = clients.map_err(|error| Error::General(error.to_string()))?;
        clients.verify_client_cert(certificate, intermediates, time).map(drop)
    }

    pub(super) async fn connect(
        &self,
        ip: IpAddr,
        stream: TcpStream,
    ) -> Result<TlsStream<TcpStream>, ConnectError> {
        let config = ClientConfig::builder_with_provider(self.0.provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|error| ConnectError::Io(io::Error::other(error)))?;
        let mut config =
            config.dangerous().with_custom_certificate_verifier(self.0.clone()).with_no_client_auth();
        // In a resumed session, a node does not present its certificate, which may be another by now.
        config.resumption = Resumption::disabled();
        let connecting = TlsConnector::from(Arc::new(config)).connect(ServerName::from(ip), stream);
        connecting.await.map_err(|error| {
            match error.get_ref().and_then(|inner| inner.downcast_ref::<Error>()) {
                Some(inner @ Error::InvalidCertificate(_)) => ConnectError::Untrusted(inner.clone()),
                _ => ConnectError::Io(error),
            }
        })
    }
}

/// What became of the files of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reload {
    /// This run of redis-server has read them.
    Done(String),
    /// Redis refused them, and keeps what it has.
    Refused(String),
    /// The node could not be reached, or is another process than the one that was observed.
    Unknown,
}

/// Has a node read its certificate, its key and the CAs again, wherever it has these files. Connections stay.
pub async fn reload(access: &Access, permit: &dyn Permit, pod: &Pod) -> Reload {
    match try_reload(access, permit, pod).await {
        Ok(run) => run.map_or(Reload::Unknown, Reload::Done),
        Err(error) => {
            debug!(pod = pod.name, error = chain(&error), "certificate not read");
            answer(&error).map_or(Reload::Unknown, Reload::Refused)
        }
    }
}

async fn try_reload(access: &Access, permit: &dyn Permit, pod: &Pod) -> Result<Option<String>, CommandError> {
    let Some((mut connection, run)) = connect_to(access, permit, pod).await? else { return Ok(None) };
    let get = ["GET", "tls-ca-cert-file", "tls-cert-file", "tls-key-file"];
    let files: BTreeMap<String, String> = connection.send("CONFIG GET", cmd("CONFIG").arg(&get)).await?;
    // Redis reads a file again also if its name stays the same.
    let mut set = cmd("CONFIG");
    set.arg("SET");
    for (directive, file) in files {
        set.arg(directive).arg(file);
    }
    connection.send::<()>("CONFIG SET", &set).await?;
    Ok(Some(run))
}

/// The certificate that a node presents.
pub(super) fn presented(stream: &TlsStream<TcpStream>) -> Option<Fingerprint> {
    stream.get_ref().1.peer_certificates()?.first().map(fingerprint)
}

/// The fingerprint of a certificate.
pub fn fingerprint(certificate: &CertificateDer<'_>) -> Fingerprint {
    Sha256::digest(certificate).into()
}

#[derive(Debug)]
struct Verifier {
    roots: RootCertStore,
    provider: Arc<CryptoProvider>,
}

impl Verifier {
    fn verify(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        time: UnixTime,
    ) -> Result<(), Error> {
        let certificate = ParsedCertificate::try_from(certificate)?;
        let algorithms = self.provider.signature_verification_algorithms.all;
        verify_server_cert_signed_by_trust_anchor(&certificate, &self.roots, intermediates, time, algorithms)
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verified = match self.verify(certificate, intermediates, now) {
            // Otherwise the operator could not have nodes load the renewed one.
            Err(Error::InvalidCertificate(CertificateError::ExpiredContext { not_after, .. })) => {
                self.verify(certificate, intermediates, not_after)
            }
            result => result,
        };
        verified.map(|()| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
