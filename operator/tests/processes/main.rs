//! Observing and acting against real redis-server processes, without Kubernetes: clusters form, scale under load, heal.
//!
//! Most run on `redis-server`, Debian's package of this name; what depends on the flavour also runs on Redis 8 and Valkey 9.
//! Without a server, its tests are listed as not run.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../support/authority.rs"]
mod authority;
mod chaos;
mod configuration;
mod faults;
mod flavour;
mod hibernate;
mod network;
mod passwords;
mod servers;
#[path = "../../../tests/support/signal.rs"]
mod signal;
#[path = "../../../tests/support/mod.rs"]
mod support;
mod tls;
mod users;
mod writer;

use std::{
    collections::BTreeSet,
    sync::atomic::{AtomicI64, Ordering},
    time::{Duration, Instant},
};

use flavour::Flavour;
use libtest_mimic::{Arguments, Trial};
use redis::cmd;
use redis_operator::{
    plan::{Action, Link, Move, Node, Observed, Pod, Slots, Step, Topology, Wait, plan},
    server::{
        COMMAND_DEADLINE, Connection, Password,
        act::{ActError, Always, Permit, act},
    },
};
use servers::{PASSWORD, PORT, Servers};
use support::Part;
use writer::{ClusterClient, Writer};

fn main() {
    let no_network = network::enter();
    let mut trials = vec![
        trial("three_nodes_form_a_cluster", three_nodes_form_a_cluster),
        trial("slots_move_while_clients_write", slots_move_while_clients_write),
        trial("a_killed_primary_is_replaced", a_killed_primary_is_replaced),
        trial("all_nodes_come_back_elsewhere", all_nodes_come_back_elsewhere),
        trial("an_operator_dies_between_any_two_commands", an_operator_dies_between_any_two_commands),
        trial("slots_left_after_any_command_are_finished", || slots_left(0)),
        trial("slots_move_in_few_commands", slots_move_in_few_commands),
        trial("what_a_lost_receiver_was_given_is_kept", what_a_lost_receiver_was_given_is_kept),
        trial("a_key_too_large_to_move_is_named_before_its_slot_is_opened", a_key_too_large_to_move),
        trial("copies_on_one_kubernetes_node_move_apart", copies_on_one_kubernetes_node_move_apart),
        trial("primaries_on_one_kubernetes_node_move_apart", primaries_on_one_kubernetes_node_move_apart),
        trial("a_slot_move_yields_after_a_batch", a_slot_move_yields_after_a_batch),
        trial("what_was_promoted_meanwhile_is_left_alone", what_was_promoted_meanwhile_is_left_alone),
        trial("keys_are_moved_only_while_replicas_keep_up", keys_are_moved_only_while_replicas_keep_up),
        trial("the_last_replica_of_two_shards_takes_over", the_last_replica_of_two_shards_takes_over),
        trial("a_replica_without_its_first_copy_is_not_elected", a_replica_without_its_first_copy),
        trial("a_replica_that_started_without_its_primary_is_elected", a_replica_that_started_alone),
        trial("slots_that_are_given_up_are_served_again", slots_that_are_given_up_are_served_again),
        trial("a_copy_of_volumes_never_speaks_with_its_origin", a_copy_of_volumes),
        trial("a_primary_hands_over_before_it_stops", a_primary_hands_over_before_it_stops),
        trial(
            "a_primary_does_not_wait_for_a_replica_that_is_silent",
            a_primary_does_not_wait_for_a_silent_replica,
        ),
        trial("what_a_replica_had_before_it_was_reset_does_not_come_back", deleted_keys_stay_deleted),
        trial("all_replicas_become_primaries", all_replicas_become_primaries),
        trial("a_wrong_password_is_told_from_silence", a_wrong_password_is_told_from_silence),
        trial("a_foreign_node_at_an_address_of_ours_is_not_met", a_foreign_node_is_not_met),
        trial("new_primaries_get_the_function_libraries", new_primaries_get_functions),
        trial("a_shard_that_the_others_were_told_to_forget_is_introduced_again", forgotten_by_hand),
        trial("a_blank_node_at_an_address_of_ours_is_not_taken_in", a_blank_node_is_not_taken_in),
        trial("an_address_passes_to_another_cluster", an_address_passes_to_another_cluster),
        trial("without_the_lease_nothing_is_said", without_the_lease_nothing_is_said),
        trial("hibernated_nodes_come_back_with_every_write", hibernate::every_write_comes_back),
        trial("a_hold_that_ends_leaves_nothing_behind", hibernate::a_hold_that_ends),
        trial("a_replica_that_is_behind_keeps_pods_running", hibernate::a_replica_behind),
        trial(
            "an_operator_that_dies_while_it_holds_leaves_no_shard_without_a_successor",
            hibernate::an_operator_that_dies_while_it_holds,
        ),
        trial("directives_are_set_while_clients_write", configuration::set_while_clients_write),
        trial("a_directive_that_redis_refuses_is_named_and_changes_nothing", configuration::refused),
        trial("a_node_above_its_memory_limit_keeps_what_it_has", configuration::memory_limit),
        trial("redis_takes_every_directive_that_replaces_no_pod", configuration::every_directive),
        trial("a_password_changes_while_clients_write", passwords::changes_while_clients_write),
        trial("a_password_changes_while_slots_move", passwords::changes_while_slots_move),
        trial("an_old_password_is_kept_while_a_node_is_not_seen", passwords::waits_for_every_node),
        trial(
            "a_password_that_was_changed_without_the_previous_one",
            passwords::changed_without_the_previous_one,
        ),
        trial("probes_and_the_last_script_use_the_passwords_of_the_files", passwords::scripts_use_files),
        trial("declared_users_are_on_every_node", users::on_every_node),
        trial("a_cluster_with_tls_scales_and_fails_over", tls::scales_and_fails_over),
        trial("a_certificate_is_renewed_while_clients_write", tls::renewed_while_clients_write),
        trial("a_new_ca_replaces_the_old_one", tls::new_authority),
        trial("an_expired_certificate_can_be_renewed", tls::expired),
        trial("nodes_with_the_certificate_of_another_ca_are_named", tls::of_another_authority),
        trial("probes_and_the_last_script_use_tls", tls::scripts),
    ];
    trials.extend(Flavour::OTHERS.into_iter().flat_map(flavoured));
    trials.extend(chaos::trials(no_network));
    support::run(&Arguments::from_args(), trials).exit();
}

