//! A catalog to its compiled form.
//!
//! Only sound catalogs are compiled: what `catalog validate` has errors about, opm would not serve either. Order is that of names,
//! never that of files or threads, so that the same catalog gives the same bytes.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{self, Read as _};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::thread;

use olmkit_bundle::finding::{Finding, Level};
use olmkit_bundle::go;
use olmkit_bundle::parallel::in_parallel;
use olmkit_catalog::fbc::{self, At, Catalog, property, schema};
use olmkit_catalog::index::{self, Index};
use olmkit_catalog::json::compact;
use olmkit_catalog::load::CatalogFiles;
use olmkit_catalog::validate;
use prost::Message as _;
use serde_json::{Value as Json, json};

use super::api;
use super::canonical::{self, Object};
use super::fingerprint::Fingerprint;
use super::format::{MAGIC, NONE, Table};
use super::manifests::Manifests;
use super::write::{Packer, Part, Texts, TooLarge, Writer};

/// A catalog that was not compiled.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The catalog is not sound.
    #[error("cannot compile `{catalog}`: it has {}", errors(.findings.len()))]
    Invalid {
        /// The catalog as the user named it.
        catalog: String,
        /// Its errors.
        findings: Vec<Finding>,
    },
    /// What would be overwritten is something else than a compiled catalog.
    #[error("`{path}` exists and is not a compiled catalog")]
    NotReplaced {
        /// The file.
        path: PathBuf,
    },
    /// A blob is larger than a server sends.
    #[error("the bundle or blob `{name}` is larger than a server sends")]
    TooLarge {
        /// Its name.
        name: String,
    },
    /// The file cannot be written.
    #[error("cannot write `{path}`")]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

fn errors(count: usize) -> String {
    if count == 1 { "an error".into() } else { format!("{count} errors") }
}

/// What was compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Built {
    /// What the catalog's files were.
    pub fingerprint: Fingerprint,
    /// How many packages there are.
    pub packages: usize,
    /// How many bundles there are, each counted once.
    pub bundles: usize,
}

/// Compiles a catalog to a file, which appears whole or not at all.
///
/// # Errors
/// When the catalog is not sound or the file cannot be written; an old file is then as it was.
pub fn build(files: &CatalogFiles, to: &Path) -> Result<Built, BuildError> {
    if !may_replace(to) {
        return Err(BuildError::NotReplaced { path: to.to_owned() });
    }
    let (catalog, fingerprint) = thread::scope(|scope| {
        let fingerprint = scope.spawn(|| Fingerprint::of(files));
        let catalog = Catalog::parse(files);
        let fingerprint = fingerprint.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        (catalog, fingerprint)
    });
    let index = Index::new(&catalog);
    let mut findings = validate::check(&index);
    findings.retain(|finding| finding.level == Level::Error);
    if !findings.is_empty() {
        return Err(BuildError::Invalid { catalog: files.name.clone(), findings });
    }
    let write = |source| BuildError::Write { path: to.to_owned(), source };
    let compiled =
        Writer::new(to).map_err(Stop::from).and_then(|writer| compile(&index, writer, to, fingerprint));
    compiled.map_err(|stop| match stop {
        Stop::Io(source) => write(source),
        Stop::TooLarge(name) => BuildError::TooLarge { name },
    })?;
    Ok(Built { fingerprint, packages: index.packages.len(), bundles: catalog.bundles.len() })
}

/// Whether there is nothing to lose: no file, an empty one, or a compiled catalog.
pub(crate) fn may_replace(file: &Path) -> bool {
    let Ok(metadata) = std::fs::metadata(file) else { return true };
    let mut magic = [0; MAGIC.len()];
    metadata.is_file()
        && (metadata.len() == 0
            || std::fs::File::open(file)
                .is_ok_and(|mut file| file.read_exact(&mut magic).is_ok() && magic == MAGIC))
}

