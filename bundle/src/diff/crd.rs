//! Two versions of one CustomResourceDefinition: what changes for its objects and clients, and whether OLM takes it.

mod narrowing;
pub mod safety;
mod schema;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use self::narrowing::Change;
use self::safety::{Refusal, by_name, compare_versions, storage_version, stored_versions};
use self::schema::{is_true, same_json, text};
use super::codes;
use crate::crd::{Crd, CrdVersion};
use crate::finding::{Code, Finding, Level, Place, V1Check};
use crate::parse::Object;
use crate::source::Span;
use crate::yaml::{Node, Step, steps};

/// Every finding about the step from one CRD to the next.
///
/// What OLM v1 refuses is an error and carries the check ([`Finding::v1`]); it refuses the CRD when there is any.
pub fn compare(old: Object<'_, '_>, new: Object<'_, '_>) -> Vec<Finding> {
    let mut comparison = Comparison { old, new, changes: Vec::new() };
    comparison.whole();
    comparison.versions();
    let (refusals, not_compared) = safety::refusals(Crd::from(old), Crd::from(new));
    if let Some(message) = not_compared {
        let code = &codes::CRD_SERVED_VERSIONS_NOT_COMPARED;
        comparison.push_at(code, "", message, steps!("spec", "versions")).help =
            Some("stop serving versions that nobody uses any more".into());
    }
    comparison.findings(refusals)
}

/// A change with the version it is about, before it is joined with the checks of OLM v1.
struct Found {
    change: Change,
    version: Option<String>,
    help: Option<String>,
}

struct Comparison<'b, 'a> {
    old: Object<'b, 'a>,
    new: Object<'b, 'a>,
    changes: Vec<Found>,
}

impl<'b, 'a> Comparison<'b, 'a> {
    fn crds(&self) -> (Crd<'b, 'a>, Crd<'b, 'a>) {
        (Crd::from(self.old), Crd::from(self.new))
    }

    fn push(
        &mut self,
        code: &'static Code,
        check: &'static str,
        message: String,
        old: Span,
        new: Span,
    ) -> &mut Found {
        let change = Change { code, level: code.level, message, check, property: String::new(), old, new };
        self.changes.push(Found { change, version: None, help: None });
        let last = self.changes.len() - 1;
        &mut self.changes[last]
    }

