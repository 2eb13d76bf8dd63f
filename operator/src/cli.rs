//! The command line: flags in, a typed request out. What the commands do lives elsewhere.

use std::{
    io::{self, Write},
    path::PathBuf,
};

use clap::{Args, Parser, Subcommand};

use crate::{
    manifests::{self, EncodeError, Release, WriteError},
    migrate::{self, MigrateArgs, MigrateError},
    run::{self, RunArgs, RunError},
    telemetry::chain,
};

/// The RedisCluster operator
#[derive(Debug, Parser)]
#[command(name = "redis-operator", version)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Run(Box<RunArgs>),
    Manifests(ManifestsArgs),
    MigrateStorage(MigrateArgs),
}

/// Print the manifests that install the operator, and samples of its API
#[derive(Debug, Args)]
#[command(after_help = MANIFESTS_EXAMPLES)]
struct ManifestsArgs {
    /// The release whose image they name; not older than this program, because older APIs are not in it
    #[arg(long, value_name = "X.Y.Z", default_value_t)]
    release: Release,

    /// Write `install/`, `samples/` and `olm/` into this directory instead of printing one YAML stream
    #[arg(long, value_name = "DIR")]
    output_dir: Option<PathBuf>,
}

const MANIFESTS_EXAMPLES: &str = "\
Examples:
  Everything as one YAML stream:
    redis-operator manifests

  Install the operator on a cluster:
    redis-operator manifests --output-dir deploy
    kubectl create namespace redis-operator
    kubectl apply -f deploy/install

  Manifests of a release that only changes the image:
    redis-operator manifests --release 9.9.9";

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CliError {
    /// A manifest could not be made.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// A file could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The operator could not run, or ended.
    #[error(transparent)]
    Run(#[from] RunError),
    /// Stored objects could not be migrated.
    #[error(transparent)]
    Migrate(#[from] MigrateError),
    /// The answer could not be written to standard output.
    #[error("cannot write to standard output")]
    Stdout(#[source] io::Error),
}

impl CliError {
    /// The exit code for it: 1 when the lease was lost, which is no fault of anybody's here, else 3: the work could
    /// not be done. (Misuse is 2, and is found while parsing.)
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Run(RunError::LeaseLost) => 1,
            Self::Migrate(error) => error.exit_code(),
            _ => 3,
        }
    }

    /// What went wrong, its causes, and the way out, in one line.
    pub fn line(&self) -> String {
        let line = chain(self);
        match self {
            Self::Write(_) => line + "; choose a directory that can be written with --output-dir",
            Self::Encode(_) | Self::Stdout(_) | Self::Run(_) | Self::Migrate(_) => line,
        }
    }
}

/// Runs the command; its answer goes to `stdout`.
///
/// # Errors
/// When the work could not be done. A reader that closes the pipe early is not an error.
pub fn run(cli: Cli, stdout: &mut dyn Write) -> Result<(), CliError> {
    match cli.command {
        Command::Run(args) => Ok(run::run(*args)?),
        Command::MigrateStorage(args) => Ok(migrate::run(&args, stdout)?),
        Command::Manifests(args) => {
            let manifests = manifests::manifests(&args.release)?;
            match args.output_dir {
                Some(dir) => Ok(manifests::write(&dir, &manifests)?),
                None => match stdout.write_all(manifests::stream(&manifests).as_bytes()) {
                    Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(CliError::Stdout(error)),
                    _ => Ok(()),
                },
            }
        }
    }
}
