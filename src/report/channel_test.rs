//! Tests of channels: a line for each as it ends, and the whole as text, JSON, JUnit's XML and Markdown.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::junit::escape;
use super::markdown::one_line;
use super::plural;
use super::table::Table;
use super::{Answer, Format, json, pretty, printable};
use crate::actions::operator::channel_test::Tested;
use crate::exit::Exit;
use crate::lifecycle::channel_test::{Outcome, Report, Spectator, TestFailure, TestResult};
use crate::lifecycle::engine::Progress;
use crate::progress::{screen, tell};
use crate::sentence::Help;

/// Shows tests as they go: a table on a terminal, a line for each elsewhere.
pub fn channel_tests() -> Box<dyn Spectator> {
    Box::new(Live { bars: screen(), current: Mutex::default() })
}

struct Live {
    bars: Option<MultiProgress>,
    /// The row of the test that is being done.
    current: Mutex<Option<ProgressBar>>,
}

impl Live {
    fn row(&self, change: impl FnOnce(&ProgressBar)) {
        if let Some(bar) = &*self.current.lock().unwrap_or_else(PoisonError::into_inner) {
            change(bar);
        }
    }
}

impl Progress for Live {
    fn state(&self, _: Duration, object: &str, state: &str) {
        self.row(|bar| bar.set_message(printable(&format!("{object}: {state}")).into_owned()));
    }

    fn said(&self, _: Duration, text: &str) {
        self.row(|bar| bar.set_message(printable(text).into_owned()));
    }
}

impl Spectator for Live {
    fn begins(&self, number: usize, count: usize, channel: &str, name: &str) {
        let Some(bars) = &self.bars else { return };
        let style = ProgressStyle::with_template("{spinner} {prefix} {wide_msg} {elapsed:>5}");
        let style = style.unwrap_or_else(|_| ProgressStyle::default_spinner()).tick_chars("|/-\\+");
        // Not drawn before it is among the others.
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden()).with_style(style);
        let bar = bars.add(bar);
        let name = format!("{number:>3}/{count} {channel}: {name}");
        bar.set_prefix(printable(&format!("{name:44}")).into_owned());
        bar.enable_steady_tick(Duration::from_millis(200));
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = Some(bar);
    }

    fn ends(&self, result: &TestResult) {
        let current = self.current.lock().unwrap_or_else(PoisonError::into_inner).take();
        match (&self.bars, current) {
            (Some(_), Some(bar)) => bar.finish_with_message(printable(&outcome(result)).into_owned()),
            (bars, _) => tell(bars.as_ref(), &line(result)),
        }
    }
}

/// A test in a line.
fn line(result: &TestResult) -> String {
    format!("{}: {}: {}", result.channel, result.name, outcome(result))
}

/// How a test ended, in a few words.
fn outcome(result: &TestResult) -> String {
    let word = result.outcome.as_str();
    match (&result.failure, &result.reason) {
        (Some(failure), _) => format!("{word}: {}", failure.sentence),
        (None, Some(reason)) => format!("{word}: {reason}"),
        (None, None) => format!("{word} ({})", time(result.seconds)),
    }
}

fn time(seconds: f64) -> String {
    if seconds < 120.0 { format!("{seconds:.0} s") } else { format!("{:.0} min", seconds / 60.0) }
}

impl Answer for Tested {
    fn json(&self) -> String {
        pretty(&json::ChannelTests {
            schema: "olmkit.channel-test/v1",
            report: &self.report,
            error: self.ended.as_ref().or(self.unwritten.as_ref()).map(ToString::to_string),
        })
    }

    fn text(&self, out: &mut dyn Write, talk: &mut dyn Write) -> io::Result<()> {
        let report = &self.report;
        writeln!(out, "{}", printable(&title(report)))?;
        self.table(out)?;
        for test in report.tests.iter().filter(|test| test.outcome == Outcome::Failed) {
            if let Some(failure) = &test.failure {
                writeln!(out)?;
                told(test, failure, out)?;
            }
        }
        if !report.untaken.is_empty() || !report.notes.is_empty() {
            writeln!(out)?;
        }
        for line in remarks(report) {
            writeln!(out, "{}", printable(&line))?;
        }
        for left in &report.left {
            writeln!(talk, "not removed: {}", printable(left))?;
        }
        writeln!(out, "\n{}", summary(report))?;
        let mut failures = self.ended.iter().chain(&self.unwritten);
        failures.try_for_each(|failure| super::failure_text(failure, talk))
    }