fn trial<F>(name: &str, test: impl FnOnce() -> F + Send + 'static) -> Trial
where
    F: Future<Output = ()> + 'static,
{
    trial_with(name, Flavour::Redis7, vec![], test)
}

/// A test on a flavour that needs these parts besides.
fn trial_with<F>(
    name: &str,
    flavour: Flavour,
    mut parts: Vec<Part>,
    test: impl FnOnce() -> F + Send + 'static,
) -> Trial
where
    F: Future<Output = ()> + 'static,
{
    // Scripts of pods use `redis-cli`, which comes with it.
    parts.extend([Flavour::Redis7.part(), flavour.part()]);
    support::trial_with(name, &parts, move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async move { flavour.run(test()).await });
        Ok(())
    })
}

/// What can differ from one flavour to the other: what takes more than a minute waits.
fn flavoured(flavour: Flavour) -> Vec<Trial> {
    macro_rules! trials {
        ($($name:literal: $test:expr),* $(,)?) => {
            vec![$(trial_with(&format!("{}, {}", $name, flavour.name()), flavour, vec![], $test)),*]
        };
    }
    let mut trials = trials![
        "a_replica_that_started_without_its_primary_is_elected": a_replica_that_started_alone,
        "redis_takes_every_directive_that_replaces_no_pod": configuration::every_directive,
        "declared_users_are_on_every_node": users::on_every_node,
        "a_shard_that_the_others_were_told_to_forget_is_introduced_again": forgotten_by_hand,
        "a_node_that_was_told_to_forget_the_others_is_introduced_later": forgets_all_others,
    ];
    // Its replicas know open slots.
    if flavour == Flavour::Valkey9 {
        trials.extend(trials![
            "an_operator_dies_between_any_two_commands": an_operator_dies_between_any_two_commands,
            "slots_left_with_replicas_are_finished": || slots_left(1),
        ]);
    }
    trials
}

/// How long is waited: more than a machine that is busy otherwise needs. It says nothing of how long things take.
const A_WHILE: Duration = Duration::from_secs(300);

async fn formed(size: u32, replicas_per_shard: u32, persistent: bool) -> Servers {
    let mut servers = Servers::new(size, replicas_per_shard, persistent);
    servers.scale(size);
    servers.settle(A_WHILE).await;
    servers
}

async fn three_nodes_form_a_cluster() {
    let mut servers = Servers::new(3, 0, false);
    servers.scale(3);
    let started = Instant::now();
    let steps = servers.settle(A_WHILE).await;
    assert_eq!(steps[0], Step::Form);
    assert!(started.elapsed() < Duration::from_secs(60), "{:?}", started.elapsed());
    assert_eq!(servers.slots().await, [5461, 5461, 5462]);
    // And nothing more is to be done.
    let (plan, _) = servers.reconcile(&Always).await;
    assert_eq!((plan.step, plan.actions.len()), (Step::Settled, 0));
}

async fn fill(servers: &Servers, keys: u64) {
    let mut client = ClusterClient::new(servers.access.clone(), servers.ip(0));
    for key in 0..keys {
        let key = format!("key-{key}");
        client.send::<()>(&key, cmd("SET").arg(&key).arg("x".repeat(64))).await.unwrap();
    }
    servers.in_step().await;
}

/// `CLUSTER RESET` empties a replica in memory, and not its append-only file.
async fn deleted_keys_stay_deleted() {
    let mut servers = formed(2, 1, true).await;
    fill(&servers, 200).await;
    servers.goal.replicas_per_shard = 0;
    servers.settle(A_WHILE).await;
    let mut client = ClusterClient::new(servers.access.clone(), servers.ip(0));
    for key in 0..200 {
        let key = format!("key-{key}");
        client.send::<()>(&key, cmd("DEL").arg(&key)).await.unwrap();
    }
    servers.stop_all().await;
    for ordinal in 0..2 {
        servers.start(ordinal);
    }
    servers.settle(A_WHILE).await;
    assert_eq!(servers.keys().await, 0);
}

/// Each replica is reset and meets a node that may be reset before gossip brings it another.
async fn all_replicas_become_primaries() {
    let mut servers = formed(6, 1, true).await;
    fill(&servers, 500).await;
    servers.goal.replicas_per_shard = 0;
    servers.settle(A_WHILE).await;
    assert_eq!(servers.slots().await.len(), 6);
    assert_eq!(servers.keys().await, 500);
}

async fn slots_move_while_clients_write() {
    let mut servers = formed(3, 0, false).await;
    fill(&servers, 3000).await;
    let writer = Writer::start(servers.access.clone(), servers.ip(0), 500);
    servers.goal.size = 5;
    servers.settle(A_WHILE).await;
    assert_eq!(servers.slots().await, [3276, 3277, 3277, 3277, 3277]);
    servers.goal.size = 3;
    servers.settle(A_WHILE).await;
    let written = writer.stop().await;
    assert_eq!(servers.slots().await.iter().sum::<usize>(), 16384);
    assert_eq!(written.lost(&servers.access, servers.ip(0)).await, [""; 0]);
    assert_eq!(written.errors, Default::default(), "clients saw more than redirections");
    assert_eq!(servers.keys().await, 3000 + written.acknowledged.len() as u64);
    for pod in servers.observe().await.pods {
        assert_eq!(pod.redis.unwrap().table.len(), 3);
    }
}

