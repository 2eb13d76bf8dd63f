//! The custom resources of a cluster against new schemas: what is refused or pruned, counted, each kind of problem once.
//!
//! The caller passes the objects one by one; nothing here knows a cluster.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::codes;
use super::samples::{self, Fault, Held, Judged};
use crate::crd::Crd;
use crate::finding::{Code, Finding, Place, V1Check};
use crate::parse::Object;
use crate::source::Span;
use crate::yaml::{Node, steps};

/// The most kinds of problems of one CRD that are kept apart: a map may have any number of keys.
const MAX_PROBLEMS: usize = 200;

/// The CRDs of both versions.
#[derive(Debug)]
pub struct Live<'c, 'b, 'a> {
    old: &'c [Object<'b, 'a>],
    new: &'c [Object<'b, 'a>],
}

/// The schemas of one version of a CRD.
#[derive(Debug)]
pub struct Schemas<'b, 'a> {
    new: Held<'b, 'a>,
    old: Option<Held<'b, 'a>>,
    version: String,
    span: Span,
}

/// What was found of the objects of one CRD.
#[derive(Debug, Default)]
pub struct Tally {
    found: BTreeMap<Key, Found>,
    unchecked: BTreeSet<String>,
    /// How many kinds of problems are left out.
    left_out: usize,
}

/// What is counted together: one kind of problem with one field.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    version: String,
    path: String,
    /// The field that is dropped; none when the value is refused.
    dropped: Option<String>,
}

#[derive(Debug)]
struct Found {
    /// The objects, `namespace/name`: a list that begins anew hands them over again.
    objects: BTreeSet<String>,
    /// One of them, and what is wrong with it.
    example: (String, String),
    span: Span,
}

impl<'c, 'b, 'a> Live<'c, 'b, 'a> {
    /// The CRDs of the old version and of the new one.
    pub fn new(old: &'c [Object<'b, 'a>], new: &'c [Object<'b, 'a>]) -> Self {
        Self { old, new }
    }

    /// The CRDs whose objects are to be looked at.
    pub fn crds(&self) -> impl Iterator<Item = Object<'b, 'a>> {
        self.new.iter().copied()
    }

    /// The schemas of a version; none where the new CRD does not serve it, for which there are other findings.
    pub fn schema(&self, crd: Object<'b, 'a>, version: &str) -> Option<Schemas<'b, 'a>> {
        let of = |object: Object<'b, 'a>| {
            let crd = Crd::from(object);
            let found =
                crd.versions().into_iter().find(|found| found.name == version && found.is_served())?;
            Some((crd.schema(&found)?, found.span))
        };
        let (new, span) = of(crd)?;
        let old = self.old.iter().find(|old| old.name() == crd.name());
        let old = old.and_then(|old| Some(of(*old)?.0));
        Some(Schemas { new: Held::new(new), old: old.map(Held::new), version: version.to_owned(), span })
    }

    /// The versions that the cluster stores objects in, and that the new CRD does not have.
    pub fn lost_versions(&self, crd: Object<'b, 'a>, live: &Value) -> Vec<Finding> {
        let new = Crd::from(crd).versions();
        let stored = live.pointer("/status/storedVersions").and_then(Value::as_array);
        let stored = stored.into_iter().flatten().filter_map(Value::as_str);
        let lost = stored.filter(|stored| new.iter().all(|version| version.name != *stored));
        let name = crd.name();
        lost.map(|stored| {
            let message = format!("the cluster stores objects of `{name}` in version `{stored}`, which the CRD no longer has");
            let mut finding = Finding::new(&codes::CRD_STORED_VERSION_REMOVED, message)
                .at(crd.place(steps!("spec", "versions")))
                .subject(crd.id())
                .help(format!(
                    "write every object once (`kubectl get {name} -A -o yaml | kubectl replace -f -`), then remove `{stored}` \
                     from `status.storedVersions` of the CRD"
                ));
            finding.v1 = Some(V1Check { check: "storedVersionRemoval", version: None, property: None });
            finding
        })
        .collect()
    }

