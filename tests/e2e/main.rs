//! olmkit on a real cluster: what it builds is pushed, pulled, unpacked and run.
//!
//! `make e2e` finds or makes the cluster (`tests/cluster/up`) and sets `E2E=1`. Without it these tests are listed as not
//! run; with it, a cluster that does not answer is a failure. Each test has a namespace of its own; `E2E_KEEP=1` keeps
//! those of failed tests. Where to start reading: `harness.rs` says what a test is, `images.rs` is a simple one.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::print_stderr, reason = "a test program says how long its tests took")]

mod broken;
mod catalogs;
mod channels;
mod cluster;
mod damaged;
mod diagnostics;
#[path = "../support/etcd.rs"]
mod etcd;
mod examples;
mod harness;
mod images;
mod junit;
mod kind;
mod network;
mod olm;
mod operators;
mod pages;
#[path = "../support/program.rs"]
mod program;
mod redis;
mod registry;
mod small;
#[path = "../support/mod.rs"]
mod support;
#[path = "../support/walk.rs"]
mod walk;
mod webhook;

use std::process::ExitCode;

use libtest_mimic::Arguments;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    // In this order they begin: the longest first, and those that are alone at last.
    let mut trials = olm::trials();
    trials.extend(examples::trials());
    trials.extend(small::trials());
    trials.extend(channels::trials());
    trials.extend(harness::trials());
    trials.extend(catalogs::trials());
    trials.extend(images::trials());
    trials.extend(network::trials());
    trials.extend(pages::trials());
    trials.extend(operators::trials());
    // Many installations side by side, when those that measure time are over.
    trials.extend(broken::trials());
    trials.extend(damaged::trials());
    trials.extend(redis::trials());
    trials.extend(kind::trials());
    trials.extend(registry::trials());
    let conclusion = support::run(&arguments, trials);
    if harness::enabled() && !arguments.list {
        harness::report();
    }
    conclusion.exit_code()
}
