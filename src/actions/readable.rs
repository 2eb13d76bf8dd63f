//! Catalogs of which a part cannot be read.

use std::fmt::Display;

use olmkit_catalog::fbc::{Catalog, FaultKind};
use olmkit_catalog::validate;

use crate::exit::Failure;
use crate::shell::argument;

/// Refuses a catalog of which a part cannot be read: what is missing would not be missed.
pub(super) fn check_readable(catalog: &Catalog<'_>, input: &dyn Display) -> Result<(), Failure> {
    let Some(fault) = catalog.faults.first() else { return Ok(()) };
    let place = catalog.place(fault.at);
    let mut findings = validate::validate(catalog).into_iter();
    let why = findings.find(|finding| finding.place.as_ref() == Some(&place));
    let error = match why {
        Some(finding) => format!("a part of `{input}` cannot be read: {}", finding.message),
        None => format!("a part of `{input}` cannot be read"),
    };
    let failure = match fault.kind {
        FaultKind::NoText(_) => Failure::incomplete(error),
        _ => Failure::failed(error),
    };
    let input = argument(input);
    Err(failure.at(Some(place)).help(format!("run `olmkit catalog validate {input}` to list every problem")))
}
