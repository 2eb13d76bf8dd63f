//! `--set`: fields of the ClusterServiceVersion that the command line gives a value.
//!
//! A value is held against OLM's types ([`csv::types`]) before it is used, and what it leaves incomplete is found after.

use std::collections::BTreeSet;
use std::str::FromStr;

use serde_json::Value as Json;

use super::codes;
use super::draft::{By, Draft, Origin};
use super::explain::{self, PathStep};
use crate::csv::{self, ClusterServiceVersion};
use crate::finding::Finding;
use crate::suggest::did_you_mean;
use crate::yaml::fit::{Struct, Type, Unknown, fit};
use crate::yaml::{self, Node, Value};

/// A field of the ClusterServiceVersion that is given a value: `spec.maturity=stable`.
#[derive(Clone, Debug, PartialEq)]
pub struct Assignment {
    /// The way to it.
    pub path: Vec<PathStep>,
    /// The value.
    pub value: Json,
}

/// A text that assigns nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AssignmentError {
    /// There is no path, or no value.
    #[error("`{text}` is not PATH=VALUE, such as `spec.maturity=stable`")]
    NotAPath {
        /// The text.
        text: String,
    },
    /// The value is not YAML.
    #[error("the value of `{path}` is not YAML: {message}; put a text in quotes, `{path}=\"…\"`")]
    NotYaml {
        /// The path.
        path: String,
        /// What is wrong with the value.
        message: String,
    },
}

impl FromStr for Assignment {
    type Err = AssignmentError;

    /// Reads `PATH=VALUE`: keys with dots between, positions in lists in brackets, and a value in YAML. Dots in a key are
    /// escaped, or the key stands in quotes and brackets. Where OLM wants a text, `1.10` and `true` are texts as they are written.
    fn from_str(text: &str) -> Result<Self, AssignmentError> {
        let fail = || AssignmentError::NotAPath { text: text.to_owned() };
        let (path, written) = text.split_once('=').ok_or_else(fail)?;
        let steps = explain::parse(path).filter(|steps| matches!(steps.first(), Some(PathStep::Key(_))));
        let steps = steps.ok_or_else(fail)?;
        let document = yaml::first_document(written)
            .map_err(|error| AssignmentError::NotYaml { path: path.to_owned(), message: error.message })?;
        let of = type_at(&steps).unwrap_or(&Type::Any);
        Ok(Self { path: steps, value: json(&document.root, of, written) })
    }
}

impl Assignment {
    /// What is wrong with it: a field that a ClusterServiceVersion does not have, or a value that does not fit there.
    pub(super) fn check(&self) -> Vec<Finding> {
        let of = match type_at(&self.path) {
            Ok(of) => of,
            Err(finding) => return vec![*finding],
        };
        let path = self.written();
        if self.value.is_null()
            && let Some(expected) = expected(of)
        {
            let finding = invalid(format!("`--set {path}`: expected {expected}, found nothing"));
            return vec![finding.help(format!("write a value, `--set '{path}=…'`"))];
        }
        let Some(found) = with_node(&self.value, |node| fit(node, of)) else { return Vec::new() };
        let misfits = found.misfits.iter().map(|misfit| {
            let path = joined(&path, &misfit.path);
            let finding = invalid(format!("`--set {path}`: {}", misfit.message));
            match help(&misfit.message, &path) {
                Some(help) => finding.help(help),
                None => finding,
            }
        });
        let unknown = found.unknown.iter().map(|Unknown { key, path: below, within, .. }| {
            unknown_field(&joined(&path, below), key, within)
        });
        // The command line's are texts already, those of a builder are not.
        let numbers = found.as_text.iter().map(|_| invalid(format!("`--set {path}`: expected a string")));
        let findings: Vec<_> = misfits.chain(unknown).chain(numbers).collect();
        if findings.is_empty() { self.check_kubernetes_types() } else { findings }
    }