    /// What the objects of a CRD have.
    pub fn findings(&self, crd: Object<'b, 'a>, tally: Tally) -> Vec<Finding> {
        let mut findings = Vec::new();
        for (Key { version, path, dropped }, Found { objects, example: (name, problem), span }) in tally.found
        {
            let (code, what): (&'static Code, _) = match dropped.is_some() {
                true => {
                    (&codes::LIVE_PRUNED, if objects.len() == 1 { "loses a field" } else { "lose a field" })
                }
                false => (
                    &codes::LIVE_REFUSED,
                    if objects.len() == 1 { "is no longer valid" } else { "are no longer valid" },
                ),
            };
            let kind = Crd::from(crd).kind();
            let count = match objects.len() {
                1 => format!("1 `{kind}` on the cluster {what}"),
                count => format!("{count} objects of kind `{kind}` on the cluster {what}"),
            };
            let path = if path.is_empty() { String::new() } else { format!(" at `{path}`") };
            let such = if objects.len() == 1 { "" } else { "such as " };
            let message = format!("{count}{path}, in version `{version}`: {such}`{name}`: {problem}");
            let flag = name
                .split_once('/')
                .map(|(namespace, _)| format!(" --namespace {namespace}"))
                .unwrap_or_default();
            let alone = name.split_once('/').map_or(name.as_str(), |(_, name)| name);
            let finding = Finding::new(code, message).at(crd.place_at(span)).subject(crd.id());
            findings.push(finding.help(format!("see `kubectl get {} {alone}{flag} -o yaml`", crd.name())));
        }
        for what in &tally.unchecked {
            findings.push(self.not_checked(crd, what, None));
        }
        if tally.left_out > 0 {
            let what = format!("more than {MAX_PROBLEMS} kinds of problems, {} are left out", tally.left_out);
            findings.push(self.not_checked(crd, &what, None));
        }
        findings
    }

    /// That objects could not be looked at, or not for everything.
    pub fn not_checked(&self, crd: Object<'b, 'a>, why: &str, help: Option<String>) -> Finding {
        let message = format!("the objects of `{}` on the cluster were not fully checked: {why}", crd.name());
        let place: Place = crd.place(steps!("metadata", "name"));
        let finding = Finding::new(&codes::LIVE_NOT_CHECKED, message).at(place).subject(crd.id());
        Finding { help, ..finding }
    }
}

impl Tally {
    /// Checks an object, as the cluster serves it at the version of the schemas.
    pub fn take(&mut self, schemas: &Schemas<'_, '_>, object: &Value) {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let (namespace, name) = (text("/metadata/namespace"), text("/metadata/name"));
        let name = if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") };
        let node = Node::from(object);
        let Judged { faults, unchecked } = samples::judge(&node, schemas.old.as_ref(), &schemas.new);
        self.unchecked.extend(unchecked);
        for Fault { path, message, is_pruned } in faults {
            let dropped = is_pruned.then(|| message.clone());
            let key = Key { version: schemas.version.clone(), path: general(&path), dropped };
            if !self.found.contains_key(&key) && self.found.len() >= MAX_PROBLEMS {
                self.left_out += 1;
                continue;
            }
            let found = self.found.entry(key).or_insert_with(|| Found {
                objects: BTreeSet::new(),
                example: (name.clone(), message),
                span: schemas.span,
            });
            found.objects.insert(name.clone());
        }
    }
}

/// A path for every item of a list: `spec.hosts[]`.
fn general(path: &str) -> String {
    let mut general = String::with_capacity(path.len());
    let mut rest = path;
    while let Some((before, after)) = rest.split_once('[') {
        general += before;
        general += "[";
        rest = after.trim_start_matches(|c: char| c.is_ascii_digit());
    }
    general + rest
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::source::Source;
    use crate::yaml::first_document;

    const CRD: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: kettles.example.com}
spec:
  group: example.com
  names: {kind: Kettle, plural: kettles}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              cups: {type: array, items: {type: integer, maximum: 8}}
              note: {type: string}
