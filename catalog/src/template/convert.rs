//! Converts a catalog into a template: the inverse of [`Template::render`].

use std::collections::BTreeSet;
use std::error::Error;

use olmkit_bundle::finding::Place;
use olmkit_bundle::yaml::write::WriteError;
use serde_json::{Value as Json, json};

use super::{BundleSource, Template, TemplateError, schema};
use crate::fbc::write::Format;
use crate::fbc::{self, Catalog};
use crate::json::{Layout, Tree};
use crate::render::{CsvFacts, Rendered};

/// What a catalog is converted to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// A catalog whose bundles are references.
    Basic,
    /// Channels by version.
    Semver,
    /// The whole catalog, to which substitutions are added.
    Substitutes,
}

/// A catalog that has no template of that kind.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConvertError {
    /// The package is not there.
    #[error("the catalog has no package `{package}`")]
    NoPackage {
        /// The package.
        package: String,
    },
    /// A bundle cannot be named by its image.
    #[error("`{bundle}` has no image, and a template names bundles by their images")]
    NoImage {
        /// The bundle.
        bundle: String,
        /// Where it stands.
        place: Box<Place>,
    },
    /// A semver template makes one package.
    #[error("a semver template makes one package, and the catalog has {count}")]
    Packages {
        /// How many the catalog has.
        count: usize,
    },
    /// A semver template does not make what the catalog has.
    #[error("no semver template produces this catalog: {why}")]
    NotSemver {
        /// The first difference.
        why: String,
        /// Where it is.
        place: Option<Box<Place>>,
    },
    /// A substitutes template cannot start from this catalog.
    #[error("cannot convert this catalog to a template")]
    Template(#[source] TemplateError),
    /// The template has no YAML form.
    #[error("cannot write the template")]
    Write(#[source] WriteError),
}

impl ConvertError {
    /// Where the trouble is.
    pub fn place(&self) -> Option<&Place> {
        match self {
            Self::NoImage { place, .. } => Some(place),
            Self::NotSemver { place, .. } => place.as_deref(),
            Self::Template(error) => error.place(),
            _ => None,
        }
    }

    /// The way out.
    pub fn help(&self) -> Option<&'static str> {
        match self {
            Self::NoImage { .. } => Some("convert to `substitutes`, which keeps bundles as they are"),
            Self::Packages { .. } => Some("choose one with --package"),
            Self::NotSemver { .. } => Some("convert to `basic`, which keeps channels as they are"),
            _ => None,
        }
    }
}

/// The template of a catalog, or of one package of it.
///
/// ```
/// use olmkit_catalog::{fbc::{Catalog, write::Format}, load::CatalogFiles, template::{self, Target}};
/// let files = CatalogFiles::from_text("catalog.yaml", "
/// {schema: olm.package, name: redis, defaultChannel: stable}
/// ---
/// {schema: olm.bundle, package: redis, name: redis.v1, image: 'example.com/redis:v1'}");
/// let text = template::convert(&Catalog::parse(&files), Target::Basic, None, Format::Yaml).unwrap();
/// assert!(text.ends_with("- image: example.com/redis:v1\n  schema: olm.bundle\nschema: olm.template.basic\n"));
/// ```
///
/// # Errors
/// When there is no such template; which part of the catalog it could not make.
pub fn convert(
    catalog: &Catalog<'_>,
    target: Target,
    package: Option<&str>,
    format: Format,
) -> Result<String, ConvertError> {
    if let Some(package) = package
        && catalog.packages.iter().all(|blob| *blob.name != *package)
    {
        return Err(ConvertError::NoPackage { package: package.to_owned() });
    }
    let is_wanted = |of: &str| package.is_none_or(|package| package == of);
    let tree = match target {
        Target::Basic | Target::Substitutes => {
            let mut entries = Vec::new();
            for bundle in catalog.bundles.iter().filter(|bundle| is_wanted(&bundle.package)) {
                if target == Target::Basic && bundle.image.is_empty() {
                    let (bundle, place) = (bundle.name.to_string(), Box::new(catalog.place(bundle.at)));
                    return Err(ConvertError::NoImage { bundle, place });
                }
            }
            let owners = catalog.owners().map(|(_, package)| package);
            for ((_, tree), _) in catalog.trees().zip(owners).filter(|(_, owner)| is_wanted(owner)) {
                entries.push(if target == Target::Basic { reference(tree) } else { tree });
            }
            let mut template: Vec<(_, Tree<'_>)> = vec![
                (
                    "schema".into(),
                    if target == Target::Basic { schema::BASIC } else { schema::SUBSTITUTES }.into(),
                ),
                ("entries".into(), Tree::List(entries)),
            ];
            if target == Target::Substitutes {
                template.push(("substitutions".into(), Tree::List(Vec::new())));
            }
            Tree::Map(template)
        }
        Target::Semver => Tree::Leaf(semver(catalog, package)?),
    };
    let text = match format {
        Format::Json => tree.to_text(&Layout::OPM) + "\n",
        Format::Yaml => {
            let text = Format::Yaml.text(tree).map_err(ConvertError::Write)?;
            text.strip_prefix("---\n").unwrap_or(&text).to_owned()
        }
    };
    // What no reader takes is not a template.
    Template::parse("template", &text).map_err(ConvertError::Template)?;
    Ok(text)
}

