//! Decides what to do next with a cluster: pure functions, tested on thousands of simulated clusters.
//!
//! [`Observed`] is the raw observation, [`Topology`] is the cluster as derived from it, and [`plan`] tries the steps in
//! `steps` in order; the first with something to do determines the plan. There is no clock, no randomness and no state:
//! progress is stored in Redis and Kubernetes, so an interrupted plan is simply computed again.

mod copies;
mod hibernate;
mod observed;
mod placement;
mod rollout;
mod slots;
mod steps;
mod topology;
mod version;

use std::net::IpAddr;

pub use copies::{Copies, Copy};
pub use observed::{
    Fingerprint, Link, Node, NodeId, NodeIdError, Observed, PasswordHash, Passwords, Peer, Persistence, Pod,
    Table, Trouble,
};
pub use slots::{SLOTS, Slots};
pub use topology::{Absence, Member, SYNC_BYTES, SYNC_SECONDS, Topology};
pub use version::{Flavour, Version};

/// The desired cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Goal {
    /// Number of Redis nodes.
    pub size: u32,
    /// Replicas of each primary.
    pub replicas_per_shard: u32,
    /// Number of slots: [`SLOTS`], or fewer in tests.
    pub slots: u16,
    /// Whether the cluster was ever formed; if so, it is never formed again.
    pub initialized: bool,
    /// Whether to promote replicas without a vote when the majority of primaries is lost.
    pub take_over: bool,
    /// Whether to assign slots that were lost with their only owner to other nodes, without keys.
    pub accept_data_loss: bool,
    /// How pods with an outdated template are replaced.
    pub update: Update,
    /// Whether all pods are to be stopped, and their volumes kept.
    pub hibernated: bool,
}

/// How pods with an outdated template are replaced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Update {
    /// Whether a pod loses its data when it is replaced.
    pub in_memory: bool,
    /// Whether to stop before primaries.
    pub supervised: bool,
    /// Whether to replace pods in memory without replicas at once, although their keys are lost.
    pub allow_data_loss: bool,
    /// Whether the new image must not be used: its server cannot read the data of the present one.
    pub refused: bool,
}

impl Goal {
    /// Number of primaries that own slots.
    pub fn shards(&self) -> u32 {
        self.size / (1 + self.replicas_per_shard)
    }
}

/// The address of a node, and what must be found there.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodeAddress {
    /// The pod.
    pub pod: String,
    /// Its address.
    pub ip: IpAddr,
    /// The id of its Redis. An address can be reused by another pod, even of another cluster, so the id is checked
    /// before each command that could do harm.
    pub id: NodeId,
    /// Its primary, if it is a replica.
    pub primary: Option<NodeId>,
    /// Its config epoch; of a replica, that of its primary.
    pub epoch: u64,
}

