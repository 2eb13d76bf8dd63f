//! Findings as rustc shows its own: the code, the place with its line, the way out.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use annotate_snippets::{AnnotationKind, Group, Level as Severity, Origin, Renderer, Snippet};
use olmkit_bundle::diff;
use olmkit_bundle::finding::{Excerpt, Finding, Level, Place};

use super::{
    Answer, Format, failure_text, github, json, json_alpha1, junit, markdown, one_line, plural, pretty,
    printable, sarif,
};
use crate::actions::results::Checked;
use crate::exit::Exit;

/// More findings are counted and not shown, in whatever format: each takes several times what it is about.
pub(super) const MAX_SHOWN: usize = 10_000;
/// Of one kind in one file, text shows so many: the others are mended the same way.
const MAX_OF_A_KIND: usize = 20;
/// Findings that text shows altogether.
const MAX_IN_TEXT: usize = 300;
/// Kinds and files of which text says how many more there are.
const MAX_COUNTED: usize = 50;

impl Checked {
    pub(super) fn count(&self, level: Level) -> usize {
        self.findings.iter().filter(|finding| finding.level == level).count()
    }

    /// The findings to show, in their order: where there are more than [`MAX_SHOWN`], those that weigh most.
    pub(super) fn shown(&self) -> Vec<&Finding> {
        shown(&self.findings)
    }

    /// How many findings are left out, if any are.
    pub(super) fn left_out(&self) -> Option<usize> {
        left_out(&self.findings)
    }

    /// The sentence about findings that are left out, if any are.
    pub(super) fn left_out_text(&self) -> Option<String> {
        let more = plural(self.left_out()?, "more finding");
        Some(format!("{more} left out: mend these first"))
    }
}

fn shown(findings: &[Finding]) -> Vec<&Finding> {
    worst(findings.iter().collect(), MAX_SHOWN)
}

fn left_out(findings: &[Finding]) -> Option<usize> {
    findings.len().checked_sub(MAX_SHOWN).filter(|more| *more > 0)
}

/// The findings to show to programs, and how many are left out, if any are.
pub(super) fn findings_json(findings: &[Finding]) -> (Vec<json::Finding>, Option<usize>) {
    (shown(findings).into_iter().map(finding_json).collect(), left_out(findings))
}

/// The findings in their order, errors before warnings, at most so many.
fn worst(findings: Vec<&Finding>, most: usize) -> Vec<&Finding> {
    let mut shown: Vec<_> = findings.into_iter().enumerate().collect();
    if shown.len() > most {
        shown.sort_by_key(|(_, finding)| Reverse(finding.level));
        shown.truncate(most);
        shown.sort_by_key(|(at, _)| *at);
    }
    shown.into_iter().map(|(_, finding)| finding).collect()
}

impl Answer for Checked {
    fn json(&self) -> String {
        let (findings, left_out) = findings_json(&self.findings);
        pretty(&json::Findings {
            schema: "olmkit.findings/v1",
            summary: json::Summary {
                checked: self.inputs.len(),
                errors: self.count(Level::Error),
                warnings: self.count(Level::Warning),
                known: self.known,
                left_out,
            },
            findings,
            unread: self.unread.iter().map(|failure| failure.to_string()).collect(),
        })
    }

    fn text(&self, out: &mut dyn Write, talk: &mut dyn Write) -> io::Result<()> {
        // There may be very many, and standard output is written line by line.
        let mut out = io::BufWriter::new(out);
        write_findings(&self.findings, &mut out)?;
        if self.inputs.len() > 1 {
            self.write_table(&mut out)?;
        }
        let (checked, what) = (self.inputs.len(), self.what);
        let (errors, warnings) = (self.count(Level::Error), self.count(Level::Warning));
        let known = if self.known > 0 { format!(", {} known", self.known) } else { String::new() };
        let (checked, errors) = (plural(checked, what), plural(errors, "error"));
        writeln!(out, "checked {checked}: {errors}, {}{known}", plural(warnings, "warning"))?;
        out.flush()?;
        self.unread.iter().try_for_each(|failure| failure_text(failure, talk))
    }

    fn next(&self) -> Option<String> {
        self.next.clone()
    }

    fn findings(&self, format: Format) -> Option<String> {
        match format {
            Format::Sarif => Some(sarif::log(self)),
            Format::Junit => Some(junit::report(self)),
            Format::Github => Some(github::annotations(self)),
            Format::Markdown => Some(markdown::page(self)),
            Format::JsonAlpha1 => Some(json_alpha1::result(self)),
            Format::Text | Format::Json | Format::Yaml => None,
        }
    }

    fn exit(&self) -> Exit {
        match self.unread.first() {
            Some(failure) => failure.exit,
            None if self.count(Level::Error) > 0 => Exit::Failed,
            None => Exit::Success,
        }
    }
}

