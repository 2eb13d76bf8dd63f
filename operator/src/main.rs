//! The RedisCluster operator.

fn main() {}
