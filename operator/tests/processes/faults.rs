//! What happens to a cluster: see [`chaos`](crate::chaos).

use std::{
    collections::BTreeSet,
    sync::atomic::AtomicI64,
    time::{Duration, Instant},
};

use redis::cmd;
use redis_operator::{
    controller::{passwords::Rotation, status::all_in_sync},
    plan::{Step, Topology, Wait},
    server::{Password, act::Always},
};

use crate::{
    A_WHILE, Mortal,
    chaos::{Chaos, Fault, VALUES, key},
    hibernate, knows_only_its_own, meet_a_large_key,
    network::{self, LocalClient},
    next_move, pass_an_address_on, passwords,
    servers::{NODE_TIMEOUT, PASSWORD, Servers},
    signal, tag_of, tls,
    writer::ClusterClient,
};

/// How long nodes are cut off.
const CUT_OFF: Duration = Duration::from_secs(15);

pub(crate) fn grows(chaos: &mut Chaos) -> Fault<'_> {
    Box::pin(async { chaos.servers.goal.size = 5 })
}

pub(crate) fn shrinks(chaos: &mut Chaos) -> Fault<'_> {
    Box::pin(async { chaos.servers.goal.size = 3 })
}

pub(crate) fn changes_its_mind(chaos: &mut Chaos) -> Fault<'_> {
    Box::pin(async {
        chaos.servers.goal.size = 3;
        let times = 1 + chaos.random(8);
        chaos.reconcile(times).await;
        chaos.servers.goal.size = 4;
    })
}

/// The operator dies again and again, and a primary is lost before all nodes have the new password.
pub(crate) fn password_rotates(chaos: &mut Chaos) -> Fault<'_> {
    Box::pin(async {
        let servers = &mut chaos.servers;
        servers.write_secret(passwords::NEXT, Some(PASSWORD));
        chaos.reconcile_with_deaths(2).await;
        let primary = chaos.a_primary().await;
        chaos.servers.replace(primary);
        chaos.reconcile_with_deaths(3).await;
        chaos.servers.rotate_until(&Rotation::Both).await;
        chaos.servers.write_secret(passwords::NEXT, None);
        chaos.reconcile_with_deaths(3).await;
        chaos.servers.rotate_until(&Rotation::None).await;
    })
}

/// Half of the nodes have the files of the new certificate when the operator first dies.
pub(crate) fn certificate_renewed(chaos: &mut Chaos) -> Fault<'_> {
    Box::pin(async {
        let authority = chaos.authority.as_ref().unwrap();
        chaos.servers.write_certificate(&authority.pem, &authority.sign("second"));
        for ordinal in [0, 1, 2] {
            chaos.servers.refresh_files(ordinal);
        }
        chaos.reconcile_with_deaths(3).await;
        let primary = chaos.a_primary().await;
        chaos.servers.replace(primary);
        chaos.reconcile_with_deaths(3).await;
        tls::load(&mut chaos.servers).await;
    })
}

pub(crate) fn primary_killed(chaos: &mut Chaos) -> Fault<'_> {
    Box::pin(async {
        let primary = chaos.a_primary().await;
        chaos.servers.replace(primary);
    })
}

pub(crate) fn successor_killed(chaos: &mut Chaos) -> Fault<'_> {
    Box::pin(async {
        let primary = chaos.a_primary().await;
        let before = chaos.primaries().await;
        chaos.servers.replace(primary);
        chaos.servers.settle(A_WHILE).await;
        let after = chaos.primaries().await;
        let successor = after.into_iter().find(|ordinal| !before.contains(ordinal)).unwrap();
        chaos.servers.replace(successor);
    })
}

pub(crate) fn volume_lost(chaos: &mut Chaos) -> Fault<'_> {
    Box::pin(async {
        let primary = chaos.a_primary().await;
        chaos.servers.kill(primary);
        chaos.servers.lose_volume(primary);
        chaos.servers.start(primary);
    })
}

