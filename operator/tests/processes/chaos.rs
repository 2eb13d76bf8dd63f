//! Faults while a client writes. Whatever happens, the cluster settles by itself, every value that its replicas or volumes had
//! is there, and three more looks find nothing to do.
//!
//! `make chaos` runs each case with three seeds, which choose nodes and moments, and prints the table that
//! docs/redis-operator.md has. The tests run a short half with one.

use std::{
    collections::BTreeMap,
    future::Future,
    pin::Pin,
    sync::atomic::AtomicI64,
    time::{Duration, Instant},
};

use libtest_mimic::Trial;
use redis::cmd;
use redis_operator::{
    plan::{Step, Topology, Wait},
    server::act::Always,
};

use crate::{
    A_WHILE, Mortal, formed,
    servers::Servers,
    trial,
    writer::{ClusterClient, Writer},
};

/// Values that are there before anything happens.
const VALUES: u32 = 400;

/// A fault, and what a cluster has to be for it.
struct Case {
    name: &'static str,
    /// Nodes, and replicas of each primary.
    shape: (u32, u32),
    persistent: bool,
    /// Whether it is in the short half: what other tests here do not show, in a few seconds.
    short: bool,
    /// Writes of the moment that may be lost: those of a process that is killed or demoted had no copy yet.
    loses: Loses,
    fault: for<'a> fn(&'a mut Chaos) -> Fault<'a>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Loses {
    Nothing,
    WritesOfTheMoment,
    Everything,
}

type Fault<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// A cluster to which something happens.
struct Chaos {
    servers: Servers,
    random: u64,
}

static CASES: [Case; 13] = [
    Case {
        name: "3 nodes become 5",
        shape: (3, 0),
        persistent: false,
        short: false,
        loses: Loses::Nothing,
        fault: grows,
    },
    Case {
        name: "5 nodes become 3",
        shape: (5, 0),
        persistent: false,
        short: false,
        loses: Loses::Nothing,
        fault: shrinks,
    },
    Case {
        name: "5 nodes become 3, then 4 halfway",
        shape: (5, 0),
        persistent: false,
        short: false,
        loses: Loses::Nothing,
        fault: changes_its_mind,
    },
    Case {
        name: "a primary is killed",
        shape: (6, 1),
        persistent: false,
        short: true,
        loses: Loses::WritesOfTheMoment,
        fault: primary_killed,
    },
    Case {
        name: "its successor is killed too",
        shape: (6, 1),
        persistent: false,
        short: true,
        loses: Loses::WritesOfTheMoment,
        fault: successor_killed,
    },
    Case {
        name: "a pod is lost with its volume",
        shape: (6, 1),
        persistent: true,
        short: true,
        loses: Loses::WritesOfTheMoment,
        fault: volume_lost,
    },
    Case {
        name: "two of three primaries are lost",
        shape: (6, 1),
        persistent: false,
        short: true,
        loses: Loses::WritesOfTheMoment,
        fault: majority_lost,
    },
    Case {
        name: "all pods restart elsewhere",
        shape: (6, 1),
        persistent: true,
        short: true,
        loses: Loses::WritesOfTheMoment,
        fault: all_restart,
    },
    Case {
        name: "all pods in memory are lost",
        shape: (6, 1),
        persistent: false,
        short: true,
        loses: Loses::Everything,
        fault: all_lost,
    },
    Case {
        name: "a primary is frozen for 10 s",
        shape: (6, 1),
        persistent: false,
        short: false,
        loses: Loses::WritesOfTheMoment,
        fault: primary_frozen,
    },
    Case {
        name: "the operator dies again and again while slots move",
        shape: (3, 0),
        persistent: false,
        short: false,
        loses: Loses::Nothing,
        fault: operator_dies,
    },
    Case {
        name: "a node is killed in the middle of a slot",
        shape: (6, 1),
        persistent: false,
        short: false,
        loses: Loses::WritesOfTheMoment,
        fault: killed_while_slots_move,
    },
    Case {
        name: "`kubectl scale` to 0 in the middle of 5 to 3",
        shape: (5, 0),
        persistent: true,
        short: false,
        loses: Loses::WritesOfTheMoment,
        fault: scaled_to_nothing,
    },
];

/// The cases as tests.
pub(crate) fn trials() -> Vec<Trial> {
    let seeds = std::env::var("OLMKIT_CHAOS_SEEDS").ok().map(|seeds| seeds.parse::<u64>().unwrap());
    let cases = CASES.iter().filter(|case| case.short || seeds.is_some());
    let all = cases.flat_map(|case| (1..=seeds.unwrap_or(1)).map(move |seed| (case, seed)));
    all.map(|(case, seed)| {
        trial(&format!("chaos: {}, seed {seed}", case.name), move || run(case, seed, seeds.is_some()))
    })
    .collect()
}

fn key(number: u32) -> String {
    format!("value-{number}")
}

