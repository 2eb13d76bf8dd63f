//! What catalogs and bundles hold: read where the cluster reads it, or where the command line says.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};

use olmkit_catalog::fbc::Catalog;
use olmkit_catalog::load::CatalogFiles;
use serde_json::Value;

use super::bundles::manifests;
use super::stock::Stocked;
use super::{Target, VerbContext};
use crate::exit::{Exit, Failure};
use crate::files;
use crate::image::{Access, LoadError, Patience, Place, PlaceError, RegistryError, present};
use crate::input::Input;
use crate::lifecycle::api::{CatalogSource, Object};
use crate::lifecycle::engine::{Catalogs, ContentError};
use crate::lifecycle::offer::{Offer, OfferedBundle};
use crate::lifecycle::rollback::Archive;

/// Offers by the image or address that a CatalogSource names. What was read once is not read again.
pub(super) struct Sources {
    /// Read instead of what CatalogSources name.
    pub(super) instead: Option<Input>,
    /// Images of bundles that a simulated registry does not have.
    pub(super) missing: BTreeSet<String>,
    /// How registries are reached.
    pub(super) access: Access,
    /// Bundles by name, where they are at hand.
    pub(super) bundles: BTreeMap<String, Vec<Value>>,
    pub(super) read: Mutex<BTreeMap<String, Arc<Offer>>>,
    /// Whether the registries are simulated, and nothing is asked of real ones.
    pub(super) simulated: bool,
    /// The same access with less patience, for questions about images.
    pub(super) quick: OnceLock<Access>,
    /// Images that were looked for, or that are known to be there.
    pub(super) asked: Mutex<BTreeSet<String>>,
}

/// How long a registry is asked about images at most: what it does not say keeps nobody from installing.
pub(super) const PATIENCE: Patience = Patience {
    attempts: 1,
    first_pause: Duration::ZERO,
    longest_pause: Duration::ZERO,
    silence: Duration::from_secs(10),
    connect: Duration::from_secs(5),
};

/// A CatalogSource that is served from an address: nobody but OLM can read it.
#[derive(Debug, thiserror::Error)]
#[error("it is served from `{0}`, not from an image")]
struct NoImage(String);

/// A failure as the cause of another one.
#[derive(Debug)]
pub(super) struct FailureSource(pub(super) Failure);

impl std::fmt::Display for FailureSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl Error for FailureSource {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.error.source()
    }
}

/// What `--catalog-from` takes.
pub(super) const CATALOG_FROM: &str = "--catalog-from takes a directory or a file with a catalog, or an image such as `registry.example.com/team/catalog:v1`";

/// Refuses a catalog that was named and is not on disk, before anything else is done.
///
/// # Errors
/// It is not there.
pub(super) fn exists(catalog: &Input) -> Result<(), Failure> {
    match catalog {
        Input::Disk(path) if !path.exists() => {
            Err(Failure::incomplete(format!("there is no catalog at `{}`", path.display()))
                .help(CATALOG_FROM))
        }
        _ => Ok(()),
    }
}

/// Refuses what was named as a catalog and offers nothing.
///
/// # Errors
/// It has no package.
pub(super) fn offers_something(catalog: &Input, offer: &Offer, help: &str) -> Result<(), Failure> {
    match offer.packages.is_empty() {
        true => Err(Failure::failed(format!("`{catalog}` is not a catalog: it has no package")).help(help)),
        false => Ok(()),
    }
}

impl Sources {
    /// The catalogs of a real cluster, with the one that is made for a single installation.
    pub(super) fn of(target: &Target, verb_context: &VerbContext<'_>) -> Self {
        let mut sources = Self::new(target.catalog_from.clone(), verb_context.access.clone());
        if let Some(made) = verb_context.made {
            sources.keep(&made.catalog, &made.text);
            sources.bundles.extend(made.pushed().bundles);
        }
        sources
    }

