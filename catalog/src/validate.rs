//! Checks a catalog against rules: one rule, one file, one code, one page of documentation.
//!
//! [`validate`] runs the rules of opm over a catalog and returns all findings, sorted; [`advise`] has more to say. The errors are those of `opm validate`, which stops
//! at the first; a rule sees the whole catalog, runs on broken ones too, and is silent about what it cannot see: where blobs could
//! not be read at all, none is reported as missing.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use olmkit_bundle::finding::{Code, Finding, Findings, Place};
use olmkit_bundle::rule;

use crate::fbc::Catalog;
use crate::index::Index;

mod advice;
mod rules;

/// The suite of rules that opm applies to catalogs.
pub const OPM: &str = "opm";

/// The suite of what opm says nothing of: nothing in it is an error unless a user says so.
pub const ADVICE: &str = "advice";

/// A rule: what it is about and the check itself.
pub struct Rule {
    /// Name, level, suite and documentation.
    pub code: Code,
    /// Pushes a finding for every place where the catalog breaks the rule.
    check: fn(&Index<'_, '_>, &mut Findings),
}

/// Every rule that opm has, sorted by code.
pub fn rules() -> &'static [&'static Rule] {
    rules::ALL
}

/// Every rule of the suite [`ADVICE`], sorted by code.
pub fn advice() -> &'static [&'static Rule] {
    advice::ALL
}

/// Everything that opm finds wrong with a catalog, sorted by file and place.
///
/// ```
/// use olmkit_catalog::{fbc::Catalog, load::CatalogFiles, validate::validate};
/// let files = CatalogFiles::from_text("catalog.yaml", "schema: olm.package\nname: Redis\n");
/// let codes: Vec<_> = validate(&Catalog::parse(&files)).iter().map(|finding| finding.code.name).collect();
/// assert_eq!(codes, ["default-channel-missing", "package-name-invalid", "package-without-channels"]);
/// ```
pub fn validate(catalog: &Catalog<'_>) -> Vec<Finding> {
    check(&Index::new(catalog))
}

/// Everything there is to say about a catalog: what [`validate`] says, and what will surprise somebody although opm takes it.
///
/// ```
/// use olmkit_catalog::{fbc::Catalog, load::CatalogFiles, validate::{advise, validate}};
/// let files = CatalogFiles::from_text("catalog.yaml", "
/// {schema: olm.package, name: redis, defaultChannel: stable}
/// ---
/// {schema: olm.channel, package: redis, name: stable, entries: [{name: redis.v1, replaces: redis.v0}]}
/// ---
/// {schema: olm.bundle, package: redis, name: redis.v1, image: 'x/y:z', properties: [{type: olm.package, value: {packageName: redis, version: 1.0.0}}]}");
/// let catalog = Catalog::parse(&files);
/// assert!(validate(&catalog).is_empty());
/// assert_eq!(advise(&catalog)[0].code.name, "channel-replaces-absent");
/// ```
pub fn advise(catalog: &Catalog<'_>) -> Vec<Finding> {
    let all: Vec<_> = rules().iter().chain(advice()).copied().collect();
    run(&all, &Index::new(catalog))
}

/// [`validate`] for what has its index already.
pub fn check(index: &Index<'_, '_>) -> Vec<Finding> {
    run(rules(), index)
}

/// What validation finds, what could not be read before everything else.
pub(crate) fn faults_first(index: &Index<'_, '_>) -> Vec<Finding> {
    let mut findings = check(index);
    let faults = index.catalog.faults.iter();
    let places: HashSet<Place> = faults.map(|fault| index.catalog.place(fault.at)).collect();
    findings.sort_by_key(|finding| !finding.place.as_ref().is_some_and(|place| places.contains(place)));
    findings
}

/// The message of the first finding, for errors about all of them.
pub(crate) fn first_message(findings: &[Finding]) -> &str {
    findings.first().map_or("", |finding| &finding.message)
}

/// Runs rules, some side by side: a few of them have to look at every byte.
fn run(rules: &[&Rule], index: &Index<'_, '_>) -> Vec<Finding> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut findings = Findings::new();
        while let Some(rule) = rules.get(next.fetch_add(1, Ordering::Relaxed)) {
            (rule.check)(index, &mut findings);
        }
        findings
    };
    let others = thread::available_parallelism().map_or(0, |threads| threads.get().min(MAX_THREADS) - 1);
    let mut findings = Findings::new();
    thread::scope(|scope| {
        let others: Vec<_> = (0..others).map(|_| scope.spawn(work)).collect();
        findings.merge(work());
        for other in others {
            // A rule that panicked here would have panicked without threads.
            let found = other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            findings.merge(found);
        }
    });
    findings.into_sorted(index.catalog.name)
}

/// More threads than there are heavy rules gain nothing.
const MAX_THREADS: usize = 4;

#[cfg(test)]
mod tests;
