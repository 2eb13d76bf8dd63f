//! The observation of one cluster at one moment: its pods, and the answers of the Redis in each of them.
//!
//! Plain data. A Redis that did not respond is a value, not an error: [`Pod::redis`] is then `None`.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    net::IpAddr,
    ops::Deref,
    slice,
    str::FromStr,
};

use super::{Copies, Slots, Version};

/// The 160-bit id of a Redis node, written as 40 hexadecimal digits.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId([u8; 20]);

/// A text that is not a node id.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("expected a node id of 40 hexadecimal digits, found `{0}`")]
pub struct NodeIdError(String);

impl FromStr for NodeId {
    type Err = NodeIdError;

    fn from_str(text: &str) -> Result<Self, NodeIdError> {
        let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        let mut id = [0; 20];
        let bytes = text.as_bytes();
        if bytes.len() != 40 {
            return Err(NodeIdError(text.into()));
        }
        for (byte, pair) in id.iter_mut().zip(bytes.chunks_exact(2)) {
            match (digit(pair[0]), digit(pair[1])) {
                (Some(high), Some(low)) => *byte = high << 4 | low,
                _ => return Err(NodeIdError(text.into())),
            }
        }
        Ok(Self(id))
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// The pods of a cluster, lowest ordinal first, and the keys in open slots.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observed {
    /// Every pod of the StatefulSet that exists, lowest ordinal first.
    pub pods: Vec<Pod>,
    /// `spec.replicas` of the StatefulSet; `None` when there is none.
    pub replicas: Option<u32>,
    /// Ordinals of the pods that owned slots when the status was last written.
    pub last_owners: BTreeSet<u32>,
    /// The node of each pod when it was last a member, as the status has it.
    pub known: BTreeMap<String, NodeId>,
    /// Whether the majority of primaries has been missing for so long that replicas may be promoted without a vote.
    pub takeover_due: bool,
    /// Whether an owner with replicas has been missing for so long that Redis should have elected one of them.
    pub election_due: bool,
    /// What was known of replicas when their primaries were last observed.
    pub copies: Copies,
    /// Ordinals of pods that do not respond and have no PersistentVolumeClaim any more.
    pub without_claim: BTreeSet<u32>,
    /// Whether drained nodes have redirected clients for long enough to be removed or reset.
    pub leave_due: bool,
    /// Whether a node has responded for long without becoming a member.
    pub join_overdue: bool,
    /// Nodes that have responded without being members for less than the time that a forgotten node is banned.
    pub outside_lately: BTreeSet<NodeId>,
    /// Open slots whose migration this operator interrupted itself.
    pub left_open: BTreeSet<u16>,
    /// Nodes that were promoted less than four node timeouts ago.
    pub promoted: BTreeSet<NodeId>,
    /// Whether pods came, went or were not ready less than a minute ago, as they do while Kubernetes nodes are drained.
    pub unrest: bool,
    /// Whether Kubernetes keeps the volumes of pods that are scaled away.
    pub keeps_volumes: bool,
    /// Whether clients were kept from writing for so long without all pods being stopped that they may write again for a while.
    pub let_go: bool,
    /// Whether no client could write since before this observation.
    pub holds: bool,
    /// For each open slot, how many of its keys each responding node holds.
    pub open_keys: BTreeMap<u16, BTreeMap<NodeId, u64>>,
}

/// A pod, and its Redis if that responded.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pod {
    /// Its ordinal in the StatefulSet.
    pub ordinal: u32,
    /// The name, `<cluster>-<ordinal>`.
    pub name: String,
    /// Changes when the pod is replaced.
    pub uid: String,
    /// Its current address.
    pub ip: Option<IpAddr>,
    /// Whether it is being deleted.
    pub terminating: bool,
    /// Whether its PersistentVolumeClaim is being deleted: Kubernetes waits until the pod has ended.
    pub claim_ends: bool,
    /// Whether its containers are ready, or the one of Redis while another fails. Not so if the process hangs or the Kubernetes node is
    /// lost.
    pub containers_ready: bool,
    /// Whether its process is confirmed to have ended: by its kubelet, because its Kubernetes node is gone or out of service, or
    /// by the user.
    pub ended: bool,
    /// Whether its Redis rejected the password, and the previous one if there is one.
    pub password_rejected: bool,
    /// Whether its scripts read the passwords from files, which the kubelet keeps up to date.
    pub has_password_files: bool,
    /// The passwords of its Redis; `None` if it did not respond.
    pub passwords: Option<Passwords>,
    /// The certificate that its Redis presents; `None` without TLS, or if it did not respond.
    pub certificate: Option<Fingerprint>,
    /// Why the certificate that its Redis presents is not trusted, if that is so.
    pub certificate_rejected: Option<String>,
    /// The Kubernetes node that it runs on.
    pub host: Option<String>,
    /// The zone of that Kubernetes node.
    pub zone: Option<String>,
    /// Why it does not run, as Kubernetes reports it.
    pub trouble: Option<Trouble>,
    /// Whether a container beside the one of Redis is not ready: then the pod is not ready either.
    pub other_container_fails: bool,
    /// Revision of its pod template.
    pub revision: Option<String>,
    /// The image of its Redis.
    pub image: Option<String>,
    /// Whether it was created so long ago that its Redis should respond.
    pub overdue: bool,
    /// Whether its template is not what the spec wants: another image, configuration or resources.
    pub outdated: bool,
    /// The answer of its Redis; `None` if it did not respond.
    pub redis: Option<Node>,
}

