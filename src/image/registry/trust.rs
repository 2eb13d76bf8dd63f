//! Which certificates of registries are trusted: those that the system trusts, those that an authority in a `--ca-file` signed,
//! and self-signed ones that are in such a file.
//!
//! The last are what `openssl req -x509` makes, as in docker's own instructions: a registry's certificate that signs itself and so says
//! that it is an authority's. Go's programs trust it once they know it, and webpki holds that an authority is no server.

use std::fmt;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_name;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, SignatureScheme};
use rustls_platform_verifier::Verifier;

/// How connections are secured where the user trusts these certificates besides the system's.
///
/// # Errors
/// A certificate is none.
pub(super) fn config(given: Vec<CertificateDer<'static>>) -> Result<ClientConfig, Error> {
    let ring = rustls::crypto::ring::default_provider();
    let provider = CryptoProvider::get_default().cloned().unwrap_or_else(|| Arc::new(ring));
    let known = Verifier::new_with_extra_roots(given.iter().cloned(), Arc::clone(&provider))?;
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let trust = Arc::new(Trust { known, given });
    let mut config = config.dangerous().with_custom_certificate_verifier(trust).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

#[derive(Debug)]
struct Trust {
    known: Verifier,
    given: Vec<CertificateDer<'static>>,
}

impl ServerCertVerifier for Trust {
    fn verify_server_cert(
        &self,
        own: &CertificateDer<'_>,
        above: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match self.known.verify_server_cert(own, above, name, ocsp, now) {
            // That it has not expired was looked at before.
            Err(error) if signs_itself(&error) && self.given.iter().any(|given| given == own) => {
                verify_server_name(&ParsedCertificate::try_from(own)?, name)?;
                Ok(ServerCertVerified::assertion())
            }
            verdict => verdict,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        own: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.known.verify_tls12_signature(message, own, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        own: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.known.verify_tls13_signature(message, own, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.known.supported_verify_schemes()
    }
}

/// Whether webpki refused a server's certificate because it says that it is an authority's.
fn signs_itself(error: &Error) -> bool {
    let Error::InvalidCertificate(CertificateError::Other(why)) = error else { return false };
    // Its own type is in a crate that is not needed for anything else.
    format!("{:?}", why.0) == "CaUsedAsEndEntity"
}

/// Why a certificate is not trusted.
#[derive(Debug, Clone)]
pub struct Untrusted(Error);

impl std::error::Error for Untrusted {}

impl From<Error> for Untrusted {
    fn from(error: Error) -> Self {
        Self(error)
    }
}

impl Untrusted {
    /// The way out for a host.
    pub(super) fn help(&self, host: &str) -> String {
        use CertificateError as Why;
        let Error::InvalidCertificate(why) = &self.0 else { return trust_it(host) };
        match why {
            Why::Expired | Why::ExpiredContext { .. } | Why::NotValidYet | Why::NotValidYetContext { .. } => {
                "check this machine's clock, or have the registry's certificate renewed".to_owned()
            }
            Why::NotValidForName | Why::NotValidForNameContext { .. } => {
                "name the registry by a host that its certificate is for".to_owned()
            }
            _ => trust_it(host),
        }
    }
}

fn trust_it(host: &str) -> String {
    format!(
        "pass the registry's CA certificate with `--ca-file FILE`, or skip verification with \
         `--insecure-skip-tls-verify {host}` if you trust the network"
    )
}

impl fmt::Display for Untrusted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use CertificateError as Why;
        match &self.0 {
            error if signs_itself(error) => f.write_str("it is self-signed"),
            Error::InvalidCertificate(why) => match why {
                Why::Expired | Why::ExpiredContext { .. } => f.write_str("it has expired"),
                Why::NotValidYet | Why::NotValidYetContext { .. } => f.write_str("it is not valid yet"),
                Why::UnknownIssuer => f.write_str("it is signed by an unknown authority"),
                Why::NotValidForNameContext { presented, .. } if !presented.is_empty() => {
                    write!(f, "it is for {}", presented.join(", ").escape_debug())
                }
                Why::NotValidForName | Why::NotValidForNameContext { .. } => {
                    f.write_str("it is for another host")
                }
                other => other.fmt(f),
            },
            error => error.fmt(f),
        }
    }
}
