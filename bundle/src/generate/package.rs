//! What is known of a package beyond its manifests: the command line, the package file and Cargo.toml put together and
//! checked.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

use super::assignment::Assignment;
use super::base::Base;
use super::cargo::CargoFile;
use super::chart::ChartFile;
use super::draft::{By, Origin};
use super::package_file::{
    CAPABILITIES, DEFAULT_CHANNEL, INSTALL_MODES, PackageFile, PackageSettings, VERSION_POLICIES,
};
use super::{codes, icon};
use crate::annotations::is_generated;
use crate::csv::Icon;
use crate::finding::Finding;
use crate::names::{ChannelName, CsvName, ImageRef, PackageName};
use crate::suggest::{did_you_mean, some_of};
use crate::version::{Release, Version, VersionRange};
use crate::yaml::Step;

/// What the command line says instead of the package file.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// The package's name.
    pub package: Option<PackageName>,
    /// The version.
    pub version: Option<Version>,
    /// The release of the version.
    pub release: Option<String>,
    /// The channels.
    pub channels: Vec<ChannelName>,
    /// The channel to subscribe to.
    pub default_channel: Option<ChannelName>,
    /// Service accounts that get their rights from OLM, besides those of the package file.
    pub extra_service_accounts: Vec<String>,
    /// Fields of the ClusterServiceVersion, each with a value in YAML; they have the last word.
    pub set: Vec<Assignment>,
    /// Images to name otherwise.
    pub images: Vec<ImageOverride>,
    /// Kinds of findings that are known and meant, besides those of the package file.
    pub allow: Vec<String>,
}

/// Another name, tag or digest for an image, in the notation of `kustomize edit set image`.
///
/// ```
/// use olmkit_bundle::generate::ImageOverride;
///
/// let image: ImageOverride = "controller=quay.io/example/operator:v1".parse()?;
/// assert_eq!(image.apply("controller:latest").as_deref(), Some("quay.io/example/operator:v1"));
/// assert_eq!(image.apply("other:latest"), None);
/// # Ok::<(), olmkit_bundle::generate::ImageOverrideError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageOverride {
    /// The name that the manifests have, without tag or digest.
    pub name: String,
    new_name: Option<String>,
    /// `:TAG` or `@DIGEST`.
    suffix: Option<String>,
}

/// A text that says nothing about an image.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not OLD=NEW, OLD=NEW:TAG or OLD:TAG, such as `controller=quay.io/example/operator:v1`")]
pub struct ImageOverrideError(String);

impl ImageOverride {
    /// What an image is called instead, if this is about it.
    pub fn apply(&self, image: &str) -> Option<String> {
        let (name, suffix) = split_reference(image);
        let name = Some(name).filter(|name| *name == self.name)?;
        let new_name = self.new_name.as_deref().unwrap_or(name);
        Some(format!("{new_name}{}", self.suffix.as_deref().unwrap_or(suffix)))
    }
}

impl FromStr for ImageOverride {
    type Err = ImageOverrideError;

    fn from_str(text: &str) -> Result<Self, ImageOverrideError> {
        let (old, new) = text.split_once('=').map_or((text, None), |(old, new)| (old, Some(new)));
        let (name, suffix) = split_reference(new.unwrap_or(old));
        let suffix = Some(suffix.to_owned()).filter(|suffix| suffix.len() > 1);
        let says = !name.is_empty() && !old.is_empty() && (new.is_some() || suffix.is_some());
        let name = name.to_owned();
        let image = match new {
            Some(_) => Self { name: split_reference(old).0.to_owned(), new_name: Some(name), suffix },
            None => Self { name, new_name: None, suffix },
        };
        says.then_some(image).ok_or_else(|| ImageOverrideError(text.to_owned()))
    }
}

/// An image's name, and its tag or digest with what precedes it.
pub(super) fn split_reference(image: &str) -> (&str, &str) {
    let last = image.rfind('/').map_or(0, |slash| slash + 1);
    let end = image[last..].find(['@', ':']).map_or(image.len(), |at| last + at);
    image.split_at(end)
}

