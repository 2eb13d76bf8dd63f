//! What several rules look at, worked out once, when the first of them asks.

use std::cell::OnceCell;
use std::io::{self, Write};
use std::ops::Deref;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::Options;
use super::access::{self, AccessRule};
use super::dependencies::{self, Dependency, Fields};
use super::examples::Examples;
use crate::crd::{self, Crd};
use crate::csv::GroupVersionKind;
use crate::load::Content;
use crate::parse::{Bundle, File, Object, Role};
use crate::source::Span;
use crate::yaml::fit::{self, Fit};
use crate::yaml::steps;

/// What a ConfigMap holds, and so a bundle that OLM unpacks into one.
pub(super) const MAX_PACKED_BYTES: u64 = 1 << 20;
/// From here on a bundle is worth a warning: 85 % of the limit.
pub(super) const NEAR_MAX_PACKED_BYTES: u64 = MAX_PACKED_BYTES * 85 / 100;

/// A bundle under validation; everything a [`Bundle`] tells, and what rules share.
pub(super) struct Facts<'b, 'a> {
    bundle: &'b Bundle<'a>,
    /// What is known beside the bundle.
    pub(super) options: &'b Options,
    access_rules: OnceCell<Vec<AccessRule<'b, 'a>>>,
    examples: OnceCell<Option<Examples<'b>>>,
    provided_apis: OnceCell<Vec<ProvidedApi>>,
    dependencies: OnceCell<Vec<Dependency<'b, 'a>>>,
    crd_versions: OnceCell<Vec<CrdVersion<'b, 'a>>>,
    crd_fits: OnceCell<Vec<(Object<'b, 'a>, Fit)>>,
    packed: OnceCell<Option<Packed<'b>>>,
    packed_files: OnceCell<Vec<(&'b File<'a>, u64)>>,
    object_sizes: OnceCell<Vec<(Object<'b, 'a>, u64)>>,
}

/// An API that the ClusterServiceVersion says the operator provides.
pub(super) struct ProvidedApi {
    pub(super) gvk: GroupVersionKind,
    /// The list under `spec` that has it among its `owned`, and the position there.
    pub(super) list: &'static str,
    pub(super) index: usize,
}

/// A version of a CRD in the bundle.
pub(super) struct CrdVersion<'b, 'a> {
    pub(super) gvk: GroupVersionKind,
    pub(super) crd: Object<'b, 'a>,
    /// Where the version's name stands.
    pub(super) span: Span,
    pub(super) served: bool,
}

/// What the manifests take when each is compressed and encoded, as in the ConfigMap that OLM unpacks bundles into.
pub(super) struct Packed<'b> {
    pub(super) total: u64,
    /// The path of the file with the largest share, and that share.
    pub(super) largest: (&'b str, u64),
}

impl<'b, 'a> Deref for Facts<'b, 'a> {
    type Target = Bundle<'a>;

    fn deref(&self) -> &Bundle<'a> {
        self.bundle
    }
}

impl<'b, 'a> Facts<'b, 'a> {
    pub(super) fn new(bundle: &'b Bundle<'a>, options: &'b Options) -> Self {
        Self {
            bundle,
            options,
            access_rules: OnceCell::new(),
            examples: OnceCell::new(),
            provided_apis: OnceCell::new(),
            dependencies: OnceCell::new(),
            crd_versions: OnceCell::new(),
            crd_fits: OnceCell::new(),
            packed: OnceCell::new(),
            packed_files: OnceCell::new(),
            object_sizes: OnceCell::new(),
        }
    }

    /// What the operator may do.
    pub(super) fn access_rules(&self) -> &[AccessRule<'b, 'a>] {
        self.access_rules.get_or_init(|| access::read(self.bundle))
    }