    fn findings(&self, format: Format) -> Option<String> {
        match format {
            Format::Junit => Some(self.junit()),
            Format::Markdown => Some(self.markdown()),
            _ => None,
        }
    }

    fn exit(&self) -> Exit {
        match (&self.ended, &self.unwritten) {
            (Some(failure), _) => failure.exit,
            (None, _) if self.report.failed > 0 => Exit::Failed,
            (None, Some(failure)) => failure.exit,
            (None, None) => Exit::Success,
        }
    }
}

fn title(report: &Report) -> String {
    let olm = if report.simulated { ", OLM simulated" } else { "" };
    format!("{} from {}{olm}", report.package, report.catalog)
}

/// What is to be said of a channel besides its tests: the edges that nobody walks.
fn not_walked(report: &Report) -> impl Iterator<Item = (&str, String)> {
    report.untaken.iter().map(|one| {
        let text = format!("not walked in {}: {} → {}: {}", one.channel, one.from, one.to, one.reason);
        (one.channel.as_str(), text)
    })
}

/// What is to be said besides the tests.
fn remarks(report: &Report) -> impl Iterator<Item = String> {
    let notes = report.notes.iter().map(|note| format!("note: {note}"));
    not_walked(report).map(|(_, text)| text).chain(notes)
}

/// How many of each.
fn summary(report: &Report) -> String {
    if report.dry_run {
        return format!("{} would be run", plural(report.tests.len(), "test"));
    }
    if report.tests.is_empty() {
        return "no tests".to_owned();
    }
    let mut parts = vec![format!("{} passed", report.passed)];
    if report.failed > 0 {
        parts.push(format!("{} failed", report.failed));
    }
    if report.not_run > 0 {
        parts.push(format!("{} not run", report.not_run));
    }
    format!("{} in {}", parts.join(", "), time(report.seconds))
}

fn told(test: &TestResult, failure: &TestFailure, out: &mut dyn Write) -> io::Result<()> {
    let step =
        if test.name.starts_with(&failure.step) { String::new() } else { format!(", at {}", failure.step) };
    let mut say = |text: String| writeln!(out, "{}", printable(&text));
    say(format!("{}: {}{step} failed", test.channel, test.name))?;
    say(format!("  {} [{}]", failure.sentence, failure.code))?;
    failure.evidence.iter().try_for_each(|one| say(format!("  evidence: {one}")))?;
    Help::from(failure.help.clone()).to_string().lines().try_for_each(|help| say(format!("  help: {help}")))
}

impl Tested {
    fn table(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut table = Table::titled(&["CHANNEL", "TEST", "RESULT", "TIME", "SAMPLES"]);
        for test in &self.report.tests {
            let is_run = test.outcome != Outcome::NotRun && !test.way.is_empty();
            let word = if self.report.dry_run { "-" } else { test.outcome.as_str() };
            let done = |text: String| if is_run { text } else { "-".to_owned() };
            let (time, samples) = (done(time(test.seconds)), done(test.samples.to_string()));
            table.row([&test.channel, &test.name, word, &time, &samples]);
        }
        table.print(out)
    }

