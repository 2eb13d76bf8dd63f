use olmkit_bundle::finding::Findings;

use crate::fbc::property;
use crate::index::Index;
use crate::validate::{OPM, Rule, rule};

rule!("fbc-bundle-package-property", Error, OPM, "fbc_bundle_package_property.md");

fn check(index: &Index<'_, '_>, findings: &mut Findings) {
    for bundle in index.bundles().filter(|bundle| !index.is_faulty(bundle.blob.at)) {
        let properties =
            || bundle.blob.properties.iter().filter(|found| found.kind.as_str() == property::PACKAGE);
        let name = &bundle.blob.name;
        let finding = |at, message: String| index.finding(&RULE.code, at, message).subject(name.as_str());
        match properties().count() {
            0 => findings.push(
                finding(bundle.at(name), format!("the bundle `{name}` has no `olm.package` property"))
                    .help("add one with `packageName` and `version`"),
            ),
            1 => {}
            count => findings.push(
                finding(
                    bundle.at(name),
                    format!("the bundle `{name}` has {count} `olm.package` properties instead of one"),
                )
                .help("keep the one with the version of its ClusterServiceVersion"),
            ),
        }
        if let [(at, package)] = &bundle.packages[..]
            && package.name != *bundle.blob.package
            && !bundle.blob.package.is_empty()
        {
            let message = format!(
                "the bundle `{name}` belongs to the package `{}`, its `olm.package` property says `{}`",
                bundle.blob.package, package.name
            );
            findings.push(
                finding(bundle.property_at(*at), message)
                    .and(index.catalog.place(bundle.at(&bundle.blob.package)).label("the package here")),
            );
        }
    }
}
