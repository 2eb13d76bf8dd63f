//! What to do next with a cluster: pure, so that it can be tested on thousands of clusters without one.
//!
//! [`Observed`] is what was seen, [`Topology`] puts it in order, and [`plan`] goes through the steps in
//! `steps`, one after the other; the first that has something to do says what. There is no clock here, no randomness
//! and no memory: progress lives in Redis and in Kubernetes, so a plan that was broken off anywhere is simply
//! made anew from what is there then.

mod observed;
mod slots;
mod steps;
mod topology;

use std::net::IpAddr;

pub use observed::{Link, Node, NodeId, NodeIdError, Observed, Peer, Pod};
pub use slots::{SLOTS, Slots};
pub use topology::{Absence, Member, Topology};

/// What to bring about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Goal {
    /// Redis nodes in all.
    pub size: u32,
    /// Replicas of each primary.
    pub replicas_per_shard: u32,
    /// How many slots there are: [`SLOTS`], or fewer in tests of the model.
    pub slots: u16,
    /// Whether the cluster was formed once, after which it is never formed anew.
    pub initialized: bool,
    /// Whether replicas take over without a vote when the majority of the primaries is lost.
    pub take_over: bool,
    /// Whether slots that are lost with their only owner are assigned to other nodes, empty.
    pub accept_data_loss: bool,
}

impl Goal {
    /// How many primaries own slots.
    pub fn shards(&self) -> u32 {
        self.size / (1 + self.replicas_per_shard)
    }
}

/// Where a command goes, and whom it has to find there.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The pod.
    pub pod: String,
    /// Its address.
    pub ip: IpAddr,
    /// The id of its Redis. An address can pass to another pod, of another cluster even; the id is asked for
    /// before each command that could do harm there.
    pub id: NodeId,
}

/// One thing to do. Each can be done twice without harm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Gives a node that knows nobody the epoch of its claims.
    SetEpoch {
        /// The node.
        node: Place,
        /// The epoch.
        epoch: u64,
    },
    /// Introduces two nodes, or tells one the other's new address.
    Meet {
        /// Who is told.
        viewer: Place,
        /// Of whom.
        node: Place,
    },
    /// Lets a node claim slots that nobody owns.
    AddSlots {
        /// The node.
        node: Place,
        /// The slots.
        slots: Slots,
    },
    /// Makes a node copy a primary.
    Replicate {
        /// The node.
        node: Place,
        /// The primary.
        primary: NodeId,
    },
    /// Strikes an id from a node's table.
    Forget {
        /// The node.
        node: Place,
        /// The id.
        id: NodeId,
    },
    /// Makes a node forget the cluster, and take a new id.
    Reset {
        /// The node.
        node: Place,
    },
    /// Makes a replica take the place of its primary, without loss.
    Failover {
        /// The replica.
        node: Place,
    },
    /// Makes a replica of a lost primary ask for votes, although Redis holds its data for too old: it was not connected to that
    /// primary since it started.
    Elect {
        /// The replica.
        node: Place,
    },
    /// Makes a replica a primary without asking anybody: of a primary that owned nothing, whose replicas Redis never
    /// elects.
    TakeOver {
        /// The replica.
        node: Place,
    },
    /// Moves slots, one after the other: see [`Move::steps`].
    Move(Move),
    /// Tells a node the owner of a slot.
    Own {
        /// The node.
        node: Place,
        /// The slot.
        slot: u16,
        /// Its owner.
        owner: NodeId,
    },
    /// Closes a slot that is open on a node.
    Stable {
        /// The node.
        node: Place,
        /// The slot.
        slot: u16,
    },
    /// Opens a slot for receiving.
    Import {
        /// The node.
        node: Place,
        /// The slot.
        slot: u16,
        /// From whom.
        from: NodeId,
    },
    /// Opens a slot for giving.
    Export {
        /// The node.
        node: Place,
        /// The slot.
        slot: u16,
        /// To whom.
        to: NodeId,
    },
    /// Moves the keys of an open slot.
    Keys {
        /// From whom.
        from: Place,
        /// To whom.
        to: Place,
        /// The slot.
        slot: u16,
        /// How many replicas of the receiver have to have each batch before the next.
        copies: usize,
    },
}

