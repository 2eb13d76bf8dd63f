//! The package file, `olmkit.yaml`: what an operator's manifests cannot say.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::Deserialize;

use super::{codes, icon};
use crate::csv::{AppLink, Icon, Maintainer};
use crate::finding::{Finding, Place};
use crate::names::{ChannelName, CsvName, PackageName};
use crate::source::Source;
use crate::suggest::did_you_mean;
use crate::version::Version;
use crate::yaml::{self, Document, Step, decode};

/// The sets of namespaces an operator can be made to watch.
pub const INSTALL_MODES: [&str; 4] = ["OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces"];

/// The capability levels, lowest first.
pub const CAPABILITIES: [&str; 5] =
    ["Basic Install", "Seamless Upgrades", "Full Lifecycle", "Deep Insights", "Auto Pilot"];

/// How a version finds its place in a channel; catalogs know what each of them means.
pub const VERSION_POLICIES: [&str; 4] = ["replaces", "semver", "semver-skippatch", "skip-range"];

/// The channel of a bundle that names none.
pub const DEFAULT_CHANNEL: &str = "alpha";

/// The package file as it is written. Paths are relative to the file.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PackageSettings {
    /// The package's name.
    pub package: String,
    /// The version, a semantic one; mostly given on the command line instead.
    pub version: String,
    /// The name people see; made from the package's name when absent.
    pub display_name: String,
    /// What the operator does, in Markdown.
    pub description: String,
    /// A Markdown file with the same.
    pub description_file: String,
    /// An image file.
    pub icon: String,
    /// Who provides the operator.
    pub provider: AppLink,
    /// Who maintains it.
    pub maintainers: Vec<Maintainer>,
    /// Where to read on.
    pub links: Vec<AppLink>,
    /// Words to find it by.
    pub keywords: Vec<String>,
    /// Categories it is listed under.
    pub categories: Vec<String>,
    /// One of [`CAPABILITIES`]; the first when absent.
    pub capabilities: String,
    /// Such as `alpha` or `stable`; free text.
    pub maturity: String,
    /// The oldest Kubernetes it runs on, a semantic version.
    pub min_kube_version: String,
    /// Those of [`INSTALL_MODES`] that are supported; `AllNamespaces` when absent.
    pub install_modes: Vec<String>,
    /// The channels the bundle is meant for; [`DEFAULT_CHANNEL`] when absent.
    pub channels: Vec<String>,
    /// The channel to subscribe to; the first of `channels` when absent.
    pub default_channel: String,
    /// One of [`VERSION_POLICIES`]; the first when absent.
    pub version_policy: String,
    /// Further annotations of the ClusterServiceVersion.
    pub annotations: BTreeMap<String, String>,
    /// Files and directories with the operator's manifests.
    pub manifests: Vec<String>,
}

/// A package file that was read: its settings, and where each of them stands.
#[derive(Debug)]
pub struct PackageFile<'a> {
    source: Source<'a>,
    document: Document<'a>,
    /// What it says.
    pub settings: PackageSettings,
}

/// What the command line says instead of the package file.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// The package's name.
    pub package: Option<PackageName>,
    /// The version.
    pub version: Option<Version>,
    /// The channels.
    pub channels: Vec<ChannelName>,
    /// The channel to subscribe to.
    pub default_channel: Option<ChannelName>,
}

/// The content of the files that a package file names.
#[derive(Clone, Debug, Default)]
pub struct Attachments {
    /// The Markdown of `descriptionFile`.
    pub description: Option<String>,
    /// The bytes of `icon`.
    pub icon: Option<Vec<u8>>,
}

