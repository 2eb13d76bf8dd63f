//! What `bundle convert` has made.

use std::io::{self, Write};

use olmkit_bundle::convert::Conversion;
use olmkit_bundle::finding::Level;

use super::findings::{findings_json, write_findings};
use super::plural;
use super::{Answer, json, pretty, printable};
use crate::actions::convert::Converted;
use crate::exit::Exit;
use crate::progress;
use crate::sentence::first_of;

/// The most channels that are listed of a bundle.
const MOST_CHANNELS: usize = 10;

impl Answer for Converted {
    fn json(&self) -> String {
        let bundles = self.conversion.bundles.iter().map(|bundle| json::ConvertedBundle {
            csv: bundle.csv.clone(),
            directory: self.output_dir.join(&bundle.directory).display().to_string(),
            channels: bundle.channels.clone(),
            files: bundle.files.keys().cloned().collect(),
        });
        let (findings, left_out) = findings_json(&self.conversion.findings);
        pretty(&json::Converted {
            schema: "olmkit.converted/v1",
            package: self.conversion.package.clone(),
            bundles: bundles.collect(),
            findings,
            left_out,
        })
    }

    fn text(&self, out: &mut dyn Write, talk: &mut dyn Write) -> io::Result<()> {
        let Conversion { bundles, findings, .. } = &self.conversion;
        let shown = findings.iter().filter(|found| found.level != Level::Info || !progress::is_hidden());
        write_findings(shown, talk)?;
        if bundles.is_empty() {
            let errors = findings.iter().filter(|finding| finding.level == Level::Error).count();
            return writeln!(talk, "nothing was written because of {}", plural(errors, "error"));
        }
        for bundle in bundles {
            let directory = self.output_dir.join(&bundle.directory).display().to_string();
            let channels = first_of(&bundle.channels, MOST_CHANNELS);
            let (csv, channels) = (printable(&bundle.csv), printable(&channels));
            writeln!(out, "{csv} in {} ({channels})", printable(&directory))?;
        }
        Ok(())
    }

    fn exit(&self) -> Exit {
        if self.conversion.bundles.is_empty() { Exit::Failed } else { Exit::Success }
    }
}
