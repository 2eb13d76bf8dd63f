//! TLS of a cluster: what its pods and redis.conf have for it, the certificate in its Secret, and which nodes have loaded that.
//!
//! The Secret is a volume of the pods. The kubelet brings a new certificate into running pods, and Redis reads the files again by
//! CONFIG SET, without a restart. Nothing of this is stored: which certificate a node presents is seen when the operator connects.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use k8s_openapi::{
    api::{
        apps::v1::StatefulSet,
        core::v1::{ConfigMap, KeyToPath, Secret, SecretVolumeSource, Volume},
    },
    jiff::Timestamp,
};
use kube::ResourceExt;
use rustls::{
    CertificateError, Error,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, UnixTime, pem::PemObject},
    sign::CertifiedKey,
};
use sha2::{Digest, Sha256};
use tracing::info;
use x509_parser::{parse_x509_certificate, time::ASN1Time};

use super::{passwords, problem::Problem};
use crate::{
    crd::{RedisCluster, check::TLS_FIXED, v1::Tls},
    plan::{Fingerprint, Pod},
    server::{
        Access,
        act::Permit,
        tls::{Reload, Trust, fingerprint, reload},
    },
};

/// The keys of the Secret: CAs, the certificate with its intermediates, and its key.
pub const KEYS: [&str; 3] = ["ca.crt", "tls.crt", "tls.key"];

/// The volume with the keys as files.
pub(super) const FILES: &str = "tls";
/// Where a pod has them.
pub(super) const DIRECTORY: &str = "/etc/redis-tls";

/// The directives of redis.conf, instead of the port. Clients log in with the password; only nodes need a certificate. Names instead
/// of addresses are told to clients, since they are what a certificate can have.
pub(super) fn directives(port: u16) -> String {
    format!(
        "port 0\ntls-port {port}\ntls-ca-cert-file {DIRECTORY}/ca.crt\ntls-cert-file {DIRECTORY}/tls.crt\n\
         tls-key-file {DIRECTORY}/tls.key\ntls-auth-clients no\ntls-replication yes\ntls-cluster yes\n\
         cluster-preferred-endpoint-type hostname\n"
    )
}

/// A script of a pod, with TLS. Its own Redis is asked whatever certificate that presents: a node with an expired one must not
/// be killed. Others get the password only if a CA of the cluster signed their certificate. The exporter knows its Redis by a URL.
pub(super) fn script(text: &str) -> String {
    let verified = format!("redis-cli --tls --cacert {DIRECTORY}/ca.crt -h");
    let parts: Vec<_> = text
        .split("redis-cli -h")
        .map(|part| part.replace("redis-cli ", "redis-cli --tls --insecure "))
        .collect();
    parts.join(&verified).replace("redis://", "rediss://")
}

/// The volume of the pods. A pod does not start without the Secret and all its keys.
pub(super) fn volume(tls: &Tls) -> Volume {
    let file = |key: &str| KeyToPath { key: key.into(), path: key.into(), ..Default::default() };
    Volume {
        name: FILES.into(),
        secret: Some(SecretVolumeSource {
            secret_name: Some(tls.secret_name.clone()),
            items: Some(KEYS.map(file).into()),
            ..Default::default()
        }),
        ..Default::default()
    }
}

/// The Secret of the nodes; nothing without TLS. A problem if the spec adds TLS to a cluster, or takes it away.
pub fn secret_of(
    cluster: &RedisCluster,
    set: Option<&StatefulSet>,
    config: Option<&ConfigMap>,
) -> (Option<String>, Option<Problem>) {
    let wanted = cluster.spec.tls.as_ref().map(|tls| tls.secret_name.clone());
    let mounted = |set: &StatefulSet| {
        let volumes = set.spec.as_ref()?.template.spec.as_ref()?.volumes.as_ref()?;
        let files = volumes.iter().find(|volume| volume.name == FILES)?;
        files.secret.as_ref()?.secret_name.clone()
    };
    let configured = |config: &ConfigMap| {
        let conf = config.data.as_ref().and_then(|data| data.get("redis.conf"));
        conf.is_some_and(|conf| conf.contains("\ntls-port "))
    };
    let has_tls = set.map(|set| mounted(set).is_some()).or(config.map(configured));
    if has_tls.is_none_or(|has_tls| has_tls == wanted.is_some()) {
        return (wanted, None);
    }
    (set.and_then(mounted), Some(Problem::InvalidSpec(TLS_FIXED.into())))
}

