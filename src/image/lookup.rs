//! What names lead to, many at once and without the layers: the digest behind a tag, the platforms behind either.

use oci_spec::distribution::Reference;

use super::digest::Digest;
use super::manifest::Root;
use super::place::Place;
use super::platform::Platform;
use super::registry::{self, Access, RegistryError};
use super::store::LoadError;

/// One answer for each name that was asked for.
pub type Answers<T> = Vec<Result<T, LoadError>>;

/// The digest that each place leads to, in their order. A registry is asked for the head of the manifest only, which
/// does not count as a pull; a reference with a digest is answered by that digest, unasked.
///
/// ```no_run
/// use olmkit::image::{Access, Place, digests};
///
/// let image: Place = "quay.io/example/operator:v1.0.0".parse()?;
/// for digest in digests(&[image], &Access::default())? {
///     let pinned = format!("quay.io/example/operator@{}", digest?);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// Somebody interrupted, or the time is over. What is wrong with one image is its own answer.
pub fn digests(places: &[Place], access: &Access) -> Result<Answers<Digest>, RegistryError> {
    each(places, access, |references| access.digests(references), |root| root.digest())
}

/// Whether there is an image at each place, in their order: an error says that there is none, or why that cannot be found
/// out. A registry is asked for the head of the manifest only, also where the reference has a digest.
///
/// # Errors
/// As [`digests`].
pub fn present(places: &[Place], access: &Access) -> Result<Answers<()>, RegistryError> {
    each(places, access, |references| access.present(references), |_| ())
}

/// The platforms that each place has an image for, sorted, in the order of the places. Those of an index are what the
/// index says, by which clusters choose; that of a single image is what its configuration says. Attestations are no
/// images.
///
/// ```no_run
/// use olmkit::image::{Access, Place, platforms};
///
/// let image: Place = "quay.io/example/operator:v1.0.0".parse()?;
/// for found in platforms(&[image], &Access::default())? {
///     let has_arm = found?.iter().any(|platform| platform.architecture() == "arm64");
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// As [`digests`].
pub fn platforms(places: &[Place], access: &Access) -> Result<Answers<Vec<Platform>>, RegistryError> {
    let sorted = |mut platforms: Vec<Platform>| {
        platforms.sort();
        platforms.dedup();
        platforms
    };
    let found = each(places, access, |references| access.platforms(references), |root| root.platforms())?;
    Ok(found.into_iter().map(|platforms| platforms.map(sorted)).collect())
}

/// Asks registries for all that is there at once, and looks at the rest one by one.
fn each<T>(
    places: &[Place],
    access: &Access,
    ask: impl FnOnce(&[&Reference]) -> Result<Vec<Result<T, registry::LoadError>>, RegistryError>,
    look: impl Fn(&Root) -> T,
) -> Result<Answers<T>, RegistryError> {
    let references: Vec<_> = places.iter().filter_map(Place::reference).collect();
    let mut asked = ask(&references)?.into_iter();
    let answer =
        |place: &Place| match place.reference().and_then(|reference| Some((reference, asked.next()?))) {
            Some((reference, answer)) => answer.map_err(|error| LoadError::of(reference, error)),
            None => place.load(access).map(|root| look(&root)),
        };
    Ok(places.iter().map(answer).collect())
}
