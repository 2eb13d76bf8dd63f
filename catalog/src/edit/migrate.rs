//! Replaces the manifests in bundles' blobs by the metadata that consoles show: `olm.bundle.object` by `olm.csv.metadata`.

use super::deprecate::nothing;
use super::{Change, EditError, FORMAT, backticked};
use crate::fbc::{Catalog, property};
use crate::render;
use crate::texts::Texts;

/// Migrates every bundle that has an image.
pub(super) fn migrate(catalog: &Catalog<'_>) -> Result<Change, EditError> {
    let mut texts = Texts::new(catalog, FORMAT);
    let (mut count, mut without_image, mut without_csv) = (0_usize, 0_usize, Vec::new());
    for bundle in &catalog.bundles {
        let fail = |source| EditError::Migrate { place: Box::new(catalog.place(bundle.at)), source };
        match render::migrated(bundle).map_err(fail)? {
            Some(new) => {
                texts.set(bundle.at, &bundle.to_json(), &new.to_json())?;
                count += 1;
            }
            None if bundle.image.is_empty()
                && bundle.properties.iter().any(|found| *found.kind == *property::BUNDLE_OBJECT) =>
            {
                without_image += 1;
            }
            None if bundle.properties.iter().any(|found| *found.kind == *property::BUNDLE_OBJECT) => {
                without_csv.push(bundle.name.to_string());
            }
            None => {}
        }
    }
    let bundles = |count: usize| if count == 1 { "1 bundle".to_owned() } else { format!("{count} bundles") };
    let keep = (without_image > 0).then(|| {
        format!(
            "manifests stay in {} without an image, since OLM installs them from there",
            bundles(without_image)
        )
    });
    let mut change = match count {
        0 => nothing("no bundle has manifests that can be replaced: nothing to change".into()),
        _ => Change {
            files: texts.finish()?,
            summary: vec![format!("replaced the manifests of {} by `olm.csv.metadata`", bundles(count))],
        },
    };
    change.summary.extend(keep);
    if !without_csv.is_empty() {
        let they = if without_csv.len() == 1 { "it has" } else { "they have" };
        change
            .summary
            .push(format!("manifests stay in {}: {they} no ClusterServiceVersion", backticked(&without_csv)));
    }
    Ok(change)
}
