//! What `bundle generate` has done.

use std::io::{self, Write};
use std::path::PathBuf;

use olmkit_bundle::finding::{Finding, Level};

use super::findings::{finding_json, plural, write_finding};
use super::{Answer, json, pretty, printable};
use crate::exit::Exit;

/// A generated bundle, or the findings that prevented it.
#[derive(Debug, Default)]
pub struct GeneratedAnswer {
    /// The name of the ClusterServiceVersion.
    pub csv: String,
    /// The bundle's directory.
    pub output_dir: PathBuf,
    /// The files that were written; empty when nothing was.
    pub files: Vec<String>,
    /// Files in the directory that olmkit did not write, and left alone.
    pub kept: Vec<String>,
    /// What there is to say about the input.
    pub findings: Vec<Finding>,
}

impl Answer for GeneratedAnswer {
    fn json(&self) -> String {
        pretty(&json::Generated {
            schema: "olmkit.generated/v1",
            csv: self.csv.clone(),
            files: self.files.clone(),
            findings: self.findings.iter().map(finding_json).collect(),
        })
    }

    fn text(&self, out: &mut dyn Write, talk: &mut dyn Write) -> io::Result<()> {
        self.findings.iter().try_for_each(|finding| write_finding(finding, talk))?;
        if self.files.is_empty() {
            let errors = self.findings.iter().filter(|finding| finding.level == Level::Error).count();
            return writeln!(talk, "nothing was written because of {}", plural(errors, "error"));
        }
        for path in &self.kept {
            writeln!(talk, "kept {}: olmkit did not write it", printable(path))?;
        }
        let directory = self.output_dir.display().to_string();
        writeln!(out, "{} in {} ({})", self.csv, printable(&directory), plural(self.files.len(), "file"))
    }

    fn exit(&self) -> Exit {
        if self.files.is_empty() { Exit::No } else { Exit::Yes }
    }
}
