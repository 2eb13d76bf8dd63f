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
    plan::{Step, Topology},
    server::{Access, Password, act::Always},
};

use crate::{
    A_WHILE, Mortal,
    authority::Authority,
    faults,
    flavour::Flavour,
    formed, passwords,
    servers::Servers,
    support::Part,
    tls, trial_with,
    writer::{ClusterClient, Writer, Written},
};

/// Values that are there before anything happens.
pub(crate) const VALUES: u32 = 400;

/// A fault, and what a cluster has to be for it.
struct Case {
    name: &'static str,
    /// Nodes, and replicas of each primary.
    shape: (u32, u32),
    fault: for<'a> fn(&'a mut Chaos) -> Fault<'a>,
    persistent: bool,
    /// Whether it is in the short half: what other tests here do not show, in a few seconds.
    short: bool,
    /// Whether it is in the short half of the other flavours.
    flavoured: bool,
    /// Whether a client writes meanwhile.
    written: bool,
    /// Whether nodes are cut off.
    partition: bool,
    /// Whether connections are encrypted.
    tls: bool,
    loses: Loses,
}

/// What may be lost.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Loses {
    Nothing,
    /// Writes that had no copy yet when their process was killed, cut off or demoted.
    WritesOfTheMoment,
    Everything,
}

impl Case {
    /// A case in memory, with a client, that loses nothing.
    const fn of(
        name: &'static str,
        shape: (u32, u32),
        fault: for<'a> fn(&'a mut Chaos) -> Fault<'a>,
    ) -> Self {
        let (persistent, short, written, partition, tls) = (false, false, true, false, false);
        let flavoured = false;
        Self {
            name,
            shape,
            fault,
            persistent,
            short,
            flavoured,
            written,
            partition,
            tls,
            loses: Loses::Nothing,
        }
    }

    const fn on_volumes(self) -> Self {
        Self { persistent: true, ..self }
    }

    const fn short(self) -> Self {
        Self { short: true, ..self }
    }

    const fn on_each_flavour(self) -> Self {
        Self { flavoured: true, ..self }
    }

    const fn without_client(self) -> Self {
        Self { written: false, ..self }
    }

    const fn with_partition(self) -> Self {
        Self { partition: true, ..self }
    }

    const fn with_tls(self) -> Self {
        Self { tls: true, ..self }
    }

    const fn losing(self, loses: Loses) -> Self {
        Self { loses, ..self }
    }
}

pub(crate) type Fault<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// A cluster to which something happens.
pub(crate) struct Chaos {
    pub(crate) servers: Servers,
    /// Who signed the certificate of its nodes, if they have TLS.
    pub(crate) authority: Option<Authority>,
    random: u64,
}