/// What keeps a pod from running.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// The sentence: ``container `redis` with image `redis:none`: ErrImagePull: not found``.
    pub what: String,
    /// The fields of the spec that it can be about.
    pub fields: Option<&'static str>,
    /// Whether Redis has run and ended, for which its configuration can be the reason.
    pub has_run: bool,
}

/// The SHA-256 hash of a password, in hexadecimal, as Redis has it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PasswordHash(pub String);

impl fmt::Debug for PasswordHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(hidden)")
    }
}

/// The SHA-256 hash of a certificate.
pub type Fingerprint = [u8; 32];

/// The passwords of one Redis.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Passwords {
    /// Those that it accepts from clients and replicas.
    pub accepted: BTreeSet<PasswordHash>,
    /// The one with which it replicates (`masterauth`).
    pub replicates_with: Option<PasswordHash>,
}

/// One Redis node and its view of the others.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Node {
    /// Its own id.
    pub id: NodeId,
    /// The host name that it announces.
    pub hostname: Option<String>,
    /// Its table of the cluster, itself included.
    pub table: Table,
    /// `cluster_state:ok`, which can be stale.
    pub ok: bool,
    /// The highest epoch that it knows.
    pub current_epoch: u64,
    /// Number of keys.
    pub keys: u64,
    /// Memory used, and maxmemory (0: no limit), in bytes.
    pub memory: (u64, u64),
    /// For a replica: state of the connection to its primary.
    pub link: Link,
    /// For a replica: the address that it uses for its primary.
    pub bound: Option<IpAddr>,
    /// Replication offset, in bytes.
    pub offset: i64,
    /// For a replica: seconds since it last received anything from its primary.
    pub silence: Option<u64>,
    /// For a primary: addresses of its replicas that acknowledged nearly everything a moment ago.
    pub attached: BTreeSet<IpAddr>,
    /// For a primary that takes no writes without replicas (`min-replicas-to-write`): how many it has.
    pub good_replicas: Option<u64>,
    /// Slots that it exports, and their destinations.
    pub migrating: BTreeMap<u16, NodeId>,
    /// Slots that it imports, and their sources.
    pub importing: BTreeMap<u16, NodeId>,
    /// Whether no replica is promoted as far as it is concerned (`cluster-replica-no-failover`): it is about to stop.
    pub held: bool,
    /// Directives that the operator sets on running nodes, or that keep them from taking writes, as this one has them.
    pub settings: BTreeMap<String, String>,
    /// Number of its function libraries.
    pub libraries: u64,
    /// What it says of its files.
    pub persistence: Persistence,
    /// Which server it is.
    pub version: Version,
    /// `run_id`: another for each process.
    pub run_id: String,
}

