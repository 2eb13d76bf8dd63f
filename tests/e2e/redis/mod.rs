//! The RedisCluster operator on a cluster: clusters form, scale under load, heal, and go.
//!
//! It is installed once, as its users would do it, and then put through everything that `docs/redis-operator.md`
//! promises: each part in a namespace of its own, and side by side where they do not disturb each other.

#[path = "../../../operator/tests/support/authority.rs"]
mod authority;
mod growth;
mod hand;
mod healing;
mod journal;
mod mistakes;
mod nodes;
mod operator;
mod rediscluster;
mod rendered;
mod rights;
mod scope;
mod secrets;
mod succession;
mod writer;

use std::thread;

use libtest_mimic::{Failed, Trial};

use self::operator::Operator;
use self::rediscluster::Redis;
use self::writer::Writer;
use crate::cluster::{Namespace, PATIENCE, message, within};
use crate::harness::{self, Company, cluster_from_parts, part, trial};
use crate::pages::{self, Page};

/// A RedisCluster that is written to while something happens to its operator.
pub(crate) struct Served<'a> {
    redis: Redis<'a>,
    writer: Writer,
}

impl<'a> Served<'a> {
    /// Makes the image that its pods run, and creates it. An operator has to be there.
    pub(crate) fn start(namespace: &'a Namespace, name: &'static str) -> Result<Self, Failed> {
        operator::shell(namespace.cluster)?;
        let redis = Redis { namespace, name };
        redis.create("size: 3")?;
        redis.ready()?;
        let writer = Writer::start(namespace, redis.name)?;
        Ok(Self { redis, writer })
    }

    /// Its pods, which have an id of their own each.
    pub(crate) fn pods(&self) -> Result<String, Failed> {
        let selector = format!("--selector=app.kubernetes.io/instance={}", self.redis.name);
        let ids = "--output=jsonpath={.items[*].metadata.uid}";
        self.redis.namespace.kubectl(&["get", "pods", &selector, ids])
    }

    /// Ends the writing. How many writes there were; one that failed or was lost is an error.
    pub(crate) fn stop(self) -> Result<u64, Failed> {
        let written = self.writer.stop()?;
        assert!(written.errors.is_empty(), "{:?}", written.errors);
        self.redis.ready()?;
        self.redis.namespace.kubectl(&["delete", "pod", "client", "--wait=false"])?;
        Ok(written.count)
    }
}

/// What ends an operator that leads in this namespace, as a crash does: it hands nothing over.
pub(crate) struct Killer<'a> {
    namespace: &'a Namespace,
    hand: hand::Hand<'a>,
}

impl<'a> Killer<'a> {
    pub(crate) fn of(namespace: &'a Namespace) -> Result<Self, Failed> {
        Ok(Self { namespace, hand: hand::Hand::of(namespace)? })
    }

    /// Kills the leader as soon as a ClusterServiceVersion is being installed; the name of its pod.
    pub(crate) fn kill_while_installing(&self, csv: &str) -> Result<String, Failed> {
        let phase = ["get", "clusterserviceversions.operators.coreos.com", csv, "--ignore-not-found"];
        let words = [&phase[..], &["--output=jsonpath={.status.phase}"]].concat();
        let installing = within(PATIENCE, || {
            let phase = self.namespace.kubectl(&words)?;
            Ok(matches!(phase.as_str(), "InstallReady" | "Installing").then_some(()))
        })?;
        installing.ok_or_else(|| format!("{csv} was never being installed"))?;
        let holder = "--output=jsonpath={.spec.holderIdentity}";
        let killed = within(PATIENCE, || {
            let leader = self.namespace.kubectl(&["get", "lease/redis-operator", holder])?;
            // Its pod may just have ended, since it is being replaced: then another leads soon.
            let is_killed = self.hand.operator_in(&self.namespace.name, "KILL", &leader).is_ok();
            Ok(is_killed.then_some(leader))
        })?;
        Ok(killed.ok_or("no operator that leads could be killed")?)
    }
}

/// The operator's program as an image of some name.
pub(crate) fn push_operator(namespace: &Namespace, name: &str) -> Result<(), Failed> {
    operator::push_as(namespace.cluster, name)
}