    pub(super) fn new(instead: Option<Input>, access: Access) -> Self {
        Self {
            instead,
            missing: BTreeSet::new(),
            access,
            bundles: BTreeMap::new(),
            read: Mutex::default(),
            simulated: false,
            quick: OnceLock::new(),
            asked: Mutex::default(),
        }
    }

    /// With what a registry was given that nodes ask first, and nobody here.
    pub(super) fn with(mut self, stocked: &Stocked) -> Self {
        self.bundles.extend(stocked.bundles.clone());
        self.asked.get_mut().unwrap_or_else(PoisonError::into_inner).extend(stocked.images.clone());
        self
    }

    /// Asks a registry whether it has an image.
    fn present(&self, image: &str) -> Result<(), ContentError> {
        let unreadable = |source: Box<dyn Error + Send + Sync>| ContentError::Unreadable {
            reference: image.to_owned(),
            source,
        };
        let place = registry_image(image).map_err(|error| unreadable(error.into()))?;
        // The access remembers registries that did not answer, and asks them once.
        let access = self.quick.get_or_init(|| self.access.with_patience(PATIENCE));
        let answer = present(&[place], access);
        let error = match answer.map(|mut answers| answers.pop()) {
            Ok(Some(Ok(())) | None) => return Ok(()),
            Ok(Some(Err(LoadError::Registry { source, .. }))) => *source,
            Ok(Some(Err(error))) => return Err(unreadable(error.into())),
            Err(error) => error,
        };
        match error {
            RegistryError::NotFound { .. } => Err(ContentError::NotFound { reference: image.to_owned() }),
            RegistryError::Interrupted => Err(ContentError::Interrupted),
            error => Err(unreadable(error.into())),
        }
    }

    pub(super) fn offer_from(&self, name: &str, input: &Input) -> Result<Arc<Offer>, Failure> {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(offer) = read.get(name) {
            return Ok(Arc::clone(offer));
        }
        let files = input.catalog(&self.access)?;
        let offer = Arc::new(Offer::of(&Catalog::parse(&files)));
        read.insert(name.to_owned(), Arc::clone(&offer));
        Ok(offer)
    }

    /// Takes a catalog at hand for that of an image.
    pub(super) fn keep(&self, image: &str, catalog: &str) -> Arc<Offer> {
        let files = CatalogFiles::from_text(image, catalog);
        let offer = Arc::new(Offer::of(&Catalog::parse(&files)));
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        read.insert(image.to_owned(), Arc::clone(&offer));
        offer
    }
}

impl Catalogs for Sources {
    fn offer(&self, source: &Object<CatalogSource>) -> Result<Arc<Offer>, Box<dyn Error + Send + Sync>> {
        if let Some(input) = &self.instead {
            let offer = self.offer_from(&input.to_string(), input).and_then(|offer| {
                offers_something(input, &offer, CATALOG_FROM)?;
                Ok(offer)
            });
            return Ok(offer.map_err(|failure| {
                // It is named already.
                let help = failure.help.clone().or(CATALOG_FROM);
                FailureSource(Failure { help, ..failure })
            })?);
        }
        if source.spec.image.is_empty() {
            return Err(Box::new(NoImage(source.source().to_owned())));
        }
        // What a simulated cluster serves was read when it was set up.
        let read = self.read.lock().unwrap_or_else(PoisonError::into_inner).get(&source.spec.image).cloned();
        if let Some(offer) = read {
            return Ok(offer);
        }
        // The cluster pulls it from a registry, whatever is on this disk; without a host, from where its container runtime looks.
        let input = Input::Image(registry_image(&source.spec.image)?);
        Ok(self.offer_from(&source.spec.image, &input).map_err(FailureSource)?)
    }

