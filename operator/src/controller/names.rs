//! Names of the objects that a RedisCluster owns.

use kube::ResourceExt;

use crate::crd::RedisCluster;

/// Names of a cluster's children.
#[derive(Clone, Debug)]
pub struct Names {
    /// StatefulSet and client Service.
    pub cluster: String,
    /// Service that gives each pod a name.
    pub headless: String,
    /// ConfigMap with redis.conf and the scripts.
    pub config: String,
    /// Secret and key of the password: the user's, or the operator's.
    pub auth: (String, String),
}

impl Names {
    /// The names of this cluster's children.
    pub fn of(cluster: &RedisCluster) -> Self {
        let name = cluster.name_any();
        let own = || (format!("{name}-auth"), "password".to_owned());
        Self {
            headless: format!("{name}-headless"),
            config: format!("{name}-config"),
            auth: cluster
                .spec
                .auth
                .as_ref()
                .map_or_else(own, |auth| (auth.secret_name.clone(), auth.key.clone())),
            cluster: name,
        }
    }
}
