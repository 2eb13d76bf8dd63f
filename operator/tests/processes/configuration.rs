//! Directives of `spec.config` on real nodes: what Redis takes while it runs, and what it says to the rest.

use std::time::{Duration, Instant};

use redis::cmd;
use redis_operator::{
    controller::{live, memory},
    plan::{Observed, Pod},
    server::{
        act::Always,
        configure::{Configured, Directives, configure},
    },
};

use crate::{A_WHILE, fill, formed, servers::Servers, tag_of, writer::Writer};

fn directives(pairs: &[(&str, &str)]) -> Directives {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

async fn give(servers: &Servers, observed: &Observed, directives: &Directives) -> Configured {
    configure(&servers.access, &Always, &observed.pods, directives).await
}

/// The value of a directive at each node.
async fn values(servers: &Servers, directive: &str) -> Vec<String> {
    let mut values = vec![];
    for ordinal in servers.ordinals() {
        let mut connection = servers.access.connect(servers.ip(ordinal)).await.unwrap();
        let found: Vec<String> =
            connection.send("CONFIG", cmd("CONFIG").arg("GET").arg(directive)).await.unwrap();
        values.push(found.get(1).cloned().unwrap_or_default());
    }
    values
}

/// At every node at once, without a restart and without a client that notices.
pub(crate) async fn set_while_clients_write() {
    let mut servers = formed(6, 1, false).await;
    fill(&servers, 500).await;
    let writer = Writer::start(servers.access.clone(), servers.ip(0), 100);
    let processes = servers.processes();
    for round in 1..=10 {
        let memory = format!("{}mb", 100 + round);
        let wanted = directives(&[
            ("maxmemory", &memory),
            ("maxmemory-policy", if round % 2 == 0 { "noeviction" } else { "allkeys-lru" }),
            ("client-output-buffer-limit", "normal 0 0 0 replica 512mb 128mb 60"),
            ("notify-keyspace-events", ""),
        ]);
        let observed = servers.observe().await;
        let configured = give(&servers, &observed, &wanted).await;
        assert_eq!((configured.runs.len(), configured.refusal), (6, None));
        let bytes = ((100 + round) << 20).to_string();
        assert_eq!(values(&servers, "maxmemory").await, vec![bytes; 6]);
    }
    let written = writer.stop().await;
    assert_eq!(servers.processes(), processes);
    assert_eq!(written.lost(&servers.access, servers.ip(0)).await, [""; 0]);
    assert_eq!(written.errors, Default::default());
    assert!(written.stall.as_millis() < 1000, "{:?} without a write", written.stall);

    // A process that took the place of another since it was observed is left alone: it may be of another cluster.
    let observed = servers.observe().await;
    let ip = servers.ip(5);
    servers.kill(5);
    servers.start_at(5, ip);
    let configured = give(&servers, &observed, &directives(&[("maxmemory", "300mb")])).await;
    assert_eq!((configured.runs.len(), configured.refusal), (5, None));
    assert_eq!(values(&servers, "maxmemory").await[5], "0");
}

/// The others that came with it are not set either, and no later node is asked.
pub(crate) async fn refused() {
    let servers = formed(3, 0, false).await;
    let observed = servers.observe().await;
    for (wanted, directive, answer) in [
        ([("maxmemory", "100mb"), ("maxmemory-policy", "lru")], "maxmemory-policy", "must be one of"),
        ([("maxmemory", "100mb"), ("hz", "fast")], "hz", "couldn't be parsed into an integer"),
        ([("maxmemory", "100mb"), ("nonsense", "1")], "nonsense", "Unknown option"),
        ([("maxmemory", "100mb"), ("io-threads", "2")], "io-threads", "can't set immutable config"),
    ] {
        let configured = give(&servers, &observed, &directives(&wanted)).await;
        let refusal = configured.refusal.unwrap();
        assert_eq!((configured.runs.len(), refusal.directive.as_str()), (0, directive));
        assert!(refusal.answer.contains(answer), "{refusal}");
        let text = refusal.to_string();
        assert!(text.starts_with(&format!("Redis in pod rc-0 refused spec.config.{directive} `")), "{text}");
        assert_eq!(values(&servers, "maxmemory").await, ["0"; 3]);
    }
}

/// A node that uses more than that would refuse writes at once, and keeps what it has until it uses less.
pub(crate) async fn memory_limit() {
    let servers = formed(3, 0, false).await;
    let mut connection = servers.access.connect(servers.ip(1)).await.unwrap();
    let slots = servers.observe().await.pods[1].redis.as_ref().unwrap().slots();
    let (_, tag) = tag_of(&mut connection, &slots).await;
    let large = cmd("SET").arg(&tag).arg("x".repeat(32 << 20)).take();
    connection.send::<()>("SET", &large).await.unwrap();
    let maxmemory = 24 << 20;
    let give_all = async || {
        let observed = servers.observe().await;
        let lacking = memory::lacking(maxmemory, &observed);
        let above: Vec<_> = lacking.above.iter().map(|pod| pod.name.clone()).collect();
        let given = configure(&servers.access, &Always, lacking.ready, &memory::directives(maxmemory)).await;
        assert_eq!(given.refusal, None);
        (given.runs.len(), above)
    };
    assert_eq!(give_all().await, (2, vec!["rc-1".to_owned()]));
    let bytes = maxmemory.to_string();
    assert_eq!(values(&servers, "maxmemory").await, [&*bytes, "0", &*bytes]);
    assert_eq!(give_all().await, (0, vec!["rc-1".to_owned()]));
    connection.send::<()>("SET", cmd("SET").arg(&tag).arg("small")).await.unwrap();
    // Redis frees the buffer of the connection by and by.
    let deadline = Instant::now() + A_WHILE;
    while give_all().await != (1, vec![]) {
        assert!(Instant::now() < deadline, "{:#?}", servers.observe().await);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(values(&servers, "maxmemory").await, vec![bytes; 3]);
    assert_eq!(give_all().await, (0, vec![]));
    // Instead of a killed process, its clients see an error.
    let refused = connection.send::<()>("SET", &large).await.unwrap_err();
    assert!(refused.message().contains("command not allowed when used memory"), "{refused:?}");
}

/// The list says what replaces no pod. Each is given the value that it has; a later Redis may have dropped some, and none may
/// have become immutable.
pub(crate) async fn every_directive() {
    let servers = formed(1, 0, false).await;
    let observed = servers.observe().await;
    let pod: &[Pod] = &observed.pods;
    let mut known = 0;
    for directive in live::LIVE {
        let mut connection = servers.access.connect(servers.ip(0)).await.unwrap();
        let found: Vec<String> =
            connection.send("CONFIG", cmd("CONFIG").arg("GET").arg(directive)).await.unwrap();
        let Some(value) = found.get(1) else { continue };
        known += 1;
        let configured = configure(&servers.access, &Always, pod, &directives(&[(directive, value)])).await;
        assert_eq!(configured.refusal, None, "{directive}");
    }
    assert!(known > 80, "{known}");
}
