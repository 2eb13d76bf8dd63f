//! The certificate and the password of a RedisCluster change while a client writes, as the kubelet brings them to pods.

use std::time::{Duration, Instant};

use libtest_mimic::Failed;
use serde_json::json;

use super::authority::Authority;
use super::rediscluster::{Redis, condition};
use super::writer::Writer;
use crate::cluster::{Namespace, within};

const CERTIFICATE: &str = "certificate";
const PASSWORD: &str = "the-password-from-now-on";
/// The kubelet has two minutes to bring a Secret to pods, and the operator waits for them, twice.
const LONG: Duration = Duration::from_secs(420);

pub(super) fn change(namespace: &Namespace) -> Result<(), Failed> {
    let redis = Redis { namespace, name: "rc" };
    let authority = Authority::new("ca");
    sign(namespace, &authority, "first")?;
    redis.create(&format!("size: 6, replicasPerShard: 1, tls: {{secretName: {CERTIFICATE}}}"))?;
    redis.ready()?;
    let pods = || {
        let ids = "--output=jsonpath={.items[*].metadata.uid}";
        namespace.kubectl(&["get", "pods", "--selector=app.kubernetes.io/instance=rc", ids])
    };
    let before = pods()?;
    let writer = Writer::start_with(namespace, redis.name, Some(CERTIFICATE))?;

    let started = Instant::now();
    sign(namespace, &authority, "second")?;
    let old = namespace.kubectl(&["get", "secret/rc-auth", "--output=jsonpath={.data.password}"])?;
    let patch = json!({"data": {"previousPassword": old}, "stringData": {"password": PASSWORD}}).to_string();
    namespace.kubectl(&["patch", "secret/rc-auth", "--type=merge", "--patch", &patch])?;
    let pending = || -> Result<String, Failed> {
        let status = redis.status()?;
        let reason = condition(&status, "UpdatePending").map(|found| found["reason"].clone());
        Ok(reason.and_then(|reason| reason.as_str().map(str::to_owned)).unwrap_or_default())
    };
    let changed = within(LONG, || {
        let loaded = redis.events()?.contains_key("CertificateLoaded");
        Ok((loaded && pending()? == "PreviousPasswordAccepted").then(|| started.elapsed()))
    })?;
    let changed =
        changed.ok_or_else(|| format!("after {LONG:?}: {:#}", redis.status().unwrap_or_default()))?;
    let ping = |password: &str| {
        let client = ["exec", "client", "--", "redis-cli", "--tls", "--cacert", "/tls/ca.crt", "-h", "rc"];
        namespace.kubectl(&[&client[..], &["--no-auth-warning", "-a", password, "ping"]].concat())
    };
    assert_eq!(ping(PASSWORD)?.trim(), "PONG");
    let written = writer.stop()?;
    assert!(written.errors.is_empty(), "{:?}", written.errors);

    let patch = json!({"data": {"previousPassword": null}}).to_string();
    namespace.kubectl(&["patch", "secret/rc-auth", "--type=merge", "--patch", &patch])?;
    let removed = within(LONG, || Ok((pending()? == "UpToDate").then_some(())))?;
    removed.ok_or_else(|| format!("the old password stays: {:#}", redis.status().unwrap_or_default()))?;
    assert_eq!(ping(PASSWORD)?.trim(), "PONG");
    let refused = ping("another-password")?;
    assert!(refused.contains("NOAUTH"), "{refused}");
    redis.ready()?;
    assert_eq!(pods()?, before, "no pod was replaced");
    eprintln!(
        "redis: another certificate and password reached six pods in {changed:.1?}, {} writes by TLS, none lost",
        written.count
    );
    Ok(())
}

/// Writes a certificate that the CA signs to the Secret.
fn sign(namespace: &Namespace, authority: &Authority, name: &str) -> Result<(), Failed> {
    let [certificate, key] = authority.sign(name);
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": CERTIFICATE},
        "stringData": {"ca.crt": authority.pem, "tls.crt": certificate, "tls.key": key},
    });
    namespace.apply(&secret.to_string())
}
