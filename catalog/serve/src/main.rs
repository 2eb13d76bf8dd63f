//! `olmkit-serve`: the catalog server alone, for catalog images. `olmkit catalog serve` is the same.
//!
//! It takes the command line of `opm serve` too, the word `serve` included. Under the name `grpc_health_probe` it asks a server
//! whether it is ready.

use std::error::Error;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use olmkit_catalog::load::CatalogFiles;
use olmkit_serve::compiled;
use olmkit_serve::{self as serve, Flags};
use tracing::{error, info};

/// Serve a catalog to OLM: gRPC and HTTP.
#[derive(Debug, Parser)]
#[command(name = "olmkit-serve", version, max_term_width = 100)]
struct Serve {
    #[command(flatten)]
    flags: Flags,
}

/// Compile a catalog to one file.
#[derive(Debug, Parser)]
#[command(name = "olmkit-serve build-index", version)]
struct BuildIndex {
    /// The catalog's directory
    #[arg(value_name = "CATALOG")]
    catalog: PathBuf,
    /// The file
    #[arg(long, value_name = "FILE")]
    to: PathBuf,
}

fn main() -> ExitCode {
    let mut args: Vec<OsString> = std::env::args_os().collect();
    if serve::is_probe(&args) {
        return serve::probe(args);
    }
    let verb = args.get(1).filter(|word| *word == "serve" || *word == "build-index").cloned();
    if verb.is_some() {
        args.remove(1);
    }
    if verb.is_some_and(|verb| verb == "build-index") {
        return match BuildIndex::try_parse_from(args) {
            Ok(flags) => {
                serve::start_log(false);
                end(build_index(&flags.catalog, &flags.to), None)
            }
            Err(error) => usage(&error),
        };
    }
    match Serve::try_parse_from(args) {
        Ok(Serve { flags }) => {
            serve::start_log(flags.debug);
            end(run(&flags), Some(&flags))
        }
        Err(error) => usage(&error),
    }
}

fn run(flags: &Flags) -> Result<(), Box<dyn Error>> {
    if flags.cache_only {
        let (Some(catalog), Some(index)) = (&flags.catalog, flags.index()) else {
            return Err("--cache-only needs the catalog's directory, and --cache-dir or --index".into());
        };
        return build_index(catalog, &index);
    }
    let builder = vec![std::env::current_exe()?.into(), "build-index".into()];
    Ok(serve::run(&flags.config(builder))?)
}

fn build_index(catalog: &Path, index: &Path) -> Result<(), Box<dyn Error>> {
    let built = compiled::build(&CatalogFiles::load(catalog)?, index)?;
    let compiled::Built { packages, bundles, .. } = built;
    info!(msg = "compiled", index = %index.display(), packages, bundles);
    Ok(())
}

fn end(result: Result<(), Box<dyn Error>>, flags: Option<&Flags>) -> ExitCode {
    let Err(failure) = result else { return ExitCode::SUCCESS };
    let mut message = serve::chain(&*failure);
    if let Some(compiled::BuildError::Invalid { findings, .. }) = failure.downcast_ref() {
        for finding in findings.iter().take(10) {
            message += &format!("; {}", finding.message);
        }
    }
    error!(msg = "ended", error = message);
    if let Some(flags) = flags {
        flags.write_termination_log(&message);
    }
    ExitCode::FAILURE
}

fn usage(error: &clap::Error) -> ExitCode {
    // A stream that is gone cannot be told so.
    let _ = error.print();
    if error.use_stderr() { ExitCode::from(2) } else { ExitCode::SUCCESS }
}
