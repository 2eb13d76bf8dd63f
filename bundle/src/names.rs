//! The names OLM lives by, checked once and then trusted.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

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
    PackageName, "a package name", why_not_label
}

name! {
    /// The name of a channel: any text without white space, commas or control characters, since bundles list
    /// their channels with commas between.
    ChannelName, "a channel name", why_not_channel
}

name! {
    /// The name of a ClusterServiceVersion: a DNS-1123 subdomain that also fits a label value.
    CsvName, "a ClusterServiceVersion name", why_not_csv_name
}

/// A reference to an image: registry, repository, and a tag, a digest, both or neither.
///
/// The grammar is that of docker's reference library, which OLM's tools and container runtimes share: a first component
/// with neither `.` nor `:` nor capital letters belongs to the repository, unless it is `localhost`; the registry then is
/// `docker.io`, and a repository there of one component is below `library`.
///
/// ```
/// use olmkit_bundle::names::ImageRef;
/// let image: ImageRef = "redis:7".parse().unwrap();
/// assert_eq!((image.registry(), image.repository(), image.tag()), ("docker.io", "library/redis", Some("7")));
/// assert_eq!(image.to_string(), "docker.io/library/redis:7");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ImageRef {
    registry: String,
    repository: String,
    tag: Option<String>,
    digest: Option<String>,
}

impl ImageRef {
    /// The host of the registry, with its port if there is one.
    pub fn registry(&self) -> &str {
        &self.registry
    }

    /// The path of the repository in the registry.
    pub fn repository(&self) -> &str {
        &self.repository
    }

    /// The tag, such as `v1.2.3`.
    pub fn tag(&self) -> Option<&str> {
        self.tag.as_deref()
    }

    /// The digest, such as `sha256:…`. Where there is also a tag, the digest counts.
    pub fn digest(&self) -> Option<&str> {
        self.digest.as_deref()
    }
}

impl FromStr for ImageRef {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let fail = |why| NameError { text: text.to_owned(), what: "an image reference", why };
        if text.is_empty() {
            return Err(fail("it is empty"));
        }
        if text.len() == 64 && text.bytes().all(is_lower_hex) {
            return Err(fail("64 hexadecimal digits are the ID of an image"));
        }
        let (name, digest) = text.split_once('@').map_or((text, None), |(name, digest)| (name, Some(digest)));
        let (registry, path) = match name.split_once('/') {
            Some((first, rest)) if is_registry(first) => (first, rest),
            _ => (DOCKER_HUB, name),
        };
        let (repository, tag) = path.split_once(':').map_or((path, None), |(path, tag)| (path, Some(tag)));
        why_not_registry(registry)
            .or_else(|| why_not_repository(repository))
            .or_else(|| tag.and_then(why_not_tag))
            .or_else(|| digest.and_then(why_not_digest))
            .map_or(Ok(()), |why| Err(fail(why)))?;
        let registry = if registry == "index.docker.io" { DOCKER_HUB } else { registry };
        let official = registry == DOCKER_HUB && !repository.contains('/');
        Ok(Self {
            registry: registry.to_owned(),
            repository: format!("{}{repository}", if official { "library/" } else { "" }),
            tag: tag.map(str::to_owned),
            digest: digest.map(str::to_owned),
        })
    }
}

impl TryFrom<String> for ImageRef {
    type Error = NameError;

    fn try_from(text: String) -> Result<Self, NameError> {
        text.parse()
    }
}

impl From<ImageRef> for String {
    fn from(image: ImageRef) -> Self {
        image.to_string()
    }
}

impl fmt::Display for ImageRef {
    /// With the registry and every component, whichever were left out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.registry, self.repository)?;
        self.tag().map_or(Ok(()), |tag| write!(f, ":{tag}"))?;
        self.digest().map_or(Ok(()), |digest| write!(f, "@{digest}"))
    }
}

const DOCKER_HUB: &str = "docker.io";

