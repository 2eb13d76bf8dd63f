//! Updates: a new pod template reaches every pod.

use std::collections::BTreeSet;

use redis_operator_plan::{Action, Step, Wait};

use super::driver::{Operator, formed, primaries};

/// Shapes of clusters, and whether they are on volumes.
const UPDATED: [(u32, u32, bool); 8] = [
    (6, 1, false),
    (6, 1, true),
    (9, 2, false),
    (2, 1, false),
    (3, 0, true),
    (3, 0, false),
    (2, 0, false),
    (1, 0, false),
];

/// A new template reaches every pod, one at a time, and every slot is served all the while.
#[test]
fn an_update_reaches_every_pod() {
    for (size, replicas, persistent) in UPDATED {
        let mut model = formed(size, replicas, persistent);
        model.template = 1;
        let mut restarted = vec![];
        for round in 0.. {
            assert!(round < 300, "{size}: {:?}", model.plan());
            let plan = Operator::immortal().reconcile(&mut model);
            restarted.extend(plan.actions.iter().filter_map(|action| match action {
                Action::Restart { pod, .. } => Some(pod.clone()),
                _ => None,
            }));
            let up = model.observe().pods.iter().filter(|pod| pod.redis.is_some()).count();
            assert!(up + 1 >= size as usize, "{size}: {up} pods");
            let in_place = replicas == 0 && persistent;
            assert!(in_place || model.missing_slots() == 0, "{size}: {plan:?}");
            assert_eq!(model.missing_keys(), []);
            model.step();
            if plan.step == Step::Settled && model.plan().step == Step::Settled {
                break;
            }
        }
        model.settled();
        let expected = size as usize;
        assert_eq!(restarted.len(), expected, "{size}, {replicas}, {persistent}: {restarted:?}");
    }
}

/// Replicas first, and a shard is finished before the next.
#[test]
fn an_update_finishes_a_shard_before_the_next() {
    let mut model = formed(6, 1, true);
    model.template = 1;
    let mut order = vec![];
    for _ in 0..200 {
        let shards: Vec<_> = primaries(&model);
        let observed = model.observe();
        let shard = |ordinal: u32| {
            let node = observed.pods[ordinal as usize].redis.as_ref().unwrap();
            let primary = node.primary().unwrap_or(node.id);
            observed.pods.iter().position(|pod| pod.redis.as_ref().is_some_and(|node| node.id == primary))
        };
        let plan = model.plan();
        if let [Action::Restart { pod, .. }] = &plan.actions[..] {
            let ordinal = pod.strip_prefix("rc-").unwrap().parse().unwrap();
            assert!(!shards.contains(&ordinal), "the pod of a primary");
            order.push(shard(ordinal).unwrap());
        }
        if let [Action::Failover { node }] = &plan.actions[..] {
            // It is the primary from now on.
            let ordinal: usize = node.pod.strip_prefix("rc-").unwrap().parse().unwrap();
            let old = shard(ordinal as u32).unwrap();
            order.iter_mut().filter(|shard| **shard == old).for_each(|shard| *shard = ordinal);
        }
        Operator::immortal().reconcile(&mut model);
        model.step();
    }
    model.settled();
    assert_eq!(order.len(), 6);
    assert!(order.chunks(2).all(|pair| pair[0] == pair[1]), "{order:?}");
}

#[test]
fn every_prefix_of_an_update_converges() {
    for (size, replicas, persistent) in UPDATED {
        let mut whole = Operator::immortal();
        let update = |operator: &mut Operator| {
            let mut model = formed(size, replicas, persistent);
            model.template = 1;
            model.settle(operator, 300);
            assert_eq!(model.missing_keys(), []);
        };
        update(&mut whole);
        for dies_after in 1..=whole.acted {
            update(&mut Operator::that_dies_after(dies_after));
        }
    }
}

/// One pod at most has the template that cannot start, and all slots are served. Reverting the spec ends it.
#[test]
fn a_broken_template_stops_at_its_first_pod() {
    for (size, replicas, persistent) in UPDATED.into_iter().filter(|(_, replicas, on)| *replicas > 0 || !on) {
        let mut model = formed(size, replicas, persistent);
        (model.template, model.broken) = (1, BTreeSet::from([1]));
        for _ in 0..60 {
            Operator::immortal().reconcile(&mut model);
            model.step();
            assert_eq!((model.missing_slots(), model.missing_keys()), (0, vec![]), "{size}");
        }
        assert_eq!(model.plan().step, Step::Wait(Wait::Pods));
        let new = model.observe().pods.iter().filter(|pod| !pod.outdated).count();
        assert_eq!(new, 1, "{size}");
        model.template = 0;
        model.settle(&mut Operator::immortal(), 60);
        assert_eq!(model.missing_keys(), []);
    }
}