/// Why compiling stops.
enum Stop {
    Io(io::Error),
    TooLarge(String),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Puts the name to what is too large.
fn too_large(name: &str) -> impl FnOnce(TooLarge) -> Stop {
    let name = name.to_owned();
    |TooLarge| Stop::TooLarge(name)
}

/// A blob of the catalog, whatever its schema.
#[derive(Clone, Copy)]
enum Blob<'c, 'a> {
    Package(&'c fbc::Package<'a>),
    Channel(&'c fbc::Channel<'a>),
    Bundle(&'c fbc::Bundle<'a>),
    Deprecations(&'c fbc::Deprecations<'a>),
    Other(&'c fbc::Other<'a>),
}

impl<'c, 'a> Blob<'c, 'a> {
    /// All of them, in the order of the files.
    fn all(catalog: &'c Catalog<'a>) -> Vec<Self> {
        let mut blobs: Vec<Self> = Vec::new();
        blobs.extend(catalog.packages.iter().map(Self::Package));
        blobs.extend(catalog.channels.iter().map(Self::Channel));
        blobs.extend(catalog.bundles.iter().map(Self::Bundle));
        blobs.extend(catalog.deprecations.iter().map(Self::Deprecations));
        blobs.extend(catalog.others.iter().map(Self::Other));
        blobs.sort_by_key(|blob| blob.at());
        blobs
    }

    fn at(self) -> At {
        match self {
            Self::Package(blob) => blob.at,
            Self::Channel(blob) => blob.at,
            Self::Bundle(blob) => blob.at,
            Self::Deprecations(blob) => blob.at,
            Self::Other(blob) => blob.at,
        }
    }

    /// Schema, package and name, as OLM v1 looks for them.
    fn key(self) -> (&'c str, &'c str, &'c str) {
        match self {
            // Packages are found by their name alone.
            Self::Package(blob) => (schema::PACKAGE, "", &blob.name),
            Self::Channel(blob) => (schema::CHANNEL, &blob.package, &blob.name),
            Self::Bundle(blob) => (schema::BUNDLE, &blob.package, &blob.name),
            Self::Deprecations(blob) => (schema::DEPRECATIONS, &blob.package, ""),
            Self::Other(blob) => (&blob.schema, &blob.package, &blob.name),
        }
    }

    fn json(self) -> Json {
        match self {
            Self::Package(blob) => blob.to_json(),
            Self::Channel(blob) => blob.to_json(),
            Self::Bundle(blob) => blob.to_json(),
            Self::Deprecations(blob) => blob.to_json(),
            Self::Other(blob) => blob.to_json(),
        }
    }
}

/// The most blobs that are packed before they are written: enough for every processor, and few compared with the catalog.
const AT_ONCE: usize = 256;

/// Writes everything: first what is asked for one by one, then what ListBundles sends, in the order in which it does.
fn compile(
    index: &Index<'_, '_>,
    mut writer: Writer,
    to: &Path,
    fingerprint: Fingerprint,
) -> Result<(), Stop> {
    let packer = Packer::default();
    let bundles = index
        .packages
        .values()
        .flat_map(|package| package.bundles.iter().map(move |bundle| (package, bundle)));
    let bundles: Vec<_> = bundles.collect();
    let provided = in_parallel(&bundles, |(_, bundle)| provided(bundle.blob));
    let plan = Plan::of(index);

    let blobs = Blob::all(index.catalog);
    let names = blobs.iter().flat_map(|blob| <[&str; 3]>::from(blob.key())).chain(plan.texts());
    let apis = provided.iter().flatten();
    let texts = Texts::new(names.chain(apis.flat_map(|api| [&*api.group, &*api.version, &*api.kind])));
    let text = |text: &str| texts.number(text);

    for blobs in blobs.chunks(AT_ONCE) {
        for (blob, packed) in blobs.iter().zip(in_parallel(blobs, |blob| Packed::of(*blob, &packer))) {
            let packed = packed?;
            let (schema, package, name) = blob.key();
            let part = writer.part(&packed.part)?;
            writer.row(Table::Blobs, &[text(schema), text(package), text(name), part, packed.crc]);
            if let Some(message) = &packed.message {
                let part = writer.part(message)?;
                writer.row(Table::Customs, &[text(schema), text(package), part]);
            }
        }
    }
    let mut written = Vec::with_capacity(bundles.len());
    for bundles in bundles.chunks(AT_ONCE) {
        let prepared = in_parallel(bundles, |(package, bundle)| Prepared::of(package, bundle, &packer));
        for prepared in prepared {
            written.push(prepared?.write(&mut writer)?);
        }
    }
    plan.write_packages(&mut writer, &texts)?;
    plan.write_entries(&mut writer, &texts, &written)?;
    plan.write_lookups(&mut writer, &texts, &provided);
    Ok(writer.finish(to, &texts, fingerprint)?)
}

/// A blob as it is stored.
struct Packed {
    /// As a line of JSON.
    part: Part,
    crc: u32,
    /// As protobuf, when its schema is not OLM's.
    message: Option<Part>,
}

impl Packed {
    fn of(blob: Blob<'_, '_>, packer: &Packer) -> Result<Self, Stop> {
        let large = || too_large(blob.key().2);
        let json = match blob {
            Blob::Bundle(bundle) => return Self::new(&line(bundle), packer).map_err(large()),
            other => other.json(),
        };
        let mut packed = Self::new(&(compact(&json) + "\n"), packer).map_err(large())?;
        if let (Blob::Other(_), Json::Object(map)) = (blob, json) {
            let fields = map.into_iter().map(|(key, value)| (key, protobuf_value(value))).collect();
            let message = prost_types::Struct { fields }.encode_to_vec();
            packed.message = Some(Part::plain(message).map_err(large())?);
        }
        Ok(packed)
    }

