//! Nodes, majorities and slots that are lost.

use redis_operator::plan::{Action, Step, Wait};

use super::driver::{Operator, formed, primaries};

#[test]
fn a_node_without_a_volume_is_replaced_and_its_ghost_forgotten() {
    for ordinal in 0..6 {
        let mut model = formed(6, 1, false);
        model.replace(ordinal, 1);
        model.settle(&mut Operator::immortal(), 40);
        assert_eq!(model.missing_keys(), []);
    }
}

#[test]
fn a_cluster_that_lost_everything_is_not_formed_anew() {
    let mut model = formed(6, 1, false);
    for ordinal in 0..6 {
        model.replace(ordinal, 1);
    }
    for _ in 0..20 {
        model.step();
        let plan = Operator::immortal().reconcile(&mut model);
        assert!(plan.actions.is_empty(), "{plan:?}");
    }
    assert_eq!(model.plan().step, Step::Wait(Wait::DataLost));
}

#[test]
fn lost_slots_wait_for_their_user() {
    let mut model = formed(3, 0, false);
    model.replace(1, 1);
    for _ in 0..20 {
        model.step();
        Operator::immortal().reconcile(&mut model);
    }
    assert_eq!(model.plan().step, Step::Wait(Wait::SlotsLost));
}

/// Redis elects nobody then, and with one shard or two a single primary is the majority.
#[test]
fn replicas_take_over_when_the_majority_is_lost() {
    for (size, replicas) in [(2, 1), (4, 1), (6, 1), (9, 2)] {
        let mut model = formed(size, replicas, false);
        let primaries = primaries(&model);
        for ordinal in &primaries[..primaries.len() / 2 + 1] {
            model.replace(*ordinal, 2);
        }
        model.settle(&mut Operator::immortal(), 60);
        assert_eq!(model.missing_keys(), [], "{size}");
    }
}

/// Primaries that still run somewhere would go on acknowledging writes.
#[test]
fn replicas_of_primaries_that_may_still_run_do_not_take_over() {
    let mut model = formed(6, 1, false);
    model.cut_off = primaries(&model).into_iter().take(2).collect();
    for _ in 0..20 {
        model.step();
        let plan = Operator::immortal().reconcile(&mut model);
        assert!(plan.actions.is_empty(), "{plan:?}");
    }
    assert_eq!(model.plan().step, Step::Wait(Wait::Quorum));
    model.cut_off.clear();
    model.settle(&mut Operator::immortal(), 40);
    assert_eq!(model.missing_keys(), []);
}

#[test]
fn a_lost_majority_waits_for_its_user_where_that_is_the_policy() {
    let mut model = formed(2, 1, false);
    model.goal.take_over = false;
    model.replace(primaries(&model)[0], 1);
    for _ in 0..20 {
        model.step();
        Operator::immortal().reconcile(&mut model);
    }
    assert_eq!(model.plan().step, Step::Wait(Wait::Quorum));
    model.goal.take_over = true;
    model.settle(&mut Operator::immortal(), 40);
    assert_eq!(model.missing_keys(), []);
}

#[test]
fn slots_that_their_user_gives_up_are_served_again() {
    for (size, replicas, lost) in [(3, 0, 1), (3, 0, 2), (3, 0, 3), (6, 1, 6), (1, 0, 1)] {
        let mut model = formed(size, replicas, false);
        for ordinal in 0..lost {
            model.replace(ordinal, 1);
        }
        for _ in 0..10 {
            model.step();
            Operator::immortal().reconcile(&mut model);
        }
        let before = model.missing_keys().len();
        let step = model.plan().step;
        assert!(matches!(step, Step::Wait(Wait::SlotsLost | Wait::DataLost)), "{size}: {step:?}");
        model.goal.accept_data_loss = true;
        model.settle(&mut Operator::immortal(), 60);
        assert_eq!(model.missing_keys().len(), before, "{size}: no more is lost than was");
    }
}

/// One shard is lost with all its copies; of another the primary alone, and its replica has to be elected before anybody
/// forgets whom it copies.
#[test]
fn what_a_replica_has_is_not_given_up_with_what_is_lost() {
    for (size, lost) in [(6, 1), (8, 1), (10, 2)] {
        let mut model = formed(size, 1, false);
        model.goal.accept_data_loss = true;
        let primaries = primaries(&model);
        let observed = model.observe();
        let id = |ordinal: u32| observed.pods[ordinal as usize].redis.as_ref().unwrap().id;
        let replica = |primary: u32| {
            let copies = |pod: &&redis_operator::plan::Pod| {
                pod.redis.as_ref().is_some_and(|node| node.primary() == Some(id(primary)))
            };
            observed.pods.iter().find(copies).unwrap().ordinal
        };
        let slots: usize = primaries[..lost]
            .iter()
            .map(|ordinal| observed.pods[*ordinal as usize].redis.as_ref().unwrap().slots().len())
            .sum();
        for primary in &primaries[..lost] {
            model.replace(*primary, 1);
            model.replace(replica(*primary), 1);
        }
        model.replace(primaries[lost], 1);
        model.settle(&mut Operator::immortal(), 60);
        assert_eq!(model.missing_keys().len(), 2 * slots, "{size}: no more than the lost shards had");
    }
}

/// A pod came up with a volume of another cluster. Once that is deleted, the pod starts empty and joins.
#[test]
fn a_foreign_node_is_waited_for_until_its_volume_is_deleted() {
    let mut model = formed(6, 1, true);
    model.replace(5, 1);
    model.step();
    model.make_foreign(5);
    for _ in 0..10 {
        model.step();
        let plan = Operator::immortal().reconcile(&mut model);
        let resets = plan.actions.iter().any(|action| matches!(action, Action::Reset { .. }));
        assert!(!resets, "{plan:?}");
    }
    assert_eq!(model.plan().step, Step::Wait(Wait::ForeignNode));
    model.persistent = false;
    model.replace(5, 1);
    model.persistent = true;
    model.settle(&mut Operator::immortal(), 60);
    assert_eq!(model.missing_keys(), []);
}

/// Fewer nodes cannot hold the keys. More memory, or the old size, ends it.
#[test]
fn slots_wait_for_memory_or_the_old_size() {
    for (limit, size) in [(0, 3), (140, 5)] {
        let mut model = formed(5, 0, false);
        model.memory_limit = 140;
        model.goal.size = 3;
        for _ in 0..30 {
            Operator::immortal().reconcile(&mut model);
            model.step();
        }
        assert_eq!(model.plan().step, Step::Wait(Wait::Memory));
        (model.memory_limit, model.goal.size) = (limit, size);
        model.settle(&mut Operator::immortal(), 120);
        assert_eq!(model.missing_keys(), []);
    }
}