/// An action on a node. Every action is idempotent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Sets the config epoch of a node that knows no other (`CLUSTER SET-CONFIG-EPOCH`).
    SetEpoch {
        /// The node.
        node: NodeAddress,
        /// The epoch.
        epoch: u64,
    },
    /// Introduces two nodes, or updates the address of one (`CLUSTER MEET`).
    Meet {
        /// The node that gets the command.
        viewer: NodeAddress,
        /// The node that it meets.
        node: NodeAddress,
    },
    /// Assigns unowned slots to a node (`CLUSTER ADDSLOTS`).
    AddSlots {
        /// The node.
        node: NodeAddress,
        /// The slots.
        slots: Slots,
    },
    /// Makes a node a replica (`CLUSTER REPLICATE`).
    Replicate {
        /// The node.
        node: NodeAddress,
        /// The primary.
        primary: NodeId,
    },
    /// Copies all function libraries to a node that has none (`FUNCTION DUMP`, `FUNCTION RESTORE`).
    CopyFunctions {
        /// A node that has them.
        from: NodeAddress,
        /// The node.
        to: NodeAddress,
    },
    /// Removes a node id from a node's table (`CLUSTER FORGET`).
    Forget {
        /// The node.
        node: NodeAddress,
        /// The id.
        id: NodeId,
    },
    /// Makes a node leave the cluster with a new id and without what it replicated (`CLUSTER RESET HARD`, `FLUSHALL`).
    Reset {
        /// The node.
        node: NodeAddress,
    },
    /// Deletes what a primary without slots holds of slots that others own (`FLUSHALL`).
    Empty {
        /// The node.
        node: NodeAddress,
    },
    /// Promotes a replica without losing writes (`CLUSTER FAILOVER`).
    Failover {
        /// The replica.
        node: NodeAddress,
    },
    /// Forces an election for a failed primary (`CLUSTER FAILOVER FORCE`): Redis does not start one if the replica has not
    /// been connected to that primary since it started.
    Elect {
        /// The replica.
        node: NodeAddress,
    },
    /// Promotes a replica without a vote (`CLUSTER FAILOVER TAKEOVER`).
    TakeOver {
        /// The replica.
        node: NodeAddress,
    },
    /// Deletes a pod, so that the StatefulSet makes it anew with the current template. The controller does that itself.
    Restart {
        /// The pod.
        pod: String,
        /// Its uid: a pod that was replaced meanwhile is left alone.
        uid: String,
        /// Whether its claim may go with it. Otherwise the pod is left alone if its claim is being deleted meanwhile.
        claim_ends: bool,
    },
    /// Keeps a replica from being promoted until its process ends (`cluster-replica-no-failover`), and clients from writing to a
    /// primary for a minute (`CLIENT PAUSE WRITE`).
    Hold {
        /// The node.
        node: NodeAddress,
    },
    /// Ends that.
    Release {
        /// The node.
        node: NodeAddress,
    },
    /// Migrates slots, a few at a time: see [`Move::steps`].
    Move(Move),
    /// Assigns slots to their owner in the tables of nodes (`CLUSTER SETSLOT NODE`).
    AssignSlots {
        /// The nodes. They get the commands at the same time.
        nodes: Vec<NodeAddress>,
        /// The slots.
        slots: Slots,
        /// Their owner.
        owner: NodeId,
    },
    /// Clears the migration state of a slot (`CLUSTER SETSLOT STABLE`).
    Stable {
        /// The node.
        node: NodeAddress,
        /// The slot.
        slot: u16,
    },
    /// Opens slots for import (`CLUSTER SETSLOT IMPORTING`).
    Import {
        /// The node.
        node: NodeAddress,
        /// The slots.
        slots: Slots,
        /// The source.
        from: NodeId,
    },
    /// Opens slots for export (`CLUSTER SETSLOT MIGRATING`).
    Export {
        /// The node.
        node: NodeAddress,
        /// The slots.
        slots: Slots,
        /// The destination.
        to: NodeId,
    },
    /// Migrates the keys of open slots (`MIGRATE`).
    Keys {
        /// The source.
        from: NodeAddress,
        /// The destination.
        to: NodeAddress,
        /// The slots.
        slots: Slots,
        /// How many replicas of the destination must acknowledge each batch.
        copies: usize,
    },
}

impl Action {
    /// The node that must still have the role and the epoch of the observation: if it was promoted or demoted since, a reset
    /// or another promotion could lose data, and a replica must not be held as a primary is.
    pub fn precondition(&self) -> Option<&NodeAddress> {
        match self {
            Self::Replicate { node, .. }
            | Self::Reset { node }
            | Self::Empty { node }
            | Self::Failover { node }
            | Self::Elect { node }
            | Self::TakeOver { node }
            | Self::Hold { node } => Some(node),
            _ => None,
        }
    }
}

/// A migration of slots from one primary to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    /// The source.
    pub from: NodeAddress,
    /// The destination.
    pub to: NodeAddress,
    /// The slots.
    pub slots: Slots,
    /// The other primaries, which learn the new owner last.
    pub others: Vec<NodeAddress>,
    /// How many replicas of the destination must acknowledge each batch of keys.
    pub copies: usize,
    /// Whether the slots are open, since their migration was interrupted: then it is finished, whatever the size of the keys.
    pub open: bool,
}

impl Move {
    /// The actions that migrate some of the slots together: a node saves its table once for all commands that it gets at once,
    /// which takes longer than the commands. The destination learns first that it owns the slots: otherwise source and
    /// destination would redirect clients to each other.
    pub fn steps(&self, slots: &Slots) -> Vec<Action> {
        let Self { from, to, others, copies, .. } = self;
        let slots = || slots.clone();
        let assign = |nodes: Vec<NodeAddress>| Action::AssignSlots { nodes, slots: slots(), owner: to.id };
        vec![
            Action::Import { node: to.clone(), slots: slots(), from: from.id },
            Action::Export { node: from.clone(), slots: slots(), to: to.id },
            Action::Keys { from: from.clone(), to: to.clone(), slots: slots(), copies: *copies },
            assign(vec![to.clone()]),
            assign(vec![from.clone()]),
            assign(others.clone()),
        ]
    }
}