/// What the Secret of a cluster has.
#[derive(Clone, Debug)]
pub struct Certificate {
    /// The name of the Secret.
    pub secret: String,
    /// The CAs; nothing if they cannot be read.
    pub trust: Option<Trust>,
    /// Why nodes cannot use it.
    pub problem: Option<Problem>,
    /// When it expires, if that is soon.
    pub expires: Option<Timestamp>,
    /// The certificate that nodes should present.
    presented: Option<Fingerprint>,
    /// The hash of all that nodes should have read.
    contents: [u8; 32],
    /// When the Secret was last written.
    written: Option<Timestamp>,
}

impl Certificate {
    /// What is known while there is no Secret.
    pub fn missing(secret: String) -> Self {
        Self {
            problem: Some(Problem::CertificateMissing { name: secret.clone() }),
            secret,
            trust: None,
            expires: None,
            presented: None,
            contents: [0; 32],
            written: None,
        }
    }

    /// Reads and checks the Secret.
    pub fn of(secret: &Secret, now: Timestamp) -> Self {
        let name = secret.name_any();
        let mut contents = Sha256::new();
        for key in KEYS {
            contents.update(Sha256::digest(value(secret, key)));
        }
        let checked = check(secret, now);
        Self {
            trust: certificates(value(secret, "ca.crt")).and_then(|authorities| Trust::of(&authorities).ok()),
            presented: certificates(value(secret, "tls.crt")).map(|chain| fingerprint(&chain[0])),
            contents: contents.finalize().into(),
            written: passwords::written(secret),
            expires: checked.as_ref().ok().copied().flatten(),
            problem: checked.err(),
            secret: name,
        }
    }
}

fn value<'a>(secret: &'a Secret, key: &str) -> &'a [u8] {
    secret.data.as_ref().and_then(|data| data.get(key)).map_or(&[], |value| &value.0)
}

/// The certificates in this text, if there are any and all can be read.
fn certificates(pem: &[u8]) -> Option<Vec<CertificateDer<'static>>> {
    let all: Vec<_> = CertificateDer::pem_slice_iter(pem).collect::<Result<_, _>>().ok()?;
    (!all.is_empty()).then_some(all)
}

/// A certificate is reported this long before it expires, or in the last quarter of its time if that is less. cert-manager renews
/// it when a third is left.
const SOON: Duration = Duration::from_secs(14 * 24 * 3600);

