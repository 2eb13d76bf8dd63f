//! TLS between clients, operator and nodes, and certificates that change while it is in use.

use std::time::{Duration, Instant};

use rcgen::date_time_ymd;
use redis::cmd;
use redis_operator::{
    controller::tls::untrusted,
    plan::{Pod, Step},
    server::{
        Access, CommandError,
        act::Always,
        tls::{Reload, Trust, reload},
    },
};
use rustls::pki_types::{CertificateDer, pem::PemObject};

use crate::{
    A_WHILE,
    authority::Authority,
    fill, pair,
    servers::{PASSWORD, PORT, Servers},
    writer::{ClusterClient, Writer, Written},
};

/// A cluster with TLS, and the CA that signed its certificate.
pub(crate) async fn formed(size: u32, replicas_per_shard: u32, persistent: bool) -> (Servers, Authority) {
    let authority = Authority::new("ca");
    let mut servers = Servers::new(size, replicas_per_shard, persistent);
    servers.write_certificate(&authority.pem, &authority.sign("first"));
    servers.scale(size);
    servers.settle(A_WHILE).await;
    (servers, authority)
}

/// Reconciles, two minutes after the Secret was written, and brings it into the files of a node after each time, until all nodes
/// present its certificate.
pub(crate) async fn load(servers: &mut Servers) {
    let (mut files, deadline) = (servers.ordinals().into_iter(), Instant::now() + A_WHILE);
    servers.age_certificate();
    let _ = servers.turn(&Always).await;
    while !servers.loaded.pending.is_empty() {
        assert!(Instant::now() < deadline, "{:?}", servers.loaded);
        if let Some(ordinal) = files.next() {
            servers.refresh_files(ordinal);
        }
        let _ = servers.turn(&Always).await;
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(files.next(), None, "nodes that do not have the files yet cannot present it");
}

async fn unharmed(servers: &Servers, written: Written) {
    assert_eq!(written.lost(&servers.access, servers.ip(0)).await, [""; 0]);
    assert_eq!(written.errors, Default::default());
    assert!(!written.acknowledged.is_empty(), "it wrote nothing");
}

/// How many different certificates the nodes present.
async fn presented(servers: &Servers) -> usize {
    let pods = servers.observe().await.pods;
    let presented: std::collections::BTreeSet<_> = pods.iter().map(|pod| pod.certificate.unwrap()).collect();
    presented.len()
}

/// No connection between nodes is older than this: they all connect anew.
async fn reconnect(servers: &Servers) {
    for pod in servers.observe().await.pods {
        let mut server = servers.access.connect(pod.ip.unwrap()).await.unwrap();
        let kill = cmd("CLIENT").arg("KILL").arg("TYPE").arg("replica").take();
        server.send::<u64>("CLIENT KILL", &kill).await.unwrap();
    }
}

/// Slots move, and a primary is lost, while a client writes.
pub(crate) async fn scales_and_fails_over() {
    let (mut servers, _) = formed(4, 1, false).await;
    fill(&servers, 1000).await;
    let plain = Access { trust: None, ..servers.access.clone() };
    let refused = plain.connect(servers.ip(0)).await.unwrap_err();
    assert!(matches!(refused, CommandError::Failed { .. }), "{refused:?}");
    let nobody = Access { trust: Some(Trust::default()), ..servers.access.clone() };
    let refused = nobody.connect(servers.ip(0)).await.unwrap_err();
    assert!(matches!(refused, CommandError::Untrusted { .. }), "{refused:?}");

    let writer = Writer::start(servers.access.clone(), servers.ip(0), 200);
    servers.goal.size = 8;
    servers.settle(A_WHILE).await;
    assert_eq!(servers.slots().await, [4096; 4]);
    unharmed(&servers, writer.stop().await).await;
    assert_eq!(servers.keys().await, 1200);

    let (primary, _) = pair(&servers).await;
    servers.in_step().await;
    servers.replace(primary);
    let steps = servers.settle(A_WHILE).await;
    assert!(steps.contains(&Step::Join), "{steps:?}");
    assert_eq!(servers.keys().await, 1200);
}

/// Its files come to the nodes one after the other. What Redis refuses on the way changes nothing.
pub(crate) async fn renewed_while_clients_write() {
    let (mut servers, authority) = formed(6, 1, false).await;
    fill(&servers, 500).await;
    let processes = servers.processes();
    let writer = Writer::start(servers.access.clone(), servers.ip(0), 100);
    let mut open = servers.access.connect(servers.ip(0)).await.unwrap();

    // Files that do not fit together.
    let before = servers.observe().await;
    let [certificate, _] = authority.sign("bad");
    let good = servers.certificate.clone();
    servers.write_certificate(&authority.pem, &[certificate, authority.sign("other")[1].clone()]);
    let _ = servers.turn(&Always).await;
    servers.age_certificate();
    let _ = servers.turn(&Always).await;
    assert_eq!(presented(&servers).await, 1, "the operator does not try a Secret that is wrong");
    assert_eq!(servers.loaded.pending.len(), 6, "{:?}", servers.loaded);
    servers.refresh_files(0);
    let refused = reload(&servers.access, &Always, &before.pods[0]).await;
    assert!(
        matches!(&refused, Reload::Refused(answer) if answer.contains("Unable to update TLS configuration")),
        "{refused:?}"
    );
    servers.certificate = good;
    servers.refresh_files(0);
    assert_eq!(presented(&servers).await, 1);
    assert_eq!(before.pods[0].certificate, servers.observe().await.pods[0].certificate);

    // Redis would load this one. It is in the files when the Secret is corrected.
    let over = authority.sign_with("over", |params| params.not_after = date_time_ymd(2020, 1, 1));
    servers.write_certificate(&authority.pem, &over);
    servers.refresh_files(0);
    let _ = servers.turn(&Always).await;
    servers.write_certificate(&authority.pem, &authority.sign("second"));
    let _ = servers.turn(&Always).await;
    assert_eq!(servers.loaded.pending.len(), 6, "{:?}", servers.loaded);
    assert_eq!(presented(&servers).await, 1);
    assert_eq!(before.pods[0].certificate, servers.observe().await.pods[0].certificate);
    servers.refresh_files(0);
    load(&mut servers).await;
    let after = servers.observe().await;
    assert_eq!(presented(&servers).await, 1);
    assert_ne!(before.pods[0].certificate, after.pods[0].certificate);

    assert_eq!((servers.loaded.unread.len(), servers.loaded.refused.clone()), (0, None));
    open.send::<String>("PING", &cmd("PING")).await.unwrap();
    reconnect(&servers).await;
    servers.settle(A_WHILE).await;
    servers.in_step().await;
    unharmed(&servers, writer.stop().await).await;
    assert_eq!(servers.processes(), processes);
}

/// Its certificate comes first, then certificates that it signed, and the old CA goes last.
pub(crate) async fn new_authority() {
    let (mut servers, old) = formed(6, 1, false).await;
    fill(&servers, 300).await;
    let new = Authority::new("new");
    let both = format!("{}{}", old.pem, new.pem);
    let writer = Writer::start(servers.access.clone(), servers.ip(0), 100);
    let all_read = async |servers: &mut Servers| {
        for ordinal in servers.ordinals() {
            servers.refresh_files(ordinal);
        }
        servers.age_certificate();
        tokio::time::sleep(Duration::from_secs(2)).await;
        let _ = servers.turn(&Always).await;
        let _ = servers.turn(&Always).await;
        assert_eq!(
            (servers.loaded.pending.len(), servers.loaded.unread.len()),
            (0, 0),
            "{:?}",
            servers.loaded
        );
    };
    servers.write_certificate(&both, &old.sign("first again"));
    load(&mut servers).await;
    all_read(&mut servers).await;
    unharmed(&servers, writer.stop().await).await;
    let writer = Writer::start(servers.access.clone(), servers.ip(0), 100);
    servers.write_certificate(&both, &new.sign("second"));
    load(&mut servers).await;
    all_read(&mut servers).await;
    reconnect(&servers).await;
    servers.write_certificate(&new.pem, &new.sign("third"));
    load(&mut servers).await;
    all_read(&mut servers).await;
    unharmed(&servers, writer.stop().await).await;
    // New connections between all of them.
    servers.restart(5);
    servers.settle(A_WHILE).await;
    assert_eq!((servers.keys().await, presented(&servers).await), (500, 1));
}

/// The operator connects to nodes with an expired certificate: how else would they get another?
pub(crate) async fn expired() {
    let authority = Authority::new("ca");
    let mut servers = Servers::new(1, 0, false);
    let over = authority.sign_with("over", |params| params.not_after = date_time_ymd(2020, 1, 1));
    servers.write_certificate(&authority.pem, &over);
    servers.scale(1);
    servers.settle(A_WHILE).await;
    servers.write_certificate(&authority.pem, &authority.sign("renewed"));
    load(&mut servers).await;
    assert_eq!(presented(&servers).await, 1);
}

/// They do not get the password.
pub(crate) async fn of_another_authority() {
    let (mut servers, _) = formed(3, 0, false).await;
    let other = Authority::new("other");
    let certificates = CertificateDer::pem_slice_iter(other.pem.as_bytes()).collect::<Result<Vec<_>, _>>();
    servers.access.trust = Some(Trust::of(&certificates.unwrap()).unwrap());
    let pods = servers.observe().await.pods;
    assert!(pods.iter().all(|pod| pod.redis.is_none() && !pod.password_rejected), "{pods:?}");
    let problem = untrusted("rc-tls", pods.iter()).unwrap();
    assert_eq!(problem.reason(), "CertificateUntrusted");
    let text = problem.to_string();
    assert!(
        text.starts_with(
            "`ca.crt` in Secret `rc-tls` has no CA that signed the certificate of rc-0, rc-1, rc-2: "
        ),
        "{text}"
    );
}

/// The last one also when the certificate has expired: the container is not to be killed for that.
pub(crate) async fn scripts() {
    let (mut servers, authority) = formed(6, 1, false).await;
    let files = [("password", PASSWORD)];
    assert!(servers.run_script("ready.sh", 0, &files, PASSWORD).await);
    assert!(servers.run_script("live.sh", 0, &files, PASSWORD).await);
    let owns = |pod: &&Pod| !pod.redis.as_ref().unwrap().slots().is_empty();
    let primary = servers.observe().await.pods.iter().find(owns).unwrap().ordinal;
    assert!(servers.run_script("stop.sh", primary, &files, PASSWORD).await);
    let observed = servers.observe().await;
    let stopped = observed.pods.iter().find(|pod| pod.ordinal == primary).unwrap();
    assert!(!owns(&stopped), "a replica took over");

    let over = authority.sign_with("over", |params| params.not_after = date_time_ymd(2020, 1, 1));
    servers.write_certificate(&authority.pem, &over);
    servers.refresh_files(0);
    let done = reload(&servers.access, &Always, &observed.pods[0]).await;
    assert!(matches!(done, Reload::Done(_)), "{done:?}");
    assert!(servers.run_script("live.sh", 0, &files, PASSWORD).await);
    assert!(servers.run_script("ready.sh", 0, &files, PASSWORD).await);

    // Clients are told names, which a certificate can have.
    let mut client = ClusterClient::new(servers.access.clone(), servers.ip(0));
    client.send::<()>("a", cmd("SET").arg("a").arg("1")).await.unwrap();
    let mut server = servers.access.connect(servers.ip(primary)).await.unwrap();
    let moved = server.send::<()>("SET", cmd("SET").arg("a").arg("1")).await.unwrap_err();
    let text = moved.message();
    assert!(
        text.contains(".rc-headless.ns.svc.cluster.local:") && text.contains(&PORT.to_string()),
        "{text}"
    );
}
