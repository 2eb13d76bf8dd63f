//! Channels by version: `olm.semver` (operator-registry `alpha/template/semver`).
//!
//! Of each minor version the highest patch has edges: it replaces the highest patch of the minor version before, and skips all that
//! came earlier in its major version. Nothing leads from one major version to the next.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;

use olmkit_bundle::version::{Version, precedence};

use super::read::Fields;
use super::{TemplateError, bundle};
use crate::fbc::{self, Catalog};
use crate::property;
use crate::render::Rendered;

/// A template of bundles by maturity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Semver {
    /// Which kinds of channels there are.
    pub kinds: BTreeSet<ChannelKind>,
    /// The kind that the default channel is of, when versions do not decide.
    pub preference: ChannelKind,
    /// The references of the bundles by maturity: candidate, fast, stable.
    pub bundles: [Vec<String>; 3],
}

/// What the name of a channel holds of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChannelKind {
    /// `stable-v1`
    Major,
    /// `stable-v1.2`
    Minor,
}

/// More skipped versions than these take more memory than a template may. Each channel lists all before its head, so they grow with
/// the square of the bundles: about a thousand fit.
const MOST_SKIPS: usize = 1_000_000;

const MATURITIES: [&str; 3] = ["candidate", "fast", "stable"];

impl fmt::Display for ChannelKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Major => "major",
            Self::Minor => "minor",
        })
    }
}

/// A bundle in a channel, on the way to its edges.
struct Placed<'b> {
    maturity: usize,
    kind: ChannelKind,
    channel: String,
    name: &'b str,
    version: &'b Version,
}

impl Placed<'_> {
    /// Whether edges lead from the one to the other.
    fn is_linked_to(&self, other: &Self) -> bool {
        self.maturity == other.maturity
            && self.kind == other.kind
            && self.version.major == other.version.major
    }
}

impl Semver {
    pub(super) fn parse(fields: &Fields<'_, '_>) -> Result<Self, TemplateError> {
        let fields = fields.again().only(&[
            "schema",
            "generateMajorChannels",
            "generateMinorChannels",
            "defaultChannelTypePreference",
            "candidate",
            "fast",
            "stable",
        ])?;
        let mut kinds = BTreeSet::new();
        for (field, kind) in
            [("generateMajorChannels", ChannelKind::Major), ("generateMinorChannels", ChannelKind::Minor)]
        {
            if fields.flag(field)? {
                kinds.insert(kind);
            }
        }
        if kinds.is_empty() {
            kinds.insert(ChannelKind::Minor);
        }
        const PREFERENCE: &str = "defaultChannelTypePreference";
        let preference = match fields.text(PREFERENCE)?.as_str() {
            "" if kinds.contains(&ChannelKind::Minor) => ChannelKind::Minor,
            "" | "major" => ChannelKind::Major,
            "minor" => ChannelKind::Minor,
            other => {
                return Err(fields.wrong(
                    PREFERENCE,
                    format!("`{other}` is not a kind of channel, which is `major` or `minor`"),
                ));
            }
        };
        if !kinds.contains(&preference) {
            return Err(
                fields.wrong(PREFERENCE, format!("channels of the kind `{preference}` are not generated"))
            );
        }
        let mut bundles = [const { Vec::new() }; 3];
        for (maturity, bundles) in MATURITIES.into_iter().zip(&mut bundles) {
            for bundle in fields.map(maturity)?.only(&["bundles"])?.maps("bundles")? {
                let bundle = bundle.only(&["image"])?;
                let image = bundle.text("image")?;
                if image.is_empty() {
                    return Err(bundle.wrong("image", "a bundle has no `image`"));
                }
                bundles.push(image);
            }
        }
        Ok(Self { kinds, preference, bundles })
    }

    pub(super) fn references(&self) -> impl Iterator<Item = &str> {
        self.bundles.iter().flatten().map(String::as_str)
    }