    /// The same for what is Kubernetes' own: the specs of Deployments.
    fn check_kubernetes_types(&self) -> Vec<Finding> {
        let nested = self.path.iter().rev().fold(self.value.clone(), |value, step| match step {
            PathStep::Key(key) => serde_json::Map::from_iter([(key.clone(), value)]).into(),
            PathStep::Index(_) => vec![value].into(),
        });
        let path = self.written();
        let decoded = with_node(&nested, |node| yaml::decode::decode_strict::<ClusterServiceVersion>(node));
        match decoded {
            None => Vec::new(),
            Some(Err(error)) => vec![invalid(format!("`--set`: {error}"))],
            Some(Ok((_, unknown))) => {
                // Fields that OLM has and we have no use for.
                let others = ["status", "cleanup", "selector"];
                let unknown = unknown.into_iter().filter(|unknown| !others.contains(&unknown.key.as_str()));
                unknown
                    .map(|unknown| no_field(&path, &unknown.key, unknown.expected.iter().copied()))
                    .collect()
            }
        }
    }

    /// The path as it is written, with quotes where keys need them.
    pub(super) fn written(&self) -> String {
        written(&self.path)
    }

    /// Gives the field its value.
    ///
    /// # Errors
    /// When a position is behind the end of its list.
    pub(super) fn apply<'a>(&self, csv: &mut Draft<'a>) -> Result<(), Box<Finding>> {
        let origin = Origin::unwritten(By::Flag("--set"));
        csv.assign(&self.path, Draft::new(self.value.clone(), origin)).map_err(|length| {
            let items = if length == 1 { "item" } else { "items" };
            let message =
                format!("`--set {}`: the list has {length} {items}, counted from 0", self.written());
            Box::new(invalid(message).help(format!("position {length} adds an item")))
        })
    }
}

/// What the fields that were set lack, once all of them have their values: `spec.maintainers[0].name` alone makes no maintainer.
pub(super) fn missing(assignments: &[Assignment], csv: &Json) -> Vec<Finding> {
    let mut found = Missing::default();
    for assignment in assignments {
        let (mut value, mut of, mut at) = (csv, &csv::types::CSV, String::new());
        for step in &assignment.path {
            if let Type::Struct(own) = of {
                found.in_struct(value, own, &at);
            }
            let below = match step {
                PathStep::Key(key) => value.get(key),
                PathStep::Index(index) => value.get(index),
            };
            let (Some(below), Ok(below_of)) = (below, step_into(of, step, &at)) else { break };
            at = match step {
                PathStep::Key(key) => explain::with_key(at, key),
                PathStep::Index(index) => format!("{at}[{index}]"),
            };
            (value, of) = (below, below_of);
        }
        if at == assignment.written() {
            found.below(value, of, &at);
        }
    }
    found.findings
}

/// Required fields that are not there.
#[derive(Default)]
struct Missing {
    seen: BTreeSet<String>,
    findings: Vec<Finding>,
}

impl Missing {
    fn in_struct(&mut self, value: &Json, of: &Struct, at: &str) {
        let Some(map) = value.as_object() else { return };
        let is_missing = |name: &str| map.get(name).is_none_or(Json::is_null);
        for field in of.fields.iter().filter(|field| field.required && is_missing(field.name)) {
            let path = explain::with_key(at.to_owned(), field.name);
            if self.seen.insert(path.clone()) {
                let finding = invalid(format!("`--set`: `{at}` needs `{}`", field.name));
                self.findings.push(finding.help(format!("add `--set '{path}=…'`")));
            }
        }
    }

    fn below(&mut self, value: &Json, of: &Type, at: &str) {
        match (of, value) {
            (Type::Struct(of), Json::Object(map)) => {
                self.in_struct(value, of, at);
                for (field, value) in of.fields.iter().filter_map(|field| Some((field, map.get(field.name)?)))
                {
                    self.below(value, &field.of, &explain::with_key(at.to_owned(), field.name));
                }
            }
            (Type::List(of), Json::Array(items)) => {
                for (index, item) in items.iter().enumerate() {
                    self.below(item, of, &format!("{at}[{index}]"));
                }
            }
            _ => {}
        }
    }
}