pub(crate) fn majority_lost(chaos: &mut Chaos) -> Fault<'_> {
    Box::pin(async {
        chaos.servers.goal.take_over = true;
        let kept = chaos.a_primary().await;
        for primary in chaos.primaries().await.into_iter().filter(|primary| *primary != kept) {
            chaos.servers.replace(primary);
        }
    })
}

pub(crate) fn all_restart(chaos: &mut Chaos) -> Fault<'_> {
    Box::pin(async {
        for ordinal in chaos.servers.ordinals() {
            chaos.servers.terminate(ordinal);
        }
        let mut ordinals: Vec<u32> = (0..chaos.servers.goal.size).collect();
        while !ordinals.is_empty() {
            let next = chaos.random(ordinals.len() as u64) as usize;
            let ordinal = ordinals.swap_remove(next);
            chaos.servers.start(ordinal);
        }
    })
}

/// A client writes until the last moment.
pub(crate) fn hibernated(chaos: &mut Chaos) -> Fault<'_> {
    Box::pin(async {
        hibernate::stop(&mut chaos.servers).await;
        chaos.servers.goal.hibernated = false;
    })
}

pub(crate) fn all_lost(chaos: &mut Chaos) -> Fault<'_> {
    Box::pin(async {
        for ordinal in chaos.servers.ordinals() {
            chaos.servers.replace(ordinal);
        }
        for _ in 0..10 {
            let (plan, _) = chaos.servers.turn(&Always).await;
            assert!(plan.actions.is_empty() && plan.step == Step::Wait(Wait::DataLost), "{plan:?}");
        }
        chaos.servers.goal.accept_data_loss = true;
    })
}

pub(crate) fn primary_frozen(chaos: &mut Chaos) -> Fault<'_> {
    Box::pin(async {
        let primary = chaos.a_primary().await;
        chaos.servers.signal(primary, "STOP");
        let until = Instant::now() + Duration::from_secs(10);
        while Instant::now() < until {
            chaos.reconcile(1).await;
        }
        chaos.servers.signal(primary, "CONT");
    })
}

pub(crate) fn operator_dies(chaos: &mut Chaos) -> Fault<'_> {
    Box::pin(async {
        chaos.servers.goal.size = 4;
        chaos.reconcile_with_deaths(30).await;
    })
}

pub(crate) fn killed_while_slots_move(chaos: &mut Chaos) -> Fault<'_> {
    Box::pin(async {
        chaos.servers.goal.size = 8;
        let moving = next_move(&mut chaos.servers).await;
        let commands = i64::try_from(5 + chaos.random(30)).unwrap();
        let _ = chaos.servers.reconcile(&Mortal(AtomicI64::new(commands))).await;
        // The keys that were moved have reached the replica of their new primary.
        chaos.servers.in_step().await;
        let pod = if chaos.random(2) == 0 { moving.from.pod } else { moving.to.pod };
        chaos.servers.replace(pod.strip_prefix("rc-").unwrap().parse().unwrap());
    })
}

pub(crate) fn scaled_to_nothing(chaos: &mut Chaos) -> Fault<'_> {
    Box::pin(async {
        chaos.servers.goal.size = 3;
        let times = 1 + chaos.random(6);
        chaos.reconcile(times).await;
        chaos.servers.scale_to_nothing();
    })
}

/// Each time as a primary.
pub(crate) fn killed_twice(chaos: &mut Chaos) -> Fault<'_> {
    Box::pin(async {
        let node = chaos.a_primary().await;
        for _ in 0..2 {
            chaos.servers.replace(node);
            chaos.servers.settle(A_WHILE).await;
            let successor = chaos.partner(node).await;
            chaos.servers.replace(successor);
            chaos.servers.settle(A_WHILE).await;
            assert!(chaos.primaries().await.contains(&node), "it is a primary again");
        }
    })
}

/// It would be back as an empty primary before anybody missed it; its script waits until its replica was elected.
pub(crate) fn container_restarts(chaos: &mut Chaos) -> Fault<'_> {
    Box::pin(async {
        let primary = chaos.a_primary().await;
        chaos.servers.kill_container(primary);
        let script = chaos.servers.start_script("start.sh", primary);
        while !script.is_finished() {
            chaos.reconcile(1).await;
        }
        script.await.unwrap();
        chaos.servers.start_container(primary);
    })
}

