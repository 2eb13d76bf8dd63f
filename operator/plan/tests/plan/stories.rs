//! Faults at any moment of a change: made-up stories, and those that once went wrong.

use std::collections::BTreeSet;

use proptest::{prelude::*, test_runner::RngSeed};
use redis_operator_plan::Topology;

use super::{
    driver::{Operator, SLOTS, formed, primaries},
    model::Model,
};

#[derive(Clone, Debug)]
enum Fault {
    Replace(u32, u32),
    CutOff(u32, u32),
    LoseGossip(u64),
    KillOperator(usize),
    Resize(u32),
    CutOffTwo(u32, u32, u32),
    Silence(u32),
    RestartAll(u32),
    Sync(u32, u32),
    LimitMemory(u64, u32),
    Terminate(u32, u32),
    Scale(u32),
    Update,
    BreakTemplate,
    Revert,
    Supervise(bool),
    Hibernate(u32),
    Forget(u32, bool, bool),
}

fn fault() -> impl Strategy<Value = Fault> {
    prop_oneof![
        (0u32..8, 1u32..4).prop_map(|(ordinal, rounds)| Fault::Replace(ordinal, rounds)),
        (0u32..8, 1u32..6).prop_map(|(ordinal, rounds)| Fault::CutOff(ordinal, rounds)),
        any::<u64>().prop_map(Fault::LoseGossip),
        (1usize..80).prop_map(Fault::KillOperator),
        (1u32..5).prop_map(Fault::Resize),
        (0u32..8, 0u32..8, 1u32..6).prop_map(|(one, two, rounds)| Fault::CutOffTwo(one, two, rounds)),
        (1u32..6).prop_map(Fault::Silence),
        (1u32..4).prop_map(Fault::RestartAll),
        (0u32..8, 1u32..6).prop_map(|(ordinal, rounds)| Fault::Sync(ordinal, rounds)),
        (100u64..200, 1u32..6).prop_map(|(limit, rounds)| Fault::LimitMemory(limit, rounds)),
        (0u32..8, 0u32..4).prop_map(|(ordinal, rounds)| Fault::Terminate(ordinal, rounds)),
        (0u32..6).prop_map(Fault::Scale),
        Just(Fault::Update),
        Just(Fault::BreakTemplate),
        Just(Fault::Revert),
        any::<bool>().prop_map(Fault::Supervise),
        (1u32..12).prop_map(Fault::Hibernate),
        (0u32..8, any::<bool>(), any::<bool>()).prop_map(|(ordinal, shard, on_the_others)| Fault::Forget(
            ordinal,
            shard,
            on_the_others
        )),
    ]
}

/// A cluster that changes from so many shards to others, and what happens to it meanwhile, in which round.
#[derive(Clone, Debug)]
struct Story {
    shards: u32,
    replicas: u32,
    persistent: bool,
    target: u32,
    /// Its user accepted that lost slots are served without their keys: nothing else may be lost by it.
    accepts_loss: bool,
    faults: Vec<(usize, Fault)>,
    /// How many Kubernetes nodes there are, and how pods are spread over them.
    hosts: (u32, u32),
    /// How many slots are migrated together.
    together: usize,
}

impl Story {
    /// On servers of each kind.
    fn ends_well(&self) {
        self.ends_well_on(false);
        self.ends_well_on(true);
    }