/// When the certificate expires, if that is soon; or why nodes cannot use it.
fn check(secret: &Secret, now: Timestamp) -> Result<Option<Timestamp>, Problem> {
    let name = secret.name_any();
    if let Some(key) = KEYS.into_iter().find(|key| value(secret, key).is_empty()) {
        return Err(Problem::CertificateKeyMissing { name, key });
    }
    let unusable = |why: &str| Problem::CertificateUnusable { name: name.clone(), why: why.into() };
    let not_pem = |key: &str| unusable(&format!("`{key}` is not a certificate in PEM"));
    let authorities = certificates(value(secret, "ca.crt")).ok_or_else(|| not_pem("ca.crt"))?;
    let chain = certificates(value(secret, "tls.crt")).ok_or_else(|| not_pem("tls.crt"))?;
    Trust::of(&authorities).map_err(|_| unusable("`ca.crt` has a block that is not a certificate"))?;
    let key = PrivateKeyDer::from_pem_slice(value(secret, "tls.key"))
        .map_err(|_| unusable("`tls.key` is not a private key in PEM without a passphrase"))?;
    let invalid = |error: Error| match error {
        Error::InconsistentKeys(_) => unusable("`tls.key` does not belong to the certificate in `tls.crt`"),
        Error::InvalidCertificate(CertificateError::UnknownIssuer) => unusable(
            "`tls.crt` does not lead to a root CA in `ca.crt`, that is, one that signed itself; add intermediates to `tls.crt`, and the root to `ca.crt`",
        ),
        Error::InvalidCertificate(CertificateError::InvalidPurposeContext { .. }) => unusable(
            "nodes are servers and clients of each other: issue the certificate for both uses (`server auth` and `client auth`), or for any",
        ),
        Error::InvalidCertificate(why @ CertificateError::Other(_)) => unusable(&format!(
            "`tls.crt` is not a certificate of version 3 that a CA issued for servers and clients ({why:?})"
        )),
        Error::InvalidCertificate(why) => {
            unusable(&format!("the certificate in `tls.crt` is not valid: {why}"))
        }
        _ => unusable(
            "`tls.key` is of a kind that is not supported: use RSA with 2048 bits or more, ECDSA P-256 or P-384, or Ed25519",
        ),
    };
    CertifiedKey::from_der(chain.clone(), key, &ring::default_provider()).map_err(invalid)?;
    let now = UnixTime::since_unix_epoch(Duration::from_secs(u64::try_from(now.as_second()).unwrap_or(0)));
    if let Some(at) = expiry(&authorities, &chain, now).map_err(invalid)? {
        return Err(Problem::CertificateExpired { name, at: timestamp(at) });
    }
    let soon =
        UnixTime::since_unix_epoch(Duration::from_secs(now.as_secs()) + SOON.min(lifetime(&chain[0]) / 4));
    Ok(expiry(&authorities, &chain, soon).map_err(invalid)?.map(timestamp))
}

fn timestamp(time: UnixTime) -> Timestamp {
    let seconds = i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
    Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX)
}