/// The content of the files that a package file names.
#[derive(Clone, Debug, Default)]
pub struct Attachments {
    /// The Markdown of `descriptionFile`.
    pub description: Option<String>,
    /// The bytes of `icon`.
    pub icon: Option<Vec<u8>>,
}

/// What a package is put together from. Each may be absent; the former have the say over the latter.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sources<'f> {
    /// The package file.
    pub file: Option<&'f PackageFile<'f>>,
    /// The base ClusterServiceVersion.
    pub base: Option<&'f Base<'f>>,
    /// What Chart.yaml says of the chart that the manifests come from.
    pub chart: Option<&'f ChartFile<'f>>,
    /// What Cargo.toml says of the crate.
    pub cargo: Option<&'f CargoFile<'f>>,
}

/// What is known of a package beyond its manifests, checked.
#[derive(Clone, Debug)]
pub struct Package<'f> {
    /// The name.
    pub name: PackageName,
    /// The version of this bundle.
    pub version: Version,
    /// The release of the version; empty if missing.
    pub release: String,
    /// The channels, at least one.
    pub channels: Vec<ChannelName>,
    /// The package's default channel; mostly one of `channels`.
    pub default_channel: ChannelName,
    /// Whether somebody named the default channel, rather than leaving it to us.
    pub default_channel_given: bool,
    /// Service accounts that get their rights from OLM though no Deployment runs as them.
    pub extra_service_accounts: Vec<String>,
    /// The rest of the package file.
    pub settings: PackageSettings,
    /// Where all of it comes from.
    pub(super) sources: Sources<'f>,
    pub(super) origins: Origins<'f>,
    pub(super) icon: Option<Icon>,
    pub(super) description: Option<String>,
    pub(super) set: Vec<Assignment>,
    pub(super) images: Vec<ImageOverride>,
    pub(super) allow: Vec<String>,
}

/// Where the parts of a package that have several sources come from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Origins<'f> {
    pub(super) name: Origin<'f>,
    pub(super) version: Origin<'f>,
    pub(super) release: Origin<'f>,
}

