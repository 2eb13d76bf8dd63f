//! The lifecycle engine and OLM in memory, held against recordings of OLM.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod api;
mod blockers;
mod channel_test;
mod channel_test_command;
mod checks;
mod collections;
mod command;
mod credentials;
mod cut;
mod dead;
mod decisions;
mod disturbed;
mod doctor;
mod engine;
mod faults;
mod fix;
mod install;
mod kind;
mod live;
mod lost;
mod names;
mod olm;
mod olm_command;
mod pod_config;
mod preflight;
mod preview;
mod refusals;
#[path = "../support/olm.rs"]
mod release;
mod repairs;
mod replay;
mod rollback;
mod sequences;
#[path = "../support/signal.rs"]
mod signal;
mod simulation;
mod sources;
mod throw_away;
mod trace;
mod trust;
mod uninstall;
mod world;
