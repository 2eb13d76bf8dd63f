//! The `olmkit` command.

use std::ffi::OsString;
use std::process::ExitCode;

use olmkit_serve as serve;

/// glibc's allocator keeps what thousands of bundles of a few MiB left free: four times as much memory for the same work.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().collect();
    // The name of OLM's probe, in an image of a catalog that has the whole program as its server.
    if serve::is_probe(&args) {
        return serve::probe(args);
    }
    olmkit::run(args).into()
}