/// A second change, or the old template again, at any moment of the first.
#[test]
fn a_second_change_is_followed_at_once() {
    for (size, replicas, persistent) in UPDATED {
        for rounds in 1..40 {
            for template in [0, 2] {
                let mut model = formed(size, replicas, persistent);
                model.template = 1;
                for _ in 0..rounds {
                    Operator::immortal().reconcile(&mut model);
                    model.step();
                }
                model.template = template;
                model.settle(&mut Operator::immortal(), 300);
                assert_eq!(model.missing_keys(), []);
            }
        }
    }
}

/// Somebody has deleted the claims: those that are the only copies are not ended by an update, and replicas are its way out.
#[test]
fn no_only_copy_is_ended_while_its_claim_is_being_deleted() {
    for (size, replicas, persistent) in UPDATED.into_iter().filter(|(_, _, persistent)| *persistent) {
        let mut model = formed(size, replicas, persistent);
        (model.template, model.claims_end) = (1, (0..size).collect());
        for _ in 0..100 {
            Operator::immortal().reconcile(&mut model);
            model.step();
            assert_eq!(model.missing_keys(), [], "{size}");
        }
        if replicas == 0 {
            assert_eq!(model.plan().step, Step::Wait(Wait::Claims));
            assert_eq!(model.claims_end.len(), size as usize);
            (model.goal.size, model.goal.replicas_per_shard) = (size * 2, 1);
        }
        model.settle(&mut Operator::immortal(), 300);
        assert_eq!((model.missing_keys(), model.claims_end.len()), (vec![], 0), "{size}");
    }
}

/// It cannot start, and would come back without what is on its volume.
#[test]
fn a_stuck_pod_is_left_while_its_claim_is_being_deleted() {
    let mut model = formed(3, 0, true);
    (model.template, model.broken) = (1, BTreeSet::from([1]));
    for _ in 0..10 {
        Operator::immortal().reconcile(&mut model);
        model.step();
    }
    let observed = model.observe();
    let stuck = observed.pods.iter().find(|pod| pod.redis.is_none()).unwrap().ordinal;
    (model.template, model.claims_end) = (0, BTreeSet::from([stuck]));
    for _ in 0..30 {
        Operator::immortal().reconcile(&mut model);
        model.step();
        assert_eq!(model.missing_keys(), []);
    }
    assert_eq!(model.plan().step, Step::Wait(Wait::Pods));
}

/// Primaries wait until their user lets them go.
#[test]
fn a_supervised_update_stops_before_primaries() {
    for (size, replicas, persistent) in UPDATED {
        let mut model = formed(size, replicas, persistent);
        model.goal.update.supervised = true;
        model.template = 1;
        let before = primaries(&model);
        for _ in 0..150 {
            Operator::immortal().reconcile(&mut model);
            model.step();
        }
        assert_eq!(model.plan().step, Step::Wait(Wait::Approval), "{size}");
        assert_eq!(primaries(&model), before);
        let observed = model.observe();
        let outdated: Vec<u32> =
            observed.pods.iter().filter(|pod| pod.outdated).map(|pod| pod.ordinal).collect();
        assert_eq!(outdated, before);
        model.goal.update.supervised = false;
        model.settle(&mut Operator::immortal(), 300);
        assert_eq!(model.missing_keys(), []);
    }
}

#[test]
fn a_lower_version_of_redis_is_refused() {
    let mut model = formed(6, 1, true);
    (model.template, model.goal.update.refused) = (1, true);
    for _ in 0..10 {
        Operator::immortal().reconcile(&mut model);
        model.step();
    }
    assert_eq!(model.plan().step, Step::Wait(Wait::Downgrade));
    model.goal.update.refused = false;
    model.settle(&mut Operator::immortal(), 300);
}

/// A cache whose keys may be lost: no additional pod, and the slots are served again.
#[test]
fn an_update_that_may_lose_data_needs_no_additional_pod() {
    for size in [1, 3] {
        let mut model = formed(size, 0, false);
        (model.goal.update.allow_data_loss, model.goal.accept_data_loss) = (true, true);
        model.template = 1;
        let mut most = 0;
        for _ in 0..150 {
            most = most.max(Operator::immortal().reconcile(&mut model).replicas);
            model.step();
        }
        model.settled();
        assert_eq!(most, size);
        assert_eq!(model.missing_slots(), 0);
    }
}