    fn new(line: &str, packer: &Packer) -> Result<Self, TooLarge> {
        let (part, crc) = (packer.packed(line.as_bytes())?, crc32fast::hash(line.as_bytes()));
        Ok(Self { part, crc, message: None })
    }
}

fn protobuf_value(value: Json) -> prost_types::Value {
    use prost_types::value::Kind;
    let kind = match value {
        Json::Null => Kind::NullValue(0),
        Json::Bool(value) => Kind::BoolValue(value),
        Json::Number(value) => Kind::NumberValue(value.as_f64().unwrap_or_default()),
        Json::String(value) => Kind::StringValue(value),
        Json::Array(items) => Kind::ListValue(prost_types::ListValue {
            values: items.into_iter().map(protobuf_value).collect(),
        }),
        Json::Object(map) => Kind::StructValue(prost_types::Struct {
            fields: map.into_iter().map(|(key, value)| (key, protobuf_value(value))).collect(),
        }),
    };
    prost_types::Value { kind: Some(kind) }
}

/// What there is to write of a bundle beside its blob, whatever channels it is in.
struct Prepared {
    /// The fields of its message that are the same in every channel.
    message: Part,
    has_image: bool,
    manifests: Vec<Vec<Part>>,
    objects: usize,
    csv: Option<usize>,
}

/// A bundle whose manifests are in the file. Its message waits, since the order of channels is another one.
struct Written {
    message: Part,
    /// The words of its row that are known already.
    row: [u32; 4],
}

impl Prepared {
    fn of(
        package: &index::Package<'_, '_>,
        bundle: &index::Bundle<'_, '_>,
        packer: &Packer,
    ) -> Result<Self, Stop> {
        let blob = bundle.blob;
        let large = || too_large(&blob.name);
        let texts: Vec<String> = blob.properties.iter().map(value).collect();
        let kinds = blob.properties.iter().map(|found| found.kind.as_str());
        let values: Vec<(&str, &str)> = kinds.zip(texts.iter().map(String::as_str)).collect();
        let version = bundle.packages.first().map_or("", |(_, package)| &package.version);
        let manifests = match package.blobs.first() {
            Some(package) => Manifests::of(package, blob, version, &values),
            None => Manifests::default(),
        };
        let hidden = [property::BUNDLE_OBJECT, property::CSV_METADATA];
        let shown = values.iter().filter(|(kind, _)| !hidden.contains(kind));
        let message = api::Bundle {
            csv_name: blob.name.to_string(),
            package_name: blob.package.to_string(),
            bundle_path: blob.image.to_string(),
            provided_apis: self::apis(&values, property::GVK),
            required_apis: self::apis(&values, property::GVK_REQUIRED),
            version: version.to_owned(),
            dependencies: values.iter().filter_map(|(kind, value)| dependency(kind, value)).collect(),
            properties: shown
                .map(|(kind, value)| api::Property { r#type: (*kind).into(), value: (*value).into() })
                .collect(),
            deprecation: deprecation(package, schema::BUNDLE, &blob.name),
            ..api::Bundle::default()
        };
        let segments = |text: Vec<String>| {
            text.iter().map(|piece| packer.smaller(piece.as_bytes())).collect::<Result<_, _>>()
        };
        let Manifests { texts: manifests, objects, csv } = manifests;
        let manifests = manifests.into_iter().map(segments).collect::<Result<Vec<_>, _>>().map_err(large())?;
        let message = Part::plain(message.encode_to_vec()).map_err(large())?;
        Ok(Self { message, has_image: !blob.image.is_empty(), manifests, objects, csv })
    }

    /// Writes the manifests.
    fn write(self, writer: &mut Writer) -> io::Result<Written> {
        let manifests = writer.rows(Table::Manifests);
        for segments in &self.manifests {
            let first = writer.rows(Table::Segments);
            for segment in segments {
                let part = writer.shared(segment)?;
                writer.row(Table::Segments, &[part]);
            }
            writer.row(Table::Manifests, &[first, segments.len() as u32]);
        }
        let csv = self.csv.map_or(NONE, |csv| csv as u32);
        let row = [u32::from(self.has_image), manifests, self.objects as u32, csv];
        Ok(Written { message: self.message, row })
    }
}

/// A property's value as JSON.
fn value(property: &fbc::Property<'_>) -> String {
    property.value.as_ref().map_or_else(|| "null".to_owned(), canonical::text)
}

/// What a bundle provides.
fn provided(blob: &fbc::Bundle<'_>) -> Vec<api::GroupVersionKind> {
    let found = blob.properties.iter().filter(|found| *found.kind == *property::GVK);
    found.map(|found| api_of(&value(found))).collect()
}

/// A bundle's blob as a line of JSON.
fn line(blob: &fbc::Bundle<'_>) -> String {
    let property = |property: &fbc::Property<'_>| {
        let mut object = Object::default();
        object.text("type", &property.kind);
        if let Some(value) = &property.value {
            object.add("value", canonical::text(value));
        }
        object.members(&property.unknown);
        object.end()
    };
    let image = |image: &fbc::RelatedImage<'_>| {
        let mut object = Object::default();
        object.text("name", &image.name);
        object.text("image", &image.image);
        object.members(&image.unknown);
        object.end()
    };
    let mut object = Object::default();
    object.text("schema", schema::BUNDLE);
    for (key, text) in [("name", &blob.name), ("package", &blob.package)] {
        if !text.is_empty() {
            object.text(key, text);
        }
    }
    object.text("image", &blob.image);
    if !blob.properties.is_empty() {
        object.add("properties", canonical::list(blob.properties.iter().map(property)));
    }
    if !blob.related_images.is_empty() {
        object.add("relatedImages", canonical::list(blob.related_images.iter().map(image)));
    }
    object.members(&blob.unknown);
    object.end() + "\n"
}

fn apis(values: &[(&str, &str)], kind: &str) -> Vec<api::GroupVersionKind> {
    let found = values.iter().filter(|(found, _)| *found == kind);
    found.map(|(_, value)| api_of(value)).collect()
}

fn api_of(value: &str) -> api::GroupVersionKind {
    let text = texts(value);
    let (group, version, kind) = (text("group"), text("version"), text("kind"));
    api::GroupVersionKind { group, version, kind, plural: String::new() }
}

/// The older form of a requirement, which OLM still reads.
fn dependency(kind: &str, value: &str) -> Option<api::Dependency> {
    let (kind, value) = match kind {
        property::GVK_REQUIRED => (property::GVK, value.to_owned()),
        property::PACKAGE_REQUIRED => {
            let text = texts(value);
            let (name, range) = (text("packageName"), text("versionRange"));
            (property::PACKAGE, compact(&json!({"packageName": name, "version": range})))
        }
        _ => return None,
    };
    Some(api::Dependency { r#type: kind.to_owned(), value })
}

/// The members of a map that are text, by their keys; a map without them when it is none.
fn texts(json: &str) -> impl Fn(&str) -> String {
    let value: Json = serde_json::from_str(json).unwrap_or_default();
    move |key| go::value_of(&value, key).and_then(Json::as_str).unwrap_or("").to_owned()
}

fn deprecation(package: &index::Package<'_, '_>, schema: &str, name: &str) -> Option<api::Deprecation> {
    let mut entries = package.deprecations.iter().flat_map(|blob| &blob.entries);
    let entry = entries.find(|entry| *entry.reference.schema == *schema && *entry.reference.name == *name)?;
    Some(api::Deprecation { message: entry.message.to_string() })
}

/// Packages, channels and entries in the order of their rows.
struct Plan<'i, 'c, 'a> {
    packages: Vec<(&'i str, &'i index::Package<'c, 'a>)>,
    channels: Vec<PlannedChannel<'i, 'c, 'a>>,
    entries: Vec<PlannedEntry<'i, 'a>>,
}

struct PlannedChannel<'i, 'c, 'a> {
    package: usize,
    channel: &'i index::Channel<'c, 'a>,
    first_entry: usize,
}

struct PlannedEntry<'i, 'a> {
    channel: usize,
    bundle: usize,
    entry: &'i fbc::Entry<'a>,
}

impl<'i, 'c, 'a> Plan<'i, 'c, 'a> {
    fn of(index: &'i Index<'c, 'a>) -> Self {
        let packages: Vec<_> = index.packages.iter().map(|(name, package)| (*name, package)).collect();
        let (mut channels, mut entries) = (Vec::new(), Vec::new());
        let mut first_bundle = 0;
        for (number, (_, package)) in packages.iter().enumerate() {
            let bundles: HashMap<&str, usize> = package
                .bundles
                .iter()
                .zip(first_bundle..)
                .map(|(bundle, at)| (bundle.blob.name.as_str(), at))
                .collect();
            first_bundle += package.bundles.len();
            let mut sorted: Vec<_> = package.channels.iter().collect();
            sorted.sort_by_key(|channel| channel.blob.name.as_str());
            for channel in sorted {
                let mut inside: Vec<_> = channel.blob.entries.iter().collect();
                inside.sort_by_key(|entry| entry.name.as_str());
                let planned = |entry: &'i fbc::Entry<'a>| {
                    // In a sound catalog every entry has a bundle.
                    let bundle = *bundles.get(entry.name.as_str())?;
                    Some(PlannedEntry { channel: channels.len(), bundle, entry })
                };
                let planned: Vec<_> = inside.into_iter().filter_map(planned).collect();
                channels.push(PlannedChannel { package: number, channel, first_entry: entries.len() });
                entries.extend(planned);
            }
        }
        Self { packages, channels, entries }
    }