/// As fast as the PodDisruptionBudget permits, each after its preStop hook.
pub(crate) fn evicted_in_turn(chaos: &mut Chaos) -> Fault<'_> {
    Box::pin(async {
        for ordinal in chaos.servers.ordinals() {
            let deadline = Instant::now() + A_WHILE;
            while !all_in_sync(&Topology::of(chaos.servers.goal, &chaos.servers.observe().await)) {
                assert!(Instant::now() < deadline, "{:#?}", chaos.servers.observe().await);
                chaos.reconcile(1).await;
            }
            chaos.servers.start_script("stop.sh", ordinal).await.unwrap();
            chaos.servers.terminate(ordinal);
            chaos.servers.lose_volume(ordinal);
            chaos.servers.start(ordinal);
        }
    })
}

/// What the other side does meanwhile.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Meanwhile {
    /// It serves every slot.
    Serves,
    /// It cannot, and the operator waits.
    Waits,
}

impl Chaos {
    /// Cuts nodes off from all others and from the operator, each by itself. Primaries among them acknowledge writes of clients
    /// on their side for the node timeout at most.
    async fn cut_off(&mut self, ordinals: &[u32], meanwhile: Meanwhile) {
        let mut clients = vec![];
        for pod in self.servers.observe().await.pods {
            let node = pod.redis.unwrap();
            if !ordinals.contains(&pod.ordinal) || node.slots().is_empty() {
                continue;
            }
            let ip = pod.ip.unwrap();
            let mut connection = self.servers.access.connect(ip).await.unwrap();
            let (_, key) = tag_of(&mut connection, &node.slots()).await;
            clients.push(LocalClient::start(ip, key));
        }
        tokio::time::sleep(Duration::from_millis(200)).await;

        let cut = Instant::now();
        ordinals.iter().for_each(|ordinal| network::cut_off(self.servers.ip(*ordinal)));
        let mut served = false;
        while cut.elapsed() < CUT_OFF {
            let (plan, _) = self.servers.turn(&Always).await;
            assert!(meanwhile == Meanwhile::Serves || plan.actions.is_empty(), "{plan:?}");
            assert_eq!(plan.replicas, self.servers.replicas());
            served = Topology::of(self.servers.goal, &self.servers.observe().await).serves();
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        assert_eq!(served, meanwhile == Meanwhile::Serves, "{:#?}", self.servers.observe().await);
        // The rest is for a busy machine.
        let limit = NODE_TIMEOUT + Duration::from_secs(3);
        for client in clients {
            let (last, _) = client.stop().expect("it was served before");
            let took = last.saturating_duration_since(cut);
            assert!(took < limit, "a node that is cut off acknowledged a write after {took:?}");
        }
        ordinals.iter().for_each(|ordinal| network::reconnect(self.servers.ip(*ordinal)));
        self.servers.unready.clear();
    }

    /// The other node of its shard.
    async fn partner(&self, ordinal: u32) -> u32 {
        let observed = self.servers.observe().await;
        let nodes = || observed.pods.iter().map(|pod| (pod.ordinal, pod.redis.as_ref().unwrap()));
        let own = nodes().find(|(other, _)| *other == ordinal).unwrap().1;
        let same = |node: &redis_operator::plan::Node| {
            own.primary() == Some(node.id) || node.primary() == Some(own.id)
        };
        nodes().find(|(_, node)| same(node)).unwrap().0
    }

    async fn two_primaries(&mut self) -> Vec<u32> {
        let kept = self.a_primary().await;
        self.primaries().await.into_iter().filter(|primary| *primary != kept).collect()
    }

    /// Looks at a cluster for so long, while pods neither come nor go, and returns the steps.
    async fn looks_for(&mut self, time: Duration) -> Vec<Step> {
        let until = Instant::now() + time;
        let mut steps = vec![];
        while Instant::now() < until {
            steps.push(self.servers.turn(&Always).await.0.step);
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        steps.dedup();
        steps
    }

    /// Looks at a cluster that does not answer: nothing is done, and no pod is removed.
    async fn looks_on(&mut self, times: u32) {
        let replicas = self.servers.replicas();
        for _ in 0..times {
            let (plan, _) = self.servers.turn(&Always).await;
            assert_eq!((plan.step, plan.replicas), (Step::Wait(Wait::Pods), replicas), "{plan:?}");
        }
    }

    async fn halfway_from_5_to_3(&mut self) {
        self.servers.goal.size = 3;
        let times = 1 + self.random(8);
        self.reconcile(times).await;
    }
}

pub(crate) fn primary_cut_off(chaos: &mut Chaos) -> Fault<'_> {
    Box::pin(async {
        let primary = chaos.a_primary().await;
        chaos.cut_off(&[primary], Meanwhile::Serves).await;
    })
}

pub(crate) fn shard_cut_off(chaos: &mut Chaos) -> Fault<'_> {
    Box::pin(async {
        let primary = chaos.a_primary().await;
        let replica = chaos.partner(primary).await;
        chaos.cut_off(&[primary, replica], Meanwhile::Waits).await;
    })
}