    pub(super) fn render<'a>(
        &self,
        rendered: &HashMap<String, Rendered>,
    ) -> Result<Catalog<'a>, TemplateError> {
        let fail = |why: String| Err(TemplateError::Bundles { why });
        let mut package: Option<&str> = None;
        let mut versions: [BTreeMap<&str, Version>; 3] = Default::default();
        for (maturity, references) in self.bundles.iter().enumerate() {
            let mut images: HashMap<&str, &str> = HashMap::new();
            for reference in references {
                let blob = &bundle(rendered, reference)?.blob;
                let (of, version) = package_of(blob)?;
                if let Some(package) = package.filter(|package| *package != of) {
                    return fail(format!("`{reference}` is of package `{of}`, others are of `{package}`"));
                }
                package = Some(&blob.package);
                if let Some(first) = images.insert(&blob.name, reference) {
                    let maturity = MATURITIES[maturity];
                    let two = if first == reference {
                        format!("`{reference}` is given twice")
                    } else {
                        format!("`{first}` and `{reference}` are the same bundle")
                    };
                    return fail(format!("under `{maturity}` is `{}` twice: {two}", blob.name));
                }
                versions[maturity].insert(&blob.name, version);
            }
            let mut seen: Vec<(&str, &Version)> = Vec::new();
            for (name, version) in &versions[maturity] {
                if let Some((other, _)) = seen.iter().find(|(_, seen)| precedence(seen, version).is_eq()) {
                    return fail(format!(
                        "the versions of `{other}` and `{name}` differ only by build metadata, which has no precedence"
                    ));
                }
                seen.push((name, version));
            }
        }
        let Some(package) = package else { return fail("there are no bundles in the template".into()) };
        let (mut placed, default, maturity) = self.place(&versions);
        let mut channels: BTreeMap<String, Vec<fbc::Entry<'a>>> = BTreeMap::new();
        let Some(mut edges) = edges(&mut placed) else {
            return fail(format!(
                "the channels would list more than {MOST_SKIPS} skipped versions: generate one kind of channel, or leave old bundles out"
            ));
        };
        for bundle in &placed {
            let edge = edges.remove(&(bundle.channel.clone(), bundle.name)).unwrap_or_default();
            let entry = fbc::Entry { name: bundle.name.to_owned().into(), ..edge };
            channels.entry(bundle.channel.clone()).or_default().push(entry);
        }
        let head =
            channels.get(&default).and_then(|entries| entries.last()).map(|entry| entry.name.to_string());
        // Other maturities may have another reference with a ClusterServiceVersion of that name.
        let mut most_mature = self.bundles[maturity].iter().filter_map(|reference| rendered.get(reference));
        let head = head.and_then(|head| most_mature.find(|rendered| *rendered.blob.name == *head));
        let icon = head.and_then(|head| head.csv.icon.clone()).map(|(data, media_type)| fbc::Icon {
            data: data.into(),
            media_type: media_type.into(),
            unknown: Vec::new(),
        });
        let blob = fbc::Package {
            name: package.to_owned().into(),
            default_channel: default.into(),
            description: head.map(|head| head.csv.description.clone()).unwrap_or_default().into(),
            icon,
            ..fbc::Package::default()
        };
        let channel = |(name, entries): (String, _)| fbc::Channel {
            name: name.into(),
            package: package.to_owned().into(),
            entries,
            ..fbc::Channel::default()
        };
        let mut images: Vec<&str> = self.references().collect();
        images.sort_unstable();
        images.dedup();
        let bundles = images.into_iter().map(|image| bundle(rendered, image).map(|found| found.blob.clone()));
        Ok(Catalog {
            packages: vec![blob],
            channels: channels.into_iter().map(channel).collect(),
            bundles: bundles.collect::<Result<_, _>>()?,
            ..Catalog::default()
        })
    }

    /// Every bundle in its channels, by maturity, kind and version; and the default channel with its maturity: the most mature,
    /// then of the highest version, then of the preferred kind, by the lowest version in each channel.
    fn place<'b>(&self, versions: &'b [BTreeMap<&'b str, Version>; 3]) -> (Vec<Placed<'b>>, String, usize) {
        let mut placed: Vec<Placed<'b>> = Vec::new();
        for (maturity, bundles) in versions.iter().enumerate() {
            for kind in &self.kinds {
                for (name, version) in bundles {
                    let word = MATURITIES[maturity];
                    let channel = match kind {
                        ChannelKind::Major => format!("{word}-v{}", version.major),
                        ChannelKind::Minor => format!("{word}-v{}.{}", version.major, version.minor),
                    };
                    placed.push(Placed { maturity, kind: *kind, channel, name, version });
                }
            }
        }
        placed.sort_by(|a, b| {
            (a.maturity, a.kind).cmp(&(b.maturity, b.kind)).then_with(|| precedence(a.version, b.version))
        });
        let mut first: Vec<&Placed<'_>> = Vec::new();
        for bundle in &placed {
            if first.iter().all(|other| other.channel != bundle.channel) {
                first.push(bundle);
            }
        }
        let preferred = |bundle: &Placed<'_>| (bundle.kind == self.preference, bundle.kind);
        let best = first.into_iter().max_by(|a, b| {
            a.maturity
                .cmp(&b.maturity)
                .then_with(|| precedence(a.version, b.version))
                .then_with(|| preferred(a).cmp(&preferred(b)))
        });
        let (default, maturity) = best.map(|best| (best.channel.clone(), best.maturity)).unwrap_or_default();
        (placed, default, maturity)
    }
}

/// The edges of those that have some, by channel and name; none at all if they would be too many.
fn edges<'b, 'a>(placed: &mut [Placed<'b>]) -> Option<HashMap<(String, &'b str), fbc::Entry<'a>>> {
    let mut edges = HashMap::new();
    let mut skips_left = MOST_SKIPS;
    let mut highest_before: Option<&str> = None;
    let mut skipped: BTreeSet<&str> = BTreeSet::new();
    for (at, bundle) in placed.iter().enumerate() {
        let before = at.checked_sub(1).map(|before| &placed[before]);
        match before {
            Some(before) if before.is_linked_to(bundle) => {
                if before.version.minor != bundle.version.minor {
                    highest_before = Some(before.name);
                }
                skipped.insert(before.name);
            }
            _ => {
                highest_before = None;
                skipped.clear();
            }
        }
        let next = placed.get(at + 1).filter(|next| next.is_linked_to(bundle));
        if next.is_none_or(|next| next.version.minor != bundle.version.minor) {
            skips_left = skips_left.checked_sub(skipped.len())?;
            let skips = skipped.iter().filter(|name| Some(**name) != highest_before);
            let entry = fbc::Entry {
                replaces: highest_before.unwrap_or_default().to_owned().into(),
                skips: skips.map(|name| (*name).to_owned().into()).collect(),
                ..fbc::Entry::default()
            };
            edges.insert((bundle.channel.clone(), bundle.name), entry);
        }
    }
    Some(edges)
}

/// The package and version of a bundle, by its one `olm.package` property.
fn package_of(blob: &fbc::Bundle<'_>) -> Result<(String, Version), TemplateError> {
    let fail = |why: String| TemplateError::Bundles { why };
    match &property::packages(blob)[..] {
        [(_, found)] => {
            let version = found.version.parse();
            let version =
                version.map_err(|error| fail(format!("the version of `{}`: {error}", blob.name)))?;
            Ok((found.name.to_string(), version))
        }
        found => {
            Err(fail(format!("`{}` has {} properties `olm.package`, expected one", blob.name, found.len())))
        }
    }
}
