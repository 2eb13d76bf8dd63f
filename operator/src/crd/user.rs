//! `spec.auth.users`: users that clients log in as, beside the user `default`.
#![expect(unreachable_pub, reason = "`KubeSchema` copies each struct, with its `pub`, into a function")]

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use super::v1::default_key;

/// A user of Redis.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct User {
    /// Name with which clients log in; any but `default`.
    #[schemars(length(min = 1, max = 64), regex(pattern = r"^[a-zA-Z0-9][-._a-zA-Z0-9]*$"))]
    pub name: String,

    /// Name of the Secret with the password; it must be in the namespace of the RedisCluster. While it also has the key `previousPassword`, nodes accept both.
    #[schemars(length(min = 1, max = 253), regex(pattern = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"))]
    pub secret_name: String,

    /// Key in the Secret whose value is the password.
    #[serde(default = "default_key")]
    #[schemars(length(min = 1, max = 253), regex(pattern = r"^[-._a-zA-Z0-9]+$"))]
    pub key: String,

    /// What the user may do, as `ACL SETUSER` takes it, for example `+@read ~app:*`. What no rule allows is refused. Rules about passwords are refused as well.
    #[schemars(length(min = 1, max = 4096))]
    pub rules: String,
}