    /// Thirty rounds with the faults; then quiet. It settles, and no key is lost.
    fn ends_well_on(&self, valkey: bool) {
        let per_shard = 1 + self.replicas;
        let mut model = Model::new(self.shards * per_shard, self.replicas, SLOTS, self.persistent);
        model.replicas_know_open_slots = valkey;
        let (hosts, stride) = self.hosts;
        let zone = |ordinal: u32| (stride % 2 == 1).then_some(ordinal % 2);
        model.hosts = (0..40).map(|ordinal| (ordinal * stride / 2 % hosts, zone(ordinal))).collect();
        model.settle(&mut Operator::immortal(), 60);
        model.fill();
        // What users gave up is no loss.
        model.writes = self.persistent && !self.accepts_loss;
        model.goal.size = self.target * per_shard;
        model.goal.accept_data_loss = self.accepts_loss;
        let mut operator = Operator { together: self.together, ..Operator::immortal() };
        let (mut heals, mut speaks, mut synced, mut unlimited, mut wakes) = (0, 0, 0, 0, 0);
        for round in 0..30 {
            for (_, fault) in self.faults.iter().filter(|(at, _)| *at == round) {
                match fault {
                    // Losing the only copy loses data, whatever an operator does; and losing most primaries at
                    // once leaves nobody to elect their successors.
                    Fault::Replace(ordinal, starts_in) => {
                        let survives = || {
                            model.all_up()
                                && !model.is_only_copy(*ordinal)
                                && model.can_elect_without(*ordinal)
                        };
                        let loses_nothing =
                            if self.persistent { model.is_copied(*ordinal) } else { survives() };
                        if loses_nothing {
                            model.replace(*ordinal, *starts_in);
                        }
                    }
                    Fault::CutOff(ordinal, rounds) => {
                        if model.may_go(*ordinal) {
                            model.cut_off = BTreeSet::from([*ordinal]);
                            heals = round + *rounds as usize;
                        }
                    }
                    Fault::LoseGossip(bits) => model.lost_gossip = *bits,
                    Fault::KillOperator(after) => operator.dies_after = Some(operator.acted + after),
                    Fault::Resize(shards) => model.goal.size = shards * per_shard,
                    Fault::CutOffTwo(one, two, rounds) => {
                        if model.may_go(*one) && model.may_go(*two) {
                            model.cut_off = BTreeSet::from([*one, *two]);
                            heals = round + *rounds as usize;
                        }
                    }
                    Fault::Silence(rounds) => speaks = round + *rounds as usize,
                    Fault::RestartAll(starts_in) => {
                        for ordinal in model.ordinals().into_iter().filter(|_| self.persistent) {
                            model.replace(ordinal, 1 + (starts_in + ordinal) % 3);
                        }
                    }
                    Fault::Sync(ordinal, rounds) => {
                        model.syncing = BTreeSet::from([*ordinal]);
                        synced = round + *rounds as usize;
                    }
                    Fault::LimitMemory(limit, rounds) => {
                        model.memory_limit = *limit;
                        unlimited = round + *rounds as usize;
                    }
                    Fault::Terminate(ordinal, rounds) => {
                        if model.is_copied(*ordinal) {
                            model.terminate(*ordinal, *rounds);
                        }
                    }
                    Fault::Update => model.template = round as u32 + 100,
                    Fault::BreakTemplate => {
                        model.template = round as u32 + 200;
                        model.broken.insert(model.template);
                    }
                    Fault::Revert => model.template = 0,
                    Fault::Hibernate(rounds) => {
                        model.goal.hibernated = self.persistent;
                        wakes = round + *rounds as usize;
                    }
                    Fault::Forget(..) => self.forget(fault, &mut model),
                    Fault::Supervise(supervised) => model.goal.update.supervised = *supervised,
                    Fault::Scale(replicas) => {
                        if self.persistent {
                            model.scale(*replicas);
                        }
                    }
                }
            }
            if round >= heals {
                model.cut_off.clear();
            }
            if round >= synced {
                model.syncing.clear();
            }
            if round >= unlimited {
                model.memory_limit = 0;
            }
            model.goal.hibernated &= round < wakes;
            model.silent = round < speaks;
            operator.reconcile(&mut model);
            model.step();
        }
        model.heal();
        model.settle(&mut operator, 300);
        assert_eq!(model.missing_keys(), [], "{self:?}");
    }

