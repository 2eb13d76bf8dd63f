//! What the operator counts, in the OpenMetrics text format.
//!
//! No label names a pod or a node: those come and go without end. The series of a cluster go with it.

use std::{
    sync::atomic::{AtomicI64, AtomicU64},
    time::Duration,
};

use prometheus_client::{
    encoding::{EncodeLabelSet, text},
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram, info::Info},
    registry::Registry,
};

const SECONDS: [f64; 12] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0];
const COMMAND_SECONDS: [f64; 8] = [0.0005, 0.001, 0.005, 0.025, 0.1, 0.5, 2.0, 5.0];

macro_rules! labels {
    ($name:ident: $($label:ident),+) => {
        #[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
        struct $name { $($label: String),+ }
    };
}

labels!(Reconcile: result);
labels!(Failure: error);
labels!(Phases: phase);
labels!(PerCluster: namespace, name, state);
labels!(PerCondition: namespace, name, r#type);
labels!(Failovers: namespace, name, kind);
labels!(Kind: kind);
labels!(Command: command);
labels!(CommandFailure: command, error);
labels!(Webhook: webhook, result);
labels!(WebhookTime: webhook);

type Seconds<L> = Family<L, Histogram, fn() -> Histogram>;

fn seconds() -> Histogram {
    Histogram::new(SECONDS)
}

fn command_seconds() -> Histogram {
    Histogram::new(COMMAND_SECONDS)
}

/// All metrics of one operator.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    reconcile_duration: Seconds<Reconcile>,
    reconciles: Family<Reconcile, Counter>,
    reconcile_errors: Family<Failure, Counter>,
    in_flight: Gauge,
    queue_depth: Gauge,
    clusters: Family<Phases, Gauge>,
    nodes: Family<PerCluster, Gauge>,
    slots: Family<PerCluster, Gauge>,
    conditions: Family<PerCondition, Gauge>,
    failovers: Family<Failovers, Counter>,
    slots_migrated: Counter,
    slot_migration: Histogram,
    members_replaced: Counter,
    repairs: Family<Kind, Counter>,
    api_writes: Family<Kind, Counter>,
    command_duration: Seconds<Command>,
    command_errors: Family<CommandFailure, Counter>,
    webhooks: Family<Webhook, Counter>,
    webhook_duration: Seconds<WebhookTime>,
    leader: Gauge<i64, AtomicI64>,
    leader_transitions: Counter<u64, AtomicU64>,
}

/// The kinds of repair, all there from the start so that a rate can be taken of the first.
pub const REPAIRS: [&str; 4] = ["addresses", "replication", "open_slots", "ghosts"];

impl Default for Metrics {
    fn default() -> Self {
        let metrics = Self {
            registry: Registry::with_prefix("redis_operator"),
            reconcile_duration: Family::new_with_constructor(seconds),
            reconciles: Family::default(),
            reconcile_errors: Family::default(),
            in_flight: Gauge::default(),
            queue_depth: Gauge::default(),
            clusters: Family::default(),
            nodes: Family::default(),
            slots: Family::default(),
            conditions: Family::default(),
            failovers: Family::default(),
            slots_migrated: Counter::default(),
            slot_migration: command_seconds(),
            members_replaced: Counter::default(),
            repairs: Family::default(),
            api_writes: Family::default(),
            command_duration: Family::new_with_constructor(command_seconds),
            command_errors: Family::default(),
            webhooks: Family::default(),
            webhook_duration: Family::new_with_constructor(command_seconds),
            leader: Gauge::default(),
            leader_transitions: Counter::default(),
        };
        metrics.registered()
    }
}

