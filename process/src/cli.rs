//! The command line of an operator of one kind: `crd` prints its API, `run` runs its controllers.

use std::{
    io::{self, Write},
    process::ExitCode,
};

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use kube::CustomResourceExt;

use crate::{Operator, ProcessArgs, run, telemetry::chain};

#[derive(Parser)]
struct Cli<A: Args> {
    #[command(subcommand)]
    command: Command<A>,
}

#[derive(Subcommand)]
enum Command<A: Args> {
    /// Print the CustomResourceDefinition
    Crd,
    /// Run the operator
    Run {
        #[command(flatten)]
        process: ProcessArgs,
        #[command(flatten)]
        options: A,
    },
}

/// What `main` of an operator calls. `K` is the kind that it manages, and `A` are its own flags of `run`, beside
/// [`ProcessArgs`]. See [`run`] for what `controllers` is given.
pub fn main<K, A, W>(
    name: &'static str,
    version: &'static str,
    controllers: impl FnOnce(Operator, A) -> W,
) -> ExitCode
where
    K: CustomResourceExt,
    A: Args,
    W: Future<Output = ()>,
{
    let about = format!("The {} operator", K::api_resource().kind);
    let mut command = Cli::<A>::command().name(name).version(version).about(about);
    let parsed = Cli::<A>::from_arg_matches(&command.get_matches_mut()).unwrap_or_else(|error| error.exit());
    let result = match parsed.command {
        Command::Crd => print_crd::<K>().map_err(|error| error.to_string()),
        Command::Run { process, options } => {
            run(name, &process, |operator| controllers(operator, options)).map_err(|error| chain(&error))
        }
    };
    let Err(error) = result else { return ExitCode::SUCCESS };
    // When stderr is closed, the exit code still tells.
    let _ = writeln!(io::stderr(), "error: {error}");
    ExitCode::FAILURE
}

fn print_crd<K: CustomResourceExt>() -> io::Result<()> {
    let options = serde_saphyr::ser_options! { prefer_block_scalars: false };
    let yaml = serde_saphyr::to_string_with_options(&K::crd(), options).map_err(io::Error::other)?;
    io::stdout().write_all(yaml.as_bytes())
}
