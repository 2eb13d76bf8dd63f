//! Asks every pod's Redis, all at once. One that does not answer is a value, not an error; nobody is asked by an operator
//! that does not lead any more.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use futures_util::{StreamExt, stream};
use redis::{Value, from_redis_value, pipe};
use tracing::debug;

use super::{
    Access, COMMAND_DEADLINE, CommandError,
    act::{NO_FAILOVER, Permit},
    parse, passwords,
};
use crate::{
    plan::{Fingerprint, Node, NodeId, Passwords, Pod},
    telemetry::chain,
};

/// How long a replica that hears nothing from its primary may run for election.
pub const VALIDITY_FACTOR: &str = "cluster-replica-validity-factor";
/// When snapshots are written.
pub const SAVE: &str = "save";
/// Whether all writes go to a file.
pub const APPEND_ONLY: &str = "appendonly";
/// Silence after which a node is marked as failed, in milliseconds.
pub const NODE_TIMEOUT: &str = "cluster-node-timeout";
/// Whether replicas choose another primary by themselves.
pub const MIGRATION: &str = "cluster-allow-replica-migration";
/// How many replicas a primary wants to take writes.
pub const MIN_REPLICAS: &str = "min-replicas-to-write";

/// What every look reads of that.
const SETTINGS: [&str; 6] = [VALIDITY_FACTOR, SAVE, APPEND_ONLY, NODE_TIMEOUT, MIGRATION, MIN_REPLICAS];

/// How often nodes are asked at most until what they say was true at one time.
const ATTEMPTS: usize = 3;
/// Connections at once for one cluster.
const AT_ONCE: usize = 32;