/// What Redis says of its files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Persistence {
    /// Whether it could not write its append-only file the last time: then it refuses writes.
    pub write_failed: bool,
    /// Whether it could not make that file shorter the last time, so that it grows.
    pub rewrite_failed: bool,
    /// Whether it could not write a snapshot the last time.
    pub snapshot_failed: bool,
    /// Bytes of the append-only file; 0 without one.
    pub file_bytes: u64,
}

/// A replica's connection to its primary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Link {
    /// Not a replica.
    #[default]
    None,
    /// Up. Whether it is in sync: [`Topology::in_sync`](super::Topology::in_sync).
    Up,
    /// Full sync in progress.
    Syncing,
    /// Down for this many seconds.
    Down(u64),
    /// Never up since it started or became a replica: it may have no data.
    Never,
}

/// One line of a node's table.
#[derive(Clone, Debug, PartialEq)]
pub struct Peer {
    /// The id of the node.
    pub id: NodeId,
    /// Its address as known to the viewer; `None` if unknown.
    pub ip: Option<IpAddr>,
    /// Its pod: the first label of its announced host name.
    pub pod: Option<String>,
    /// Its primary, for a replica.
    pub primary: Option<NodeId>,
    /// Whether it is in handshake: known by MEET only, under a temporary id.
    pub handshake: bool,
    /// Whether the majority of primaries marked it as failed (`fail`).
    pub failed: bool,
    /// Whether only the viewer marked it as failed (`fail?`).
    pub suspected: bool,
    /// Whether the viewer has a connection to it.
    pub connected: bool,
    /// Its config epoch.
    pub epoch: u64,
    /// The slots that it owns, as known to the viewer.
    pub slots: Slots,
}

/// A node's table (`CLUSTER NODES`), in the order of the ids: a plan for 300 nodes looks up each of them in each table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table(Vec<Peer>);

impl From<Vec<Peer>> for Table {
    fn from(mut peers: Vec<Peer>) -> Self {
        peers.sort_by_key(|peer| peer.id);
        Self(peers)
    }
}

impl Deref for Table {
    type Target = [Peer];

    fn deref(&self) -> &[Peer] {
        &self.0
    }
}

impl<'a> IntoIterator for &'a Table {
    type Item = &'a Peer;
    type IntoIter = slice::Iter<'a, Peer>;

    fn into_iter(self) -> slice::Iter<'a, Peer> {
        self.0.iter()
    }
}

impl Table {
    fn get(&self, id: NodeId) -> Option<&Peer> {
        self.0.binary_search_by_key(&id, |peer| peer.id).ok().map(|index| &self.0[index])
    }
}

impl Node {
    /// Its entry for itself. Redis always has one; a table without it is treated as that of a new node.
    pub fn own(&self) -> Option<&Peer> {
        self.table.get(self.id)
    }

    /// Its entry for another node.
    pub fn peer(&self, id: NodeId) -> Option<&Peer> {
        self.table.get(id).filter(|peer| !peer.handshake)
    }

    /// The slots that it claims to own.
    pub fn slots(&self) -> Slots {
        self.own().map(|own| own.slots.clone()).unwrap_or_default()
    }

    /// Its primary, for a replica.
    pub fn primary(&self) -> Option<NodeId> {
        self.own().and_then(|own| own.primary)
    }

    /// Its config epoch.
    pub fn epoch(&self) -> u64 {
        self.own().map_or(0, |own| own.epoch)
    }

    /// Whether its table has no other node, not even one in handshake.
    pub fn alone(&self) -> bool {
        self.table.iter().all(|peer| peer.id == self.id)
    }

    /// Whether it has no keys, no slots and no primary, and no other node's address: what it met was reset meanwhile, and gossip
    /// brings it no other.
    pub fn isolated(&self) -> bool {
        let unknown = |peer: &Peer| peer.id == self.id || peer.ip.is_none() && !peer.handshake;
        self.table.iter().all(unknown)
            && self.keys == 0
            && self.slots().is_empty()
            && self.primary().is_none()
    }

    /// Whether it is empty: no other nodes, keys or slots.
    pub fn blank(&self) -> bool {
        self.alone() && self.keys == 0 && self.slots().is_empty()
    }
}
