//! `olmkit`: from an operator's manifests to bundles, catalogs and images for OLM.
//!
//! The command line as a library, so that tests call what `main` calls. The way through it: [`cli`] turns flags into
//! typed requests, [`actions`] does the work and returns an answer, [`report`] prints it.

#[cfg(windows)]
compile_error!("olmkit does not run on Windows itself: build it in the Windows Subsystem for Linux");

pub mod actions;
pub mod budget;
pub mod cli;
pub mod exit;
pub mod files;
pub mod git;
pub mod image;
pub mod input;
pub mod interrupt;
pub mod lifecycle;
pub mod limits;
pub mod moment;
pub(crate) mod printable;
mod program;
pub mod progress;
pub mod report;
pub mod requests;
pub mod sentence;
pub mod shell;
pub mod side;

use std::ffi::OsString;

use clap::ValueEnum as _;

use crate::exit::Exit;

/// Why a command ends that has taken all of its processor time.
fn budget_failure(overdrawn: budget::Overdrawn) -> exit::Failure {
    exit::Failure::incomplete(overdrawn)
        .help("an input is damaged or made to take time: look at what it repeats, or split it")
}

/// Runs the command line `args`, program name first, on the standard streams.
pub fn run(args: impl IntoIterator<Item = OsString>) -> Exit {
    let args: Vec<OsString> = args.into_iter().collect();
    match cli::completed(&args) {
        Ok(None) => (),
        Ok(Some(answer)) => {
            return report::Printer::new(report::Format::Text, clap::ColorChoice::Never, true)
                .answer(&answer);
        }
        Err(error) => return report::usage(&error),
    }
    // A command that changes a cluster or a registry must end in order and say what was done, from its first moment on.
    let early = cli::may_reach_out(&args).then(interrupt::work);
    let args = cli::as_server(cli::as_help(cli::with_cluster_flags_last(cli::without_plugin_word(args))));
    let (cli, checked) = match cli::Cli::read(&args) {
        Ok(read) => read,
        Err(error) => return report::usage(&cli::with_hint(error, &args)),
    };
    if cli.quiet {
        progress::hide();
    }
    if cli.verbose {
        requests::show(progress::request);
    }
    let mut printer = report::Printer::new(cli.output, cli.color, cli.quiet);
    if cli.output != report::Format::Text && cli.noun.prints_text_only() {
        return printer.failure(&report::text_only());
    }
    if cli.output.is_for_findings() && !cli.noun.reports_in(cli.output) {
        let others = report::Format::value_variants().iter().copied();
        let others: Vec<_> =
            others.filter(|other| other.is_for_findings() && cli.noun.reports_in(*other)).collect();
        return printer.failure(&report::no_findings(&others));
    }
    if let Err(failure) = checked {
        return printer.failure(&failure);
    }
    let reads = cli.noun.only_reads();
    interrupt::on_unnoticed(if reads { report::reading_interrupted } else { report::interrupted });
    let _work = cli.noun.reaches_out().then(interrupt::work);
    drop(early);
    if cli.noun.only_computes() {
        let (format, color, quiet) = (cli.output, cli.color, cli.quiet);
        budget::Budget::default().watch(move |overdrawn| {
            // As with a signal that is not noticed: files are replaced whole, and locks end with the process.
            let exit = report::Printer::new(format, color, quiet).failure(&budget_failure(overdrawn));
            std::process::exit(exit as i32);
        });
    }
    match cli.noun.run(cli.output) {
        Ok(answer) => printer.answer(answer.as_ref()),
        Err(failure) => printer.failure(&failure),
    }
}
