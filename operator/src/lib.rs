//! The RedisCluster operator: an API for Redis Clusters, and the manifests that install it.
//!
//! Look, plan, act: [`controller`] is where a reconcile begins, [`plan`] decides what to do and is pure, [`server`]
//! speaks with redis-server. [`crd`] holds the API, [`webhook`] converts between its versions, [`run`] is the process,
//! [`manifests`] what a cluster is given to run it, [`cli`] the command line.
//! The operator is packaged like any other: the packager reads the files that `redis-operator manifests`
//! prints, and knows nothing of this crate.

pub mod cli;
pub mod controller;
pub mod crd;
pub mod manifests;
pub mod metrics;
pub mod plan;
pub mod run;
pub mod server;
pub mod webhook;

pub use operator_process::telemetry;
