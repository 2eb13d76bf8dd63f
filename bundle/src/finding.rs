//! Findings: what we have to say about an input that we could read.
//!
//! An error means that work could not be done; a finding means that it was, and that something about the input
//! is wrong or odd. Findings are values: they carry their code, a place people can open, and the way out, and
//! reports need nothing else to show them.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::Serialize;

use crate::generate::PathStep;
use crate::generate::package_file::FILE_NAME as PACKAGE_FILE;
use crate::source::{Position, Source, Span};
use crate::suggest::did_you_mean;

/// How much a finding weighs. Only errors make a command say no.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Worth knowing.
    Info,
    /// Likely a mistake.
    Warning,
    /// OLM or its tools refuse this.
    Error,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        })
    }
}

/// One kind of finding: its stable code, default level and documentation.
#[derive(Debug)]
pub struct Code {
    /// Kebab-case, unique over all of olmkit, never used again for something else.
    pub name: &'static str,
    /// The level unless a flag changes it.
    pub level: Level,
    /// The suite it belongs to, by which checks are chosen.
    pub suite: &'static str,
    /// What, why, a bad and a good example, in Markdown.
    pub docs: &'static str,
}

impl Code {
    /// The documentation for people: the marks of its examples turned into words.
    pub fn markdown(&self) -> String {
        let mut text = self.docs.trim().to_owned();
        for (mark, word) in [("bad", "Bad"), ("good", "Good")] {
            for language in ["yaml", "json"] {
                text = text.replace(&format!("```{language} {mark}"), &format!("{word}:\n\n```{language}"));
            }
        }
        text
    }
}

/// Declares `RULE` in a rule's own file: its code, level and suite, and the page beside the file. `Rule`, a struct of a code and its
/// check, and the function `check` are those of the file.
///
/// The modules of rules are listed by hand: rustfmt does not see the file of a module that a macro declares.
#[macro_export]
macro_rules! rule {
    ($name:literal, $level:ident, $suite:ident, $page:literal) => {
        pub(crate) static RULE: Rule = Rule {
            code: $crate::finding::Code {
                name: $name,
                level: $crate::finding::Level::$level,
                suite: $suite,
                docs: include_str!($page),
            },
            check,
        };
    };
}

impl PartialEq for Code {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Code {}

/// Something to say about an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What kind of finding this is.
    pub code: &'static Code,
    /// How much it weighs here.
    pub level: Level,
    /// One sentence: lower case, no full stop, values in backticks.
    pub message: String,
    /// The input as the user named it: a bundle's or a catalog's directory or reference.
    pub input: String,
    /// The object it speaks of, such as a CSV's name.
    pub subject: Option<String>,
    /// Where it stands.
    pub place: Option<Place>,
    /// The other place, when two contradict each other.
    pub other: Option<Place>,
    /// The way out.
    pub help: Option<String>,
    /// The check of OLM v1 that refuses the same.
    pub v1: Option<V1Check>,
}

/// A check of OLM v1's CRD upgrade safety, and what it refuses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct V1Check {
    /// The check, by crdify's name.
    pub check: &'static str,
    /// The version, or `OLD -> NEW` for two served versions; none for checks of the whole CRD.
    pub version: Option<String>,
    /// The property as crdify writes it, such as `^.spec.size`; none for checks of the whole CRD.
    pub property: Option<String>,
}

/// A place in a file, with the line it stands on, so that it can be shown when the file is out of reach.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// The file, as the user can open it.
    pub path: String,
    /// Line and column, unless the finding is about the file as a whole.
    pub position: Option<Position>,
    /// The line's text, cut when very long, and the bytes of it that are meant.
    pub excerpt: Option<Excerpt>,
    /// A few words beside the marked text.
    pub label: Option<String>,
    /// What `bundle generate` makes this line from. An edit of the line itself is lost at the next run.
    pub made_by: MadeBy,
}

/// What `bundle generate` makes a line of a bundle from; nothing of the two for other lines.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct MadeBy {
    /// The key of the package file, or the path of a value in it.
    pub key: Option<Cow<'static, str>>,
    /// The file of the base ClusterServiceVersion.
    pub base: Option<String>,
    /// The field of the generated ClusterServiceVersion.
    pub(crate) field: Vec<PathStep>,
}

