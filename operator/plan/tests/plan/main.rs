//! The planner against a model of Redis: it forms, scales and heals, whatever breaks and wherever it is broken off.
#![expect(clippy::unwrap_used, reason = "what the tests share is a test as well")]

mod driver;
mod hibernate;
mod hosts;
mod large;
mod losses;
mod model;
mod shape;
mod stories;
mod update;
