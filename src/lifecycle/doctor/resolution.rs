//! What OLM could not resolve. The condition `ResolutionFailed` goes stale, so it counts only while the objects and names in it
//! are still as it says; and during an upgrade it complains of the two versions that are being exchanged, which means nothing.

use serde_json::json;

use super::catalogs;
use super::codes;
use super::doc::{Cond, Doc};
use super::observation::Observation;
use super::{Cause, Repair, unpack, versions};
use crate::shell::command;

/// How long OLM may take to resolve again after a catalog was connected.
const RESOLVING: i64 = 60_000;

/// The failure of a Subscription's resolution, if it is one and fresh.
pub(super) fn fault(seen: &Observation, subscription: Doc<'_>) -> Option<Cause> {
    let found = subscription.holding("ResolutionFailed")?;
    match found.reason {
        "ErrorPreventedResolution" => prevented(seen, subscription, found),
        _ => unsatisfiable(seen, subscription, found),
    }
}

/// An error of a catalog: one that does not answer keeps all of a namespace from being resolved.
fn prevented(seen: &Observation, subscription: Doc<'_>, found: Cond<'_>) -> Option<Cause> {
    let Some((namespace, name)) = catalog_of(found.message) else {
        return general(seen, subscription, found);
    };
    let catalog = seen.get("CatalogSource", namespace, name)?;
    let mut cause = catalogs::fault(seen, catalog)?;
    cause =
        cause.shown(subscription, "status.conditions[ResolutionFailed].message", found.message, found.since);
    if (namespace, name) != (subscription.text("/spec/sourceNamespace"), subscription.text("/spec/source")) {
        cause = cause.repair(
            command!("kubectl -n {} delete catalogsource.operators.coreos.com {}", namespace, name),
            "instead, if nothing is installed from it: one catalog that does not answer keeps OLM from resolving anything in every namespace that sees it",
        );
    }
    Some(cause)
}

/// Namespace and name of the CatalogSource that does not answer, if OLM complains of one.
pub(super) fn catalog_of(message: &str) -> Option<(&str, &str)> {
    let after = |phrase: &str| {
        let (_, rest) = message.split_once(phrase)?;
        rest.split_once(':').map_or(rest, |(named, _)| named).split_once('/')
    };
    // Older versions of OLM name the namespace last.
    let older =
        || after("failed to populate resolver cache from source ").map(|(name, namespace)| (namespace, name));
    after("error using catalogsource ").or_else(older)
}

/// Something that OLM says and that nobody here knows.
fn general(seen: &Observation, subscription: Doc<'_>, found: Cond<'_>) -> Option<Cause> {
    // Errors of the first minute pass.
    if seen.age(subscription.created()) < RESOLVING {
        return None;
    }
    let name = subscription.name();
    let text = format!(
        "OLM cannot resolve the Subscription `{name}` ({}): {}",
        found.reason,
        super::pods::shorten(found.message)
    );
    Some(
        Cause::new(&codes::RESOLUTION_FAILED, subscription.reference(), text)
            .shown(subscription, "status.conditions[ResolutionFailed].message", found.message, found.since)
            .repair(
                command!("kubectl -n {} get subscriptions.operators.coreos.com,clusterserviceversions.operators.coreos.com", subscription.namespace()),
                "lists the Subscriptions: OLM resolves all of a namespace together, so moving one to a separate namespace often helps",
            ),
    )
}

fn unsatisfiable(seen: &Observation, subscription: Doc<'_>, found: Cond<'_>) -> Option<Cause> {
    let message = Message::read(found.message, subscription.namespace());
    if message.is_stale(seen) || message.is_symptom(seen) || is_outdated(seen, subscription) {
        return None;
    }
    let field = "status.conditions[ResolutionFailed].message";
    let cause = message.not_offered(seen).unwrap_or_else(|| {
        let cause = message.dependency(seen).or_else(|| message.orphan(seen, subscription));
        cause.or_else(|| message.conflict(seen))
    });
    match cause {
        Some(cause) => Some(cause.shown(subscription, field, found.message, found.since)),
        None if message.is_offer_stale(seen) => None,
        None => general(seen, subscription, found),
    }
}