/// Their kubelets reach them, so they may be running.
pub(crate) fn majority_cut_off(chaos: &mut Chaos) -> Fault<'_> {
    Box::pin(async {
        chaos.servers.goal.take_over = true;
        let primaries = chaos.two_primaries().await;
        chaos.cut_off(&primaries, Meanwhile::Waits).await;
    })
}

pub(crate) fn majority_cut_off_with_hosts(chaos: &mut Chaos) -> Fault<'_> {
    Box::pin(async {
        chaos.servers.goal.take_over = true;
        let primaries = chaos.two_primaries().await;
        chaos.servers.unready = BTreeSet::from_iter(primaries.clone());
        // Somebody has marked the Kubernetes nodes as out of service.
        chaos.servers.ended = BTreeSet::from_iter(primaries.clone());
        chaos.cut_off(&primaries, Meanwhile::Serves).await;
        chaos.servers.ended.clear();
    })
}

/// A zone with most primaries is cut off from everybody else, the API server included. It goes on serving the clients there.
pub(crate) fn zone_cut_off(chaos: &mut Chaos) -> Fault<'_> {
    Box::pin(async {
        chaos.servers.goal.take_over = true;
        let primaries = chaos.two_primaries().await;
        let kept = chaos.primaries().await.into_iter().find(|primary| !primaries.contains(primary)).unwrap();
        // It is elected on that side: a majority that lacks slots would serve nobody.
        let group = [primaries.clone(), vec![chaos.partner(kept).await]].concat();
        chaos.servers.unready = BTreeSet::from_iter(group.clone());
        let ips: Vec<_> = group.iter().map(|primary| chaos.servers.ip(*primary)).collect();
        let mut clients = vec![];
        for ip in &ips[..2] {
            let pods = chaos.servers.observe().await.pods;
            let node = pods.into_iter().find(|pod| pod.ip == Some(*ip)).unwrap().redis.unwrap();
            let mut connection = chaos.servers.access.connect(*ip).await.unwrap();
            let (_, key) = tag_of(&mut connection, &node.slots()).await;
            clients.push((LocalClient::start(*ip, key.clone()), key));
        }
        let cut = Instant::now();
        network::cut_off_together(&ips);
        while cut.elapsed() < CUT_OFF {
            let (plan, _) = chaos.servers.turn(&Always).await;
            assert!(plan.actions.is_empty(), "{plan:?}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let written: Vec<_> =
            clients.into_iter().map(|(client, key)| (client.stop().unwrap(), key)).collect();
        network::reconnect_together(&ips);
        chaos.servers.unready.clear();
        chaos.servers.settle(A_WHILE).await;
        for ((last, number), key) in written {
            assert!(last > cut + CUT_OFF / 2, "the majority serves its clients");
            let mut client = ClusterClient::new(chaos.servers.access.clone(), chaos.servers.ip(0));
            let found: u64 = client.send(&key, cmd("GET").arg(&key)).await.unwrap();
            assert!(found >= number, "{number} was acknowledged, and {found} is there");
        }
    })
}

/// Nothing arrives at a replica from its primary, and its connection stays up. Then the primary restarts.
pub(crate) fn replica_hears_nothing(chaos: &mut Chaos) -> Fault<'_> {
    Box::pin(async {
        let primary = chaos.a_primary().await;
        let replica = chaos.partner(primary).await;
        let (ip, replica) = (chaos.servers.ip(primary), chaos.servers.ip(replica));
        network::separate(ip, replica);
        let steps = chaos.looks_for(Duration::from_secs(30)).await;
        assert!(steps.contains(&Step::Wait(Wait::Sync)), "{steps:?}");
        let observed = chaos.servers.observe().await;
        assert!(!all_in_sync(&Topology::of(chaos.servers.goal, &observed)), "{observed:?}");
        chaos.servers.terminate(primary);
        network::rejoin(ip, replica);
        let steps = chaos.looks_for(5 * NODE_TIMEOUT).await;
        assert!(steps.contains(&Step::Wait(Wait::StaleReplicas)), "{steps:?}");
        chaos.servers.start(primary);
    })
}