/// A bundle as a basic template has it; other blobs as they are.
fn reference(tree: Tree<'_>) -> Tree<'_> {
    let Tree::Map(members) = tree else { return tree };
    let is_bundle = members.iter().any(|(key, value)| {
        key == "schema" && matches!(value, Tree::Leaf(schema) if schema == fbc::schema::BUNDLE)
    });
    let kept = |key: &str| !is_bundle || key == "schema" || key == "image";
    Tree::Map(members.into_iter().filter(|(key, _)| kept(key)).collect())
}

/// The bundles of a catalog, by image.
struct Own<'c, 'a>(&'c Catalog<'a>);

impl BundleSource for Own<'_, '_> {
    fn bundles(&self, references: &[&str]) -> Result<Vec<Rendered>, Box<dyn Error + Send + Sync>> {
        let find = |reference: &&str| {
            let blob = self.0.bundles.iter().find(|bundle| *bundle.image == **reference);
            let blob = blob.ok_or_else(|| format!("no bundle has the image `{reference}`"))?;
            let property = |property: &fbc::Property<'_>| fbc::Property {
                kind: property.kind.to_string().into(),
                value: property.value.as_ref().map(|value| value.to_json().into()),
                ..fbc::Property::default()
            };
            let blob = fbc::Bundle {
                name: blob.name.to_string().into(),
                package: blob.package.to_string().into(),
                image: blob.image.to_string().into(),
                properties: blob.properties.iter().map(property).collect(),
                ..fbc::Bundle::default()
            };
            Ok(Rendered { blob, csv: CsvFacts::default() })
        };
        references.iter().map(find).collect()
    }
}