/// Whether OLM has got further since, or is about to resolve again because a catalog has changed.
fn is_outdated(seen: &Observation, subscription: Doc<'_>) -> bool {
    if unpack::is_active(seen, subscription) {
        return true;
    }
    let catalog = seen.get(
        "CatalogSource",
        subscription.text("/spec/sourceNamespace"),
        subscription.text("/spec/source"),
    );
    catalog.is_some_and(|catalog| {
        let replaced = catalogs::replaced_after(seen, catalog, subscription.created());
        catalogs::is_changing(seen, catalog) || replaced.is_some_and(|at| seen.age(Some(at)) < RESOLVING)
    })
}

/// What OLM says of a set of constraints, taken apart.
struct Message<'o> {
    text: &'o str,
    namespace: &'o str,
    words: Vec<&'o str>,
}

impl<'o> Message<'o> {
    fn read(text: &'o str, namespace: &'o str) -> Self {
        let words =
            text.split_whitespace().map(|word| word.trim_matches([',', '.', '"', ':', '(', ')'])).collect();
        Self { text, namespace, words }
    }

    /// The words after a phrase.
    fn after(&self, phrase: &str) -> Option<impl Iterator<Item = &'o str>> {
        let (_, rest) = self.text.split_once(phrase)?;
        Some(rest.split_whitespace().map(|word| word.trim_matches([',', '.', '"', ':'])))
    }

    /// The versions on the cluster that it names.
    fn existing(&self) -> impl Iterator<Item = &'o str> {
        self.words
            .iter()
            .filter_map(|word| word.strip_prefix("@existing/"))
            .filter_map(|word| word.rsplit_once('/'))
            .map(|(_, name)| name)
    }

    /// The bundles in catalogs that it names, as catalog, namespace, channel and name.
    fn offered(&self) -> impl Iterator<Item = [&'o str; 4]> {
        self.words.iter().filter(|word| !word.starts_with('@')).filter_map(|word| {
            let parts: Vec<&str> = word.split('/').collect();
            <[&str; 4]>::try_from(parts).ok()
        })
    }

    /// The names in `KIND NAME exists`.
    fn named(&self, kind: &'static str) -> impl Iterator<Item = &'o str> {
        self.words
            .windows(3)
            .filter(move |found| found[0] == kind && found[2] == "exists")
            .map(|found| found[1])
    }

    /// Whether it names a Subscription or a version that is gone.
    fn is_stale(&self, seen: &Observation) -> bool {
        let csv = |name: &str| seen.get("ClusterServiceVersion", self.namespace, name).is_some();
        let subscription = |name: &str| seen.get("Subscription", self.namespace, name).is_some();
        let gone = self.existing().chain(self.named("clusterserviceversion")).any(|name| !csv(name));
        // OLM may say that a version has no Subscription just before the Subscription names it.
        let adopted = self.text.contains("is not referenced by a subscription")
            && self
                .named("clusterserviceversion")
                .all(|name| versions::is_referenced(seen, self.namespace, name));
        let unreferenced = self.named("clusterserviceversion").next().is_some();
        gone || self.named("subscription").any(|name| !subscription(name)) || (adopted && unreferenced)
    }

    /// Whether it complains of versions one of which is replacing the other.
    fn is_symptom(&self, seen: &Observation) -> bool {
        let existing: Vec<&str> = self.existing().collect();
        let mut csvs =
            existing.iter().filter_map(|name| seen.get("ClusterServiceVersion", self.namespace, name));
        csvs.any(|csv| matches!(csv.text("/status/phase"), "Replacing" | "Deleting") || csv.is_going())
            || existing.len() > 1
                && existing.iter().any(|name| {
                    let mut all = seen.within("ClusterServiceVersion", self.namespace);
                    all.any(|csv| csv.text("/spec/replaces") == *name && existing.contains(&csv.name()))
                })
    }

    /// The Subscription that nothing was found for.
    fn not_found_for(&self, seen: &'o Observation) -> Option<Doc<'o>> {
        let name = self.after("referenced by subscription ")?.next()?;
        seen.get("Subscription", self.namespace, name)
    }

    /// Whether nothing was found for what its Subscription no longer asks for.
    fn is_offer_stale(&self, seen: &'o Observation) -> bool {
        self.text.contains("no operators found") && self.not_offered(seen).is_none_or(|cause| cause.is_none())
    }

    /// What no catalog has: none when it is about something else; nothing in it when its Subscription has changed since.
    fn not_offered(&self, seen: &'o Observation) -> Option<Option<Cause>> {
        if !self.text.contains("no operators found") {
            return None;
        }
        let Some(subscription) = self.not_found_for(seen) else { return Some(None) };
        let spec = |field: &str| subscription.text(&format!("/spec/{field}"));
        let word = |phrase: &str| self.after(phrase).and_then(|mut words| words.next()).unwrap_or("");
        let (name, within) = (subscription.name(), subscription.namespace());
        let (package, channel, catalog) = (spec("name"), spec("channel"), spec("source"));
        let edit = command!("kubectl -n {} edit subscription.operators.coreos.com {}", within, name);
        let by_hand = |effect: &str| Repair::of(edit.clone(), effect);
        let patch = |field: &str, value: &str| {
            let patch = json!({"spec": {field: value}});
            command!(
                "kubectl -n {} patch subscription.operators.coreos.com {} --type merge -p {}",
                within,
                name,
                patch
            )
        };
        let manifest = seen.of("PackageManifest").find(|one| {
            one.name() == package
                && (one.text("/status/catalogSource"), one.text("/status/catalogSourceNamespace"))
                    == (catalog, spec("sourceNamespace"))
        });
        let cause = if self.text.contains("no operators found from catalog") {
            // What exists by now will be looked at again.
            let is_same =
                (word("from catalog "), word("in namespace ")) == (catalog, spec("sourceNamespace"));
            is_same.then(|| catalogs::missing(seen, subscription)).flatten()
        } else if self.text.contains("no operators found with name") {
            let starting = word("with name ");
            (starting == spec("startingCSV")).then(|| {
                let text = format!(
                    "the Subscription `{name}` starts at `{starting}`, which the channel `{channel}` of the package `{package}` does not have: no operators found with name {starting} in channel {channel} of package {package} in the catalog `{catalog}`"
                );
                Cause::new(&codes::STARTING_CSV_NOT_FOUND, subscription.reference(), text)
                    .shown(subscription, "spec.startingCSV", starting, None)
                    .repair(edit.clone(), "correct `spec.startingCSV` while nothing is installed: OLM resolves within 30 seconds")
                    .repair(
                        command!("kubectl -n {} patch subscription.operators.coreos.com {} --type json -p '[{\"op\":\"remove\",\"path\":\"/spec/startingCSV\"}]'", within, name),
                        "instead, installs the head of the channel",
                    )
            })
        } else if self.text.contains("no operators found in channel") {
            let wanted = word("in channel ");
            (wanted == channel && word("of package ") == package).then(|| {
                let text = format!(
                    "the Subscription `{name}` follows the channel `{channel}`, which the package `{package}` does not have: no operators found in channel {channel} of package {package} in the catalog `{catalog}`"
                );
                let mut cause = Cause::new(&codes::CHANNEL_NOT_FOUND, subscription.reference(), text)
                    .shown(subscription, "spec.channel", channel, None);
                if let Some(manifest) = manifest {
                    let channels: Vec<&str> = manifest.list("/status/channels").filter_map(|one| one["name"].as_str()).collect();
                    let near = olmkit_bundle::suggest::nearest(channel, channels.iter().copied());
                    let near = near.unwrap_or_else(|| manifest.text("/status/defaultChannel"));
                    cause = cause.shown(manifest, "status.channels", channels.join(", "), None).repair(
                        patch("channel", near),
                        "follows a channel that exists; what is installed runs on, and OLM resolves within 30 seconds",
                    );
                }
                cause.instead(by_hand("correct `spec.channel`: what is installed runs on, and OLM resolves within 30 seconds"))
            })
        } else {
            let wanted = word("in package ");
            (wanted == package).then(|| {
                let text = format!(
                    "the Subscription `{name}` asks for the package `{package}`, which the CatalogSource `{catalog}` does not have: no operators found in package {package} in the catalog `{catalog}`"
                );
                let mut cause = Cause::new(&codes::PACKAGE_NOT_FOUND, subscription.reference(), text)
                    .shown(subscription, "spec.name", package, None);
                let packages: Vec<&str> = seen.of("PackageManifest").map(Doc::name).collect();
                if let Some(near) = olmkit_bundle::suggest::nearest(package, packages) {
                    cause = cause.repair(patch("name", near), "asks for the package that exists; nothing is installed yet, so nothing is lost");
                }
                cause.instead(by_hand("correct `spec.name`, or delete the Subscription and create it again: nothing is installed yet, so nothing is lost"))
            })
        };
        Some(cause)
    }

    /// A bundle that needs what no catalog has.
    fn dependency(&self, seen: &'o Observation) -> Option<Cause> {
        let (before, need) = self.text.split_once(" requires an operator ")?;
        let bundle = before.rsplit_once("bundle ").map(|(_, name)| name)?;
        let need = need.split(", subscription ").next().unwrap_or(need);
        let need = need.split(", bundle ").next().unwrap_or(need).trim_end_matches([',', '.']);
        let requiring = self
            .words
            .windows(3)
            .find(|found| found[1] == "requires" && found[2].ends_with(bundle))
            .map(|found| found[0]);
        let subscription = requiring.or_else(|| self.named("subscription").next())?;
        let subscription = seen.get("Subscription", self.namespace, subscription)?;
        let text = format!(
            "the bundle `{bundle}` requires an operator {need}, and no CatalogSource that the namespace `{}` sees has one",
            self.namespace
        );
        let catalog = (subscription.text("/spec/sourceNamespace"), subscription.text("/spec/source"));
        Some(
            Cause::new(&codes::DEPENDENCY_MISSING, subscription.reference(), text)
                .repair(
                    command!("kubectl -n {} edit catalogsource.operators.coreos.com {}", catalog.0, catalog.1),
                    "name a catalog that has the dependency too, or add another CatalogSource with it: OLM resolves within a minute, and nothing is restarted",
                )
                .repair(
                    command!("kubectl -n {} edit subscription.operators.coreos.com {}", self.namespace, subscription.name()),
                    "instead, follow a channel or start at a version that does not need it",
                ),
        )
    }

    /// A version that exists, is referenced by no Subscription, and is in the way of its own package.
    fn orphan(&self, seen: &'o Observation, subscription: Doc<'_>) -> Option<Cause> {
        if !self.text.contains("exists and is not referenced by a subscription") {
            return None;
        }
        let mut names = self.named("clusterserviceversion");
        let name = names.find(|name| !versions::is_referenced(seen, self.namespace, name))?;
        let csv = seen.get("ClusterServiceVersion", self.namespace, name)?;
        Some(versions::orphaned(seen, csv, subscription))
    }

    /// Two operators that provide one API.
    fn conflict(&self, seen: &'o Observation) -> Option<Cause> {
        let (_, rest) = self.text.split_once(" provide ")?;
        let api = rest.split_once(')').map_or(rest, |(api, _)| api).to_owned() + ")";
        // The one that is not installed is the one too many.
        let wants = |bundle: &str| {
            self.words
                .windows(4)
                .find(|found| found[0] == "subscription" && found[2] == "requires" && found[3] == bundle)
                .map(|found| found[1])
        };
        let offered: Vec<[&str; 4]> = self.offered().collect();
        let newcomer = offered.iter().rev().find_map(|[catalog, namespace, channel, name]| {
            let word = format!("{catalog}/{namespace}/{channel}/{name}");
            wants(&word)
                .or_else(|| {
                    self.named("subscription").find(|one| {
                        seen.get("Subscription", self.namespace, one)
                            .is_some_and(|one| one.text("/status/installedCSV").is_empty())
                    })
                })
                .map(|subscription| (subscription, *name))
        })?;
        let other = self
            .existing()
            .next()
            .or_else(|| offered.iter().map(|[.., name]| *name).find(|name| *name != newcomer.1))?;
        let subscription = seen.get("Subscription", self.namespace, newcomer.0)?;
        let text = format!(
            "`{}` of the Subscription `{}` and `{other}` provide the same API {api}, and only one operator in the namespace `{}` may: OLM no longer resolves anything there",
            newcomer.1, newcomer.0, self.namespace
        );
        Some(Cause::new(&codes::API_CONFLICT, subscription.reference(), text).repair(
            command!("olmkit operator uninstall {} -n {}", newcomer.0, self.namespace),
            format!("removes the operator that is not installed; `{other}` runs on. Or install it into another namespace"),
        ))
    }
}
