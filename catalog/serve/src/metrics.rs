//! What there is to count, as OpenMetrics text.

use std::fmt;
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

/// A request by what it asked and how it ended.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Ended {
    method: &'static str,
    code: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Method {
    method: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Outcome {
    result: &'static str,
}

/// Everything that is counted.
pub(super) struct Metrics {
    registry: Registry,
    requests: Family<Ended, Counter>,
    seconds: Family<Method, Histogram, fn() -> Histogram>,
    reloads: Family<Outcome, Counter>,
    pub(super) connections: Gauge,
    pub(super) refused: Counter,
    pub(super) stalled: Counter,
    pub(super) under_way: Gauge,
    pub(super) sent_bytes: Counter,
    pub(super) packages: Gauge,
    pub(super) bundles: Gauge,
    pub(super) stale: Gauge,
}

impl Default for Metrics {
    fn default() -> Self {
        // From a tenth of a millisecond, four times more each, up to a minute and a half.
        let histogram: fn() -> Histogram =
            || Histogram::new(prometheus_client::metrics::histogram::exponential_buckets(0.0001, 4.0, 11));
        let mut metrics = Self {
            registry: Registry::with_prefix("olmkit_catalog"),
            requests: Family::default(),
            seconds: Family::new_with_constructor(histogram),
            reloads: Family::default(),
            connections: Gauge::default(),
            refused: Counter::default(),
            stalled: Counter::default(),
            under_way: Gauge::default(),
            sent_bytes: Counter::default(),
            packages: Gauge::default(),
            bundles: Gauge::default(),
            stale: Gauge::default(),
        };
        let all = &mut metrics.registry;
        all.register("requests", "Requests by method and status code", metrics.requests.clone());
        all.register_with_unit("request", "Time that answers took", Unit::Seconds, metrics.seconds.clone());
        all.register("reloads", "Catalogs opened, and not", metrics.reloads.clone());
        all.register("connections", "Open connections", metrics.connections.clone());
        all.register("refused_connections", "Connections above the limit", metrics.refused.clone());
        all.register(
            "stalled_connections",
            "Connections closed since answers were left unread",
            metrics.stalled.clone(),
        );
        all.register(
            "requests_under_way",
            "Requests whose answers have not ended",
            metrics.under_way.clone(),
        );
        all.register_with_unit("sent", "Answers without framing", Unit::Bytes, metrics.sent_bytes.clone());
        all.register("packages", "Packages that are served", metrics.packages.clone());
        all.register("bundles", "Bundles that are served", metrics.bundles.clone());
        all.register("stale", "1 when what is served is not what the files say", metrics.stale.clone());
        metrics
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics")
    }
}

impl Metrics {
    /// A request that has ended.
    pub(super) fn ended(&self, method: &'static str, code: String, took: Duration) {
        self.requests.get_or_create(&Ended { method, code }).inc();
        self.seconds.get_or_create(&Method { method }).observe(took.as_secs_f64());
    }

    /// A catalog that was opened, or not.
    pub(super) fn reloaded(&self, result: &'static str) {
        self.reloads.get_or_create(&Outcome { result }).inc();
    }

    /// All of it as text.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}