/// The type that a path leads to.
fn type_at(path: &[PathStep]) -> Result<&'static Type, Box<Finding>> {
    path.iter()
        .enumerate()
        .try_fold(&csv::types::CSV, |of, (at, step)| step_into(of, step, &written(&path[..at])))
}

/// The type one step below another; `at` is the path of that one.
fn step_into(of: &'static Type, step: &PathStep, at: &str) -> Result<&'static Type, Box<Finding>> {
    static ANY: Type = Type::Any;
    let fail = |what: &str, help: String| {
        let finding = invalid(format!("`--set`: `{at}` is {what}"));
        Err(Box::new(finding.help(help)))
    };
    match (of, step) {
        (Type::Any, _) => Ok(&ANY),
        (Type::Struct(own), PathStep::Key(key)) => {
            let field = own.fields.iter().find(|field| field.name == key);
            field.map(|field| &field.of).ok_or_else(|| Box::new(unknown_field(at, key, own)))
        }
        (Type::Map(of), PathStep::Key(_)) | (Type::List(of), PathStep::Index(_)) => Ok(of),
        (Type::List(_), PathStep::Key(key)) => {
            let help = format!("name an item by its position, `{at}[0]{}`", below(key));
            fail("a list", help)
        }
        (Type::Map(_) | Type::Struct(_), PathStep::Index(_)) => {
            fail("a map, not a list", format!("name a field of it, `{at}.FIELD`"))
        }
        (Type::Text, PathStep::Key(key)) if at.contains("labels") || at.contains("annotations") => {
            let parent = at.rsplit_once('.').map_or("", |(parent, _)| parent);
            let help = format!(
                "escape the dots of a key, `metadata.annotations.example\\.com/key=value`, or put it in quotes, \
                 `{parent}[\"example.com/key\"]=value`"
            );
            fail(&format!("a text, and has no field `{key}`"), help)
        }
        _ => fail("a single value, and has nothing below it", format!("set it as a whole, `{at}=VALUE`")),
    }
}

fn below(key: &str) -> String {
    if key.parse::<usize>().is_ok() { String::new() } else { format!(".{key}") }
}

/// A value as JSON, where numbers and booleans are texts if texts are wanted: as they were written, since `1.10` is not `1.1`.
fn json(node: &Node<'_>, of: &Type, text: &str) -> Json {
    match (of, &node.value) {
        (Type::Text, Value::Null) if text.trim().is_empty() => Json::from(""),
        (Type::Text, Value::Bool(_) | Value::Int(_) | Value::UInt(_) | Value::Float(_)) => {
            let written =
                text.get(node.span.start as usize..node.span.end as usize).map(str::trim).unwrap_or_default();
            if written.is_empty() { node.to_json() } else { written.into() }
        }
        (Type::List(of), Value::Sequence(items)) => items.iter().map(|item| json(item, of, text)).collect(),
        (Type::Map(_) | Type::Struct(_), Value::Mapping(map)) => {
            let entry = |entry: &yaml::Entry<'_>| {
                let below = match of {
                    Type::Map(of) => of,
                    Type::Struct(of) => of
                        .fields
                        .iter()
                        .find(|field| field.name == entry.key)
                        .map_or(&Type::Any, |field| &field.of),
                    _ => &Type::Any,
                };
                (entry.key.to_string(), json(&entry.value, below, text))
            };
            map.iter().map(entry).collect::<serde_json::Map<_, _>>().into()
        }
        _ => node.to_json(),
    }
}

