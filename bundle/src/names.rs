//! The names of packages, channels and ClusterServiceVersions, and references to images: types that are checked once and then
//! trusted. [`check_label`] and its like are the rules of Kubernetes, for names that stay text.

mod image;
mod kubernetes;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

pub use image::ImageRef;
pub use kubernetes::{
    check_dns_1035_label, check_label, check_label_value, check_path_segment, check_qualified_name,
    check_subdomain,
};

/// A text that is not the name it should be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not {what}: {why}")]
pub struct NameError {
    /// The text.
    pub text: String,
    /// What it should have been, with its article.
    pub what: &'static str,
    /// What is wrong with it.
    pub why: &'static str,
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $what:literal, $check:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String")]
        pub struct $name(String);

        impl $name {
            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = NameError;

            fn from_str(text: &str) -> Result<Self, NameError> {
                let wrong = |why| NameError { text: text.to_owned(), what: $what, why };
                $check(text).map(|()| Self(text.to_owned())).map_err(wrong)
            }
        }

        impl TryFrom<String> for $name {
            type Error = NameError;

            fn try_from(text: String) -> Result<Self, NameError> {
                text.parse()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

name! {
    /// The name of a package: a DNS-1123 label, as opm demands of `olm.package`.
    ///
    /// ```
    /// use olmkit_bundle::names::PackageName;
    /// assert!("redis-operator".parse::<PackageName>().is_ok());
    /// assert!("Redis".parse::<PackageName>().is_err());
    /// ```
    PackageName, "a package name", check_label
}

name! {
    /// The name of a channel: any text without white space, commas or control characters, since bundles list
    /// their channels with commas between.
    ChannelName, "a channel name", check_channel
}

name! {
    /// The name of a ClusterServiceVersion: a DNS-1123 subdomain that also fits a label value.
    CsvName, "a ClusterServiceVersion name", check_csv_name
}

/// Checks the name of a ClusterServiceVersion.
///
/// # Errors
/// What is wrong with it.
pub fn check_csv_name(text: &str) -> Result<(), &'static str> {
    check_subdomain(text).and_then(|()| check_label_value(text))
}

fn check_channel(text: &str) -> Result<(), &'static str> {
    if text.is_empty() {
        Err("it is empty")
    } else if text.contains(|c: char| c.is_whitespace() || c.is_control() || c == ',') {
        Err("white space, commas and control characters are not allowed")
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn csv_names() {
        for good in ["a", "redis-operator.v0.1.0", "a.b.c-1"] {
            assert_eq!(check_csv_name(good), Ok(()), "{good}");
        }
        let long = format!("a.{}", "b".repeat(62));
        for bad in ["", "A", "a_b", "-a", "a-", "a..b", "a.", "redis v1", "ü", &long] {
            assert!(check_csv_name(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn channel_names() {
        assert!("stable-v1.2".parse::<ChannelName>().is_ok());
        for bad in ["", "a b", "a,b", "a\n"] {
            assert!(bad.parse::<ChannelName>().is_err(), "{bad:?}");
        }
    }
}
