//! Bundles on their way into an image or a catalog: what OLM would not install is said, and what is no bundle is refused.

use olmkit_bundle::finding::{Finding, Level};
use olmkit_bundle::parse::Bundle;
use olmkit_bundle::validate::{INSTALL, OLM, validate};

use crate::exit::Failure;
use crate::input::Input;
use crate::shell::argument;

/// How many errors are repeated.
const SHOWN: usize = 3;

/// The errors of a bundle in a sentence, if it has any.
///
/// # Errors
/// It has no ClusterServiceVersion.
pub(super) fn check_bundle(bundle: &Bundle<'_>, input: &Input) -> Result<Option<String>, Failure> {
    let validate_it = format!("olmkit bundle validate {} --suite {OLM} --suite {INSTALL}", argument(input));
    if bundle.csv_object().is_none() {
        let error = format!("`{input}` is not a bundle: it has no ClusterServiceVersion in its manifests");
        return Err(Failure::failed(error).help(format!("run `{validate_it}`")));
    }
    let findings = validate(bundle, &[OLM, INSTALL]);
    let errors: Vec<&Finding> = findings.iter().filter(|finding| finding.level == Level::Error).collect();
    let shown: Vec<String> =
        errors.iter().take(SHOWN).map(|own| format!("{} [{}]", own.message, own.code.name)).collect();
    let count = match errors.len() {
        0 => return Ok(None),
        1 => "an error".to_owned(),
        several => format!("{several} errors"),
    };
    let more = match errors.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    let shown = shown.join("; ");
    Ok(Some(format!("`{input}` has {count}, and OLM may not install it: {shown}{more}: run `{validate_it}`")))
}

/// What is said in one note.
pub(super) fn joined(notes: impl IntoIterator<Item = Option<String>>) -> Option<String> {
    notes.into_iter().flatten().reduce(|all, next| format!("{all}; {next}"))
}
