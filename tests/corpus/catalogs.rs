//! Catalogs: what opm said of sound and of defective ones.

use std::path::Path;

use libtest_mimic::{Failed, Trial};
use olmkit_bundle::finding::Level;
use olmkit_bundle::load::BundleFiles;
use olmkit_bundle::parse::Bundle;
use olmkit_bundle::version::Version;
use olmkit_catalog::fbc::{self, Catalog};
use olmkit_catalog::graph::VersionRelease;
use olmkit_catalog::load::CatalogFiles;
use olmkit_catalog::path::{About, Rules, Ways};
use olmkit_catalog::render::{self, Form, Options};
use olmkit_catalog::validate::validate;
use serde_json::{Value, json};

pub(crate) fn trials(corpus: &Path) -> Vec<Trial> {
    let trial = |name: &str, test: fn(&Path) -> Result<(), Failed>| {
        let corpus = corpus.to_owned();
        Trial::test(format!("catalogs::{name}"), move || test(&corpus))
    };
    vec![
        trial("sound", |corpus| verdicts(corpus, "opm-validate")),
        trial("defective", |corpus| verdicts(corpus, "fbc-defects")),
        trial("render", render),
        trial("next", next),
    ]
}

/// The rows of a file of answers.
pub(crate) fn rows(corpus: &Path, name: &str) -> Result<Vec<Value>, Failed> {
    let text = std::fs::read_to_string(corpus.join("expected").join(name))?;
    text.lines().map(|line| Ok(serde_json::from_str(line)?)).collect()
}

/// We find an error exactly where `opm validate` does.
fn verdicts(corpus: &Path, answers: &str) -> Result<(), Failed> {
    let mut differences = String::new();
    for row in rows(corpus, &format!("{answers}.jsonl"))? {
        let name = row["catalog"].as_str().unwrap_or_default();
        let files = CatalogFiles::load(&corpus.join(name))?;
        let findings = validate(&Catalog::parse(&files));
        let errors: Vec<_> = findings.iter().filter(|finding| finding.level == Level::Error).collect();
        if errors.is_empty() != (row["passed"] == true) {
            differences += &format!("{name}: opm says {}, we say {:?}\n", row["message"], errors);
        }
    }
    if differences.is_empty() { Ok(()) } else { Err(differences.into()) }
}

/// Rendering a bundle's directory gives exactly the blob that opm's catalog has of it.
fn render(corpus: &Path) -> Result<(), Failed> {
    let mut differences = String::new();
    for row in std::fs::read_to_string(corpus.join("catalogs/RENDER.tsv"))?
        .lines()
        .filter(|line| !line.starts_with('#'))
    {
        let [catalog, name, form, directory] = row.split('\t').collect::<Vec<_>>()[..] else {
            return Err(format!("not a row: {row}").into());
        };
        let files = CatalogFiles::load(&corpus.join(catalog))?;
        let catalog = Catalog::parse(&files);
        let expected = catalog.bundles.iter().find(|bundle| bundle.name == *name).ok_or("no such bundle")?;
        let form = if form == "objects" { Form::Objects } else { Form::Metadata };
        let files = BundleFiles::load(&corpus.join(directory))?;
        let options = Options { image: expected.image.to_string(), form };
        match render::bundle(&Bundle::parse(&files), &options) {
            Ok(rendered) if rendered.blob.to_json() == expected.to_json() => {}
            Ok(rendered) => {
                differences += &first_difference(row, &rendered.blob.to_json(), &expected.to_json(), "")
            }
            Err(error) => differences += &format!("{row}: {error}\n"),
        }
    }
    if differences.is_empty() { Ok(()) } else { Err(differences.into()) }
}

/// The first place where two values differ.
fn first_difference(what: &str, ours: &Value, theirs: &Value, path: &str) -> String {
    let inner = |a: &Value, b: &Value, step: &str| first_difference(what, a, b, &format!("{path}/{step}"));
    match (ours, theirs) {
        (Value::Object(a), Value::Object(b)) if a.keys().eq(b.keys()) => a
            .iter()
            .find(|(key, value)| b[*key] != **value)
            .map(|(key, value)| inner(value, &b[key], key))
            .unwrap_or_default(),
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            let different = a.iter().zip(b).enumerate().find(|(_, (a, b))| a != b);
            different.map(|(at, (a, b))| inner(a, b, &at.to_string())).unwrap_or_default()
        }
        _ => format!("{what}: at {path} ours is {ours:.300}, theirs {theirs:.300}\n"),
    }
}

/// What comes next is what OLM's resolver installed next, where no requirement and no deprecation got in its way.
fn next(corpus: &Path) -> Result<(), Failed> {
    let rows = rows(corpus, "next.jsonl")?;
    let mut differences = String::new();
    let mut asked = 0;
    for same_catalog in rows.chunk_by(|a, b| a["catalog"] == b["catalog"]) {
        let name = same_catalog[0]["catalog"].as_str().unwrap_or_default();
        let files = CatalogFiles::load(&corpus.join(name))?;
        let catalog = Catalog::parse(&files);
        for row in same_catalog {
            let text = |key: &str| row[key].as_str().unwrap_or_default();
            let (package, channel, installed) = (text("package"), text("channel"), text("installed"));
            let ours = || catalog.bundles.iter().filter(|bundle| *bundle.package == *package);
            if channel.is_empty()
                || installed.is_empty()
                || !row["alternatives"].is_null()
                || ours().any(is_constrained)
            {
                continue;
            }
            let version = |name: &str| ours().find(|bundle| *bundle.name == *name).and_then(version_of);
            let about = |name: &str| About { version: version(name), deprecated: false };
            let blob =
                catalog.channels.iter().find(|blob| *blob.package == *package && *blob.name == *channel);
            let ways = Ways::of(&blob.ok_or("no such channel")?.entries, about, Rules::V0)?;
            let version =
                version(installed).or_else(|| Some(text("installedVersion").parse::<Version>().ok()?.into()));
            let found: Vec<_> = ways.next(installed, version.as_ref()).into_iter().collect();
            asked += 1;
            if row["next"] != json!(found) {
                differences += &format!("{row}: ours is {found:?}\n");
            }
        }
    }
    if differences.is_empty() && asked > 1000 {
        Ok(())
    } else {
        Err(format!("{asked} asked\n{differences}").into())
    }
}

fn version_of(bundle: &fbc::Bundle<'_>) -> Option<VersionRelease> {
    let property = bundle.properties.iter().find(|property| *property.kind == *"olm.package")?;
    let version: Version = property.value.as_ref()?.to_json()["version"].as_str()?.parse().ok()?;
    Some(version.into())
}

/// Whether OLM may have a reason not to take a bundle that its place in the channel speaks for.
fn is_constrained(bundle: &fbc::Bundle<'_>) -> bool {
    let constrains =
        |kind: &str| kind.ends_with(".required") || matches!(kind, "olm.constraint" | "olm.deprecated");
    bundle.properties.iter().any(|property| constrains(&property.kind))
}