    /// Names that stand nowhere but in entries.
    fn texts(&self) -> impl Iterator<Item = &'i str> {
        self.entries.iter().flat_map(|planned| {
            let edges = std::iter::once(&planned.entry.replaces).chain(&planned.entry.skips);
            edges.map(|name| name.as_str())
        })
    }

    fn channels_of(&self, package: usize) -> Range<usize> {
        let before = |package| self.channels.partition_point(|channel| channel.package < package);
        before(package)..before(package + 1)
    }

    fn entries_of(&self, channel: usize) -> Range<usize> {
        let end = self.channels.get(channel + 1).map_or(self.entries.len(), |next| next.first_entry);
        self.channels[channel].first_entry..end
    }

    fn head(&self, channel: usize) -> Option<usize> {
        let linked = self.channels[channel].channel.linked.as_ref().ok()?;
        let entries = self.entries_of(channel);
        let at = self.entries[entries.clone()]
            .binary_search_by_key(&linked.head().name.as_str(), |planned| &planned.entry.name);
        Some(entries.start + at.ok()?)
    }

    fn write_packages(&self, writer: &mut Writer, texts: &Texts<'_>) -> Result<(), Stop> {
        for (number, (name, package)) in self.packages.iter().enumerate() {
            let channels = self.channels_of(number);
            let default = package.blobs.first().map_or("", |blob| blob.default_channel.as_str());
            let message = api::Package {
                name: (*name).to_owned(),
                channels: channels.clone().map(|channel| self.message_of(channel)).collect(),
                default_channel_name: default.to_owned(),
                deprecation: deprecation(package, schema::PACKAGE, ""),
            };
            let default =
                channels.clone().find(|channel| *self.channels[*channel].channel.blob.name == *default);
            let part = writer.part(&Part::plain(message.encode_to_vec()).map_err(too_large(name))?)?;
            let (first, count) = (channels.start as u32, channels.len() as u32);
            writer.row(
                Table::Packages,
                &[texts.number(name), default.map_or(NONE, |at| at as u32), first, count, part],
            );
        }
        for (number, channel) in self.channels.iter().enumerate() {
            let entries = self.entries_of(number);
            let head = self.head(number).map_or(NONE, |at| at as u32);
            let (first, count) = (entries.start as u32, entries.len() as u32);
            let name = texts.number(&channel.channel.blob.name);
            writer.row(Table::Channels, &[channel.package as u32, name, first, count, head]);
        }
        Ok(())
    }

