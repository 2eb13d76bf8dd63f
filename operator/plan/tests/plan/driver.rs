//! Carries out plans on the model, and checks what holds for every plan.

use redis_operator_plan::{Action, Member, Plan, Slots, Step, Topology};

use super::model::Model;

/// Slots of the model: few, so that thousands of clusters can be run; odd, so that they do not divide evenly.
pub(crate) const SLOTS: u16 = 61;

/// Carries out plans, and dies after so many commands, once.
pub(crate) struct Operator {
    pub(crate) dies_after: Option<usize>,
    pub(crate) acted: usize,
    /// How many slots it migrates together.
    pub(crate) together: usize,
}

impl Operator {
    pub(crate) fn immortal() -> Self {
        Self { dies_after: None, acted: 0, together: 3 }
    }

    pub(crate) fn that_dies_after(commands: usize) -> Self {
        Self { dies_after: Some(commands), ..Self::immortal() }
    }

    /// Whether it lives on after one more action.
    fn lives(&mut self) -> bool {
        self.acted += 1;
        if self.dies_after == Some(self.acted) {
            self.dies_after = None;
            return false;
        }
        true
    }

    /// One reconcile. What Redis refuses ends it, as it does in the real one.
    pub(crate) fn reconcile(&mut self, model: &mut Model) -> Plan {
        model.look();
        let plan = model.plan();
        check(model, &plan);
        if plan.step != Step::Hibernate {
            model.replicas = plan.replicas;
        }
        model.restart_stuck();
        if model.missing_slots() == 0 {
            model.goal.initialized = true;
        }
        let mut moved = false;
        for action in &plan.actions {
            let commands = match action {
                Action::Move(_) if moved => continue,
                // Moves between different nodes run side by side.
                Action::Move(_) => {
                    moved = true;
                    self.interleaved(&plan.actions)
                }
                other => vec![Command { at_once: 0, does: other.clone() }],
            };
            let mut refused = None;
            for Command { at_once, does } in commands {
                // Redis carries out what it was sent with a command that it refuses.
                if refused.is_some_and(|refused| refused != at_once) {
                    continue;
                }
                if let Action::Keys { from, to, slots, .. } = &does {
                    // It may die between two keys as well.
                    for slot in slots.iter() {
                        match model.one_key(from, to, slot) {
                            Err(_) => return plan,
                            Ok(_) if !self.lives() => return plan,
                            Ok(_) => {}
                        }
                    }
                }
                if model.act(&does).is_err() {
                    refused = Some(at_once);
                }
                if !self.lives() {
                    return plan;
                }
            }
            if refused.is_some() {
                return plan;
            }
        }
        if plan.step == Step::Hibernate {
            (model.before, model.replicas) = (model.replicas, plan.replicas);
        } else if plan.step == Step::Hibernated {
            // If a user scaled the StatefulSet to 0, the status still lists the members.
            model.before = model.before.max(model.stopped());
        } else if !model.goal.hibernated {
            model.before = 0;
        }
        plan
    }

    /// What moves do, one command of each in turn.
    fn interleaved(&self, actions: &[Action]) -> Vec<Command> {
        let mut at_once = 0;
        let mut commands = |action: &Action| {
            let Action::Move(moving) = action else { return vec![] };
            let slots: Vec<u16> = moving.slots.iter().collect();
            let groups = slots.chunks(self.together).map(|group| group.iter().copied().collect());
            let steps = groups.flat_map(|group: Slots| moving.steps(&group));
            let commands = steps.flat_map(|step| {
                at_once += 1;
                taken_apart(&step).into_iter().map(move |does| Command { at_once, does })
            });
            commands.collect()
        };
        let mut moves: Vec<_> = actions.iter().map(|action| commands(action).into_iter()).collect();
        let mut all = vec![];
        loop {
            let before = all.len();
            all.extend(moves.iter_mut().filter_map(Iterator::next));
            if all.len() == before {
                return all;
            }
        }
    }
}

/// A command, with a number for those that are sent at once.
struct Command {
    at_once: usize,
    does: Action,
}

/// What nodes are sent at once, slot by slot: they may die or lose their operator between any two.
fn taken_apart(step: &Action) -> Vec<Action> {
    let one = |slot: u16| Slots::range(slot, slot);
    match step.clone() {
        Action::Import { node, slots, from } => {
            slots.iter().map(|slot| Action::Import { node: node.clone(), slots: one(slot), from }).collect()
        }
        Action::Export { node, slots, to } => {
            slots.iter().map(|slot| Action::Export { node: node.clone(), slots: one(slot), to }).collect()
        }
        Action::AssignSlots { nodes, slots, owner } => nodes
            .iter()
            .flat_map(|node| slots.iter().map(move |slot| (vec![node.clone()], one(slot))))
            .map(|(nodes, slots)| Action::AssignSlots { nodes, slots, owner })
            .collect(),
        other => vec![other],
    }
}