    fn manifests(&self, name: &str, bundle: &OfferedBundle) -> Result<Vec<Value>, ContentError> {
        if !bundle.manifests.is_empty() {
            return Ok(bundle.manifests.clone());
        }
        if let Some(found) = self.bundles.get(name) {
            return Ok(found.clone());
        }
        if self.simulated || self.missing.contains(&bundle.image) {
            return Err(ContentError::NotFound { reference: bundle.image.clone() });
        }
        self.present(&bundle.image)?;
        let unreadable = |source: Box<dyn Error + Send + Sync>| ContentError::Unreadable {
            reference: bundle.image.clone(),
            source,
        };
        let place = registry_image(&bundle.image).map_err(|error| unreadable(error.into()))?;
        let input = Input::Image(place);
        manifests(&input, &self.access).map_err(|failure| match failure.exit {
            Exit::Interrupted => ContentError::Interrupted,
            _ => unreadable(failure.error),
        })
    }

    fn image(&self, reference: &str) -> Result<(), ContentError> {
        let is_new = self.asked.lock().unwrap_or_else(PoisonError::into_inner).insert(reference.to_owned());
        if self.simulated || !is_new { Ok(()) } else { self.present(reference) }
    }

    fn help_missing(&self) -> &'static str {
        if self.simulated {
            return "push it first, or put the bundle into the directory that --bundles-from names";
        }
        "push it first; if the nodes pull it from elsewhere, such as a mirror, pass --accept-missing-images"
    }
}

/// An image as the cluster names it: in a registry, Docker Hub where it names none.
pub(super) fn registry_image(name: &str) -> Result<Place, PlaceError> {
    format!("docker://{}", name.trim_start_matches("docker://")).parse()
}

/// Where a rollback keeps custom resources.
pub(super) struct Backup<'b> {
    pub(super) directory: &'b Path,
    pub(super) dry_run: bool,
    /// The cluster that they are of.
    pub(super) cluster: &'b str,
}

