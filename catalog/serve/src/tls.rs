//! TLS with certificates that are read again when their files change.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::SystemTime;

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tracing::{error, info};

use crate::ServeError;

/// A certificate with its key, as of when the files were last read.
pub(super) struct Tls {
    cert: PathBuf,
    key: PathBuf,
    current: RwLock<(Arc<ServerConfig>, [Option<SystemTime>; 2])>,
}

impl Tls {
    pub(super) fn load(cert: &Path, key: &Path) -> Result<Self, ServeError> {
        let seen = [changed(cert), changed(key)];
        let current = RwLock::new((Arc::new(read(cert, key)?), seen));
        Ok(Self { cert: cert.to_owned(), key: key.to_owned(), current })
    }

    /// What greets the next connection.
    pub(super) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(self.current.read().unwrap_or_else(PoisonError::into_inner).0.clone())
    }

    /// Reads the files again if they have changed. What cannot be used leaves the old certificate where it is.
    pub(super) fn refresh(&self) {
        let seen = [changed(&self.cert), changed(&self.key)];
        if self.current.read().unwrap_or_else(PoisonError::into_inner).1 == seen {
            return;
        }
        let read = read(&self.cert, &self.key);
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        current.1 = seen;
        match read {
            Ok(config) => {
                current.0 = Arc::new(config);
                info!(msg = "certificate reloaded", path = %self.cert.display());
            }
            Err(error) => error!(msg = "certificate not reloaded; the old one stays", error = %error),
        }
    }
}

fn changed(path: &Path) -> Option<SystemTime> {
    std::fs::metadata(path).ok()?.modified().ok()
}

fn read(cert: &Path, key: &Path) -> Result<ServerConfig, ServeError> {
    let fail = |path: &Path, error: &dyn std::fmt::Display| ServeError::Tls {
        path: path.to_owned(),
        message: error.to_string(),
    };
    for path in [cert, key] {
        // A pipe would be waited for now, and could not be read again.
        let kind = std::fs::metadata(path).map_err(|error| fail(path, &error))?;
        if !kind.is_file() {
            return Err(fail(path, &"it is not a plain file"));
        }
    }
    let chain = CertificateDer::pem_file_iter(cert).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let chain = chain.map_err(|error| fail(cert, &error))?;
    let key_der = PrivateKeyDer::from_pem_file(key).map_err(|error| fail(key, &error))?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|config| config.with_no_client_auth().with_single_cert(chain, key_der))
        .map_err(|error| fail(cert, &error))?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}
