//! The corpus: real bundles, manifests and catalogs, with what OLM's own tools answered on them.
//!
//! It is not part of the project. It is looked for at `OLMKIT_CORPUS`, else beside the checkout in
//! `../shared/corpus`; without it these tests are listed as not run.

#![expect(clippy::print_stderr, reason = "a test program says what it does not run")]

mod catalogs;
#[path = "../serve/client.rs"]
#[allow(
    dead_code,
    clippy::unwrap_used,
    reason = "the tests of the server use the rest, and fail by panicking"
)]
mod client;
mod generate;
mod grpc;
mod known;
mod validate;

use std::path::{Path, PathBuf};

use libtest_mimic::{Arguments, Trial};

fn main() {
    let corpus = find();
    if corpus.is_none() {
        eprintln!("not run: corpus not found (set OLMKIT_CORPUS to its directory)");
    }
    let present = corpus.is_some();
    let corpus = corpus.unwrap_or_default();
    let trials = generate::trials(&corpus)
        .into_iter()
        .chain(catalogs::trials(&corpus))
        .chain(grpc::trials(&corpus))
        .chain(validate::trials(&corpus));
    let trials = trials.map(|trial: Trial| trial.with_ignored_flag(!present));
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit();
}

fn find() -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/corpus");
    let path = std::env::var_os("OLMKIT_CORPUS").map_or_else(beside, PathBuf::from);
    path.is_dir().then_some(path)
}
