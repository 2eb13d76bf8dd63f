//! What of an object Kubernetes refuses: the findings of [`crate::deployment`] and [`crate::contents`], and what both check.

use std::collections::BTreeSet;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use crate::finding::MOST_OF_A_KIND;
use crate::names::{check_label, check_label_value, check_qualified_name};
use crate::source::Span;
use crate::yaml::{Node, Step, Value, fit, steps};

/// Something that Kubernetes refuses, or that never works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refused<'n> {
    /// Where it stands.
    pub(crate) path: Vec<Step<'n>>,
    /// What is wrong.
    pub(crate) message: String,
    /// The change to make.
    pub(crate) help: String,
}

pub(crate) const PROTOCOLS: [&str; 3] = ["TCP", "UDP", "SCTP"];
const SELECTOR_OPERATORS: [&str; 4] = ["In", "NotIn", "Exists", "DoesNotExist"];

/// Collects what is refused below a path.
#[derive(Default)]
pub(crate) struct Check<'n> {
    /// The path to what is looked at.
    above: Vec<Step<'n>>,
    pub(crate) refused: Vec<Refused<'n>>,
}

impl<'n> Check<'n> {
    /// Adds something that is refused. Those that no report keeps are left out: each takes many times the few bytes that it is about.
    pub(crate) fn push(&mut self, path: &[Step<'n>], message: impl Into<String>, help: impl Into<String>) {
        if self.refused.len() > MOST_OF_A_KIND {
            return;
        }
        let path = self.above.iter().chain(path).copied().collect();
        self.refused.push(Refused { path, message: message.into(), help: help.into() });
    }

    pub(crate) fn below(&mut self, path: &[Step<'n>], check: impl FnOnce(&mut Self)) {
        let length = self.above.len();
        self.above.extend(path);
        check(self);
        self.above.truncate(length);
    }

    pub(crate) fn not_negative(&mut self, path: &[Step<'n>], value: Option<i64>) {
        if let (Some(value), Some(Step::Key(key))) = (value.filter(|value| *value < 0), path.last()) {
            self.push(path, format!("`{key}` is {value}, expected 0 or more"), "set it to 0 or more");
        }
    }

    pub(crate) fn one_of(&mut self, path: &[Step<'n>], value: Option<&str>, values: &[&str]) {
        if let Some(value) = value.filter(|value| !values.contains(value)) {
            let message = format!("`{}` is not a value that Kubernetes accepts here", plain(value));
            self.push(path, message, format!("set one of `{}`", values.join("`, `")));
        }
    }

    pub(crate) fn port(&mut self, path: &[Step<'n>], number: i32) {
        if !(1..=65535).contains(&number) {
            self.push(path, format!("{number} is not a port"), "ports are numbers from 1 to 65535");
        }
    }

    /// A port, or the name that the pods give one.
    pub(crate) fn port_or_name(&mut self, path: &[Step<'n>], port: &IntOrString) {
        match port {
            IntOrString::Int(number) => self.port(path, *number),
            IntOrString::String(name) => {
                if let Err(why) = check_port_name(name) {
                    let message = format!("`{}` cannot name a port: {why}", plain(name));
                    let help = "set a number without quotes, or the name of a port of the pods";
                    self.push(path, message, help);
                }
            }
        }
    }

    /// The labels and expressions of a selector.
    pub(crate) fn label_selector(&mut self, path: &[Step<'n>], selector: &LabelSelector) {
        self.below(path, |check| {
            for (key, value) in selector.match_labels.iter().flatten() {
                check.label(steps!("matchLabels"), key, value);
            }
            for (at, expression) in selector.match_expressions.iter().flatten().enumerate() {
                let operator = expression.operator.as_str();
                check.one_of(steps!("matchExpressions", at, "operator"), Some(operator), &SELECTOR_OPERATORS);
                let has_values = expression.values.as_ref().is_some_and(|values| !values.is_empty());
                let path = steps!("matchExpressions", at, "values");
                match operator {
                    "In" | "NotIn" if !has_values => {
                        check.push(path, format!("`{operator}` has no `values`"), "list the values");
                    }
                    "Exists" | "DoesNotExist" if has_values => {
                        let message = format!("`{operator}` has `values`, and looks at none");
                        check.push(path, message, "remove `values`, or use `In`");
                    }
                    _ => {}
                }
                for value in expression.values.iter().flatten() {
                    check.label(steps!("matchExpressions", at), &expression.key, value);
                }
            }
        });
    }

    pub(crate) fn label(&mut self, path: &[Step<'n>], key: &str, value: &str) {
        let key = check_qualified_name(key).map_err(|why| (key, why));
        if let Err((text, why)) = key.and_then(|()| check_label_value(value).map_err(|why| (value, why))) {
            let message = format!("`{}` does not fit into a label: {why}", plain(text));
            self.push(path, message, "correct the label");
        }
    }

    /// Finds the numbers and booleans that were taken for text, as Go's YAML takes them. The API server does not.
    pub(crate) fn unquoted(&mut self, node: &'n Node<'_>, as_text: &BTreeSet<Span>) {
        match &node.value {
            Value::Sequence(items) => {
                for (at, item) in items.iter().enumerate() {
                    self.below(steps!(at), |check| check.unquoted(item, as_text));
                }
            }
            Value::Mapping(map) => {
                for entry in map {
                    let key: &'n str = &entry.key;
                    self.below(&[Step::Key(key)], |check| check.unquoted(&entry.value, as_text));
                }
            }
            Value::Null | Value::String(_) => {}
            _ if as_text.contains(&node.span) => self.not_text(node),
            _ => {}
        }
    }

    /// Something else where a string is expected.
    pub(crate) fn not_text(&mut self, node: &Node<'_>) {
        let path = plain(&fit::path(&self.above));
        let message = format!("expected a string in `{path}`, found {}", node.value);
        self.push(&[], message, "quote it, so that it is a string");
    }
}

/// A text for a message: backticks mark values there.
pub(crate) fn plain(text: &str) -> String {
    text.replace('`', "'")
}

/// Checks the name of a port (IANA's service names, RFC 6335).
pub(crate) fn check_port_name(name: &str) -> Result<(), &'static str> {
    if name.len() > 15 {
        Err("it is longer than 15 characters")
    } else if !name.bytes().any(|byte| byte.is_ascii_lowercase()) {
        Err("it has no lower case letter")
    } else if name.contains("--") {
        Err("it has two `-` side by side")
    } else {
        check_label(name)
    }
}
