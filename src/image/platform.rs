//! The operating system and processor that an image is for, as `OS/ARCH[/VARIANT]`.

use std::fmt;
use std::str::FromStr;

use oci_spec::image as oci;

/// The operating system and processor that an image is for, in Go's words (`linux/amd64`, `linux/arm/v7`).
///
/// The default is `linux/amd64` on every machine, so that the same input gives the same image everywhere; images that
/// only carry data are pulled by other platforms as well.
///
/// ```
/// use olmkit::image::Platform;
///
/// let platform: Platform = "linux/aarch64".parse()?;
/// assert_eq!(platform.to_string(), "linux/arm64");
/// # Ok::<(), olmkit::image::PlatformError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Platform {
    os: String,
    architecture: String,
    variant: Option<String>,
}

/// Text that is not `OS/ARCH[/VARIANT]`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is not a platform: expected `OS/ARCH` or `OS/ARCH/VARIANT`", .text.escape_debug())]
pub struct PlatformError {
    text: String,
}

impl PlatformError {
    /// The way out.
    pub fn help(&self) -> Option<String> {
        Some("write it like `linux/amd64` or `linux/arm/v7`".into())
    }
}

impl Default for Platform {
    fn default() -> Self {
        Self { os: "linux".into(), architecture: "amd64".into(), variant: None }
    }
}

impl FromStr for Platform {
    type Err = PlatformError;

    fn from_str(text: &str) -> Result<Self, PlatformError> {
        let parts: Vec<&str> = text.split('/').collect();
        let word = |part: &&str| {
            !part.is_empty() && part.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
        };
        // What the kernel calls these processors; everyone types it.
        let arch = |name: &str| match name {
            "x86_64" => "amd64".to_owned(),
            "aarch64" => "arm64".to_owned(),
            other => other.to_owned(),
        };
        let (os, architecture, variant) = match parts[..] {
            [os, architecture] => (os, arch(architecture), None),
            [os, architecture, variant] => (os, arch(architecture), Some(variant)),
            _ => return Err(PlatformError { text: text.into() }),
        };
        if ![os, architecture.as_str(), variant.unwrap_or("v")].iter().all(word) {
            return Err(PlatformError { text: text.into() });
        }
        Ok(Self { os: os.into(), architecture, variant: variant.map(Into::into) })
    }
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.os, self.architecture)?;
        self.variant.iter().try_for_each(|variant| write!(f, "/{variant}"))
    }
}

impl Platform {
    /// The operating system, in Go's words.
    pub fn os(&self) -> &str {
        &self.os
    }

    /// The processor, in Go's words.
    pub fn architecture(&self) -> &str {
        &self.architecture
    }

    /// The processor's variant, such as `v7`.
    pub fn variant(&self) -> Option<&str> {
        self.variant.as_deref()
    }

    /// Whether an image for this platform is right for another one, as container runtimes hold it: a processor has a
    /// variant that is meant when none is named. <https://github.com/containerd/platforms>
    pub fn suits(&self, wanted: &Platform) -> bool {
        let usual = |platform: &Platform| match (platform.variant(), platform.architecture()) {
            (Some(variant), _) => Some(variant.to_owned()),
            (None, "arm64") => Some("v8".to_owned()),
            (None, "arm") => Some("v7".to_owned()),
            (None, "amd64") => Some("v1".to_owned()),
            (None, _) => None,
        };
        (&self.os, &self.architecture, usual(self)) == (&wanted.os, &wanted.architecture, usual(wanted))
    }

    /// Whether it is one: builders name the platform of an attestation `unknown/unknown`.
    pub fn is_known(&self) -> bool {
        self.os != "unknown"
    }

    /// The platform as an index names it.
    pub(super) fn to_oci(&self) -> oci::Platform {
        let mut platform = oci::Platform::default();
        platform.set_os(oci::Os::from(self.os())).set_architecture(oci::Arch::from(self.architecture()));
        platform.set_variant(self.variant.clone());
        platform
    }

    /// The platform that an image's configuration names.
    pub(super) fn of(configuration: &oci::ImageConfiguration) -> Self {
        Self {
            os: configuration.os().to_string(),
            architecture: configuration.architecture().to_string(),
            variant: configuration.variant().clone(),
        }
    }
}

impl From<&oci::Platform> for Platform {
    fn from(platform: &oci::Platform) -> Self {
        Self {
            os: platform.os().to_string(),
            architecture: platform.architecture().to_string(),
            variant: platform.variant().clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_what_it_prints() {
        for text in ["linux/amd64", "linux/arm/v7", "windows/amd64", "linux/s390x"] {
            assert_eq!(text.parse::<Platform>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn the_usual_variant_is_meant_when_none_is_named() {
        let check = |one: &str, other: &str| {
            let (one, other): (Platform, Platform) = (one.parse().unwrap(), other.parse().unwrap());
            assert_eq!(one.suits(&other), other.suits(&one));
            one.suits(&other)
        };
        assert!(check("linux/arm64/v8", "linux/arm64") && check("linux/arm", "linux/arm/v7"));
        assert!(check("linux/amd64", "linux/amd64/v1") && check("linux/s390x", "linux/s390x"));
        assert!(!check("linux/arm", "linux/arm/v6") && !check("linux/amd64", "linux/amd64/v3"));
        assert!(!check("linux/arm64", "linux/arm") && !check("windows/amd64", "linux/amd64"));
    }

    #[test]
    fn refuses_what_is_no_platform() {
        for text in [
            "",
            "linux",
            "linux/",
            "/amd64",
            "linux/amd64/",
            "linux/arm/v7/x",
            "Linux/amd64",
            "linux/x\u{1b}",
        ] {
            let error = text.parse::<Platform>().unwrap_err();
            assert!(!error.to_string().contains('\u{1b}'), "{error}");
        }
    }
}
