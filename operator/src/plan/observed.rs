//! What was seen of one cluster at one moment: its pods, and what the Redis in each of them says.
//!
//! Plain data. A Redis that could not be asked is a value, not an error: [`Pod::redis`] is then `None`.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    net::IpAddr,
    str::FromStr,
};

use super::Slots;

/// The 160-bit name by which Redis nodes know one another, written as 40 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
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

/// The pods of a cluster, lowest ordinal first, and the keys in slots that are half-way.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observed {
    /// Every pod of the StatefulSet that exists, lowest ordinal first.
    pub pods: Vec<Pod>,
    /// `spec.replicas` of the StatefulSet; `None` when there is none.
    pub replicas: Option<u32>,
    /// Ordinals of the pods that owned slots when the status was last written.
    pub last_owners: BTreeSet<u32>,
    /// Whether a majority of the primaries has been missing for so long that replicas may take over without a vote.
    pub takeover_due: bool,
    /// Whether an owner with replicas has been missing for so long that Redis should have elected one of them.
    pub election_due: bool,
    /// Whether the nodes that leave have owned nothing for so long that they may be removed.
    pub leave_due: bool,
    /// For each slot that some node has open, how many keys each node that answers holds in it.
    pub open_keys: BTreeMap<u16, BTreeMap<NodeId, u64>>,
}

/// A pod, and its Redis when that could be asked.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pod {
    /// Its number in the StatefulSet.
    pub ordinal: u32,
    /// The name, `<cluster>-<ordinal>`.
    pub name: String,
    /// Changes when the pod is replaced.
    pub uid: String,
    /// Where it is now.
    pub ip: Option<IpAddr>,
    /// Whether it is being deleted.
    pub terminating: bool,
    /// Whether the kubelet finds its containers ready. It does not say so of a process that hangs, or of a node that is lost.
    pub containers_ready: bool,
    /// Whether its Redis refused the password.
    pub password_rejected: bool,
    /// The Kubernetes node that it runs on.
    pub host: Option<String>,
    /// Why its container cannot start, when Kubernetes says so: `ErrImagePull: not found`.
    pub trouble: Option<String>,
    /// Revision of the pod template that it was made from.
    pub revision: Option<String>,
    /// What its Redis said; `None` when it did not answer.
    pub redis: Option<Node>,
}

/// What one Redis says about itself and the others.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Its own id.
    pub id: NodeId,
    /// Its table of the cluster, itself included.
    pub table: Vec<Peer>,
    /// `cluster_state:ok`, which it may say although its table is out of date.
    pub ok: bool,
    /// The highest epoch that it has heard of.
    pub current_epoch: u64,
    /// Keys that it holds.
    pub keys: u64,
    /// Bytes that it uses, and the most that it may (0: no limit).
    pub memory: (u64, u64),
    /// For a replica: how its connection to the primary is.
    pub link: Link,
    /// For a replica: the address at which it looks for its primary.
    pub bound: Option<IpAddr>,
    /// How far it has read its primary's stream, or written its own.
    pub offset: i64,
    /// Slots that it is moving away, and to whom.
    pub migrating: BTreeMap<u16, NodeId>,
    /// Slots that it is receiving, and from whom.
    pub importing: BTreeMap<u16, NodeId>,
    /// `redis_version`.
    pub version: String,
}

/// A replica's connection to its primary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Link {
    /// Not a replica.
    #[default]
    None,
    /// Up, and in step.
    Up,
    /// Receiving the whole data set.
    Syncing,
    /// Down for so many seconds.
    Down(u64),
    /// Not up since it started or became a replica: it may hold nothing.
    Never,
}

/// One line of a node's table.
#[derive(Clone, Debug, PartialEq)]
pub struct Peer {
    /// Whom it is about.
    pub id: NodeId,
    /// Where the viewer believes it to be; `None` when it has lost the address.
    pub ip: Option<IpAddr>,
    /// The pod that it said it is, the first label of its announced host name.
    pub pod: Option<String>,
    /// Its primary, for a replica.
    pub primary: Option<NodeId>,
    /// Whether it is known by a MEET alone, under an id that is not its own yet.
    pub handshake: bool,
    /// Whether a majority of primaries holds it for dead (`fail`).
    pub failed: bool,
    /// Whether the viewer alone holds it for dead (`fail?`).
    pub suspected: bool,
    /// Whether the viewer has a connection to it.
    pub connected: bool,
    /// The epoch of its claims.
    pub epoch: u64,
    /// The slots that it owns, as far as the viewer knows.
    pub slots: Slots,
}

impl Node {
    /// Its line about itself. Redis always writes one; a table without it counts as that of a newborn.
    pub fn own(&self) -> Option<&Peer> {
        self.table.iter().find(|peer| peer.id == self.id)
    }

    /// Its line about another.
    pub fn peer(&self, id: NodeId) -> Option<&Peer> {
        self.table.iter().find(|peer| peer.id == id && !peer.handshake)
    }

    /// The slots that it claims.
    pub fn slots(&self) -> Slots {
        self.own().map(|own| own.slots.clone()).unwrap_or_default()
    }

    /// Its primary, for a replica.
    pub fn primary(&self) -> Option<NodeId> {
        self.own().and_then(|own| own.primary)
    }

    /// The epoch of its claims.
    pub fn epoch(&self) -> u64 {
        self.own().map_or(0, |own| own.epoch)
    }

    /// Whether its table holds nobody else, not even one it is being introduced to.
    pub fn alone(&self) -> bool {
        self.table.iter().all(|peer| peer.id == self.id)
    }

    /// Whether nothing would be lost with it, and nobody would miss it.
    pub fn blank(&self) -> bool {
        self.alone() && self.keys == 0 && self.slots().is_empty()
    }
}