/// The step of a plan: the first that has something to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The cluster is up to date.
    Settled,
    /// The operator waits.
    Wait(Wait),
    /// Forming the cluster.
    Form,
    /// Updating node addresses.
    HealAddresses,
    /// Reconnecting replicas to their primaries.
    Relink,
    /// Finishing interrupted slot migrations.
    CloseSlots,
    /// Forgetting removed nodes.
    Forget,
    /// Introducing members again that the others were told to forget.
    Reintroduce,
    /// Adding new nodes.
    Join,
    /// Copying function libraries to new primaries.
    Functions,
    /// Making replicas of nodes, or primaries of replicas.
    Roles,
    /// Migrating slots.
    Move,
    /// Removing drained nodes.
    Shrink,
    /// Moving a replica to another shard, because two copies of its shard are on one Kubernetes node.
    Spread,
    /// Promoting a replica, because too many primaries are on one Kubernetes node or in one zone.
    Balance,
    /// Promoting replicas without a vote, because the majority of primaries is lost.
    TakeOver,
    /// Forcing an election.
    Elect,
    /// Giving slots back to the member that the others name as their owner.
    Reclaim,
    /// Assigning lost slots to the remaining nodes: the user accepted that their keys are gone.
    AcceptLoss,
    /// Replacing pods whose template is outdated.
    Update,
    /// Stopping writes, before all pods are stopped.
    Hold,
    /// Letting clients write again, because pods are not to be stopped yet or any more.
    Release,
    /// Stopping all pods.
    Hibernate,
    /// All pods are stopped, or about to be.
    Hibernated,
}

/// What a plan waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Pods do not run, or their Redis does not respond.
    Pods,
    /// Gossip has not converged.
    Gossip,
    /// A node was told to forget members, and would tell these to forget each other for a minute.
    Bans,
    /// Redis is electing a new primary.
    Election,
    /// The majority of primaries is down, so Redis cannot elect.
    Quorum,
    /// A replica is syncing.
    Sync,
    /// No slot has an owner although the cluster was formed: its data is lost. The user has to decide.
    DataLost,
    /// Some slots were lost with their only owner.
    SlotsLost,
    /// A primary is down, its data may come back, and its replicas are not known to have all of it.
    StaleReplicas,
    /// A pod runs a node of another cluster, or one with keys that do not belong to this cluster.
    ForeignNode,
    /// The remaining nodes do not have enough memory for the data.
    Memory,
    /// Only primaries are outdated, and the user wants to replace these at a time of their choice.
    Approval,
    /// The server of the new image cannot read the data of the present one.
    Downgrade,
    /// A pod is not replaced yet: it has the only copy of its keys, and its claim is being deleted.
    Claims,
    /// A node that was promoted a moment ago is to be promoted again: with its old epoch it would win and lose at once.
    Cooldown,
    /// Kubernetes would not keep the volumes of pods that are stopped.
    Volumes,
    /// Replicas did not catch up while clients were kept from writing, so clients may write again before the next attempt.
    Writers,
}

impl Step {
    /// Whether it repairs the cluster, or is to be done before its pods are stopped. This comes before everything else that a
    /// reconcile does.
    pub fn is_repair(self) -> bool {
        matches!(
            self,
            Self::HealAddresses
                | Self::Relink
                | Self::CloseSlots
                | Self::Reclaim
                | Self::Forget
                | Self::Reintroduce
                | Self::TakeOver
                | Self::Elect
                | Self::Hold
                | Self::Release
                | Self::Hibernate
        )
    }
}

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Replicas of the StatefulSet: never fewer than the members of the cluster need.
    pub replicas: u32,
    /// The step.
    pub step: Step,
    /// The actions, in order. At most one of them is disruptive.
    pub actions: Vec<Action>,
}

/// Decides what to do next.
pub fn plan(topology: &Topology<'_>) -> Plan {
    if let Some(plan) = hibernate::asleep(topology) {
        return plan;
    }
    let (step, actions) = steps::first(topology);
    let replicas = if step == Step::Hibernate { 0 } else { steps::replicas(topology) };
    Plan { replicas, step, actions }
}

/// What lets clients write again and replicas be promoted, if nodes are held that should not be. An operator that died may have
/// left them so.
pub fn release(topology: &Topology<'_>) -> Vec<Action> {
    hibernate::release(topology).map(|(_, actions)| actions).unwrap_or_default()
}

/// What one step finds: what to do now; nothing when the next step is to be tried.
type Found = Option<(Step, Vec<Action>)>;

fn wait(wait: Wait) -> Found {
    Some((Step::Wait(wait), vec![]))
}
