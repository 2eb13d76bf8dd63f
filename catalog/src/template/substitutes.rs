//! Bundles in the place of others: `olm.template.substitutes` (operator-registry `alpha/template/substitutes`).

use std::collections::{HashMap, HashSet};

use super::read::Fields;
use super::{TemplateError, bundle, check, entries};
use crate::fbc::{self, Catalog};
use crate::graph::VersionRelease;
use crate::property;
use crate::render::Rendered;

/// More entries than substitutions may add: each adds one to every channel that its base is in.
const MOST_ADDED: usize = 50_000;

/// A catalog, and bundles that take the place of some of its own.
#[derive(Debug)]
pub struct Substitutes<'a> {
    catalog: Catalog<'a>,
    /// What takes the place of what, one after another.
    pub substitutions: Vec<Substitution>,
}

/// A bundle in the place of another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Substitution {
    /// The reference of the new bundle.
    pub name: String,
    /// The name of the old one.
    pub base: String,
}

impl<'a> Substitutes<'a> {
    pub(super) fn parse(
        fields: &Fields<'_, 'a>,
        name: &'a str,
        text: &'a str,
    ) -> Result<Self, TemplateError> {
        let catalog = entries(fields, name, text)?;
        check(&catalog, "the entries are")?;
        let mut substitutions = Vec::new();
        let (mut bases, mut names) = (HashSet::new(), HashMap::new());
        for item in fields.maps("substitutions")? {
            let new = Substitution { name: item.text("name")?, base: item.text("base")? };
            for (key, value) in [("name", &new.name), ("base", &new.base)] {
                if value.is_empty() {
                    return Err(item.wrong(key, format!("a substitution has no `{key}`")));
                }
            }
            if new.name == new.base {
                return Err(item.wrong("name", format!("`{}` cannot take its own place", new.name)));
            }
            if !bases.insert(new.base.clone()) {
                return Err(item.wrong("base", format!("`{}` is substituted twice", new.base)));
            }
            if let Some(other) = names.insert(new.name.clone(), new.base.clone()) {
                let why = format!("`{}` takes the place of both `{other}` and `{}`", new.name, new.base);
                return Err(item.wrong("name", why));
            }
            substitutions.push(new);
        }
        Ok(Self { catalog, substitutions })
    }

    pub(super) fn references(&self) -> impl Iterator<Item = &str> {
        self.substitutions.iter().map(|substitution| substitution.name.as_str())
    }

    pub(super) fn render(
        mut self,
        bundles: &HashMap<String, Rendered>,
    ) -> Result<Catalog<'a>, TemplateError> {
        let original =
            Original { channels: self.catalog.channels.clone(), bundles: self.catalog.bundles.len() };
        let (done, applied) = self.apply(&original, self.substitutions.len(), bundles);
        if self.check(done).is_err() {
            return Err(self.first_invalid(&original, done, bundles));
        }
        applied.map(|()| self.catalog)
    }

    /// Applies the first substitutions to the original catalog, up to one that fails. Returns how many it applied.
    fn apply(
        &mut self,
        original: &Original<'a>,
        count: usize,
        bundles: &HashMap<String, Rendered>,
    ) -> (usize, Result<(), TemplateError>) {
        self.catalog.channels.clone_from(&original.channels);
        self.catalog.bundles.truncate(original.bundles);
        let mut names = Names::of(&self.catalog);
        for (at, one) in self.substitutions.iter().take(count).enumerate() {
            let new = bundle(bundles, &one.name);
            if let Err(error) = new.and_then(|new| substitute(&mut self.catalog, &mut names, one, &new.blob))
            {
                return (at, Err(error));
            }
        }
        (count, Ok(()))
    }

    /// Refuses the catalog that so many substitutions make, if opm would not serve it.
    fn check(&self, done: usize) -> Result<(), TemplateError> {
        // The entries themselves were checked when they were read.
        let Some(Substitution { name, base }) = done.checked_sub(1).and_then(|at| self.substitutions.get(at))
        else {
            return Ok(());
        };
        check(&self.catalog, &format!("with `{name}` in the place of `{base}` the catalog is"))
    }

    /// The error of the first substitution whose catalog opm would not serve, as opm finds it: it checks after each. A later
    /// substitution only adds a bundle and moves edges to it, so it mends nothing, and a binary search finds the first one without
    /// a check of the whole catalog for each.
    fn first_invalid(
        &mut self,
        original: &Original<'a>,
        done: usize,
        bundles: &HashMap<String, Rendered>,
    ) -> TemplateError {
        let (mut valid, mut invalid) = (0, done);
        loop {
            let middle = valid + (invalid - valid).div_ceil(2);
            // Each of them could be applied before.
            let _ = self.apply(original, middle, bundles);
            match self.check(middle) {
                Err(error) if middle == valid + 1 => return error,
                Err(_) => invalid = middle,
                Ok(()) => valid = middle,
            }
        }
    }
}

