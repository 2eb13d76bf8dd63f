//! The leader is killed and frozen while slots move: another goes on where it was, and never two at once.

use std::time::{Duration, Instant};

use libtest_mimic::Failed;

use super::hand::Hand;
use super::operator::Operator;
use super::rediscluster::Redis;
use super::writer::Writer;
use crate::cluster::{Namespace, PATIENCE, within};

/// The Lease is held for 15 s, and looked at every 2 s. The rest is this test's own way of looking.
const TAKEN_OVER: Duration = Duration::from_secs(15 + 2 + 2);

pub(super) fn outlives(operator: &Operator, namespace: &Namespace) -> Result<(), Failed> {
    let redis = Redis { namespace, name: "rc" };
    redis.create("size: 3")?;
    redis.ready()?;
    redis.fill(20_000)?;
    let hand = Hand::of(namespace)?;
    let writer = Writer::start(namespace, "rc")?;

    redis.patch("{\"size\":5}")?;
    let mut resumed = vec![];
    for _ in 0..2 {
        moving(&redis)?;
        let (leader, _) = operator.lease()?;
        hand.operator("KILL", &leader)?;
        let started = Instant::now();
        let (_, dead) = operator.lease()?;
        // Itself, once its container runs again, or the other.
        let renewed =
            within(PATIENCE, || Ok(Some(operator.lease()?).filter(|(_, renewed)| *renewed != dead)))?;
        assert!(renewed.is_some(), "nobody leads");
        let took = started.elapsed();
        assert!(took < TAKEN_OVER, "nobody led for {took:?}");
        resumed.push(took);
    }
    redis.ready()?;
    closed(&redis)?;
    assert_eq!(redis.shares()?, [3276, 3277, 3277, 3277, 3277]);

    // Frozen, it does not know that its time is over; thawed, it must notice before it does anything.
    redis.patch("{\"size\":3}")?;
    moving(&redis)?;
    let (frozen, _) = operator.lease()?;
    let restarts = |pod: &str| {
        let pod = operator.json(&format!("pod/{pod}"))?;
        Ok::<_, Failed>(pod["status"]["containerStatuses"][0].clone())
    };
    let before = restarts(&frozen)?["restartCount"].clone();
    hand.operator("STOP", &frozen)?;
    let started = Instant::now();
    let next = within(PATIENCE, || Ok(Some(operator.lease()?.0).filter(|holder| *holder != frozen)))?;
    let took = started.elapsed();
    let next = next.ok_or("nobody leads")?;
    assert!(took < TAKEN_OVER, "{next} leads after {took:?}");
    moving(&redis)?;
    let written = operator.kubectl(&["logs", &frozen, "--tail=-1"])?.lines().count();
    hand.operator("CONT", &frozen)?;
    let log = within(PATIENCE, || {
        let log = operator.kubectl(&["logs", &frozen, "--tail=-1"])?;
        let mut lost = log.lines().skip(written).skip_while(|line| !line.contains("the lease was lost"));
        let starts_over = lost.any(|line| line.contains("\"started\""));
        Ok(starts_over.then_some(log))
    })?;
    let log = log.ok_or("the thawed one goes on")?;
    assert_eq!(restarts(&frozen)?["restartCount"], before, "the container goes on");
    // Everything since it was thawed, what came before it noticed too.
    let thawed: Vec<_> = log.lines().skip(written).collect();
    let did = |line: &&&str| {
        let acted = line.contains("\"acted\"") && !line.contains("\"carried_out\":0");
        acted || line.contains("\"apply\"") || line.contains("\"event\"")
    };
    assert!(thawed.iter().any(|line| line.contains("the lease was")), "{log}");
    // The step in which it was frozen ends with the answers to what it sent before: it says so first, and once.
    let in_flight = thawed.iter().position(|line| did(&line)).filter(|at| thawed[*at].contains("\"acted\""));
    let later = thawed.iter().enumerate().filter(|(at, _)| Some(*at) != in_flight);
    assert_eq!(later.map(|(_, line)| line).find(did), None, "{log}");
    redis.ready()?;
    closed(&redis)?;
    assert_eq!(operator.lease()?.0, next);

    let written = writer.stop()?;
    assert!(written.errors.is_empty(), "{:?}", written.errors);
    assert_eq!(redis.keys()?, 20_000 + written.acknowledged.len());
    eprintln!(
        "redis: led again {resumed:.1?} after kills in the middle of a move, and {took:.1?} after the leader froze; {} writes, none lost",
        written.count
    );
    Ok(())
}

/// Waits until slots move, and there is time left to disturb it.
fn moving(redis: &Redis<'_>) -> Result<(), Failed> {
    let moving = within(PATIENCE, || {
        let status = redis.status()?;
        let shares = redis.shares()?;
        let uneven = shares.last().zip(shares.first()).map_or(0, |(most, least)| most - least);
        Ok((status["phase"] == "Scaling" && uneven > 300).then_some(()))
    })?;
    moving.ok_or_else(|| format!("no slot moves: {:?}", redis.shares()).into())
}

/// No slot is half-way.
fn closed(redis: &Redis<'_>) -> Result<(), Failed> {
    for member in 0..redis.status()?["nodes"].as_array().map_or(0, Vec::len) {
        let table = redis.ask(member, &["cluster", "nodes"])?;
        assert!(!table.contains("->-") && !table.contains("-<-"), "{table}");
    }
    Ok(())
}