    /// The examples of custom resources, if the ClusterServiceVersion has any.
    pub(super) fn examples(&self) -> Option<&Examples<'b>> {
        self.examples.get_or_init(|| Examples::read(self.bundle.csv()?)).as_ref()
    }

    /// The APIs that the ClusterServiceVersion provides, custom resources first. One whose name is not `PLURAL.GROUP`
    /// is left out.
    pub(super) fn provided_apis(&self) -> &[ProvidedApi] {
        self.provided_apis.get_or_init(|| {
            let Some(csv) = self.bundle.csv() else { return Vec::new() };
            let spec = &csv.typed.spec;
            let resources = spec.custom_resource_definitions.owned.iter().enumerate();
            let resources = resources.filter(|(_, owned)| owned.group().is_some()).map(|(index, owned)| {
                ProvidedApi { gvk: owned.gvk(), list: "customresourcedefinitions", index }
            });
            let services = spec.api_service_definitions.owned.iter().enumerate();
            let services = services.map(|(index, owned)| ProvidedApi {
                gvk: GroupVersionKind {
                    group: owned.group.clone(),
                    version: owned.version.clone(),
                    kind: owned.kind.clone(),
                },
                list: "apiservicedefinitions",
                index,
            });
            resources.chain(services).collect()
        })
    }

    /// The dependencies in `metadata/`.
    pub(super) fn dependencies(&self) -> &[Dependency<'b, 'a>] {
        self.dependencies.get_or_init(|| dependencies::read(self.bundle))
    }

    /// The dependencies of one type that could be read, with their fields.
    pub(super) fn dependencies_of(
        &self,
        kind: &'static str,
    ) -> impl Iterator<Item = (&Dependency<'b, 'a>, Fields<'b, 'a>)> {
        let all = self.dependencies().iter().filter(move |dependency| dependency.kind == kind);
        all.filter_map(|dependency| Some((dependency, *dependency.value.as_ref().ok()?)))
    }

    /// Every version of every CRD, in the order of the files.
    pub(super) fn crd_versions(&self) -> &[CrdVersion<'b, 'a>] {
        self.crd_versions.get_or_init(|| self.bundle.crds().flat_map(crd_versions).collect())
    }

    /// Every CRD of a known API version, and how it fits its type.
    pub(super) fn crd_fits(&self) -> &[(Object<'b, 'a>, Fit)] {
        self.crd_fits.get_or_init(|| {
            let known = self.bundle.crds().filter(|crd| matches!(crd.api_version(), crd::V1 | crd::V1BETA1));
            known.map(|object| (object, fit::fit(object.root, Crd::from(object).of()))).collect()
        })
    }

    /// The CRDs that Kubernetes can read.
    pub(super) fn readable_crds(&self) -> impl Iterator<Item = (Object<'b, 'a>, Crd<'b, 'a>)> {
        let fits = self.crd_fits().iter().filter(|(_, fit)| fit.misfits.is_empty());
        fits.map(|(object, _)| (*object, Crd::from(*object)))
    }

    /// The manifests that may be too large when packed, and what each takes then.
    pub(super) fn packed_files(&self) -> &[(&'b File<'a>, u64)] {
        self.packed_files.get_or_init(|| {
            let large = |file: &&File<'_>| most_packed(file.source.text().len() as u64) > MAX_PACKED_BYTES;
            self.bundle.manifests().filter(large).map(|file| (file, packed(file.source.text()))).collect()
        })
    }

    /// Every object of the manifests, and what it takes in JSON.
    pub(super) fn object_sizes(&self) -> &[(Object<'b, 'a>, u64)] {
        self.object_sizes
            .get_or_init(|| self.bundle.objects().map(|object| (object, object.root.json_bytes())).collect())
    }

    /// The packed size of the manifests, where it is above so many bytes, [`NEAR_MAX_PACKED_BYTES`] at least.
    pub(super) fn packed_above(&self, bytes: u64) -> Option<&Packed<'b>> {
        let packed = self.packed.get_or_init(|| {
            let files = || self.bundle.files.iter().filter(|file| file.role == Role::Manifest);
            if is_surely_small(files().map(|file| file.source.text())) {
                return None;
            }
            let sizes = files().map(|file| (file.path, packed(file.source.text())));
            let zero = Packed { total: 0, largest: ("", 0) };
            Some(sizes.fold(zero, |sum, (path, size)| Packed {
                total: sum.total + size,
                largest: if size > sum.largest.1 { (path, size) } else { sum.largest },
            }))
        });
        packed.as_ref().filter(|packed| packed.total > bytes)
    }

    /// Whether OLM's tools give up when they cannot read this file.
    pub(super) fn must_be_readable(&self, file: &File<'_>) -> bool {
        file.is_manifest()
            || file.path == "metadata/annotations.yaml"
            || file.is_metadata() && self.bundle.annotations().is_none()
    }

    /// Whether every manifest could be read, so that what was not found is not there.
    pub(super) fn all_manifests_are_read(&self) -> bool {
        self.bundle.manifests().all(File::is_read)
    }
}