/// Looks at a value as a node of YAML.
fn with_node<T>(value: &Json, look: impl FnOnce(&Node<'_>) -> T) -> Option<T> {
    let text = yaml::write::to_string(value).ok()?;
    let document = yaml::first_document(&text).ok()?;
    Some(look(&document.root))
}

fn invalid(message: String) -> Finding {
    Finding::new(&codes::PACKAGE_VALUE_INVALID, message)
}

fn unknown_field(at: &str, key: &str, of: &Struct) -> Finding {
    no_field(&explain::with_key(at.to_owned(), key), key, of.fields.iter().map(|field| field.name))
}

fn no_field<'n>(path: &str, key: &str, fields: impl Iterator<Item = &'n str>) -> Finding {
    let mut fields: Vec<_> = fields.collect();
    fields.sort_unstable();
    let help = did_you_mean(key, fields.iter().copied());
    invalid(format!("`--set {path}`: a ClusterServiceVersion has no field `{key}` there"))
        .help(help.unwrap_or_else(|| format!("the fields there are `{}`", fields.join("`, `"))))
}

/// What a type takes, where it is one that `null` would take away.
fn expected(of: &Type) -> Option<&'static str> {
    Some(match of {
        Type::Any => return None,
        Type::Text | Type::Time | Type::Bytes => "a string",
        Type::Bool => "true or false",
        Type::Int32 | Type::Int64 => "an integer",
        Type::Float => "a number",
        Type::List(_) | Type::StructOrList(_) | Type::StructOrTexts(_) => "a list",
        Type::Map(_) | Type::Struct(_) | Type::StructOrBool(_) => "a map",
    })
}

/// How to write a value of the type that was expected.
fn help(message: &str, path: &str) -> Option<String> {
    let expected = message.strip_prefix("expected ")?.split(',').next()?;
    match expected {
        "a string" => Some(format!("put a text in quotes, `--set '{path}=\"…\"'`")),
        "a list" => Some(format!("write `--set '{path}=[…, …]'`, or one item, `--set '{path}[0]=…'`")),
        "a map" => {
            Some(format!("write `--set '{path}={{KEY: VALUE}}'`, or one field, `--set '{path}.KEY=VALUE'`"))
        }
        _ => None,
    }
}

/// A path below another.
fn joined(at: &str, below: &str) -> String {
    let dot = if below.is_empty() || below.starts_with('[') { "" } else { "." };
    format!("{at}{dot}{below}")
}

