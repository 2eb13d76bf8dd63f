//! What is fuzzed: functions that take any bytes and panic when something does not hold. `main.rs` drives them on stable Rust,
//! `targets/` makes them targets of cargo-fuzz.

use olmkit::image::{Access, Place, Unpack};
use olmkit::lifecycle::doctor::{self, Observation};
use olmkit::lifecycle::simulate::Simulation;
use olmkit_bundle::cel::constraint::Expression;
use olmkit_bundle::cel::rule::{Old, Scope, Wanted, check_rule};
use olmkit_bundle::email::check_address;
use olmkit_bundle::generate::PackageFile;
use olmkit_bundle::load::{BundleFile, BundleFiles, Content};
use olmkit_bundle::parse::Bundle;
use olmkit_bundle::pattern::Pattern;
use olmkit_bundle::schema::format::misfit;
use olmkit_bundle::schema::{At, Schema, structural, value};
use olmkit_bundle::source::Source;
use olmkit_bundle::url::Url;
use olmkit_bundle::validate::{SUITES, validate};
use olmkit_bundle::version::{VersionRange, parse_tolerant};
use olmkit_bundle::yaml;
use olmkit_catalog::draw::{Drawing, Format, Options};
use olmkit_catalog::fbc::Catalog;
use olmkit_catalog::load::CatalogFiles;
use olmkit_catalog::path::{Query, paths};
use olmkit_catalog::template::Template;
use olmkit_serve::compiled::Compiled;

/// Any bytes are fine for it.
type Body = fn(&[u8]);

/// Every body by its name.
pub(crate) const BODIES: &[(&str, Body)] = &[
    ("yaml", yaml),
    ("bundle", bundle),
    ("schema", schema),
    ("texts", texts),
    ("catalog", catalog),
    ("template", template),
    ("package_file", package_file),
    ("cluster", cluster),
    ("archive", archive),
    ("index", index),
];

/// Reading never panics, is the same twice, and every document lies in the text. What is written reads as it was.
pub(crate) fn yaml(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let read = || {
        yaml::documents(text)
            .map(|document| document.map(|document| document.root.to_json()))
            .collect::<Vec<_>>()
    };
    let documents = read();
    assert_eq!(documents, read());
    for document in yaml::documents(text).flatten() {
        assert!(document.span.end as usize <= text.len());
        let json = document.root.to_json();
        assert_eq!(document.root.json_bytes(), json.to_string().len() as u64, "{json}");
    }
}

/// Whatever the files of a bundle hold, every rule ends, says the same twice, and points into the files. Files are cut from
/// the data at lines that start with `# manifests/` or `# metadata/`.
pub(crate) fn bundle(data: &[u8]) {
    let mut files = Vec::new();
    let mut rest = data;
    let mut path = "manifests/operator.yaml".to_owned();
    while !rest.is_empty() {
        let next = rest.windows(3).position(|window| window == b"\n# ").map(|at| at + 1);
        let (part, behind) = rest.split_at(next.unwrap_or(rest.len()));
        // A directory has no two files of one name.
        if !files.iter().any(|file: &BundleFile| file.path == path) {
            files.push(BundleFile { path: path.clone(), content: Content::from_bytes(part.to_vec()) });
        }
        let line = behind.split(|byte| *byte == b'\n').next().unwrap_or_default();
        path = String::from_utf8_lossy(line).trim_start_matches("# ").to_owned();
        rest = behind.get(line.len()..).unwrap_or_default();
    }
    let files = BundleFiles { name: "bundle".into(), files };
    let bundle = Bundle::parse(&files);
    let findings = validate(&bundle, SUITES);
    assert_eq!(findings, validate(&bundle, SUITES));
    for finding in &findings {
        let Some(place) = &finding.place else { continue };
        let Some(position) = place.position else { continue };
        let file =
            bundle.files.iter().find(|file| file.source.path() == place.path).expect("a place is in a file");
        assert!(position.line as usize <= file.source.text().split('\n').count() + 1, "{finding:?}");
    }
}

/// A document is held against another as its schema.
pub(crate) fn schema(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let documents: Vec<_> = yaml::documents(text).flatten().take(2).collect();
    let [schema, rest @ ..] = &documents[..] else { return };
    structural::problems(Schema(&schema.root));
    let value = rest.first().unwrap_or(schema);
    value::check(&value.root, Schema(&schema.root), true);
    Schema(&schema.root).each_described(At::ROOT, &mut |schema, at| {
        let Some(scope) =
            Scope::new(schema, at.is_resource, Old { can_correlate: true, optional: Some(true) })
        else {
            return;
        };
        for rule in schema.list("x-kubernetes-validations") {
            let _ = check_rule(&Schema(rule).text("rule"), &scope, Wanted::Truth);
        }
    });
}

/// Short texts with grammars of their own.
pub(crate) fn texts(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let _ = check_rule(text, &Scope::unknown(), Wanted::Truth);
    let _ = Expression::parse(text);
    if let Ok(pattern) = Pattern::parse(text) {
        let _ = pattern.is_match(text);
    }
    for format in [
        "byte",
        "cidr",
        "creditcard",
        "date",
        "date-time",
        "duration",
        "hostname",
        "ipv4",
        "isbn",
        "mac",
        "uri",
        "uuid4",
    ] {
        let _ = misfit(format, text);
    }
    let _ = check_address(text);
    let _ = (Url::parse(text), Url::parse_request(text));
    let _ = parse_tolerant(text);
    if let Ok(range) = text.parse::<VersionRange>() {
        assert!(range.to_string().parse::<VersionRange>().is_ok(), "{text:?}");
    }
}

/// A catalog is read, drawn and followed whatever is in it, and what is drawn holds nothing that a terminal acts on.
pub(crate) fn catalog(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let files = CatalogFiles::from_text("catalog.yaml", text);
    let catalog = Catalog::parse(&files);
    if let Ok(drawing) = Drawing::of(&catalog, &Options::default()) {
        for format in [Format::Mermaid, Format::Dot, Format::Svg] {
            let drawn = drawing.text(format);
            assert!(!drawn.contains(olmkit_bundle::printable::is_hidden), "{drawn:?}");
        }
    }
    if let Ok(paths) = paths(&catalog, &Query::default()) {
        paths.iter().for_each(drop);
    }
}

/// A template of a catalog.
pub(crate) fn template(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(template) = Template::parse("template.yaml", text) {
        let _ = template.references();
    }
}

/// The package file of `bundle generate`.
pub(crate) fn package_file(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let _ = PackageFile::parse(Source::new("olmkit.yaml", text));
}

/// A file of a must-gather collection, and a simulated cluster.
pub(crate) fn cluster(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let _ = doctor::read(&mut Observation::default(), text);
    if let Ok(simulation) = Simulation::load(text, Default::default()) {
        let _ = simulation.save();
    }
}

/// An archive of images: the tar, the index, manifests, configurations, and layers, which are unpacked.
pub(crate) fn archive(data: &[u8]) {
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    std::fs::write(file.path(), data).expect("it can be written");
    for kind in ["docker-archive", "oci-archive"] {
        let place: Place = format!("{kind}:{}", file.path().display()).parse().expect("it is a place");
        let Ok(root) = place.load(&Access::default()) else { continue };
        for image in root.images() {
            let _ = image.unpack(&Unpack::default());
        }
    }
}

/// A compiled catalog, as `catalog serve` opens it.
pub(crate) fn index(data: &[u8]) {
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    std::fs::write(file.path(), data).expect("it can be written");
    if let Ok(compiled) = Compiled::open(file.path()) {
        let _ = compiled.packages();
    }
}
