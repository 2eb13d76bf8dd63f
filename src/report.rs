//! The only code that prints: answers to standard output, talk to standard error.
//!
//! An [`Answer`] knows how it looks as JSON and as text; [`Printer`] chooses. What comes from input is printed
//! without control characters, so that no file can drive a terminal.

mod added;
mod catalog_diff;
mod channel_test;
mod codes;
mod converted;
mod doctor;
mod edited;
mod explained;
mod findings;
mod generated;
mod github;
mod image;
mod index;
mod initial;
pub mod json;
mod json_alpha1;
mod junit;
mod list;
mod markdown;
mod olm;
mod operator;
mod paths;
mod plan;
mod rendered;
mod resolution;
mod sarif;
mod screen;
mod served;
mod stream;
mod table;
mod unified;
pub mod version;
mod watched;
mod written;

use std::io::{self, Write};

use anstream::AutoStream;
use clap::{ColorChoice, ValueEnum};
use serde::Serialize;
use serde_json::Value;

use crate::exit::{Exit, Failure};
use crate::printable::{Guarded, json as escape_json, one_line, printable};

pub use channel_test::channel_tests;
pub use junit::is_junit;
pub use list::ListAnswer;
pub use markdown::changelog;
pub use operator::operators;
pub use version::VersionAnswer;
pub use watched::watched;

/// How answers are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    Text,
    /// For programs; names its schema.
    Json,
    /// The same as JSON, in YAML.
    Yaml,
    /// Findings for code scanning: SARIF 2.1.0.
    Sarif,
    /// Findings for test reports: JUnit's XML.
    Junit,
    /// Findings as annotations of GitHub's workflows.
    Github,
    /// Findings as Markdown, for comments on pull requests.
    Markdown,
    /// Findings as operator-sdk prints them.
    #[value(name = "json-alpha1")]
    JsonAlpha1,
}

impl Format {
    /// Whether only findings can be printed so.
    pub fn is_for_findings(self) -> bool {
        !matches!(self, Self::Text | Self::Json | Self::Yaml)
    }
}

/// What an action has to say when it was done.
pub trait Answer {
    /// For programs: one of the types of [`json`] as text.
    fn json(&self) -> String;

    /// For people: the answer to `out`, the talk to `talk`.
    ///
    /// # Errors
    /// When a stream cannot be written.
    fn text(&self, out: &mut dyn Write, talk: &mut dyn Write) -> io::Result<()>;

    /// What is printed in any format, word for word: for answers that are files themselves.
    fn verbatim(&self) -> Option<&str> {
        None
    }

    /// Findings in one of the formats that are for findings alone.
    fn findings(&self, _: Format) -> Option<String> {
        None
    }

    /// What the user should know of the answer, in any format.
    fn warnings(&self) -> &[String] {
        &[]
    }

    /// Remarks about the answer, printed on standard error in every format.
    fn notes(&self) -> &[String] {
        &[]
    }

    /// What to do next, for people who are not told to be left alone: `--quiet`.
    fn next(&self) -> Option<String> {
        None
    }

    /// How the command ends.
    fn exit(&self) -> Exit {
        Exit::Success
    }
}

/// Prints answers and failures in the chosen format.
pub struct Printer {
    format: Format,
    quiet: bool,
    out: Guarded<AutoStream<io::Stdout>>,
    talk: Talk,
}

/// Standard error. That it takes nothing is no reason to keep an answer back.
struct Talk(Guarded<AutoStream<io::Stderr>>);

impl Write for Talk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let _ = self.0.write_all(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let _ = self.0.flush();
        Ok(())
    }
}

impl Printer {
    /// A printer to the standard streams; a quiet one says nothing of the next command.
    pub fn new(format: Format, color: ColorChoice, quiet: bool) -> Self {
        let choice = match color {
            ColorChoice::Auto => anstream::ColorChoice::Auto,
            ColorChoice::Always => anstream::ColorChoice::Always,
            ColorChoice::Never => anstream::ColorChoice::Never,
        };
        Self {
            format,
            quiet,
            out: Guarded::new(AutoStream::new(io::stdout(), choice)),
            talk: Talk(Guarded::new(AutoStream::new(io::stderr(), choice))),
        }
    }

    /// Prints an answer.
    pub fn answer(&mut self, answer: &dyn Answer) -> Exit {
        for warning in answer.warnings() {
            // An answer is worth more than the talk about it.
            let _ = writeln!(self.talk, "warning: {}", printable(warning));
        }
        for note in answer.notes() {
            let _ = writeln!(self.talk, "note: {}", printable(note));
        }
        let printed = match (answer.verbatim(), self.format) {
            (Some(text), _) => self.raw(text),
            (None, Format::Text) => answer.text(&mut self.out, &mut self.talk).and_then(|()| {
                let next = answer.next().filter(|_| !self.quiet);
                next.iter().try_for_each(|next| writeln!(self.talk, "next: {}", printable(next)))
            }),
            (None, Format::Json | Format::Yaml) => self.json(answer.json()),
            (None, format) => match answer.findings(format) {
                Some(text) => self.raw(&text),
                None => return self.failure(&no_findings(&[])),
            },
        };
        self.finish(printed, answer.exit())
    }