impl MadeBy {
    /// Whether the line comes from the package file or a base, which is then the file to edit.
    pub fn is_known(&self) -> bool {
        self.key.is_some() || self.base.is_some()
    }
}

impl From<Option<&'static str>> for MadeBy {
    fn from(key: Option<&'static str>) -> Self {
        Self { key: key.map(Cow::Borrowed), ..Self::default() }
    }
}

/// A line of a file and the part of it that a place marks.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Excerpt {
    /// The line.
    pub line: String,
    /// The first marked byte of `line`.
    pub start: usize,
    /// One past the last marked byte of `line`.
    pub end: usize,
}

/// Lines longer than this are cut around the marked text.
const EXCERPT_BYTES: usize = 160;

impl fmt::Display for Place {
    /// `FILE:LINE:COLUMN`, or the file alone.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.path)?;
        self.position.map_or(Ok(()), |at| write!(f, ":{}:{}", at.line, at.column))
    }
}

impl Place {
    /// A file as a whole.
    pub fn file(path: impl Into<String>) -> Self {
        Self { path: path.into(), position: None, excerpt: None, label: None, made_by: MadeBy::default() }
    }

    /// How many characters it marks in its line.
    pub fn marked_columns(&self) -> u32 {
        let marked = self.excerpt.as_ref().and_then(|Excerpt { line, start, end }| line.get(*start..*end));
        marked.map_or(0, |marked| marked.chars().count() as u32)
    }

    /// A span of a source text.
    pub fn new(source: &Source<'_>, span: Span) -> Self {
        let position = source.position(span.start);
        let line = source.line(position.line);
        let line_start = source.line_start(position.line).unwrap_or(0) as usize;
        let start = (span.start as usize).saturating_sub(line_start).min(line.len());
        let end = (span.end as usize).saturating_sub(line_start).clamp(start, line.len());
        Self {
            path: source.path().to_owned(),
            position: Some(position),
            excerpt: Some(Excerpt::cut(line, start, end)),
            label: None,
            made_by: MadeBy::default(),
        }
    }

    /// Says what makes it.
    #[must_use]
    pub fn made_by(mut self, made_by: impl Into<MadeBy>) -> Self {
        self.made_by = made_by.into();
        self
    }

    /// Words to show beside the marked text.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into());
        self
    }
}

impl Excerpt {
    fn cut(line: &str, start: usize, end: usize) -> Self {
        if line.len() <= EXCERPT_BYTES {
            return Self { line: line.to_owned(), start, end };
        }
        let from = line.floor_char_boundary(start.saturating_sub(EXCERPT_BYTES / 4));
        let to = line.ceil_char_boundary((from + EXCERPT_BYTES).min(line.len()));
        let (before, after) = (if from > 0 { "…" } else { "" }, if to < line.len() { "…" } else { "" });
        let shift = |at: usize| at.clamp(from, to) - from + before.len();
        Self { start: shift(start), end: shift(end), line: format!("{before}{}{after}", &line[from..to]) }
    }
}

impl Finding {
    /// A finding of the code's own level.
    pub fn new(code: &'static Code, message: impl Into<String>) -> Self {
        Self {
            code,
            level: code.level,
            message: readable(message.into()),
            input: String::new(),
            subject: None,
            place: None,
            other: None,
            help: None,
            v1: None,
        }
    }

    /// Names the place.
    #[must_use]
    pub fn at(mut self, place: Place) -> Self {
        self.place = Some(place);
        self
    }

    /// Names the other place, for two that contradict each other.
    #[must_use]
    pub fn and(mut self, other: Place) -> Self {
        self.other = Some(other);
        self
    }

