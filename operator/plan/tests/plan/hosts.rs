//! Copies of a shard on different Kubernetes nodes and zones.

use std::collections::BTreeSet;

use redis_operator_plan::{Observed, Step, Topology, plan};

use super::{
    driver::{Operator, SLOTS, formed},
    model::Model,
};

/// Pods on these Kubernetes nodes, which are in these zones.
fn on_hosts(hosts: &[u32], zones: &[u32]) -> Vec<(u32, Option<u32>)> {
    hosts.iter().enumerate().map(|(index, host)| (*host, zones.get(index).copied())).collect()
}

#[test]
fn replicas_are_on_other_kubernetes_nodes_than_their_primaries() {
    let layouts: [(u32, u32, &[u32]); 8] = [
        (6, 1, &[0, 1, 2, 0, 1, 2]),
        (6, 1, &[0, 0, 1, 1, 2, 2]),
        (6, 1, &[0, 0, 0, 1, 1, 1]),
        (6, 1, &[2, 1, 0, 0, 1, 2]),
        (6, 1, &[0, 1, 1, 0, 0, 1]),
        (9, 2, &[0, 1, 2, 0, 1, 2, 0, 1, 2]),
        (9, 2, &[0, 0, 0, 1, 1, 1, 2, 2, 2]),
        (12, 1, &[0, 1, 2, 3, 3, 2, 1, 0, 0, 1, 2, 3]),
    ];
    for (size, replicas, hosts) in layouts {
        let mut model = Model::new(size, replicas, SLOTS, false);
        model.hosts = on_hosts(hosts, &[]);
        model.settle(&mut Operator::immortal(), 60);
        let shards = model.shards();
        assert_eq!(model.crowding(&shards).0, 0, "{shards:?} on {hosts:?}");
    }
}

#[test]
fn replicas_are_in_other_zones_where_there_are_zones() {
    let layouts: [&[u32]; 4] =
        [&[0, 0, 0, 1, 1, 1], &[0, 1, 2, 0, 1, 2], &[0, 1, 0, 1, 0, 1], &[0, 0, 1, 1, 2, 2]];
    for zones in layouts {
        let mut model = Model::new(6, 1, SLOTS, false);
        model.hosts = on_hosts(&[0, 1, 2, 3, 4, 5], zones);
        model.settle(&mut Operator::immortal(), 60);
        let shards = model.shards();
        assert_eq!(model.crowding(&shards), (0, 0), "{shards:?} in {zones:?}");
    }
}

/// Pods were recreated on other Kubernetes nodes, and now both copies of a shard are on one.
fn crowded(replicas: u32) -> Model {
    let per_shard = 1 + replicas;
    let mut model = formed(3 * per_shard, replicas, true);
    let shards = model.shards();
    model.hosts = vec![(0, None); (3 * per_shard) as usize];
    for (index, shard) in shards.iter().enumerate() {
        for (copy, ordinal) in shard.iter().enumerate() {
            // Two of the first shard and two of the second are together.
            let host = if index < 2 && copy < 2 { index } else { 10 * (1 + copy) + index };
            model.hosts[*ordinal as usize].0 = host as u32;
        }
    }
    assert_eq!(model.crowding(&shards).0, 2);
    model
}

/// Wherever the operator dies: and no shard has copies on fewer Kubernetes nodes than before, not even for a moment.
#[test]
fn replicas_change_places_when_copies_share_a_kubernetes_node() {
    for replicas in [1, 2] {
        for dies_after in 1..60 {
            let mut model = crowded(replicas);
            let spread = |model: &Model| {
                let distinct = |shard: &Vec<u32>| {
                    let hosts = shard.iter().map(|ordinal| model.hosts[*ordinal as usize].0);
                    (shard[0], hosts.collect::<BTreeSet<_>>().len())
                };
                model.shards().iter().map(distinct).collect::<Vec<_>>()
            };
            let before = spread(&model);
            let mut operator = Operator::that_dies_after(dies_after);
            for _ in 0..80 {
                operator.reconcile(&mut model);
                model.step();
                assert_eq!(model.missing_keys(), []);
                for (was, now) in before.iter().zip(spread(&model)) {
                    assert!(was.0 == now.0 && now.1 >= was.1, "{before:?} became {now:?}");
                }
            }
            model.settle(&mut operator, 1);
            assert_eq!(model.crowding(&model.shards()).0, 0, "{:?}", model.shards());
        }
    }
}

/// Nobody can change places for the better: nothing is moved for nothing.
#[test]
fn replicas_stay_where_moving_does_not_help() {
    let mut model = formed(6, 1, true);
    model.hosts = vec![(0, None); 6];
    for _ in 0..5 {
        assert_eq!(Operator::immortal().reconcile(&mut model).step, Step::Settled);
        model.step();
    }
}

/// How many primaries each Kubernetes node has, and each zone, most first.
fn primaries_of(model: &Model) -> (Vec<usize>, Vec<usize>) {
    let places = model.shards().into_iter().map(|shard| model.hosts[shard[0] as usize]).collect::<Vec<_>>();
    let counts = |all: Vec<u32>| {
        let distinct: BTreeSet<u32> = all.iter().copied().collect();
        let count = |place: &u32| all.iter().filter(|other| *other == place).count();
        let mut counts: Vec<usize> = distinct.iter().map(count).collect();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        counts
    };
    let zones = places.iter().filter_map(|(_, zone)| *zone).collect();
    (counts(places.iter().map(|(host, _)| *host).collect()), counts(zones))
}

/// All primaries are on one Kubernetes node, and in one zone, as they can be after failovers.
fn primaries_together(zones: bool) -> Model {
    let mut model = formed(6, 1, false);
    model.hosts = vec![(0, None); 6];
    for (index, shard) in model.shards().into_iter().enumerate() {
        let zone = |zone| zones.then_some(zone);
        model.hosts[shard[0] as usize] = (0, zone(0));
        model.hosts[shard[1] as usize] = (1 + index as u32, zone(1));
    }
    model
}

/// Losing that place would leave no majority.
#[test]
fn primaries_move_apart_when_everything_else_is_settled() {
    for (zones, expected) in [(false, (vec![1, 1, 1], vec![])), (true, (vec![1, 1, 1], vec![2, 1]))] {
        for dies_after in 1..6 {
            let mut model = primaries_together(zones);
            model.settle(&mut Operator::that_dies_after(dies_after), 60);
            assert_eq!(primaries_of(&model), expected, "{:?} on {:?}", model.shards(), model.hosts);
            assert_eq!(model.missing_keys(), []);
        }
    }
}

#[test]
fn primaries_stay_while_pods_come_and_go() {
    let model = primaries_together(false);
    let unrest = Observed { unrest: true, ..model.observe() };
    assert_eq!(plan(&Topology::of(model.goal, &unrest)).step, Step::Settled);
}

/// A replica takes over the slots that it knows: those that were migrated a moment ago would stay at its former primary.
#[test]
fn a_replica_that_lacks_slots_of_its_primary_does_not_take_over() {
    let model = primaries_together(false);
    let step = |observed: &Observed| plan(&Topology::of(model.goal, observed)).step;
    let mut observed = model.observe();
    assert_eq!(step(&observed), Step::Balance);
    let nodes = observed.pods.iter_mut().filter_map(|pod| pod.redis.as_mut());
    for replica in nodes.filter(|node| node.primary().is_some()) {
        let mut table = replica.table.to_vec();
        for peer in &mut table {
            peer.slots = peer.slots.highest(peer.slots.len().saturating_sub(1));
        }
        replica.table = table.into();
    }
    assert_eq!(step(&observed), Step::Settled);
}
