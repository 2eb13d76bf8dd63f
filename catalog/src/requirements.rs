//! What a bundle asks of others: the properties `olm.gvk.required`, `olm.package.required`, `olm.label.required` and
//! `olm.constraint` (operator-framework/api `pkg/constraints`), and which bundles of a catalog meet it.

mod facts;
mod packages;
mod providers;
mod unmet;

use std::fmt;

use olmkit_bundle::cel::constraint::{EvaluationError, Expression};
use olmkit_bundle::go;
use olmkit_bundle::version::VersionRange;
use serde_json::Value as Json;

use crate::fbc::property;
use crate::property::type_mismatch_of_json;

pub(crate) use facts::Facts;
pub(crate) use packages::required_packages;
pub(crate) use providers::Providers;
pub(crate) use unmet::unmet;

/// OLM refuses longer constraints.
const MAX_CONSTRAINT: usize = 2 << 16;

/// Something that one bundle has to be, so that another can be installed.
///
/// What is known of one is kept by its value, never by its words: names are as their authors wrote them, and two requirements
/// may read the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Requirement {
    Api(Gvk),
    Package {
        name: String,
        range: VersionRange,
    },
    Label(String),
    All(Vec<Self>),
    Any(Vec<Self>),
    /// None of them.
    Not(Vec<Self>),
    Holds {
        expression: Expression,
        message: String,
    },
}

/// An API.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Gvk {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
}

impl Requirement {
    /// The requirement that a property is, if it is one.
    pub(crate) fn of(kind: &str, value: &Json) -> Result<Option<Self>, String> {
        let text = |key: &str| go::value_of(value, key).and_then(Json::as_str).unwrap_or("");
        match kind {
            property::GVK_REQUIRED | property::PACKAGE_REQUIRED => {
                if let Some(why) = type_mismatch_of_json(kind, value) {
                    return Err(format!("`{kind}`: {why}"));
                }
            }
            "olm.label.required" if !value.is_object() && !value.is_null() => {
                return Err(format!("`{kind}` is not a map"));
            }
            _ => {}
        }
        Ok(Some(match kind {
            property::GVK_REQUIRED => Self::Api(Gvk::of(value)),
            property::PACKAGE_REQUIRED => Self::package(text("packageName"), text("versionRange"))?,
            "olm.label.required" => Self::Label(text("label").to_owned()),
            "olm.constraint" if value.to_string().len() > MAX_CONSTRAINT => {
                return Err(format!("a constraint is longer than {MAX_CONSTRAINT} bytes"));
            }
            "olm.constraint" => Self::constraint(value)?,
            _ => return Ok(None),
        }))
    }

    fn package(name: &str, range: &str) -> Result<Self, String> {
        let range = range.parse::<VersionRange>().map_err(|error| error.to_string())?;
        Ok(Self::Package { name: name.to_owned(), range })
    }

    fn constraint(value: &Json) -> Result<Self, String> {
        const FIELDS: [&str; 7] = ["failureMessage", "gvk", "package", "all", "any", "not", "cel"];
        let fields = Fields::of(value, &FIELDS)?;
        if let Some(gvk) = fields.get("gvk") {
            Fields::of(gvk, &["group", "version", "kind"])?;
            return Ok(Self::Api(Gvk::of(gvk)));
        }
        if let Some(package) = fields.get("package") {
            let package = Fields::of(package, &["packageName", "versionRange"])?;
            return Self::package(package.text("packageName")?, package.text("versionRange")?);
        }
        let parts = |key: &str| -> Result<Option<Vec<Self>>, String> {
            let Some(compound) = fields.get(key) else { return Ok(None) };
            match Fields::of(compound, &["constraints"])?.get("constraints") {
                None => Ok(Some(Vec::new())),
                Some(Json::Array(parts)) => {
                    parts.iter().map(Self::constraint).collect::<Result<_, _>>().map(Some)
                }
                Some(_) => Err(format!("the constraints of `{key}` are not a list")),
            }
        };
        if let Some(parts) = parts("all")? {
            return Ok(Self::All(parts));
        }
        if let Some(parts) = parts("any")? {
            return Ok(Self::Any(parts));
        }
        if let Some(parts) = parts("not")? {
            return Ok(Self::Not(parts));
        }
        if let Some(cel) = fields.get("cel") {
            let text = Fields::of(cel, &["rule"])?.text("rule")?;
            let expression = Expression::parse(text).map_err(|error| format!("`{text}`: {error}"))?;
            return Ok(Self::Holds { expression, message: fields.text("failureMessage")?.to_owned() });
        }
        Err("a constraint is empty".into())
    }