/// When the certificate, or else the CA that signed it, has expired by this time; nothing if it is valid. A chain leads to a CA that
/// signed itself: OpenSSL, and so Redis, trusts no other.
fn expiry(
    authorities: &[CertificateDer<'static>],
    chain: &[CertificateDer<'static>],
    time: UnixTime,
) -> Result<Option<UnixTime>, Error> {
    let (roots, others): (Vec<_>, Vec<_>) =
        authorities.iter().partition(|authority| signed_itself(authority));
    let chain: Vec<_> = chain.iter().chain(others).cloned().collect();
    // Redis checks also when CAs expire.
    let valid = roots.iter().copied().filter(|authority| until(authority).is_none_or(|until| until >= time));
    match Trust::of(valid)?.check(&chain, time) {
        Ok(()) => Ok(None),
        Err(Error::InvalidCertificate(CertificateError::ExpiredContext { not_after, .. })) => {
            Ok(Some(not_after))
        }
        Err(Error::InvalidCertificate(CertificateError::UnknownIssuer)) => {
            Trust::of(roots.iter().copied())?.check(&chain, time)?;
            Ok(roots.iter().filter_map(|authority| until(authority)).filter(|until| *until < time).max())
        }
        Err(error) => Err(error),
    }
}

fn signed_itself(certificate: &CertificateDer<'_>) -> bool {
    parse_x509_certificate(certificate)
        .is_ok_and(|(_, parsed)| parsed.subject().as_raw() == parsed.issuer().as_raw())
}

/// The first second in which a certificate is valid, and the last.
fn validity(certificate: &CertificateDer<'_>) -> Option<[UnixTime; 2]> {
    let (_, parsed) = parse_x509_certificate(certificate).ok()?;
    let time = |time: ASN1Time| {
        let seconds = u64::try_from(time.timestamp()).unwrap_or(0);
        UnixTime::since_unix_epoch(Duration::from_secs(seconds))
    };
    Some([time(parsed.validity().not_before), time(parsed.validity().not_after)])
}

fn until(certificate: &CertificateDer<'_>) -> Option<UnixTime> {
    validity(certificate).map(|[_, until]| until)
}

/// For how long a certificate is valid in all.
fn lifetime(certificate: &CertificateDer<'_>) -> Duration {
    let [from, until] =
        validity(certificate).map(|times| times.map(|time| time.as_secs())).unwrap_or_default();
    Duration::from_secs(until.saturating_sub(from))
}

/// The pods whose nodes present a certificate that is not trusted, as a problem.
pub fn untrusted<'a>(name: &str, pods: impl Iterator<Item = &'a Pod>) -> Option<Problem> {
    let rejected: Vec<_> = pods.filter_map(|pod| Some((pod, pod.certificate_rejected.clone()?))).collect();
    let why = rejected.first()?.1.clone();
    let pods = rejected.into_iter().map(|(pod, _)| pod.name.clone()).collect();
    Some(Problem::CertificateUntrusted { name: name.into(), pods, why })
}

/// How often nodes are told to read their files again, as long as those have not changed.
const PACE: Duration = Duration::from_secs(2);

/// What the operator remembers of the nodes. A new leader has them all read their files once more.
#[derive(Debug, Default)]
pub struct Loads {
    /// The contents that it is about.
    contents: [u8; 32],
    /// The runs of redis-server that have read them.
    runs: BTreeSet<String>,
    /// When nodes were last told to.
    tried: Option<Instant>,
    /// The pod of a node that refused them then, and what Redis said.
    refused: Option<(String, String)>,
}

/// How far nodes are with the certificate of the Secret.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Loaded {
    /// The Secret.
    pub secret: String,
    /// Pods whose nodes present another certificate.
    pub pending: Vec<String>,
    /// Pods whose nodes read the files again once those are certainly new: nothing shows which CAs a node has read.
    pub unread: Vec<String>,
    /// The pod of a node that refused the files, and what Redis said.
    pub refused: Option<(String, String)>,
    /// When the certificate expires, if that is soon.
    pub expires: Option<Timestamp>,
}

impl Loaded {
    /// Redis refuses files that are certainly those of the Secret.
    pub fn problem(&self) -> Option<Problem> {
        let (pod, answer) = self.refused.clone().filter(|_| self.unread.is_empty())?;
        Some(Problem::CertificateRefused { name: self.secret.clone(), pod, answer })
    }
}

/// Has nodes read their files again where they have not loaded what the Secret has. With `may_change` false, it only says how far
/// they are.
pub async fn load(
    access: &Access,
    permit: &dyn Permit,
    certificate: &Certificate,
    loads: &mut Loads,
    pods: &[Pod],
    may_change: bool,
) -> Loaded {
    let mut loaded =
        Loaded { secret: certificate.secret.clone(), expires: certificate.expires, ..Loaded::default() };
    if let Some(problem) = &certificate.problem {
        // Nodes may have the one that is expired.
        if !matches!(problem, Problem::CertificateExpired { .. }) {
            loaded.pending = pods.iter().map(|pod| pod.name.clone()).collect();
        }
        return loaded;
    }
    if loads.contents != certificate.contents {
        *loads = Loads { contents: certificate.contents, ..Loads::default() };
    }
    let nodes = || pods.iter().filter_map(|pod| Some((pod, &pod.redis.as_ref()?.run_id)));
    loads.runs.retain(|run| nodes().any(|(_, node)| node == run));
    let is_stale = |pod: &Pod| pod.certificate != certificate.presented;
    let due: Vec<_> = nodes().filter(|(pod, run)| is_stale(pod) || !loads.runs.contains(*run)).collect();
    // Redis loads any certificate with its key. Before that, the files may be those of a Secret that was wrong.
    let has_files = passwords::has_reached_files(certificate.written, Timestamp::now());
    let paced = loads.tried.is_none_or(|tried| tried.elapsed() >= PACE);
    let asked: Vec<_> =
        due.iter().map(|(pod, _)| *pod).filter(|_| may_change && has_files && paced).collect();
    if !asked.is_empty() {
        (loads.tried, loads.refused) = (Some(Instant::now()), None);
        let mut read = 0;
        for pod in &asked {
            match reload(access, permit, pod).await {
                Reload::Done(run) => {
                    read += 1;
                    loads.runs.insert(run);
                }
                Reload::Refused(answer) => loads.refused = Some((pod.name.clone(), answer)),
                Reload::Unknown => {}
            }
        }
        info!(nodes = asked.len(), read, refused = ?loads.refused, "certificate files read again");
    }
    loaded.refused = loads.refused.clone().filter(|_| !due.is_empty());
    let names = |pods: Vec<&(&Pod, &String)>| pods.iter().map(|(pod, _)| pod.name.clone()).collect();
    loaded.pending = names(due.iter().filter(|(pod, _)| is_stale(pod)).collect());
    let rejected = pods.iter().filter(|pod| pod.certificate_rejected.is_some());
    loaded.pending.extend(rejected.map(|pod| pod.name.clone()));
    if !has_files {
        loaded.unread = names(due.iter().collect());
    }
    loaded
}

