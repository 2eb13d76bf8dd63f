//! What only the user can put right: said in a condition and an Event, with the way out.

/// Something that keeps a cluster from being cared for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// An object that we would make is somebody else's.
    #[error(
        "{kind} `{name}` belongs to somebody else: delete or rename it, or choose another name for this RedisCluster"
    )]
    NameTaken {
        /// Its kind.
        kind: &'static str,
        /// Its name.
        name: String,
    },
    /// The Secret is not there, or was deleted.
    #[error("Secret `{name}` is not there: create it with the password under the key `{key}`")]
    SecretMissing {
        /// Its name.
        name: String,
        /// The key that should be in it.
        key: String,
    },
    /// The Secret lacks the key.
    #[error("Secret `{name}` has no key `{key}`: add it, or set spec.auth.key")]
    KeyMissing {
        /// Its name.
        name: String,
        /// The key that should be in it.
        key: String,
    },
    /// redis.conf could not hold the password.
    #[error(
        "the password in Secret `{name}` must be 8 to 512 printable ASCII characters without `\"` and `\\`"
    )]
    PasswordUnusable {
        /// The Secret.
        name: String,
    },
    /// The API server refused an object that follows from the spec.
    #[error("the API server refuses {kind} `{name}`: {message}; correct the spec")]
    Refused {
        /// Its kind.
        kind: &'static str,
        /// Its name.
        name: String,
        /// What the API server said.
        message: String,
    },
    /// The spec, as stored, breaks the rules: it was stored before they were there.
    #[error("spec is not valid: {0}")]
    InvalidSpec(&'static str),
    /// No Redis takes the password.
    #[error(
        "the Redis of {pods} pods rejects the password in Secret `{name}`: put back the password that they were started with"
    )]
    PasswordRejected {
        /// How many pods.
        pods: usize,
        /// The Secret.
        name: String,
    },
    /// A key cannot be moved without stalling its clients.
    #[error("{0}; split the key or delete it, and the slot moves")]
    KeyTooLarge(String),
    /// Its user wants it left alone.
    #[error("spec.paused is true: nothing is changed until it is false again")]
    Paused,
}

impl Problem {
    /// The reason of the condition and of the Event.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::NameTaken { .. } => "NameTaken",
            Self::SecretMissing { .. } | Self::KeyMissing { .. } | Self::PasswordUnusable { .. } => {
                "SecretMissing"
            }
            Self::Refused { .. } | Self::InvalidSpec(_) => "InvalidSpec",
            Self::PasswordRejected { .. } => "PasswordRejected",
            Self::KeyTooLarge(_) => "KeyTooLarge",
            Self::Paused => "Paused",
        }
    }
}
