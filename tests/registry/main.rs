//! A real registry: images pushed to it, pulled from it and read back by skopeo, also through a proxy that fails.
//!
//! `docker-registry` and `skopeo` are Debian's packages of these names. Without them these
//! tests are listed as not run. Nothing leaves this machine.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::print_stderr, reason = "a test program says what it does not run")]

mod catalogs;
mod command;
mod faults;
mod places;
mod proxy;
mod server;
#[path = "../support/mod.rs"]
mod support;
mod surroundings;
mod tokens;
mod uploads;

use libtest_mimic::Arguments;

fn main() {
    let mut trials = places::trials();
    trials.extend(command::trials());
    trials.extend(catalogs::trials());
    trials.extend(faults::trials());
    trials.extend(uploads::trials());
    trials.extend(tokens::trials());
    trials.extend(surroundings::trials());
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}
