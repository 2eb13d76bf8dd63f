//! `catalog resolve`: what OLM would install next.

use std::path::PathBuf;
use std::str::FromStr;

use olmkit_bundle::finding::{Level, Place};
use olmkit_bundle::suggest::did_you_mean;
use olmkit_bundle::yaml;
use olmkit_catalog::fbc::Catalog;
use olmkit_catalog::resolve::{self, Existing, Offer, Question, ResolveError, resolve};
use olmkit_catalog::validate::validate;
use serde_json::Value;

use crate::exit::Failure;
use crate::files;
use crate::image::Access;
use crate::input::Input;
use olmkit_catalog::resolve::{Install, Resolution};

/// A namespace, as the command line describes it.
#[derive(Debug)]
pub struct Request {
    /// The catalogs.
    pub catalogs: Vec<NamedCatalog>,
    /// The Subscriptions.
    pub subscriptions: Vec<Asked>,
    /// Files with its ClusterServiceVersions.
    pub existing: Vec<PathBuf>,
}

/// A catalog: `NAME=CATALOG[,priority=N]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedCatalog {
    name: String,
    input: Input,
    priority: i32,
}

/// A Subscription: `PACKAGE[,channel=C][,catalog=NAME][,startingCSV=X][,installed=CSV]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    package: String,
    channel: Option<String>,
    catalog: Option<String>,
    starting_csv: Option<String>,
    installed: Option<String>,
}

impl FromStr for NamedCatalog {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, rest) = text.split_once('=').ok_or("expected `NAME=CATALOG[,priority=N]`")?;
        let (input, priority) = match rest.rsplit_once(",priority=") {
            Some((input, priority)) => {
                (input, priority.parse().map_err(|_| format!("`{priority}` is not a priority"))?)
            }
            None => (rest, 0),
        };
        if name.is_empty() || input.is_empty() {
            return Err("expected `NAME=CATALOG[,priority=N]`".into());
        }
        let input = input.parse().map_err(|error: crate::image::PlaceError| error.to_string())?;
        Ok(Self { name: name.to_owned(), input, priority })
    }
}

impl FromStr for Asked {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = text.split(',');
        let package = parts.next().filter(|package| !package.is_empty() && !package.contains('='));
        let package =
            package.ok_or("expected `PACKAGE[,channel=C][,catalog=NAME][,startingCSV=X][,installed=CSV]`")?;
        let mut asked = Self { package: package.to_owned(), ..Self::default() };
        for part in parts {
            let (key, value) = part.split_once('=').ok_or_else(|| format!("`{part}` is not `KEY=VALUE`"))?;
            let field = match key {
                "channel" => &mut asked.channel,
                "catalog" => &mut asked.catalog,
                "startingCSV" => &mut asked.starting_csv,
                "installed" => &mut asked.installed,
                other => {
                    let known = ["channel", "catalog", "startingCSV", "installed"];
                    let hint = did_you_mean(other, known).map(|hint| format!("; {hint}")).unwrap_or_default();
                    return Err(format!("a Subscription has no `{other}` here{hint}"));
                }
            };
            // An empty channel is none, as in a Subscription.
            *field = Some(value.to_owned()).filter(|value| !value.is_empty());
        }
        Ok(asked)
    }
}

/// What a resolution leads to.
#[derive(Debug)]
pub struct Resolved {
    /// Which way it goes.
    pub result: Direction,
    /// What is installed.
    pub install: Vec<Install>,
    /// One sentence.
    pub sentence: String,
    /// The constraints that exclude each other.
    pub constraints: Vec<String>,
}

/// Which way a resolution goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Something is installed.
    Install,
    /// Nothing changes.
    Stay,
    /// The constraints exclude each other.
    Unsatisfiable,
    /// OLM cannot tell.
    Error,
}

