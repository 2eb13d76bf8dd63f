//! What OLM v0 would install next in a namespace, by the search that OLM itself makes.
//!
//! OLM resolves all Subscriptions of a namespace together (operator-lifecycle-manager `pkg/controller/registry/resolver`): each
//! asks for one of the bundles that may be next, in order of preference, bundles ask for bundles that meet their
//! requirements, and two of a package or of the same API conflict. The order of preference decides, so it is
//! OLM's own: `namespace` knows what there is and in which order, `requirements` what bundles ask of each other, `problem`
//! puts it together, `search` finds the first answer in that order, or which constraints exclude each other, and `proof`
//! says those in words.
//!
//! Start at [`resolve`].

mod existing;
mod namespace;
mod problem;
mod proof;
mod search;

use olmkit_bundle::cel::constraint::EvaluationError;
use olmkit_bundle::version::Version;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value as Json;

use crate::fbc::Catalog;
use namespace::{Home, Namespace};
use problem::Problem;
use search::Answer;

/// A namespace as OLM's resolver sees it.
#[derive(Debug, Default)]
pub struct Question<'q, 'a> {
    /// The catalogs it may install from, each sound.
    pub catalogs: Vec<Offer<'q, 'a>>,
    /// Its Subscriptions.
    pub subscriptions: Vec<Subscription>,
    /// Its ClusterServiceVersions, copied ones left out.
    pub existing: Vec<Existing>,
}

/// A catalog that a namespace may install from.
#[derive(Debug)]
pub struct Offer<'q, 'a> {
    /// The name of its CatalogSource.
    pub name: &'q str,
    /// What is in it.
    pub catalog: &'q Catalog<'a>,
    /// Of two catalogs that meet a requirement, the one with the higher priority does.
    pub priority: i32,
}

/// What matters of a Subscription.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subscription {
    /// The package.
    pub package: String,
    /// The channel; any when there is none.
    pub channel: Option<String>,
    /// The catalog, by its number in [`Question::catalogs`].
    pub catalog: usize,
    /// What to install first.
    pub starting_csv: Option<String>,
    /// The ClusterServiceVersion that it has installed, if that exists.
    pub installed: Option<String>,
}

/// A ClusterServiceVersion of the namespace.
#[derive(Clone, Debug, PartialEq)]
pub struct Existing {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: Version,
    /// Its properties, type and value of each.
    pub properties: Vec<(String, Json)>,
}

/// What one resolution leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolution {
    /// The bundles to install, by name.
    pub install: Vec<Install>,
    /// The Subscriptions that have what they can have, by their numbers.
    pub settled: Vec<usize>,
}

/// A bundle to install.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Install {
    /// The ClusterServiceVersion.
    pub csv: String,
    /// Its package.
    pub package: String,
    /// The channel it is taken from.
    pub channel: String,
    /// The catalog it is taken from.
    pub catalog: String,
    /// The ClusterServiceVersion that it takes over from, if any.
    pub replaces: Option<String>,
    /// Whether no Subscription asked for it.
    pub dependency: bool,
}

/// Why there is no resolution.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResolveError {
    /// Nothing meets all constraints: those, as few as exclude each other, in words.
    #[error("no set of bundles satisfies all constraints")]
    Unsatisfiable {
        /// The constraints, in the order in which one leads to another.
        constraints: Vec<String>,
    },
    /// The bundles of a channel have no order.
    #[error("the channel `{channel}` of `{package}` cannot be followed: {why}")]
    Channel {
        /// The package.
        package: String,
        /// The channel.
        channel: String,
        /// What is wrong with it.
        why: String,
    },
    /// A requirement cannot be read.
    #[error("`{bundle}` requires something that cannot be read: {why}")]
    Requirement {
        /// The bundle.
        bundle: String,
        /// What is wrong with it.
        why: String,
    },
    /// It is not known whether a bundle meets a requirement.
    #[error("an expression that `{bundle}` requires to hold cannot be evaluated")]
    Expression {
        /// The bundle.
        bundle: String,
        /// Why.
        #[source]
        source: EvaluationError,
    },
    /// The search takes too long.
    #[error("too many combinations of bundles to search")]
    TooHard,
}

/// What OLM would install next.
///
/// ```
/// use olmkit_catalog::{fbc::Catalog, load::CatalogFiles, resolve::{Offer, Question, Subscription, resolve}};
/// let files = CatalogFiles::from_text("catalog.yaml", "
/// {schema: olm.package, name: redis, defaultChannel: stable}
/// ---
/// {schema: olm.channel, package: redis, name: stable, entries: [{name: redis.v1}, {name: redis.v2, replaces: redis.v1}]}
/// ---
/// {schema: olm.bundle, package: redis, name: redis.v1, properties: [{type: olm.package, value: {packageName: redis, version: 1.0.0}}]}
/// ---
/// {schema: olm.bundle, package: redis, name: redis.v2, properties: [{type: olm.package, value: {packageName: redis, version: 2.0.0}}]}");
/// let catalog = Catalog::parse(&files);
/// let subscription = Subscription { package: "redis".into(), ..Subscription::default() };
/// let catalogs = vec![Offer { name: "mine", catalog: &catalog, priority: 0 }];
/// let question = Question { catalogs, subscriptions: vec![subscription], ..Question::default() };
/// assert_eq!(resolve(&question).unwrap().install[0].csv, "redis.v2");
/// ```
///
/// # Errors
/// [`ResolveError`], for any of the Subscriptions: OLM does nothing for the others either.
pub fn resolve(question: &Question<'_, '_>) -> Result<Resolution, ResolveError> {
    let namespace = Namespace::new(question)?;
    let problem = Problem::new(question, &namespace)?;
    let chosen = match search::search(&problem).ok_or(ResolveError::TooHard)? {
        Answer::Chosen(chosen) => chosen,
        Answer::Excluded(constraints) => {
            return Err(ResolveError::Unsatisfiable {
                constraints: proof::explain_conflict(question, &problem, &constraints),
            });
        }
    };
    let mut install = Vec::new();
    for variable in chosen {
        let Some(entry) = problem.entry_of(variable) else { continue };
        let Home::Catalog(catalog) = entry.home else { continue };
        let asking: Vec<&Subscription> = question
            .subscriptions
            .iter()
            .filter(|asking| {
                asking.package == entry.package
                    && asking.catalog == catalog
                    && asking.channel.as_ref().is_none_or(|channel| *channel == entry.channel)
            })
            .collect();
        let has_it = |asking: &&Subscription| {
            asking.installed.as_deref() == Some(entry.name) && namespace.existing(entry.name).is_some()
        };
        if !asking.is_empty() && asking.iter().all(has_it) {
            continue;
        }
        let replaces = problem.taken_over(variable).unwrap_or(entry.replaces);
        install.push(Install {
            csv: entry.name.to_owned(),
            package: entry.package.to_owned(),
            channel: entry.channel.to_owned(),
            catalog: question.catalogs.get(catalog).map_or("", |offer| offer.name).to_owned(),
            replaces: (!replaces.is_empty()).then(|| replaces.to_owned()),
            dependency: asking.is_empty(),
        });
    }
    install.sort_by(|a, b| (&a.csv, &a.catalog).cmp(&(&b.csv, &b.catalog)));
    let gets_something =
        |asking: &Subscription| install.iter().any(|new| !new.dependency && new.package == asking.package);
    let settled = question.subscriptions.iter().enumerate().filter(|(_, asking)| !gets_something(asking));
    Ok(Resolution { settled: settled.map(|(at, _)| at).collect(), install })
}

#[cfg(test)]
mod tests;
