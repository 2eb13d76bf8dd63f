//! The policy that a package file states, for `bundle diff`.

use std::path::Path;

use olmkit_bundle::diff::policy::Policy;
use olmkit_bundle::finding::Finding;
use olmkit_bundle::generate::PackageFile;

use crate::actions::generate::Texts;
use crate::exit::{Exit, Failure};

/// Reads the policy of a package file, or of a Cargo.toml that holds one.
///
/// # Errors
/// When the file cannot be read, has no policy, or one that cannot be meant.
pub(super) fn read(path: &Path) -> Result<Policy, Failure> {
    let name = path.display();
    let texts = Texts::find(Some(path))?;
    let at = |finding: &Finding| {
        let failure = Failure { exit: Exit::Incomplete, ..Failure::failed(finding.message.clone()) };
        let failure = failure.at(finding.place.clone());
        failure.help(finding.help.clone())
    };
    let known = texts.read().map_err(|findings| match findings.first() {
        Some(finding) => at(finding),
        None => Failure::incomplete(format!("`{name}` cannot be read")),
    })?;
    if let Some(finding) = known.findings.first() {
        return Err(at(finding));
    }
    let Some(PackageFile { settings, .. }) = &known.file else {
        return Err(no_policy(path));
    };
    if settings.policy == Default::default() {
        return Err(no_policy(path));
    }
    settings.policy.parse().map_err(|error| {
        let place = known.file.as_ref().map(|file| file.place(&error.path));
        Failure::incomplete(error.message)
            .at(place)
            .help("write a range as `>=1.29.0 <1.36.0`, and name the repository of each operand")
    })
}

fn no_policy(path: &Path) -> Failure {
    Failure::incomplete(format!("`{}` states no policy", path.display()))
        .help("add `policy:` with `kubernetes`, `operands` or `deprecationNotice`, or omit --package-file")
}