/// A quota keeps the pod of a replica away while its primary takes writes. Then the primary's pod is deleted, and comes back long
/// after its replica, with its volume.
pub(crate) fn stale_replica_first(chaos: &mut Chaos) -> Fault<'_> {
    Box::pin(async {
        let primary = chaos.a_primary().await;
        let replica = chaos.partner(primary).await;
        chaos.servers.terminate(replica);
        chaos.looks_for(Duration::from_secs(3)).await;
        chaos.servers.terminate(primary);
        chaos.servers.start(replica);
        let steps = chaos.looks_for(5 * NODE_TIMEOUT).await;
        assert!(steps.contains(&Step::Wait(Wait::StaleReplicas)), "{steps:?}");
        assert!(!steps.contains(&Step::Elect), "{steps:?}");
        chaos.servers.start(primary);
    })
}

pub(crate) fn operator_dies_at_each_step(chaos: &mut Chaos) -> Fault<'_> {
    Box::pin(async {
        chaos.servers.goal.size = 4;
        let _ = next_move(&mut chaos.servers).await;
        for commands in 1..=40 {
            let _ = chaos.servers.reconcile(&Mortal(AtomicI64::new(commands))).await;
        }
    })
}

pub(crate) fn deleted_while_draining(chaos: &mut Chaos) -> Fault<'_> {
    Box::pin(async {
        chaos.halfway_from_5_to_3().await;
        let ordinals = chaos.servers.ordinals();
        for ordinal in &ordinals {
            chaos.servers.terminate(*ordinal);
        }
        chaos.looks_on(10).await;
        for ordinal in ordinals {
            chaos.servers.start(ordinal);
        }
    })
}

/// At any moment of a reconcile.
pub(crate) fn frozen_while_draining(chaos: &mut Chaos) -> Fault<'_> {
    Box::pin(async {
        chaos.halfway_from_5_to_3().await;
        let (processes, pause) = (chaos.servers.processes(), Duration::from_millis(chaos.random(2000)));
        let freezing = std::thread::spawn(move || {
            std::thread::park_timeout(pause);
            processes.iter().for_each(|process| signal::send("STOP", *process));
            processes
        });
        // No pod is removed before all are frozen: signals go to the processes of now.
        while !freezing.is_finished() {
            let _ = chaos.servers.turn(&Always).await;
        }
        chaos.looks_on(3).await;
        freezing.join().unwrap().iter().for_each(|process| signal::send("CONT", *process));
    })
}

pub(crate) fn password_changed(chaos: &mut Chaos) -> Fault<'_> {
    Box::pin(async {
        chaos.halfway_from_5_to_3().await;
        let other = Some(Password::new("somebody-else".into()));
        let password = std::mem::replace(&mut chaos.servers.access.password, other);
        chaos.looks_on(10).await;
        chaos.servers.access.password = password;
    })
}