/// Whether the first component of a reference is a registry rather than a part of the repository.
fn is_registry(component: &str) -> bool {
    component == "localhost" || component.contains(|c: char| c == '.' || c == ':' || c.is_uppercase())
}

fn is_lower_hex(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'a'..=b'f')
}

/// Docker's library also takes a registry such as `my_host.io`, as a path; no client could reach it.
fn why_not_registry(registry: &str) -> Option<&'static str> {
    let (host, port) = match registry.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, "")) => (address, None),
        Some((address, port)) => (address, Some(port.strip_prefix(':').unwrap_or(""))),
        None => registry.split_once(':').map_or((registry, None), |(host, port)| (host, Some(port))),
    };
    let is_part = |part: &str| {
        let bytes = part.as_bytes();
        bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-')
            && !matches!(bytes, [] | [b'-', ..] | [.., b'-'])
    };
    let is_host = match registry.starts_with('[') {
        true => !host.is_empty() && host.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b':'),
        false => host.split('.').all(is_part),
    };
    if !is_host {
        Some("its registry is not a host name")
    } else if port.is_some_and(|port| port.is_empty() || !port.bytes().all(|byte| byte.is_ascii_digit())) {
        Some("the port of its registry is not a number")
    } else {
        None
    }
}

fn why_not_repository(path: &str) -> Option<&'static str> {
    let separates = |separator: &str| {
        matches!(separator, "" | "." | "_" | "__") || separator.bytes().all(|byte| byte == b'-')
    };
    let is_component = |component: &str| {
        let bytes = component.as_bytes();
        let ends = bytes.first().zip(bytes.last());
        ends.is_some_and(|(a, b)| a.is_ascii_alphanumeric() && b.is_ascii_alphanumeric())
            && component.split(|c: char| c.is_ascii_alphanumeric()).all(separates)
    };
    if path.is_empty() {
        Some("it has no repository")
    } else if path.contains(char::is_uppercase) {
        Some("the repository has capital letters")
    } else if path.len() > 255 {
        Some("the repository is longer than 255 characters")
    } else if !path.split('/').all(is_component) {
        Some(
            "the repository has something other than lower case letters and digits with `.`, `_` or `-` between",
        )
    } else {
        None
    }
}

fn why_not_tag(tag: &str) -> Option<&'static str> {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
    if tag.is_empty() {
        Some("the tag is empty")
    } else if tag.len() > 128 {
        Some("the tag is longer than 128 characters")
    } else if tag.starts_with(['.', '-']) || !tag.bytes().all(inner) {
        Some("the tag has something other than letters, digits, `_`, `.` and `-`")
    } else {
        None
    }
}

fn why_not_digest(digest: &str) -> Option<&'static str> {
    let length = match digest.split_once(':') {
        Some(("sha256", _)) => 64,
        Some(("sha384", _)) => 96,
        Some(("sha512", _)) => 128,
        _ => return Some("the digest does not start with `sha256:`, `sha384:` or `sha512:`"),
    };
    let (_, hex) = digest.split_at("sha256:".len());
    (hex.len() != length || !hex.bytes().all(is_lower_hex))
        .then_some("the digest has not the right number of lower case hexadecimal digits")
}

/// Why a text is no qualified name, if it is none: the key of a label or annotation, `NAME` or `DNS-SUBDOMAIN/NAME`.
pub fn why_not_qualified_name(text: &str) -> Option<&'static str> {
    let (prefix, name) = text.split_once('/').map_or((None, text), |(prefix, name)| (Some(prefix), name));
    if prefix.is_some_and(|prefix| why_not_subdomain(prefix).is_some()) {
        Some("what stands before `/` is not a DNS-1123 subdomain")
    } else if name.is_empty() {
        Some("it has no name")
    } else {
        why_not_label_value(name)
    }
}