#[cfg(test)]
#[path = "../../tests/support/authority.rs"]
mod authority;

#[cfg(test)]
mod tests {
    use k8s_openapi::ByteString;
    use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, date_time_ymd};
    use serde_json::{Value, json};

    use super::{authority::Authority, *};
    use crate::controller::children::{Defaults, Live, config_map, stateful_set};

    fn secret(ca: &str, [certificate, key]: &[String; 2]) -> Secret {
        let data = [("ca.crt", ca), ("tls.crt", certificate), ("tls.key", key)];
        let bytes = |(key, text): (&str, &str)| (key.to_owned(), ByteString(text.into()));
        let data = data.into_iter().filter(|(_, text)| !text.is_empty()).map(bytes).collect();
        let mut secret = Secret { data: Some(data), ..Secret::default() };
        secret.metadata.name = Some("rc-tls".into());
        secret
    }

    fn at(day: &str) -> Timestamp {
        format!("{day}T00:00:00Z").parse().unwrap()
    }

    /// The problem with a Secret in the middle of 2026.
    fn problem(ca: &str, signed: &[String; 2]) -> String {
        let found = Certificate::of(&secret(ca, signed), at("2026-06-01"));
        found.problem.map(|problem| problem.to_string()).unwrap_or_default()
    }

    #[test]
    fn what_is_wrong_with_a_secret_is_said() {
        let (ca, other) = (Authority::new("ca"), Authority::new("other"));
        let good = ca.sign("node");
        let [certificate, key] = good.clone();
        let with = |certificate: &str, key: &str| [certificate.to_owned(), key.to_owned()];
        let changed = |change: fn(&mut CertificateParams)| ca.sign_with("node", change);
        let both = format!("{}{}", other.pem, ca.pem);
        let junk = format!("{}-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", ca.pem);
        let intermediate = ca.authority("intermediate");
        let below = intermediate.sign("node");
        for (ca, signed, expected) in [
            (&ca.pem, good.clone(), ""),
            (&both, good.clone(), ""),
            // As cert-manager signs by default.
            (&ca.pem, changed(|params| params.extended_key_usages.clear()), ""),
            (&String::new(), good.clone(), "has no key `ca.crt`: it must have the keys"),
            (&ca.pem, with("", &key), "has no key `tls.crt`"),
            (&ca.pem, with(&certificate, ""), "has no key `tls.key`"),
            (&"no".into(), good.clone(), "`ca.crt` is not a certificate in PEM; running nodes keep"),
            (&ca.pem, with(&key, &key), "`tls.crt` is not a certificate in PEM"),
            (&ca.pem, with(&certificate, &certificate), "`tls.key` is not a private key in PEM"),
            (&ca.pem, with(&certificate, &ca.sign("b")[1]), "`tls.key` does not belong to the certificate"),
            (&other.pem, good.clone(), "`tls.crt` does not lead to a root CA in `ca.crt`"),
            (&junk, good.clone(), "`ca.crt` has a block that is not a certificate; running nodes keep"),
            // OpenSSL wants the root.
            (&intermediate.pem, below.clone(), "`tls.crt` does not lead to a root CA in `ca.crt`"),
            (&ca.pem, below.clone(), "`tls.crt` does not lead to a root CA in `ca.crt`"),
            (&ca.pem, with(&format!("{}{}", below[0], intermediate.pem), &below[1]), ""),
            (&format!("{}{}", intermediate.pem, ca.pem), below.clone(), ""),
            (
                &ca.pem,
                changed(|params| params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth]),
                "issue the certificate for both uses",
            ),
            (
                &ca.pem,
                changed(|params| params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth]),
                "issue the certificate for both uses",
            ),
            (
                &ca.pem,
                changed(|params| params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained)),
                "`tls.crt` is not a certificate of version 3 that a CA issued",
            ),
            (
                &ca.pem,
                changed(|params| params.not_before = date_time_ymd(2026, 7, 1)),
                "the certificate in `tls.crt` is not valid: ",
            ),
            (
                &ca.pem,
                changed(|params| params.not_after = date_time_ymd(2026, 5, 1)),
                "expired at 2026-05-01T00:00:00Z: renew it",
            ),
        ] {
            let found = problem(ca, &signed);
            assert!(
                found.contains(expected) && found.is_empty() == expected.is_empty(),
                "{expected}: {found}"
            );
        }
    }

    #[test]
    fn a_certificate_that_expires_soon_is_reported_before() {
        let expires = |ca: &Authority, others: &str, signed: &[String; 2], day: &str| {
            let found = Certificate::of(&secret(&format!("{others}{}", ca.pem), signed), at(day));
            assert_eq!(found.problem, None);
            found.expires.map(|at| at.to_string()[..10].to_owned())
        };
        let ca = Authority::new("ca");
        let until = |authority: &Authority, month: u8, day: u8| {
            authority.sign_with("node", |params| {
                params.not_before = date_time_ymd(2026, 1, 1);
                params.not_after = date_time_ymd(2026, month, day);
            })
        };
        let year = until(&ca, 12, 31);
        assert_eq!(expires(&ca, "", &year, "2026-12-16"), None);
        assert_eq!(expires(&ca, "", &year, "2026-12-18").as_deref(), Some("2026-12-31"));
        // Of eight days, the last two.
        let days = until(&ca, 1, 9);
        assert_eq!(expires(&ca, "", &days, "2026-01-06"), None);
        assert_eq!(expires(&ca, "", &days, "2026-01-08").as_deref(), Some("2026-01-09"));
        // The CA expires first; another one does not help.
        let short = Authority::with("short", |params| params.not_after = date_time_ymd(2026, 6, 10));
        let signed = until(&short, 12, 31);
        assert_eq!(expires(&short, &ca.pem, &signed, "2026-05-01"), None);
        assert_eq!(expires(&short, &ca.pem, &signed, "2026-06-01").as_deref(), Some("2026-06-10"));
        let found = Certificate::of(&secret(&format!("{}{}", short.pem, ca.pem), &signed), at("2026-07-01"));
        let problem = found.problem.unwrap();
        assert_eq!(problem.reason(), "CertificateExpired");
        assert!(problem.to_string().contains("expired at 2026-06-10T00:00:00Z"), "{problem}");
        // An expired CA beside it does no harm.
        let found = Certificate::of(&secret(&format!("{}{}", short.pem, ca.pem), &year), at("2026-07-01"));
        assert_eq!((found.problem, found.expires), (None, None));
    }

    fn cluster(tls: Value) -> RedisCluster {
        let object = json!({
            "apiVersion": "cache.example.com/v1", "kind": "RedisCluster",
            "metadata": {"name": "rc", "namespace": "ns"}, "spec": {"size": 3, "tls": tls},
        });
        serde_json::from_value(object).unwrap()
    }

    #[test]
    fn pods_have_the_secret_as_files() {
        let defaults = Defaults::default();
        let template = |tls: Value| {
            let set = stateful_set(&cluster(tls), &defaults, 3, 0);
            serde_json::to_value(set.spec.unwrap().template).unwrap()
        };
        let (plain, tls) = (template(Value::Null), template(json!({"secretName": "certs"})));
        let volume = json!({"name": "tls", "secret": {"secretName": "certs", "items": [
            {"key": "ca.crt", "path": "ca.crt"}, {"key": "tls.crt", "path": "tls.crt"},
            {"key": "tls.key", "path": "tls.key"},
        ]}});
        assert_eq!(tls["spec"]["volumes"].as_array().unwrap().last(), Some(&volume));
        let mounts = &tls["spec"]["containers"][0]["volumeMounts"];
        let mount = json!({"mountPath": "/etc/redis-tls", "name": "tls"});
        assert_eq!(mounts.as_array().unwrap().last(), Some(&mount));
        assert!(!plain.to_string().contains("tls"), "{plain}");
        let intent = |template: &Value| template["metadata"]["annotations"].clone();
        assert_ne!(intent(&plain), intent(&tls));
        assert_ne!(intent(&tls), intent(&template(json!({"secretName": "others"}))));

        let files = |tls: Value| config_map(&cluster(tls), &defaults, None, Live::Spec, true).data.unwrap();
        let (plain, tls) = (files(Value::Null), files(json!({"secretName": "certs"})));
        assert!(tls["redis.conf"].contains("port 0\ntls-port 6379\n"), "{}", tls["redis.conf"]);
        for script in ["start.sh", "ready.sh", "live.sh", "stop.sh"] {
            let plain = plain[script]
                .replace("redis-cli -h", "redis-cli --tls --cacert /etc/redis-tls/ca.crt -h")
                .replace("redis://", "rediss://");
            let expected: Vec<_> = plain
                .split("redis-cli ")
                .enumerate()
                .map(|(at, part)| {
                    let own = at > 0 && !part.starts_with("--tls");
                    if own { format!("--tls --insecure {part}") } else { part.to_owned() }
                })
                .collect();
            assert_eq!(tls[script], expected.join("redis-cli "), "{script}");
        }
    }

    /// The Secret that nodes have while the spec says otherwise.
    #[test]
    fn tls_is_not_added_and_not_taken_away() {
        let secret = |name: &str| json!({"secretName": name});
        let check = |spec: Value, running: Option<Value>, expected: Option<&str>, refused: bool| {
            let defaults = Defaults::default();
            let running = running.map(cluster);
            let set = running.as_ref().map(|running| stateful_set(running, &defaults, 3, 0));
            let config =
                running.as_ref().map(|running| config_map(running, &defaults, None, Live::Spec, true));
            let (found, problem) = secret_of(&cluster(spec.clone()), set.as_ref(), config.as_ref());
            assert_eq!((found.as_deref(), problem.is_some()), (expected, refused), "{spec}");
            // While the StatefulSet is made anew, the ConfigMap says whether there is TLS.
            let (_, problem) = secret_of(&cluster(spec.clone()), None, config.as_ref());
            assert_eq!(problem.is_some(), refused, "{spec}");
        };
        check(Value::Null, None, None, false);
        check(secret("a"), None, Some("a"), false);
        check(secret("a"), Some(secret("b")), Some("a"), false);
        check(secret("a"), Some(Value::Null), None, true);
        check(Value::Null, Some(secret("b")), Some("b"), true);
    }
}
