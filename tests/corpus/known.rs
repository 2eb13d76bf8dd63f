//! Where we differ from OLM's own tools on purpose: `known-differences.toml`, an area a section.

use libtest_mimic::Failed;
use serde::Deserialize;

/// The recorded differences of one area.
pub(crate) struct Known(Vec<Difference>);

/// One kind of difference.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Difference {
    /// The inputs it is met in; `*` for all.
    inputs: Vec<String>,
    /// What the line of the difference starts with, behind the input's name.
    path: String,
    /// Whose way is right, where the other side is a project and not a tool: `ours`, `published` or `either`.
    right: Option<String>,
    /// Why it is so.
    reason: String,
}

impl Known {
    /// The differences of an area.
    pub(crate) fn load(area: &str) -> Result<Self, Failed> {
        let mut areas: toml::Table = toml::from_str(include_str!("known-differences.toml"))?;
        let area: Vec<Difference> = match areas.remove(area) {
            Some(area) => area.try_into()?,
            None => Vec::new(),
        };
        let sides = |difference: &&Difference| {
            difference
                .right
                .as_ref()
                .is_some_and(|own| !["ours", "published", "either"].contains(&own.as_str()))
        };
        if let Some(difference) = area.iter().find(sides) {
            return Err(format!("`{}`: `right` is `ours`, `published` or `either`", difference.path).into());
        }
        match area.iter().find(|difference| difference.reason.len() < 20 || difference.inputs.is_empty()) {
            Some(difference) => Err(format!("`{}` needs inputs and a reason", difference.path).into()),
            None => Ok(Self(area)),
        }
    }

    /// Passes when every difference of an input is recorded, and every recorded one is there.
    pub(crate) fn hold(&self, input: &str, differences: &[String]) -> Result<(), Failed> {
        let mine: Vec<_> =
            self.0.iter().filter(|known| known.inputs.iter().any(|own| own == input || own == "*")).collect();
        let fresh = differences.iter().filter(|line| mine.iter().all(|known| !line.starts_with(&known.path)));
        let gone = mine.iter().filter(|known| differences.iter().all(|line| !line.starts_with(&known.path)));
        let fresh = fresh.map(|line| format!("not recorded: {line}"));
        let lines: Vec<_> =
            fresh.chain(gone.map(|known| format!("no longer there: {}", known.path))).collect();
        if lines.is_empty() { Ok(()) } else { Err(lines.join("\n").into()) }
    }
}