impl Checked {
    /// How often each kind of finding was met, and in how many inputs.
    fn write_table(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut rows: BTreeMap<_, (usize, BTreeSet<&str>)> = BTreeMap::new();
        for finding in &self.findings {
            let (count, inputs) = rows.entry((Reverse(finding.level), finding.code.name)).or_default();
            *count += 1;
            inputs.insert(&finding.input);
        }
        let Some(width) = rows.keys().map(|(_, code)| code.len()).max() else { return Ok(()) };
        let inputs = format!("{}s", self.what);
        writeln!(out, "{:7}  {:width$}  {:>8}  {inputs:>8}", "level", "code", "findings")?;
        for ((Reverse(level), code), (count, inputs)) in rows {
            writeln!(out, "{:7}  {code:width$}  {count:>8}  {:>8}", level.to_string(), inputs.len())?;
        }
        writeln!(out)
    }
}

/// A finding for programs.
fn finding_json(finding: &Finding) -> json::Finding {
    let place = finding.place.as_ref();
    let position = place.and_then(|place| place.position);
    json::Finding {
        code: finding.code.name,
        level: finding.level.to_string(),
        message: finding.message.clone(),
        bundle: finding.input.clone(),
        subject: finding.subject.clone(),
        path: place.map(|place| place.path.clone()),
        line: position.map(|position| position.line),
        column: position.map(|position| position.column),
        package_file_key: place.and_then(|place| place.made_by.key.as_ref()).map(ToString::to_string),
        base_file: place.and_then(|place| place.made_by.base.clone()),
        old: finding.other.as_ref().map(place_json),
        new: place.filter(|_| finding.code.suite == diff::codes::SUITE).map(place_json),
        olm_v1: finding.v1.clone().map(|v1| json::OlmV1 {
            check: v1.check,
            version: v1.version,
            property: v1.property,
        }),
        help: finding.help.clone(),
        docs: format!("docs/findings.md#{}", finding.code.name),
    }
}

fn place_json(place: &Place) -> json::Old {
    json::Old { path: place.path.clone(), line: place.position.map(|position| position.line) }
}

/// Findings for people: of each kind the first ones in every file, and how many more there are. Of very many, the errors.
pub(super) fn write_findings<'f>(
    findings: impl IntoIterator<Item = &'f Finding>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut counts = BTreeMap::new();
    let first = findings.into_iter().filter(|finding| {
        let count = counts.entry(kind_and_file(finding)).or_insert(0);
        *count += 1;
        *count <= MAX_OF_A_KIND
    });
    for finding in worst(first.collect(), MAX_IN_TEXT) {
        write_finding(finding, out)?;
        if let Some(count) = counts.get_mut(&kind_and_file(finding)) {
            *count -= 1;
        }
    }
    counts.retain(|_, count| *count > 0);
    for ((_, code, file), count) in counts.iter().take(MAX_COUNTED) {
        let place = if file.is_empty() { String::new() } else { format!(" in {}", one_line(file)) };
        writeln!(out, "and {count} more [{code}]{place}")?;
    }
    let others: usize = counts.values().skip(MAX_COUNTED).sum();
    if others > 0 {
        writeln!(out, "and {} of other kinds and in other files", plural(others, "more finding"))?;
    }
    if counts.is_empty() {
        Ok(())
    } else {
        writeln!(out, "`--output json` shows up to {MAX_SHOWN} findings\n")
    }
}

/// What findings have in common of which text shows the first ones alone; in order, those that weigh most.
fn kind_and_file(finding: &Finding) -> (Reverse<Level>, &str, &str) {
    let file = finding.place.as_ref().map_or(&finding.input, |place| &place.path);
    (Reverse(finding.level), finding.code.name, file.as_str())
}

/// A finding for people, with an empty line behind it.
fn write_finding(finding: &Finding, out: &mut dyn Write) -> io::Result<()> {
    let severity = match finding.level {
        Level::Error => Severity::ERROR,
        Level::Warning => Severity::WARNING,
        Level::Info => Severity::INFO,
    };
    let message = printable(&finding.message).into_owned();
    let mut group = Group::with_title(severity.primary_title(message).id(finding.code.name));
    if let Some(place) = &finding.place {
        group = show(group, place, AnnotationKind::Primary);
    }
    if let Some(other) = &finding.other {
        group = show(group, other, AnnotationKind::Context);
    }
    if let Some(generated) = finding.generated() {
        group = group.element(Severity::NOTE.message(generated));
    }
    if let Some(help) = &finding.help {
        group = group.element(Severity::HELP.message(printable(help).into_owned()));
    }
    let rendered = render(group);
    // Below a title without a place stands a bar that leads to nothing.
    let is_bar = |line: &&str| anstream::adapter::strip_str(line).to_string().trim() == "|";
    let stray = finding.place.is_none().then(|| rendered.lines().nth(1).filter(is_bar)).flatten();
    let rendered = match stray {
        Some(bar) => rendered.replacen(&format!("{bar}\n"), "", 1),
        None => rendered,
    };
    // Colour is taken away again where the stream has none.
    writeln!(out, "{rendered}\n")
}

