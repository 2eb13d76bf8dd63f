//! What OLM's tools and ours have to say about a bundle: `cargo run --example check -- DIRECTORY`.
//!
//! Ends with 1 when there is an error among the findings.

#![expect(clippy::print_stdout, reason = "the answer")]

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

use olmkit_bundle::finding::Level;
use olmkit_bundle::load::BundleFiles;
use olmkit_bundle::parse::Bundle;
use olmkit_bundle::validate::{SUITES, validate};

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let directory: PathBuf = std::env::args_os().nth(1).ok_or("usage: check DIRECTORY")?.into();
    // The files own the text; the bundle and its findings borrow from it.
    let files = BundleFiles::load(&directory)?;
    let bundle = Bundle::parse(&files);
    let findings = validate(&bundle, SUITES);
    for finding in &findings {
        println!("{}: {}", finding.code.name, finding.message);
    }
    let errors = findings.iter().any(|finding| finding.level == Level::Error);
    Ok(if errors { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
