//! The names OLM lives by, checked once and then trusted.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A text that is not the name it should be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a {what}: {why}")]
pub struct NameError {
    /// The text.
    pub text: String,
    /// What it should have been.
    pub what: &'static str,
    /// What is wrong with it.
    pub why: &'static str,
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $what:literal, $why:ident) => {
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
                match $why(text) {
                    None => Ok(Self(text.to_owned())),
                    Some(why) => Err(NameError { text: text.to_owned(), what: $what, why }),
                }
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
    PackageName, "package name", why_not_label
}

name! {
    /// The name of a channel: any text without white space, commas or control characters, since bundles list
    /// their channels with commas between.
    ChannelName, "channel name", why_not_channel
}

name! {
    /// The name of a ClusterServiceVersion: a DNS-1123 subdomain that also fits a label value.
    CsvName, "ClusterServiceVersion name", why_not_csv_name
}

/// Why a text is no DNS-1123 label, if it is none.
pub fn why_not_label(text: &str) -> Option<&'static str> {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    match text.as_bytes() {
        [] => Some("it is empty"),
        bytes if bytes.len() > 63 => Some("it is longer than 63 characters"),
        bytes if !bytes.iter().all(|byte| inner(*byte)) => {
            Some("only lower case letters, digits and `-` are allowed")
        }
        [b'-', ..] | [.., b'-'] => Some("it starts or ends with `-`"),
        _ => None,
    }
}

/// Why a text is no DNS-1123 subdomain, if it is none.
pub fn why_not_subdomain(text: &str) -> Option<&'static str> {
    if text.len() > 253 {
        return Some("it is longer than 253 characters");
    }
    text.split('.').find_map(|part| match why_not_label(part) {
        Some("it is longer than 63 characters") | None => None,
        Some("it is empty") if text.is_empty() => Some("it is empty"),
        Some("it is empty") => Some("a part between dots is empty"),
        Some("it starts or ends with `-`") => Some("a part between dots starts or ends with `-`"),
        Some(_) => Some("only lower case letters, digits, `-` and `.` are allowed"),
    })
}

/// Why a text is no label value, if it is none; an empty one is.
pub fn why_not_label_value(text: &str) -> Option<&'static str> {
    let bytes = text.as_bytes();
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    if bytes.len() > 63 {
        Some("it is longer than 63 characters")
    } else if !bytes.iter().all(|byte| inner(*byte)) {
        Some("only letters, digits, `-`, `_` and `.` are allowed")
    } else if bytes
        .first()
        .zip(bytes.last())
        .is_some_and(|(a, b)| !a.is_ascii_alphanumeric() || !b.is_ascii_alphanumeric())
    {
        Some("it starts or ends with something other than a letter or digit")
    } else {
        None
    }
}

/// Why a text cannot name a ClusterServiceVersion, if it cannot.
pub fn why_not_csv_name(text: &str) -> Option<&'static str> {
    why_not_subdomain(text).or_else(|| why_not_label_value(text))
}

fn why_not_channel(text: &str) -> Option<&'static str> {
    if text.is_empty() {
        Some("it is empty")
    } else if text.contains(|c: char| c.is_whitespace() || c.is_control() || c == ',') {
        Some("white space, commas and control characters are not allowed")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn csv_names() {
        for good in ["a", "redis-operator.v0.1.0", "a.b.c-1"] {
            assert_eq!(why_not_csv_name(good), None, "{good}");
        }
        let long = format!("a.{}", "b".repeat(62));
        for bad in ["", "A", "a_b", "-a", "a-", "a..b", "a.", "redis v1", "ü", &long] {
            assert!(why_not_csv_name(bad).is_some(), "{bad}");
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
