//! Catalogs: what opm said of sound and of defective ones.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::error::Error;
use std::path::{Path, PathBuf};

use libtest_mimic::{Failed, Trial};
use olmkit_bundle::finding::Level;
use olmkit_bundle::load::BundleFiles;
use olmkit_bundle::parse::Bundle;
use olmkit_bundle::version::Version;
use olmkit_catalog::add::{self, AddError, Policy, Request};
use olmkit_catalog::draw::{self, Drawing};
use olmkit_catalog::fbc::write::{self, Format};
use olmkit_catalog::fbc::{self, Catalog};
use olmkit_catalog::graph::VersionRelease;
use olmkit_catalog::load::CatalogFiles;
use olmkit_catalog::path::{About, NextHops, Query, Rules, paths};
use olmkit_catalog::render::{self, Form, Options, Rendered};
use olmkit_catalog::resolve::{Existing, Offer, Question, ResolveError, Subscription, resolve};
use olmkit_catalog::template::{BundleSource, Template};
use olmkit_catalog::validate::validate;
use serde_json::{Value, json};

type Test = fn(&Path) -> Result<(), Failed>;

/// Numbers are those of the questions: fewer would be a fault of the test.
pub(crate) fn trials(corpus: &Path) -> Vec<Trial> {
    let tests: [(&str, Test); 10] = [
        ("sound", |corpus| verdicts(corpus, "opm-validate", 100)),
        ("defective", |corpus| verdicts(corpus, "fbc-defects", 44)),
        ("render", render),
        ("graph", |corpus| graph(corpus, 8)),
        ("templates", templates),
        ("real_templates", real_templates),
        ("next", |corpus| next(corpus, 1000)),
        ("resolve", |corpus| resolved(corpus, 5145)),
        ("add_to_nothing", add_to_nothing),
        ("add_to_real_ones", add_to_real_ones),
    ];
    named("catalogs", corpus, &tests)
}

/// The same questions about catalogs that were made up for them: the project keeps these answers.
pub(crate) fn kept(answers: &Path) -> Vec<Trial> {
    let tests: [(&str, Test); 6] = [
        ("sound", |answers| verdicts(answers, "opm-validate", 41)),
        ("defective", |answers| verdicts(answers, "fbc-defects", 44)),
        ("graph", |answers| graph(answers, 1)),
        ("templates", templates),
        ("next", |answers| next(answers, 100)),
        ("resolve", |answers| resolved(answers, 2707)),
    ];
    named("kept::catalogs", answers, &tests)
}

fn named(prefix: &str, root: &Path, tests: &[(&str, Test)]) -> Vec<Trial> {
    let trial = |(name, test): &(&str, Test)| {
        let (root, test) = (root.to_owned(), *test);
        Trial::test(format!("{prefix}::{name}"), move || test(&root))
    };
    tests.iter().map(trial).collect()
}

/// The rows of a file of answers.
pub(crate) fn rows(corpus: &Path, name: &str) -> Result<Vec<Value>, Failed> {
    let text = std::fs::read_to_string(corpus.join("expected").join(name))?;
    text.lines().map(|line| Ok(serde_json::from_str(line)?)).collect()
}

/// Passes when there are no differences in at least so many questions.
fn all_agree(differences: &str, asked: usize, least: usize) -> Result<(), Failed> {
    if differences.is_empty() && asked >= least {
        return Ok(());
    }
    let differ = differences.lines().count();
    Err(format!("{asked} asked, expected at least {least}; {differ} differ\n{differences}").into())
}