    fn push_at(
        &mut self,
        code: &'static Code,
        check: &'static str,
        message: String,
        path: &[Step<'_>],
    ) -> &mut Found {
        let (old, new) = (self.old.root.locate(path), self.new.root.locate(path));
        self.push(code, check, message, old, new)
    }

    fn whole(&mut self) {
        let (old, new) = self.crds();
        let scope = steps!("spec", "scope");
        let (from, to) = (old.text(scope), new.text(scope));
        if from != to {
            let message = format!("the scope was `{from}`, and is now `{to}`");
            self.push_at(&codes::CRD_SCOPE_CHANGED, "scope", message, scope).help =
                Some("bring the other scope under another kind or group".into());
        }
        self.names();
        let path = steps!("spec", "preserveUnknownFields");
        if old.preserves_unknown_fields() != new.preserves_unknown_fields() {
            let message = match new.preserves_unknown_fields() {
                true => "unknown fields are now preserved",
                false => "unknown fields are no longer preserved",
            };
            self.push_at(&codes::CRD_PRESERVE_UNKNOWN_FIELDS_CHANGED, "", message.to_owned(), path);
        }
        self.conversion();
    }

    fn names(&mut self) {
        let (old, new) = self.crds();
        let group = steps!("spec", "group");
        let names: [(&str, &[Step<'_>]); 5] = [
            ("group", group),
            ("kind", steps!("spec", "names", "kind")),
            ("plural", steps!("spec", "names", "plural")),
            ("singular", steps!("spec", "names", "singular")),
            ("list kind", steps!("spec", "names", "listKind")),
        ];
        let kind = |crd: Crd<'_, '_>| crd.kind().into_owned();
        // What Kubernetes fills in when it is absent.
        let default = |what: &str, crd: Crd<'_, '_>| match what {
            "singular" => kind(crd).to_lowercase(),
            "list kind" => kind(crd) + "List",
            _ => String::new(),
        };
        for (what, path) in names {
            let of = |crd: Crd<'_, '_>| {
                let text = crd.text(path).into_owned();
                if text.is_empty() { default(what, crd) } else { text }
            };
            let (from, to) = (of(old), of(new));
            if from != to {
                let message = format!("the {what} was `{from}`, and is now `{to}`");
                let found = self.push_at(&codes::CRD_NAMES_CHANGED, "", message, path);
                // Kubernetes takes another one of these.
                if matches!(what, "singular" | "list kind") {
                    found.change.level = Level::Warning;
                }
            }
        }
        for (what, key) in [("short name", "shortNames"), ("category", "categories")] {
            let path = steps!("spec", "names", key);
            let of = |crd: Crd<'b, 'a>| {
                crd.list(path).iter().filter_map(Node::as_str).map(str::to_owned).collect::<BTreeSet<_>>()
            };
            for name in of(old).difference(&of(new)) {
                self.push_at(
                    &codes::CRD_SHORT_NAME_REMOVED,
                    "",
                    format!("the {what} `{name}` is removed"),
                    path,
                );
            }
        }
    }

    fn conversion(&mut self) {
        let (old, new) = self.crds();
        let path = steps!("spec", "conversion");
        let strategy = |crd: Crd<'_, '_>| crd.text(steps!("spec", "conversion", "strategy")) == "Webhook";
        let (code, message) = match (strategy(old), strategy(new)) {
            (false, true) => (&codes::CRD_CONVERSION_ADDED, "a webhook now converts between versions"),
            (true, false) => {
                let message = "the conversion webhook is removed: until one is set again, Kubernetes only changes `apiVersion`, and a write in another version than the stored one loses fields";
                let found = self.push_at(&codes::CRD_CONVERSION_REMOVED, "", message.to_owned(), path);
                found.help = Some("keep `spec.conversion` in the CRD, also where the ClusterServiceVersion has a `ConversionWebhook`: OLM replaces the CRD first, and sets the webhook seconds later".into());
                return;
            }
            (true, true) => match (old.get(path), new.get(path)) {
                (Some(from), Some(to)) if filled_in(from) != filled_in(to) => {
                    (&codes::CRD_CONVERSION_CHANGED, "the conversion webhook changes")
                }
                _ => return,
            },
            (false, false) => return,
        };
        self.push_at(code, "", message.to_owned(), path);
    }

    fn versions(&mut self) {
        let (old, new) = self.crds();
        let (olds, news) = (old.versions(), new.versions());
        let (before, after) = (by_name(&olds), by_name(&news));
        let stored: BTreeSet<_> = stored_versions(old).into_iter().collect();
        let versions = steps!("spec", "versions");
        for version in &olds {
            let name = &version.name;
            let Some(next) = after.get(name.as_ref()) else {
                let at = self.new.root.locate(versions);
                self.removed_version(version, stored.contains(name.as_ref()), at);
                continue;
            };
            if version.is_served() && !next.is_served() {
                let message = format!("version `{name}` is no longer served");
                let (from, to) = (version.span, next.node.locate(steps!("served")));
                self.push(&codes::CRD_SERVED_VERSION_REMOVED, "", message, from, to);
            }
            if !is_true(version.node, "deprecated") && is_true(next.node, "deprecated") {
                let message = match text(next.node, "deprecationWarning") {
                    "" => format!("version `{name}` is deprecated"),
                    warning => format!("version `{name}` is deprecated: {warning}"),
                };
                let to = next.node.locate(steps!("deprecated"));
                self.push(&codes::CRD_VERSION_DEPRECATED, "", message, version.span, to);
            }
            self.version(version, next);
        }
        for next in news.iter().filter(|next| !before.contains_key(next.name.as_ref())) {
            let message = format!("version `{}` is new", next.name);
            let at = self.old.root.locate(versions);
            self.push(&codes::CRD_VERSION_ADDED, "", message, at, next.span);
        }
        if let (Some(from), Some(to)) = (storage_version(old), storage_version(new))
            && from != to
            && after.contains_key(from.as_str())
        {
            let storage = |version: Option<&&CrdVersion<'_, '_>>| {
                version.map_or(Span::at(0), |version| version.node.locate(steps!("storage")))
            };
            let lost = self.lost_by_storing((&olds, &from), (&news, &to));
            let mut message = format!("objects were stored as `{from}`, and are now stored as `{to}`");
            let (from, to) = (storage(before.get(from.as_str())), storage(after.get(to.as_str())));
            if let Some(lost) = &lost {
                message += &format!(", without a conversion webhook: {lost}");
            }
            self.push(&codes::CRD_STORAGE_VERSION_CHANGED, "", message, from, to);
            if lost.is_some()
                && let Some(found) = self.changes.last_mut()
            {
                found.change.level = Level::Error;
                found.help = Some("keep the storage version, or bring a conversion webhook along".into());
            }
        }
    }

    /// What the schema of the new storage version drops or refuses of the old one's, where nothing converts.
    fn lost_by_storing(
        &self,
        (olds, from): (&[CrdVersion<'b, 'a>], &str),
        (news, to): (&[CrdVersion<'b, 'a>], &str),
    ) -> Option<String> {
        const MOST: usize = 3;
        let (old, new) = self.crds();
        if new.text(steps!("spec", "conversion", "strategy")) == "Webhook" {
            return None;
        }
        let schema = |crd: Crd<'b, 'a>, versions: &[CrdVersion<'b, 'a>], name: &str| {
            crd.schema(versions.iter().find(|version| version.name == name)?)
        };
        let changes = narrowing::changes(schema(old, olds, from)?, schema(new, news, to)?);
        let lost: Vec<_> = changes.into_iter().filter(|change| change.level == Level::Error).collect();
        let shown: Vec<_> = lost.iter().take(MOST).map(|change| change.message.as_str()).collect();
        let more = lost.len().saturating_sub(MOST);
        let shown = shown.join("; ");
        (!lost.is_empty()).then(|| if more > 0 { format!("{shown}; and {more} more") } else { shown })
    }

    fn removed_version(&mut self, version: &CrdVersion<'_, '_>, is_stored: bool, at: Span) {
        let name = &version.name;
        let (code, check, message, help) = if is_stored {
            let message = format!("version `{name}` is removed, and objects may be stored in it");
            let help = "keep the version with `served: false` until all objects are migrated";
            (&codes::CRD_STORED_VERSION_REMOVED, "storedVersionRemoval", message, Some(help))
        } else if version.is_served() {
            let message = format!("version `{name}` is removed, and was served");
            let help = "deprecate the version first, and remove it some releases later";
            (&codes::CRD_SERVED_VERSION_REMOVED, "", message, Some(help))
        } else {
            (&codes::CRD_VERSION_REMOVED, "", format!("version `{name}` is removed; it was not served"), None)
        };
        self.push(code, check, message, version.span, at).help = help.map(str::to_owned);
    }

    /// One version against its old self.
    fn version(&mut self, version: &CrdVersion<'b, 'a>, next: &CrdVersion<'b, 'a>) {
        let (old, new) = self.crds();
        let name = version.name.to_string();
        if let (Some(from), Some(to)) = (old.schema(version), new.schema(next)) {
            let changes = narrowing::changes(from, to);
            let found = |change| Found { change, version: Some(name.clone()), help: None };
            self.changes.extend(changes.into_iter().map(found));
        }
        let before = self.changes.len();
        self.columns(version, next);
        self.subresources(version, next);
        let fields = |crd: Crd<'b, 'a>, version: &CrdVersion<'b, 'a>| {
            let fields =
                crd.of_version(version, "selectableFields").and_then(Node::as_sequence).unwrap_or(&[]);
            fields.iter().map(|field| text(field, "jsonPath").to_owned()).collect::<BTreeSet<_>>()
        };
        for field in fields(old, version).difference(&fields(new, next)) {
            let path = steps!("selectableFields");
            let (from, to) = (version.node.locate(path), next.node.locate(path));
            let message = format!("`{field}` can no longer be used in field selectors");
            self.push(&codes::CRD_SELECTABLE_FIELD_REMOVED, "", message, from, to);
        }
        for found in &mut self.changes[before..] {
            found.version = Some(name.clone());
        }
    }

    fn columns(&mut self, version: &CrdVersion<'b, 'a>, next: &CrdVersion<'b, 'a>) {
        let (old, new) = self.crds();
        let columns = |crd: Crd<'b, 'a>, version: &CrdVersion<'b, 'a>| {
            crd.of_version(version, "additionalPrinterColumns").and_then(Node::as_sequence).unwrap_or(&[])
        };
        let path = steps!("additionalPrinterColumns");
        // Columns may share a name: then the first is compared with the first.
        let mut after: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for column in columns(new, next).iter().rev() {
            after.entry(text(column, "name")).or_default().push(column);
        }
        let json_path = |column| match text(column, "jsonPath") {
            // The older API has another spelling.
            "" => text(column, "JSONPath"),
            path => path,
        };
        for column in columns(old, version) {
            let name = text(column, "name");
            let code = &codes::CRD_PRINTER_COLUMN_CHANGED;
            let Some(other) = after.get_mut(name).and_then(Vec::pop) else {
                let to = next.node.locate(path);
                self.push(
                    code,
                    "",
                    format!("the column `{name}` is removed"),
                    column.locate(steps!("name")),
                    to,
                );
                continue;
            };
            if json_path(column) != json_path(other) || text(column, "type") != text(other, "type") {
                let message = format!("the column `{name}` shows something else");
                self.push(code, "", message, column.locate(steps!("name")), other.locate(steps!("name")));
            }
        }
    }

    fn subresources(&mut self, version: &CrdVersion<'b, 'a>, next: &CrdVersion<'b, 'a>) {
        let (old, new) = self.crds();
        for name in ["status", "scale"] {
            let of = |crd: Crd<'b, 'a>, version: &CrdVersion<'b, 'a>| {
                crd.of_version(version, "subresources")
                    .and_then(|node| node.get(name))
                    .filter(|node| !node.is_null())
            };
            let (code, message) = match (of(old, version), of(new, next)) {
                (Some(_), None) => {
                    (&codes::CRD_SUBRESOURCE_REMOVED, format!("the subresource `{name}` is removed"))
                }
                (None, Some(_)) => {
                    (&codes::CRD_SUBRESOURCE_CHANGED, format!("the subresource `{name}` is new"))
                }
                (Some(from), Some(to)) if !same_json(from, to) => {
                    (&codes::CRD_SUBRESOURCE_CHANGED, format!("the subresource `{name}` changes"))
                }
                _ => continue,
            };
            let path = steps!("subresources", name);
            let (from, to) = (version.node.locate(path), next.node.locate(path));
            self.push(code, "", message, from, to);
        }
    }

    /// Joins what we found with what OLM v1 refuses: each refusal marks one finding, or becomes one of its own.
    fn findings(self, refusals: Vec<Refusal>) -> Vec<Finding> {
        let Self { old, new, changes } = self;
        let subject = new.id();
        let mut refusals: Vec<Option<Refusal>> = refusals.into_iter().map(Some).collect();
        let mut index: std::collections::HashMap<_, Vec<usize>> = std::collections::HashMap::new();
        for (at, refusal) in refusals.iter().flatten().enumerate() {
            index.entry(key(refusal)).or_default().push(at);
        }
        let mut findings = Vec::new();
        for Found { change, version, help } in changes {
            let wanted = (change.check, version.clone().unwrap_or_default(), change.property.clone());
            let at = index.get_mut(&wanted).filter(|_| !change.check.is_empty()).and_then(Vec::pop);
            let refusal = at.and_then(|at| refusals[at].take());
            let message = match &version {
                Some(version) => format!("{}, in version `{version}`", change.message),
                None => change.message,
            };
            let mut finding = Finding::new(change.code, message)
                .at(new.place_at(change.new))
                .and(old.place_at(change.old).label("before"))
                .subject(&subject);
            finding.level = change.level;
            finding.help = help;
            if let Some(refusal) = refusal {
                finding.level = Level::Error;
                let help = format!("OLM v1 refuses the upgrade (`{}`)", refusal.check);
                finding.help = Some(finding.help.map_or(help.clone(), |first| format!("{first}; {help}")));
                finding.v1 = Some(check(refusal));
            }
            findings.push(finding);
        }
        for refusal in refusals.into_iter().flatten() {
            findings.push(left_over(refusal, old, new).subject(&subject));
        }
        findings
    }
}

/// A conversion as clusters keep it: with the port of its Service, and whatever certificate was written into it.
fn filled_in(conversion: &Node<'_>) -> serde_json::Value {
    let mut json = conversion.to_json();
    if let Some(client) = json.pointer_mut("/webhook/clientConfig").and_then(|client| client.as_object_mut())
    {
        client.remove("caBundle");
        if let Some(service) = client.get_mut("service").and_then(|service| service.as_object_mut()) {
            service.entry("port").or_insert_with(|| 443.into());
        }
    }
    json
}

/// Check, version and property, by which a refusal finds its change.
fn key(refusal: &Refusal) -> (&'static str, String, String) {
    let (version, property) = match &refusal.removed {
        Some((version, property)) => (version.clone(), property.clone()),
        None => (refusal.version.clone().unwrap_or_default(), refusal.property.clone().unwrap_or_default()),
    };
    (refusal.check, version, property)
}

fn check(refusal: Refusal) -> V1Check {
    V1Check { check: refusal.check, version: refusal.version, property: refusal.property }
}

/// A refusal that is not about one of our findings.
fn left_over(refusal: Refusal, old: Object<'_, '_>, new: Object<'_, '_>) -> Finding {
    let between = refusal.version.as_deref().and_then(|version| version.split_once(" -> "));
    let (version, field) = match &refusal.removed {
        Some((version, _)) => (version.clone(), refusal.field.clone()),
        None => (refusal.version.clone().unwrap_or_default(), refusal.field.clone()),
    };
    let (code, message, first): (_, _, Place) = match between {
        Some((from, to)) => {
            let message = format!(
                "`{field}` differs between the served versions `{from}` and `{to}`: {}",
                refusal.about
            );
            (&codes::CRD_SERVED_VERSIONS_DIFFER, message, new.place_at(refusal.old.unwrap_or_default()))
        }
        None => {
            let message =
                format!("OLM v1 refuses the change of `{field}` in version `{version}`: {}", refusal.about);
            (&codes::CRD_UPGRADE_REFUSED, message, old.place_at(refusal.old.unwrap_or_default()))
        }
    };
    let help = format!("the check of OLM v1 is `{}`", refusal.check);
    let mut finding =
        Finding::new(code, message).at(new.place_at(refusal.new.unwrap_or_default())).and(first).help(help);
    finding.v1 = Some(check(refusal));
    finding
}

/// Whether one version of an API is older than another, as Kubernetes orders them.
pub fn is_older(version: &str, than: &str) -> bool {
    compare_versions(version, than).is_lt()
}