/// An error about a place in a file, in the same form.
pub(super) fn error_at(message: &str, place: &Place) -> String {
    let group = Group::with_title(Severity::ERROR.primary_title(printable(message).into_owned()));
    format!("{}\n", render(show(group, place, AnnotationKind::Primary)))
}

/// The text of a group, without the marks `:::` that name no file: the renderer puts one above a line that was cut, since the
/// file stands apart from it.
fn render(group: Group<'_>) -> String {
    let rendered = Renderer::styled().render(&[group]).to_string();
    let is_mark = |line: &&str| anstream::adapter::strip_str(line).to_string().trim() == ":::";
    rendered.lines().filter(|line| !is_mark(line)).collect::<Vec<_>>().join("\n")
}

fn show<'a>(group: Group<'a>, place: &Place, kind: AnnotationKind) -> Group<'a> {
    let path = one_line(&place.path).into_owned();
    // A line of a generated file is not the one to change.
    let position = place.position.filter(|_| !place.made_by.is_known());
    let Some(position) = position else { return group.element(Origin::path(path)) };
    let (line, column) = (position.line as usize, position.column as usize);
    let Some(excerpt) = place.excerpt.as_ref().filter(|excerpt| !excerpt.line.trim().is_empty()) else {
        return group.element(Origin::path(path).line(line).char_column(column));
    };
    let Excerpt { line: text, start, end } = excerpt;
    let whole_line = text.get(..*start).is_some_and(|before| before.chars().count() + 1 == column);
    let (text, start, end) = clean(text, *start, *end);
    let label = place.label.as_ref().map(|label| printable(label).into_owned());
    let snippet = Snippet::source(text).line_start(line).annotation(kind.span(start..end).label(label));
    if whole_line {
        return group.element(snippet.path(path));
    }
    // Of a line that was cut the renderer cannot know the column.
    group.element(Origin::path(path).line(line).char_column(column)).element(snippet)
}

/// An excerpt without control characters, its marked bytes moved along.
fn clean(text: &str, start: usize, end: usize) -> (String, usize, usize) {
    let part = |from: usize, to: usize| printable(text.get(from..to).unwrap_or("")).into_owned();
    let (before, marked, after) = (part(0, start), part(start, end), part(end, text.len()));
    let (start, end) = (before.len(), before.len() + marked.len());
    (before + &marked + &after, start, end)
}

#[cfg(test)]
mod tests {
    use olmkit_bundle::finding::Code;

    use super::*;

    static ODD: Code = Code { name: "odd", level: Level::Warning, suite: "own", docs: "" };
    static BROKEN: Code = Code { name: "broken", level: Level::Error, suite: "own", docs: "" };

    fn text(findings: &[Finding]) -> String {
        let mut out = Vec::new();
        write_findings(findings, &mut out).unwrap();
        anstream::adapter::strip_str(&String::from_utf8(out).unwrap()).to_string()
    }

    #[test]
    fn programs_are_told_how_many_findings_are_left_out() {
        let mut all = vec![Finding::new(&ODD, "x"); MAX_SHOWN + 4];
        assert_eq!(findings_json(&all[..MAX_SHOWN]).1, None);
        all.push(Finding::new(&BROKEN, "y"));
        let (shown, left_out) = findings_json(&all);
        assert_eq!((shown.len(), left_out), (MAX_SHOWN, Some(5)));
        assert_eq!(shown.last().unwrap().code, "broken");
    }

    #[test]
    fn of_a_kind_that_a_file_has_often_text_shows_the_first_ones() {
        let odd = |file: &str| Finding::new(&ODD, "x").at(Place::file(file));
        let often = vec![odd("a.yaml"); MAX_OF_A_KIND + 5];
        let text = text(&[often, vec![odd("b.yaml"), Finding::new(&BROKEN, "y")]].concat());
        assert_eq!(text.matches("warning[odd]").count(), MAX_OF_A_KIND + 1, "{text}");
        assert!(text.contains("\nand 5 more [odd] in a.yaml\n") && text.contains("error[broken]"), "{text}");
        assert!(!text.contains("in b.yaml"), "{text}");
    }

    #[test]
    fn of_very_many_findings_text_shows_the_errors() {
        let file = |at: usize| Place::file(format!("{at}.yaml"));
        let mut all: Vec<_> = (0..MAX_IN_TEXT + 60).map(|at| Finding::new(&ODD, "x").at(file(at))).collect();
        all.push(Finding::new(&BROKEN, "y"));
        let text = text(&all);
        assert_eq!(text.matches("warning[odd]").count(), MAX_IN_TEXT - 1);
        assert_eq!(text.matches("\nand 1 more [odd] in ").count(), MAX_COUNTED);
        assert!(text.contains("error[broken]: y"), "{text}");
        assert!(text.contains("\nand 11 more findings of other kinds and in other files\n"), "{text}");
    }
}