/// We find an error exactly where `opm validate` does.
fn verdicts(corpus: &Path, answers: &str, least: usize) -> Result<(), Failed> {
    let mut differences = String::new();
    let rows = rows(corpus, &format!("{answers}.jsonl"))?;
    for row in &rows {
        let name = row["catalog"].as_str().unwrap_or_default();
        let files = CatalogFiles::load(&corpus.join(name))?;
        let findings = validate(&Catalog::parse(&files));
        let errors: Vec<_> = findings.iter().filter(|finding| finding.level == Level::Error).collect();
        if errors.is_empty() != (row["passed"] == true) {
            differences += &format!("{name}: opm says {}, we say {:?}\n", row["message"], errors);
        }
    }
    all_agree(&differences, rows.len(), least)
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
        let options = Options::new(&*expected.image, form);
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

/// We draw the lines that `opm alpha render-graph` draws, in whatever order.
fn graph(corpus: &Path, least: usize) -> Result<(), Failed> {
    let mut differences = String::new();
    let mut drawn = 0;
    for entry in std::fs::read_dir(corpus.join("expected/graph"))? {
        let path = entry?.path();
        if path.extension().is_none_or(|ending| ending != "call") {
            continue;
        }
        let call = std::fs::read_to_string(&path)?;
        let words: Vec<&str> = call.split_whitespace().collect();
        let directory = words.get(3).ok_or("no catalog")?;
        let behind = |flag: &str| Some(*words.get(words.iter().position(|word| *word == flag)? + 1)?);
        let files = CatalogFiles::load(&corpus.join(directory))?;
        let mut options = draw::Options::default();
        options.package = behind("-p");
        options.minimum_edge = behind("--minimum-edge");
        options.v0_semantics = words.contains(&"--draw-v0-semantics");
        let ours = Drawing::of(&Catalog::parse(&files), &options)?.text(draw::Format::Mermaid);
        let theirs = std::fs::read_to_string(path.with_extension("mermaid"))?;
        let links = |text: &str| {
            // Numbers of links go by the order of lines.
            let link = text.lines().filter(|line| line.contains("-->")).collect::<Vec<_>>();
            let numbers = text.lines().find_map(|line| line.strip_prefix("linkStyle ")?.split(' ').next());
            let numbers = numbers.into_iter().flat_map(|list| list.split(','));
            let mut marked: Vec<String> =
                numbers.filter_map(|at| Some((*link.get(at.parse::<usize>().ok()?)?).to_owned())).collect();
            marked.sort();
            marked
        };
        let sorted = |text: &str| {
            let mut lines: Vec<_> =
                text.lines().filter(|line| !line.starts_with("linkStyle")).map(str::to_owned).collect();
            lines.sort();
            lines
        };
        drawn += 1;
        if (sorted(&ours), links(&ours)) != (sorted(&theirs), links(&theirs)) {
            differences += &format!("{call}: ours is\n{ours}");
        }
    }
    all_agree(&differences, drawn, least)
}

/// Bundles that are there already, by reference.
struct Known(HashMap<String, Rendered>);

impl BundleSource for Known {
    fn bundles(&self, references: &[&str]) -> Result<Vec<Rendered>, Box<dyn Error + Send + Sync>> {
        let known =
            |reference: &&str| self.0.get(*reference).cloned().ok_or(format!("no {reference}").into());
        references.iter().map(known).collect()
    }
}

/// Templates stand for the catalogs and graphs that opm makes of them, and those that it refuses are refused.
fn templates(corpus: &Path) -> Result<(), Failed> {
    let mut differences = String::new();
    let mut rendered = 0;
    for kind in ["semver", "template"] {
        for entry in std::fs::read_dir(corpus.join("expected").join(kind))? {
            let directory = entry?.path();
            let read = |name: &str| std::fs::read_to_string(directory.join(name));
            let images: HashMap<String, String> = serde_json::from_str(&read("images.json")?)?;
            let mut known = HashMap::new();
            for (image, bundle) in images {
                let files = BundleFiles::load(&directory.join(bundle))?;
                let options = Options::new(&image, Form::Objects);
                known.insert(image, render::bundle(&Bundle::parse(&files), &options)?);
            }
            let text = read("template.yaml")?;
            let ours =
                Template::parse("template.yaml", &text).and_then(|template| template.render(&Known(known)));
            rendered += 1;
            match (ours, read("catalog.json")) {
                (Err(_), Err(_)) => {}
                (Ok(ours), Ok(theirs)) => {
                    let theirs = CatalogFiles::from_text("catalog.json", theirs);
                    let theirs = Catalog::parse(&theirs);
                    let (a, b) = (blobs(&ours)?, blobs(&theirs)?);
                    if a != b {
                        differences += &first_difference(&directory.display().to_string(), &a, &b, "");
                    }
                    let mut options = draw::Options::default();
                    options.v0_semantics = true;
                    let mermaid = Drawing::of(&ours, &options)?.text(draw::Format::Mermaid);
                    // Numbers of links go by the order of lines.
                    let lines = |text: &str| -> BTreeSet<String> {
                        text.lines()
                            .filter(|line| !line.starts_with("linkStyle"))
                            .map(str::to_owned)
                            .collect()
                    };
                    if lines(&mermaid) != lines(&read("graph.mermaid")?) {
                        differences += &format!("{}: another graph\n{mermaid}", directory.display());
                    }
                }
                (ours, theirs) => {
                    differences += &format!("{}: {:?} {}\n", directory.display(), ours.err(), theirs.is_ok());
                }
            }
        }
    }
    all_agree(&differences, rendered, 9)
}

/// A catalog as JSON values, in the order in which it is written.
fn blobs(catalog: &Catalog<'_>) -> Result<Value, Failed> {
    let text = write::to_text(catalog, Format::Json)?;
    let values = serde_json::Deserializer::from_str(&text).into_iter::<Value>();
    Ok(Value::Array(values.collect::<Result<_, _>>()?))
}

/// Real templates stand for the packages, channels and bundles of the catalogs that were made of them.
fn real_templates(corpus: &Path) -> Result<(), Failed> {
    let mut differences = String::new();
    for row in std::fs::read_to_string(corpus.join("catalogs/TEMPLATES.tsv"))?
        .lines()
        .filter(|line| !line.starts_with('#'))
    {
        let [template, catalog, _] = row.split('\t').collect::<Vec<_>>()[..] else {
            return Err(format!("not a row: {row}").into());
        };
        let files = CatalogFiles::load(&corpus.join(catalog))?;
        let theirs = Catalog::parse(&files);
        // The bundles themselves are not at hand: those of the catalog stand for them.
        let known = theirs.bundles.iter().map(|bundle| {
            (bundle.image.to_string(), Rendered { blob: owned(bundle.clone()), csv: Default::default() })
        });
        let text = std::fs::read_to_string(corpus.join(template))?;
        let ours = Template::parse(template, &text)?.render(&Known(known.collect()))?;
        let shape = |catalog: &Catalog<'_>| {
            let sorted = |mut lines: Vec<String>| {
                lines.sort();
                lines
            };
            let packages =
                catalog.packages.iter().map(|found| format!("{} {}", found.name, found.default_channel));
            let bundles = catalog.bundles.iter().map(|found| found.image.to_string());
            let channels = catalog.channels.iter().map(|found| {
                let entries = found.entries.iter().map(|entry| entry.to_json().to_string()).collect();
                format!("{} {} {:?}", found.package, found.name, sorted(entries))
            });
            [sorted(packages.collect()), sorted(channels.collect()), sorted(bundles.collect())]
        };
        if shape(&ours) != shape(&theirs) {
            differences += &format!("{row}: {:?} {:?}\n", shape(&ours), shape(&theirs));
        }
    }
    if differences.is_empty() { Ok(()) } else { Err(differences.into()) }
}

