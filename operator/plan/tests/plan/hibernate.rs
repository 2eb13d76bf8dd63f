//! Clusters that are hibernated: all pods stop at once, only when nothing else is to be done, and all keys come back with them.

use redis_operator_plan::{Action, Observed, Step, Topology, Wait, plan};

use super::{
    driver::{Operator, formed},
    model::Model,
};

/// Reconciles until all pods are stopped. Returns the steps that it took, without repetitions.
fn stop(model: &mut Model, operator: &mut Operator) -> Vec<Step> {
    model.goal.hibernated = true;
    let mut steps = vec![];
    for _ in 0..200 {
        let plan = operator.reconcile(model);
        steps.push(plan.step);
        model.step();
        if model.ordinals().is_empty() {
            steps.dedup();
            return steps;
        }
    }
    panic!("pods do not stop: {:?}", model.plan());
}

#[test]
fn a_hibernated_cluster_comes_back_with_all_keys() {
    for (size, replicas) in [(6, 1), (3, 0), (1, 0), (2, 1), (9, 2)] {
        let mut model = formed(size, replicas, true);
        let steps = stop(&mut model, &mut Operator::immortal());
        assert_eq!(steps, [Step::Hold, Step::Hibernate], "{size}");
        for _ in 0..3 {
            let plan = Operator::immortal().reconcile(&mut model);
            assert_eq!((plan.step, plan.replicas, plan.actions.len()), (Step::Hibernated, 0, 0));
            model.step();
        }
        model.goal.hibernated = false;
        model.settle(&mut Operator::immortal(), 60);
        assert_eq!(model.missing_keys(), []);
        let held = |observed: Observed| observed.pods.iter().any(|pod| pod.redis.as_ref().unwrap().held);
        assert!(!held(model.observe()));
    }
}

/// Another size, other replicas: first all pods come back, since their volumes have the slots.
#[test]
fn what_changed_meanwhile_is_done_after_all_pods_are_back() {
    for (from, to) in
        [((6, 1), (4, 1)), ((6, 1), (3, 0)), ((5, 0), (2, 0)), ((3, 0), (6, 1)), ((4, 1), (2, 0))]
    {
        let mut model = formed(from.0, from.1, true);
        stop(&mut model, &mut Operator::immortal());
        (model.goal.size, model.goal.replicas_per_shard) = to;
        model.goal.hibernated = false;
        assert_eq!(model.plan().replicas, from.0.max(to.0), "{from:?}");
        model.settle(&mut Operator::immortal(), 200);
        assert_eq!(model.missing_keys(), [], "{from:?} to {to:?}");
    }
}

#[test]
fn a_change_is_finished_before_pods_stop() {
    let mut model = formed(5, 0, true);
    model.goal.size = 3;
    let steps = stop(&mut model, &mut Operator::immortal());
    assert!(steps.contains(&Step::Move) && steps.contains(&Step::Shrink), "{steps:?}");
    assert_eq!(steps[steps.len() - 2..], [Step::Hold, Step::Hibernate]);
    assert_eq!(model.before, 3);
    model.goal.hibernated = false;
    model.settle(&mut Operator::immortal(), 60);
    assert_eq!(model.missing_keys(), []);
}

/// The user changes their mind, or a pod is lost, after any action: the hold does not outlast that.
#[test]
fn a_hold_ends_when_pods_are_not_to_stop() {
    for actions in 1..14 {
        let mut model = formed(6, 1, true);
        model.goal.hibernated = true;
        Operator::that_dies_after(actions).reconcile(&mut model);
        if actions % 2 == 0 {
            model.goal.hibernated = false;
            model.settle(&mut Operator::immortal(), 60);
        } else {
            model.replace(0, 3);
            model.step();
            stop(&mut model, &mut Operator::immortal());
            model.goal.hibernated = false;
            model.settle(&mut Operator::immortal(), 60);
        }
        assert_eq!(model.missing_keys(), [], "after {actions}");
        let pods = model.observe().pods;
        assert!(pods.iter().all(|pod| !pod.redis.as_ref().unwrap().held), "after {actions}: {pods:?}");
    }
}