impl Model {
    /// Slots that nobody who answers owns.
    pub(crate) fn missing_slots(&self) -> usize {
        let observed = self.observe();
        let topology = Topology::of(self.goal, &observed);
        usize::from(self.goal.slots) - topology.covered()
    }

    /// Somebody runs `CLUSTER FORGET` for these nodes on all others, or for all others on these. A replica does not forget its primary.
    pub(crate) fn forget_by_hand(&mut self, nodes: &[u32], on_the_others: bool) {
        let observed = self.observe();
        let topology = Topology::of(self.goal, &observed);
        for (forgets, other) in
            topology.core.iter().flat_map(|one| topology.core.iter().map(move |other| (one, other)))
        {
            let of = |member: &Member<'_>| nodes.contains(&member.pod.ordinal);
            let meant = if on_the_others { of(other) && !of(forgets) } else { of(forgets) && !of(other) };
            if meant && let Some(node) = forgets.address() {
                let _ = self.act(&Action::Forget { node, id: other.node.id });
            }
        }
    }

    /// Rounds and reconciles until nothing is to be done, or panics after `limit`.
    pub(crate) fn settle(&mut self, operator: &mut Operator, limit: usize) {
        let mut seen = vec![];
        for _ in 0..limit {
            let plan = operator.reconcile(self);
            self.step();
            seen.push(plan.step);
            if plan.step == Step::Settled && self.plan().step == Step::Settled {
                return self.settled();
            }
        }
        let tail = &seen[seen.len().saturating_sub(12)..];
        panic!("not settled after {limit} rounds: {tail:?} {:?}", self.plan().actions);
    }

    /// What holds once nothing is to be done.
    pub(crate) fn settled(&self) {
        let plan = self.plan();
        assert_eq!((plan.replicas, plan.actions.len()), (self.goal.size, 0));
        let observed = self.observe();
        assert!(observed.pods.iter().all(|pod| !pod.outdated), "{observed:?}");
        let counts: Vec<usize> = observed
            .pods
            .iter()
            .map(|pod| pod.redis.as_ref().unwrap())
            .filter(|node| node.primary().is_none())
            .map(|node| node.slots().len())
            .collect();
        assert_eq!(counts.len(), self.goal.shards() as usize, "{counts:?}");
        assert_eq!(counts.iter().sum::<usize>(), usize::from(self.goal.slots));
        assert!(counts.iter().max().unwrap() - counts.iter().min().unwrap() <= 1, "{counts:?}");
        for pod in &observed.pods {
            let node = pod.redis.as_ref().unwrap();
            assert_eq!(node.table.len(), self.goal.size as usize, "{} knows {:?}", pod.name, node.table);
            assert!(node.migrating.is_empty() && node.importing.is_empty());
            if let Some(primary) = node.primary() {
                assert!(observed.pods.iter().any(|pod| pod.redis.as_ref().unwrap().id == primary));
            }
        }
        let libraries = observed.pods.iter().map(|pod| pod.redis.as_ref().unwrap().libraries);
        let libraries: std::collections::BTreeSet<u64> = libraries.collect();
        assert_eq!(libraries.len(), 1, "a node lacks function libraries");
        let mut copies: Vec<usize> = observed
            .pods
            .iter()
            .map(|pod| pod.redis.as_ref().unwrap())
            .filter(|node| node.primary().is_none())
            .map(|node| {
                observed
                    .pods
                    .iter()
                    .filter(|pod| pod.redis.as_ref().unwrap().primary() == Some(node.id))
                    .count()
            })
            .collect();
        copies.dedup();
        assert_eq!(copies, [self.goal.replicas_per_shard as usize]);
        // No two replicas could change places so that fewer copies share a Kubernetes node.
        let shards = self.shards();
        let crowding = self.crowding(&shards).0;
        for (one, other) in (0..shards.len()).flat_map(|one| (0..one).map(move |other| (one, other))) {
            for (a, b) in (1..shards[one].len()).flat_map(|a| (1..shards[other].len()).map(move |b| (a, b))) {
                let mut swapped = shards.clone();
                (swapped[one][a], swapped[other][b]) = (shards[other][b], shards[one][a]);
                assert!(self.crowding(&swapped).0 >= crowding, "{shards:?} on {:?}", self.hosts);
            }
        }
    }
}

/// All pods are stopped only if every node is held, and every slot is served by a primary whose replicas have all of its keys.
fn check_stop(model: &Model, plan: &Plan) {
    assert!(model.goal.hibernated && plan.replicas == 0, "{plan:?}");
    if plan.step == Step::Hibernate {
        let pods = model.observe().pods;
        assert!(pods.iter().all(|pod| pod.redis.as_ref().is_some_and(|node| node.held)), "{pods:?}");
        assert_eq!(model.missing_slots(), 0);
        assert_eq!(pods.len(), model.goal.size as usize);
    }
}