impl Archive for Backup<'_> {
    fn check(&self) -> Result<(), Box<dyn Error + Send + Sync>> {
        let fail = |source| files::FileError::Write { path: self.directory.to_owned(), source };
        // What is no directory is found out by a file in it.
        if std::fs::metadata(self.directory).is_ok_and(|found| !found.is_dir()) {
            return Err(fail(std::io::ErrorKind::NotADirectory.into()).into());
        }
        Ok(files::writable(&self.directory.join("backup.yaml")).map_err(fail)?)
    }

    fn keep(&self, name: &str, objects: &[Value]) -> Result<String, Box<dyn Error + Send + Sync>> {
        let now = httpdate::fmt_http_date(SystemTime::now());
        let cluster: String = self.cluster.chars().filter(|letter| !letter.is_control()).collect();
        let head = format!("# {name}, from {cluster}, {now}\n");
        let mut text = String::new();
        for object in objects {
            text += "---\n";
            text += &olmkit_bundle::yaml::write::to_string(object)?;
        }
        // An earlier copy may be the only one of something.
        let numbered = (2..1_000).map(|number| format!("{name}-{number}.yaml"));
        let mut paths =
            std::iter::once(format!("{name}.yaml")).chain(numbered).map(|name| self.directory.join(name));
        let is_free = |path: &PathBuf| match std::fs::read(path) {
            Ok(found) => {
                let end = found.iter().position(|byte| *byte == b'\n').map_or(0, |end| end + 1);
                let (first, rest) = found.split_at(end);
                let from = format!("# {name}, from {cluster}, ");
                first.starts_with(from.as_bytes()) && rest == text.as_bytes()
            }
            Err(error) => error.kind() == std::io::ErrorKind::NotFound,
        };
        let path = paths.find(is_free).ok_or("too many backups in the directory")?;
        if !self.dry_run {
            std::fs::create_dir_all(self.directory)?;
            files::write(&path, (head + &text).as_bytes())?;
        }
        Ok(path.display().to_string())
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::net::{TcpListener, TcpStream};

    use serde_json::json;

    use super::*;

    /// A registry that answers questions about manifests like this; its host.
    fn registry(answer: &'static str) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let host = listener.local_addr().unwrap().to_string();
        let serve = move |mut stream: TcpStream| {
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
            let Some(first) = lines.next() else { return };
            let _ = lines.take_while(|line| !line.is_empty()).count();
            let head = if first.contains("/manifests/moved") || !first.contains("/manifests/") {
                "200 OK\r\nContent-Type: application/vnd.oci.image.manifest.v1+json\r\nDocker-Content-Digest: sha256:\
                 0000000000000000000000000000000000000000000000000000000000000000"
            } else {
                answer
            };
            let _ = write!(stream, "HTTP/1.1 {head}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        };
        std::thread::spawn(move || listener.incoming().flatten().for_each(serve));
        host
    }

    /// What is said of an image: nothing when it is there.
    fn asked(sources: &Sources, image: &str) -> String {
        match sources.present(image) {
            Ok(()) => String::new(),
            Err(ContentError::NotFound { .. }) => "not found".into(),
            Err(ContentError::Unreadable { source, .. }) => {
                let cause = source.source().map(|cause| format!(": {cause}")).unwrap_or_default();
                format!("unreadable: {source}{cause}")
            }
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn whether_an_image_is_present() {
        let sources = Sources::new(None, Access::default());
        let ask = |answer| asked(&sources, &format!("{}/team/app:v1", registry(answer)));
        assert_eq!(
            ask(
                "200 OK\r\nContent-Type: application/vnd.oci.image.index.v1+json\r\nDocker-Content-Digest: sha256:\
                 1111111111111111111111111111111111111111111111111111111111111111"
            ),
            ""
        );
        assert_eq!(ask("307 There\r\nLocation: /v2/team/app/manifests/moved"), "");
        assert_eq!(ask("404 Nothing"), "not found");
        let refused = ask("401 Who\r\nWWW-Authenticate: Basic realm=\"x\"");
        assert!(refused.starts_with("unreadable: ") && refused.contains("not logged in"), "{refused}");
        // Nobody listens there; it is asked once, and remembered.
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let host = listener.local_addr().unwrap().to_string();
        drop(listener);
        let unreachable = asked(&sources, &format!("docker://{host}/team/app:v1"));
        assert!(unreachable.starts_with("unreadable: ") && unreachable.contains(&host), "{unreachable}");
        assert_eq!(asked(&sources, &format!("{host}/team/other:v1")), unreachable);
        assert!(asked(&sources, "Not An Image").starts_with("unreadable: "));
    }

    #[test]
    fn an_image_of_a_catalog_source_is_never_a_path() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().to_str().unwrap();
        assert!(registry_image(path).is_err());
        for (name, image) in [
            ("catalog", "docker.io/library/catalog:latest"),
            ("src", "docker.io/library/src:latest"),
            ("team/app:v1", "docker.io/team/app:v1"),
            ("docker://quay.io/team/app", "quay.io/team/app:latest"),
        ] {
            assert_eq!(registry_image(name).unwrap().to_string(), image);
        }
    }

    #[test]
    fn a_second_backup_leaves_the_first_alone() {
        let directory = tempfile::tempdir().unwrap();
        let backup = Backup { directory: directory.path(), dry_run: false, cluster: "team" };
        let keep = |size: u64| {
            let place = backup.keep("ns-demo", &[json!({"kind": "Demo", "size": size})]).unwrap();
            Path::new(&place).file_name().unwrap().to_string_lossy().into_owned()
        };
        assert_eq!(
            [keep(1), keep(2), keep(2), keep(1), keep(3)],
            ["ns-demo.yaml", "ns-demo-2.yaml", "ns-demo-2.yaml", "ns-demo.yaml", "ns-demo-3.yaml"]
        );
        let first = std::fs::read_to_string(directory.path().join("ns-demo.yaml")).unwrap();
        assert!(first.contains("size: 1"), "{first}");
        assert!(first.starts_with("# ns-demo, from team, "), "{first}");
        // The same of another cluster is a file of its own.
        let other = Backup { directory: directory.path(), dry_run: false, cluster: "other" };
        let place = other.keep("ns-demo", &[json!({"kind": "Demo", "size": 1})]).unwrap();
        assert!(place.ends_with("ns-demo-4.yaml"), "{place}");
    }
}
