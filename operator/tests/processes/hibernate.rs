//! All pods stop at once and start again: what was acknowledged before is there, at new addresses, with another password.

use std::time::{Duration, Instant};

use redis::cmd;
use redis_operator::{
    plan::{Step, Topology},
    server::act::Always,
};

use crate::{
    A_WHILE, fill, formed, passwords,
    servers::Servers,
    writer::{ClusterClient, Writer},
};

/// Reconciles until all pods are stopped.
pub(crate) async fn stop(servers: &mut Servers) {
    servers.goal.hibernated = true;
    let deadline = Instant::now() + A_WHILE;
    while servers.replicas() > 0 {
        assert!(Instant::now() < deadline, "pods do not stop: {:#?}", servers.observe().await);
        let (plan, _) = servers.reconcile(&Always).await;
        if plan.actions.is_empty() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

/// Ordinals of the primaries.
async fn primaries(servers: &Servers) -> Vec<u32> {
    let observed = servers.observe().await;
    Topology::of(servers.goal, &observed).owners().map(|owner| owner.pod.ordinal).collect()
}

/// A client writes until the last moment. Meanwhile the password changes, which every node has when it starts.
pub(crate) async fn every_write_comes_back() {
    let mut servers = formed(6, 1, true).await;
    fill(&servers, 1000).await;
    let before = primaries(&servers).await;
    let writer = Writer::start(servers.access.clone(), servers.ip(0), 500);
    servers.goal.hibernated = true;
    let held = loop {
        let (plan, done) = servers.turn(&Always).await;
        done.unwrap();
        if plan.step == Step::Hibernate {
            break plan;
        }
    };
    assert_eq!((held.replicas, held.actions.len()), (0, 6));
    let took = servers.stop_all().await;
    assert!(took.iter().all(|took| took.as_secs() < 5), "{took:?}");
    let written = writer.stop().await;
    assert!(!written.acknowledged.is_empty());

    servers.write_secret(passwords::NEXT, None);
    servers.goal.hibernated = false;
    for ordinal in 0..6 {
        servers.start(ordinal);
    }
    let steps = servers.settle(A_WHILE).await;
    assert!(steps.contains(&Step::HealAddresses), "{steps:?}");
    assert_eq!(written.lost(&servers.access, servers.ip(0)).await, [""; 0]);
    assert_eq!(servers.keys().await, 1000 + written.acknowledged.len() as u64);
    assert_eq!(primaries(&servers).await, before, "nobody took over");
    assert!(servers.observe().await.pods.iter().all(|pod| !pod.redis.as_ref().unwrap().held));
}

/// Its user wakes the cluster before a pod was stopped: clients write at once, and replicas are elected.
pub(crate) async fn a_hold_that_ends() {
    let mut servers = formed(6, 1, true).await;
    servers.goal.hibernated = true;
    let (plan, done) = servers.turn(&Always).await;
    assert_eq!((plan.step, plan.replicas), (Step::Hold, 6));
    done.unwrap();
    servers.goal.hibernated = false;
    let (plan, done) = servers.turn(&Always).await;
    assert_eq!(plan.step, Step::Release);
    done.unwrap();
    let started = Instant::now();
    let mut client = ClusterClient::new(servers.access.clone(), servers.ip(0));
    for key in 0..100 {
        let key = format!("key-{key}");
        client.send::<()>(&key, cmd("SET").arg(&key).arg("x")).await.unwrap();
    }
    assert!(started.elapsed().as_secs() < 10, "{:?}", started.elapsed());
    servers.in_step().await;
    let primary = primaries(&servers).await[0];
    servers.kill(primary);
    let deadline = Instant::now() + A_WHILE;
    while primaries(&servers).await.len() < 3 {
        assert!(Instant::now() < deadline, "nobody is elected: {:#?}", servers.observe().await);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    servers.start(primary);
    servers.settle(A_WHILE).await;
    assert_eq!(servers.keys().await, 100);
}

/// A replica that does not hear its primary: pods stop only once it has everything.
pub(crate) async fn a_replica_behind() {
    let mut servers = formed(2, 1, true).await;
    fill(&servers, 100).await;
    servers.goal.hibernated = true;
    let (primary, replica) = crate::pair(&servers).await;
    let (plan, _) = servers.turn(&Always).await;
    assert_eq!(plan.step, Step::Hold);
    // As if the pause came before the last writes had arrived.
    let mut connection = servers.access.connect(servers.ip(primary)).await.unwrap();
    connection.send::<()>("UNPAUSE", cmd("CLIENT").arg("UNPAUSE")).await.unwrap();
    servers.signal(replica, "STOP");
    connection.send::<()>("SET", cmd("SET").arg("late").arg("x")).await.unwrap();
    let (plan, _) = servers.turn(&Always).await;
    assert!(plan.replicas == 2 && plan.step != Step::Hibernate, "{plan:?}");
    servers.signal(replica, "CONT");
    stop(&mut servers).await;
    servers.goal.hibernated = false;
    servers.settle(A_WHILE).await;
    assert_eq!(servers.keys().await, 101);
}

/// An operator held all nodes and died, and nobody has released them: once clients may write again, the primary of a pod that stops
/// is succeeded by its replica as ever.
pub(crate) async fn an_operator_that_dies_while_it_holds() {
    let mut servers = formed(6, 1, true).await;
    fill(&servers, 100).await;
    servers.goal.hibernated = true;
    let (plan, done) = servers.turn(&Always).await;
    assert_eq!(plan.step, Step::Hold);
    done.unwrap();
    let before = primaries(&servers).await;
    let stopping = before[0];
    servers.start_script("stop.sh", stopping).await.unwrap();
    assert_eq!(primaries(&servers).await, before, "clients cannot write, so nobody takes over");
    // As after a minute.
    let mut connection = servers.access.connect(servers.ip(stopping)).await.unwrap();
    connection.send::<()>("UNPAUSE", cmd("CLIENT").arg("UNPAUSE")).await.unwrap();
    servers.start_script("stop.sh", stopping).await.unwrap();
    let deadline = Instant::now() + A_WHILE;
    while primaries(&servers).await.contains(&stopping) {
        assert!(Instant::now() < deadline, "nobody takes over: {:#?}", servers.observe().await);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    servers.goal.hibernated = false;
    servers.settle(A_WHILE).await;
    assert_eq!(servers.keys().await, 100);
}
