//! What `edit` keeps of a catalog is what an installation needs.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use serde_json::json;

use super::*;
use crate::edit::{Keep, Request, changed, edit};
use crate::load::CatalogFiles;
use crate::validate;

/// A catalog of packages `p0`, `p1` and so on, each of which may require others.
fn packages(required: &[Vec<usize>]) -> CatalogFiles {
    let blobs = required.iter().enumerate().flat_map(|(at, required)| {
        let (package, name) = (format!("p{at}"), format!("p{at}.v1.0.0"));
        let mut properties =
            vec![json!({"type": "olm.package", "value": {"packageName": package, "version": "1.0.0"}})];
        for other in required {
            let value = json!({"packageName": format!("p{other}"), "versionRange": ">=1.0.0"});
            properties.push(json!({"type": "olm.package.required", "value": value}));
        }
        [
            json!({"schema": "olm.package", "name": package, "defaultChannel": "stable"}),
            json!({"schema": "olm.channel", "package": package, "name": "stable", "entries": [{"name": name}]}),
            json!({"schema": "olm.bundle", "package": package, "name": name, "image": "x/y:z", "properties": properties}),
        ]
    });
    CatalogFiles::from_text("catalog.json", blobs.map(|blob| format!("{blob}\n")).collect::<String>())
}

/// What is installed with a package.
fn installed(files: &CatalogFiles, package: &str) -> Vec<String> {
    let catalog = Catalog::parse(files);
    let question = Question {
        catalogs: vec![Offer { name: "catalog", catalog: &catalog, priority: 0 }],
        subscriptions: vec![Subscription { package: package.into(), ..Subscription::default() }],
        existing: Vec::new(),
    };
    let mut names: Vec<String> =
        resolve(&question).unwrap().install.into_iter().map(|found| found.csv).collect();
    names.sort();
    names
}

/// The same cases in every run.
fn config() -> ProptestConfig {
    ProptestConfig {
        cases: 48,
        rng_seed: RngSeed::Fixed(21),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config())]

    /// What is kept with what it requires is valid, and installs what it did before.
    #[test]
    fn pruning_keeps_what_an_installation_needs(
        required in prop::collection::vec(prop::collection::vec(0..8usize, 0..3), 8),
        kept in 0..8usize,
    ) {
        // Without cycles, and nobody requires itself.
        let required: Vec<Vec<usize>> = required.into_iter().enumerate()
            .map(|(at, others)| others.into_iter().filter(|other| *other > at).collect())
            .collect();
        let files = packages(&required);
        let package = format!("p{kept}");
        let keep = Keep { packages: vec![package.clone()], with_dependencies: true, ..Keep::default() };
        let change = edit(&files, &Request::Prune(keep)).unwrap();
        let after = changed(&files, &change.files);
        prop_assert!(validate::validate(&Catalog::parse(&after)).is_empty());
        prop_assert_eq!(installed(&after, &package), installed(&files, &package));
        prop_assert_eq!(Catalog::parse(&after).bundles.len(), installed(&files, &package).len());
    }
}