    /// Words to show beside the marked text.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.place = self.place.map(|place| place.label(label));
        self
    }

    /// The message for texts that show neither place nor subject: with the name of the CRD that it speaks of, unless it says that.
    pub fn message_with_crd(&self) -> String {
        let crd =
            self.subject.as_deref().and_then(|subject| subject.strip_prefix("CustomResourceDefinition/"));
        match crd.filter(|crd| !self.message.contains(crd)) {
            Some(crd) => format!("`{crd}`: {}", self.message),
            None => self.message.clone(),
        }
    }

    /// Names the object.
    #[must_use]
    pub fn subject(mut self, subject: impl Into<String>) -> Self {
        self.subject = Some(subject.into());
        self
    }

    /// What to change instead of a line that `bundle generate` writes.
    pub fn generated(&self) -> Option<String> {
        let MadeBy { key, base, .. } = &self.place.as_ref()?.made_by;
        let change = match (key, base) {
            (_, Some(base)) => format!("change the base `{base}`"),
            (Some(key), None) => format!("set `{key}` in the package file (`{PACKAGE_FILE}`)"),
            (None, None) => return None,
        };
        Some(format!("the file is generated: {change}, and run `olmkit bundle generate`"))
    }

    /// What to change instead of a generated line, and the way out.
    pub fn advice(&self) -> Option<String> {
        match (self.generated(), &self.help) {
            (Some(generated), Some(help)) => Some(format!("{generated}; {help}")),
            (generated, help) => generated.or_else(|| help.clone()),
        }
    }

    /// Names the way out.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(readable(help.into()));
        self
    }

    /// What findings are sorted by: input, file, place, code, message.
    fn sort_key(&self) -> impl Ord + '_ {
        let place = self.place.as_ref();
        let path = place.map_or("", |place| place.path.as_str());
        (
            self.input.as_str(),
            path,
            place.and_then(|place| place.position),
            self.code.name,
            self.message.as_str(),
        )
    }
}

/// A message or help is no longer than this, in bytes: what it names may be as long as the input, in each of very many findings.
const MOST_OF_A_TEXT: usize = 4_000;

/// A text without what nobody reads to its end.
fn readable(mut text: String) -> String {
    if text.len() > MOST_OF_A_TEXT {
        text.truncate(text.floor_char_boundary(MOST_OF_A_TEXT));
        text.push('…');
    }
    text
}

/// Of one kind no more findings are kept: each takes many times the few bytes that it may be about, and no report shows more.
pub(crate) const MOST_OF_A_KIND: usize = 10_000;

/// Findings as they are collected; in the end sorted, each once. Of a kind that is met very often the first ones are kept, and the
/// others counted.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    list: Vec<Finding>,
    /// How many there are of each kind.
    counts: BTreeMap<&'static str, (usize, &'static Code)>,
}

impl Findings {
    /// No findings yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one.
    pub fn push(&mut self, finding: Finding) {
        let (count, _) = self.counts.entry(finding.code.name).or_insert((0, finding.code));
        *count += 1;
        if *count <= MOST_OF_A_KIND {
            self.list.push(finding);
        }
    }

    /// Adds one of a kind, which is made only if there is room for it: the rest is counted.
    pub(crate) fn push_with(&mut self, code: &'static Code, make: impl FnOnce() -> Finding) {
        match self.counts.get_mut(code.name) {
            Some((count, _)) if *count >= MOST_OF_A_KIND => *count += 1,
            _ => self.push(make()),
        }
    }

    /// Adds those of another collection.
    pub fn extend(&mut self, others: impl IntoIterator<Item = Finding>) {
        others.into_iter().for_each(|finding| self.push(finding));
    }

    /// Adds another collection, with what it has only counted.
    pub fn merge(&mut self, other: Self) {
        self.extend(other.list);
        for (name, (count, code)) in other.counts {
            let (own, _) = self.counts.entry(name).or_insert((0, code));
            *own += count.saturating_sub(MOST_OF_A_KIND);
        }
    }

    /// Those that were added so far.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Finding> {
        self.list.iter()
    }

    /// Takes those of a kind away.
    pub(crate) fn remove(&mut self, code: &str) {
        self.list.retain(|finding| finding.code.name != code);
        self.counts.remove(code);
    }

    /// Sorted by input, file and place, without repetitions, and all belonging to `input`.
    pub fn into_sorted(mut self, input: &str) -> Vec<Finding> {
        for (count, code) in self.counts.into_values().filter(|(count, _)| *count > MOST_OF_A_KIND) {
            let more = count - MOST_OF_A_KIND;
            self.list
                .push(Finding::new(code, format!("at least {more} more findings of this kind are left out")));
        }
        for finding in &mut self.list {
            finding.input = input.to_owned();
        }
        self.list.sort_by(|a, b| a.sort_key().cmp(&b.sort_key()));
        self.list.dedup();
        self.list
    }

    /// Whether an error is among them.
    pub fn has_errors(&self) -> bool {
        self.list.iter().any(|finding| finding.level == Level::Error)
    }
}

