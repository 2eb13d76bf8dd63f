//! Executes a plan. The id of each node is checked first, its role and epoch before commands that could do harm, and the lease
//! before every command. The first error ends the plan, since the cluster is then not what the plan was made for.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    slice,
    time::{Duration, Instant},
};

use futures_util::{TryFutureExt, future::join_all};
use redis::{Cmd, FromRedisValue, Pipeline, cmd, pipe};

use super::{Access, COMMAND_DEADLINE, CommandError, Connection, parse};
use crate::plan::{Action, Move, NodeAddress, NodeId, Slots};

/// Maximum number of slots that are migrated together.
const SLOTS_AT_ONCE: usize = 16;
/// Maximum number of keys in slots that are migrated together, unless one slot has more: slots with many keys would be open for
/// as long as all of their keys take.
const KEYS_TOGETHER: u64 = 1000;
/// Maximum number of keys in a batch.
const KEYS_AT_ONCE: usize = 100;
/// Maximum bytes in a batch, unless one key is larger: both nodes block while a batch is migrated.
const BYTES_AT_ONCE: u64 = 8 << 20;
/// Larger keys, in bytes, are not migrated: both nodes would block for longer than clients and the other nodes wait.
const KEY_LIMIT: u64 = 64 << 20;
/// Maximum number of keys of a slot whose size is checked before it is opened.
const KEYS_CHECKED: usize = 10_000;
/// Timeout of a batch: this, plus a second for each [`BYTES_PER_SECOND`].
const MIGRATE_DEADLINE: Duration = Duration::from_secs(5);
const BYTES_PER_SECOND: u64 = 20 << 20;
/// Timeout for replicas of the destination to acknowledge all that it has.
const WAIT_LIMIT: Duration = Duration::from_secs(1);
/// How long clients cannot write to a primary that is held. If nobody goes on from there, they can again.
pub const HOLD: Duration = Duration::from_secs(60);
/// Keeps replicas from being promoted. The pods' last script looks for it: their primaries do not hand over then.
pub(super) const NO_FAILOVER: &str = "cluster-replica-no-failover";
/// How long a plan may migrate slots before the cluster is observed again: a fault that no watched object shows waits for as
/// long, and for a batch of keys.
const MOVE_BUDGET: Duration = Duration::from_secs(1);

/// Why a plan was interrupted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ActError {
    /// Another replica may be the leader.
    #[error("this replica is no longer the leader")]
    NotLeading,
    /// No response.
    #[error("cannot reach the Redis of pod `{pod}`")]
    Unreachable {
        /// The pod.
        pod: String,
        /// What went wrong.
        source: CommandError,
    },
    /// Another node responded.
    #[error("expected node {expected} at pod `{pod}`, found {found}")]
    Replaced {
        /// The pod.
        pod: String,
        /// The node that the plan was made for.
        expected: NodeId,
        /// The node that responded.
        found: String,
    },
    /// The node was promoted or demoted since it was observed.
    #[error("the node of pod `{pod}` was {expected} when it was observed, and is {found} now")]
    Changed {
        /// The pod.
        pod: String,
        /// Role and epoch that the plan was made for.
        expected: String,
        /// Role and epoch now.
        found: String,
    },
    /// The replicas of a receiver do not keep up.
    #[error(
        "only {acknowledged} of {expected} replicas of pod `{pod}` have all keys that were migrated to it; the others follow once all have"
    )]
    ReplicasBehind {
        /// The pod.
        pod: String,
        /// How many replicas have them.
        acknowledged: usize,
        /// How many there are.
        expected: usize,
    },
    /// A key is too large to be migrated.
    #[error("key `{key}` in slot {slot} takes {} MiB; at most {} MiB can be migrated without blocking clients", .bytes >> 20, KEY_LIMIT >> 20)]
    KeyTooLarge {
        /// The key, shortened.
        key: String,
        /// Its slot.
        slot: u16,
        /// The memory that it takes.
        bytes: u64,
    },
    /// Redis refused a command.
    #[error("Redis in pod `{pod}` refused")]
    Refused {
        /// The pod.
        pod: String,
        /// The command and the error.
        source: CommandError,
    },
}

