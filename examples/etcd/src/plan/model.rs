//! Clusters in memory whose pods crash, come back and are deleted at any moment, while the planner acts on them.
//!
//! It holds: no action takes the quorum away; there is at most one learner; data that a quorum has acknowledged are never left
//! to members without them; and when the crashes end and a quorum is there, the cluster becomes what is wanted.

use proptest::{
    prelude::*,
    test_runner::{Config, RngAlgorithm, TestRng, TestRunner},
};

use super::*;

#[derive(Clone, Copy, Debug)]
enum Event {
    /// The planner looks and acts.
    Reconcile,
    /// Members that run make progress: they start, catch up, and restart.
    Progress,
    /// A process stops, or runs again.
    Toggle(usize),
    /// A pod is deleted, with its data.
    DeletePod(usize),
    Resize(usize),
    NewImage,
}

/// One member with its pod.
#[derive(Clone, Debug)]
struct Node {
    number: usize,
    id: Option<u64>,
    started: bool,
    learner: bool,
    synced: bool,
    pod: Option<(String, PodState)>,
    runs: bool,
}

#[derive(Debug, Default)]
struct World {
    nodes: Vec<Node>,
    bootstrapped: bool,
    next_id: u64,
    size: usize,
    images: usize,
}

impl World {
    fn voters(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter().filter(|node| node.id.is_some() && !node.learner)
    }

    fn alive(node: &Node) -> bool {
        node.started
            && node.runs
            && matches!(&node.pod, Some((_, PodState::Present | PodState::Leaving | PodState::Overdue)))
    }

    fn has_quorum(&self) -> bool {
        let voters = self.voters().count();
        voters > 0 && self.voters().filter(|node| Self::alive(node)).count() >= quorum(voters)
    }

    fn goal(&self) -> Goal {
        Goal { size: self.size, image: self.images.to_string() }
    }

    fn observe(&self) -> Observed {
        let leader = self.voters().find(|node| Self::alive(node)).and_then(|node| node.id);
        let member = |node: &Node| Member {
            id: node.id.unwrap(),
            name: numbered("e", node.number),
            started: node.started,
            learner: node.learner,
            leader: node.id == leader,
            health: match (Self::alive(node), node.synced) {
                (false, _) => Health::Silent,
                (true, false) => Health::Behind,
                (true, true) => Health::InSync,
            },
        };
        let pod = |node: &Node| {
            let (image, state) = node.pod.clone()?;
            Some(Pod { name: numbered("e", node.number), image, state })
        };
        Observed {
            bootstrapped: self.bootstrapped,
            pods: self.nodes.iter().filter_map(pod).collect(),
            members: if self.has_quorum() {
                Ok(self.nodes.iter().filter(|node| node.id.is_some()).map(member).collect())
            } else {
                Err("no quorum".into())
            },
        }
    }

    fn reconcile(&mut self) -> Step {
        let observed = self.observe();
        let step = plan("e", &self.goal(), &observed);
        self.bootstrapped |= observed.members.is_ok();
        if let Step::Act(action) = &step {
            let had_quorum = self.has_quorum();
            self.act(action);
            // A single member cannot be restarted without a pause; its data stay.
            let pause = matches!(action, Action::ChangeImage { .. }) && self.voters().count() == 1;
            assert!(!had_quorum || pause || self.has_quorum(), "{action} took the quorum: {self:?}");
            let learners = self.nodes.iter().filter(|node| node.id.is_some() && node.learner).count();
            assert!(learners <= 1, "{action} made a second learner: {self:?}");
        }
        self.forget();
        step
    }

