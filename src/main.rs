//! The `olmkit` command.

fn main() {}