static CASES: [Case; 42] = [
    Case::of("3 nodes become 5", (3, 0), faults::grows),
    Case::of("5 nodes become 3", (5, 0), faults::shrinks),
    Case::of("5 nodes become 3, then 4 halfway", (5, 0), faults::changes_its_mind),
    Case::of("a primary is killed", (6, 1), faults::primary_killed).short().losing(Loses::WritesOfTheMoment),
    Case::of("its successor is killed too", (6, 1), faults::successor_killed)
        .short()
        .losing(Loses::WritesOfTheMoment),
    Case::of("a node is killed, its successor, and it again", (6, 1), faults::killed_twice)
        .losing(Loses::WritesOfTheMoment),
    Case::of("the container of a primary restarts at once", (6, 1), faults::container_restarts)
        .short()
        .losing(Loses::WritesOfTheMoment),
    Case::of("a pod is lost with its volume", (6, 1), faults::volume_lost)
        .on_volumes()
        .short()
        .losing(Loses::WritesOfTheMoment),
    Case::of("two of three primaries are lost", (6, 1), faults::majority_lost)
        .short()
        .losing(Loses::WritesOfTheMoment),
    Case::of("all pods restart elsewhere", (6, 1), faults::all_restart)
        .on_volumes()
        .short()
        .losing(Loses::WritesOfTheMoment),
    Case::of("all pods in memory are lost", (6, 1), faults::all_lost).short().losing(Loses::Everything),
    Case::of("all pods are evicted in turn", (6, 1), faults::evicted_in_turn),
    Case::of("a primary is frozen for 10 s", (6, 1), faults::primary_frozen).losing(Loses::WritesOfTheMoment),
    Case::of("a primary is cut off for 15 s", (6, 1), faults::primary_cut_off)
        .with_partition()
        .short()
        .losing(Loses::WritesOfTheMoment),
    Case::of("a shard is cut off for 15 s", (6, 1), faults::shard_cut_off)
        .with_partition()
        .losing(Loses::WritesOfTheMoment),
    Case::of("two of three primaries are cut off for 15 s", (6, 1), faults::majority_cut_off)
        .with_partition()
        .losing(Loses::WritesOfTheMoment),
    Case::of(
        "two of three primaries are cut off for 15 s, with their Kubernetes nodes",
        (6, 1),
        faults::majority_cut_off_with_hosts,
    )
    .with_partition()
    .losing(Loses::WritesOfTheMoment),
    Case::of(
        "a zone with two of three primaries and clients is cut off for 15 s",
        (6, 1),
        faults::zone_cut_off,
    )
    .on_volumes()
    .with_partition()
    .losing(Loses::WritesOfTheMoment),
    Case::of(
        "a replica hears nothing from its primary for 30 s, and that restarts",
        (6, 1),
        faults::replica_hears_nothing,
    )
    .on_volumes()
    .with_partition(),
    Case::of("a replica that missed writes starts before its primary", (6, 1), faults::stale_replica_first)
        .on_volumes()
        .short(),
    Case::of("the operator dies again and again while slots move", (3, 0), faults::operator_dies),
    Case::of(
        "the operator dies after each command of a slot move",
        (3, 0),
        faults::operator_dies_at_each_step,
    ),
    Case::of("a node is killed in the middle of a slot", (6, 1), faults::killed_while_slots_move)
        .on_each_flavour()
        .losing(Loses::WritesOfTheMoment),
    Case::of("`kubectl scale` to 0 in the middle of 5 to 3", (5, 0), faults::scaled_to_nothing)
        .on_volumes()
        .losing(Loses::WritesOfTheMoment),
    Case::of("all pods are deleted in the middle of 5 to 3", (5, 0), faults::deleted_while_draining)
        .on_volumes()
        .losing(Loses::WritesOfTheMoment),
    Case::of("all pods freeze in the middle of 5 to 3", (5, 0), faults::frozen_while_draining)
        .losing(Loses::WritesOfTheMoment),
    Case::of("the password changes in the middle of 5 to 3", (5, 0), faults::password_changed),
    Case::of(
        "the password changes, the operator dies again and again, and a primary is lost",
        (6, 1),
        faults::password_rotates,
    )
    .short()
    .losing(Loses::WritesOfTheMoment),
    Case::of(
        "a certificate is renewed, the operator dies again and again, and a primary is lost",
        (6, 1),
        faults::certificate_renewed,
    )
    .with_tls()
    .losing(Loses::WritesOfTheMoment),
    Case::of("a key is too large to migrate", (3, 0), faults::large_key),
    Case::of("a clone of the volumes starts beside the original", (3, 0), faults::cloned).on_volumes(),
    Case::of("a clone starts in the middle of 5 to 3", (5, 0), faults::cloned_while_draining).on_volumes(),
    Case::of("all pods are hibernated and woken", (6, 1), faults::hibernated).on_volumes().short(),
    Case::of("a new image", (6, 1), faults::new_image).short(),
    Case::of("a new image, on volumes", (6, 1), faults::new_image).on_volumes(),
    Case::of("a new image without replicas, in memory", (3, 0), faults::new_image).short(),
    Case::of("a new image without replicas, on volumes", (3, 0), faults::new_image).on_volumes().short(),
    Case::of("a new image for a single node in memory", (1, 0), faults::new_image).short(),
    Case::of("an image that cannot start, then the old one again", (6, 1), faults::broken_image).short(),
    Case::of("a second image before the first is done", (6, 1), faults::second_image),
    Case::of("the operator dies again and again while it replaces pods", (3, 0), faults::dies_while_updating),
    Case::of("a pod of another cluster gets the address of a lost one", (3, 0), faults::address_passes)
        .on_volumes()
        .without_client(),
];