pub(crate) fn large_key(chaos: &mut Chaos) -> Fault<'_> {
    Box::pin(async {
        chaos.servers.goal.size = 4;
        meet_a_large_key(&mut chaos.servers).await;
    })
}

pub(crate) fn cloned(chaos: &mut Chaos) -> Fault<'_> {
    Box::pin(async {
        let mut clone = Servers::copy_of(&chaos.servers);
        clone.settle(A_WHILE).await;
        let mut client = ClusterClient::new(clone.access.clone(), clone.ip(0));
        for key in (0..VALUES).map(key) {
            client.send::<()>(&key, cmd("SET").arg(&key).arg("of the clone")).await.unwrap();
        }
        chaos.reconcile(3).await;
        knows_only_its_own(&clone).await;
        knows_only_its_own(&chaos.servers).await;
    })
}

/// What it has of slots that were migrating is a matter of luck; the original must not notice.
pub(crate) fn cloned_while_draining(chaos: &mut Chaos) -> Fault<'_> {
    Box::pin(async {
        chaos.servers.goal.size = 3;
        let _ = next_move(&mut chaos.servers).await;
        let commands = i64::try_from(20 + chaos.random(200)).unwrap();
        let _ = chaos.servers.reconcile(&Mortal(AtomicI64::new(commands))).await;
        let mut clone = Servers::copy_of(&chaos.servers);
        chaos.servers.settle(A_WHILE).await;
        clone.settle(A_WHILE).await;
        knows_only_its_own(&clone).await;
        knows_only_its_own(&chaos.servers).await;
    })
}

/// For longer than nodes ban a node that they were told to forget.
pub(crate) fn address_passes(chaos: &mut Chaos) -> Fault<'_> {
    Box::pin(async { pass_an_address_on(&mut chaos.servers, Duration::from_secs(90)).await })
}

/// Every pod gets it, and as many were there before as after.
pub(crate) fn new_image(chaos: &mut Chaos) -> Fault<'_> {
    Box::pin(async {
        let before = chaos.servers.ordinals();
        chaos.servers.template += 1;
        let steps = chaos.servers.settle(A_WHILE).await;
        assert!(steps.contains(&Step::Update), "{steps:?}");
        assert_eq!(chaos.servers.ordinals(), before);
        assert!(chaos.servers.observe().await.pods.iter().all(|pod| !pod.outdated));
    })
}

/// The pod that gets it first does not start; all others stay as they are, and every slot is served.
pub(crate) fn broken_image(chaos: &mut Chaos) -> Fault<'_> {
    Box::pin(async {
        chaos.servers.template += 1;
        chaos.servers.broken = Some(chaos.servers.template);
        let until = Instant::now() + 10 * NODE_TIMEOUT;
        while Instant::now() < until {
            let (plan, _) = chaos.servers.reconcile(&Always).await;
            let observed = chaos.servers.observe().await;
            let topology = Topology::of(chaos.servers.goal, &observed);
            assert!(topology.serves(), "{plan:?}");
            let updated = observed.pods.iter().filter(|pod| !pod.outdated).count();
            assert!(updated <= 1, "{updated} pods have the broken image");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let (plan, _) = chaos.servers.reconcile(&Always).await;
        assert_eq!(plan.step, Step::Wait(Wait::Pods));
        chaos.servers.template -= 1;
    })
}

pub(crate) fn second_image(chaos: &mut Chaos) -> Fault<'_> {
    Box::pin(async {
        chaos.servers.template += 1;
        let times = 1 + chaos.random(40);
        chaos.reconcile(times).await;
        chaos.servers.template += 1;
    })
}

pub(crate) fn dies_while_updating(chaos: &mut Chaos) -> Fault<'_> {
    Box::pin(async {
        chaos.servers.template += 1;
        chaos.reconcile_with_deaths(30).await;
    })
}
