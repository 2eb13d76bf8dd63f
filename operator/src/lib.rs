//! The RedisCluster operator: an API for Redis Clusters, and the manifests that install it.
//!
//! [`crd`] holds the API, [`manifests`] what a cluster is given to run the operator, [`cli`] the command line.
//! The operator is packaged like any other: the packager reads the files that `redis-operator manifests`
//! prints, and knows nothing of this crate.

pub mod cli;
pub mod crd;
pub mod manifests;
pub mod metrics;
pub mod plan;
pub mod server;
