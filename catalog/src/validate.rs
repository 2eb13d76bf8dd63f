//! Checks a catalog against rules: one rule, one file, one code, one page of documentation.
//!
//! [`validate`] runs every rule over a catalog and returns all findings, sorted. The errors are those of `opm validate`, which stops
//! at the first; a rule sees the whole catalog, runs on broken ones too, and is silent about what it cannot see: where blobs could
//! not be read at all, none is reported as missing.

use olmkit_bundle::finding::{Code, Finding, Findings};

use crate::fbc::Catalog;
use crate::index::Index;

mod rules;

/// The suite of rules that opm applies to catalogs.
pub const OPM: &str = "opm";

/// A rule: what it is about and the check itself.
pub struct Rule {
    /// Name, level, suite and documentation.
    pub code: Code,
    /// Pushes a finding for every place where the catalog breaks the rule.
    check: fn(&Index<'_, '_>, &mut Findings),
}

/// Every rule, sorted by code.
pub fn rules() -> &'static [&'static Rule] {
    rules::ALL
}

/// Everything there is to say about a catalog, sorted by file and place.
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

/// [`validate`] for what has its index already.
pub(crate) fn check(index: &Index<'_, '_>) -> Vec<Finding> {
    let mut findings = Findings::new();
    for rule in rules() {
        (rule.check)(index, &mut findings);
    }
    findings.into_sorted(index.catalog.name)
}

#[cfg(test)]
mod tests;
