//! Life on a cluster: an operator installed, upgraded and removed through OLM, while its ClusterServiceVersion is watched.
//!
//! Observe, decide, act: [`observe`] looks at what is there, [`decide`](mod@decide) says what comes next (pure: no client, no
//! clock). Nothing is remembered between two rounds but what stands on the cluster, so a command that was interrupted is run
//! again and goes on.
//!
//! [`cluster::Cluster`] is the world that is acted on. There are two: [`kubernetes`], an API server, and [`simulate`], OLM in
//! memory by the rules of its source. The trait blocks: one command does one thing after another, and the only concurrency is in a client's watches.

mod admission;
pub mod ahead;
pub mod api;
pub mod blockers;
pub mod channel_test;
pub mod checks;
pub mod cluster;
pub mod component;
mod contents;
pub mod decide;
pub mod doctor;
pub mod engine;
pub mod fix;
pub mod health;
pub mod immutable;
pub mod install;
pub mod kubernetes;
pub mod leftovers;
mod lineage;
pub mod look;
pub mod mirrors;
pub mod observe;
pub mod offer;
pub mod olm;
pub mod operator;
pub mod patch;
pub mod policy;
mod preflight;
pub mod preview;
mod properties;
mod replace;
pub mod rights;
pub mod rollback;
pub mod schema;
pub mod simulate;
pub mod sources;
pub mod throw_away;
pub mod uninstall;
mod unpacked;
pub mod upgrade;