    /// Prints why something could not be done.
    pub fn failure(&mut self, failure: &Failure) -> Exit {
        let printed = match self.format {
            Format::Json | Format::Yaml => self.json(pretty(&json::Error {
                schema: "olmkit.error/v1",
                error: failure.to_string(),
                causes: failure.causes(),
                help: failure.help.text(),
                place: failure.place.as_deref().map(json::Place::of),
            })),
            _ => failure_text(failure, &mut self.talk),
        };
        self.finish(printed, failure.exit)
    }

    fn json(&mut self, mut text: String) -> io::Result<()> {
        if self.format == Format::Yaml {
            let value: Value = serde_json::from_str(&text)?;
            text = olmkit_bundle::yaml::write::to_string(&value).map_err(io::Error::other)?;
        }
        self.raw(&text)
    }

    /// Prints a text that is escaped as its format wants.
    fn raw(&mut self, text: &str) -> io::Result<()> {
        // There are no colours in it to take away again, which takes as long as all else.
        self.out.raw()?.as_inner().lock().write_all(text.as_bytes())
    }

    /// A reader that has had enough is no failure; any other fault of the stream is.
    fn finish(&mut self, printed: io::Result<()>, exit: Exit) -> Exit {
        match printed.and_then(|()| self.talk.flush()).and_then(|()| self.out.flush()) {
            Err(source) if source.kind() != io::ErrorKind::BrokenPipe => {
                let failure = Failure::incomplete(CannotPrint { source });
                // Where that cannot be said either, the exit code has to do.
                let _ = failure_text(&failure, &mut self.talk);
                failure.exit
            }
            _ => exit,
        }
    }
}

/// The answer is known, and cannot be printed.
#[derive(Debug, thiserror::Error)]
#[error("cannot write to standard output")]
struct CannotPrint {
    source: io::Error,
}

/// Why a script or a page cannot be printed in any other format.
pub fn text_only() -> Failure {
    Failure::usage("this command prints text only").help("omit --output")
}

/// An answer that is not findings, in a format for findings.
#[derive(Debug, thiserror::Error)]
#[error("this format is for findings only, and the output has none")]
struct NoFindings;

/// Why an answer cannot be printed in a format for findings; it has those of any answer and `others`.
pub fn no_findings(others: &[Format]) -> Failure {
    let names = [Format::Text, Format::Json, Format::Yaml].iter().chain(others);
    let names: Vec<_> = names.filter_map(Format::to_possible_value).collect();
    let names: Vec<_> = names.iter().map(|format| format.get_name()).collect();
    let (last, first) = names.split_last().unwrap_or((&"text", &[]));
    Failure::usage(NoFindings).help(format!("use {} or {last}", first.join(", ")))
}

/// `1 error`, `2 errors`.
fn plural(count: usize, word: &str) -> String {
    if count == 1 { format!("1 {word}") } else { format!("{count} {word}s") }
}

/// A type of [`json`] as text, in the order of its fields; these have text keys and finite numbers alone, so
/// nothing can refuse. What nobody sees in a text is escaped.
fn pretty(answer: &impl Serialize) -> String {
    escape_json(serde_json::to_string_pretty(answer).unwrap_or_default()) + "\n"
}

/// Prints what clap has to say: help and versions as answers, mistakes as talk.
pub fn usage(error: &clap::Error) -> Exit {
    let printed = error.print();
    if error.use_stderr() {
        // A stream that is gone cannot be told so.
        return Exit::Usage;
    }
    Printer::new(Format::Text, ColorChoice::Auto, false).finish(printed, Exit::Success)
}

/// Says that the process was interrupted while it only computed.
pub fn interrupted() {
    interrupted_with("what was done is kept; run the same command again to resume");
}

/// The same of a command that changes nothing.
pub fn reading_interrupted() {
    interrupted_with("run the same command again");
}

fn interrupted_with(help: &str) {
    let failure = Failure { exit: Exit::Interrupted, ..Failure::incomplete(Interrupted) }.help(help);
    // A stream that is gone cannot be told so.
    let _ = failure_text(&failure, &mut anstream::stderr());
}

#[derive(Debug, thiserror::Error)]
#[error("interrupted")]
struct Interrupted;

fn failure_text(failure: &Failure, talk: &mut dyn Write) -> io::Result<()> {
    let (red, cyan, off) = (ERROR.render(), HELP.render(), ERROR.render_reset());
    match &failure.place {
        Some(place) => write!(talk, "{}", findings::error_at(&failure.to_string(), place))?,
        None => writeln!(talk, "{red}error{off}: {}", printable(&failure.to_string()))?,
    }
    for cause in failure.causes() {
        writeln!(talk, "  caused by: {}", printable(&cause))?;
    }
    let help = failure.help.to_string();
    help.lines().try_for_each(|help| writeln!(talk, "  {cyan}help{off}: {}", printable(help)))
}

const ERROR: anstyle::Style = anstyle::AnsiColor::BrightRed.on_default().bold();
const HELP: anstyle::Style = anstyle::AnsiColor::BrightCyan.on_default().bold();
