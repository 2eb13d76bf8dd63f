//! Nodes, majorities and slots that are lost.

use redis_operator_plan::{Action, Peer, Slots, Step, Topology, Wait};

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

/// A node has lost track of a slot that all others know at it: it has the keys, and gets the slot back. Where the others name somebody
/// else, or only few name it, the slot is lost.
#[test]
fn a_slot_that_its_owner_dropped_is_given_back() {
    let model = formed(6, 1, false);
    let [first, second, third] = primaries(&model)[..] else { panic!("three primaries") };
    let slot = |observed: &redis_operator_plan::Observed| {
        observed.pods[first as usize].redis.as_ref().unwrap().slots().iter().nth(3).unwrap()
    };
    // The slot disappears from the tables of these.
    let planned = |forgetful: &[u32]| {
        let mut observed = model.observe();
        let slot = slot(&observed);
        for ordinal in forgetful {
            let node = observed.pods[*ordinal as usize].redis.as_mut().unwrap();
            let mut table = node.table.to_vec();
            for peer in &mut table {
                peer.slots = peer.slots.minus(&Slots::range(slot, slot));
            }
            node.table = table.into();
        }
        (redis_operator_plan::plan(&Topology::of(model.goal, &observed)), slot)
    };
    let replicas = model.ordinals().into_iter().filter(|ordinal| ![first, second, third].contains(ordinal));
    let replicas: Vec<u32> = replicas.collect();
    for forgetful in [vec![first], [&replicas[..], &[first]].concat()] {
        let (plan, slot) = planned(&forgetful);
        let [Action::AddSlots { node, slots }] = &plan.actions[..] else { panic!("{plan:?}") };
        assert_eq!((plan.step, slots), (Step::Reclaim, &Slots::range(slot, slot)));
        assert_eq!(node.pod, model.observe().pods[first as usize].name);
    }
    assert_eq!(planned(&[first, second]).0.step, Step::Wait(Wait::SlotsLost));
    assert_eq!(planned(&model.ordinals()).0.step, Step::Wait(Wait::SlotsLost));
}

