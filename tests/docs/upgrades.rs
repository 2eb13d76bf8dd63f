//! `docs/upgrades.md`: the pictures and the upgrade paths are those of the channels on the page.

use std::fmt::Write as _;
use std::path::Path;

use olmkit_catalog::draw::{Drawing, Format, Options};
use olmkit_catalog::fbc::Catalog;
use olmkit_catalog::load::CatalogFiles;
use olmkit_catalog::path::{Query, paths};

use super::fresh;

/// A catalog of one channel: a package, and a bundle for each entry `echo.vVERSION`.
fn catalog(channel: &str) -> String {
    let mut text = format!("{{schema: olm.package, name: echo, defaultChannel: stable}}\n---\n{channel}");
    for name in channel.lines().filter_map(|line| line.strip_prefix("- name: ")) {
        let version = name.trim_start_matches("echo.v");
        write!(
            text,
            "---\n{{schema: olm.bundle, package: echo, name: {name}, image: registry.example.com/{name}, \
             properties: [{{type: olm.package, value: {{packageName: echo, version: {version}}}}}]}}\n"
        )
        .unwrap();
    }
    text
}

#[test]
fn upgrade_page_shows_what_the_program_draws() {
    let page =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/upgrades.md")).unwrap();
    let examples: Vec<&str> = page.split("```yaml\n").skip(1).collect();
    assert!(examples.len() >= 3, "too few examples");
    for example in examples {
        let (channel, rest) = example.split_once("```\n").expect("the block ends");
        let (_, rest) = rest.split_once("](pictures/").expect("a picture follows");
        let (picture, rest) = rest.split_once(')').expect("a link ends");
        let (_, rest) = rest.split_once("```text\n").expect("paths follow");
        let (told, _) = rest.split_once("```\n").expect("the block ends");
        let files = CatalogFiles::from_text("catalog.yaml", catalog(channel));
        let catalog = Catalog::parse(&files);
        let drawing = Drawing::of(&catalog, &Options::default()).unwrap();
        fresh(&format!("docs/pictures/{picture}"), &drawing.text(Format::Svg));
        let mut found = String::new();
        for path in paths(&catalog, &Query::default()).unwrap().iter().filter(|path| !path.hops.is_empty()) {
            let hops = [&[path.from], &path.hops[..]].concat();
            writeln!(found, "{}", hops.join(" → ")).unwrap();
        }
        assert_eq!(told, found, "the paths of {picture}");
    }
}
