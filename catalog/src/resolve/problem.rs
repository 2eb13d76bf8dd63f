//! The constraints that an answer must meet.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;

use super::namespace::{CandidatesError, Entry, Home, Index, Namespace};
use super::{Question, ResolveError, Subscription};
use crate::requirements::{Gvk, Requirement};

/// Something that an answer has or has not: a Subscription, or an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Variable(pub(super) usize);

/// What an answer must meet.
pub(super) struct Problem<'q> {
    pub(super) namespace: &'q Namespace<'q>,
    /// What each variable stands for.
    pub(super) variables: Vec<What>,
    pub(super) constraints: Vec<Constraint>,
    by_entry: HashMap<usize, Variable>,
    taken_over: HashMap<Variable, &'q str>,
}

/// What a variable stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// A Subscription by its number.
    Subscription(usize),
    /// An entry of the namespace by its number.
    Entry(usize),
}

/// A constraint.
#[derive(Clone, Debug)]
pub(super) enum Constraint {
    /// A Subscription exists.
    Subscribed(Variable),
    /// It wants one of these, the first rather than the second.
    Wants(Variable, Vec<Variable>),
    /// It wants what is not there.
    NoCandidates(Variable, Missing),
    /// A ClusterServiceVersion is there, and no Subscription's.
    Orphan(Variable),
    /// A bundle is deprecated by `olm.deprecated`.
    Deprecated(Variable),
    /// A bundle requires one of these, the first rather than the second. Bundles with the same requirement share the list.
    Requires(Variable, Requirement, Rc<[Variable]>),
    /// A bundle takes the place of an installed one.
    TakesOver(Variable, Variable),
    /// Only one bundle may be of a package.
    OnePackage(String, Vec<Variable>),
    /// Only one bundle may provide an API.
    OneProvider(Gvk, Vec<Variable>),
}

impl Constraint {
    /// Of which one is wanted, the first rather than the second.
    pub(super) fn candidates(&self) -> &[Variable] {
        match self {
            Self::Wants(_, candidates) => candidates,
            Self::Requires(_, _, candidates) => candidates,
            _ => &[],
        }
    }
}

/// What a Subscription asks for and no catalog has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Missing {
    Bundles,
    Package,
    Channel,
    Bundle,
}

impl<'q> Problem<'q> {
    pub(super) fn new(
        question: &'q Question<'_, '_>,
        namespace: &'q Namespace<'q>,
    ) -> Result<Self, ResolveError> {
        let mut problem = Self {
            namespace,
            variables: Vec::new(),
            constraints: Vec::new(),
            by_entry: HashMap::new(),
            taken_over: HashMap::new(),
        };
        let subscriptions: Vec<Variable> =
            (0..question.subscriptions.len()).map(|at| problem.variable(What::Subscription(at))).collect();
        let mut visit = Visit { index: Index::of(namespace), found: HashMap::new(), visited: HashSet::new() };
        let installed: HashSet<&str> =
            question.subscriptions.iter().filter_map(|asking| asking.installed.as_deref()).collect();
        let existing: Vec<usize> = namespace
            .entries
            .iter()
            .take_while(|entry| entry.home == Home::Existing)
            .enumerate()
            .map(|(at, _)| at)
            .collect();
        problem.constraints.extend(subscriptions.iter().map(|variable| Constraint::Subscribed(*variable)));
        for (asking, variable) in question.subscriptions.iter().zip(subscriptions) {
            problem.subscribe(asking, variable, &mut visit)?;
        }
        for entry in existing {
            let variable = problem.visit(vec![entry], &mut visit)?[0];
            if !installed.contains(namespace.entries[entry].name) {
                problem.constraints.push(Constraint::Orphan(variable));
            }
        }
        problem.add_invariants();
        Ok(problem)
    }

    fn variable(&mut self, what: What) -> Variable {
        self.variables.push(what);
        Variable(self.variables.len() - 1)
    }

    fn of_entry(&mut self, entry: usize) -> Variable {
        if let Some(variable) = self.by_entry.get(&entry) {
            return *variable;
        }
        let variable = self.variable(What::Entry(entry));
        self.by_entry.insert(entry, variable);
        variable
    }

    /// The entry that a variable stands for.
    pub(super) fn entry_of(&self, variable: Variable) -> Option<&'q Entry<'q>> {
        match self.variables.get(variable.0)? {
            What::Entry(entry) => self.namespace.entries.get(*entry),
            What::Subscription(_) => None,
        }
    }

