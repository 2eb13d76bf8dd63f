//! The lifecycle engine and OLM in memory, held against recordings of OLM.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod api;
mod checks;
mod decisions;
mod engine;
mod replay;
mod sequences;
mod simulation;
mod throw_away;
mod trace;