    /// Whoever scales pods away takes away what is known of them, too.
    fn forget(&self, fault: &Fault, model: &mut Model) {
        let scales = self.faults.iter().any(|(_, fault)| matches!(fault, Fault::Scale(_)));
        if let Fault::Forget(ordinal, shard, on_the_others) = fault
            && self.persistent
            && !scales
        {
            let mut shards = model.shards().into_iter();
            let nodes = shards.find(|nodes| *shard && nodes[0] == *ordinal).unwrap_or(vec![*ordinal]);
            model.forget_by_hand(&nodes, *on_the_others);
        }
    }
}

#[test]
fn a_node_that_missed_a_failover_hears_of_it() {
    let faults = vec![(4, Fault::CutOff(0, 3)), (7, Fault::CutOff(4, 1))];
    Story {
        shards: 2,
        replicas: 1,
        persistent: false,
        target: 3,
        accepts_loss: false,
        faults,
        hosts: (3, 2),
        together: 1,
    }
    .ends_well();
}

/// Replicas of Valkey carry open slots, and refuse `SETSLOT` for them (valkey-io/valkey#1664).
#[test]
fn an_open_slot_is_closed_at_primaries_alone() {
    let mut model = formed(4, 1, false);
    model.replicas_know_open_slots = true;
    model.goal.size = 6;
    for commands in 1..60 {
        Operator::that_dies_after(commands).reconcile(&mut model);
        model.step();
    }
    model.settle(&mut Operator::immortal(), 120);
    assert_eq!(model.missing_keys(), []);
}

#[test]
fn the_receiver_of_half_a_slot_is_lost_with_the_operator() {
    let faults = vec![(2, Fault::KillOperator(6)), (4, Fault::Replace(2, 1))];
    Story {
        shards: 1,
        replicas: 1,
        persistent: false,
        target: 4,
        accepts_loss: false,
        faults,
        hosts: (3, 2),
        together: 1,
    }
    .ends_well();
}

/// Its replica was elected meanwhile, and goes with half of the pods in the round in which it is heard again.
#[test]
fn a_node_that_missed_a_failover_is_heard_when_its_successor_is_scaled_away() {
    let faults = vec![(12, Fault::CutOff(0, 3)), (15, Fault::Scale(3))];
    Story {
        shards: 3,
        replicas: 1,
        persistent: true,
        target: 3,
        accepts_loss: false,
        faults,
        hosts: (3, 2),
        together: 1,
    }
    .ends_well();
}

/// The operator dies between two keys of a slot, and the slot's owner is away until its successor is elected.
#[test]
fn the_other_half_of_a_slot_is_not_sent_to_its_former_owner() {
    let faults = vec![(5, Fault::KillOperator(27)), (6, Fault::CutOff(2, 4)), (6, Fault::Resize(1))];
    Story {
        shards: 3,
        replicas: 1,
        persistent: false,
        target: 4,
        accepts_loss: false,
        faults,
        hosts: (3, 2),
        together: 1,
    }
    .ends_well();
}

/// It is forgotten and reset, then cut off before its pod is gone.
#[test]
fn a_node_that_has_left_is_not_waited_for_while_its_pod_is_deleted() {
    let faults = vec![(6, Fault::Terminate(4, 2)), (8, Fault::CutOffTwo(4, 1, 5))];
    Story {
        shards: 4,
        replicas: 1,
        persistent: false,
        target: 1,
        accepts_loss: false,
        faults,
        hosts: (3, 2),
        together: 1,
    }
    .ends_well();
}

/// A replica that is still bound to its primary's old address hears nothing of what moves, and is elected next.
#[test]
fn slots_wait_for_replicas_that_hear_nothing() {
    let giver = vec![(0, Fault::Replace(2, 1)), (2, Fault::Replace(2, 2))];
    Story {
        shards: 3,
        replicas: 1,
        persistent: true,
        target: 2,
        accepts_loss: false,
        faults: giver,
        hosts: (3, 2),
        together: 1,
    }
    .ends_well();
    let taker = vec![(3, Fault::Replace(4, 1)), (5, Fault::Replace(4, 2))];
    Story {
        shards: 2,
        replicas: 1,
        persistent: true,
        target: 3,
        accepts_loss: false,
        faults: taker,
        hosts: (3, 2),
        together: 1,
    }
    .ends_well();
}