/// Why a node could not be seen.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
enum SeeError {
    #[error(transparent)]
    Command(#[from] CommandError),
    #[error(transparent)]
    Parse(#[from] parse::ParseError),
}

/// Fills in what the Redis of each pod says, and for slots that are open somewhere the keys that each primary holds in them.
pub async fn observe(
    access: &Access,
    permit: &dyn Permit,
    pods: &mut [Pod],
) -> BTreeMap<u16, BTreeMap<NodeId, u64>> {
    ask(access, permit, pods, |_| true).await;
    for _ in 1..ATTEMPTS {
        if !fails_over(pods) {
            break;
        }
        // One that did not respond would take the time of a timeout each time, also while nodes contradict each other for good.
        ask(access, permit, pods, |pod| pod.redis.is_some()).await;
    }
    open_keys(access, permit, pods).await
}

/// Whether a node was asked before it was promoted and the one before it after: each says that it is a replica of the other, and their
/// slots are nobody's.
fn fails_over(pods: &[Pod]) -> bool {
    let primaries =
        pods.iter().filter_map(|pod| pod.redis.as_ref()).filter_map(|node| Some((node.id, node.primary()?)));
    let primaries: BTreeMap<NodeId, NodeId> = primaries.collect();
    primaries.iter().any(|(id, primary)| primaries.get(primary) == Some(id))
}

async fn ask(access: &Access, permit: &dyn Permit, pods: &mut [Pod], which: fn(&Pod) -> bool) {
    let questions: Vec<_> = pods
        .iter()
        .enumerate()
        .filter(|(_, pod)| which(pod))
        .map(|(index, pod)| {
            let (name, ip) = (pod.name.clone(), pod.ip);
            async move { (index, see(access, permit, &name, ip).await) }
        })
        .collect();
    let seen: Vec<_> = stream::iter(questions).buffer_unordered(AT_ONCE).collect().await;
    for (index, seen) in seen {
        let pod = &mut pods[index];
        pod.password_rejected = matches!(seen, Seen::PasswordRejected);
        (pod.redis, pod.passwords, pod.certificate, pod.certificate_rejected) = match seen {
            Seen::Node(node, passwords, certificate) => (Some(*node), passwords, certificate, None),
            Seen::Untrusted(why) => (None, None, None, Some(why)),
            Seen::PasswordRejected | Seen::NoAnswer => (None, None, None, None),
        };
    }
}

/// What became of the questions to one node.
enum Seen {
    Node(Box<Node>, Option<Passwords>, Option<Fingerprint>),
    PasswordRejected,
    Untrusted(String),
    NoAnswer,
}

async fn see(access: &Access, permit: &dyn Permit, pod: &str, ip: Option<IpAddr>) -> Seen {
    match try_see(access, permit, pod, ip).await {
        Ok(seen) => seen.unwrap_or(Seen::NoAnswer),
        Err(error) => {
            debug!(pod, error = chain(&error), "no answer");
            match error {
                SeeError::Command(error) if error.is_password_rejected() => Seen::PasswordRejected,
                SeeError::Command(CommandError::Untrusted { source }) => Seen::Untrusted(source.to_string()),
                _ => Seen::NoAnswer,
            }
        }
    }
}

async fn try_see(
    access: &Access,
    permit: &dyn Permit,
    pod: &str,
    ip: Option<IpAddr>,
) -> Result<Option<Seen>, SeeError> {
    let Some(ip) = ip else { return Ok(None) };
    let mut connection = access.connect(ip).await?;
    if !permit.holds_for(COMMAND_DEADLINE) {
        return Ok(None);
    }
    let mut questions = pipe();
    questions
        .cmd("CLUSTER")
        .arg("NODES")
        .cmd("CLUSTER")
        .arg("INFO")
        .cmd("INFO")
        .arg(&["replication", "memory", "persistence", "server"])
        .cmd("DBSIZE")
        .cmd("ACL")
        .arg(&["GETUSER", "default"])
        .cmd("CONFIG")
        .arg(&["GET", "masterauth", NO_FAILOVER])
        .arg(&SETTINGS);
    let (nodes, cluster, info, keys, user, config): (String, String, String, u64, Value, Value) =
        connection.send_all("OBSERVE", &questions).await?;
    // Something that is not Redis may say anything.
    let config: Option<BTreeMap<String, String>> = from_redis_value(config).ok();
    let held = config.as_ref().and_then(|config| config.get(NO_FAILOVER)).is_some_and(|held| held == "yes");
    let own = |name: &&str| Some(((*name).to_owned(), config.as_ref()?.get(*name)?.clone()));
    let settings = SETTINGS.iter().filter_map(own).collect();
    let node = Node { held, settings, ..parse::node(&nodes, &cluster, &info, keys)? };
    if !access.is_of(pod, node.hostname.as_deref()) {
        debug!(pod, hostname = ?node.hostname, "the node at its address is not that of the pod");
        return Ok(None);
    }
    let passwords = config.and_then(|config| passwords::parse(user, config));
    Ok(Some(Seen::Node(Box::new(node), passwords, connection.certificate)))
}

async fn open_keys(
    access: &Access,
    permit: &dyn Permit,
    pods: &[Pod],
) -> BTreeMap<u16, BTreeMap<NodeId, u64>> {
    let nodes = || pods.iter().filter_map(|pod| Some((pod, pod.redis.as_ref()?)));
    let open: BTreeSet<u16> =
        nodes().flat_map(|(_, node)| node.migrating.keys().chain(node.importing.keys())).copied().collect();
    let mut found: BTreeMap<u16, BTreeMap<NodeId, u64>> = BTreeMap::new();
    if open.is_empty() {
        return found;
    }
    for (pod, node) in nodes() {
        let Some(ip) = pod.ip else { continue };
        let Ok(mut connection) = access.connect(ip).await else { continue };
        if !permit.holds_for(COMMAND_DEADLINE) {
            break;
        }
        let mut questions = pipe();
        for slot in &open {
            questions.cmd("CLUSTER").arg("COUNTKEYSINSLOT").arg(*slot);
        }
        let counts: Vec<u64> = connection.send_all("COUNTKEYSINSLOT", &questions).await.unwrap_or_default();
        for (slot, count) in open.iter().zip(counts) {
            found.entry(*slot).or_default().insert(node.id, count);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Peer, Slots};

    #[test]
    fn two_replicas_of_each_other_were_asked_at_different_times() {
        let id = |number: u8| -> NodeId { format!("{number:040x}").parse().unwrap() };
        let pod = |number: u8, primary: Option<u8>| {
            let own = Peer {
                id: id(number),
                ip: None,
                pod: None,
                primary: primary.map(id),
                handshake: false,
                failed: false,
                suspected: false,
                connected: true,
                epoch: 1,
                slots: Slots::default(),
            };
            let node = Node { id: id(number), table: vec![own].into(), ..Node::default() };
            Pod { redis: Some(node), ..Pod::default() }
        };
        assert!(fails_over(&[pod(1, Some(2)), pod(2, Some(1)), pod(3, None)]));
        assert!(!fails_over(&[pod(1, Some(2)), pod(2, None), Pod::default()]));
        assert!(!fails_over(&[pod(1, Some(2)), Pod::default()]), "its primary did not respond");
    }
}