async fn a_killed_primary_is_replaced() {
    let mut servers = formed(6, 1, false).await;
    fill(&servers, 1000).await;
    let observed = servers.observe().await;
    let primary = observed.pods.iter().find(|pod| !pod.redis.as_ref().unwrap().slots().is_empty()).unwrap();
    let old = primary.redis.as_ref().unwrap().id;
    servers.replace(primary.ordinal);
    let steps = servers.settle(A_WHILE).await;
    assert!(steps.contains(&Step::Join) && steps.contains(&Step::Forget), "{steps:?}");
    assert_eq!(servers.keys().await, 1000);
    for pod in servers.observe().await.pods {
        let node = pod.redis.unwrap();
        assert!(node.peer(old).is_none(), "{} still knows {old}", pod.name);
        assert_eq!(node.table.len(), 6);
    }
}

async fn all_nodes_come_back_elsewhere() {
    let mut servers = formed(6, 1, true).await;
    fill(&servers, 1000).await;
    for ordinal in 0..6 {
        servers.terminate(ordinal);
    }
    for ordinal in 0..6 {
        servers.replace(ordinal);
    }
    let steps = servers.settle(A_WHILE).await;
    assert!(steps.contains(&Step::HealAddresses), "{steps:?}");
    assert_eq!(servers.keys().await, 1000);
}

/// Permits so many commands, then no more.
struct Mortal(AtomicI64);

impl Permit for Mortal {
    fn holds_for(&self, _: Duration) -> bool {
        self.0.fetch_sub(1, Ordering::Relaxed) > 0
    }
}

/// The first commands of a change move more than a group of slots: it dies after each of them.
async fn an_operator_dies_between_any_two_commands() {
    let mut servers = formed(2, 0, false).await;
    fill(&servers, 2000).await;
    servers.goal.size = 3;
    for commands in 1..26 {
        let permit = Mortal(AtomicI64::new(commands));
        let (_, done) = servers.reconcile(&permit).await;
        assert!(matches!(done, Ok(()) | Err(ActError::NotLeading | ActError::Refused { .. })), "{done:?}");
    }
    servers.settle(A_WHILE).await;
    assert_eq!(servers.keys().await, 2000);
    for pod in servers.observe().await.pods {
        let node = pod.redis.unwrap();
        assert!(node.migrating.is_empty() && node.importing.is_empty());
    }
}

