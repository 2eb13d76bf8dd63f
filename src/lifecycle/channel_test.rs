//! `operator test`: every version of a channel installed, every upgrade of it walked, on a cluster or in the simulation.
//!
//! [`plan`](plan()) says what is tested (pure); [`run`] does it with the engine of the other verbs, one walk after another. A walk
//! installs a version into an empty namespace, applies custom resources, and goes on hop by hop; after each hop the custom resources
//! are compared with what they were. What a walk has made is removed before the next one begins.

mod cleanup;
mod marker;
mod plan;
mod prepare;
mod result;
mod run;
mod samples;

pub use plan::{Edges, Kind, Plan, Subject, Test, Untaken, Walk, plan};
pub use prepare::{Prepared, Samples, Settings, Unprepared, prepare};
pub use result::{Outcome, Report, TestFailure, TestResult};
pub use run::{Spectator, run};
