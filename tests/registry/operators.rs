//! The operator verbs where the catalog is behind a login, or behind a certificate of its own.

use std::fs;

use libtest_mimic::{Failed, Trial};

use crate::command::{check, run, says_nothing, text, workplace};
use crate::server::{Kind, PASSWORD, Registry, USER};
use crate::support::trial;

pub(crate) fn trials() -> Vec<Trial> {
    let registry = ["docker-registry"];
    vec![
        trial("operator_verbs_log_in_to_registries", &registry, || {
            let registry = Registry::start(Kind::Basic);
            let creds = format!("{}={USER}:{PASSWORD}", registry.host);
            every_verb(&registry, &["--creds", &creds], "not logged in")?;
            let dir = tempfile::tempdir().unwrap();
            let file = dir.path().join("auth.json");
            let entry = "YWxpY2U6Y29ycmVjdC1ob3JzZS1iYXR0ZXJ5";
            fs::write(&file, format!(r#"{{"auths":{{"{}":{{"auth":"{entry}"}}}}}}"#, registry.host)).unwrap();
            every_verb(&registry, &["--authfile", file.to_str().unwrap()], "not logged in")
        }),
        trial("operator_verbs_trust_what_they_are_told_to", &registry, || {
            let registry = Registry::start(Kind::Tls);
            let certificate = registry.certificate();
            every_verb(
                &registry,
                &["--ca-file", certificate.to_str().unwrap()],
                "certificate that is not trusted",
            )?;
            every_verb(
                &registry,
                &["--insecure-skip-tls-verify", &registry.host],
                "certificate that is not trusted",
            )
        }),
    ]
}

/// Each verb reads its catalog with these flags, shows that it does, and cannot read it without them.
fn every_verb(registry: &Registry, flags: &[&str], without: &str) -> Result<(), Failed> {
    let dir = workplace();
    let catalog = format!("{}/team/catalog:v1", registry.host);
    let bundle = format!("{}/team/echo:v1", registry.host);
    fs::create_dir(dir.path().join("bundles")).unwrap();
    check(&run(dir.path(), &[["bundle", "push", "bundle", &bundle].as_slice(), flags].concat()), 0);
    let add = ["catalog", "add", "catalog", &bundle, "--channels", "stable"];
    check(&run(dir.path(), &[add.as_slice(), flags].concat()), 0);
    check(&run(dir.path(), &[["catalog", "push", "catalog", &catalog].as_slice(), flags].concat()), 0);
    for verb in [
        ["install", "echo", "--namespace", "echo", "--dry-run"].as_slice(),
        &["list"],
        &["status", "echo"],
        &["describe", "echo"],
        &["upgrade", "echo"],
        &["approve", "echo"],
        &["rollback", "echo", "--to", "0.1.0"],
        &["uninstall", "echo"],
    ] {
        let simulated =
            ["--simulate", "cluster.json", "--catalog-from", &catalog, "--bundles-from", "bundles"];
        let common = ["--cache-limit", "0"];
        let refused = run(dir.path(), &[&["operator"], verb, &simulated, &common].concat());
        check(&refused, 3);
        assert!(text(&refused.stderr).contains(without), "{verb:?}: {}", text(&refused.stderr));
        let done = run(dir.path(), &[&["operator"], verb, &simulated, &common, flags].concat());
        let said = text(&done.stderr);
        assert!(said.contains(": downloaded (") && !said.contains(without), "{verb:?}: {said}");
        says_nothing(&done);
    }
    Ok(())
}