/// A primary that was drained becomes a replica of another and waits for its first copy: it must not succeed that one.
#[test]
fn a_replica_that_has_nothing_yet_is_not_elected() {
    let faults = vec![(0, Fault::Sync(2, 2)), (2, Fault::Replace(0, 1))];
    Story {
        shards: 4,
        replicas: 1,
        persistent: false,
        target: 2,
        accepts_loss: false,
        faults,
        hosts: (3, 2),
        together: 1,
    }
    .ends_well();
}

/// It is told to forget all others, and its replica is elected while its pod is replaced.
#[test]
fn a_primary_that_forgot_all_others_hears_of_its_successor() {
    let faults = vec![(0, Fault::Forget(2, false, false)), (2, Fault::Replace(2, 2))];
    Story {
        shards: 3,
        replicas: 1,
        persistent: true,
        target: 2,
        accepts_loss: false,
        faults,
        hosts: (1, 1),
        together: 1,
    }
    .ends_well();
}

/// Valkey's nodes pass on what it was told to forget: two nodes without slots are left with each other, and hear from nobody else.
#[test]
fn a_node_that_forgot_all_others_makes_them_forget_one_another() {
    let faults = vec![(2, Fault::Forget(2, false, false)), (3, Fault::Forget(0, false, true))];
    Story {
        shards: 1,
        replicas: 1,
        persistent: true,
        target: 2,
        accepts_loss: false,
        faults,
        hosts: (1, 1),
        together: 1,
    }
    .ends_well();
}

/// Valkey's nodes pass on what some were told to forget, until hardly any knows another; then all restart. A replica that starts first
/// does not take over from a primary that would be foreign to it.
#[test]
fn no_replica_takes_over_before_forgotten_nodes_are_back() {
    let restarts = |round| (round, Fault::RestartAll(1));
    let grows = vec![
        (4, Fault::Replace(0, 2)),
        (4, Fault::Resize(3)),
        (13, Fault::Forget(3, true, false)),
        restarts(17),
    ];
    let stories = [
        (2, 3, vec![(7, Fault::Forget(2, false, false)), restarts(13)]),
        (3, 2, vec![(8, Fault::Forget(0, true, false)), restarts(14)]),
        (1, 4, grows),
    ];
    for (shards, target, faults) in stories {
        Story {
            shards,
            replicas: 2,
            persistent: true,
            target,
            accepts_loss: true,
            faults,
            hosts: (2, 3),
            together: 1,
        }
        .ends_well();
    }
}

/// All others were told to forget it, and its replica was elected while it was away: they do not list it when it comes back.
#[test]
fn a_forgotten_primary_becomes_the_replica_of_its_successor() {
    let thaws = vec![(0, Fault::Forget(2, false, true)), (14, Fault::CutOff(2, 3))];
    let restarts =
        vec![(0, Fault::CutOff(1, 1)), (0, Fault::Forget(0, false, true)), (1, Fault::Replace(0, 3))];
    for faults in [thaws, restarts] {
        Story {
            shards: 3,
            replicas: 1,
            persistent: true,
            target: 3,
            accepts_loss: false,
            faults,
            hosts: (1, 1),
            together: 1,
        }
        .ends_well();
    }
}

/// While all pods restart, it is told to forget all others, and its replica is elected. Introduced at once, it would make Valkey's nodes
/// forget one another and the successor.
#[test]
fn a_node_that_forgot_all_others_is_introduced_when_it_passes_that_on_no_more() {
    let faults = vec![(0, Fault::RestartAll(2)), (3, Fault::Forget(0, false, false))];
    Story {
        shards: 3,
        replicas: 2,
        persistent: true,
        target: 1,
        accepts_loss: false,
        faults,
        hosts: (4, 3),
        together: 1,
    }
    .ends_well();
}

