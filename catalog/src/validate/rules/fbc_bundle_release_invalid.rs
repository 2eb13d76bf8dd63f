use olmkit_bundle::finding::Findings;

use crate::graph::Release;
use crate::index::Index;
use crate::validate::{OPM, Rule, rule};

rule!("fbc-bundle-release-invalid", Error, OPM, "fbc_bundle_release_invalid.md");

fn check(index: &Index<'_, '_>, findings: &mut Findings) {
    for bundle in index.bundles() {
        let name = &bundle.blob.name;
        let [(at, package)] = &bundle.packages[..] else { continue };
        let mut push = |message: String, help: &str| {
            let finding = index.finding(&RULE.code, bundle.property_at(*at), message).subject(name.as_str());
            findings.push(finding.help(help));
        };
        match Release::parse(&package.release) {
            Err(error) => {
                push(error.to_string(), "use identifiers of letters, digits and `-` with dots between")
            }
            Ok(None) => {}
            Ok(Some(_)) => {
                let Some(version) = &bundle.version else { continue };
                let wanted = format!("{}-v{version}", bundle.blob.package);
                if *wanted != **name {
                    let release = &package.release;
                    let message =
                        format!("a bundle of release `{release}` must be named `{wanted}`, found `{name}`");
                    push(message, "rename the ClusterServiceVersion, or drop the release");
                }
                if !version.version.build.is_empty() {
                    let (version, release) = (&package.version, &package.release);
                    let message =
                        format!("the version `{version}` has build metadata beside the release `{release}`");
                    push(message, "set it only in the release");
                }
            }
        }
    }
}
