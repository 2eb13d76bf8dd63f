//! Clusters form and change their size and shape.

use std::collections::BTreeSet;

use redis_operator_plan::{Action, Link, Move, Observed, Plan, Step, Topology, Wait};

use super::{
    driver::{Operator, SLOTS, formed, primaries, reshape},
    model::Model,
};

#[test]
fn clusters_form() {
    for (size, replicas_per_shard) in
        [(1, 0), (2, 0), (3, 0), (5, 0), (6, 1), (9, 2), (2, 1), (12, 3), (30, 1)]
    {
        formed(size, replicas_per_shard, false);
    }
}

#[test]
fn a_cluster_forms_from_wherever_it_was_left() {
    let mut whole = Operator::immortal();
    Model::new(6, 1, SLOTS, false).settle(&mut whole, 40);
    assert!(whole.acted > 12, "{}", whole.acted);
    for dies_after in 1..=whole.acted {
        let mut operator = Operator::that_dies_after(dies_after);
        Model::new(6, 1, SLOTS, false).settle(&mut operator, 60);
    }
}

#[test]
fn a_cluster_that_changes_its_mind_while_forming() {
    for rounds in 1..6 {
        for size in [2, 3, 4, 7] {
            let mut model = Model::new(5, 0, SLOTS, false);
            for _ in 0..rounds {
                Operator::immortal().reconcile(&mut model);
                model.step();
            }
            model.goal.size = size;
            model.settle(&mut Operator::immortal(), 60);
        }
    }
}

const SHAPES: [((u32, u32), (u32, u32)); 11] = [
    ((3, 0), (5, 0)),
    ((5, 0), (3, 0)),
    ((3, 0), (1, 0)),
    ((1, 0), (3, 0)),
    ((6, 1), (8, 1)),
    ((8, 1), (6, 1)),
    ((6, 1), (4, 1)),
    ((3, 0), (6, 1)),
    ((6, 1), (3, 0)),
    ((6, 1), (6, 0)),
    ((6, 0), (6, 1)),
];

#[test]
fn clusters_change_their_shape() {
    for (from, to) in SHAPES {
        reshape(from, to, &mut Operator::immortal());
    }
}

/// The operator is killed after every single command of every change, and a new one goes on.
#[test]
fn every_prefix_of_every_action_list_converges() {
    for (from, to) in SHAPES {
        let mut whole = Operator::immortal();
        reshape(from, to, &mut whole);
        for dies_after in 1..=whole.acted {
            reshape(from, to, &mut Operator::that_dies_after(dies_after));
        }
    }
}

/// An operator was gone before any key of them was migrated.
#[test]
fn open_slots_of_a_pair_are_finished_together() {
    let mut model = formed(3, 0, false);
    model.goal.size = 5;
    while model.plan().step != Step::Move {
        Operator::immortal().reconcile(&mut model);
        model.step();
    }
    let plan = model.plan();
    let mut expected = vec![];
    for action in &plan.actions {
        let Action::Move(moving) = action else { panic!("{plan:?}") };
        let slots = moving.slots.highest(4);
        for step in &moving.steps(&slots)[..2] {
            model.act(step).unwrap();
        }
        expected.push(Action::Move(Move { slots, open: true, ..moving.clone() }));
    }
    let mut plan = model.plan();
    assert_eq!(plan.step, Step::CloseSlots);
    plan.actions.sort_by_key(|action| !expected.starts_with(std::slice::from_ref(action)));
    assert_eq!((plan.actions, expected.len()), (expected, 2));
}

#[test]
fn all_addresses_change_at_once() {
    let mut model = formed(6, 1, true);
    for ordinal in 0..6 {
        model.replace(ordinal, 2);
    }
    model.settle(&mut Operator::immortal(), 40);
    assert_eq!(model.missing_keys(), []);
}

#[test]
fn a_pod_that_never_starts_does_not_hold_up_shrinking() {
    let mut model = formed(3, 0, false);
    model.goal.size = 4;
    Operator::immortal().reconcile(&mut model);
    model.step();
    model.replace(3, 1000);
    for _ in 0..5 {
        model.step();
        assert_eq!(Operator::immortal().reconcile(&mut model).step, Step::Wait(Wait::Pods));
    }
    model.goal.size = 3;
    model.settle(&mut Operator::immortal(), 10);
}

/// A cluster of five nodes on its way to three, so many rounds later.
fn shrinking(persistent: bool, rounds: usize) -> Model {
    let mut model = formed(5, 0, persistent);
    model.goal.size = 3;
    for _ in 0..rounds {
        Operator::that_dies_after(9).reconcile(&mut model);
        model.step();
    }
    model
}

/// All hang, are gone, or refuse the password.
#[test]
fn no_pod_is_removed_while_nobody_answers() {
    for rounds in 0..8 {
        for persistent in [false, true] {
            let mut model = shrinking(persistent, rounds);
            let before = model.replicas;
            model.silent = true;
            for _ in 0..5 {
                let plan = Operator::immortal().reconcile(&mut model);
                assert_eq!((plan.replicas, plan.step), (before, Step::Wait(Wait::Pods)), "after {rounds}");
                model.step();
            }
            model.silent = false;
            model.settle(&mut Operator::immortal(), 120);
            assert_eq!(model.missing_keys(), []);
        }
    }
}