/// The others are told to forget it when all pods are back from a hibernation: it is still known to be of this cluster.
#[test]
fn a_node_that_is_forgotten_after_a_hibernation_is_introduced_again() {
    let faults = vec![(7, Fault::Hibernate(10)), (18, Fault::Forget(0, false, true))];
    Story {
        shards: 1,
        replicas: 0,
        persistent: true,
        target: 3,
        accepts_loss: false,
        faults,
        hosts: (1, 1),
        together: 1,
    }
    .ends_well();
}

/// A primary restarts with the slot that it got last, which its successor has keys of and does not know. All other slots come back.
#[test]
fn a_successor_that_did_not_hear_of_the_last_slot_becomes_a_replica() {
    let faults = vec![(0, Fault::BreakTemplate), (8, Fault::Resize(3)), (24, Fault::Replace(6, 1))];
    Story {
        shards: 3,
        replicas: 2,
        persistent: true,
        target: 2,
        accepts_loss: false,
        faults,
        hosts: (1, 1),
        together: 1,
    }
    .ends_well();
}

/// It has keys of a slot that it does not own, and its shard is to be removed. Redis does not reset a primary with keys: it is emptied first.
#[test]
fn a_successor_that_did_not_hear_of_the_last_slot_is_removed() {
    let faults = vec![(1, Fault::Terminate(0, 0)), (0, Fault::BreakTemplate)];
    Story {
        shards: 2,
        replicas: 1,
        persistent: true,
        target: 1,
        accepts_loss: false,
        faults,
        hosts: (1, 1),
        together: 1,
    }
    .ends_well();
}

/// It has what its primary had before both restarted, but was not connected to it since, and does not stand for election.
#[test]
fn a_replica_that_started_without_its_primary_is_elected() {
    let mut model = formed(6, 1, true);
    let lost = primaries(&model)[0];
    for ordinal in model.ordinals() {
        model.replace(ordinal, if ordinal == lost { 1000 } else { 1 });
    }
    for _ in 0..30 {
        Operator::immortal().reconcile(&mut model);
        model.step();
    }
    assert_eq!(model.missing_keys(), []);
}

/// The same stories every time, so that what fails is the change at hand. `PROPTEST_CASES` asks for as many new ones.
fn stories() -> ProptestConfig {
    let new =
        ProptestConfig { max_shrink_iters: 300, failure_persistence: None, ..ProptestConfig::default() };
    if std::env::var_os("PROPTEST_CASES").is_some() {
        return new;
    }
    ProptestConfig { cases: 700, rng_seed: RngSeed::Fixed(7), ..new }
}

proptest! {
    #![proptest_config(stories())]

    /// Up to four faults at any time while a cluster changes its shape.
    #[test]
    fn faults_end_well(
        shards in 1u32..5,
        replicas in 0u32..3,
        persistent in any::<bool>(),
        target in 1u32..5,
        accepts_loss in any::<bool>(),
        faults in prop::collection::vec((0usize..25, fault()), 0..5),
        hosts in (1u32..6, 1u32..5),
        together in 1usize..7,
        valkey in any::<bool>(),
    ) {
        let story = Story { shards, replicas, persistent, target, accepts_loss, faults, hosts, together };
        story.ends_well_on(valkey);
    }
}

impl Model {
    /// Ends the faults.
    fn heal(&mut self) {
        self.cut_off.clear();
        self.syncing.clear();
        (self.silent, self.memory_limit) = (false, 0);
        self.goal.update.supervised = false;
        self.goal.hibernated = false;
        if self.broken.contains(&self.template) {
            self.template = 0;
        }
    }

    fn all_up(&self) -> bool {
        self.observe().pods.iter().all(|pod| pod.redis.is_some())
    }

    /// Whether a majority of those that own slots answers without this one.
    fn can_elect_without(&self, ordinal: u32) -> bool {
        let observed = self.observe();
        let topology = Topology::of(self.goal, &observed);
        topology.owners().filter(|member| member.pod.ordinal != ordinal).count() * 2 > topology.owned.len()
    }
}