/// Why a text is no quantity of Kubernetes, such as `100m` or `1.5Gi`, if it is none.
pub fn why_not_quantity(text: &str) -> Option<&'static str> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let unit = unsigned.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let number = &unsigned[..unsigned.len() - unit.len()];
    let exponent = unit.strip_prefix(['e', 'E']).filter(|digits| !digits.is_empty());
    let exponent = exponent.map(|digits| digits.strip_prefix(['+', '-']).unwrap_or(digits));
    let is_exponent = |digits: &str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if number.is_empty() || number.matches('.').count() > 1 {
        Some("it does not start with a number")
    } else if !QUANTITY_UNITS.contains(&unit) && !exponent.is_some_and(is_exponent) {
        Some(
            "its unit is none of `n`, `u`, `m`, `k`, `M`, `G`, `T`, `P`, `E`, `Ki`, `Mi`, `Gi`, `Ti`, `Pi`, `Ei`",
        )
    } else {
        None
    }
}

const QUANTITY_UNITS: [&str; 16] =
    ["", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

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

/// Why a text is no DNS-1035 label, if it is none: a DNS-1123 label that starts with a letter.
pub fn why_not_dns_1035_label(text: &str) -> Option<&'static str> {
    let starts_with_digit = text.starts_with(|c: char| c.is_ascii_digit());
    why_not_label(text).or_else(|| starts_with_digit.then_some("it starts with a digit"))
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
    fn image_references() {
        let digest = format!("sha256:{}", "0a".repeat(32));
        for (text, whole) in [
            ("redis", "docker.io/library/redis"),
            ("bitnami/redis:7", "docker.io/bitnami/redis:7"),
            ("index.docker.io/redis", "docker.io/library/redis"),
            ("localhost/redis", "localhost/redis"),
            ("registry:5000/a/b__c--d.e_f:V1", "registry:5000/a/b__c--d.e_f:V1"),
            ("Registry/a", "Registry/a"),
            ("[::1]:5000/a", "[::1]:5000/a"),
            (&format!("quay.io/a/b:v1@{digest}"), &format!("quay.io/a/b:v1@{digest}")),
        ] {
            assert_eq!(text.parse::<ImageRef>().map(String::from), Ok(whole.to_owned()), "{text}");
        }
        for bad in [
            "",
            &"0a".repeat(32),
            "quay.io/",
            "quay.io/A/b",
            "quay.io//a",
            "quay.io/a:",
            "quay.io/a:b:c",
            "quay.io/a:-b",
            "quay.io/a___b",
            "quay.io/a.",
            "quay.io/ä",
            "quay.io:x/a",
            "-a.io/a",
            "[::1/a",
            "[::1]5/a",
            " redis",
            "redis:7 ",
            "https://quay.io/a",
            "quay.io/a@sha256:0a",
            "quay.io/a@sha1:0a",
            "quay.io/a@sha256",
            &format!("quay.io/a@{}", digest.to_uppercase()),
            &format!("quay.io/a:{}", "b".repeat(129)),
            &format!("quay.io/{}", "b".repeat(256)),
        ] {
            assert!(bad.parse::<ImageRef>().is_err(), "{bad}");
        }
    }

    #[test]
    fn qualified_names() {
        for good in ["app", "app.kubernetes.io/name", "a_b.C-d"] {
            assert_eq!(why_not_qualified_name(good), None, "{good}");
        }
        for bad in ["", "/a", "a/", "a/b/c", "A/b", "-a", "a b", &"a".repeat(64)] {
            assert!(why_not_qualified_name(bad).is_some(), "{bad}");
        }
    }

    #[test]
    fn quantities() {
        for good in ["1", "0.5", "-1", "+1.", ".5", "100m", "1Ki", "1E", "1e3", "1E-3", "1.5Gi"] {
            assert_eq!(why_not_quantity(good), None, "{good}");
        }
        for bad in ["", "m", "1 Gi", "1GB", "1mi", "1e", "1e+", "1.2.3", "--1", "1Kii", "ten"] {
            assert!(why_not_quantity(bad).is_some(), "{bad}");
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