/// The cases as tests. `no_network` says why nodes cannot be cut off, if so.
pub(crate) fn trials(no_network: Option<String>) -> Vec<Trial> {
    let seeds = std::env::var("OLMKIT_CHAOS_SEEDS").ok().map(|seeds| seeds.parse::<u64>().unwrap());
    let netns = Part::new("netns", no_network);
    let mut trials = vec![];
    for flavour in [Flavour::Redis7].into_iter().chain(Flavour::OTHERS) {
        let is_short = |case: &&Case| if flavour == Flavour::Redis7 { case.short } else { case.flavoured };
        // The servers of the others were built without TLS.
        let can_run = |case: &&Case| flavour == Flavour::Redis7 || !case.tls;
        let cases = CASES.iter().filter(|case| (is_short(case) || seeds.is_some()) && can_run(case));
        for (case, seed) in cases.flat_map(|case| (1..=seeds.unwrap_or(1)).map(move |seed| (case, seed))) {
            let name = format!("chaos: {}, {}, seed {seed}", case.name, flavour.name());
            let parts = if case.partition { vec![netns.clone()] } else { vec![] };
            trials.push(trial_with(&name, flavour, parts, move || run(case, seed, seeds.is_some())));
        }
    }
    trials
}

pub(crate) fn key(number: u32) -> String {
    format!("value-{number}")
}

#[expect(clippy::print_stdout, reason = "`make chaos` prints a table")]
async fn run(case: &'static Case, seed: u64, prints: bool) {
    let (size, replicas) = case.shape;
    let (servers, authority) = if case.tls {
        let (servers, authority) = tls::formed(size, replicas, case.persistent).await;
        (servers, Some(authority))
    } else {
        (formed(size, replicas, case.persistent).await, None)
    };
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
    // A client that knows both passwords, as those do that follow a change.
    let next = Some(Password::new(passwords::NEXT.into()));
    let access = Access { previous: next, ..servers.access.clone() };
    let writer = case.written.then(|| Writer::start(access, first, 100));
    let mut chaos = Chaos { servers, authority, random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) };
    let pause = chaos.random(500);
    tokio::time::sleep(Duration::from_millis(pause)).await;

    let started = Instant::now();
    (case.fault)(&mut chaos).await;
    let mut servers = chaos.servers;
    servers.settle(A_WHILE).await;
    let took = started.elapsed();

    let written = match writer {
        Some(writer) => writer.stop().await,
        None => Written::default(),
    };
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
        let (stall, flavour) = (written.stall.as_secs_f64(), Flavour::present().name());
        println!(
            "| {name} | {flavour} | {seed} | {took:.1} s | {missing} of {VALUES} | {lost} of {all} | {stall:.1} s |"
        );
    }
    assert_eq!(missing, if case.loses == Loses::Everything { VALUES } else { 0 }, "values are lost");
    assert!(lost == 0 || case.loses != Loses::Nothing, "{lost} acknowledged writes are lost");
}

impl Chaos {
    /// A number below `limit`, the same for the same seed.
    pub(crate) fn random(&mut self, limit: u64) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.random ^ (self.random >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed ^ (mixed >> 31)) % limit
    }

    /// Ordinals of those that own slots.
    pub(crate) async fn primaries(&self) -> Vec<u32> {
        let observed = self.servers.observe().await;
        let topology = Topology::of(self.servers.goal, &observed);
        topology.owners().map(|owner| owner.pod.ordinal).collect()
    }

    pub(crate) async fn a_primary(&mut self) -> u32 {
        let primaries = self.primaries().await;
        primaries[self.random(primaries.len() as u64) as usize]
    }

    /// Reconciles so often while `goal` is being reached.
    pub(crate) async fn reconcile(&mut self, times: u64) {
        for _ in 0..times {
            let _ = self.servers.reconcile(&Always).await;
        }
    }

    /// Reconciles with operators that each die after some commands.
    pub(crate) async fn reconcile_with_deaths(&mut self, deaths: u64) {
        for _ in 0..deaths {
            let commands = i64::try_from(1 + self.random(60)).unwrap();
            let _ = self.servers.reconcile(&Mortal(AtomicI64::new(commands))).await;
        }
    }
}
