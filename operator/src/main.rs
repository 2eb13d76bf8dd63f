//! The `redis-operator` command.

use std::{
    io::{self, Write},
    process::ExitCode,
};

use clap::Parser;
use redis_operator::cli::{self, Cli};

/// glibc's allocator keeps what hundreds of clusters needed while they formed.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    match cli::run(Cli::parse(), &mut io::stdout().lock()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Nobody is left to tell when stderr is closed; the exit code still says it.
            let _ = writeln!(io::stderr(), "error: {}", error.line());
            ExitCode::from(error.exit_code())
        }
    }
}