/// What holds for every plan.
fn check(model: &Model, plan: &Plan) {
    assert_eq!(*plan, model.plan(), "the same cluster, the same plan");
    let observed = model.observe();
    if [Step::Hibernate, Step::Hibernated].contains(&plan.step) {
        return check_stop(model, plan);
    }
    assert!(plan.replicas > 0, "{plan:?}");
    for pod in &observed.pods {
        let owns = pod.redis.as_ref().is_some_and(|node| !node.alone() && !node.slots().is_empty());
        assert!(!owns || pod.ordinal < plan.replicas, "{} still owns slots", pod.name);
        let proved = pod.redis.as_ref().map_or(pod.ip.is_none(), redis_operator_plan::Node::blank);
        // Its node was forgotten: that happens only once it owns nothing and has no keys of its own.
        let mut tables =
            observed.pods.iter().filter_map(|pod| pod.redis.as_ref()).flat_map(|node| &node.table);
        let left = pod.terminating && tables.all(|peer| peer.pod.as_ref() != Some(&pod.name));
        assert!(proved || left || pod.ordinal < plan.replicas, "{} may still have keys", pod.name);
        let is_over = !pod.terminating && pod.ordinal >= model.goal.size;
        assert!(!is_over || plan.step != Step::Settled, "{} is still there", pod.name);
    }
    let disrupts = |action: &&Action| {
        matches!(
            action,
            Action::Reset { .. }
                | Action::Empty { .. }
                | Action::Failover { .. }
                | Action::TakeOver { .. }
                | Action::Elect { .. }
                | Action::Restart { .. }
        )
    };
    let disruptive = plan.actions.iter().filter(disrupts).count();
    assert!(disruptive <= 1 || plan.step == Step::Form, "{:?}", plan.actions);
    for action in &plan.actions {
        if let Action::Meet { node, .. } = action {
            let pod = observed.pods.iter().find(|pod| pod.name == node.pod).unwrap();
            assert_eq!(pod.ip, Some(node.ip));
            assert_eq!(
                pod.redis.as_ref().map(|redis| redis.id),
                Some(node.id),
                "met without having answered"
            );
        }
        if let Action::Reset { node } = action {
            let pod = observed.pods.iter().find(|pod| pod.name == node.pod).unwrap();
            let redis = pod.redis.as_ref().unwrap();
            assert!(redis.keys == 0 || redis.primary().is_some(), "{} holds the only copy", pod.name);
        }
        if let Action::Empty { node } = action {
            let pod = observed.pods.iter().find(|pod| pod.name == node.pod).unwrap();
            assert!(model.owners_have_keys_of(pod.ordinal), "{} holds the only copy", pod.name);
        }
        if let Action::Restart { pod, .. } = action {
            let pod = observed.pods.iter().find(|seen| seen.name == *pod).unwrap();
            assert!(pod.outdated, "{} has the template that it should have", pod.name);
            let stays = model.persistent && !pod.claim_ends;
            let accepts = stays || model.goal.update.allow_data_loss;
            assert!(accepts || !model.is_only_copy(pod.ordinal), "{} holds the only copy", pod.name);
            assert!(observed.pods.iter().all(|pod| pod.redis.is_some() && !pod.terminating));
        }
        if let (Action::Failover { node }, Step::Update) = (action, plan.step) {
            assert!(!observed.promoted.contains(&node.id), "{} was promoted a moment ago", node.pod);
            let pod = observed.pods.iter().find(|pod| pod.name == node.pod).unwrap();
            assert!(!pod.outdated, "{} has an older template", pod.name);
        }
        if let Action::Forget { node, id } = action {
            let viewer = observed.pods.iter().find(|pod| pod.name == node.pod).unwrap();
            let peer = viewer.redis.as_ref().unwrap().peer(*id);
            let named = peer.is_some_and(|peer| !peer.slots.is_empty());
            assert!(plan.step != Step::Shrink || !named, "{} would have slots without an owner", node.pod);
        }
    }
}

pub(crate) fn formed(size: u32, replicas_per_shard: u32, persistent: bool) -> Model {
    let mut model = Model::new(size, replicas_per_shard, SLOTS, persistent);
    model.settle(&mut Operator::immortal(), 40);
    model.fill();
    model
}

/// From one shape to another, with all keys.
pub(crate) fn reshape(from: (u32, u32), to: (u32, u32), operator: &mut Operator) {
    let mut model = formed(from.0, from.1, false);
    (model.goal.size, model.goal.replicas_per_shard) = to;
    model.settle(operator, 120);
    assert_eq!(model.missing_keys(), []);
}

/// Ordinals of the pods whose nodes are primaries.
pub(crate) fn primaries(model: &Model) -> Vec<u32> {
    let observed = model.observe();
    let primary = |pod: &&redis_operator_plan::Pod| {
        pod.redis.as_ref().is_some_and(|node| node.primary().is_none() && !node.slots().is_empty())
    };
    observed.pods.iter().filter(primary).map(|pod| pod.ordinal).collect()
}