impl<'f> Package<'f> {
    /// Puts what is known together, and checks the values.
    ///
    /// # Errors
    /// Every value that does not fit, as a finding.
    pub fn resolve(
        sources: Sources<'f>,
        overrides: Overrides,
        attachments: Attachments,
    ) -> Result<Self, Vec<Finding>> {
        let mut check = Check { sources, findings: Vec::new() };
        let settings = sources.file.map(|file| file.settings.clone()).unwrap_or_default();

        let package_flag = overrides.package.is_some().then_some("--package");
        let version_flag = overrides.version.is_some().then_some("--version");
        let name = check.value(overrides.package, &settings.package, "package", "--package", "name");
        let version = check.value(overrides.version, &settings.version, "version", "--version", "version");
        let release = check.release(overrides.release, &settings.release);
        let default_channel_given =
            overrides.default_channel.is_some() || !settings.default_channel.is_empty();
        let channels_flag = (!overrides.channels.is_empty()).then_some("--channels");
        let default_flag = overrides.default_channel.as_ref().map(|_| "--default-channel");
        let channels = match overrides.channels {
            given if !given.is_empty() => given,
            _ => check.channels(&settings.channels),
        };
        check.each_once(&channels, channels_flag);
        let mut named = BTreeMap::new();
        for image in &overrides.images {
            if *named.entry(&image.name).or_insert(image) != image {
                check.fail_flag(format!("`--image`: `{}` is replaced by two different images", image.name));
                check.last_help("pass `--image` once for each image".into());
            }
        }
        let default_channel = match overrides.default_channel {
            Some(given) => Some(given),
            None if settings.default_channel.is_empty() => channels.first().cloned(),
            None => check.parse(&settings.default_channel, &["defaultChannel".into()]),
        };
        // A bundle need not be in the channel that its package recommends, but somebody has to name that channel.
        if let Some(channel) = default_channel.as_ref()
            && !channels.contains(channel)
            && !settings.channels.iter().any(|named| named == channel.as_str())
        {
            let message = format!("the default channel `{channel}` is not among the channels");
            check.fail_of(default_flag, message, &["defaultChannel".into()]);
            if !channels.is_empty() {
                let names: Vec<_> = channels.iter().map(|own| format!("`{own}`")).collect();
                let names = some_of(channel.as_str(), names.iter().map(String::as_str));
                check.last_help(format!("the channels are {names}"));
            }
        }
        check.settings(&settings);
        let icon = attachments.icon.and_then(|bytes| check.icon(&bytes));
        if let (Some((name, _)), Some((version, _))) = (&name, &version)
            && let Err(error) = csv_name(name, version, &release.0).parse::<CsvName>()
        {
            if version.build.is_empty() {
                check.fail_of(package_flag, error.to_string(), &["package".into()]);
            } else {
                check.fail_of(version_flag, error.to_string(), &["version".into()]);
                check.last_help(format!(
                    "leave out `+{}`, which no name in Kubernetes can contain; a version that is packaged again gets a `--release`",
                    version.build
                ));
            }
        }
        let (Some(name), Some(version), Some(default_channel), true) =
            (name, version, default_channel, check.findings.is_empty())
        else {
            return Err(check.findings);
        };
        let mut extra_service_accounts = settings.extra_service_accounts.clone();
        extra_service_accounts.extend(overrides.extra_service_accounts);
        Ok(Self {
            name: name.0,
            version: version.0,
            release: release.0,
            channels,
            default_channel,
            default_channel_given,
            extra_service_accounts,
            origins: Origins { name: name.1, version: version.1, release: release.1 },
            settings,
            sources,
            icon,
            description: attachments.description,
            set: overrides.set,
            images: overrides.images,
            allow: overrides.allow,
        })
    }

    /// The extra service accounts, each once, and where they are asked for.
    pub(super) fn extra_accounts(&self) -> impl Iterator<Item = (&String, Origin<'f>)> {
        let written = self.settings.extra_service_accounts.len();
        let mut seen = BTreeSet::new();
        let once = self.extra_service_accounts.iter().enumerate().filter(move |(_, name)| seen.insert(*name));
        once.map(move |(at, name)| match self.sources.file.filter(|_| at < written) {
            Some(file) => (name, file.origin(&["extraServiceAccounts".into(), at.into()])),
            None => (name, Origin::unwritten(By::Flag("--extra-service-accounts"))),
        })
    }

    /// The name of the ClusterServiceVersion: `PACKAGE.vVERSION`, and `PACKAGE-vVERSION-RELEASE` where there is a
    /// release (operator-framework/api `pkg/validation/internal/bundle.go`).
    pub fn csv_name(&self) -> String {
        csv_name(&self.name, &self.version, &self.release)
    }
}

fn csv_name(name: &PackageName, version: &Version, release: &str) -> String {
    if release.is_empty() { format!("{name}.v{version}") } else { format!("{name}-v{version}-{release}") }
}

/// Collects what does not fit, with its place in the package file.
struct Check<'f> {
    sources: Sources<'f>,
    findings: Vec<Finding>,
}

