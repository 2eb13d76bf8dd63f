//! Catalogs made of what is in a registry: the same as of the directories that it came from.

use std::fs;
use std::path::Path;

use libtest_mimic::{Failed, Trial};

use crate::command::{check, run, text, workplace};
use crate::server::{Kind, Registry};
use crate::support::trial;

const VERSIONS: [&str; 4] = ["0.1.0", "0.1.1", "0.2.0", "1.0.0-rc.1"];

pub(crate) fn trials() -> Vec<Trial> {
    let registry = ["docker-registry"];
    vec![
        trial("images_render_as_their_directories", &registry, rendered),
        trial("templates_of_images_are_those_of_directories", &registry, templates),
    ]
}

/// A bundle of each version in a directory of its own, pushed to `HOST/team/echo:vVERSION`.
fn pushed(dir: &Path, registry: &Registry) {
    let csv = fs::read_to_string(dir.join("bundle/manifests/csv.yaml")).unwrap();
    for version in VERSIONS {
        let bundle = dir.join(version);
        for (path, text) in [
            ("manifests/csv.yaml", csv.replace("0.1.0", version)),
            (
                "metadata/annotations.yaml",
                fs::read_to_string(dir.join("bundle/metadata/annotations.yaml")).unwrap(),
            ),
        ] {
            fs::create_dir_all(bundle.join(path).parent().unwrap()).unwrap();
            fs::write(bundle.join(path), text).unwrap();
        }
        check(&run(dir, &["bundle", "push", version, &reference(registry, version)]), 0);
    }
}

fn reference(registry: &Registry, version: &str) -> String {
    format!("{}/team/echo:v{version}", registry.host)
}

/// What a command that must succeed prints.
#[track_caller]
fn printed(dir: &Path, arguments: &[&str]) -> String {
    let output = run(dir, arguments);
    check(&output, 0);
    text(&output.stdout)
}

fn rendered() -> Result<(), Failed> {
    let (dir, registry) = (workplace(), Registry::start(Kind::Plain));
    pushed(dir.path(), &registry);
    let template = format!("{}/team/echo:v{{{{.Version}}}}", registry.host);
    let references = VERSIONS.map(|version| reference(&registry, version));
    for options in
        [["--migrate-level", "none", "--format", "yaml"], ["--migrate-level", "all", "--format", "json"]]
    {
        let of = |inputs: &[&str], more: &[&str]| {
            printed(dir.path(), &[&["catalog", "render"], inputs, &options, more].concat())
        };
        let directories = of(&VERSIONS, &["--image-ref-template", &template]);
        assert_eq!(
            directories.matches("olm.bundle\"").count() + directories.matches("schema: olm.bundle\n").count(),
            4
        );
        // The second time from the cache.
        for _ in 0..2 {
            assert_eq!(of(&references.each_ref().map(String::as_str), &[]), directories);
        }

        // A catalog in an image is that catalog.
        fs::create_dir_all(dir.path().join("catalog")).unwrap();
        fs::write(dir.path().join("catalog/catalog"), &directories).unwrap();
        let image = format!("{}/team/catalog:v1", registry.host);
        check(&run(dir.path(), &["catalog", "build", "catalog", "--data-only", "--to", &image]), 0);
        assert_eq!(of(&[&image], &[]), of(&["catalog"], &[]));
    }
    let missing = reference(&registry, "9.9.9");
    let output = run(dir.path(), &["catalog", "render", &references[0], &missing]);
    check(&output, 3);
    assert!(text(&output.stderr).contains(&missing), "{}", text(&output.stderr));
    Ok(())
}

fn templates() -> Result<(), Failed> {
    let (dir, registry) = (workplace(), Registry::start(Kind::Plain));
    pushed(dir.path(), &registry);
    let images = |start: &str| -> String {
        VERSIONS.map(|version| format!("{start}{}\n", reference(&registry, version))).concat()
    };
    let basic = format!(
        "schema: olm.template.basic\nentries:\n- {{schema: olm.package, name: echo, defaultChannel: stable}}\n- {{schema: \
         olm.channel, package: echo, name: stable, entries: [{}]}}\n{}",
        VERSIONS.map(|version| format!("{{name: echo.v{version}}}")).join(", "),
        images("- schema: olm.bundle\n  image: "),
    );
    let semver = format!("schema: olm.semver\nstable:\n  bundles:\n{}", images("  - image: "));
    let map = VERSIONS.map(|version| format!("{}\t{version}\n", reference(&registry, version))).concat();
    fs::write(dir.path().join("map.tsv"), map).unwrap();
    for (name, template) in [("basic", basic), ("semver", semver)] {
        fs::write(dir.path().join(name), &template).unwrap();
        let of = |more: &[&str]| printed(dir.path(), &[&["catalog", "template", name], more].concat());
        let offline = of(&["--bundles", "map.tsv"]);
        assert_eq!(offline.matches("schema: olm.bundle\n").count(), 4, "{offline}");
        assert_eq!(of(&[]), offline);

        fs::write(dir.path().join(name), template.replace("v0.2.0", "v0.9.0")).unwrap();
        let output = run(dir.path(), &["catalog", "template", name]);
        check(&output, 3);
        assert!(text(&output.stderr).contains(&reference(&registry, "0.9.0")), "{}", text(&output.stderr));
    }
    Ok(())
}
