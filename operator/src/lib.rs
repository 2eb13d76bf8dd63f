//! The RedisCluster operator: an API for Redis Clusters.

pub mod crd;
