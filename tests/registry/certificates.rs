//! Registries behind TLS with certificates of every kind.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;

use libtest_mimic::{Failed, Trial};
use olmkit::image::Options;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, date_time_ymd};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use tempfile::TempDir;

use crate::places::chain;
use crate::server::{access, place, quick};
use crate::support::trial;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("a_certificate_of_an_authority_that_is_given_is_trusted", &[], authority),
        trial("a_certificate_that_signs_itself_is_trusted_once_it_is_given", &[], itself),
        trial("what_is_wrong_with_a_certificate_is_said", &[], wrong),
    ]
}

/// What a certificate is like.
#[derive(Clone, Copy)]
struct Like {
    host: &'static str,
    /// Whether it is over.
    expired: bool,
    /// Whether it says that it is an authority's, as `openssl req -x509` writes it.
    authority: bool,
}

const GOOD: Like = Like { host: "127.0.0.1", expired: false, authority: false };

fn params(like: Like) -> CertificateParams {
    let mut params = CertificateParams::new([like.host.to_owned()]).unwrap();
    params.not_before = date_time_ymd(2001, 1, 1);
    params.not_after = if like.expired { date_time_ymd(2002, 1, 1) } else { date_time_ymd(4000, 1, 1) };
    if like.authority {
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    }
    params
}

/// A registry that has nothing, behind TLS, and what signed its certificate, in files.
struct Secured {
    host: String,
    dir: TempDir,
}

impl Secured {
    /// With a certificate that an authority signed.
    fn by_authority(like: Like) -> Self {
        let above = KeyPair::generate().unwrap();
        let own = params(Like { authority: true, host: "authority.example.com", ..GOOD });
        let certificate = own.self_signed(&above).unwrap();
        let key = KeyPair::generate().unwrap();
        let signed = params(like).signed_by(&key, &Issuer::from_params(&own, &above)).unwrap();
        Self::start(signed.der().clone(), &key, &certificate.pem())
    }

    /// With a certificate that signs itself.
    fn by_itself(like: Like) -> Self {
        let key = KeyPair::generate().unwrap();
        let certificate = params(like).self_signed(&key).unwrap();
        Self::start(certificate.der().clone(), &key, &certificate.pem())
    }

    fn start(certificate: CertificateDer<'static>, key: &KeyPair, signer: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("ca.pem"), signer).unwrap();
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config =
            ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let config = Arc::new(config.with_no_client_auth().with_single_cert(vec![certificate], key).unwrap());
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let host = listener.local_addr().unwrap().to_string();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let mut stream =
                    StreamOwned::new(ServerConnection::new(Arc::clone(&config)).unwrap(), stream);
                // Clients that do not trust it hang up.
                thread::spawn(move || {
                    let mut request = [0; 4096];
                    while let Ok(read @ 1..) = stream.read(&mut request) {
                        let greets = request[..read].starts_with(b"GET /v2/ ");
                        let status = if greets { "200 OK" } else { "404 Nothing" };
                        let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n");
                        if stream.write_all(answer.as_bytes()).and_then(|()| stream.flush()).is_err() {
                            break;
                        }
                    }
                });
            }
        });
        Self { host, dir }
    }

    /// The certificate that signed the registry's.
    fn signer(&self) -> PathBuf {
        self.dir.path().join("ca.pem")
    }

    /// Why there is no image, and the way out; with these certificates besides the system's.
    fn asked(&self, ca_files: Vec<PathBuf>) -> (String, String) {
        let options = Options { ca_files, plain_http: Default::default(), ..quick() };
        let error = place(&self.host, "team/app:v1").load(&access(options)).unwrap_err();
        (chain(&error), error.help().unwrap_or_default())
    }

    #[track_caller]
    fn is_trusted(&self) {
        let (why, _) = self.asked(vec![self.signer()]);
        assert!(why.contains("has no image `team/app:v1`"), "{why}");
    }
}

fn authority() -> Result<(), Failed> {
    let registry = Secured::by_authority(GOOD);
    registry.is_trusted();
    let (why, help) = registry.asked(vec![]);
    assert!(why.contains("certificate that is not trusted: it is signed by an unknown authority"), "{why}");
    assert!(help.contains("--ca-file FILE") && help.contains("--insecure-skip-tls-verify"), "{help}");
    let other = Secured::by_authority(GOOD);
    let (why, _) = registry.asked(vec![other.signer()]);
    assert!(why.contains("certificate that is not trusted"), "{why}");
    Ok(())
}

fn itself() -> Result<(), Failed> {
    for like in [GOOD, Like { authority: true, ..GOOD }] {
        let registry = Secured::by_itself(like);
        registry.is_trusted();
        let (why, help) = registry.asked(vec![]);
        assert!(why.contains("certificate that is not trusted: it is s"), "{why}");
        assert!(help.contains("--ca-file FILE"), "{help}");
        // That one is known does not mean that another is.
        let other = Secured::by_itself(like);
        let (why, _) = registry.asked(vec![other.signer()]);
        assert!(why.contains("certificate that is not trusted"), "{why}");
    }
    Ok(())
}

fn wrong() -> Result<(), Failed> {
    let elsewhere = Like { host: "registry.example.com", ..GOOD };
    let expired = Like { expired: true, ..GOOD };
    for authority in [false, true] {
        let of = |like: Like| {
            if authority {
                Secured::by_itself(Like { authority, ..like })
            } else {
                Secured::by_authority(like)
            }
        };
        for (like, why, way_out) in [
            (elsewhere, "registry.example.com", "a host that its certificate is for"),
            (expired, "it has expired", "clock"),
        ] {
            let registry = of(like);
            let (said, help) = registry.asked(vec![registry.signer()]);
            assert!(said.contains("certificate that is not trusted") && said.contains(why), "{said}");
            assert!(help.contains(way_out), "{help}");
        }
    }
    Ok(())
}