/// A pod that has left and is still being deleted does not answer: the StatefulSet is not made larger again for it.
#[test]
fn what_has_left_does_not_come_back() {
    let model = formed(3, 0, true);
    let mut observed = model.observe();
    let mut leaver = observed.pods[2].clone();
    (leaver.ordinal, leaver.uid, leaver.redis) = (3, "leaver".into(), None);
    leaver.name = leaver.name.replace("-2", "-3");
    for (terminating, now, replicas) in [(true, 4, 3), (false, 3, 3), (false, 4, 4)] {
        (leaver.terminating, observed.replicas) = (terminating, Some(now));
        observed.pods.truncate(3);
        observed.pods.push(leaver.clone());
        let plan = redis_operator_plan::plan(&Topology::of(model.goal, &observed));
        assert_eq!(plan.replicas, replicas);
    }
}

/// Somebody scales the StatefulSet to nothing in the middle of a change: the volumes are there, and so are the pods again.
#[test]
fn what_others_scale_away_comes_back() {
    for rounds in 0..8 {
        let mut model = shrinking(true, rounds);
        let owners: BTreeSet<u32> = primaries(&model).into_iter().collect();
        model.scale(0);
        let mut observed = model.observe();
        observed.last_owners.clone_from(&owners);
        let plan = redis_operator_plan::plan(&Topology::of(model.goal, &observed));
        assert_eq!(Some(plan.replicas), owners.last().map(|last| last + 1));
        model.replicas = plan.replicas;
        model.step();
        model.settle(&mut Operator::immortal(), 120);
        assert_eq!(model.missing_keys(), []);
    }
}

/// The only copy of a shard may be a replica that does not answer, on a pod that the size does not have.
#[test]
fn an_unreachable_replica_is_not_removed() {
    let mut model = formed(6, 1, true);
    (model.goal.size, model.goal.replicas_per_shard) = (3, 0);
    model.cut_off = BTreeSet::from([4]);
    for _ in 0..20 {
        let plan = Operator::immortal().reconcile(&mut model);
        assert!(plan.replicas >= 5, "{plan:?}");
        model.step();
    }
    model.cut_off.clear();
    model.settle(&mut Operator::immortal(), 60);
    assert_eq!(model.missing_keys(), []);
}

/// Clients ask it where its slots are, also if it is a replica by then.
#[test]
fn what_was_just_drained_is_not_removed_yet() {
    for (before, after) in [((6, 1), (3, 0)), ((6, 0), (3, 0))] {
        let mut model = formed(before.0, before.1, true);
        (model.goal.size, model.goal.replicas_per_shard) = after;
        let mut removals = 0;
        for _ in 0..60 {
            let mut observed = model.observe();
            if model.plan().step == Step::Shrink {
                removals += 1;
                observed.leave_due = false;
                let plan = redis_operator_plan::plan(&Topology::of(model.goal, &observed));
                assert_eq!(plan.step, Step::Wait(Wait::Gossip));
            }
            Operator::immortal().reconcile(&mut model);
            model.step();
        }
        assert!(removals > 0);
    }
}

#[test]
fn slots_of_different_pairs_move_side_by_side() {
    let mut model = formed(4, 0, false);
    model.goal.size = 8;
    let mut most = 0;
    for _ in 0..40 {
        let plan = Operator::immortal().reconcile(&mut model);
        let ends = |action: &Action| match action {
            Action::Move(moving) => vec![moving.from.pod.clone(), moving.to.pod.clone()],
            _ => vec![],
        };
        let nodes: Vec<String> = plan.actions.iter().flat_map(ends).collect();
        assert_eq!(
            nodes.iter().collect::<BTreeSet<_>>().len(),
            nodes.len(),
            "each node is in one pair: {plan:?}"
        );
        most = most.max(nodes.len() / 2);
        model.step();
    }
    assert_eq!(most, 4);
}

/// Nodes learn of a new one by gossip, one after another. Until then they refuse `SETSLOT` with its id.
#[test]
fn slots_move_only_to_nodes_that_all_know() {
    let mut model = formed(2, 0, false);
    model.goal.size = 3;
    let moves = |plan: &Plan| matches!(plan.actions[..], [Action::Move(_), ..]);
    while !moves(&model.plan()) {
        Operator::immortal().reconcile(&mut model);
        model.step();
    }
    let mut observed = model.observe();
    let plan_of = |observed: &Observed| redis_operator_plan::plan(&Topology::of(model.goal, observed));
    assert!(moves(&plan_of(&observed)));
    let added = observed.pods[2].redis.as_ref().unwrap().id;
    let node = observed.pods[1].redis.as_mut().unwrap();
    node.table = node.table.iter().filter(|peer| peer.id != added).cloned().collect::<Vec<_>>().into();
    assert_eq!(plan_of(&observed).step, Step::Wait(Wait::Gossip));
}

#[test]
fn repairs_come_before_slot_moves() {
    let mut model = formed(6, 1, true);
    for ordinal in 0..6 {
        model.replace(ordinal, 1);
    }
    model.step();
    let plan = model.plan();
    assert_eq!((plan.step, plan.step.is_repair()), (Step::HealAddresses, true));
    assert_eq!(plan.actions.len(), 5, "N - 1 from one node: {:?}", plan.actions);
}

/// Its connection comes and goes, for as long as the disk is full.
#[test]
fn a_replica_that_cannot_store_what_it_gets_is_one_thing_to_wait_for() {
    let model = formed(6, 1, true);
    for link in [Link::Syncing, Link::Never, Link::Down(2)] {
        let mut observed = model.observe();
        let nodes = observed.pods.iter_mut().filter_map(|pod| pod.redis.as_mut());
        nodes.filter(|node| node.link == Link::Up).for_each(|node| node.link = link);
        let found = redis_operator_plan::plan(&Topology::of(model.goal, &observed));
        assert_eq!(found.step, Step::Wait(Wait::Sync), "{link:?}");
    }
}
