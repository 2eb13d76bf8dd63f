//! The `olmkit` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    olmkit::run(std::env::args_os()).into()
}
