//! The `olmkit` command.

use std::process::ExitCode;

/// glibc's allocator keeps what thousands of bundles of a few MiB left free: four times as much memory for the same work.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    olmkit::run(std::env::args_os()).into()
}