/// What is known of a package beyond its manifests, checked.
#[derive(Clone, Debug)]
pub struct Package {
    /// The name.
    pub name: PackageName,
    /// The version of this bundle.
    pub version: Version,
    /// The channels, at least one.
    pub channels: Vec<ChannelName>,
    /// The package's default channel; mostly one of `channels`.
    pub default_channel: ChannelName,
    /// The name people see.
    pub display_name: String,
    /// Markdown; may be empty.
    pub description: String,
    /// The icon.
    pub icon: Option<Icon>,
    /// One of [`CAPABILITIES`].
    pub capabilities: String,
    /// Those of [`INSTALL_MODES`] that are supported.
    pub install_modes: Vec<String>,
    /// The rest of the package file, which needs no checking.
    pub settings: PackageSettings,
}

impl<'a> PackageFile<'a> {
    /// Reads a package file.
    ///
    /// # Errors
    /// Findings: a syntax error, a value of a wrong type, and every key that does not exist.
    pub fn parse(source: Source<'a>) -> Result<Self, Vec<Finding>> {
        let document = yaml::first_document(source.text()).map_err(|error| {
            vec![Finding::new(&codes::SYNTAX, error.message.clone()).at(Place::new(&source, error.span))]
        })?;
        let settings = match decode::decode_strict::<PackageSettings>(&document.root) {
            Ok((settings, unknown)) if unknown.is_empty() => settings,
            Ok((_, unknown)) => return Err(unknown.iter().map(|key| unknown_key(&source, key)).collect()),
            Err(error) => {
                let place = Place::new(&source, error.span.unwrap_or(document.root.span));
                return Err(vec![Finding::new(&codes::PACKAGE_VALUE_INVALID, error.to_string()).at(place)]);
            }
        };
        Ok(Self { source, document, settings })
    }

    fn invalid(&self, message: impl Into<String>, path: &[Step<'_>]) -> Finding {
        let place = Place::new(&self.source, self.document.root.locate(path));
        Finding::new(&codes::PACKAGE_VALUE_INVALID, message).at(place)
    }
}

fn unknown_key(source: &Source<'_>, key: &decode::UnknownField) -> Finding {
    let mut expected = key.expected.to_vec();
    expected.sort_unstable();
    let help = did_you_mean(&key.key, key.expected.iter().copied())
        .unwrap_or_else(|| format!("the keys here are `{}`", expected.join("`, `")));
    Finding::new(&codes::PACKAGE_KEY_UNKNOWN, format!("`{}` is not a key here", key.key))
        .at(Place::new(source, key.span))
        .help(help)
}

impl Package {
    /// Puts the package file, the command line and the files they name together, and checks the values.
    ///
    /// # Errors
    /// Every value that does not fit, as a finding.
    pub fn resolve(
        file: Option<&PackageFile<'_>>,
        overrides: Overrides,
        attachments: Attachments,
    ) -> Result<Self, Vec<Finding>> {
        let mut check = Check { file, findings: Vec::new() };
        let settings = file.map(|file| file.settings.clone()).unwrap_or_default();

        let name = overrides.package.or_else(|| check.parse(&settings.package, "package", "--package"));
        let version = overrides.version.or_else(|| check.parse(&settings.version, "version", "--version"));
        let channels = match overrides.channels {
            given if !given.is_empty() => given,
            _ => check.channels(&settings.channels),
        };
        let default_channel = match overrides.default_channel {
            Some(given) => Some(given),
            None if settings.default_channel.is_empty() => channels.first().cloned(),
            None => check.parse(&settings.default_channel, "defaultChannel", "--default-channel"),
        };
        // A bundle need not be in the channel that its package recommends, but somebody has to name that channel.
        if let Some(channel) = default_channel.as_ref()
            && !channels.contains(channel)
            && !settings.channels.iter().any(|named| named == channel.as_str())
        {
            check.fail(
                format!("the default channel `{channel}` is not among the channels"),
                &["defaultChannel".into()],
            );
        }
        if !settings.min_kube_version.is_empty()
            && let Err(error) = Version::parse(&settings.min_kube_version)
        {
            let message =
                format!("`{}` is not a version such as `1.28.0`: {error}", settings.min_kube_version);
            check.fail(message, &["minKubeVersion".into()]);
        }
        for (index, mode) in settings.install_modes.iter().enumerate() {
            check.word(mode, &INSTALL_MODES, "an install mode", &["installModes".into(), index.into()]);
        }
        if !settings.capabilities.is_empty() {
            check.word(&settings.capabilities, &CAPABILITIES, "a capability level", &["capabilities".into()]);
        }
        if !settings.version_policy.is_empty() {
            check.word(
                &settings.version_policy,
                &VERSION_POLICIES,
                "a version policy",
                &["versionPolicy".into()],
            );
        }
        let icon = attachments.icon.and_then(|bytes| check.icon(&bytes));
        if let (Some(name), Some(version)) = (&name, &version)
            && let Err(error) = format!("{name}.v{version}").parse::<CsvName>()
        {
            check.fail(error.to_string(), &["package".into()]);
        }
        let (Some(name), Some(version), Some(default_channel), true) =
            (name, version, default_channel, check.findings.is_empty())
        else {
            return Err(check.findings);
        };
        let or =
            |given: &str, default: &str| if given.is_empty() { default.to_owned() } else { given.to_owned() };
        Ok(Self {
            display_name: or(&settings.display_name, &title(name.as_str())),
            description: attachments.description.unwrap_or_else(|| settings.description.clone()),
            capabilities: or(&settings.capabilities, CAPABILITIES[0]),
            install_modes: match settings.install_modes.as_slice() {
                [] => vec!["AllNamespaces".to_owned()],
                modes => modes.to_vec(),
            },
            name,
            version,
            channels,
            default_channel,
            icon,
            settings,
        })
    }