/// A node that was reset has met one that hangs since. It has nothing, and is reset again to meet another one.
#[test]
fn a_node_that_has_met_one_that_hangs_is_not_foreign() {
    let model = formed(6, 1, false);
    let [hangs, _, third] = primaries(&model)[..] else { panic!("three primaries") };
    let replica = model.ordinals().into_iter().rfind(|ordinal| ![hangs, third].contains(ordinal)).unwrap();
    for (keys, step) in [(0, Step::Join), (1, Step::Wait(Wait::ForeignNode))] {
        let mut observed = model.observe();
        let met = observed.pods[hangs as usize].redis.take().unwrap().own().unwrap().clone();
        let node = observed.pods[replica as usize].redis.as_mut().unwrap();
        let (old, new) = (node.id, met.id.to_string().chars().rev().collect::<String>().parse().unwrap());
        let own = Peer { id: new, primary: None, ..node.own().unwrap().clone() };
        (node.id, node.keys, node.table) = (new, keys, vec![own, met].into());
        for pod in &mut observed.pods {
            if let Some(node) = pod.redis.as_mut().filter(|node| node.id != new) {
                let others = node.table.iter().filter(|peer| peer.id != old);
                node.table = others.cloned().collect::<Vec<_>>().into();
            }
        }
        let plan = redis_operator_plan::plan(&Topology::of(model.goal, &observed));
        assert_eq!(plan.step, step, "{plan:?}");
        let is_reset = |action: &Action| matches!(action, Action::Reset { .. });
        assert_eq!(plan.actions.iter().any(is_reset), keys == 0);
    }
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

/// A quota keeps a replica away while its primary takes writes. Then the primary's pod is deleted, and the replica starts first: the
/// volume of the primary has what the replica lacks.
#[test]
fn a_stale_replica_is_not_promoted_while_the_volume_of_its_primary_is_intact() {
    for accept_data_loss in [false, true] {
        let mut model = formed(6, 1, true);
        model.writes = true;
        let primary = primaries(&model)[0];
        let replica = partner(&model, primary);
        model.keep_away(replica);
        for _ in 0..5 {
            Operator::immortal().reconcile(&mut model);
            model.step();
        }
        model.keep_away(primary);
        model.let_back(replica, 1);
        model.goal.accept_data_loss = accept_data_loss;
        let mut steps = vec![];
        for _ in 0..12 {
            steps.push(Operator::immortal().reconcile(&mut model).step);
            model.step();
        }
        assert_eq!(steps.contains(&Step::Elect), accept_data_loss, "{steps:?}");
        assert_eq!(steps.contains(&Step::Wait(Wait::StaleReplicas)), !accept_data_loss, "{steps:?}");
        model.let_back(primary, 1);
        model.settle(&mut Operator::immortal(), 60);
        assert_eq!(model.missing_keys().is_empty(), !accept_data_loss);
    }
}

/// The same of the majority, which nobody can elect successors for.
#[test]
fn stale_replicas_do_not_take_over_from_a_majority() {
    let mut model = formed(6, 1, true);
    model.writes = true;
    let lost = primaries(&model)[..2].to_vec();
    let replicas: Vec<u32> = lost.iter().map(|primary| partner(&model, *primary)).collect();
    replicas.iter().for_each(|replica| model.keep_away(*replica));
    for _ in 0..5 {
        Operator::immortal().reconcile(&mut model);
        model.step();
    }
    lost.iter().for_each(|primary| model.keep_away(*primary));
    replicas.iter().for_each(|replica| model.let_back(*replica, 1));
    for _ in 0..12 {
        let plan = Operator::immortal().reconcile(&mut model);
        assert_ne!(plan.step, Step::TakeOver);
        model.step();
    }
    assert_eq!(model.plan().step, Step::Wait(Wait::StaleReplicas));
    lost.iter().for_each(|primary| model.let_back(*primary, 1));
    model.settle(&mut Operator::immortal(), 60);
    assert_eq!(model.missing_keys(), []);
}

/// A zone with most primaries is cut off from everybody else. Its pods are made not ready, and it goes on serving its clients.
#[test]
fn a_zone_with_most_primaries_that_is_cut_off_keeps_its_clients() {
    let mut model = formed(6, 1, true);
    model.writes = true;
    let zone = primaries(&model)[..2].to_vec();
    model.group = zone.iter().copied().collect();
    for _ in 0..20 {
        let plan = Operator::immortal().reconcile(&mut model);
        assert!(plan.actions.is_empty(), "{plan:?}");
        model.step();
    }
    assert_eq!(model.plan().step, Step::Wait(Wait::Quorum));
    let before = model.acknowledged.len();
    model.group.clear();
    model.settle(&mut Operator::immortal(), 60);
    assert!(before > 20, "its clients wrote: {before}");
    assert_eq!(model.missing_keys(), []);
}

/// Once it is confirmed that nothing runs there, replicas take over.
#[test]
fn replicas_take_over_from_primaries_that_have_certainly_ended() {
    let mut model = formed(6, 1, true);
    model.writes = true;
    let lost = primaries(&model)[..2].to_vec();
    model.ended = lost.iter().copied().collect();
    for _ in 0..20 {
        Operator::immortal().reconcile(&mut model);
        model.step();
    }
    assert_eq!(model.missing_keys(), []);
    model.ended.clear();
    model.settle(&mut Operator::immortal(), 60);
    assert_eq!(model.missing_keys(), []);
}

/// The replica of a primary.
fn partner(model: &super::model::Model, primary: u32) -> u32 {
    let observed = model.observe();
    let redis = |ordinal: u32| observed.pods[ordinal as usize].redis.as_ref();
    let id = redis(primary).unwrap().id;
    let of = |ordinal: &u32| redis(*ordinal).is_some_and(|node| node.primary() == Some(id));
    model.ordinals().into_iter().find(of).unwrap()
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
/// forgets its primary.
#[test]
fn what_a_replica_has_is_not_given_up_with_what_is_lost() {
    for (size, lost) in [(6, 1), (8, 1), (10, 2)] {
        let mut model = formed(size, 1, false);
        model.goal.accept_data_loss = true;
        let primaries = primaries(&model);
        let observed = model.observe();
        let id = |ordinal: u32| observed.pods[ordinal as usize].redis.as_ref().unwrap().id;
        let replica = |primary: u32| {
            let copies = |pod: &&redis_operator_plan::Pod| {
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

/// It has the only copy of its keys, and comes back with them: nothing is reset, or assigned to others, before.
#[test]
fn a_shard_that_the_others_were_told_to_forget_is_introduced_again() {
    for (size, replicas) in [(2, 0), (3, 0), (5, 0), (6, 1), (9, 2)] {
        for case in 0..16 {
            let mut model = formed(size, replicas, true);
            model.replicas_know_open_slots = case & 1 > 0;
            model.goal.accept_data_loss = case & 2 > 0;
            let primary = primaries(&model)[0];
            let mut shard = model.shards().into_iter().find(|shard| shard[0] == primary).unwrap();
            model.forget_by_hand(&shard, case & 4 > 0);
            if case & 8 > 0 {
                shard.drain(..).for_each(|ordinal| model.replace(ordinal, 2));
            }
            let mut steps = vec![];
            for _ in 0..60 {
                let plan = Operator::immortal().reconcile(&mut model);
                let mends =
                    |action: &Action| matches!(action, Action::Meet { .. } | Action::Replicate { .. });
                assert!(
                    plan.actions.iter().all(mends) && plan.step != Step::Wait(Wait::ForeignNode),
                    "{size} {case}: {plan:?}"
                );
                model.step();
                steps.push(plan.step);
            }
            assert!(steps.contains(&Step::Reintroduce), "{size} {case}: {steps:?}");
            model.settle(&mut Operator::immortal(), 60);
            assert_eq!(model.missing_keys(), []);
        }
    }
}

/// Under a blank status nobody knows whose node it is; and slots that were given to others have two owners.
#[test]
fn a_node_that_is_not_known_or_whose_slots_have_another_owner_is_foreign() {
    for known in [false, true] {
        let mut model = formed(3, 0, true);
        let primary = primaries(&model)[0];
        model.forget_by_hand(&[primary], true);
        let mut observed = model.observe();
        if known {
            let slots = observed.pods[primary as usize].redis.as_ref().unwrap().slots();
            let node = Topology::of(model.goal, &observed).core[0].address().unwrap();
            model.act(&Action::AddSlots { node, slots }).unwrap();
            observed = model.observe();
        } else {
            observed.known.clear();
        }
        let plan = redis_operator_plan::plan(&Topology::of(model.goal, &observed));
        assert_eq!((plan.step, plan.actions), (Step::Wait(Wait::ForeignNode), vec![]));
    }
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
