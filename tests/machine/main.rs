//! Tests that need something of the machine that not every machine has: a small disk to fill, helm, kustomize, valgrind.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod browser;
#[path = "../serve/fixture.rs"]
#[allow(dead_code, reason = "the tests of the server use the rest")]
mod fixture;
mod full_disk;
mod hostile;
mod installed;
mod instructions;
#[path = "../support/mod.rs"]
mod support;

use libtest_mimic::Arguments;

fn main() {
    let mut trials = full_disk::trials();
    trials.extend(installed::trials());
    trials.extend(browser::trials());
    trials.extend(instructions::trials());
    trials.extend(hostile::trials());
    support::run(&Arguments::from_args(), trials).exit();
}