";

    #[track_caller]
    fn check(new: &str, objects: &[Value], expected: &[&str]) {
        let (old, new) = (first_document(CRD).unwrap(), first_document(new).unwrap());
        let (a, b) = (Source::new("old.yaml", ""), Source::new("new.yaml", ""));
        let (olds, news) =
            ([Object { source: &a, root: &old.root }], [Object { source: &b, root: &new.root }]);
        let live = Live::new(&olds, &news);
        let crd = live.crds().next().unwrap();
        let schemas = live.schema(crd, "v1").unwrap();
        let mut tally = Tally::default();
        objects.iter().for_each(|object| tally.take(&schemas, object));
        let found = live.findings(crd, tally);
        let lines: Vec<_> = found.iter().map(|one| format!("{}: {}", one.code.name, one.message)).collect();
        assert_eq!(lines, expected);
    }

    fn kettle(name: &str, spec: &Value) -> Value {
        json!({"apiVersion": "example.com/v1", "kind": "Kettle", "metadata": {"name": name, "namespace": "shop"}, "spec": spec})
    }

    #[test]
    fn objects_are_counted_by_field_whatever_their_index() {
        let objects = [
            kettle("a", &json!({"cups": [7, 8]})),
            kettle("b", &json!({"cups": [1, 2, 7]})),
            // A list that begins anew hands an object over again.
            kettle("b", &json!({"cups": [1, 2, 7]})),
            kettle("c", &json!({"cups": [6]})),
        ];
        check(
            &CRD.replace("maximum: 8", "maximum: 6"),
            &objects,
            &[
                "live-refused: 2 objects of kind `Kettle` on the cluster are no longer valid at `spec.cups[]`, in version `v1`: \
               such as `shop/a`: 7 is greater than 6",
            ],
        );
    }

    #[test]
    fn what_was_wrong_before_does_not_count() {
        check(CRD, &[kettle("a", &json!({"cups": [9], "more": 1}))], &[]);
        check(
            &CRD.replace("              note: {type: string}\n", ""),
            &[kettle("a", &json!({"cups": [9], "note": "x"}))],
            &[
                "live-pruned: 1 `Kettle` on the cluster loses a field at `spec`, in version `v1`: `shop/a`: `note` is not \
               a field of the schema",
            ],
        );
    }

    #[test]
    fn any_number_of_problems_is_bounded() {
        let with = |values: &str| {
            CRD.replace(
                "              note: {type: string}",
                &format!("              tags: {{type: object, additionalProperties: {{type: {values}}}}}"),
            )
        };
        let (old, new) = (first_document(&with("integer")).unwrap().root.to_json(), with("string"));
        let old = Node::from(&old);
        let new = first_document(&new).unwrap();
        let (a, b) = (Source::new("old.yaml", ""), Source::new("new.yaml", ""));
        let (olds, news) = ([Object { source: &a, root: &old }], [Object { source: &b, root: &new.root }]);
        let live = Live::new(&olds, &news);
        let mut tally = Tally::default();
        let tags: serde_json::Map<_, _> = (0..300).map(|at| (format!("key{at}"), json!(1))).collect();
        tally.take(&live.schema(news[0], "v1").unwrap(), &kettle("a", &json!({"tags": tags})));
        let found = live.findings(news[0], tally);
        assert_eq!(found.len(), MAX_PROBLEMS + 1, "{:?}", found.last());
        assert_eq!(found.last().map(|one| one.code.name), Some("live-not-checked"));
    }

    #[test]
    fn stored_versions_of_the_cluster_have_to_stay() {
        let new = first_document(CRD).unwrap();
        let source = Source::new("new.yaml", "");
        let news = [Object { source: &source, root: &new.root }];
        let live = Live::new(&[], &news);
        let found = live.lost_versions(news[0], &json!({"status": {"storedVersions": ["v1alpha1", "v1"]}}));
        assert_eq!(found.len(), 1);
        assert!(found[0].message.contains("`v1alpha1`"), "{}", found[0].message);
    }
}