    /// The name of the ClusterServiceVersion, `PACKAGE.vVERSION`.
    pub fn csv_name(&self) -> String {
        format!("{}.v{}", self.name, self.version)
    }
}

/// Collects what does not fit, with its place in the package file.
struct Check<'f, 'a> {
    file: Option<&'f PackageFile<'a>>,
    findings: Vec<Finding>,
}

impl Check<'_, '_> {
    fn fail(&mut self, message: impl Into<String>, path: &[Step<'_>]) {
        self.findings.push(match self.file {
            Some(file) => file.invalid(message, path),
            None => Finding::new(&codes::PACKAGE_VALUE_INVALID, message),
        });
    }

    /// A value that must be there and be well formed.
    fn parse<T: std::str::FromStr<Err: std::fmt::Display>>(
        &mut self,
        text: &str,
        key: &str,
        flag: &str,
    ) -> Option<T> {
        if text.is_empty() {
            self.fail(format!("`{key}` is missing"), &[]);
            self.last_help(format!("set `{key}` in the package file, or give `{flag}`"));
            return None;
        }
        match text.parse() {
            Ok(value) => Some(value),
            Err(error) => {
                let error = error.to_string();
                let message = if error.contains(text) {
                    error
                } else {
                    format!("`{text}` is not a valid `{key}`: {error}")
                };
                self.fail(message, &[key.into()]);
                None
            }
        }
    }

    fn channels(&mut self, channels: &[String]) -> Vec<ChannelName> {
        let mut parsed = Vec::new();
        for (index, channel) in channels.iter().enumerate() {
            match channel.parse() {
                Ok(channel) => parsed.push(channel),
                Err(error) => self.fail(format!("{error}"), &["channels".into(), index.into()]),
            }
        }
        if channels.is_empty() {
            parsed.extend(DEFAULT_CHANNEL.parse::<ChannelName>());
        }
        parsed
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
fn title(name: &str) -> String {
    let capital = |word: &str| {
        let mut chars = word.chars();
        chars
            .next()
            .map(|first| first.to_uppercase().collect::<String>() + chars.as_str())
            .unwrap_or_default()
    };
    name.split('-').map(capital).collect::<Vec<_>>().join(" ")
}