/// What comes next is what OLM's resolver installed next, where no requirement and no deprecation got in its way.
fn next(corpus: &Path, least: usize) -> Result<(), Failed> {
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
            let ways = NextHops::of(&blob.ok_or("no such channel")?.entries, about, Rules::V0)?;
            let version =
                version(installed).or_else(|| Some(text("installedVersion").parse::<Version>().ok()?.into()));
            let found: Vec<_> = ways.next(installed, version.as_ref()).into_iter().collect();
            asked += 1;
            if row["next"] != json!(found) {
                differences += &format!("{row}: ours is {found:?}\n");
            }
        }
    }
    all_agree(&differences, asked, least)
}

/// What we resolve is what OLM's resolver resolved, for every question, requirements and deprecations and all.
fn resolved(corpus: &Path, least: usize) -> Result<(), Failed> {
    let rows = rows(corpus, "next.jsonl")?;
    let mut differences = String::new();
    for same_catalog in rows.chunk_by(|a, b| a["catalog"] == b["catalog"]) {
        let name = same_catalog[0]["catalog"].as_str().unwrap_or_default();
        let files = CatalogFiles::load(&corpus.join(name))?;
        let catalog = Catalog::parse(&files);
        let is_sound = validate(&catalog).iter().all(|finding| finding.level != Level::Error);
        for row in same_catalog {
            let (next, error) = match is_sound {
                true => answer(&catalog, row)?,
                false => (Vec::new(), "InvalidCatalog".into()),
            };
            let is_right = match (&row["error"], &row["alternatives"]) {
                (Value::String(theirs), _) => error == *theirs,
                (_, Value::Array(all)) => error.is_empty() && all.contains(&json!(next)),
                _ => error.is_empty() && row["next"] == json!(next),
            };
            if !is_right {
                differences += &format!("{row}: ours is {next:?} {error}\n");
            }
        }
    }
    all_agree(&differences, rows.len(), least)
}