impl Metrics {
    fn registered(mut self) -> Self {
        let registry = &mut self.registry;
        let mut add =
            |name: &str, help: &str, metric: Box<dyn Register>| metric.register(registry, name, help);
        add("reconcile_duration_seconds", "Time of one reconcile", Box::new(self.reconcile_duration.clone()));
        add("reconcile", "Reconciles", Box::new(self.reconciles.clone()));
        add("reconcile_errors", "Reconciles that failed, by class", Box::new(self.reconcile_errors.clone()));
        add("reconciles_in_flight", "Reconciles that run now", Box::new(self.in_flight.clone()));
        add("queue_depth", "Objects that wait to be reconciled", Box::new(self.queue_depth.clone()));
        add("clusters", "RedisClusters by phase", Box::new(self.clusters.clone()));
        add("cluster_nodes", "Redis nodes by state: desired, ready, member", Box::new(self.nodes.clone()));
        add("cluster_slots", "Slots by state: covered, open, lost", Box::new(self.slots.clone()));
        add("cluster_condition", "Whether a condition is True", Box::new(self.conditions.clone()));
        add(
            "failovers",
            "Changes of primary, by kind: planned, takeover, forced, observed",
            Box::new(self.failovers.clone()),
        );
        add("slots_migrated", "Slots moved between primaries", Box::new(self.slots_migrated.clone()));
        add(
            "slot_migration_duration_seconds",
            "Time of moving one slot",
            Box::new(self.slot_migration.clone()),
        );
        add("members_replaced", "Dead members replaced by new ones", Box::new(self.members_replaced.clone()));
        add("repairs", "Repairs by kind", Box::new(self.repairs.clone()));
        add("api_writes", "Writes to the API server, by kind of object", Box::new(self.api_writes.clone()));
        add(
            "redis_command_duration_seconds",
            "Time of Redis commands",
            Box::new(self.command_duration.clone()),
        );
        add(
            "redis_command_errors",
            "Redis commands without a good answer",
            Box::new(self.command_errors.clone()),
        );
        add("webhook_requests", "Requests of webhooks", Box::new(self.webhooks.clone()));
        add("webhook_duration_seconds", "Time of webhook requests", Box::new(self.webhook_duration.clone()));
        add("leader", "1 while this process leads", Box::new(self.leader.clone()));
        add(
            "leader_transitions",
            "Times that this process became leader",
            Box::new(self.leader_transitions.clone()),
        );
        let build = [("version", env!("CARGO_PKG_VERSION"))];
        registry.register("build", "What runs", Info::new(build.to_vec()));
        // Taking a series out makes it; what is taken out is a lock.
        for kind in REPAIRS {
            drop(self.repairs.get_or_create(&Kind { kind: kind.into() }));
        }
        for result in ["ok", "error"] {
            drop(self.reconciles.get_or_create(&Reconcile { result: result.into() }));
        }
        self
    }

    /// Everything, as `/metrics` serves it.
    pub fn text(&self) -> String {
        let mut buffer = String::new();
        // Writing into a String does not fail.
        let _ = text::encode(&mut buffer, &self.registry);
        buffer
    }

    /// A reconcile begins.
    pub fn reconcile_started(&self) {
        self.in_flight.inc();
    }

    /// A reconcile ended, well or with an error of this class.
    pub fn reconcile_ended(&self, time: Duration, error: Option<&str>) {
        self.in_flight.dec();
        let labels = Reconcile { result: if error.is_some() { "error" } else { "ok" }.into() };
        self.reconcile_duration.get_or_create(&labels).observe(time.as_secs_f64());
        self.reconciles.get_or_create(&labels).inc();
        if let Some(error) = error {
            self.reconcile_errors.get_or_create(&Failure { error: error.into() }).inc();
        }
    }

    /// How many objects wait.
    pub fn queue_depth(&self, depth: usize) {
        self.queue_depth.set(i64::try_from(depth).unwrap_or(i64::MAX));
    }

