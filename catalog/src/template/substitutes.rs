//! Bundles in the place of others: `olm.template.substitutes` (operator-registry `alpha/template/substitutes`).

use std::collections::{HashMap, HashSet};

use super::read::Fields;
use super::{TemplateError, bundle, check, entries};
use crate::fbc::{self, Catalog};
use crate::graph::VersionRelease;
use crate::property;
use crate::render::Rendered;

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

    pub(super) fn render(self, bundles: &HashMap<String, Rendered>) -> Result<Catalog<'a>, TemplateError> {
        let mut catalog = self.catalog;
        for substitution in &self.substitutions {
            substitute(&mut catalog, substitution, &bundle(bundles, &substitution.name)?.blob)?;
        }
        Ok(catalog)
    }
}

fn substitute(
    catalog: &mut Catalog<'_>,
    substitution: &Substitution,
    new: &fbc::Bundle<'static>,
) -> Result<(), TemplateError> {
    let Substitution { name, base } = substitution;
    let fail = |why: String| Err(TemplateError::Bundles { why });
    let Some(old) = catalog.bundles.iter().find(|bundle| *bundle.name == **base) else {
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
    for channel in &mut catalog.channels {
        let mut added = Vec::new();
        for entry in &mut channel.entries {
            if *entry.name == **base {
                // The new entry takes over the edges of the old one.
                let mut edges = fbc::Entry { name: new.name.clone(), ..fbc::Entry::default() };
                std::mem::swap(&mut edges.replaces, &mut entry.replaces);
                std::mem::swap(&mut edges.skips, &mut entry.skips);
                std::mem::swap(&mut edges.skip_range, &mut entry.skip_range);
                edges.skips.push(base.clone().into());
                added.push(edges);
            } else if *entry.replaces == **base {
                entry.replaces = new.name.clone();
                entry.skips.push(base.clone().into());
            } else if entry.skips.iter().any(|skip| **skip == **base) {
                entry.skips.push(new.name.clone());
                entry.skips.retain(|skip| **skip != **base);
            }
        }
        channel.entries.extend(added);
    }
    catalog.bundles.push(new.clone());
    check(catalog, &format!("with `{name}` in the place of `{base}` the catalog is"))
}

fn version(bundle: &fbc::Bundle<'_>) -> Option<VersionRelease> {
    match &property::packages(bundle)[..] {
        [(_, package)] => package.version_release(),
        _ => None,
    }
}
