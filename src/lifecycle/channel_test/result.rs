//! Results of tests.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use super::plan::{Kind, Test, Untaken, Walk};
use crate::sentence::{Help, Sentence};
use crate::shell::Reach;

/// How a test ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Outcome {
    /// All was well.
    Passed,
    /// Something was not.
    Failed,
    /// It could not be begun: see the reason.
    #[serde(rename = "skipped")]
    NotRun,
}

impl Outcome {
    /// The word for people.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::NotRun => "not run",
        }
    }
}

/// Why a test failed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TestFailure {
    /// A word for programs: a code of `operator doctor`, or one of `operator test`.
    pub code: String,
    /// What failed, where, and why.
    pub sentence: String,
    /// The step, as `install 0.1.0` or `0.1.0 → 0.2.0`.
    pub step: String,
    /// What shows it.
    pub evidence: Vec<String>,
    /// What to do.
    pub help: Vec<Sentence>,
}

/// The result of one test.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TestResult {
    /// What it is called, once in its channel.
    pub name: String,
    /// What it is about.
    pub kind: Kind,
    /// The package.
    pub package: String,
    /// The channel.
    pub channel: String,
    /// The bundle that was installed before it; none for a fresh install.
    pub from: Option<String>,
    /// The bundle that it leads to; none where no upgrade leads on.
    pub to: Option<String>,
    /// The bundles that were installed one after another, up to the last one of the test.
    pub way: Vec<String>,
    /// The install mode, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub install_mode: Option<String>,
    /// How it ended.
    #[serde(rename = "result")]
    pub outcome: Outcome,
    /// How long its last steps took; the steps before them are in the tests before it.
    pub seconds: f64,
    /// How many custom resources were applied, or compared.
    pub samples: usize,
    /// Why it failed; none where it did not.
    #[serde(rename = "cause")]
    pub failure: Option<TestFailure>,
    /// Why it was skipped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What happened during it, where it failed.
    pub log: Vec<String>,
}

/// The results of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// The package.
    pub package: String,
    /// The catalog: `NAMESPACE/NAME` of its CatalogSource.
    pub catalog: String,
    /// Where operators were installed.
    pub namespace: String,
    /// Whether OLM was simulated.
    pub simulated: bool,
    /// Whether this is what would be tested.
    pub dry_run: bool,
    /// The tests, in the order in which they were done.
    #[serde(rename = "cases")]
    pub tests: Vec<TestResult>,
    /// How many passed.
    pub passed: usize,
    /// How many failed.
    pub failed: usize,
    /// How many were not run.
    #[serde(rename = "skipped")]
    pub not_run: usize,
    /// How long it took.
    pub seconds: f64,
    /// Edges of the catalog that OLM does not take.
    pub untaken: Vec<Untaken>,
    /// What is to be said besides.
    pub notes: Vec<String>,
    /// What could not be removed afterwards.
    pub left: Vec<String>,
}

impl Report {
    /// The same, with its commands on a cluster.
    #[must_use]
    pub fn on(mut self, reach: &Reach) -> Self {
        for failure in self.tests.iter_mut().filter_map(|test| test.failure.as_mut()) {
            let help = Help::from(std::mem::take(&mut failure.help));
            failure.help = help.on(reach).into_sentences();
        }
        self
    }

    /// Counts the outcomes.
    pub(super) fn count(&mut self) {
        let count = |outcome| self.tests.iter().filter(|test| test.outcome == outcome).count();
        (self.passed, self.failed, self.not_run) =
            (count(Outcome::Passed), count(Outcome::Failed), count(Outcome::NotRun));
    }
}

/// Seconds to a tenth, which is as exact as anybody can use.
pub(super) fn seconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 10.0).round() / 10.0
}

impl TestResult {
    /// A test that was not run yet.
    pub(super) fn not_run(walk: &Walk, test: &Test, package: &str) -> Self {
        let (from, to) = match test.kind {
            Kind::Install => (None, walk.way.first()),
            Kind::Withdrawn => (walk.way.first(), None),
            Kind::Head if walk.stranded.is_some() => (walk.way.first(), None),
            Kind::Edge | Kind::Head | Kind::InstallMode => (walk.way.first(), walk.way.get(test.at)),
        };
        Self {
            name: walk.name(test, package),
            kind: test.kind,
            package: package.to_owned(),
            channel: walk.channel.clone(),
            from: from.cloned(),
            to: to.cloned(),
            way: walk.way.iter().take(test.at + 1).cloned().collect(),
            install_mode: walk.mode.map(|mode| mode.to_string()),
            outcome: Outcome::NotRun,
            seconds: 0.0,
            samples: 0,
            failure: None,
            reason: None,
            log: Vec::new(),
        }
    }
}