    /// Whether a bundle meets it.
    pub(crate) fn holds(&self, facts: &Facts<'_>, package: &str) -> Result<bool, EvaluationError> {
        match self {
            Self::Api(gvk) => Ok(facts.gvks.contains(gvk)),
            Self::Package { name, range } => {
                let is_of = package == name || facts.packages.iter().any(|(other, _)| other == name);
                let mut versions = facts.packages.iter().filter_map(|(_, version)| version.as_ref());
                Ok(is_of
                    && (versions.any(|version| range.contains(version))
                        || facts.version.as_ref().is_some_and(|version| range.contains(version))))
            }
            Self::Label(label) => Ok(facts.labels.contains(label)),
            Self::All(parts) => parts
                .iter()
                .try_fold(true, |so_far, part| if so_far { part.holds(facts, package) } else { Ok(false) }),
            Self::Any(parts) => any(parts, facts, package),
            Self::Not(parts) => any(parts, facts, package).map(|any| !any),
            Self::Holds { expression, .. } => expression.holds(facts.properties()),
        }
    }
}

fn any(parts: &[Requirement], facts: &Facts<'_>, package: &str) -> Result<bool, EvaluationError> {
    parts.iter().try_fold(false, |so_far, part| if so_far { Ok(true) } else { part.holds(facts, package) })
}

impl fmt::Display for Requirement {
    /// What there has to be: `a bundle that …`, without the first words.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |f: &mut fmt::Formatter<'_>, parts: &[Self], between: &str| {
            for (at, part) in parts.iter().enumerate() {
                if at > 0 {
                    f.write_str(between)?;
                }
                if matches!(part, Self::All(_) | Self::Any(_)) {
                    write!(f, "({part})")?;
                } else {
                    part.fmt(f)?;
                }
            }
            Ok(())
        };
        match self {
            Self::Api(gvk) => write!(f, "provides {gvk}"),
            Self::Package { name, range } => write!(f, "is of package `{name}` in the range `{range}`"),
            Self::Label(label) => write!(f, "has the label `{label}`"),
            Self::All(parts) if parts.is_empty() => f.write_str("always matches"),
            Self::All(parts) => list(f, parts, " and "),
            Self::Any(parts) if parts.is_empty() => f.write_str("never matches"),
            Self::Any(parts) => list(f, parts, " or "),
            Self::Not(parts) => {
                f.write_str("neither ")?;
                list(f, parts, " nor ")
            }
            Self::Holds { expression, message } if message.is_empty() => {
                write!(f, "meets `{}`", expression.as_str())
            }
            Self::Holds { expression, message } => {
                write!(f, "meets `{}` ({message})", expression.as_str())
            }
        }
    }
}

/// A requirement as what a bundle needs: `the API …`, `package …`, `a bundle that …`.
pub(crate) struct Needed<'r>(pub(crate) &'r Requirement);

impl fmt::Display for Needed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Requirement::Api(gvk) => write!(f, "the API {gvk}"),
            Requirement::Package { name, range } => write!(f, "package `{name}` in the range `{range}`"),
            Requirement::Label(label) => write!(f, "a bundle with the label `{label}`"),
            other => write!(f, "a bundle that {other}"),
        }
    }
}

impl Gvk {
    pub(crate) fn of(value: &Json) -> Self {
        let text = |key: &str| go::value_of(value, key).and_then(Json::as_str).unwrap_or("").to_owned();
        Self { group: text("group"), version: text("version"), kind: text("kind") }
    }
}

impl fmt::Display for Gvk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let slash = if self.group.is_empty() { "" } else { "/" };
        write!(f, "`{}` ({}{slash}{})", self.kind, self.group, self.version)
    }
}

/// A map that has no other fields than it may have; keys match as in Go.
struct Fields<'v>(&'v Json);

impl<'v> Fields<'v> {
    fn of(value: &'v Json, known: &[&str]) -> Result<Self, String> {
        let map = value.as_object().ok_or("a part of a constraint is not a map")?;
        match map.keys().find(|key| !known.iter().any(|known| go::same_field(key, known))) {
            Some(key) => Err(format!("a constraint has the unknown field `{key}`")),
            None => Ok(Self(value)),
        }
    }

    fn get(&self, key: &str) -> Option<&'v Json> {
        go::value_of(self.0, key).filter(|value| !value.is_null())
    }

    fn text(&self, key: &str) -> Result<&'v str, String> {
        match self.get(key) {
            None => Ok(""),
            Some(value) => value.as_str().ok_or_else(|| format!("`{key}` of a constraint is not a text")),
        }
    }
}