#[expect(clippy::print_stdout, reason = "`make chaos` prints a table")]
async fn run(case: &'static Case, seed: u64, prints: bool) {
    let servers = formed(case.shape.0, case.shape.1, case.persistent).await;
    let first = servers.ip(0);
    let mut client = ClusterClient::new(servers.access.clone(), first);
    let expected: BTreeMap<String, String> =
        (0..VALUES).map(|number| (key(number), format!("{seed}-{number}"))).collect();
    for (key, value) in &expected {
        client.send::<()>(key, cmd("SET").arg(key).arg(value)).await.unwrap();
    }
    servers.in_step().await;
    // The append-only file is written every second.
    tokio::time::sleep(Duration::from_millis(if case.persistent { 1500 } else { 0 })).await;
    let writer = Writer::start(servers.access.clone(), first, 100);
    let mut chaos = Chaos { servers, random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) };
    let pause = chaos.random(500);
    tokio::time::sleep(Duration::from_millis(pause)).await;

    let started = Instant::now();
    (case.fault)(&mut chaos).await;
    let mut servers = chaos.servers;
    servers.settle(A_WHILE).await;
    let took = started.elapsed();

    let written = writer.stop().await;
    let lost = written.lost(&servers.access, servers.ip(0)).await.len();
    let mut client = ClusterClient::new(servers.access.clone(), servers.ip(0));
    let mut missing = 0;
    for (key, value) in &expected {
        let found: Option<String> = client.send(key, cmd("GET").arg(key)).await.unwrap();
        missing += u32::from(found.as_ref() != Some(value));
    }
    for _ in 0..3 {
        let (plan, _) = servers.turn(&Always).await;
        assert_eq!((plan.step, plan.actions.len()), (Step::Settled, 0), "it is not settled for good");
    }
    if prints {
        let (name, took, all) = (case.name, took.as_secs_f64(), written.acknowledged.len());
        println!("| {name} | {seed} | {took:.1} s | {missing} of {VALUES} | {lost} of {all} |");
    }
    assert_eq!(missing, if case.loses == Loses::Everything { VALUES } else { 0 }, "values are lost");
    assert!(lost == 0 || case.loses != Loses::Nothing, "{lost} acknowledged writes are lost");
}

impl Chaos {
    /// A number below `limit`, the same for the same seed.
    fn random(&mut self, limit: u64) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.random ^ (self.random >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed ^ (mixed >> 31)) % limit
    }

    /// Ordinals of those that own slots.
    async fn primaries(&self) -> Vec<u32> {
        let observed = self.servers.observe().await;
        let topology = Topology::of(self.servers.goal, &observed);
        topology.owners().map(|owner| owner.pod.ordinal).collect()
    }

    async fn a_primary(&mut self) -> u32 {
        let primaries = self.primaries().await;
        primaries[self.random(primaries.len() as u64) as usize]
    }

    /// Reconciles so often while `goal` is being reached.
    async fn reconcile(&mut self, times: u64) {
        for _ in 0..times {
            let _ = self.servers.reconcile(&Always).await;
        }
    }

    /// Reconciles with operators that each die after some commands.
    async fn reconcile_with_deaths(&mut self, deaths: u64) {
        for _ in 0..deaths {
            let commands = i64::try_from(1 + self.random(60)).unwrap();
            let _ = self.servers.reconcile(&Mortal(AtomicI64::new(commands))).await;
        }
    }
}

fn grows(chaos: &mut Chaos) -> Fault<'_> {
    Box::pin(async { chaos.servers.goal.size = 5 })
}

fn shrinks(chaos: &mut Chaos) -> Fault<'_> {
    Box::pin(async { chaos.servers.goal.size = 3 })
}

fn changes_its_mind(chaos: &mut Chaos) -> Fault<'_> {
    Box::pin(async {
        chaos.servers.goal.size = 3;
        let times = 1 + chaos.random(8);
        chaos.reconcile(times).await;
        chaos.servers.goal.size = 4;
    })
}

fn primary_killed(chaos: &mut Chaos) -> Fault<'_> {
    Box::pin(async {
        let primary = chaos.a_primary().await;
        chaos.servers.replace(primary);
    })
}

fn successor_killed(chaos: &mut Chaos) -> Fault<'_> {
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

fn volume_lost(chaos: &mut Chaos) -> Fault<'_> {
    Box::pin(async {
        let primary = chaos.a_primary().await;
        chaos.servers.kill(primary);
        chaos.servers.lose_volume(primary);
        chaos.servers.start(primary);
    })
}

fn majority_lost(chaos: &mut Chaos) -> Fault<'_> {
    Box::pin(async {
        chaos.servers.goal.take_over = true;
        let kept = chaos.a_primary().await;
        for primary in chaos.primaries().await.into_iter().filter(|primary| *primary != kept) {
            chaos.servers.replace(primary);
        }
    })
}

fn all_restart(chaos: &mut Chaos) -> Fault<'_> {
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

fn all_lost(chaos: &mut Chaos) -> Fault<'_> {
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

fn primary_frozen(chaos: &mut Chaos) -> Fault<'_> {
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

fn operator_dies(chaos: &mut Chaos) -> Fault<'_> {
    Box::pin(async {
        chaos.servers.goal.size = 4;
        chaos.reconcile_with_deaths(30).await;
    })
}

fn killed_while_slots_move(chaos: &mut Chaos) -> Fault<'_> {
    Box::pin(async {
        chaos.servers.goal.size = 8;
        let moving = crate::next_move(&mut chaos.servers).await;
        let commands = i64::try_from(5 + chaos.random(30)).unwrap();
        let _ = chaos.servers.reconcile(&Mortal(AtomicI64::new(commands))).await;
        // What was written has reached the replicas.
        tokio::time::sleep(Duration::from_millis(50)).await;
        let pod = if chaos.random(2) == 0 { moving.from.pod } else { moving.to.pod };
        chaos.servers.replace(pod.strip_prefix("rc-").unwrap().parse().unwrap());
    })
}

fn scaled_to_nothing(chaos: &mut Chaos) -> Fault<'_> {
    Box::pin(async {
        chaos.servers.goal.size = 3;
        let times = 1 + chaos.random(6);
        chaos.reconcile(times).await;
        chaos.servers.scale_to_nothing();
    })
}