/// The first of many findings in a sentence, with their codes, and how many more there are.
pub fn summary(findings: &[Finding]) -> String {
    const SHOWN: usize = 3;
    let shown = findings.iter().take(SHOWN).map(|own| format!("{} [{}]", own.message, own.code.name));
    let more = findings.len().saturating_sub(SHOWN);
    let more = (more > 0).then(|| format!("and {more} more"));
    shown.chain(more).collect::<Vec<_>>().join("; ")
}

/// How much findings weigh where the user sees it otherwise than their codes do.
///
/// ```
/// use olmkit_bundle::finding::{Code, Finding, Level, Levels};
/// static ODD: Code = Code { name: "odd", level: Level::Warning, suite: "own", docs: "" };
/// let levels = Levels::new(["warnings"], [""; 0], &[&ODD])?;
/// assert_eq!(levels.apply(vec![Finding::new(&ODD, "odd")])[0].level, Level::Error);
/// # Ok::<(), olmkit_bundle::finding::LevelsError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Levels {
    /// Whether every warning is an error.
    deny_warnings: bool,
    deny: BTreeSet<String>,
    warn: BTreeSet<String>,
    allow: BTreeSet<String>,
}

/// The word that stands for every warning where codes are denied.
pub const WARNINGS: &str = "warnings";

/// Where the names of all codes are.
const LIST: &str = "run `olmkit bundle validate --list` for the codes";

/// A choice of levels that cannot be meant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LevelsError {
    /// There is no such code.
    #[error("unknown finding code `{code}`")]
    Unknown {
        /// What was given.
        code: String,
        /// The way out.
        help: String,
    },
    /// All warnings at once can only become errors.
    #[error("`{WARNINGS}` can only be denied")]
    OnlyDenied,
    /// A code is to be of two levels at once.
    #[error("`{code}` has two levels")]
    Both {
        /// The code.
        code: String,
    },
}

impl LevelsError {
    /// The way out.
    pub fn help(&self) -> Option<&str> {
        match self {
            Self::Unknown { help, .. } => Some(help),
            Self::OnlyDenied => Some(LIST),
            Self::Both { .. } => None,
        }
    }
}