fn crd_versions<'b, 'a>(crd: Object<'b, 'a>) -> impl Iterator<Item = CrdVersion<'b, 'a>> {
    let view = Crd::from(crd);
    let gvk = |version: &str| GroupVersionKind {
        group: view.group().into_owned(),
        version: version.to_owned(),
        kind: view.kind().into_owned(),
    };
    let mut versions: Vec<_> =
        view.versions().into_iter().map(|v| (gvk(&v.name), v.span, v.is_served())).collect();
    // An old CRD that names no version at all counts as one without a name.
    if versions.is_empty() && crd.api_version() == crd::V1BETA1 {
        versions.push((gvk(""), crd.root.locate(steps!("spec", "version")), true));
    }
    versions.into_iter().map(move |(gvk, span, served)| CrdVersion { gvk, crd, span, served })
}

/// Whether texts stay below [`NEAR_MAX_PACKED_BYTES`] without a doubt. Most bundles do when nothing is compressed; of others
/// the largest texts are compressed in haste, until what is left cannot matter.
fn is_surely_small<'t>(texts: impl Iterator<Item = &'t str>) -> bool {
    let mut texts: Vec<_> = texts.collect();
    texts.sort_by_key(|text| std::cmp::Reverse(text.len()));
    let mut most: u64 = texts.iter().map(|text| most_packed(text.len() as u64)).sum();
    for text in texts {
        if most <= NEAR_MAX_PACKED_BYTES {
            return true;
        }
        // Haste costs bytes, so this is more than the text will take; a twentieth is left for the exception.
        let hasty = packed_with(text, Compression::fast());
        most = most - most_packed(text.len() as u64) + hasty + hasty / 20;
    }
    most <= NEAR_MAX_PACKED_BYTES
}

/// The most that so many bytes can take when packed: gzip stores what it cannot shrink.
fn most_packed(bytes: u64) -> u64 {
    base64_len(bytes + bytes / 1000 + 64)
}

/// What a text takes in base64 of gzip.
pub(super) fn packed(text: &str) -> u64 {
    packed_with(text, Compression::default())
}

fn packed_with(text: &str, compression: Compression) -> u64 {
    let mut encoder = GzEncoder::new(Count(0), compression);
    let counted = encoder.write_all(text.as_bytes()).and_then(|()| encoder.finish());
    // Counting cannot fail.
    counted.map_or(0, |Count(bytes)| base64_len(bytes))
}

fn base64_len(bytes: u64) -> u64 {
    bytes.div_ceil(3) * 4
}

/// Counts what is written to it.
struct Count(u64);

impl Write for Count {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl File<'_> {
    /// Whether the file is text, and its first document YAML.
    pub(super) fn is_read(&self) -> bool {
        matches!(self.content, Content::Text(_)) && !matches!(self.documents.first(), Some(Err(_)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_holds_for_what_does_not_compress() {
        let mut state = 1u64;
        let mut random = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            char::from((state >> 57) as u8)
        };
        for length in [0, 1, 100, 70_000, 300_000] {
            let text: String = std::iter::repeat_with(&mut random).take(length).collect();
            assert!(packed(&text) <= most_packed(length as u64), "{length}");
        }
    }
}
