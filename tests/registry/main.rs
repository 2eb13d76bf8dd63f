//! A real registry: images pushed to it, pulled from it and read back by skopeo, also through a proxy that fails.
//!
//! `docker-registry` and `skopeo` are Debian's packages of these names. Without them these
//! tests are listed as not run. Nothing leaves this machine.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod answers;
mod bounds;
mod catalogs;
mod certificates;
mod command;
mod conformance;
mod faults;
mod kind;
mod operators;
mod places;
mod proxy;
mod redirects;
#[path = "../support/olm.rs"]
mod release;
mod server;
#[path = "../support/signal.rs"]
mod signal;
mod stand_in;
#[path = "../support/mod.rs"]
mod support;
mod surroundings;
mod tokens;
mod uploads;

use libtest_mimic::Arguments;

fn main() {
    let mut trials = places::trials();
    trials.extend(answers::trials());
    trials.extend(certificates::trials());
    trials.extend(command::trials());
    trials.extend(bounds::trials());
    trials.extend(redirects::trials());
    trials.extend(conformance::trials());
    trials.extend(operators::trials());
    trials.extend(catalogs::trials());
    trials.extend(faults::trials());
    trials.extend(kind::trials());
    trials.extend(uploads::trials());
    trials.extend(tokens::trials());
    trials.extend(surroundings::trials());
    support::run(&Arguments::from_args(), trials).exit();
}