impl Levels {
    /// Denied codes are errors, [`WARNINGS`] among them raises every warning; allowed codes are left out, whatever their level.
    ///
    /// # Errors
    /// When a code is not among the known ones, or is both denied and allowed.
    pub fn new(
        deny: impl IntoIterator<Item = impl Into<String>>,
        allow: impl IntoIterator<Item = impl Into<String>>,
        known: &[&'static Code],
    ) -> Result<Self, LevelsError> {
        let mut deny: BTreeSet<String> = deny.into_iter().map(Into::into).collect();
        let deny_warnings = deny.remove(WARNINGS);
        let allow: BTreeSet<String> = allow.into_iter().map(Into::into).collect();
        let is_known = |code: &str| known.iter().any(|known| known.name == code);
        if allow.contains(WARNINGS) {
            return Err(LevelsError::OnlyDenied);
        }
        if let Some(code) = deny.iter().chain(&allow).find(|code| !is_known(code)) {
            let names = known.iter().map(|code| code.name).chain([WARNINGS]);
            let help = did_you_mean(code, names);
            let help = help.unwrap_or_else(|| LIST.into());
            return Err(LevelsError::Unknown { code: code.clone(), help });
        }
        if let Some(code) = deny.intersection(&allow).next() {
            return Err(LevelsError::Both { code: code.clone() });
        }
        Ok(Self { deny_warnings, deny, warn: BTreeSet::new(), allow })
    }

    /// These codes are warnings, whatever else they would be; [`WARNINGS`] among the denied does not raise them.
    ///
    /// # Errors
    /// When a code is not among the known ones, or is denied or allowed too.
    pub fn warn(
        self,
        warn: impl IntoIterator<Item = impl Into<String>>,
        known: &[&'static Code],
    ) -> Result<Self, LevelsError> {
        let warn: BTreeSet<String> = warn.into_iter().map(Into::into).collect();
        // The same look-up, and the same way out for a code that is mistyped.
        Self::new(Vec::<String>::new(), warn.iter().cloned(), known)?;
        match warn.iter().find(|code| self.deny.contains(*code) || self.allow.contains(*code)) {
            Some(code) => Err(LevelsError::Both { code: code.clone() }),
            None => Ok(Self { warn, ..self }),
        }
    }

    /// The findings as they weigh now, in the same order.
    pub fn apply(&self, mut findings: Vec<Finding>) -> Vec<Finding> {
        findings.retain(|finding| !self.allow.contains(finding.code.name));
        for finding in &mut findings {
            let raised = finding.level == Level::Warning && self.deny_warnings;
            if self.warn.contains(finding.code.name) {
                finding.level = Level::Warning;
            } else if raised || self.deny.contains(finding.code.name) {
                finding.level = Level::Error;
            }
        }
        findings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_kind_that_is_met_very_often_the_others_are_counted() {
        static OFTEN: Code = Code { name: "often", level: Level::Warning, suite: "own", docs: "" };
        static ONCE: Code = Code { name: "once", level: Level::Error, suite: "own", docs: "" };
        let many = |count: usize| {
            let mut findings = Findings::new();
            findings.extend((0..count).map(|number| Finding::new(&OFTEN, number.to_string())));
            findings
        };
        let mut findings = many(MOST_OF_A_KIND + 5);
        findings.push(Finding::new(&ONCE, "x"));
        findings.merge(many(MOST_OF_A_KIND + 2));
        let sorted = findings.into_sorted("input");
        assert_eq!(sorted.len(), MOST_OF_A_KIND + 2);
        let said: Vec<_> = sorted.iter().filter(|own| own.message.contains(' ')).collect();
        let more = format!("at least {} more findings of this kind are left out", MOST_OF_A_KIND + 7);
        assert!(matches!(said[..], [own] if own.message == more && own.level == Level::Warning), "{said:?}");
    }

    #[test]
    fn levels_change_what_findings_weigh() {
        static WARNING: Code = Code { name: "warning", level: Level::Warning, suite: "own", docs: "" };
        static INFO: Code = Code { name: "info", level: Level::Info, suite: "own", docs: "" };
        static ERROR: Code = Code { name: "error", level: Level::Error, suite: "own", docs: "" };
        let known = [&WARNING, &INFO, &ERROR];
        let check = |deny: &[&str], allow: &[&str]| match Levels::new(
            deny.iter().copied(),
            allow.iter().copied(),
            &known,
        ) {
            Ok(levels) => {
                let findings = levels.apply(known.map(|code| Finding::new(code, "")).to_vec());
                let shown = findings.iter().map(|found| format!("{}={}", found.code.name, found.level));
                shown.collect::<Vec<_>>().join(" ")
            }
            Err(error) => format!("{error}; {}", error.help().unwrap_or_default()),
        };
        assert_eq!(check(&[], &[]), "warning=warning info=info error=error");
        assert_eq!(check(&["warnings"], &[]), "warning=error info=info error=error");
        assert_eq!(check(&["info"], &["error"]), "warning=warning info=error");
        assert_eq!(check(&["warnings"], &["warning"]), "info=info error=error");
        assert_eq!(check(&["infos"], &[]), "unknown finding code `infos`; did you mean `info`?");
        assert_eq!(check(&["info"], &["info"]), "`info` has two levels; ");
        let levels = Levels::new(["warnings", "info"], [""; 0], &known).unwrap();
        assert!(levels.clone().warn(["info"], &known).is_err());
        let levels = levels.warn(["warning", "error"], &known).unwrap();
        let found = levels.apply(known.map(|code| Finding::new(code, "")).to_vec());
        assert_eq!(
            found.iter().map(|found| found.level).collect::<Vec<_>>(),
            [Level::Warning, Level::Error, Level::Warning]
        );
    }

    #[test]
    fn a_long_line_is_cut_around_the_marked_text() {
        let text = format!("{}MARK{}", "ä".repeat(300), "b".repeat(300));
        let source = Source::new("x", &text);
        let excerpt = Place::new(&source, Span::new(600, 604)).excerpt.unwrap();
        assert_eq!(&excerpt.line[excerpt.start..excerpt.end], "MARK");
        assert!(excerpt.line.len() < 200 && excerpt.line.starts_with('…') && excerpt.line.ends_with('…'));
    }

    #[test]
    fn a_span_over_several_lines_marks_the_first() {
        let source = Source::new("x", "a: b\nc: d\n");
        let place = Place::new(&source, Span::new(3, 9));
        assert_eq!(place.excerpt, Some(Excerpt { line: "a: b".into(), start: 3, end: 4 }));
    }
}