impl Resolved {
    /// Something is installed, or nothing has to be. `installed` is what there is already.
    pub fn of(resolution: Resolution, installed: &[&str]) -> Self {
        let install = resolution.install;
        let names = |dependency: bool| {
            let wanted = install.iter().filter(move |new| new.dependency == dependency);
            let over = |new: &Install| match &new.replaces {
                Some(old) if installed.contains(&old.as_str()) => format!("`{}` over `{old}`", new.csv),
                _ => format!("`{}`", new.csv),
            };
            wanted.map(over).collect::<Vec<_>>().join(", ")
        };
        let (wanted, needed) = (names(false), names(true));
        let (result, sentence) = match (wanted.as_str(), needed.as_str()) {
            ("", "") => {
                (Direction::Stay, "nothing to install: every Subscription has what it can have".into())
            }
            ("", _) => (Direction::Install, format!("OLM would install {needed}, which is required")),
            (_, "") => (Direction::Install, format!("OLM would install {wanted}")),
            _ => (Direction::Install, format!("OLM would install {wanted}, and {needed}, which is required")),
        };
        Self { result, install, sentence, constraints: Vec::new() }
    }

    /// Constraints exclude each other.
    pub fn unsatisfiable(constraints: Vec<String>) -> Self {
        let sentence = match constraints.len() {
            1 => "OLM would install nothing, since this cannot be met".into(),
            count => format!("OLM would install nothing, since these {count} constraints exclude each other"),
        };
        Self { result: Direction::Unsatisfiable, install: Vec::new(), sentence, constraints }
    }

    /// OLM cannot even try.
    pub fn failed(result: Direction, sentence: String) -> Self {
        Self { result, install: Vec::new(), sentence, constraints: Vec::new() }
    }
}

/// What OLM would install next.
///
/// # Errors
/// When a catalog or a file cannot be read, or a Subscription's catalog is not among those given.
pub fn run(request: &Request, access: &Access) -> Result<Resolved, Failure> {
    let names = || request.catalogs.iter().map(|named| &named.name);
    if let Some(twice) =
        names().enumerate().find_map(|(at, name)| names().skip(at + 1).find(|other| *other == name))
    {
        return Err(Failure::usage(format!("two catalogs are called `{twice}`"))
            .help("give each `--catalog` a unique name"));
    }
    let files: Vec<_> =
        request.catalogs.iter().map(|named| named.input.catalog(access)).collect::<Result<_, _>>()?;
    let parsed: Vec<Catalog<'_>> = files.iter().map(Catalog::parse).collect();
    for (named, catalog) in request.catalogs.iter().zip(&parsed) {
        let findings = validate(catalog);
        let mut errors = findings.iter().filter(|finding| finding.level == Level::Error);
        if let Some(first) = errors.next() {
            let more = match errors.count() {
                0 => String::new(),
                1 => " (and one more error)".into(),
                count => format!(" (and {count} more errors)"),
            };
            let place = first.place.as_ref().map(|place| format!("{place}: ")).unwrap_or_default();
            let sentence =
                format!("the catalog `{}` cannot be served: {place}{}{more}", named.name, first.message);
            return Ok(Resolved::failed(Direction::Error, sentence));
        }
    }
    let subscriptions =
        request.subscriptions.iter().map(|asked| subscription(asked, &request.catalogs, &parsed));
    let subscriptions = subscriptions.collect::<Result<Vec<_>, _>>()?;
    let existing = existing(request, &subscriptions, &parsed)?;
    let offers = request.catalogs.iter().zip(&parsed);
    let offers =
        offers.map(|(named, catalog)| Offer { name: &named.name, catalog, priority: named.priority });
    let question = Question { catalogs: offers.collect(), subscriptions, existing };
    let installed: Vec<&str> = question.existing.iter().map(|existing| existing.name.as_str()).collect();
    Ok(match resolve(&question) {
        Ok(resolution) => Resolved::of(resolution, &installed),
        Err(ResolveError::Unsatisfiable { constraints }) => Resolved::unsatisfiable(constraints),
        Err(error) => {
            let failure = Failure::failed(error);
            let mut sentence = failure.to_string();
            failure.causes().iter().for_each(|cause| sentence += &format!(": {cause}"));
            Resolved::failed(Direction::Error, sentence)
        }
    })
}