pub(crate) fn trials() -> Vec<Trial> {
    let of_redis = Company::Of(harness::Operator::Redis);
    vec![
        trial("the_redis_operator_as_bundle_manifests_renders_it", of_redis, rendered::runs),
        // Alone: it looks at how long things take.
        trial("the_redis_operator", Company::Alone, all),
        nodes::trial(),
    ]
}

/// The walk through `docs/redis-operator.md`.
fn walked(namespace: &Namespace) -> Result<(), Failed> {
    let image = operator::image();
    pages::walked(
        namespace,
        Page {
            path: "docs/redis-operator.md",
            fence: "console",
            images: &[("redis-operator:0.6.0", &image)],
            environment: vec![(operator::MANIFESTS, format!("{} manifests", operator::built()?.display()))],
            asks: &["kubectl -n redis-operator logs"],
        },
    )
}

fn all(namespace: &Namespace) -> Result<(), Failed> {
    let operator = Operator::install(namespace.cluster)?;
    // Each of these has clusters of its own; they share the operator, and take about as long as each other.
    let lanes: [Vec<Part>; 3] = [
        vec![("a_redis_cluster_is_left_in_peace", |_, namespace| growth::quiet(namespace))],
        vec![
            ("a_certificate_and_a_password_change", |_, namespace| secrets::change(namespace)),
            ("what_only_a_redis_user_can_mend", |_, namespace| mistakes::mended(namespace)),
            ("the_redis_operator_as_its_page_shows_it", |_, namespace| walked(namespace)),
            ("what_the_webhooks_of_redis_say", |_, namespace| mistakes::webhooks(namespace)),
            ("what_users_change_in_a_redis_cluster", |_, namespace| mistakes::edited(namespace)),
            ("what_the_api_refuses_of_a_redis_cluster", |_, namespace| mistakes::refused(namespace)),
        ],
        vec![
            ("a_redis_cluster_lives", growth::lives),
            ("a_redis_cluster_heals_without_volumes", healing::without_volumes),
            ("a_redis_cluster_heals_with_volumes", |_, namespace| healing::with_volumes(namespace)),
        ],
    ];
    let forming: Part = ("a_redis_cluster_forms", |_, namespace| growth::forms(namespace));
    let mut failures = run(&operator, vec![forming]);
    failures.extend(thread::scope(|scope| {
        let running: Vec<_> = lanes.into_iter().map(|lane| scope.spawn(|| run(&operator, lane))).collect();
        running
            .into_iter()
            .flat_map(|lane| lane.join().unwrap_or_else(|_| vec!["a lane panicked".into()]))
            .collect::<Vec<_>>()
    }));
    // These disturb all others.
    let disturbing: Vec<Part> = vec![
        ("a_redis_cluster_outlives_its_operator", succession::outlives),
        ("the_redis_operator_watches_what_olm_tells_it", scope::told),
    ];
    failures.extend(run(&operator, disturbing));
    // Its rights are enough, the least that it was given: a user whose rights do not suffice is named. And it tells nobody a password.
    let log = operator.whole_log()?;
    for word in ["system:serviceaccount:", mistakes::PASSWORD] {
        failures.extend(log.lines().find(|line| line.contains(word)).map(|line| format!("it logged {line}")));
    }
    // A part of the tests does not need all of its rights.
    if std::env::var_os("E2E_PART").is_none() {
        match cluster_from_parts() {
            Some(directory) => failures.extend(rights::compared(&operator, &directory)?),
            None => eprintln!("not run: only a cluster from parts shows its audit log: 1 test"),
        }
    }
    let log = if failures.is_empty() { String::new() } else { operator.log() };
    operator.uninstall()?;
    if failures.is_empty() { Ok(()) } else { Err(format!("{}\n{log}", failures.join("\n")).into()) }
}

type Part = (&'static str, fn(&Operator, &Namespace) -> Result<(), Failed>);

/// Runs parts one after another, also when one fails; what their failures say. `E2E_PART` chooses by a part of the name.
fn run(operator: &Operator, parts: Vec<Part>) -> Vec<String> {
    let wanted = std::env::var("E2E_PART").unwrap_or_default();
    let parts = parts.into_iter().filter(|(name, _)| name.contains(&wanted));
    parts
        .filter_map(|(name, test)| {
            let failed = part(name, |namespace| test(operator, namespace)).err()?;
            Some(format!("--- {name}: {}", message(&failed)))
        })
        .collect()
}