/// The operator dies after any action.
#[test]
fn a_hibernation_that_was_interrupted_goes_on() {
    for actions in 1..20 {
        let mut model = formed(6, 1, true);
        let operator = &mut Operator::that_dies_after(actions);
        stop(&mut model, operator);
        model.goal.hibernated = false;
        model.settle(operator, 80);
        assert_eq!(model.missing_keys(), [], "after {actions}");
    }
}

/// What one observation decides.
#[test]
fn pods_run_until_their_volumes_are_kept_and_their_replicas_are_in_step() {
    let mut model = formed(6, 1, true);
    model.goal.hibernated = true;
    let goal = model.goal;
    let decide = |observed: &Observed| {
        let plan = plan(&Topology::of(goal, observed));
        (plan.step, plan.replicas)
    };
    let observed = model.observe();
    assert_eq!(decide(&observed), (Step::Hold, 6));
    let unkept = Observed { keeps_volumes: false, ..observed.clone() };
    assert_eq!(decide(&unkept), (Step::Wait(Wait::Volumes), 6));
    let mut held = observed.clone();
    for pod in &mut held.pods {
        pod.redis.as_mut().unwrap().held = true;
    }
    assert_eq!(decide(&held), (Step::Hibernate, 0));
    assert_eq!(decide(&Observed { holds: false, ..held.clone() }), (Step::Hold, 6));
    let unkept = Observed { keeps_volumes: false, ..held.clone() };
    assert_eq!(decide(&unkept), (Step::Release, 6));
    let mut behind = held.clone();
    let primary = behind.pods.iter_mut().find(|pod| pod.redis.as_ref().unwrap().primary().is_none()).unwrap();
    primary.redis.as_mut().unwrap().offset = 1;
    assert_eq!(decide(&behind), (Step::Hold, 6));
    let mut restarted = held.clone();
    restarted.pods[2].redis.as_mut().unwrap().held = false;
    assert_eq!(decide(&restarted), (Step::Hold, 6));
    // The StatefulSet was scaled to 0, and the observation has an older one.
    let mut older = held.clone();
    older.pods[1].terminating = true;
    older.pods[1].redis = None;
    assert!(matches!(decide(&older), (Step::Wait(_), 6)), "{:?}", decide(&older));
    // A replica is not paused: it could not take over what its primary still sends.
    let plan = plan(&Topology::of(goal, &observed));
    let replicas = plan.actions.iter().filter(|action| match action {
        Action::Hold { node } => node.primary.is_some(),
        _ => false,
    });
    assert_eq!((plan.actions.len(), replicas.count()), (6, 3));
    // Somebody deleted the StatefulSet of a hibernated cluster.
    let gone = Observed { replicas: None, ..Observed::default() };
    assert_eq!(decide(&gone), (Step::Hibernated, 0));
}

/// Replicas do not catch up: clients may write again, and the next attempt comes later.
#[test]
fn a_hold_that_takes_too_long_ends() {
    let mut model = formed(6, 1, true);
    model.goal.hibernated = true;
    let plan = Operator::immortal().reconcile(&mut model);
    assert_eq!(plan.step, Step::Hold);
    let steps = |let_go: bool| {
        let observed = Observed { let_go, ..model.observe() };
        let plan = plan_of(&model, &observed);
        (plan.step, plan.replicas)
    };
    assert_eq!(steps(true), (Step::Release, 6));
    assert_eq!(steps(false).0, Step::Hibernate);
    let mut observed = Observed { let_go: true, ..model.observe() };
    for pod in &mut observed.pods {
        pod.redis.as_mut().unwrap().held = false;
    }
    assert_eq!(plan_of(&model, &observed).step, Step::Wait(Wait::Writers));
}

fn plan_of(model: &Model, observed: &Observed) -> redis_operator_plan::Plan {
    plan(&Topology::of(model.goal, observed))
}