/// A node can have carried out a part of what it was sent at once, while a client writes.
async fn slots_left(replicas: u32) {
    let mut servers = formed(2 * (1 + replicas), replicas, false).await;
    fill(&servers, 20_000).await;
    let writer = Writer::start(servers.access.clone(), servers.ip(0), 500);
    servers.goal.size = 3 * (1 + replicas);
    for sent in 1.. {
        let moving = next_move(&mut servers).await;
        let group = moving.slots.highest(3);
        let one = |slot: u16| moving.steps(&Slots::range(slot, slot));
        let steps = 0..moving.steps(&group).len();
        let commands: Vec<Action> =
            steps.flat_map(|step| group.iter().map(move |slot| one(slot)[step].clone())).collect();
        if sent > commands.len() {
            break;
        }
        act(&servers.access, &Always, &commands[..sent]).await.unwrap();
        let deadline = Instant::now() + A_WHILE;
        while let open = open_slots(&servers).await
            && !open.is_empty()
        {
            assert!(Instant::now() < deadline, "{open:?} stay open");
            // On a busy machine, gossip can close the slot first, or be late, so that the nodes disagree for a moment.
            let (plan, done) = servers.reconcile(&Always).await;
            let refused = matches!(done, Err(ActError::Refused { .. }));
            assert!(done.is_ok() || refused, "after {sent} commands: {plan:?}, {done:?}");
            if plan.actions.is_empty() || refused {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
    servers.settle(A_WHILE).await;
    // Replicas of Valkey learn from their primaries what is closed.
    let deadline = Instant::now() + A_WHILE;
    while let open = open_at(&servers, |_| true).await
        && !open.is_empty()
    {
        assert!(Instant::now() < deadline, "{open:?} stay open at replicas");
    }
    let written = writer.stop().await;
    assert_eq!(written.lost(&servers.access, servers.ip(0)).await, [""; 0]);
    assert_eq!(written.errors, Default::default(), "clients saw more than redirections");
    assert_eq!(servers.keys().await, 20_000 + written.acknowledged.len() as u64);
}

/// Slots that are open at a primary.
async fn open_slots(servers: &Servers) -> BTreeSet<u16> {
    open_at(servers, |node| node.primary().is_none()).await
}

async fn open_at(servers: &Servers, counts: impl Fn(&Node) -> bool) -> BTreeSet<u16> {
    let nodes = servers.observe().await.pods.into_iter().filter_map(|pod| pod.redis);
    let open = nodes.filter(counts);
    open.flat_map(|node| node.migrating.into_keys().chain(node.importing.into_keys())).collect()
}

/// Each command takes a round trip, and most make a node save its table.
async fn slots_move_in_few_commands() {
    let mut servers = formed(3, 0, false).await;
    servers.goal.size = 4;
    let moving = next_move(&mut servers).await;
    let slots = moving.slots.highest(64);
    let before = commands(&servers);
    let change = [Action::Move(Move { slots: slots.clone(), ..moving.clone() })];
    let done = act(&servers.access, &Always, &change).await.unwrap();
    assert_eq!(done.slots, 64);
    // Seven for 16 slots, and one for each of the two other primaries; connections take two each.
    let sent = commands(&servers) - before;
    assert!(sent <= 64, "{sent} round trips for 64 slots");

    // More than are migrated together: those that stay open are named.
    let moving = next_move(&mut servers).await;
    let slots = moving.slots.highest(20);
    act(&servers.access, &Always, &moving.steps(&slots)[..2]).await.unwrap();
    let open = Move { slots: slots.clone(), open: true, ..moving };
    let done = act(&servers.access, &Urgent, &[Action::Move(open)]).await.unwrap();
    assert!(done.interrupted && done.slots == 16, "{done:?}");
    assert_eq!(done.left_open, slots.highest(4).iter().collect());
    assert_eq!(open_slots(&servers).await, done.left_open);
    servers.settle(A_WHILE).await;
}

/// How many commands were sent to Redis so far.
fn commands(servers: &Servers) -> u64 {
    let text = servers.access.metrics.text();
    let counts = text.lines().filter(|line| line.contains("redis_command_duration_seconds_count"));
    counts.map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap()).sum()
}

/// The operator dies while it moves a slot to a new shard, and so does that shard's primary, before it owned anything: nobody
/// is elected in its place, and its replica alone has the keys that were moved.
async fn what_a_lost_receiver_was_given_is_kept() {
    let mut servers = formed(6, 1, false).await;
    fill(&servers, 100).await;
    servers.goal.size = 8;
    let moving = next_move(&mut servers).await;
    let mut source = servers.access.connect(moving.from.ip).await.unwrap();
    let (slot, tag) = tag_of(&mut source, &moving.slots).await;
    for number in 0..10 {
        source.send::<()>("SET", cmd("SET").arg(format!("{{{tag}}}{number}")).arg("x")).await.unwrap();
    }
    let opened = &moving.steps(&Slots::range(slot, slot))[..2];
    act(&servers.access, &Always, opened).await.unwrap();
    let migrate = cmd("MIGRATE")
        .arg(moving.to.ip.to_string())
        .arg(PORT)
        .arg(("", 0, 5000, "AUTH", PASSWORD, "KEYS"))
        .arg((0..5).map(|number| format!("{{{tag}}}{number}")).collect::<Vec<_>>())
        .take();
    source.send::<()>("MIGRATE", &migrate).await.unwrap();
    servers.in_step().await;

    servers.replace(moving.to.pod.strip_prefix("rc-").unwrap().parse().unwrap());
    let steps = servers.settle(A_WHILE).await;
    assert!(steps.contains(&Step::CloseSlots), "{steps:?}");
    assert_eq!(servers.keys().await, 110);
    assert_eq!(servers.slots().await, [4096; 4]);
}

/// Reconciles until slots are to be moved next.
async fn next_move(servers: &mut Servers) -> Move {
    let deadline = Instant::now() + A_WHILE;
    loop {
        assert!(Instant::now() < deadline, "nothing moves: {:#?}", servers.observe().await);
        tokio::time::sleep(Duration::from_millis(20)).await;
        let observed = servers.observe().await;
        match &plan(&Topology::of(servers.goal, &observed)).actions[..] {
            [Action::Move(moving), ..] => return moving.clone(),
            _ => drop(servers.reconcile(&Always).await),
        }
    }
}

/// One of these slots, and a tag that puts keys into it.
async fn tag_of(source: &mut Connection, slots: &Slots) -> (u16, String) {
    for number in 0.. {
        let tag = format!("tag-{number}");
        let slot = source.send("KEYSLOT", cmd("CLUSTER").arg("KEYSLOT").arg(&tag)).await.unwrap();
        if slots.contains(slot) {
            return (slot, tag);
        }
    }
    unreachable!("there is a tag for each slot")
}

async fn a_key_too_large_to_move() {
    let mut servers = formed(2, 0, false).await;
    servers.goal.size = 3;
    meet_a_large_key(&mut servers).await;
    servers.settle(A_WHILE).await;
}

/// Puts a key that is too large into a slot that is to move, reconciles until the operator names it, and deletes it.
async fn meet_a_large_key(servers: &mut Servers) {
    let moving = next_move(servers).await;
    let mut source = servers.access.connect(moving.from.ip).await.unwrap();
    let (slot, key) = tag_of(&mut source, &moving.slots).await;
    let value = "x".repeat(1 << 20);
    for _ in 0..66 {
        source.send::<()>("RPUSH", cmd("RPUSH").arg(&key).arg(&value)).await.unwrap();
    }
    let deadline = Instant::now() + A_WHILE;
    let error = loop {
        assert!(Instant::now() < deadline, "{key} was moved");
        match servers.reconcile(&Always).await.1 {
            Err(error @ ActError::KeyTooLarge { .. }) => break error,
            _ => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    };
    let text = format!("key `{key}` in slot {slot} takes ");
    assert!(error.to_string().starts_with(&text), "{error}");
    for pod in servers.observe().await.pods {
        let node = pod.redis.unwrap();
        assert!(node.migrating.is_empty() && node.importing.is_empty(), "{}", pod.name);
    }
    source.send::<()>("DEL", cmd("DEL").arg(&key)).await.unwrap();
}

/// While a client writes.
async fn copies_on_one_kubernetes_node_move_apart() {
    let mut servers = formed(6, 1, false).await;
    fill(&servers, 500).await;
    let (primary, replica) = pair(&servers).await;
    servers.hosts = (0..6).map(|ordinal| (ordinal, format!("node-{ordinal}"))).collect();
    servers.hosts.insert(replica, format!("node-{primary}"));
    let writer = Writer::start(servers.access.clone(), servers.ip(primary), 100);
    let steps = servers.settle(A_WHILE).await;
    let written = writer.stop().await;
    assert!(steps.contains(&Step::Spread), "{steps:?}");
    let observed = servers.observe().await;
    let node = |ordinal: u32| observed.pods[ordinal as usize].redis.as_ref().unwrap();
    assert_ne!(node(replica).primary(), Some(node(primary).id));
    assert!(node(primary).primary().is_none(), "no primary changed");
    let lost = written.lost(&servers.access, servers.ip(primary)).await;
    assert_eq!((lost, written.errors), (vec![], Default::default()));
}

/// While a client writes. A new operator promotes nobody for four node timeouts.
async fn primaries_on_one_kubernetes_node_move_apart() {
    let mut servers = formed(6, 1, false).await;
    fill(&servers, 500).await;
    let primaries = |observed: &Observed| {
        let nodes = observed.pods.iter().map(|pod| (pod.ordinal, pod.redis.as_ref().unwrap()));
        nodes
            .filter(|(_, node)| node.primary().is_none())
            .map(|(ordinal, _)| ordinal)
            .collect::<BTreeSet<_>>()
    };
    let before = primaries(&servers.observe().await);
    let host =
        |ordinal: u32| if before.contains(&ordinal) { "all".into() } else { format!("node-{ordinal}") };
    servers.hosts = (0..6).map(|ordinal| (ordinal, host(ordinal))).collect();
    let writer = Writer::start(servers.access.clone(), servers.ip(0), 100);
    let deadline = Instant::now() + A_WHILE;
    let mut balanced = 0;
    while balanced < 2 {
        assert!(Instant::now() < deadline, "{balanced} primaries moved");
        let (plan, done) = servers.reconcile(&Always).await;
        balanced += usize::from(plan.step == Step::Balance && done.is_ok());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    servers.settle(A_WHILE).await;
    let written = writer.stop().await;
    let after = primaries(&servers.observe().await);
    assert_eq!(after.intersection(&before).count(), 1, "{before:?} became {after:?}");
    let lost = written.lost(&servers.access, servers.ip(0)).await;
    assert_eq!((lost, written.errors), (vec![], Default::default()));
}

/// Lets a batch pass, and no more.
struct Urgent;

impl Permit for Urgent {
    fn holds_for(&self, _: Duration) -> bool {
        true
    }

    fn should_yield(&self) -> bool {
        true
    }
}

/// A repair waits for no more than that: here for eight of 64 values of 1 MiB.
async fn a_slot_move_yields_after_a_batch() {
    let mut servers = formed(2, 0, false).await;
    servers.goal.size = 3;
    let moving = next_move(&mut servers).await;
    let mut source = servers.access.connect(moving.from.ip).await.unwrap();
    let (slot, tag) = tag_of(&mut source, &moving.slots).await;
    for number in 0..64 {
        let set = cmd("SET").arg(format!("{{{tag}}}{number}")).arg("x".repeat(1_000_000)).take();
        source.send::<()>("SET", &set).await.unwrap();
    }
    let other = moving.slots.iter().find(|other| *other != slot).unwrap();
    let two = Move { slots: [slot, other].into_iter().collect(), ..moving };
    let started = Instant::now();
    let done = act(&servers.access, &Urgent, &[Action::Move(two.clone())]).await.unwrap();
    let took = started.elapsed();
    assert!(done.interrupted && done.left_open == [slot, other].into() && done.slots == 0, "{done:?}");
    assert!(took < Duration::from_secs(6), "one batch and its acknowledgement took {took:?}");
    let observed = servers.observe().await;
    let left = observed.open_keys[&slot][&two.from.id];
    assert!((55..64).contains(&left), "{left} of 64 keys are left");

    // The same operator simply goes on; to another it is an interrupted migration.
    let mut observed = Observed { left_open: done.left_open, ..observed };
    assert_eq!(plan(&Topology::of(servers.goal, &observed)).step, Step::Move);
    observed.left_open.clear();
    assert_eq!(plan(&Topology::of(servers.goal, &observed)).step, Step::CloseSlots);
    servers.settle(A_WHILE).await;
    assert_eq!(servers.keys().await, 64);
}

/// Between the observation and the command, its shard failed over, and perhaps back.
async fn what_was_promoted_meanwhile_is_left_alone() {
    let servers = formed(6, 1, false).await;
    fill(&servers, 300).await;
    let (primary, replica) = pair(&servers).await;
    let observed = servers.observe().await;
    let topology = Topology::of(servers.goal, &observed);
    let address = |ordinal: u32| topology.core[ordinal as usize].address().unwrap();
    let stale = [
        Action::Reset { node: address(replica) },
        Action::Failover { node: address(replica) },
        Action::Elect { node: address(replica) },
        Action::TakeOver { node: address(replica) },
        Action::Replicate { node: address(replica), primary: address(primary).id },
    ];
    let is_refused = async || {
        for action in &stale {
            let error = act(&servers.access, &Always, std::slice::from_ref(action)).await.unwrap_err();
            assert!(matches!(error, ActError::Changed { .. }), "{action:?}: {error}");
        }
    };
    fail_over(&servers, replica).await;
    is_refused().await;
    fail_over(&servers, primary).await;
    is_refused().await;
    assert_eq!(servers.keys().await, 300);
}

/// Promotes a replica, and waits until all have heard of it.
async fn fail_over(servers: &Servers, replica: u32) {
    let deadline = Instant::now() + A_WHILE;
    loop {
        assert!(Instant::now() < deadline, "{:#?}", servers.observe().await);
        let observed = servers.observe().await;
        let topology = Topology::of(servers.goal, &observed);
        let member = topology.core[replica as usize];
        if member.is_primary() && topology.tables_agree() {
            return;
        }
        if let Some(node) = member.address().filter(|_| member.node.link == Link::Up) {
            // Refused until the others know it as a replica.
            let _ = act(&servers.access, &Always, &[Action::Failover { node }]).await;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// The source deletes a key once the receiver has it: if that is lost then, its replica alone has it.
async fn keys_are_moved_only_while_replicas_keep_up() {
    let mut servers = formed(4, 1, false).await;
    servers.goal.size = 6;
    let moving = next_move(&mut servers).await;
    assert_eq!(moving.copies, 1, "{moving:?}");
    let mut source = servers.access.connect(moving.from.ip).await.unwrap();
    let (slot, tag) = tag_of(&mut source, &moving.slots).await;
    for number in 0..300 {
        source.send::<()>("SET", cmd("SET").arg(format!("{{{tag}}}{number}")).arg("x")).await.unwrap();
    }
    let steps = moving.steps(&Slots::range(slot, slot));
    act(&servers.access, &Always, &steps[..2]).await.unwrap();
    let observed = servers.observe().await;
    let copies = |pod: &&Pod| pod.redis.as_ref().is_some_and(|node| node.primary() == Some(moving.to.id));
    let replica = observed.pods.iter().find(copies).unwrap().ordinal;
    let freezing = Freezing(servers.process(replica));
    for permit in [&freezing as &dyn Permit, &Always] {
        let error = act(&servers.access, permit, &steps[2..3]).await.unwrap_err();
        assert!(matches!(error, ActError::ReplicasBehind { acknowledged: 0, expected: 1, .. }), "{error}");
        let count = cmd("CLUSTER").arg("COUNTKEYSINSLOT").arg(slot).take();
        let left: u64 = source.send("COUNTKEYSINSLOT", &count).await.unwrap();
        assert_eq!(left, 200, "one batch was moved, and no other without a copy of it");
    }
    // Its primary is lost before it has read that batch. What its kernel has received by then is not lost.
    servers.replace(moving.to.pod.strip_prefix("rc-").unwrap().parse().unwrap());
    servers.signal(replica, "CONT");
    servers.settle(A_WHILE).await;
    let keys = servers.keys().await;
    assert!((200..=300).contains(&keys), "{keys} of 300 keys are left");
}

/// Freezes a process when the first keys are about to be moved: no other command may take as long.
struct Freezing(u32);

impl Permit for Freezing {
    fn holds_for(&self, time: Duration) -> bool {
        if time > COMMAND_DEADLINE {
            signal::send("STOP", self.0);
        }
        true
    }
}

/// Redis elects nobody: one of two primaries is no majority.
async fn the_last_replica_of_two_shards_takes_over() {
    let mut servers = formed(4, 1, false).await;
    fill(&servers, 500).await;
    servers.goal.take_over = true;
    let observed = servers.observe().await;
    let primary = observed.pods.iter().find(|pod| !pod.redis.as_ref().unwrap().slots().is_empty()).unwrap();
    servers.replace(primary.ordinal);
    let started = Instant::now();
    let steps = servers.settle(A_WHILE).await;
    assert!(steps.contains(&Step::TakeOver), "{steps:?}");
    assert_eq!(servers.keys().await, 500);
    assert!(started.elapsed() < Duration::from_secs(60), "{:?}", started.elapsed());
}

/// Ordinals of a primary and its replica.
async fn pair(servers: &Servers) -> (u32, u32) {
    let observed = servers.observe().await;
    let nodes = || observed.pods.iter().map(|pod| (pod.ordinal, pod.redis.as_ref().unwrap()));
    let (replica, primary) = nodes().find_map(|(ordinal, node)| Some((ordinal, node.primary()?))).unwrap();
    (nodes().find(|(_, node)| node.id == primary).unwrap().0, replica)
}

/// Its primary comes back with all keys after the node timeout, and would drop them as the replica of one that has none.
async fn a_replica_without_its_first_copy() {
    let mut servers = formed(6, 1, true).await;
    fill(&servers, 1000).await;
    let (primary, replica) = pair(&servers).await;
    let mut connection = servers.access.connect(servers.ip(replica)).await.unwrap();
    let mut password = async |password: &str| {
        let set = cmd("CONFIG").arg("SET").arg("masterauth").arg(password).take();
        connection.send::<()>("CONFIG SET", &set).await.unwrap();
    };
    password("wrong").await;
    let mut reset = servers.access.connect(servers.ip(replica)).await.unwrap();
    reset.send::<()>("RESET", cmd("CLUSTER").arg("RESET").arg("HARD")).await.unwrap();
    let deadline = Instant::now() + A_WHILE;
    let link = async |servers: &Servers| {
        let observed = servers.observe().await;
        observed.pods.into_iter().find(|pod| pod.ordinal == replica).unwrap().redis.map(|node| node.link)
    };
    // Known to all: a node that its primary alone has heard of joins anew once that is gone.
    let waits = async |servers: &Servers| {
        let observed = servers.observe().await;
        let topology = Topology::of(servers.goal, &observed);
        let mut core = topology.core.iter();
        topology.tables_agree()
            && core.any(|member| member.pod.ordinal == replica && member.node.link == Link::Never)
    };
    while !waits(&servers).await {
        assert!(Instant::now() < deadline, "{:#?}", servers.observe().await);
        let _ = servers.turn(&Always).await;
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    servers.terminate(primary);
    let until = Instant::now() + Duration::from_secs(10);
    while Instant::now() < until {
        let _ = servers.turn(&Always).await;
        assert_eq!(link(&servers).await, Some(Link::Never), "it was elected");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    servers.start(primary);
    password(PASSWORD).await;
    servers.settle(A_WHILE).await;
    assert_eq!(servers.keys().await, 1000);
}

/// All restart, and the volume of one primary is lost: its replica has the keys, and Redis does not elect it by itself.
async fn a_replica_that_started_alone() {
    let mut servers = formed(6, 1, true).await;
    fill(&servers, 1000).await;
    let (primary, _) = pair(&servers).await;
    for ordinal in 0..6 {
        servers.terminate(ordinal);
    }
    for ordinal in (0..6).filter(|ordinal| *ordinal != primary) {
        servers.start(ordinal);
    }
    let deadline = Instant::now() + Duration::from_secs(60);
    let mut forced = false;
    while !Topology::of(servers.goal, &servers.observe().await).serves() {
        assert!(Instant::now() < deadline, "{:#?}", servers.observe().await);
        forced |= servers.turn(&Always).await.0.step == Step::Elect;
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(forced, "it was elected by itself");
    assert_eq!(servers.keys().await, 1000);
}

async fn slots_that_are_given_up_are_served_again() {
    for lost in [1, 3] {
        let mut servers = formed(3, 0, false).await;
        fill(&servers, 300).await;
        for ordinal in 0..lost {
            servers.replace(ordinal);
        }
        let deadline = Instant::now() + A_WHILE;
        let waits = [Step::Wait(Wait::SlotsLost), Step::Wait(Wait::DataLost)];
        while !waits.contains(&servers.turn(&Always).await.0.step) {
            assert!(Instant::now() < deadline, "the loss is not seen: {:#?}", servers.observe().await);
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let left = servers.keys().await;
        servers.goal.accept_data_loss = true;
        let started = Instant::now();
        servers.settle(A_WHILE).await;
        assert!(started.elapsed() < Duration::from_secs(60), "{:?}", started.elapsed());
        assert_eq!(servers.slots().await.iter().sum::<usize>(), 16384);
        assert_eq!(servers.keys().await, left);
    }
}

/// Their origin runs, and its nodes have the ids and addresses that the copy has on its volumes.
async fn a_copy_of_volumes() {
    let origin = formed(3, 0, true).await;
    fill(&origin, 300).await;
    // Redis keeps what it appends in memory while the disk is busy, for up to two seconds.
    for ordinal in 0..3 {
        let mut server = origin.access.connect(origin.ip(ordinal)).await.unwrap();
        let deadline = Instant::now() + A_WHILE;
        loop {
            let info = server.send::<String>("INFO", cmd("INFO").arg("persistence")).await.unwrap();
            if info.contains("aof_buffer_length:0\r") {
                break;
            }
            assert!(Instant::now() < deadline, "the writes are not on disk: {info}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
    let mut copy = Servers::copy_of(&origin);
    copy.settle(A_WHILE).await;
    let mut client = ClusterClient::new(origin.access.clone(), origin.ip(0));
    for number in 0..300 {
        let key = format!("key-{number}");
        client.send::<()>(&key, cmd("SET").arg(&key).arg("new")).await.unwrap();
    }
    let value = async |servers: &Servers, key: &str| {
        let mut client = ClusterClient::new(servers.access.clone(), servers.ip(0));
        client.send::<String>(key, cmd("GET").arg(key)).await.unwrap()
    };
    for number in 0..300 {
        let key = format!("key-{number}");
        assert_eq!(value(&origin, &key).await, "new");
        assert_eq!(value(&copy, &key).await, "x".repeat(64));
    }
    for servers in [&origin, &copy] {
        knows_only_its_own(servers).await;
    }
}

/// No node has one of another cluster in its table.
async fn knows_only_its_own(servers: &Servers) {
    let own: Vec<_> = servers.ordinals().into_iter().map(|ordinal| Some(servers.ip(ordinal))).collect();
    for pod in servers.observe().await.pods {
        let table = pod.redis.unwrap().table;
        assert!(table.len() == own.len() && table.iter().all(|peer| own.contains(&peer.ip)), "{table:?}");
    }
}

async fn a_primary_hands_over_before_it_stops() {
    let servers = formed(6, 1, false).await;
    fill(&servers, 300).await;
    let primary = |observed: &Observed| {
        let owns = |pod: &&Pod| pod.redis.as_ref().is_some_and(|node| !node.slots().is_empty());
        observed.pods.iter().find(owns).map(|pod| pod.ordinal).unwrap()
    };
    let stopping = primary(&servers.observe().await);
    servers.start_script("stop.sh", stopping).await.unwrap();
    let observed = servers.observe().await;
    let node = observed.pods[stopping as usize].redis.as_ref().unwrap();
    assert!(node.primary().is_some(), "it is a replica now: {node:?}");
    assert_eq!(servers.keys().await, 300);
}

async fn a_primary_does_not_wait_for_a_silent_replica() {
    let servers = formed(2, 1, false).await;
    let observed = servers.observe().await;
    let owns = |pod: &&Pod| pod.redis.as_ref().is_some_and(|node| !node.slots().is_empty());
    let primary = observed.pods.iter().find(owns).unwrap().ordinal;
    servers.signal(1 - primary, "STOP");
    let started = Instant::now();
    // With each password it would be asked again.
    let files = [("password", PASSWORD), ("previousPassword", "the one before")];
    assert!(servers.run_script("stop.sh", primary, &files, PASSWORD).await);
    let took = started.elapsed();
    servers.signal(1 - primary, "CONT");
    assert!((Duration::from_secs(10)..Duration::from_secs(20)).contains(&took), "{took:?}");
}

async fn a_wrong_password_is_told_from_silence() {
    let mut servers = formed(3, 0, false).await;
    servers.access.password = Some(Password::new("somebody-else".into()));
    let observed = servers.observe().await;
    assert!(observed.pods.iter().all(|pod| pod.password_rejected && pod.redis.is_none()), "{observed:?}");
    servers.kill(1);
    assert_eq!(plan(&Topology::of(servers.goal, &observed)).replicas, 3);
}

async fn a_foreign_node_is_not_met() {
    let ours = formed(3, 0, false).await;
    let theirs = formed(3, 0, false).await;
    let observed = ours.observe().await;
    let places: Vec<_> = observed
        .pods
        .iter()
        .map(|pod| redis_operator::plan::NodeAddress {
            pod: pod.name.clone(),
            ip: pod.ip.unwrap(),
            id: pod.redis.as_ref().unwrap().id,
            primary: None,
            epoch: pod.redis.as_ref().unwrap().epoch(),
        })
        .collect();
    // The address passed to a node of another cluster after it was looked at.
    let stale = redis_operator::plan::NodeAddress { ip: theirs.ip(0), ..places[1].clone() };
    let meet = Action::Meet { viewer: places[0].clone(), node: stale };
    let error = act(&ours.access, &Always, &[meet]).await.unwrap_err();
    assert!(matches!(error, ActError::Replaced { .. }), "{error}");
    for servers in [&ours, &theirs] {
        for pod in servers.observe().await.pods {
            assert_eq!(pod.redis.unwrap().table.len(), 3);
        }
    }
}

async fn an_address_passes_to_another_cluster() {
    let mut ours = formed(3, 0, true).await;
    fill(&ours, 300).await;
    pass_an_address_on(&mut ours, Duration::from_secs(30)).await;
    ours.settle(A_WHILE).await;
    assert_eq!(ours.keys().await, 300);
}

/// For a while, a pod of another cluster has the address of a dead pod of ours, and the same password: neither operator
/// introduces anybody.
async fn pass_an_address_on(ours: &mut Servers, time: Duration) {
    let mut theirs = formed(3, 0, true).await;
    fill(&theirs, 200).await;
    let address = ours.ip(2);
    ours.terminate(2);
    theirs.terminate(2);
    theirs.start_at(2, address);
    let until = Instant::now() + time;
    while Instant::now() < until {
        let (plan, _) = ours.turn(&Always).await;
        assert!(plan.actions.is_empty(), "we have nobody to introduce: {plan:?}");
        // They may tell their own where their own is now.
        let (plan, done) = theirs.turn(&Always).await;
        assert!(done.is_ok(), "{plan:?}: {done:?}");
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    for servers in [&*ours, &theirs] {
        for pod in servers.observe().await.pods {
            assert_eq!(pod.redis.unwrap().table.len(), 3, "{}", pod.name);
        }
    }
    let mut client = ClusterClient::new(theirs.access.clone(), theirs.ip(0));
    for key in (0..200).map(|key| format!("key-{key}")) {
        assert_eq!(client.send::<String>(&key, cmd("GET").arg(&key)).await.unwrap(), "x".repeat(64));
    }
    ours.start(2);
}

/// For a moment, the address of a new pod is still that of a pod of another cluster, with the same password and no keys.
async fn a_blank_node_is_not_taken_in() {
    let mut servers = formed(3, 0, false).await;
    servers.goal.size = 4;
    servers.scale(4);
    let ip = servers.ip(3);
    let announce = async |namespace: &str| {
        let host = format!("rc-3.rc-headless.{namespace}.svc.cluster.local");
        let mut connection = servers.access.connect(ip).await.unwrap();
        let set = cmd("CONFIG").arg("SET").arg("cluster-announce-hostname").arg(host).take();
        connection.send::<()>("CONFIG SET", &set).await.unwrap();
    };
    announce("ns").await;
    // It was observed before, and is another one when it is met.
    let meet = plan(&Topology::of(servers.goal, &servers.observe().await));
    assert_eq!(meet.step, Step::Join);
    announce("other").await;
    let done = act(&servers.access, &Always, &meet.actions).await;
    assert!(matches!(done, Err(ActError::Replaced { .. })), "{done:?}");
    let observed = servers.observe().await;
    assert!(observed.pods[3].redis.is_none(), "{observed:?}");
    let plan = plan(&Topology::of(servers.goal, &observed));
    assert_eq!((plan.step, plan.actions.len()), (Step::Wait(Wait::Pods), 0));
    announce("ns").await;
    servers.settle(A_WHILE).await;
}

/// Redis lets gossip introduce a forgotten node again after a minute if anybody still speaks of it, and here nobody does. Redis 7.2 and
/// later, and Valkey, tell one another to forget it all that time.
async fn forgotten_by_hand() {
    for (size, replicas) in [(3, 0), (6, 1)] {
        let mut servers = formed(size, replicas, true).await;
        fill(&servers, 300).await;
        let observed = servers.observe().await;
        let nodes = || observed.pods.iter().filter_map(|pod| pod.redis.as_ref().zip(pod.ip));
        let primary = nodes().find(|(node, _)| node.primary().is_none()).unwrap().0.id;
        let (shard, others): (Vec<_>, Vec<_>) =
            nodes().partition(|(node, _)| node.id == primary || node.primary() == Some(primary));
        for (_, ip) in others {
            let mut connection = servers.access.connect(ip).await.unwrap();
            for (node, _) in &shard {
                let forget = cmd("CLUSTER").arg("FORGET").arg(node.id.to_string()).take();
                connection.send::<()>("CLUSTER FORGET", &forget).await.unwrap();
            }
        }
        let steps = servers.settle(A_WHILE).await;
        assert!(steps.contains(&Step::Reintroduce), "{steps:?}");
        assert!(!steps.contains(&Step::Join) && !steps.contains(&Step::AcceptLoss), "{steps:?}");
        assert_eq!(servers.keys().await, 300);
    }
}

/// It would make the others forget one another if it was introduced at once.
async fn forgets_all_others() {
    let mut servers = formed(4, 0, true).await;
    fill(&servers, 300).await;
    let nodes: Vec<_> =
        servers.observe().await.pods.into_iter().filter_map(|pod| pod.redis.zip(pod.ip)).collect();
    let mut connection = servers.access.connect(nodes[0].1).await.unwrap();
    for (node, _) in &nodes[1..] {
        let forget = cmd("CLUSTER").arg("FORGET").arg(node.id.to_string()).take();
        connection.send::<()>("CLUSTER FORGET", &forget).await.unwrap();
    }
    let started = Instant::now();
    let steps = servers.settle(A_WHILE).await;
    assert!(steps.contains(&Step::Wait(Wait::Bans)), "{steps:?}");
    assert!(started.elapsed() > Duration::from_secs(60), "{:?}", started.elapsed());
    assert_eq!(servers.keys().await, 300);
}

async fn new_primaries_get_functions() {
    let mut servers = formed(3, 0, false).await;
    let library = "#!lua name=lib\nredis.register_function('one', function(keys) return 1 end)";
    for ordinal in 0..3 {
        let mut connection = servers.access.connect(servers.ip(ordinal)).await.unwrap();
        let load = cmd("FUNCTION").arg("LOAD").arg(library).take();
        connection.send::<()>("FUNCTION LOAD", &load).await.unwrap();
    }
    fill(&servers, 100).await;
    servers.goal.size = 5;
    let steps = servers.settle(A_WHILE).await;
    assert!(steps.contains(&Step::Functions), "{steps:?}");
    let mut client = ClusterClient::new(servers.access.clone(), servers.ip(0));
    for key in (0..100).map(|key| format!("key-{key}")) {
        let call = cmd("FCALL").arg("one").arg(1).arg(&key).take();
        assert_eq!(client.send::<u32>(&key, &call).await.unwrap(), 1, "{key}");
    }
}

async fn without_the_lease_nothing_is_said() {
    let mut servers = Servers::new(3, 0, false);
    servers.scale(3);
    for _ in 0..3 {
        let (plan, done) = servers.reconcile(&Mortal(AtomicI64::new(0))).await;
        assert_eq!(plan.step, Step::Form);
        assert!(matches!(done, Err(ActError::NotLeading)));
    }
    for pod in servers.observe().await.pods {
        assert!(pod.redis.unwrap().blank());
    }
}