    fn message_of(&self, channel: usize) -> api::Channel {
        let PlannedChannel { package, channel: planned, .. } = &self.channels[channel];
        let name = &planned.blob.name;
        api::Channel {
            name: name.to_string(),
            csv_name: self
                .head(channel)
                .map_or_else(String::new, |head| self.entries[head].entry.name.to_string()),
            deprecation: deprecation(self.packages[*package].1, schema::CHANNEL, name),
        }
    }

    fn write_entries(&self, writer: &mut Writer, texts: &Texts<'_>, written: &[Written]) -> Result<(), Stop> {
        let mut listing: Vec<usize> = (0..self.entries.len()).collect();
        // The rows are sorted by package, channel and name already.
        listing.sort_by_key(|at| self.channels[self.entries[*at].channel].channel.blob.name.as_str());
        let mut bundle_parts = vec![NONE; written.len()];
        let mut entry_parts = vec![(NONE, 0); self.entries.len()];
        for at in listing {
            let PlannedEntry { channel, bundle, entry } = &self.entries[at];
            if bundle_parts[*bundle] == NONE {
                bundle_parts[*bundle] = writer.part(&written[*bundle].message)?;
            }
            let mut message = api::Bundle {
                channel_name: self.channels[*channel].channel.blob.name.to_string(),
                skip_range: entry.skip_range.to_string(),
                ..api::Bundle::default()
            }
            .encode_to_vec();
            let place = message.len() as u32;
            let edges = api::Bundle {
                replaces: entry.replaces.to_string(),
                skips: entry.skips.iter().map(ToString::to_string).collect(),
                ..api::Bundle::default()
            };
            message.extend(edges.encode_to_vec());
            entry_parts[at] = (writer.part(&Part::plain(message).map_err(too_large(&entry.name))?)?, place);
            writer.row(Table::Listing, &[at as u32]);
        }
        for (PlannedEntry { channel, bundle, entry }, (part, place)) in self.entries.iter().zip(entry_parts) {
            let first_skip = writer.rows(Table::Skips);
            for skip in &entry.skips {
                writer.row(Table::Skips, &[texts.number(skip)]);
            }
            let (name, replaces) = (texts.number(&entry.name), texts.number(&entry.replaces));
            let skips = entry.skips.len() as u32;
            let row = [*channel as u32, *bundle as u32, name, part, place, replaces, first_skip, skips];
            writer.row(Table::Entries, &row);
        }
        for (bundle, part) in written.iter().zip(bundle_parts) {
            let [has_image, manifests, objects, csv] = bundle.row;
            writer.row(Table::Bundles, &[part, has_image, manifests, objects, csv]);
        }
        Ok(())
    }