/// The names of what we would install, or the kind of error.
fn answer(catalog: &Catalog<'_>, row: &Value) -> Result<(Vec<String>, String), Failed> {
    let one = [row.clone()];
    let asked = row["subscriptions"].as_array().map_or(&one[..], Vec::as_slice);
    let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    let mut existing: Vec<Existing> = Vec::new();
    let orphans = row["orphans"].as_array().into_iter().flatten();
    for (name, version) in asked
        .iter()
        .map(|asked| (&asked["installed"], &asked["installedVersion"]))
        .chain(orphans.map(|name| (name, &Value::Null)))
    {
        let Some(name) = text(name) else { continue };
        existing.push(match (Existing::of_bundle(catalog, &name), text(version)) {
            (Some(known), _) => known,
            (None, Some(version)) => Existing { version: version.parse()?, ..Existing::of_name(&name) },
            (None, None) => Existing::of_name(&name),
        });
    }
    let subscriptions = asked.iter().map(|asked| Subscription {
        package: text(&asked["package"]).unwrap_or_default(),
        channel: text(&asked["channel"]),
        catalog: 0,
        starting_csv: text(&asked["startingCSV"]),
        installed: text(&asked["installed"]),
    });
    let catalogs = vec![Offer { name: "catalog", catalog, priority: 0 }];
    let question = Question { catalogs, subscriptions: subscriptions.collect(), existing };
    match resolve(&question) {
        Ok(found) => Ok((found.install.into_iter().map(|new| new.csv).collect(), String::new())),
        Err(ResolveError::Unsatisfiable { constraints }) if !constraints.is_empty() => {
            Ok((Vec::new(), "ConstraintsNotSatisfiable".into()))
        }
        Err(error) => Ok((Vec::new(), error.to_string())),
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

/// Every real operator's bundles make a catalog that is sound and in which every version reaches the head, in whatever order they
/// come.
fn add_to_nothing(corpus: &Path) -> Result<(), Failed> {
    let mut packages = 0;
    for package in std::fs::read_dir(corpus.join("bundles"))? {
        let mut bundles: Vec<Rendered> = Vec::new();
        let mut versions: Vec<PathBuf> = std::fs::read_dir(package?.path())?
            .map(|entry| Ok(entry?.path()))
            .collect::<Result<_, Failed>>()?;
        versions.sort();
        for directory in versions.iter().filter(|path| path.is_dir()) {
            let files = BundleFiles::load(directory)?;
            let image = format!("example.com/{}", directory.file_name().unwrap_or_default().display());
            let options = Options::new(image, Form::default());
            // Some are broken, and some have a version twice.
            let Ok(rendered) = render::bundle(&Bundle::parse(&files), &options) else { continue };
            let same_version = |other: &Rendered| other.csv.version == rendered.csv.version;
            if rendered.csv.version.parse::<Version>().is_ok() && !bundles.iter().any(same_version) {
                bundles.push(rendered);
            }
        }
        if bundles.is_empty() {
            continue;
        }
        packages += 1;
        for policy in [Policy::Replaces, Policy::SemverSkippatch] {
            let request = Request::new(vec!["stable".parse()?], policy);
            let all = add::add(&Catalog::parse(&CatalogFiles::default()), &bundles, &request)?;
            check_added(&all.files[0].text)?;
            if policy != Policy::SemverSkippatch {
                continue;
            }
            // One at a time, from the last in the list to the first.
            let mut text = String::new();
            for bundle in bundles.iter().rev() {
                let files = CatalogFiles::from_text("catalog.yaml", text);
                let mut change = add::add(&Catalog::parse(&files), std::slice::from_ref(bundle), &request)?;
                text = change.files.remove(0).text;
            }
            check_added(&text)?;
            let channel = |text: &str| {
                let files = CatalogFiles::from_text("catalog.yaml", text);
                Catalog::parse(&files).channels[0].to_json()
            };
            if channel(&text) != channel(&all.files[0].text) {
                return Err(format!("the order of {:?} matters", versions[0]).into());
            }
        }
    }
    if packages > 30 { Ok(()) } else { Err(format!("{packages} packages").into()) }
}

/// A further version goes into every real catalog without touching a line but those of its neighbours' edges.
fn add_to_real_ones(corpus: &Path) -> Result<(), Failed> {
    for row in rows(corpus, "opm-validate.jsonl")? {
        let directory = corpus.join(row["catalog"].as_str().unwrap_or_default());
        let files = CatalogFiles::load(&directory)?;
        let catalog = Catalog::parse(&files);
        if row["passed"] != true || files.files.len() != 1 {
            continue;
        }
        let [package, ..] = &catalog.packages[..] else { continue };
        let highest = catalog
            .bundles
            .iter()
            .filter(|bundle| bundle.package == package.name)
            .filter_map(version_of)
            .max();
        let mut version = highest.ok_or("no version")?.version;
        (version.minor, version.pre, version.build) =
            (version.minor + 1, Default::default(), Default::default());
        let value = json!({ "packageName": package.name.as_str(), "version": version.to_string() });
        let property =
            fbc::Property { kind: "olm.package".into(), value: Some(value.into()), ..Default::default() };
        let blob = fbc::Bundle {
            name: format!("{}.next", package.name).into(),
            package: package.name.clone(),
            image: "example.com/next".into(),
            properties: vec![property],
            ..Default::default()
        };
        let blob = Rendered { blob: owned(blob), csv: Default::default() };
        let channels = vec![package.default_channel.parse()?];
        let request = Request::new(channels, Policy::Replaces);
        let change = match add::add(&catalog, &[blob], &request) {
            Err(AddError::NotHigher { .. }) => continue,
            other => other.map_err(|error| format!("{}: {error}", directory.display()))?,
        };
        let new = &change.files[0].text;
        let lines: HashSet<&str> = new.lines().collect();
        let old = files.files[0].content.text().unwrap_or_default();
        let lost = old.lines().filter(|line| !lines.contains(line)).count();
        // A channel that stands on one line is another line now.
        if lost > 1 {
            return Err(format!("{}: {lost} lines changed", directory.display()).into());
        }
        let files = CatalogFiles::from_text("catalog.yaml", new.as_str());
        let errors = validate(&Catalog::parse(&files));
        if let Some(error) = errors.first() {
            return Err(format!("{}: {}", directory.display(), error.message).into());
        }
    }
    Ok(())
}

/// The same bundle without a tie to the catalog it was made for.
fn owned(bundle: fbc::Bundle<'_>) -> fbc::Bundle<'static> {
    let text = |text: &fbc::Text<'_>| fbc::Text::from(text.to_string());
    let property = |property: &fbc::Property<'_>| fbc::Property {
        kind: text(&property.kind),
        value: property.value.as_ref().map(|value| value.to_json().into()),
        ..Default::default()
    };
    fbc::Bundle {
        name: text(&bundle.name),
        package: text(&bundle.package),
        image: text(&bundle.image),
        properties: bundle.properties.iter().map(property).collect(),
        ..Default::default()
    }
}

fn check_added(text: &str) -> Result<(), Failed> {
    let files = CatalogFiles::from_text("catalog.yaml", text);
    let catalog = Catalog::parse(&files);
    if let Some(finding) = validate(&catalog).first() {
        return Err(format!("{}: {}", finding.code.name, finding.message).into());
    }
    match paths(&catalog, &Query::default())?.all_reach_the_head() {
        true => Ok(()),
        false => Err(format!("a version cannot reach the head of {}", catalog.packages[0].name).into()),
    }
}