fn written(path: &[PathStep]) -> String {
    path.iter().fold(String::new(), |at, step| match step {
        PathStep::Key(key) => explain::with_key(at, key),
        PathStep::Index(index) => format!("{at}[{index}]"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let findings = text.parse::<Assignment>().unwrap().check();
        let said: Vec<_> = findings.iter().map(|finding| finding.message.as_str()).collect();
        assert_eq!(said.join("; "), expected, "{text}");
    }

    #[test]
    fn texts_are_taken_as_they_are_written() {
        for (text, value) in [
            ("spec.displayName=5", "\"5\""),
            ("spec.version=1.10", "\"1.10\""),
            ("spec.displayName=", "\"\""),
            ("spec.displayName='a: b'", "\"a: b\""),
            ("metadata.annotations.a=true", "\"true\""),
            ("spec.labels={a: 1.10, b: c}", "{\"a\":\"1.10\",\"b\":\"c\"}"),
            ("spec.keywords=[1, yes]", "[\"1\",\"yes\"]"),
            ("spec.maintainers=[{name: 007, email: a@b.c}]", "[{\"name\":\"007\",\"email\":\"a@b.c\"}]"),
            ("spec.cleanup.enabled=true", "true"),
            ("spec.webhookdefinitions[0].containerPort=443", "443"),
        ] {
            let assignment: Assignment = text.parse().unwrap();
            assert_eq!(assignment.value, serde_json::from_str::<Json>(value).unwrap(), "{text}");
            assert_eq!(assignment.check(), [], "{text}");
        }
    }

    #[test]
    fn values_of_other_types_are_refused() {
        for (text, expected) in [
            ("spec.displayName=[a]", "`--set spec.displayName`: expected a string, found a list"),
            ("spec.displayName=a: b", "`--set spec.displayName`: expected a string, found a map"),
            ("spec=", "`--set spec`: expected a map, found nothing"),
            ("spec.icon=null", "`--set spec.icon`: expected a list, found nothing"),
            ("spec.labels=a", "`--set spec.labels`: expected a map, found a string"),
            ("spec.labels={a: [b]}", "`--set spec.labels.a`: expected a string, found a list"),
            ("spec.cleanup=true", "`--set spec.cleanup`: expected a map, found a boolean"),
            (
                "spec.cleanup.enabled=maybe",
                "`--set spec.cleanup.enabled`: expected true or false, found a string",
            ),
            ("spec.keywords=a", "`--set spec.keywords`: expected a list, found a string"),
            ("spec.maintainers={name: a}", "`--set spec.maintainers`: expected a list, found a map"),
            ("spec.maintainers[2]=a", "`--set spec.maintainers[2]`: expected a map, found a string"),
            (
                "spec.installModes[1].supported=1",
                "`--set spec.installModes[1].supported`: expected true or false, found a number",
            ),
            (
                "spec.webhookdefinitions[0].timeoutSeconds=long",
                "`--set spec.webhookdefinitions[0].timeoutSeconds`: expected an integer, found a string",
            ),
            ("spec.maintainers.name=a", "`--set`: `spec.maintainers` is a list"),
            ("spec.provider[0]=a", "`--set`: `spec.provider` is a map, not a list"),
            ("spec.version.major=1", "`--set`: `spec.version` is a single value, and has nothing below it"),
            (
                "metadata.annotations.example.com/a=b",
                "`--set`: `metadata.annotations.example` is a text, and has no field `com/a`",
            ),
            (
                "spec.displayname=a",
                "`--set spec.displayname`: a ClusterServiceVersion has no field `displayname` there",
            ),
            (
                "spec.maintainers[0]={name: a, mail: b}",
                "`--set spec.maintainers[0].mail`: a ClusterServiceVersion has no field `mail` there",
            ),
        ] {
            check(text, expected);
        }
        let replicas = "spec.install.spec.deployments[0].spec.replicas=many".parse::<Assignment>().unwrap();
        assert!(replicas.check()[0].message.ends_with("expected an integer, found a string"));
    }

    #[test]
    fn what_is_left_incomplete_is_named() {
        let missing = |sets: &[&str]| {
            let sets: Vec<Assignment> = sets.iter().map(|set| set.parse().unwrap()).collect();
            let origin = Origin::unwritten(By::Flag("--set"));
            let mut csv = Draft::map(origin);
            sets.iter().for_each(|set| set.apply(&mut csv).unwrap());
            let findings = missing(&sets, &csv.to_json());
            findings.into_iter().map(|finding| finding.message).collect::<Vec<_>>().join("; ")
        };
        assert_eq!(missing(&["spec.maintainers[0].name=Jo"]), "`--set`: `spec.maintainers[0]` needs `email`");
        assert_eq!(missing(&["spec.maintainers[0].name=Jo", "spec.maintainers[0].email=jo@example.com"]), "");
        assert_eq!(
            missing(&["spec.installModes=[{supported: true}, {type: OwnNamespace}]"]),
            "`--set`: `spec.installModes[0]` needs `type`; `--set`: `spec.installModes[1]` needs `supported`"
        );
        assert_eq!(missing(&["spec.cleanup={}"]), "`--set`: `spec.cleanup` needs `enabled`");
        assert_eq!(
            missing(&[
                "spec.customresourcedefinitions.owned[0]={name: a.b, kind: A, version: v1, resources: [{kind: B}]}"
            ]),
            "`--set`: `spec.customresourcedefinitions.owned[0].resources[0]` needs `name`; \
             `--set`: `spec.customresourcedefinitions.owned[0].resources[0]` needs `version`"
        );
    }

    #[test]
    fn a_value_that_is_not_yaml_is_said() {
        let error = "spec.description=[a".parse::<Assignment>().unwrap_err().to_string();
        assert!(error.starts_with("the value of `spec.description` is not YAML: "), "{error}");
        assert!(
            "spec.description".parse::<Assignment>().unwrap_err().to_string().contains("is not PATH=VALUE")
        );
    }
}
