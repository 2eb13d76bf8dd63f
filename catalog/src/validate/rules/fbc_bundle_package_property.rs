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
        let (has, help) = match properties().count() {
            1 => ("".into(), ""),
            0 => ("no `olm.package` property".into(), "add one with `packageName` and `version`"),
            count => {
                let has = format!("{count} `olm.package` properties instead of one");
                (has, "keep the one with the version of its ClusterServiceVersion")
            }
        };
        if !has.is_empty() {
            findings.push(finding(bundle.at(name), format!("the bundle `{name}` has {has}")).help(help));
        }
        if let [(at, package)] = &bundle.packages[..]
            && package.name != *bundle.blob.package
            && !bundle.blob.package.is_empty()
        {
            let message = format!(
                "the bundle `{name}` belongs to the package `{}`, its `olm.package` property says `{}`",
                bundle.blob.package, package.name
            );
            let other = index.catalog.place(bundle.at(&bundle.blob.package));
            findings.push(finding(bundle.property_at(*at), message).and(other.label("the package here")));
        }
    }
}
