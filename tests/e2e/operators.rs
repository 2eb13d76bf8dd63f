//! What an operator's releases mean to a real API server.

use std::fs;
use std::path::Path;

use libtest_mimic::Trial;

use crate::harness::{Company, Operator, trial};

pub(crate) fn trials() -> Vec<Trial> {
    vec![trial("the_crds_of_each_release_follow_one_another", Company::Of(Operator::Redis), |namespace| {
        // Bundles of every release, in order: the API server takes each CRD as an update of the one before.
        let deploy = Path::new(env!("CARGO_MANIFEST_DIR")).join("operator/deploy");
        let mut releases = Vec::new();
        for entry in fs::read_dir(deploy)? {
            releases.extend(Some(entry?.path()).filter(|path| path.is_dir()));
        }
        releases.sort();
        assert!(releases.len() > 3, "{releases:?}");
        let name = "customresourcedefinition/redisclusters.cache.example.com";
        let outcome = releases.iter().try_for_each(|release| {
            let file = release.join("install/customresourcedefinition.yaml");
            let file = file.to_str().unwrap();
            namespace.cluster.kubectl(&[
                "apply",
                "--server-side",
                "--force-conflicts",
                "--filename",
                file,
            ])?;
            namespace.wait(name, "condition=Established")?;
            let crd = namespace.json(name)?;
            let conditions = crd["status"]["conditions"].as_array().ok_or("the CRD has no conditions")?;
            let bad =
                conditions.iter().find(|one| one["type"] == "NonStructuralSchema" && one["status"] == "True");
            assert!(bad.is_none(), "{}: {bad:?}", release.display());
            Ok(())
        });
        namespace.cluster.kubectl(&["delete", name, "--ignore-not-found", "--timeout=60s"])?;
        outcome
    })]
}