    /// The installed bundle whose place a variable takes.
    pub(super) fn taken_over(&self, variable: Variable) -> Option<&'q str> {
        self.taken_over.get(&variable).copied()
    }

    /// What a Subscription wants.
    fn subscribe(
        &mut self,
        asking: &'q Subscription,
        variable: Variable,
        visit: &mut Visit<'q>,
    ) -> Result<(), ResolveError> {
        let namespace = self.namespace;
        let current = asking.installed.as_deref().and_then(|name| namespace.existing(name));
        let starting = asking.starting_csv.as_deref().filter(|_| current.is_none());
        let home = Home::Catalog(asking.catalog);
        let all = namespace.entries.iter().enumerate().filter(|(_, entry)| entry.home == home);
        let mut missing = Missing::Bundles;
        let mut entries = Vec::new();
        for (at, entry) in all {
            missing = missing.max_of(Missing::Package);
            let is_of = entry.package == asking.package
                || namespace.facts(at).packages.iter().any(|(package, _)| *package == asking.package);
            if !is_of {
                continue;
            }
            missing = missing.max_of(Missing::Channel);
            if asking.channel.as_ref().is_some_and(|channel| channel != entry.channel) {
                continue;
            }
            missing = missing.max_of(Missing::Bundle);
            if starting.is_none_or(|starting| starting == entry.name) {
                entries.push(at);
            }
        }
        if entries.is_empty() {
            self.constraints.push(Constraint::NoCandidates(variable, missing));
            return Ok(());
        }
        entries.sort_by_key(|at| {
            let entry = &namespace.entries[*at];
            (!entry.is_default_channel, entry.channel)
        });
        let mut wanted = Vec::new();
        for channel in entries.chunk_by(|a, b| namespace.entries[*a].channel == namespace.entries[*b].channel)
        {
            for candidate in namespace.sorted(channel.to_vec())? {
                if current.is_none_or(|current| may_follow(namespace, candidate, current)) {
                    // In each channel that has it, not only in the one where it may follow.
                    let name = namespace.entries[candidate].name;
                    wanted.extend(entries.iter().copied().filter(|at| namespace.entries[*at].name == name));
                }
            }
        }
        let mut seen = HashSet::new();
        wanted.retain(|at| seen.insert(*at));
        let mut candidates = self.visit(wanted, visit)?;
        if let Some(current) = current {
            let installed = self.of_entry(current);
            for candidate in &candidates {
                self.taken_over.insert(*candidate, namespace.entries[current].name);
                self.constraints.push(Constraint::TakesOver(*candidate, installed));
            }
            candidates.push(installed);
        }
        self.constraints.push(Constraint::Wants(variable, candidates));
        Ok(())
    }

    /// Adds entries, with what they require, and what that requires. Answers with the variables of the entries.
    fn visit(&mut self, entries: Vec<usize>, visit: &mut Visit<'q>) -> Result<Vec<Variable>, ResolveError> {
        let variables = entries.iter().map(|entry| self.of_entry(*entry)).collect();
        let namespace = self.namespace;
        let mut stack = entries;
        while let Some(at) = stack.pop() {
            if !visit.visited.insert(at) {
                continue;
            }
            let variable = self.of_entry(at);
            let (entry, facts) = (&namespace.entries[at], namespace.facts(at));
            if facts.is_deprecated {
                self.constraints.push(Constraint::Deprecated(variable));
            }
            for requirement in &facts.requirements {
                let bundle = || entry.name.to_owned();
                let requirement = requirement
                    .as_ref()
                    .map_err(|why| ResolveError::Requirement { bundle: bundle(), why: why.clone() })?;
                let key = (requirement, entry.home);
                if !visit.found.contains_key(&key) {
                    let found =
                        visit.index.candidates(requirement, entry.home).map_err(|error| match error {
                            CandidatesError::Channel(error) => error,
                            CandidatesError::Expression(source) => {
                                ResolveError::Expression { bundle: bundle(), source }
                            }
                        })?;
                    visit.found.insert(key, found.iter().map(|entry| self.of_entry(*entry)).collect());
                    stack.extend(found.iter().filter(|entry| !visit.visited.contains(entry)));
                }
                let candidates = visit.found[&key].clone();
                self.constraints.push(Constraint::Requires(variable, requirement.clone(), candidates));
            }
        }
        Ok(variables)
    }

    /// No two bundles of a package, no two providers of an API.
    fn add_invariants(&mut self) {
        let mut packages: BTreeMap<&str, Vec<Variable>> = BTreeMap::new();
        let mut providers: BTreeMap<&Gvk, Vec<Variable>> = BTreeMap::new();
        for (at, what) in self.variables.iter().enumerate() {
            let What::Entry(entry) = what else { continue };
            let facts = self.namespace.facts(*entry);
            for (package, _) in &facts.packages {
                packages.entry(package).or_default().push(Variable(at));
            }
            for gvk in &facts.gvks {
                providers.entry(gvk).or_default().push(Variable(at));
            }
        }
        let several = |variables: &mut Vec<Variable>| {
            variables.dedup();
            variables.len() > 1
        };
        for (package, mut variables) in packages {
            if several(&mut variables) {
                self.constraints.push(Constraint::OnePackage(package.to_owned(), variables));
            }
        }
        for (gvk, mut variables) in providers {
            if several(&mut variables) {
                self.constraints.push(Constraint::OneProvider(gvk.clone(), variables));
            }
        }
    }
}

/// What has been visited, and what was found for requirements.
struct Visit<'q> {
    index: Index<'q>,
    found: HashMap<(&'q Requirement, Home), Rc<[Variable]>>,
    visited: HashSet<usize>,
}

/// Whether an entry says that it may take over from an installed bundle.
fn may_follow(namespace: &Namespace<'_>, entry: usize, installed: usize) -> bool {
    let (entry, name) = (&namespace.entries[entry], namespace.entries[installed].name);
    let version = namespace.facts(installed).version.as_ref();
    let in_range =
        |range: &olmkit_bundle::version::VersionRange| version.is_some_and(|version| range.contains(version));
    entry.skip_range.as_ref().is_some_and(in_range) || entry.replaces == name || entry.skips.contains(&name)
}

impl Missing {
    /// The one that comes later.
    fn max_of(self, other: Self) -> Self {
        if (self as u8) < (other as u8) { other } else { self }
    }
}