/// Decides whether to continue.
pub trait Permit: Send + Sync {
    /// Whether this replica is the leader for at least this long.
    fn holds_for(&self, time: Duration) -> bool;
    /// Whether to stop after the current batch of keys: something about the cluster changed, and perhaps needs a repair.
    fn should_yield(&self) -> bool {
        false
    }
}

/// A permit without conditions.
#[derive(Clone, Copy, Debug)]
pub struct Always;

impl Permit for Always {
    fn holds_for(&self, _: Duration) -> bool {
        true
    }
}

/// What was done.
#[derive(Debug, Default)]
pub struct Done {
    /// Actions that were carried out.
    pub actions: usize,
    /// Slots that were migrated.
    pub slots: u64,
    /// Why slots were skipped, if any: [`ActError::KeyTooLarge`]. The others were migrated.
    pub skipped: Option<ActError>,
    /// Whether slots are left that were to be migrated: the time was up, or the permit said so.
    pub interrupted: bool,
    /// Slots that were left open by that.
    pub left_open: BTreeSet<u16>,
}

impl Done {
    fn add(&mut self, other: Self) {
        self.actions += other.actions;
        self.slots += other.slots;
        self.skipped = other.skipped.or(self.skipped.take());
        self.interrupted |= other.interrupted;
        self.left_open.extend(other.left_open);
    }
}

/// Carries out the actions in their order.
///
/// # Errors
/// At the first that cannot be carried out. Those before it stay done; the plan is simply made anew.
pub async fn act(access: &Access, permit: &dyn Permit, actions: &[Action]) -> Result<Done, ActError> {
    let actor = || Actor { access, permit, connections: BTreeMap::new() };
    let mut done = Done::default();
    let moves: Vec<&Move> = actions
        .iter()
        .filter_map(|action| if let Action::Move(moving) = action { Some(moving) } else { None })
        .collect();
    if moves.len() == actions.len() {
        // They are between different nodes. One that fails does not interrupt the others in the middle of a slot.
        let moved = moves.into_iter().map(|moving| async move { actor().slots(moving).await });
        for result in join_all(moved).await {
            done.add(result?);
        }
        return Ok(done);
    }
    let mut actor = actor();
    for action in actions {
        if let Action::Move(moving) = action {
            done.add(actor.slots(moving).await?);
        } else {
            actor.one(action).await?;
            done.actions += 1;
        }
        if done.interrupted {
            break;
        }
    }
    Ok(done)
}

struct Actor<'a> {
    access: &'a Access,
    permit: &'a dyn Permit,
    connections: BTreeMap<(IpAddr, NodeId), Connection>,
}