/// A Subscription with its catalog: the one it names, else the only one there is, else the only one with the package.
fn subscription(
    asked: &Asked,
    named: &[NamedCatalog],
    parsed: &[Catalog<'_>],
) -> Result<resolve::Subscription, Failure> {
    let has_package = |at: &usize| parsed[*at].packages.iter().any(|package| *package.name == *asked.package);
    let catalog = match &asked.catalog {
        Some(name) => named.iter().position(|named| named.name == *name).ok_or_else(|| {
            let names: Vec<_> = named.iter().map(|named| format!("`{}`", named.name)).collect();
            Failure::usage(format!("there is no catalog `{name}`"))
                .help(format!("there are {}", names.join(", ")))
        })?,
        None if named.len() == 1 => 0,
        None => match (0..parsed.len()).filter(has_package).collect::<Vec<_>>()[..] {
            [only] => only,
            _ => {
                let error = format!("the Subscription to `{}` names no catalog", asked.package);
                return Err(Failure::usage(error).help("add `,catalog=NAME`"));
            }
        },
    };
    Ok(resolve::Subscription {
        package: asked.package.clone(),
        channel: asked.channel.clone(),
        catalog,
        starting_csv: asked.starting_csv.clone(),
        installed: asked.installed.clone(),
    })
}

/// The ClusterServiceVersions of the namespace: those of the files, and those that Subscriptions have installed. What a file
/// leaves open, a catalog knows.
fn existing(
    request: &Request,
    subscriptions: &[resolve::Subscription],
    catalogs: &[Catalog<'_>],
) -> Result<Vec<Existing>, Failure> {
    let mut existing: Vec<Existing> = Vec::new();
    for path in &request.existing {
        let text = files::read_text(path)?;
        let before = existing.len();
        let mut is_list = false;
        for document in yaml::documents(&text) {
            let document = document.map_err(|error| {
                let source = olmkit_bundle::source::Source::new(path.display().to_string(), &text);
                let place = Place::new(&source, error.span);
                Failure::incomplete(error).at(Some(place))
            })?;
            let manifest = document.root.to_json();
            let items = manifest["items"].as_array().cloned();
            // A namespace may have none, which `kubectl` prints as a list without items.
            is_list |= items.as_ref().is_some_and(Vec::is_empty);
            for manifest in items.unwrap_or_else(|| vec![manifest]) {
                existing.extend(of_manifest(&manifest, subscriptions, catalogs));
            }
        }
        if existing.len() == before && !is_list {
            return Err(Failure::usage(format!("`{}` contains no ClusterServiceVersion", path.display()))
                .help("write it with `kubectl get csv -n NAMESPACE -o yaml`"));
        }
    }
    for (asked, installed) in
        subscriptions.iter().filter_map(|asked| Some((asked, asked.installed.as_ref()?)))
    {
        if existing.iter().all(|other| other.name != *installed) {
            let own = catalogs.get(asked.catalog).into_iter();
            let known = own.chain(catalogs).find_map(|catalog| Existing::of_bundle(catalog, installed));
            existing.push(known.unwrap_or_else(|| Existing::of_name(installed)));
        }
    }
    Ok(existing)
}

fn of_manifest(
    manifest: &Value,
    subscriptions: &[resolve::Subscription],
    catalogs: &[Catalog<'_>],
) -> Option<Existing> {
    let name = manifest["metadata"]["name"].as_str().unwrap_or_default();
    let owners = subscriptions.iter().filter(|asked| asked.installed.as_deref() == Some(name));
    let mut found = Existing::of_manifest(manifest, owners.map(|asked| asked.package.as_str()))?;
    if found.properties.is_empty()
        && manifest["spec"]["install"].is_null()
        && let Some(known) = catalogs.iter().find_map(|catalog| Existing::of_bundle(catalog, name))
    {
        found.properties = known.properties;
        if manifest["spec"]["version"].is_null() {
            found.version = known.version;
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_catalogs_and_subscriptions_are_written() {
        let catalog: NamedCatalog = "mine=some/dir,priority=-3".parse().unwrap();
        assert_eq!(
            (catalog.name.as_str(), catalog.input.to_string().as_str(), catalog.priority),
            ("mine", "some/dir", -3)
        );
        let asked: Asked = "redis,channel=stable,installed=redis.v1".parse().unwrap();
        assert_eq!(
            (asked.channel.as_deref(), asked.installed.as_deref()),
            (Some("stable"), Some("redis.v1"))
        );
        assert_eq!("redis,channel=".parse::<Asked>().unwrap().channel, None);
        for bad in ["", "channel=x", "redis,chanel=x", "redis,stable"] {
            assert!(bad.parse::<Asked>().is_err(), "{bad}");
        }
        for bad in ["dir", "=dir", "a=", "a=b,priority=x"] {
            assert!(bad.parse::<NamedCatalog>().is_err(), "{bad}");
        }
    }
}
