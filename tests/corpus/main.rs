//! The corpus: real bundles, manifests and catalogs, with what OLM's own tools answered on them.
//!
//! It is not part of the project. It is looked for at `OLMKIT_CORPUS`, else beside the checkout in
//! `../shared/corpus`; without it these tests are listed as not run. The tests named `kept` ask the same of inputs that were
//! made up; those and their answers are in `tests/fixtures/answers`.

#![expect(clippy::print_stderr, reason = "a test says how many bundles agree")]

mod catalogs;
#[path = "../serve/client.rs"]
#[allow(
    dead_code,
    clippy::unwrap_used,
    reason = "the tests of the server use the rest, and fail by panicking"
)]
mod client;
mod edits;
mod generate;
mod grpc;
mod installs;
mod known;
mod operators;
mod published;
mod rendering;
#[path = "../support/mod.rs"]
mod support;
mod upgrade_safety;
mod validate;

use std::path::{Path, PathBuf};

use libtest_mimic::{Arguments, Trial};
use support::Part;

fn main() {
    let answers = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/answers");
    let mut trials = catalogs::kept(&answers);
    trials.extend(edits::kept(&answers));
    trials.extend(grpc::kept(&answers));

    let corpus = find();
    let missing = "the corpus is not found (OLMKIT_CORPUS names its directory)";
    let part = Part::new("corpus", corpus.is_none().then(|| missing.to_owned()));
    let present = corpus.is_some();
    let corpus = corpus.unwrap_or_default();
    let whole = generate::trials(&corpus)
        .into_iter()
        .chain(operators::trials(&corpus))
        .chain(catalogs::trials(&corpus))
        .chain(edits::trials(&corpus))
        .chain(validate::trials(&corpus))
        .chain(installs::trials(&corpus))
        .chain(upgrade_safety::trials(&corpus))
        .chain(rendering::trials(&corpus));
    trials.extend(whole.map(|trial: Trial| match present {
        true => trial,
        false => support::trial_with(trial.name(), std::slice::from_ref(&part), || Err(missing.into())),
    }));
    trials.push(edits::by_opm(&corpus, std::slice::from_ref(&part)));
    trials.extend(grpc::trials(&corpus, part));
    support::run(&Arguments::from_args(), trials).exit();
}

fn find() -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/corpus");
    let path = std::env::var_os("OLMKIT_CORPUS").map_or_else(beside, PathBuf::from);
    path.is_dir().then_some(path)
}