    /// The report as JUnit's XML: a suite for each channel.
    pub fn junit(&self) -> String {
        let report = &self.report;
        let mut by_channel: BTreeMap<&str, Vec<&TestResult>> = BTreeMap::new();
        for test in &report.tests {
            by_channel.entry(&test.channel).or_default().push(test);
        }
        let mut untaken: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for (channel, text) in not_walked(report) {
            by_channel.entry(channel).or_default();
            untaken.entry(channel).or_default().push(text);
        }
        let errors = usize::from(self.ended.is_some());
        // A text takes everything.
        let mut xml = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"olmkit operator test {}\" tests=\"{}\" failures=\"{}\" \
             errors=\"{errors}\" skipped=\"{}\" time=\"{:.1}\">\n",
            escape(&report.package),
            report.tests.len(),
            report.failed,
            report.not_run,
            report.seconds
        );
        for (channel, tests) in by_channel {
            let count = |outcome| tests.iter().filter(|test| test.outcome == outcome).count();
            let class = escape(&format!("{}.{channel}", report.package));
            let _ = writeln!(
                xml,
                "  <testsuite name=\"{class}\" tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"{}\">",
                tests.len(),
                count(Outcome::Failed),
                count(Outcome::NotRun)
            );
            for test in tests {
                xml += &case(test, &class);
            }
            if let Some(texts) = untaken.get(channel) {
                let _ = writeln!(xml, "    <system-out>{}</system-out>", escape(&texts.join("\n")));
            }
            xml += "  </testsuite>\n";
        }
        if !report.notes.is_empty() {
            let _ = writeln!(
                xml,
                "  <testsuite name=\"notes\" tests=\"0\" failures=\"0\" errors=\"0\" skipped=\"0\">\n    \
                 <system-out>{}</system-out>\n  </testsuite>",
                escape(&report.notes.join("\n"))
            );
        }
        if let Some(ended) = &self.ended {
            let message = escape(&ended.to_string());
            let _ = writeln!(
                xml,
                "  <testsuite name=\"run\" tests=\"1\" failures=\"0\" errors=\"1\" skipped=\"0\">\n    <testcase \
                 classname=\"run\" name=\"the run\"><error message=\"{message}\"/></testcase>\n  </testsuite>"
            );
        }
        xml + "</testsuites>\n"
    }

    fn markdown(&self) -> String {
        let report = &self.report;
        let cell = |text: &str| one_line(text).replace('|', "\\|");
        let mut text = format!("## {}\n\n{}\n", cell(&title(report)), summary(report));
        if let Some(ended) = &self.ended {
            let _ = writeln!(text, "\nThe run ended early: {}", cell(&ended.to_string()));
        }
        if !report.tests.is_empty() {
            text += "\n| channel | test | result | time |\n|---|---|---|---|\n";
        }
        for test in &report.tests {
            let (name, word) = (cell(&test.name), test.outcome.as_str());
            let _ = writeln!(text, "| {} | {name} | {word} | {} |", cell(&test.channel), time(test.seconds));
        }
        for test in &report.tests {
            let Some(failure) = &test.failure else { continue };
            let _ = writeln!(text, "\n### {}: {}\n", cell(&test.channel), cell(&test.name));
            let _ = writeln!(
                text,
                "{} (`{}`, at {})",
                cell(&failure.sentence),
                failure.code,
                cell(&failure.step)
            );
            for help in Help::from(failure.help.clone()).to_string().lines() {
                let _ = writeln!(text, "\n- {}", cell(help));
            }
        }
        for (at, remark) in remarks(report).enumerate() {
            let _ = writeln!(text, "{}- {}", if at == 0 { "\n" } else { "" }, cell(&remark));
        }
        text
    }
}

/// A test in JUnit's XML.
fn case(test: &TestResult, class: &str) -> String {
    let mut xml = format!(
        "    <testcase classname=\"{class}\" name=\"{}\" time=\"{:.1}\"",
        escape(&test.name),
        test.seconds
    );
    match (&test.failure, &test.reason) {
        (Some(failure), _) => {
            let mut more = vec![format!("at {}", failure.step)];
            more.extend(failure.evidence.iter().map(|one| format!("evidence: {one}")));
            more.extend(failure.help.iter().map(|help| format!("help: {help}")));
            let _ = writeln!(
                xml,
                ">\n      <failure message=\"{}\" type=\"{}\">{}</failure>",
                escape(&failure.sentence),
                escape(&failure.code),
                escape(&more.join("\n"))
            );
            if !test.log.is_empty() {
                let _ = writeln!(xml, "      <system-out>{}</system-out>", escape(&test.log.join("\n")));
            }
            xml += "    </testcase>\n";
        }
        (None, Some(reason)) => {
            let _ = writeln!(xml, "><skipped message=\"{}\"/></testcase>", escape(reason));
        }
        (None, None) => xml += "/>\n",
    }
    xml
}
