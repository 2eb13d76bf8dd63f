//! The RedisCluster operator: an API for Redis Clusters, and the manifests that install it.
//!
//! Observe, plan, act: a reconcile starts in [`controller`], [`plan`] decides what to do (pure functions), and [`server`]
//! is the client of redis-server. [`crd`] is the API, [`webhook`] converts between its versions, [`run`] is the process,
//! [`manifests`] are the objects that install the operator, [`migrate`] stores objects of older versions anew, and [`cli`] is the
//! command line.
//! The operator is packaged like any other: the packager reads the files that `redis-operator manifests`
//! prints, and does not depend on this crate.

pub mod cli;
pub mod controller;
pub mod crd;
pub mod manifests;
pub mod metrics;
pub mod migrate;
mod quantity;
pub mod run;
pub mod server;
pub mod webhook;

pub use operator_process::telemetry;
pub use redis_operator_plan as plan;