/// The semver template that makes the package: it is made of the channels' names and bundles, and then held against what it makes.
fn semver(catalog: &Catalog<'_>, package: Option<&str>) -> Result<Json, ConvertError> {
    let packages: Vec<_> =
        catalog.packages.iter().filter(|blob| package.is_none_or(|package| *blob.name == *package)).collect();
    let [package] = packages[..] else { return Err(ConvertError::Packages { count: packages.len() }) };
    let not = |why: String, place: Option<Place>| ConvertError::NotSemver { why, place: place.map(Box::new) };
    let channels: Vec<&fbc::Channel<'_>> =
        catalog.channels.iter().filter(|channel| channel.package == package.name).collect();
    if let Some(blob) = catalog.deprecations.iter().find(|blob| blob.package == package.name) {
        return Err(not("it has deprecations".into(), Some(catalog.place(blob.at))));
    }
    let (mut major, mut minor) = (false, false);
    let mut images: [BTreeSet<&str>; 3] = Default::default();
    for channel in &channels {
        let place = || Some(catalog.place(channel.at.with(channel.name.span)));
        let unknown = || {
            let name = &channel.name;
            not(format!("the channel `{name}` is not named like `stable-v1` or `stable-v1.2`"), place())
        };
        let (word, number) = channel.name.split_once("-v").ok_or_else(unknown)?;
        let maturity = ["candidate", "fast", "stable"].iter().position(|known| *known == word);
        let maturity = maturity.ok_or_else(unknown)?;
        *(if number.contains('.') { &mut minor } else { &mut major }) = true;
        for entry in &channel.entries {
            let bundle = catalog
                .bundles
                .iter()
                .find(|bundle| bundle.package == package.name && bundle.name == entry.name)
                .ok_or_else(|| {
                    not(format!("`{}` of `{}` has no bundle", entry.name, channel.name), place())
                })?;
            if bundle.image.is_empty() {
                let (bundle, place) = (bundle.name.to_string(), Box::new(catalog.place(bundle.at)));
                return Err(ConvertError::NoImage { bundle, place });
            }
            images[maturity].insert(&bundle.image);
        }
    }
    let template = |preference: &str| {
        let list = |images: &BTreeSet<&str>| -> Json {
            let bundles: Vec<Json> = images.iter().map(|image| json!({ "image": image })).collect();
            json!({ "bundles": bundles })
        };
        let mut template = json!({
            "schema": schema::SEMVER,
            "generateMajorChannels": major,
            "generateMinorChannels": minor,
        });
        for (word, images) in ["candidate", "fast", "stable"].iter().zip(&images) {
            if !images.is_empty() {
                template[*word] = list(images);
            }
        }
        if major && minor {
            template["defaultChannelTypePreference"] = preference.into();
        }
        template
    };
    // The first difference of the preferred kind is what is told.
    let mut first = None;
    for preference in ["minor", "major"] {
        let template = template(preference);
        match difference(catalog, package, &channels, &template.to_string()) {
            Ok(None) => return Ok(template),
            Ok(Some((why, place))) => {
                first.get_or_insert_with(|| not(why, place));
            }
            Err(error) => return Err(ConvertError::Template(error)),
        }
    }
    Err(first.unwrap_or_else(|| not("it has no channels".into(), None)))
}

/// What a template makes otherwise than the catalog has it.
fn difference(
    catalog: &Catalog<'_>,
    package: &fbc::Package<'_>,
    channels: &[&fbc::Channel<'_>],
    template: &str,
) -> Result<Option<(String, Option<Place>)>, TemplateError> {
    let made = Template::parse("template", template)?.render(&Own(catalog))?;
    for channel in channels {
        let place = Some(catalog.place(channel.at.with(channel.name.span)));
        let Some(made) = made.channels.iter().find(|made| made.name == channel.name) else {
            return Ok(Some((format!("it would not make the channel `{}`", channel.name), place)));
        };
        for entry in &channel.entries {
            let same = made.entries.iter().any(|made| sorted(made) == sorted(entry));
            if !same {
                let (entry, channel) = (&entry.name, &channel.name);
                return Ok(Some((format!("`{entry}` of `{channel}` would have other edges"), place)));
            }
        }
        if made.entries.len() != channel.entries.len() {
            return Ok(Some((format!("`{}` would have other entries", channel.name), place)));
        }
    }
    if let Some(more) = made.channels.iter().find(|made| channels.iter().all(|own| own.name != made.name)) {
        return Ok(Some((format!("it would make the channel `{}` as well", more.name), None)));
    }
    let default = made.packages.first().map_or("", |made| &made.default_channel);
    if *default != *package.default_channel {
        let place = catalog.place(package.at.with(package.default_channel.span));
        return Ok(Some((format!("its default channel would be `{default}`"), Some(place))));
    }
    Ok(None)
}

/// An entry's edges, without the order of its skips.
fn sorted(entry: &fbc::Entry<'_>) -> Json {
    let mut json = entry.to_json();
    if let Some(skips) = json.get_mut("skips").and_then(Json::as_array_mut) {
        skips.sort_by(|a, b| a.as_str().cmp(&b.as_str()));
    }
    json
}
