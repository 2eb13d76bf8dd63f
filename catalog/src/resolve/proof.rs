//! Constraints that exclude each other, in words.

use std::collections::{BTreeSet, VecDeque};

use olmkit_bundle::suggest::did_you_mean;

use super::Question;
use super::namespace::Home;
use super::problem::{Constraint, Missing, Problem, Variable, What};
use crate::requirements::Needed;

/// Of longer lists only so many are named.
const NAMED: usize = 4;

/// A sentence for each constraint, in the order in which one leads to another.
pub(super) fn explain_conflict(
    question: &Question<'_, '_>,
    problem: &Problem<'_>,
    numbers: &[usize],
) -> Vec<String> {
    let constraints: Vec<&Constraint> = numbers.iter().map(|at| &problem.constraints[*at]).collect();
    let words = Words { question, problem, constraints };
    let mut sentences: Vec<String> = Vec::new();
    for constraint in words.in_order() {
        sentences.extend(words.sentence(constraint).filter(|sentence| !sentences.contains(sentence)));
    }
    sentences
}

struct Words<'w, 'q, 'a> {
    question: &'w Question<'q, 'a>,
    problem: &'w Problem<'w>,
    constraints: Vec<&'w Constraint>,
}

impl<'w> Words<'w, '_, '_> {
    /// First who must be there, then what that leads to, then what it must not meet.
    fn in_order(&self) -> Vec<&'w Constraint> {
        let mut ordered = Vec::new();
        let mut seen = BTreeSet::new();
        let mut next: VecDeque<Variable> = VecDeque::new();
        for constraint in &self.constraints {
            if let Constraint::Subscribed(variable) | Constraint::Orphan(variable) = constraint {
                ordered.push(*constraint);
                next.push_back(*variable);
            }
        }
        while let Some(variable) = next.pop_front() {
            if !seen.insert(variable) {
                continue;
            }
            for constraint in &self.constraints {
                match constraint {
                    Constraint::Wants(of, _) | Constraint::Requires(of, ..) if *of == variable => {
                        ordered.push(constraint);
                        next.extend(constraint.candidates());
                    }
                    Constraint::NoCandidates(of, _) | Constraint::Deprecated(of) if *of == variable => {
                        ordered.push(constraint);
                    }
                    _ => {}
                }
            }
        }
        let rest = self.constraints.iter().filter(|constraint| {
            matches!(
                constraint,
                Constraint::TakesOver(..) | Constraint::OnePackage(..) | Constraint::OneProvider(..)
            )
        });
        ordered.extend(rest);
        ordered
    }

    fn sentence(&self, constraint: &Constraint) -> Option<String> {
        Some(match constraint {
            Constraint::Subscribed(variable) => {
                let is_wanting = |other: &&Constraint| match other {
                    Constraint::Wants(of, _) | Constraint::NoCandidates(of, _) => of == variable,
                    _ => false,
                };
                // What it wants says that it exists.
                if self.constraints.iter().any(is_wanting) {
                    return None;
                }
                format!("{} exists", self.subscription(*variable))
            }
            Constraint::Wants(variable, candidates) if candidates.is_empty() => {
                format!("nothing that {} could get may be installed", self.subscription(*variable))
            }
            Constraint::Wants(variable, candidates) => {
                format!("{} wants {}", self.subscription(*variable), self.one_of(candidates))
            }
            Constraint::NoCandidates(variable, missing) => self.no_candidates(*variable, *missing),
            Constraint::Orphan(variable) => {
                format!("{} exists, and no Subscription refers to it", self.name(*variable))
            }
            Constraint::Deprecated(variable) => {
                format!("{} has the property `olm.deprecated`", self.name(*variable))
            }
            Constraint::Requires(variable, requirement, candidates) if candidates.is_empty() => {
                format!("{} requires {}, which no catalog has", self.name(*variable), Needed(requirement))
            }
            Constraint::Requires(variable, requirement, candidates) => {
                let candidates = self.one_of(candidates);
                format!("{} requires a bundle that {requirement}: {candidates}", self.name(*variable))
            }
            Constraint::TakesOver(new, old) => {
                format!("{} takes the place of {}", self.name(*new), self.name(*old))
            }
            Constraint::OnePackage(package, variables) => {
                let of = self.those_that_matter(variables);
                format!("{of} are of package `{package}`, of which a namespace may have only one")
            }
            Constraint::OneProvider(gvk, variables) => {
                let of = self.those_that_matter(variables);
                format!("{of} provide {gvk}, which only one in a namespace may")
            }
        })
    }

    fn subscription(&self, variable: Variable) -> String {
        let Some(What::Subscription(at)) = self.problem.variables.get(variable.0) else {
            return String::new();
        };
        let asking = &self.question.subscriptions[*at];
        let channel = asking.channel.as_ref().map(|channel| format!(" in channel `{channel}`"));
        let installed = asking.installed.as_ref().map(|name| format!(", which has `{name}` installed,"));
        format!(
            "the Subscription to `{}`{}{}",
            asking.package,
            channel.unwrap_or_default(),
            installed.unwrap_or_default()
        )
    }

    fn no_candidates(&self, variable: Variable, missing: Missing) -> String {
        let Some(What::Subscription(at)) = self.problem.variables.get(variable.0) else {
            return String::new();
        };
        let asking = &self.question.subscriptions[*at];
        let offer = self.question.catalogs.get(asking.catalog);
        let catalog = offer.map_or("", |offer| offer.name);
        let subscription = self.subscription(variable);
        let channel = asking.channel.as_deref().unwrap_or_default();
        let package = &asking.package;
        let offered = offer.map(|offer| offer.catalog);
        let near = match missing {
            Missing::Package => {
                let packages = offered.iter().flat_map(|catalog| &catalog.packages);
                did_you_mean(package, packages.map(|one| &*one.name))
            }
            Missing::Channel => {
                let channels = offered.iter().flat_map(|catalog| &catalog.channels);
                let own = channels.filter(|one| *one.package == **package);
                did_you_mean(channel, own.map(|one| &*one.name))
            }
            Missing::Bundles | Missing::Bundle => None,
        };
        let near = near.map(|near| format!("; {near}")).unwrap_or_default();
        match missing {
            Missing::Bundles => format!("the catalog `{catalog}` of {subscription} has no bundles"),
            Missing::Package => {
                format!("{subscription} exists, and the catalog `{catalog}` has no package `{package}`{near}")
            }
            Missing::Channel => format!(
                "{subscription} exists, and the package `{package}` of the catalog `{catalog}` has no channel `{channel}`{near}"
            ),
            Missing::Bundle => format!(
                "{subscription} wants `{}` first, which the catalog `{catalog}` does not have there",
                asking.starting_csv.as_deref().unwrap_or_default()
            ),
        }
    }

    fn name(&self, variable: Variable) -> String {
        let Some(entry) = self.problem.entry_of(variable) else { return self.subscription(variable) };
        match entry.home {
            Home::Existing => format!("the installed `{}`", entry.name),
            Home::Catalog(at) if self.question.catalogs.len() > 1 => {
                let catalog = self.question.catalogs.get(at).map_or("", |offer| offer.name);
                format!("`{}` of the catalog `{catalog}`", entry.name)
            }
            Home::Catalog(_) => format!("`{}`", entry.name),
        }
    }

    /// Names, each once: a bundle may be in several channels.
    fn names(&self, variables: impl Iterator<Item = Variable>) -> Vec<String> {
        let mut names = Vec::new();
        for name in variables.map(|variable| self.name(variable)) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    fn one_of(&self, candidates: &[Variable]) -> String {
        match &self.names(candidates.iter().copied())[..] {
            [only] => only.clone(),
            names => format!("one of {}", list(names, "or")),
        }
    }

    /// The members of a constraint that others of the proof speak of.
    fn those_that_matter(&self, members: &[Variable]) -> String {
        let mut spoken_of: BTreeSet<Variable> = BTreeSet::new();
        for constraint in &self.constraints {
            spoken_of.extend(constraint.candidates());
            if let Constraint::Orphan(variable) = constraint {
                spoken_of.insert(*variable);
            }
        }
        let names = self.names(members.iter().copied().filter(|member| spoken_of.contains(member)));
        list(&names, "and")
    }
}

fn list(names: &[String], last: &str) -> String {
    match names {
        [] => String::new(),
        [only] => only.clone(),
        [most @ .., end] if most.len() < NAMED => format!("{} {last} {end}", most.join(", ")),
        _ => format!("{} {last} {} more", names[..NAMED].join(", "), names.len() - NAMED),
    }
}
