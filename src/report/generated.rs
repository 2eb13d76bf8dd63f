//! What `bundle generate` has done, or would do.

use std::io::{self, Write};

use olmkit_bundle::finding::Level;

use super::findings::{findings_json, write_findings};
use super::plural;
use super::unified::{unified, write_unified};
use super::{Answer, Format, json, pretty, printable};
use crate::actions::generate::{GeneratedBundle, Outcome};
use crate::actions::results::Checked;
use crate::exit::Exit;
use crate::files::Difference;
use crate::progress;
use crate::shell::argument;

impl Outcome {
    fn answer(&self) -> &dyn Answer {
        match self {
            Self::Bundle(bundle) => bundle,
            Self::Explained(explained) => explained,
        }
    }
}

impl Answer for Outcome {
    fn json(&self) -> String {
        self.answer().json()
    }

    fn text(&self, out: &mut dyn Write, talk: &mut dyn Write) -> io::Result<()> {
        self.answer().text(out, talk)
    }

    fn findings(&self, format: Format) -> Option<String> {
        self.answer().findings(format)
    }

    fn notes(&self) -> &[String] {
        self.answer().notes()
    }

    fn next(&self) -> Option<String> {
        self.answer().next()
    }

    fn exit(&self) -> Exit {
        self.answer().exit()
    }
}

impl Answer for GeneratedBundle {
    fn json(&self) -> String {
        let (findings, left_out) = findings_json(&self.findings);
        pretty(&json::Generated {
            schema: "olmkit.generated/v1",
            csv: self.csv.clone(),
            files: self.files.clone(),
            stale: self.stale.as_ref().map(|stale| stale.iter().map(|one| one.path.clone()).collect()),
            findings,
            left_out,
        })
    }

    fn notes(&self) -> &[String] {
        &self.notes
    }

    fn text(&self, out: &mut dyn Write, talk: &mut dyn Write) -> io::Result<()> {
        let shown = self.findings.iter().filter(|found| found.level != Level::Info || !progress::is_hidden());
        write_findings(shown, talk)?;
        if let Some(base) = &self.base {
            writeln!(talk, "base: {}", printable(&base.display().to_string()))?;
        }
        if self.files.is_empty() {
            let errors = self.findings.iter().filter(|finding| finding.level == Level::Error).count();
            return writeln!(talk, "nothing was written because of {}", plural(errors, "error"));
        }
        let directory = self.output_dir.display().to_string();
        if let Some(stale) = &self.stale {
            stale.iter().try_for_each(|difference| write_difference(difference, &directory, out))?;
            return match stale.len() {
                0 => writeln!(talk, "{} in {} is up to date", self.csv, printable(&directory)),
                count => {
                    writeln!(talk, "{} is stale: {} to renew", printable(&directory), plural(count, "file"))
                }
            };
        }
        for path in &self.kept {
            writeln!(talk, "kept {}: olmkit did not write it", printable(path))?;
        }
        writeln!(out, "{} in {} ({})", self.csv, printable(&directory), plural(self.files.len(), "file"))
    }

    fn findings(&self, format: Format) -> Option<String> {
        let inputs = vec![self.output_dir.display().to_string()];
        let findings = self.findings.clone();
        Checked { inputs, findings, ..Checked::new("bundle") }.findings(format)
    }

    fn next(&self) -> Option<String> {
        match &self.stale {
            _ if self.files.is_empty() => None,
            Some(stale) if stale.is_empty() => None,
            Some(_) => Some("run the same command without `--check`".to_owned()),
            None => {
                let directory = argument(self.output_dir.display());
                Some(format!("run `olmkit bundle validate {directory}`"))
            }
        }
    }

    fn exit(&self) -> Exit {
        let stale = self.stale.as_ref().is_some_and(|stale| !stale.is_empty());
        if self.files.is_empty() || stale { Exit::Failed } else { Exit::Success }
    }
}

/// A difference as `diff -u` and git show it.
fn write_difference(difference: &Difference, directory: &str, out: &mut dyn Write) -> io::Result<()> {
    let name = format!("{directory}/{}", difference.path);
    let diff = unified(&name, difference.found.as_deref(), difference.expected.as_deref());
    write_unified(&diff, out).map(drop)
}