/// What substitutions change of a catalog, as it was before.
struct Original<'a> {
    channels: Vec<fbc::Channel<'a>>,
    bundles: usize,
}

/// Where a catalog has the bundle of a name, and the entries that mention it: by channel and entry. An entry stays listed when it no
/// longer mentions the name.
struct Names {
    bundles: HashMap<String, usize>,
    entries: HashMap<String, Vec<(usize, usize)>>,
    /// How many entries were added.
    added: usize,
}

impl Names {
    fn of(catalog: &Catalog<'_>) -> Self {
        let mut names = Self { bundles: HashMap::new(), entries: HashMap::new(), added: 0 };
        for (at, bundle) in catalog.bundles.iter().enumerate() {
            names.bundles.entry(bundle.name.to_string()).or_insert(at);
        }
        for (channel, entry, found) in catalog.channels.iter().enumerate().flat_map(|(channel, found)| {
            found.entries.iter().enumerate().map(move |(entry, found)| (channel, entry, found))
        }) {
            names.mention(found, (channel, entry));
        }
        names
    }

    fn mention(&mut self, entry: &fbc::Entry<'_>, at: (usize, usize)) {
        for name in [&entry.name, &entry.replaces].into_iter().chain(&entry.skips) {
            self.mention_name(name, at);
        }
    }

    fn mention_name(&mut self, name: &str, at: (usize, usize)) {
        let listed = self.entries.entry(name.to_owned()).or_default();
        if listed.last() != Some(&at) {
            listed.push(at);
        }
    }
}

fn substitute(
    catalog: &mut Catalog<'_>,
    names: &mut Names,
    substitution: &Substitution,
    new: &fbc::Bundle<'static>,
) -> Result<(), TemplateError> {
    let Substitution { name, base } = substitution;
    let fail = |why: String| Err(TemplateError::Bundles { why });
    let Some(old) = names.bundles.get(base).and_then(|at| catalog.bundles.get(*at)) else {
        return fail(format!("there is no `{base}` for `{name}` to take the place of"));
    };
    match (version(old), version(new)) {
        (Some(old), Some(new)) if old < new => {}
        (Some(old), Some(new)) => {
            return fail(format!(
                "`{name}` cannot take the place of `{base}`: its version {new} is not above {old}"
            ));
        }
        _ => return fail(format!("the versions of `{base}` and `{name}` cannot be compared")),
    }
    let mut mentions = names.entries.get(base).cloned().unwrap_or_default();
    mentions.sort_unstable();
    mentions.dedup();
    // Before anything is changed: what fails leaves a catalog that can be checked.
    names.added += mentions
        .iter()
        .filter(|(channel, at)| *catalog.channels[*channel].entries[*at].name == **base)
        .count();
    if names.added > MOST_ADDED {
        return fail(format!(
            "the substitutions would add more than {MOST_ADDED} entries: apply some of them in a second template"
        ));
    }
    for (channel, at) in mentions {
        let entries = &mut catalog.channels[channel].entries;
        let entry = &mut entries[at];
        if *entry.name == **base {
            // The new entry takes over the edges of the old one.
            let mut edges = fbc::Entry { name: new.name.clone(), ..fbc::Entry::default() };
            std::mem::swap(&mut edges.replaces, &mut entry.replaces);
            std::mem::swap(&mut edges.skips, &mut entry.skips);
            std::mem::swap(&mut edges.skip_range, &mut entry.skip_range);
            edges.skips.push(base.clone().into());
            names.mention(&edges, (channel, entries.len()));
            entries.push(edges);
        } else if *entry.replaces == **base {
            entry.replaces = new.name.clone();
            entry.skips.push(base.clone().into());
            names.mention_name(&new.name, (channel, at));
        } else if entry.skips.iter().any(|skip| **skip == **base) {
            entry.skips.push(new.name.clone());
            entry.skips.retain(|skip| **skip != **base);
            names.mention_name(&new.name, (channel, at));
        }
    }
    names.bundles.entry(new.name.to_string()).or_insert(catalog.bundles.len());
    catalog.bundles.push(new.clone());
    Ok(())
}

fn version(bundle: &fbc::Bundle<'_>) -> Option<VersionRelease> {
    match &property::packages(bundle)[..] {
        [(_, package)] => package.version_release(),
        _ => None,
    }
}
