//! References to images.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::NameError;

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
        check_registry(registry)
            .and_then(|()| check_repository(repository))
            .and_then(|()| tag.map_or(Ok(()), check_tag))
            .and_then(|()| digest.map_or(Ok(()), check_digest))
            .map_err(fail)?;
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
fn check_registry(registry: &str) -> Result<(), &'static str> {
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
        Err("its registry is not a host name")
    } else if port.is_some_and(|port| port.is_empty() || !port.bytes().all(|byte| byte.is_ascii_digit())) {
        Err("the port of its registry is not a number")
    } else {
        Ok(())
    }
}

fn check_repository(path: &str) -> Result<(), &'static str> {
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
        Err("it has no repository")
    } else if path.contains(char::is_uppercase) {
        Err("the repository has capital letters")
    } else if path.len() > 255 {
        Err("the repository is longer than 255 characters")
    } else if !path.split('/').all(is_component) {
        Err(
            "the repository has something other than lower case letters and digits with `.`, `_` or `-` between",
        )
    } else {
        Ok(())
    }
}

fn check_tag(tag: &str) -> Result<(), &'static str> {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
    if tag.is_empty() {
        Err("the tag is empty")
    } else if tag.len() > 128 {
        Err("the tag is longer than 128 characters")
    } else if tag.starts_with(['.', '-']) || !tag.bytes().all(inner) {
        Err("the tag has something other than letters, digits, `_`, `.` and `-`")
    } else {
        Ok(())
    }
}

fn check_digest(digest: &str) -> Result<(), &'static str> {
    let length = match digest.split_once(':') {
        Some(("sha256", _)) => 64,
        Some(("sha384", _)) => 96,
        Some(("sha512", _)) => 128,
        _ => return Err("the digest does not start with `sha256:`, `sha384:` or `sha512:`"),
    };
    let (_, hex) = digest.split_at("sha256:".len());
    if hex.len() == length && hex.bytes().all(is_lower_hex) {
        Ok(())
    } else {
        Err("the digest has to be 64 (sha256), 96 (sha384) or 128 (sha512) lower case hexadecimal digits")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
