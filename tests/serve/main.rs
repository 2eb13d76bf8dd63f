//! The catalog server as its clients see it: a program that runs, asked over the network.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod answers;
mod client;
mod fixture;
mod image;
mod no_room;
mod probe;
mod proto;
mod reload;
mod soak;