    fn act(&mut self, action: &Action) {
        self.next_id += 1;
        let (id, image) = (self.next_id, self.images.to_string());
        let number = |name: &str| number("e", name).unwrap();
        let new = |number| Node {
            number,
            id: Some(id),
            started: false,
            learner: true,
            synced: false,
            pod: None,
            runs: true,
        };
        match action {
            Action::Bootstrap { name } => {
                assert!(!self.bootstrapped && self.nodes.is_empty(), "made twice: {self:?}");
                let pod = Some((image, PodState::Present));
                self.nodes.push(Node { learner: false, synced: true, pod, ..new(number(name)) });
            }
            Action::AddLearner { name } => {
                assert!(
                    self.nodes.iter().all(|node| node.number != number(name)),
                    "{name} is taken: {self:?}"
                );
                self.nodes.push(new(number(name)));
            }
            Action::StartMember { name } => {
                let node = self.node(number(name));
                assert!(!node.started && node.pod.is_none(), "without its data: {node:?}");
                (node.pod, node.runs) = (Some((image, PodState::Present)), true);
            }
            Action::Promote { id, .. } => {
                let node = self.nodes.iter_mut().find(|node| node.id == Some(*id)).unwrap();
                assert!(node.synced, "promoted without data: {node:?}");
                node.learner = false;
            }
            Action::Remove { id, .. } => {
                let node = self.nodes.iter_mut().find(|node| node.id == Some(*id)).unwrap();
                (node.id, node.started) = (None, false);
            }
            Action::DeletePod { name } => self.node(number(name)).pod = None,
            Action::ChangeImage { name } => {
                self.node(number(name)).pod = Some((image, PodState::Restarting));
            }
        }
    }

    fn node(&mut self, number: usize) -> &mut Node {
        self.nodes.iter_mut().find(|node| node.number == number).unwrap()
    }

    /// What is neither a member nor a pod is nothing, and so is a cluster that was lost before anybody knew of it.
    fn forget(&mut self) {
        let bootstrapped = self.bootstrapped;
        self.nodes.retain(|node| (bootstrapped && node.id.is_some()) || node.pod.is_some());
    }

    fn happens(&mut self, event: Event) {
        let count = self.nodes.len().max(1);
        match event {
            Event::Reconcile => drop(self.reconcile()),
            Event::Progress => {
                let quorate = self.has_quorum();
                for node in &mut self.nodes {
                    let Some((_, state)) = &mut node.pod else { continue };
                    match state {
                        PodState::Leaving | PodState::Overdue => node.pod = None,
                        PodState::Failed => {}
                        PodState::Restarting => *state = PodState::Present,
                        // A learner starts when the others can tell it what there is.
                        PodState::Present if node.id.is_some() && (quorate || !node.learner) => {
                            node.synced |= node.started && node.runs;
                            node.started |= node.runs;
                        }
                        PodState::Present => {}
                    }
                }
            }
            Event::Toggle(which) => {
                if let Some(node) = self.nodes.get_mut(which % count) {
                    node.runs = !node.runs;
                }
            }
            Event::DeletePod(which) => {
                if let Some(Node { pod: Some((_, state)), .. }) = self.nodes.get_mut(which % count) {
                    *state = [PodState::Leaving, PodState::Failed, PodState::Overdue][which / count % 3];
                }
            }
            Event::Resize(size) => self.size = size,
            Event::NewImage => self.images += 1,
        }
        self.forget();
    }
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        10 => Just(Event::Reconcile),
        6 => Just(Event::Progress),
        1 => (0..16_usize).prop_map(Event::Toggle),
        1 => (0..16_usize).prop_map(Event::DeletePod),
        1 => (0..4_usize).prop_map(|half| Event::Resize(2 * half + 1)),
        1 => Just(Event::NewImage),
    ]
}

#[test]
fn no_action_takes_the_quorum_and_what_has_one_converges() {
    let config = Config { cases: 600, failure_persistence: None, ..Config::default() };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[23; 32]);
    let events = proptest::collection::vec(event(), 0..120);
    let tried = TestRunner::new_with_rng(config, rng).run(&events, |events| {
        let mut world = World { size: 3, ..World::default() };
        for event in events {
            world.happens(event);
        }
        // Peace: every process that can run does.
        for _ in 0..200 {
            world.nodes.iter_mut().for_each(|node| node.runs = true);
            world.happens(Event::Progress);
            world.happens(Event::Reconcile);
        }
        if !world.has_quorum() {
            let Step::Wait(wait) = world.reconcile() else { panic!("it acts without a quorum: {world:?}") };
            prop_assert!(wait.degraded, "{wait:?}: {world:?}");
            return Ok(());
        }
        prop_assert_eq!(world.reconcile(), Step::Settled, "{:?}", world);
        prop_assert_eq!(world.voters().count(), world.size);
        Ok(())
    });
    assert!(tried.is_ok(), "{}", tried.unwrap_err());
}