    /// The indexes of entries by the APIs that they provide and by the entries that they replace.
    fn write_lookups(&self, writer: &mut Writer, texts: &Texts<'_>, provided: &[Vec<api::GroupVersionKind>]) {
        let mut providers: BTreeMap<[u32; 3], BTreeSet<u32>> = BTreeMap::new();
        let mut replacers: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
        for (PlannedEntry { bundle, entry, .. }, at) in self.entries.iter().zip(0..) {
            for api in &provided[*bundle] {
                let key = [&api.group, &api.version, &api.kind].map(|text| texts.number(text));
                providers.entry(key).or_default().insert(at);
            }
            // An entry that replaces nothing replaces the empty name, as it does for opm.
            for name in std::iter::once(&entry.replaces).chain(&entry.skips) {
                replacers.entry(texts.number(name)).or_default().insert(at);
            }
        }
        for ([group, version, kind], entries) in providers {
            let first = writer.rows(Table::Providers);
            writer.row(Table::Apis, &[group, version, kind, first, entries.len() as u32]);
            for entry in entries {
                writer.row(Table::Providers, &[entry]);
            }
        }
        for (name, entries) in replacers {
            let first = writer.rows(Table::Replacers);
            writer.row(Table::Replaced, &[name, first, entries.len() as u32]);
            for entry in entries {
                writer.row(Table::Replacers, &[entry]);
            }
        }
    }
}