impl Actor<'_> {
    /// A connection to the node that is meant, and to no other.
    async fn at(&mut self, address: &NodeAddress) -> Result<Connection, ActError> {
        if let Some(connection) = self.connections.get(&(address.ip, address.id)) {
            return Ok(connection.clone());
        }
        let unreachable = |source| ActError::Unreachable { pod: address.pod.clone(), source };
        let mut connection = self.access.connect(address.ip).await.map_err(unreachable)?;
        self.still_leads(COMMAND_DEADLINE)?;
        let table: String =
            connection.send("NODES", cmd("CLUSTER").arg("NODES")).await.map_err(unreachable)?;
        // An unreadable table is not that of the node that was observed.
        let node = parse::node(&table, "", "", 0).ok();
        let hostname = node.as_ref().and_then(|node| node.hostname.clone());
        let found = node.as_ref().map(|node| node.id.to_string()).unwrap_or_default();
        if !self.access.is_of(&address.pod, hostname.as_deref()) {
            let found = format!("{found} of {}", hostname.as_deref().unwrap_or("an unknown host"));
            return Err(ActError::Replaced { pod: address.pod.clone(), expected: address.id, found });
        }
        if found != address.id.to_string() {
            return Err(ActError::Replaced { pod: address.pod.clone(), expected: address.id, found });
        }
        self.connections.insert((address.ip, address.id), connection.clone());
        Ok(connection)
    }

    /// To be asked as late as can be: the command is the next thing that happens.
    fn still_leads(&self, time: Duration) -> Result<(), ActError> {
        if self.permit.holds_for(time) { Ok(()) } else { Err(ActError::NotLeading) }
    }

    async fn send(
        &mut self,
        address: &NodeAddress,
        name: &'static str,
        command: &Cmd,
    ) -> Result<(), ActError> {
        let mut connection = self.at(address).await?;
        self.still_leads(COMMAND_DEADLINE)?;
        let refused = |source| ActError::Refused { pod: address.pod.clone(), source };
        connection.send::<()>(name, command).await.map_err(refused)
    }

    /// Whether the node has still the role and the epoch that the plan was made for.
    async fn is_unchanged(&mut self, address: &NodeAddress) -> Result<(), ActError> {
        let mut connection = self.at(address).await?;
        self.still_leads(COMMAND_DEADLINE)?;
        let refused = |source| ActError::Refused { pod: address.pod.clone(), source };
        let table: String = connection.send("NODES", cmd("CLUSTER").arg("NODES")).await.map_err(refused)?;
        // Without a line of its own, it is not the node that was observed.
        let own = parse::node(&table, "", "", 0).map_or((None, 0), |node| (node.primary(), node.epoch()));
        let expected = (address.primary, address.epoch);
        if own == expected {
            return Ok(());
        }
        let words = |(primary, epoch): (Option<NodeId>, u64)| match primary {
            None => format!("a primary with epoch {epoch}"),
            Some(primary) => format!("a replica of {primary} with epoch {epoch}"),
        };
        Err(ActError::Changed { pod: address.pod.clone(), expected: words(expected), found: words(own) })
    }

    async fn one(&mut self, action: &Action) -> Result<(), ActError> {
        if let Some(node) = action.precondition() {
            self.is_unchanged(node).await?;
        }
        let cluster = || cmd("CLUSTER");
        match action {
            Action::SetEpoch { node, epoch } => {
                self.send(node, "SET-CONFIG-EPOCH", cluster().arg("SET-CONFIG-EPOCH").arg(*epoch)).await
            }
            Action::Meet { viewer, node } => {
                // An introduction to the wrong cluster merges the two and destroys data, so who is there
                // is asked for now, not when the plan was made.
                self.connections.remove(&(node.ip, node.id));
                self.at(node).await?;
                let port = self.access.port;
                self.send(viewer, "MEET", cluster().arg("MEET").arg(node.ip.to_string()).arg(port)).await
            }
            // The caller deletes pods: this only speaks with Redis.
            Action::Restart { .. } => Ok(()),
            Action::AddSlots { node, slots } => {
                let mut command = cluster();
                command.arg("ADDSLOTSRANGE");
                for (first, last) in slots.ranges() {
                    command.arg(*first).arg(*last);
                }
                self.send(node, "ADDSLOTSRANGE", &command).await
            }
            Action::Replicate { node, primary } => {
                self.send(node, "REPLICATE", cluster().arg("REPLICATE").arg(primary.to_string())).await
            }
            Action::CopyFunctions { from, to } => self.copy_functions(from, to).await,
            Action::Forget { node, id } => {
                match self.send(node, "FORGET", cluster().arg("FORGET").arg(id.to_string())).await {
                    // Somebody forgot it already, which is what was wanted.
                    Err(ActError::Refused { source, .. }) if source.message().contains("Unknown node") => {
                        Ok(())
                    }
                    result => result,
                }
            }
            Action::Reset { node } => {
                let mut done = self.send(node, "RESET", cluster().arg("RESET").arg("HARD")).await;
                if done.is_ok() {
                    // It is empty in memory alone: with a restart, its append-only file would bring back what it had.
                    done = self.send(node, "FLUSHALL", &cmd("FLUSHALL")).await;
                }
                // Its id is another now.
                self.connections.remove(&(node.ip, node.id));
                done
            }
            Action::Empty { node } => self.send(node, "FLUSHALL", &cmd("FLUSHALL")).await,
            Action::Failover { node } => self.send(node, "FAILOVER", cluster().arg("FAILOVER")).await,
            Action::Elect { node } => {
                self.send(node, "FAILOVER", cluster().arg("FAILOVER").arg("FORCE")).await
            }
            Action::TakeOver { node } => {
                self.send(node, "FAILOVER", cluster().arg("FAILOVER").arg("TAKEOVER")).await
            }
            Action::Hold { node } => {
                self.send(node, "CONFIG SET", cmd("CONFIG").arg("SET").arg(NO_FAILOVER).arg("yes")).await?;
                if node.primary.is_some() {
                    // It could not take over what its primary still sends.
                    return Ok(());
                }
                let milliseconds = u64::try_from(HOLD.as_millis()).unwrap_or(u64::MAX);
                let pause = cmd("CLIENT").arg("PAUSE").arg(milliseconds).arg("WRITE").take();
                self.send(node, "CLIENT PAUSE", &pause).await
            }
            Action::Release { node } => {
                self.send(node, "CLIENT UNPAUSE", cmd("CLIENT").arg("UNPAUSE")).await?;
                self.send(node, "CONFIG SET", cmd("CONFIG").arg("SET").arg(NO_FAILOVER).arg("no")).await
            }
            Action::AssignSlots { nodes, slots, owner } => self.set_slots(nodes, slots, "NODE", *owner).await,
            Action::Stable { node, slot } => {
                self.send(node, "SETSLOT", cluster().arg("SETSLOT").arg(*slot).arg("STABLE")).await
            }
            Action::Import { node, slots, from } => {
                self.set_slots(slice::from_ref(node), slots, "IMPORTING", *from).await
            }
            Action::Export { node, slots, to } => {
                self.set_slots(slice::from_ref(node), slots, "MIGRATING", *to).await
            }
            Action::Keys { from, to, slots, copies } => {
                self.keys(from, to, slots, *copies, &|| false).await.map(drop)
            }
            Action::Move(moving) => self.slots(moving).await.map(drop),
        }
    }

    async fn copy_functions(&mut self, from: &NodeAddress, to: &NodeAddress) -> Result<(), ActError> {
        let mut connection = self.at(from).await?;
        self.still_leads(COMMAND_DEADLINE)?;
        let refused = |source| ActError::Refused { pod: from.pod.clone(), source };
        let libraries: Vec<u8> =
            connection.send("FUNCTION DUMP", cmd("FUNCTION").arg("DUMP")).await.map_err(refused)?;
        self.send(to, "FUNCTION RESTORE", cmd("FUNCTION").arg("RESTORE").arg(libraries)).await
    }

    /// `CLUSTER SETSLOT` for all slots at once, on all nodes at the same time.
    async fn set_slots(
        &mut self,
        nodes: &[NodeAddress],
        slots: &Slots,
        state: &str,
        id: NodeId,
    ) -> Result<(), ActError> {
        let commands = for_each(slots, |slot| {
            cmd("CLUSTER").arg("SETSLOT").arg(slot).arg(state).arg(id.to_string()).take()
        });
        let mut connections = vec![];
        for node in nodes {
            connections.push((self.at(node).await?, node));
        }
        self.still_leads(COMMAND_DEADLINE)?;
        let sent = connections.iter_mut().map(|(connection, node)| {
            let refused = |source| ActError::Refused { pod: node.pod.clone(), source };
            connection.send_all::<()>("SETSLOT", &commands).map_err(refused)
        });
        join_all(sent).await.into_iter().collect()
    }

    /// Asks a node several questions at once.
    async fn ask<T: FromRedisValue>(
        &mut self,
        address: &NodeAddress,
        name: &'static str,
        questions: &Pipeline,
    ) -> Result<T, ActError> {
        let mut connection = self.at(address).await?;
        self.still_leads(COMMAND_DEADLINE)?;
        let refused = |source| ActError::Refused { pod: address.pod.clone(), source };
        connection.send_all(name, questions).await.map_err(refused)
    }

    /// Moves slots, a group at a time, until all are moved, time is up or something more urgent waits; then it stops after the
    /// current batch of keys, also in the middle of a group.
    async fn slots(&mut self, moving: &Move) -> Result<Done, ActError> {
        let started = Instant::now();
        let permit = self.permit;
        let ends = || started.elapsed() > MOVE_BUDGET || permit.should_yield();
        let mut done = Done { actions: 1, ..Done::default() };
        let mut left = moving.slots.clone();
        let mut begun = false;
        'groups: while !left.is_empty() {
            if std::mem::replace(&mut begun, true) && ends() {
                done.interrupted = true;
                break;
            }
            let group_started = Instant::now();
            let mut group = self.group(&moving.from, &left).await?;
            left = left.minus(&group);
            if !moving.open {
                for (slot, too_large) in self.too_large_keys(&moving.from, &group).await? {
                    group = group.minus(&Slots::range(slot, slot));
                    done.skipped = Some(too_large);
                }
            }
            if group.is_empty() {
                continue;
            }
            for step in moving.steps(&group) {
                if let Action::Keys { from, to, slots, copies } = &step {
                    if !self.keys(from, to, slots, *copies, &ends).await? {
                        done.interrupted = true;
                        done.left_open.extend(group.iter());
                        break 'groups;
                    }
                } else {
                    Box::pin(self.one(&step)).await?;
                }
            }
            self.access.metrics.slots_moved(group.len(), group_started.elapsed());
            done.slots += group.len() as u64;
        }
        if moving.open && done.interrupted {
            done.left_open.extend(left.iter());
        }
        Ok(done)
    }

    /// The first of these slots, as many as are migrated together.
    async fn group(&mut self, from: &NodeAddress, slots: &Slots) -> Result<Slots, ActError> {
        let first: Slots = slots.iter().take(SLOTS_AT_ONCE).collect();
        let questions = for_each(&first, |slot| cmd("CLUSTER").arg("COUNTKEYSINSLOT").arg(slot).take());
        let counts: Vec<u64> = self.ask(from, "COUNTKEYSINSLOT", &questions).await?;
        let (count, _) = batch(&counts, KEYS_TOGETHER);
        Ok(first.iter().take(count).collect())
    }

    /// Keys in these slots, each with its slot: at most so many of each slot.
    async fn list(
        &mut self,
        from: &NodeAddress,
        slots: &Slots,
        limit: usize,
    ) -> Result<Vec<(u16, Vec<u8>)>, ActError> {
        let questions =
            for_each(slots, |slot| cmd("CLUSTER").arg("GETKEYSINSLOT").arg(slot).arg(limit).take());
        let keys: Vec<Vec<Vec<u8>>> = self.ask(from, "GETKEYSINSLOT", &questions).await?;
        let keys =
            slots.iter().zip(keys).flat_map(|(slot, keys)| keys.into_iter().map(move |key| (slot, key)));
        Ok(keys.collect())
    }

    /// The slots with a key that is too large to be moved, each with the first such key.
    async fn too_large_keys(
        &mut self,
        from: &NodeAddress,
        slots: &Slots,
    ) -> Result<BTreeMap<u16, ActError>, ActError> {
        let mut found = BTreeMap::new();
        for keys in self.list(from, slots, KEYS_CHECKED).await?.chunks(KEYS_AT_ONCE) {
            let sizes = self.sizes(from, keys).await?;
            for ((slot, key), bytes) in keys.iter().zip(sizes).filter(|(_, bytes)| *bytes > KEY_LIMIT) {
                let key = String::from_utf8_lossy(key).escape_debug().take(100).collect();
                found.entry(*slot).or_insert(ActError::KeyTooLarge { key, slot: *slot, bytes });
            }
        }
        Ok(found)
    }

    /// The memory that each key takes; nothing for those that are gone.
    async fn sizes(&mut self, from: &NodeAddress, keys: &[(u16, Vec<u8>)]) -> Result<Vec<u64>, ActError> {
        let mut questions = pipe();
        for (_, key) in keys {
            questions.cmd("MEMORY").arg("USAGE").arg(key);
        }
        let sizes: Vec<Option<u64>> = self.ask(from, "MEMORY USAGE", &questions).await?;
        Ok(sizes.into_iter().map(Option::unwrap_or_default).collect())
    }

    /// Moves the keys of open slots in batches. The source deletes a batch at once, so before the next one, and before the first,
    /// the receiver's replicas must have all that it has: then at most one batch is without a copy, also after an interruption.
    /// Whether all are moved: it stops after a batch when `ends` says so.
    async fn keys(
        &mut self,
        from: &NodeAddress,
        to: &NodeAddress,
        slots: &Slots,
        copies: usize,
        ends: &(dyn Fn() -> bool + Sync),
    ) -> Result<bool, ActError> {
        // The source connects to this address.
        self.at(to).await?;
        let mut source = self.at(from).await?;
        let mut replace = false;
        loop {
            self.wait_for_copies(to, copies).await?;
            let mut keys = self.list(from, slots, KEYS_AT_ONCE).await?;
            keys.truncate(KEYS_AT_ONCE);
            if keys.is_empty() {
                return Ok(true);
            }
            let (count, bytes) = batch(&self.sizes(from, &keys).await?, BYTES_AT_ONCE);
            keys.truncate(count);
            let limit = MIGRATE_DEADLINE + Duration::from_secs((bytes / BYTES_PER_SECOND).min(5));
            // Redis takes keys of one slot in a command. Both nodes serve clients between two of them.
            for keys in keys.chunk_by(|(one, _), (other, _)| one == other) {
                self.still_leads(limit)?;
                let command = self.migrate(to, keys, replace, limit);
                match source.send_within::<()>("MIGRATE", &command, limit).await {
                    Ok(()) => {}
                    // Both hold the key, after a move that was broken off. Clients could write to the source's last.
                    Err(error) if !replace && error.message().contains("BUSYKEY") => replace = true,
                    Err(source) => return Err(ActError::Refused { pod: from.pod.clone(), source }),
                }
            }
            if ends() {
                return Ok(false);
            }
        }
    }

    /// Waits until so many replicas have what the node has.
    async fn wait_for_copies(&mut self, node: &NodeAddress, copies: usize) -> Result<(), ActError> {
        if copies == 0 {
            return Ok(());
        }
        // WAIT is about what was written before the last command of the connection.
        let mut wait = pipe();
        let limit = u64::try_from(WAIT_LIMIT.as_millis()).unwrap_or(u64::MAX);
        wait.cmd("PING").ignore().cmd("WAIT").arg(copies).arg(limit);
        let (acknowledged,): (usize,) = self.ask(node, "WAIT", &wait).await?;
        if acknowledged < copies {
            let (pod, expected) = (node.pod.clone(), copies);
            return Err(ActError::ReplicasBehind { pod, acknowledged, expected });
        }
        Ok(())
    }

    fn migrate(&self, to: &NodeAddress, keys: &[(u16, Vec<u8>)], replace: bool, limit: Duration) -> Cmd {
        let mut command = cmd("MIGRATE");
        let timeout = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
        command.arg(to.ip.to_string()).arg(self.access.port).arg("").arg(0).arg(timeout);
        if replace {
            command.arg("REPLACE");
        }
        if let Some(password) = &self.access.password {
            command.arg("AUTH").arg(password.reveal());
        }
        command.arg("KEYS");
        for (_, key) in keys {
            command.arg(key);
        }
        command
    }
}

/// One command for each slot.
fn for_each(slots: &Slots, command: impl Fn(u16) -> Cmd) -> Pipeline {
    let mut commands = pipe();
    for slot in slots.iter() {
        commands.add_command(command(slot));
    }
    commands
}

/// How many of these sizes are taken at once, the first in any case, and their sum.
fn batch(sizes: &[u64], limit: u64) -> (usize, u64) {
    let (mut count, mut sum) = (0, 0);
    for size in sizes {
        if count > 0 && sum + size > limit {
            break;
        }
        (count, sum) = (count + 1, sum + size);
    }
    (count, sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_are_bounded_and_hold_one_at_least() {
        assert_eq!(batch(&[10, 20], 100), (2, 30));
        assert_eq!(batch(&[99, 1, 1], 100), (2, 100));
        assert_eq!(batch(&[101, 1], 100), (1, 101));
    }
}