impl<'f> Check<'f> {
    fn fail(&mut self, message: impl Into<String>, path: &[Step<'_>]) {
        self.findings.push(match self.sources.file {
            Some(file) => file.invalid(message, path),
            None => Finding::new(&codes::PACKAGE_VALUE_INVALID, message),
        });
    }

    /// The same for the command line.
    fn fail_flag(&mut self, message: String) {
        self.findings.push(Finding::new(&codes::PACKAGE_VALUE_INVALID, message));
    }

    /// The same for a value of the command line where a flag gave it, else of the package file.
    fn fail_of(&mut self, flag: Option<&str>, message: String, path: &[Step<'_>]) {
        match flag {
            Some(flag) => self.fail_flag(format!("`{flag}`: {message}")),
            None => self.fail(message, path),
        }
    }

    /// A value that must be there: from the command line, the package file, the base, Chart.yaml or Cargo.toml.
    fn value<T: FromStr<Err: Display>>(
        &mut self,
        given: Option<T>,
        text: &str,
        key: &'static str,
        flag: &'static str,
        cargo: &str,
    ) -> Option<(T, Origin<'f>)> {
        if let Some(given) = given {
            return Some((given, Origin::unwritten(By::Flag(flag))));
        }
        let path = [key.into()];
        if let Some(file) = self.sources.file.filter(|_| !text.is_empty()) {
            return Some((self.parse(text, &path)?, file.origin(&path)));
        }
        let base = self.sources.base.filter(|_| key == "version").and_then(Base::version);
        let chart = self.sources.chart.and_then(|file| file.text(cargo));
        let cargo = self.sources.cargo.and_then(|file| file.text(cargo));
        // What was written for another purpose is taken where it fits, and not complained about where it does not.
        let found = base
            .into_iter()
            .chain(chart)
            .chain(cargo)
            .find_map(|(text, origin)| Some((text.parse().ok()?, origin)));
        if found.is_none() && !self.sources.file.is_some_and(|file| file.is_broken(key)) {
            self.fail(format!("`{key}` is missing"), &[]);
            self.last_help(format!("set `{key}` in the package file, or give `{flag}`"));
        }
        found
    }

    fn parse<T: FromStr<Err: Display>>(&mut self, text: &str, path: &[Step<'_>]) -> Option<T> {
        match text.parse() {
            Ok(value) => Some(value),
            Err(error) => {
                let error = error.to_string();
                let key = path.first().map(Step::to_string).unwrap_or_default();
                let message = if error.contains(text) {
                    error
                } else {
                    format!("`{text}` is not a valid `{key}`: {error}")
                };
                self.fail(message, path);
                None
            }
        }
    }

    fn release(&mut self, given: Option<String>, text: &str) -> (String, Origin<'f>) {
        let flag = Origin::unwritten(By::Flag("--release"));
        let given_by = given.as_ref().map(|_| "--release");
        let (release, origin) = match (given, self.sources.file) {
            (Some(given), _) => (given, flag),
            (None, Some(file)) => (text.to_owned(), file.origin(&["release".into()])),
            (None, None) => (String::new(), flag),
        };
        if let Err(error) = Release::parse(&release) {
            self.fail_of(given_by, error.to_string(), &["release".into()]);
            self.last_help("write what could follow `-` in a semantic version, such as `1` or `rc.2`".into());
        }
        (release, origin)
    }

    fn channels(&mut self, channels: &[String]) -> Vec<ChannelName> {
        let mut parsed = Vec::new();
        for (index, channel) in channels.iter().enumerate() {
            parsed.extend(self.parse::<ChannelName>(channel, &["channels".into(), index.into()]));
        }
        if channels.is_empty() {
            parsed.extend(DEFAULT_CHANNEL.parse::<ChannelName>());
        }
        parsed
    }

    /// Names the channels that are given twice.
    fn each_once(&mut self, channels: &[ChannelName], flag: Option<&str>) {
        let mut given = BTreeSet::new();
        for (at, channel) in channels.iter().enumerate() {
            if !given.insert(channel.as_str()) {
                let message = format!("the channel `{channel}` is given twice");
                self.fail_of(flag, message, &["channels".into(), at.into()]);
                self.last_help("name every channel once".into());
            }
        }
    }

    /// The values that have a form or a fixed set of words.
    fn settings(&mut self, settings: &PackageSettings) {
        if !settings.min_kube_version.is_empty()
            && let Err(error) = Version::parse(&settings.min_kube_version)
        {
            let version = &settings.min_kube_version;
            let message = format!("`{version}` is not a version such as `1.28.0`: {error}");
            self.fail(message, &["minKubeVersion".into()]);
        }
        if let Err(error) = settings.policy.parse() {
            self.fail(error.message, &error.path);
        }
        for (index, mode) in settings.install_modes.iter().enumerate() {
            self.word(mode, &INSTALL_MODES, "an install mode", &["installModes".into(), index.into()]);
        }
        for (word, words, what, key) in [
            (&settings.capabilities, CAPABILITIES.as_slice(), "a capability level", "capabilities"),
            (&settings.version_policy, VERSION_POLICIES.as_slice(), "a version policy", "versionPolicy"),
        ] {
            if !word.is_empty() {
                self.word(word, words, what, &[key.into()]);
            }
        }
        if !settings.replaces.is_empty() {
            self.parse::<CsvName>(&settings.replaces, &["replaces".into()]);
        }
        if !settings.skip_range.is_empty() {
            self.parse::<VersionRange>(&settings.skip_range, &["skipRange".into()]);
        }
        for key in settings.bundle_annotations.keys().filter(|key| is_generated(key)) {
            let message = format!("`{key}` is generated: `bundleAnnotations` is for other annotations");
            self.fail(message, &["bundleAnnotations".into(), key.as_str().into()]);
        }
        for (index, platform) in settings.platforms.iter().enumerate() {
            let parts: Vec<_> = platform.split('/').collect();
            if !matches!(parts[..], [os, arch] if !os.is_empty() && !arch.is_empty()) {
                let message = format!("`{platform}` is not a platform such as `linux/arm64`");
                self.fail(message, &["platforms".into(), index.into()]);
            }
        }
        for (index, related) in settings.related_images.iter().enumerate() {
            self.parse::<ImageRef>(&related.image, &["relatedImages".into(), index.into(), "image".into()]);
        }
        for (index, allowed) in settings.allow.iter().enumerate() {
            let path = ["allow".into(), index.into()];
            if allowed.code.is_empty() || allowed.reason.trim().is_empty() {
                self.fail("a finding is allowed by its `code`, with a `reason`", &path);
            }
        }
        for (index, api) in settings.descriptors.iter().enumerate() {
            if api.kind.is_empty() {
                self.fail("`kind` is missing", &["descriptors".into(), index.into()]);
            }
            for (at, hidden) in api.hide.iter().enumerate() {
                if !hidden.starts_with("spec.") && !hidden.starts_with("status.") {
                    let message = format!("`{hidden}` is not a path such as `spec.image`");
                    self.fail(message, &["descriptors".into(), index.into(), "hide".into(), at.into()]);
                }
            }
        }
    }

    fn word(&mut self, word: &str, words: &[&'static str], what: &str, path: &[Step<'_>]) {
        if !words.contains(&word) {
            self.fail(format!("`{word}` is not {what}"), path);
            let all = || format!("one of `{}`", words.join("`, `"));
            self.last_help(did_you_mean(word, words.iter().copied()).unwrap_or_else(all));
        }
    }

    fn icon(&mut self, bytes: &[u8]) -> Option<Icon> {
        let Some(media_type) = icon::media_type(bytes) else {
            self.fail("the icon is not a PNG, JPEG, GIF or SVG image", &["icon".into()]);
            if let Some(finding) = self.findings.last_mut() {
                finding.code = &codes::ICON_NOT_AN_IMAGE;
            }
            return None;
        };
        Some(Icon { data: BASE64.encode(bytes), media_type: media_type.to_owned() })
    }

    fn last_help(&mut self, help: String) {
        if let Some(finding) = self.findings.last_mut() {
            finding.help = Some(help);
        }
    }
}

/// `redis-operator` as `Redis Operator`.
pub(super) fn title(name: &str) -> String {
    let capital = |word: &str| {
        let mut chars = word.chars();
        let first = chars.next().map(|first| first.to_uppercase().collect::<String>());
        first.map(|first| first + chars.as_str()).unwrap_or_default()
    };
    name.split('-').filter(|word| !word.is_empty()).map(capital).collect::<Vec<_>>().join(" ")
}