    /// How many clusters are in each phase.
    pub fn phases<'a>(&self, phases: impl IntoIterator<Item = (&'a str, i64)>) {
        for (phase, count) in phases {
            self.clusters.get_or_create(&Phases { phase: phase.into() }).set(count);
        }
    }

    /// How a cluster is.
    pub fn cluster(&self, namespace: &str, name: &str, gauges: &ClusterGauges) {
        let labels =
            |state: &str| PerCluster { namespace: namespace.into(), name: name.into(), state: state.into() };
        for (state, value) in
            [("desired", gauges.desired), ("ready", gauges.ready), ("member", gauges.members)]
        {
            self.nodes.get_or_create(&labels(state)).set(value);
        }
        for (state, value) in [("covered", gauges.covered), ("open", gauges.open), ("lost", gauges.lost)] {
            self.slots.get_or_create(&labels(state)).set(value);
        }
        for (kind, value) in &gauges.conditions {
            let labels =
                PerCondition { namespace: namespace.into(), name: name.into(), r#type: kind.clone() };
            self.conditions.get_or_create(&labels).set(i64::from(*value));
        }
        for kind in ["planned", "takeover", "forced", "observed"] {
            drop(self.failovers.get_or_create(&failovers(namespace, name, kind)));
        }
    }

    /// A cluster is no more.
    pub fn cluster_gone(&self, namespace: &str, name: &str, conditions: &[&str]) {
        for state in ["desired", "ready", "member", "covered", "open", "lost"] {
            let labels = PerCluster { namespace: namespace.into(), name: name.into(), state: state.into() };
            self.nodes.remove(&labels);
            self.slots.remove(&labels);
        }
        for kind in conditions {
            let labels =
                PerCondition { namespace: namespace.into(), name: name.into(), r#type: (*kind).into() };
            self.conditions.remove(&labels);
        }
        for kind in ["planned", "takeover", "forced", "observed"] {
            self.failovers.remove(&failovers(namespace, name, kind));
        }
    }

    /// A primary changed.
    pub fn failover(&self, namespace: &str, name: &str, kind: &str) {
        self.failovers.get_or_create(&failovers(namespace, name, kind)).inc();
    }

    /// Slots that were migrated together have a new owner. Each took its share of the time.
    pub fn slots_moved(&self, slots: usize, time: Duration) {
        self.slots_migrated.inc_by(slots as u64);
        for _ in 0..slots {
            self.slot_migration.observe(time.as_secs_f64() / slots as f64);
        }
    }

    /// A dead member was replaced.
    pub fn member_replaced(&self) {
        self.members_replaced.inc();
    }

    /// Something was repaired; one of [`REPAIRS`].
    pub fn repaired(&self, kind: &str) {
        self.repairs.get_or_create(&Kind { kind: kind.into() }).inc();
    }

    /// The API server was told something.
    pub fn api_write(&self, kind: &str) {
        self.api_writes.get_or_create(&Kind { kind: kind.into() }).inc();
    }

    /// A Redis command was answered, or not.
    pub fn redis_command(&self, command: &str, time: Duration, error: Option<&str>) {
        self.command_duration.get_or_create(&Command { command: command.into() }).observe(time.as_secs_f64());
        if let Some(error) = error {
            let labels = CommandFailure { command: command.into(), error: error.into() };
            self.command_errors.get_or_create(&labels).inc();
        }
    }

    /// A webhook answered.
    pub fn webhook(&self, webhook: &str, time: Duration, result: &str) {
        self.webhooks.get_or_create(&Webhook { webhook: webhook.into(), result: result.into() }).inc();
        self.webhook_duration
            .get_or_create(&WebhookTime { webhook: webhook.into() })
            .observe(time.as_secs_f64());
    }

    /// Whether this process leads.
    pub fn leading(&self, leads: bool) {
        if leads && self.leader.get() == 0 {
            self.leader_transitions.inc();
        }
        self.leader.set(i64::from(leads));
    }
}

/// How a cluster is, in numbers.
#[derive(Clone, Debug, Default)]
pub struct ClusterGauges {
    /// Nodes wanted.
    pub desired: i64,
    /// Nodes that answer and are members.
    pub ready: i64,
    /// Nodes in the tables.
    pub members: i64,
    /// Slots served.
    pub covered: i64,
    /// Open slots.
    pub open: i64,
    /// Slots that nobody can serve any more.
    pub lost: i64,
    /// Whether each condition is True.
    pub conditions: Vec<(String, bool)>,
}

fn failovers(namespace: &str, name: &str, kind: &str) -> Failovers {
    Failovers { namespace: namespace.into(), name: name.into(), kind: kind.into() }
}

/// Metrics of different types, registered in one list.
trait Register {
    fn register(self: Box<Self>, registry: &mut Registry, name: &str, help: &str);
}

impl<M: prometheus_client::registry::Metric> Register for M {
    fn register(self: Box<Self>, registry: &mut Registry, name: &str, help: &str) {
        registry.register(name, help, *self);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clusters_series_go_with_it() {
        let metrics = Metrics::default();
        let empty = metrics.text();
        let gauges = ClusterGauges { conditions: vec![("Available".into(), true)], ..Default::default() };
        metrics.cluster("ns", "rc", &gauges);
        metrics.failover("ns", "rc", "observed");
        assert!(
            metrics
                .text()
                .contains(r#"redis_operator_failovers_total{namespace="ns",name="rc",kind="observed"} 1"#)
        );
        metrics.cluster_gone("ns", "rc", &["Available"]);
        assert_eq!(metrics.text(), empty);
    }
}