/// Slots on their way from one primary to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    /// Who gives.
    pub from: Place,
    /// Who takes.
    pub to: Place,
    /// What.
    pub slots: Slots,
    /// The other primaries, which are told in the end.
    pub others: Vec<Place>,
    /// How many replicas of the receiver have to have each batch of keys before the next.
    pub copies: usize,
    /// Whether the slots are half-way already: then the move is finished, whatever keys they have.
    pub open: bool,
}

impl Move {
    /// What moving one of the slots takes. The destination is told first that it owns the slot: the source
    /// first would leave a loop in which each of them sends clients to the other.
    pub fn steps(&self, slot: u16) -> Vec<Action> {
        let Self { from, to, others, copies, .. } = self;
        let own = |node: &Place| Action::Own { node: node.clone(), slot, owner: to.id };
        let mut steps = vec![
            Action::Import { node: to.clone(), slot, from: from.id },
            Action::Export { node: from.clone(), slot, to: to.id },
            Action::Keys { from: from.clone(), to: to.clone(), slot, copies: *copies },
            own(to),
            own(from),
        ];
        steps.extend(others.iter().map(own));
        steps
    }
}

/// The step that a plan is about: the first that has something to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing is to be done.
    Settled,
    /// Something has to happen elsewhere first.
    Wait(Wait),
    /// Forming the cluster.
    Form,
    /// Telling nodes the new addresses of others.
    HealAddresses,
    /// Connecting replicas to their primaries again.
    Relink,
    /// Closing slots that were left half-way.
    CloseSlots,
    /// Striking nodes that are gone from the tables.
    Forget,
    /// Taking in new nodes.
    Join,
    /// Making replicas of nodes, or primaries of replicas.
    Roles,
    /// Moving slots.
    Move,
    /// Removing drained nodes.
    Shrink,
    /// Replicas take over without a vote, because the majority of the primaries is lost.
    TakeOver,
    /// Electing a replica that does not stand for election by itself.
    Elect,
    /// Assigning lost slots to nodes that are left: the user accepts that their keys are gone.
    AcceptLoss,
}

/// What a plan waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Pods that do not run, or whose Redis does not answer.
    Pods,
    /// Nodes that have not heard of one another's news.
    Gossip,
    /// Redis electing a new primary.
    Election,
    /// Redis cannot elect: most primaries are gone.
    Quorum,
    /// A replica that is being filled.
    Sync,
    /// No slot has an owner, though the cluster was formed once: its data is gone. Only its user can decide what then.
    DataLost,
    /// Some slots have no owner, and nobody who could be it.
    SlotsLost,
    /// A pod of ours runs a node that belongs elsewhere, or that holds keys the cluster knows nothing of.
    Stranger,
    /// The nodes that would stay cannot hold the data.
    Memory,
}

/// Which of the two controllers carries a plan out: repairs do not queue behind growth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Lane {
    /// Repairs.
    Health,
    /// Everything else.
    Topology,
}

impl Step {
    /// Who carries it out.
    pub fn lane(self) -> Lane {
        match self {
            Self::HealAddresses
            | Self::Relink
            | Self::CloseSlots
            | Self::Forget
            | Self::TakeOver
            | Self::Elect => Lane::Health,
            _ => Lane::Topology,
        }
    }
}

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// How many pods the StatefulSet should have: never fewer than members of the cluster need.
    pub replicas: u32,
    /// What it is about.
    pub step: Step,
    /// What to do, in this order. At most one of them disrupts.
    pub actions: Vec<Action>,
}

/// Says what to do next.
pub fn plan(topology: &Topology<'_>) -> Plan {
    let (step, actions) = steps::first(topology);
    Plan { replicas: steps::replicas(topology), step, actions }
}
