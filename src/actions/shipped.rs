//! Bundles on their way into an image or a catalog: what OLM would not install is said, and what is no bundle is refused.

use olmkit_bundle::finding::{Level, summary};
use olmkit_bundle::parse::Bundle;
use olmkit_bundle::validate::{INSTALL, OLM, validate};

use crate::exit::Failure;
use crate::input::Input;
use crate::shell::argument;

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
    let mut errors = validate(bundle, &[OLM, INSTALL]);
    errors.retain(|finding| finding.level == Level::Error);
    let count = match errors.len() {
        0 => return Ok(None),
        1 => "an error".to_owned(),
        several => format!("{several} errors"),
    };
    let shown = summary(&errors);
    Ok(Some(format!("`{input}` has {count}, and OLM may not install it: {shown}: run `{validate_it}`")))
}

/// What is said in one note.
pub(super) fn joined(notes: impl IntoIterator<Item = Option<String>>) -> Option<String> {
    notes.into_iter().flatten().reduce(|all, next| format!("{all}; {next}"))
}
