//! Files that want memory or time: every command ends soon within a gibibyte of address space, and says what bound it met.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output};

use flate2::Compression;
use flate2::write::GzEncoder;
use libtest_mimic::{Failed, Trial};
use serde_json::{Value, json};

use crate::support::trial;

/// Address space, in KiB: what `ulimit -v` takes.
const MEMORY: u64 = 1 << 20;
/// Processor time, in seconds: five times what the longest takes in a build without optimisation, however busy the machine is.
const TIME: u64 = 120;
/// The same, where the longest takes four seconds.
const SHORT_TIME: u64 = 20;

/// A Deployment that `bundle generate` makes a bundle of.
const PROGRAM: &str = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: things}\nspec:\n  selector: {matchLabels: {app: things}}\n  \
     template:\n    metadata: {labels: {app: things}}\n    spec:\n      containers: [{name: things, image: 'r.example.com/things:1'}]\n";

/// A test by its name, which gets a directory of its own.
type Hostile = (&'static str, fn(&Path));

pub(crate) fn trials() -> Vec<Trial> {
    let tests: [Hostile; 22] = [
        ("hostile_indentation_is_not_repaired_without_bounds", indentation),
        ("hostile_anchors_are_refused", anchors),
        ("hostile_short_values_are_refused", short_values),
        ("short_values_of_many_documents_are_refused_together", documents),
        ("short_entries_of_large_types_are_refused", entries),
        ("very_many_findings_are_counted_in_every_format", findings),
        ("findings_in_one_long_line_take_linear_time", long_line),
        ("long_lists_of_a_package_file_take_linear_time", package_file),
        ("many_deployments_are_refused", deployments),
        ("a_template_that_is_listed_very_often_is_refused", composite),
        ("hostile_records_of_a_tar_are_refused", tar_records),
        ("an_archive_that_unpacks_to_very_much_is_not_read_to_its_end", dense_archive),
        ("operators_of_one_api_in_many_namespaces_are_diagnosed_soon", rivals),
        ("a_layer_that_is_listed_very_often_is_refused", layers),
        ("images_that_unpack_to_very_much_are_refused_soon", bombs),
        ("hostile_descriptions_take_linear_time", descriptions),
        ("many_channels_take_linear_time", channels),
        ("many_dependencies_take_linear_time", dependencies),
        ("many_values_of_an_enum_take_linear_time", enums),
        ("many_versions_and_columns_of_a_crd_take_linear_time", versions),
        ("many_rules_and_webhooks_take_linear_time", rules_and_webhooks),
        ("a_large_object_of_git_is_not_read", git_object),
    ];
    let each = tests.into_iter().map(|(name, test)| {
        trial(name, &["bash"], move || {
            let directory = tempfile::tempdir()?;
            test(directory.path());
            Ok::<(), Failed>(())
        })
    });
    each.collect()
}

/// Runs olmkit in a directory, within the memory and the time.
fn bounded(at: &Path, words: &[&str]) -> Output {
    within(TIME, at, words)
}

/// The same within so many seconds.
fn within(seconds: u64, at: &Path, words: &[&str]) -> Output {
    let mut command = Command::new("bash");
    let limits = format!("ulimit -v {MEMORY} -t {seconds} && exec \"$0\" \"$@\"");
    command.args(["-c", &limits, env!("CARGO_BIN_EXE_olmkit")]);
    command.args(words).current_dir(at).output().unwrap()
}

/// What it says, with exit code 0, 1 or 3: a program without memory or time is ended by a signal.
#[track_caller]
fn says(at: &Path, words: &[&str], expected: &str) {
    check(bounded(at, words), words, expected);
}

/// The same soon, and no more than people read.
#[track_caller]
fn says_little(at: &Path, words: &[&str], expected: &str) {
    let said = check(within(SHORT_TIME, at, words), words, expected);
    assert!(said < 200_000, "{words:?}: {said} bytes");
}

/// How many bytes a program says that ended by itself.
#[track_caller]
fn check(output: Output, words: &[&str], expected: &str) -> usize {
    let said =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    let code = output.status.code();
    assert!(matches!(code, Some(0 | 1 | 3)), "{words:?} ended with {}: {said}", output.status);
    let start: String = said.chars().take(2000).collect();
    assert!(said.contains(expected), "{words:?}: {start}");
    said.len()
}

/// A quoted text far to the right that goes on at the left, which old YAML takes.
fn indentation(at: &Path) {
    let text = format!("m:\n  k:{}\"x\n{} y\"\n", " ".repeat(240_000), " y\n".repeat(80_000));
    fs::write(at.join("a.yaml"), text).unwrap();
    says(at, &["catalog", "validate", "a.yaml"], "error[");
}

fn anchors(at: &Path) {
    let open: String = (0..240).map(|depth| format!("&a{depth} [")).collect();
    fs::write(at.join("a.yaml"), format!("a: {open}{}{}\n", "1,".repeat(500_000), "]".repeat(240))).unwrap();
    says(at, &["catalog", "validate", "a.yaml"], "the values up to here need more than");
}

fn short_values(at: &Path) {
    for (name, text) in
        [("flow.yaml", format!("a: [{}]\n", "1,".repeat(4 << 20))), ("block.yaml", "- 1\n".repeat(4 << 20))]
    {
        fs::write(at.join(name), text).unwrap();
        says(at, &["catalog", "validate", name], "the values up to here need more than");
    }
}

/// Each document alone would be within the bound.
fn documents(at: &Path) {
    let text = format!("a: [{}]\n---\n", "1,".repeat(700_000));
    fs::write(at.join("a.yaml"), text.repeat(12)).unwrap();
    let generate = ["bundle", "generate", "a.yaml", "--package", "p", "--version", "1.0.0"];
    says(at, &generate, "the values up to here need more than");
}

/// A volume of Kubernetes takes more than 3,000 bytes, and two bytes of text make one.
fn entries(at: &Path) {
    fs::create_dir(at.join("manifests")).unwrap();
    let volumes = "{},".repeat(400_000);
    let csv = format!(
        "apiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion\nmetadata: {{name: p.v1.0.0}}\n\
         spec: {{install: {{spec: {{deployments: [{{spec: {{template: {{spec: {{volumes: [{volumes}]}}}}}}}}]}}}}}}\n"
    );
    fs::write(at.join("manifests/p.yaml"), csv).unwrap();
    says(at, &["bundle", "validate", "."], "the entries up to here need more than");
}

/// A finding for every seven bytes.
fn findings(at: &Path) {
    fs::write(at.join("a.yaml"), "---\n{}\n".repeat(25_000)).unwrap();
    for (format, expected) in [
        ("text", "more [fbc-schema-missing] in a.yaml"),
        ("json", "\"left_out\": "),
        ("sarif", "left out: mend these first"),
        ("junit", "left out: mend these first"),
        ("markdown", "left out: mend these first"),
    ] {
        let output = bounded(at, &["catalog", "validate", "a.yaml", "--output", format]);
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.code() == Some(1) && said.contains(expected), "{format}: {}", output.status);
        assert!(said.contains("more findings of this kind are left out"), "{format}");
    }
}

/// A CRD of one line, with a finding for every three bytes of it.
fn long_line(at: &Path) {
    let versions = "{},".repeat(60_000);
    let names = json!({"kind": "Thing", "plural": "things", "singular": "thing", "listKind": "ThingList"});
    let crd = format!(
        r#"{{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{{"name":"things.example.com"}},"spec":{{"group":"example.com","scope":"Namespaced","names":{names},"versions":[{versions}{{}}]}}}}"#
    );
    fs::create_dir_all(at.join("bundle/manifests")).unwrap();
    fs::write(at.join("bundle/manifests/crd.yaml"), crd).unwrap();
    says_little(at, &["bundle", "validate", "bundle"], "more [crd-versions-invalid] in ");
}

/// Lists of which an author writes a few, each with tens of thousands of entries.
fn package_file(at: &Path) {
    fs::write(at.join("a.yaml"), PROGRAM).unwrap();
    let list = |count, entry: &dyn Fn(usize) -> String| (0..count).map(entry).collect::<Vec<_>>().join(",");
    for (key, value, expected) in [
        ("manifests", format!("[{}]", list(40_000, &|_| "\".\"".to_owned())), "things.v1.0.0 in bundle"),
        ("channels", format!("[{}]", list(120_000, &|at| format!("\"c{at}\""))), "things.v1.0.0 in bundle"),
        (
            "annotations",
            format!("{{{}}}", list(40_000, &|at| format!("\"a{at}\": \"\""))),
            "things.v1.0.0 in bundle",
        ),
        (
            "nativeAPIs",
            format!("[{}]", list(20_000, &|at| format!(r#"{{"group":"g{at}","version":"v1","kind":"K"}}"#))),
            "things.v1.0.0 in bundle",
        ),
        (
            "extraServiceAccounts",
            format!("[{}]", list(40_000, &|at| format!("\"a{at}\""))),
            "more [package-value-invalid] in olmkit.yaml",
        ),
        (
            "allow",
            format!("[{}]", list(40_000, &|at| format!(r#"{{"code":"q{at}","reason":"r"}}"#))),
            "more [package-value-invalid] in olmkit.yaml",
        ),
    ] {
        let manifests = if key == "manifests" { "" } else { "manifests: [a.yaml]\n" };
        let settings = "package: things\nversion: 1.0.0\nprovider: {name: x}\n";
        fs::write(at.join("olmkit.yaml"), format!("{settings}{manifests}{key}: {value}\n")).unwrap();
        says_little(at, &["bundle", "generate"], expected);
    }
}

/// As many as a bundle gets take little memory, and more are refused.
fn deployments(at: &Path) {
    let named = |number| {
        let name = format!("{{name: things{number}, namespace: n{number}}}");
        PROGRAM.replace("{name: things}", &name)
    };
    let generate = ["bundle", "generate", "a.yaml", "--package", "things", "--version", "1.0.0"];
    for (count, expected) in
        [(1_000, "more [generate-namespace-lost] in a.yaml"), (8_000, "have 8000 Deployments")]
    {
        let texts: Vec<_> = (0..count).map(named).collect();
        fs::write(at.join("a.yaml"), texts.join("---\n")).unwrap();
        says_little(at, &generate, expected);
    }
}

/// A composite whose components all have one input.
fn composite(at: &Path) {
    let input = json!({"schema": "olm.template.basic", "entries": [{"schema": "olm.package", "name": "p", "defaultChannel": "c"}]});
    fs::write(at.join("input.yaml"), input.to_string()).unwrap();
    let config = json!({"input": "input.yaml", "output": "catalog.yaml"});
    let template = json!({"schema": "olm.builder.basic", "config": config});
    for (count, expected) in [(100, "out/c99/p/catalog.yaml"), (10_000, "the input of 10000 components")] {
        let component = |at: usize| json!({"name": format!("c{at}"), "destination": {"path": "p"}, "strategy": {"name": "basic", "template": template}});
        let components: Vec<_> = (0..count).map(component).collect();
        let composite = json!({"schema": "olm.composite", "components": components});
        fs::write(at.join("composite.yaml"), composite.to_string()).unwrap();
        says_little(at, &["catalog", "template", "composite.yaml", "--output-dir", "out"], expected);
    }
}

/// A tar whose first record says that the name of a file has 3 GiB.
fn tar_records(at: &Path) {
    const SIZE: u64 = 3 << 30;
    for (name, kind) in [("name", tar::EntryType::GNULongName), ("pax", tar::EntryType::XHeader)] {
        let mut header = tar::Header::new_gnu();
        header.set_path("record").unwrap();
        header.set_entry_type(kind);
        header.set_size(SIZE);
        header.set_cksum();
        // A piece of compressed zeros, over and over: gzip's parts make one stream.
        let mut piece = GzEncoder::new(Vec::new(), Compression::fast());
        piece.write_all(&vec![b'a'; 64 << 20]).unwrap();
        let piece = piece.finish().unwrap();
        let mut first = GzEncoder::new(Vec::new(), Compression::fast());
        first.write_all(header.as_bytes()).unwrap();
        let parts = [first.finish().unwrap(), piece.repeat(48)].concat();
        let file = format!("{name}.tar.gz");
        fs::write(at.join(&file), parts).unwrap();
        says(at, &["operator", "doctor", "--from", &file], "the record before a file has");
    }
}

/// Short documents that take a thousandth of their size, and more time than their archive is worth.
fn dense_archive(at: &Path) {
    let subscription = "kind: Subscription\nmetadata: {name: a, namespace: b}\n";
    let documents = format!("{subscription}{}", "---\n{}\n".repeat(3_000_000));
    let mut header = tar::Header::new_gnu();
    header.set_size(documents.len() as u64);
    header.set_cksum();
    let file = fs::File::create(at.join("a.tar.gz")).unwrap();
    let mut archive = tar::Builder::new(GzEncoder::new(file, Compression::best()));
    archive.append_data(&mut header, "a.yaml", documents.as_bytes()).unwrap();
    archive.into_inner().unwrap().finish().unwrap();
    says_little(
        at,
        &["operator", "doctor", "--from", "a.tar.gz"],
        "it unpacks to more than 1 MiB and 100 times its size",
    );
}

/// An operator in 200 namespaces, each of them broken: a repair of one is tried on all of them.
fn rivals(at: &Path) {
    let in_namespace = |number: usize| {
        let object = |kind: &str, name: &str, rest: Value| {
            let mut object = rest;
            object["kind"] = kind.into();
            object["metadata"] = json!({"name": name, "namespace": format!("n{number}")});
            object
        };
        let owned = json!([{"name": "things.example.com", "kind": "Thing", "version": "v1"}]);
        let install = json!({"spec": {"deployments": [{"name": "a", "spec": {}}]}});
        [
            object(
                "ClusterServiceVersion",
                "a.v1",
                json!({"spec": {"install": install, "customresourcedefinitions": {"owned": owned}}, "status": {"phase": "Succeeded"}}),
            ),
            object("Deployment", "a", json!({"spec": {}, "status": {"availableReplicas": 1}})),
            object(
                "Subscription",
                "a",
                json!({"spec": {"name": "a"}, "status": {"installedCSV": "a.v1", "currentCSV": "a.v1"}}),
            ),
            object("OperatorGroup", "g", json!({"spec": {"targetNamespaces": [format!("n{number}")]}})),
            object("OperatorGroup", "h", json!({"spec": {"targetNamespaces": [format!("n{number}")]}})),
        ]
    };
    let items: Vec<Value> = (0..200).flat_map(in_namespace).collect();
    fs::write(at.join("a.json"), json!({"kind": "List", "items": items}).to_string()).unwrap();
    says_little(at, &["operator", "doctor", "--from", "a.json"], "repairs are listed only for causes");
}

fn layers(at: &Path) {
    let mut archive = tar::Builder::new(fs::File::create(at.join("image.tar")).unwrap());
    let mut add = |name: &str, bytes: &[u8]| add(&mut archive, name, bytes);
    let list = |layers: usize, config: &str| {
        json!([{"Config": config, "RepoTags": ["r.example.com/x:1"], "Layers": vec!["layer.tar"; layers]}])
            .to_string()
    };
    add("layer.tar", &vec![0; 20 << 20]);
    let rootfs = |ids: Vec<&str>| {
        let rootfs = json!({"type": "layers", "diff_ids": ids});
        json!({"architecture": "amd64", "os": "linux", "rootfs": rootfs}).to_string()
    };
    add("config.json", rootfs(Vec::new()).as_bytes());
    add("manifest.json", list(40_000, "config.json").as_bytes());
    archive.finish().unwrap();
    says(
        at,
        &["image", "inspect", "docker-archive:image.tar"],
        "it lists 40000 layers, and its configuration 0",
    );
}

/// Layers of little more than zeros, or of short documents, in the directories of a bundle and of a catalog.
fn bombs(at: &Path) {
    let label = |name: &str| format!("operators.operatorframework.io.{name}.v1");
    let labels = json!({label("bundle.manifests"): "manifests/", label("bundle.metadata"): "metadata/"});
    let catalog = json!({label("index.configs"): "configs"});
    let large = "a".repeat(20 << 20);
    let documents = "{\"schema\":\"x\",\"name\":\"y\"}\n".repeat(1_500_000);
    for (name, labels, path, content, count, verbs) in [
        ("bundle", &labels, "manifests", &large, 20, [&["validate"][..], &["unpack", "--output-dir", "out"]]),
        ("catalog", &catalog, "configs/p", &large, 20, [&["validate"], &["render"]]),
        ("catalog", &catalog, "configs/p", &documents, 1, [&["validate"], &["list", "packages"]]),
        ("catalog", &catalog, "elsewhere", &large, 20, [&["validate"], &["render"]]),
    ] {
        let mut layer = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::best()));
        for number in 0..count {
            add(&mut layer, &format!("{path}/{number}.yaml"), content.as_bytes());
        }
        let layer = layer.into_inner().unwrap().finish().unwrap();
        let rootfs = json!({"type": "layers", "diff_ids": [format!("sha256:{}", "0".repeat(64))]});
        let config =
            json!({"architecture": "amd64", "os": "linux", "rootfs": rootfs, "config": {"Labels": labels}});
        let list =
            json!([{"Config": "config.json", "RepoTags": ["r.example.com/x:1"], "Layers": ["layer.tar"]}]);
        let mut archive = tar::Builder::new(fs::File::create(at.join("image.tar")).unwrap());
        add(&mut archive, "config.json", config.to_string().as_bytes());
        add(&mut archive, "manifest.json", list.to_string().as_bytes());
        add(&mut archive, "layer.tar", &layer);
        archive.finish().unwrap();
        let expected = format!("unpacks to too much: {} bytes of layers may unpack to", layer.len());
        for verb in verbs {
            let (first, flags) = verb.split_at(if verb[0] == "list" { 2 } else { 1 });
            let words = [&[name], first, &["docker-archive:image.tar"], flags].concat();
            says_little(at, &words, &expected);
        }
    }
    let mut packed = GzEncoder::new(fs::File::create(at.join("image.tar.gz")).unwrap(), Compression::best());
    (0..20).for_each(|_| packed.write_all(large.as_bytes()).unwrap());
    packed.finish().unwrap();
    says_little(at, &["image", "inspect", "docker-archive:image.tar.gz"], "bytes and unpacks to more than");
}

/// Adds a file to a tar.
fn add(archive: &mut tar::Builder<impl std::io::Write>, name: &str, bytes: &[u8]) {
    let mut header = tar::Header::new_gnu();
    header.set_size(bytes.len() as u64);
    header.set_mode(0o644);
    header.set_cksum();
    archive.append_data(&mut header, name, bytes).unwrap();
}

fn descriptions(at: &Path) {
    let package = |description: String| json!({"schema": "olm.package", "name": "p", "defaultChannel": "c", "description": description});
    for text in ["[".repeat(200_000), "<a".repeat(100_000), "[x](".repeat(50_000)] {
        fs::write(at.join("catalog.json"), package(format!("a{text}")).to_string()).unwrap();
        let output = bounded(at, &["catalog", "graph", "catalog.json", "--output-dir", "pages"]);
        assert!(output.status.code().is_some(), "{}", output.status);
    }
}

fn channels(at: &Path) {
    let version = json!({"packageName": "p", "version": "1.0.0"});
    let mut lines = vec![
        json!({"schema": "olm.package", "name": "p", "defaultChannel": "c0"}).to_string(),
        json!({"schema": "olm.bundle", "package": "p", "name": "p.v1.0.0", "image": "r.example.com/x:1",
               "properties": [{"type": "olm.package", "value": version}]})
        .to_string(),
    ];
    lines.extend((0..20_000).map(|number| {
        json!({"schema": "olm.channel", "package": "p", "name": format!("c{number}"), "entries": [{"name": "p.v1.0.0"}]})
            .to_string()
    }));
    fs::write(at.join("catalog.json"), lines.join("\n")).unwrap();
    says(at, &["catalog", "path", "catalog.json"], "c19999");
}

/// Packages of which each requires the next one, and packages that all provide and require one API.
fn dependencies(at: &Path) {
    let api = json!({"group": "g.example.com", "version": "v1", "kind": "K"});
    let next = |number: u32| {
        let value = json!({"packageName": format!("p{}", number + 1), "versionRange": ">=0.0.0"});
        vec![json!({"type": "olm.package.required", "value": value})]
    };
    let same =
        |_: u32| ["olm.gvk", "olm.gvk.required"].map(|kind| json!({"type": kind, "value": api})).to_vec();
    let write = |name: &str, properties: &dyn Fn(u32) -> Vec<Value>| {
        let packages = (0..4000).map(|number| {
            let (package, bundle) = (format!("p{number}"), format!("p{number}.v1.0.0"));
            let own = json!({"type": "olm.package", "value": {"packageName": package, "version": "1.0.0"}});
            let properties = [vec![own], properties(number)].concat();
            [
                json!({"schema": "olm.package", "name": package, "defaultChannel": "stable"}),
                json!({"schema": "olm.channel", "package": package, "name": "stable", "entries": [{"name": bundle}]}),
                json!({"schema": "olm.bundle", "package": package, "name": bundle, "image": "r/p:1", "properties": properties}),
            ]
            .map(|blob| blob.to_string())
            .concat()
        });
        fs::write(at.join(name), packages.collect::<String>()).unwrap();
    };
    write("chain.json", &|number| if number < 3999 { next(number) } else { Vec::new() });
    write("rivals.json", &same);
    says_little(
        at,
        &["catalog", "resolve", "--catalog", "c=chain.json", "--subscription", "p1500"],
        "p3999.v1.0.0",
    );
    says_little(
        at,
        &["catalog", "resolve", "--catalog", "c=rivals.json", "--subscription", "p0"],
        "p0.v1.0.0",
    );
}

/// A CRD with so many served versions, and the schema of each.
fn crd(count: usize, schema: impl Fn(usize) -> Value) -> Value {
    let version = |at: usize| json!({"name": format!("v{}", at + 1), "served": true, "storage": at == 0, "schema": {"openAPIV3Schema": schema(at)}});
    let versions: Vec<_> = (0..count).map(version).collect();
    let names = json!({"kind": "Thing", "plural": "things", "singular": "thing", "listKind": "ThingList"});
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": versions}})
}

/// A few served versions are all compared with each other; for many, a finding says which were not compared.
fn versions(at: &Path) {
    let object = |_| json!({"type": "object"});
    let properties = |version: usize| {
        let property = |number: usize| (format!("p{version}-{number}"), json!({"type": "string"}));
        json!({"type": "object", "properties": (0..40).map(property).collect::<serde_json::Map<_, _>>()})
    };
    let columns = |count: usize| {
        let column =
            |number: usize| json!({"name": format!("c{number}"), "type": "string", "jsonPath": ".a"});
        let mut crd = crd(1, object);
        crd["spec"]["versions"][0]["additionalPrinterColumns"] = (0..count).map(column).collect();
        crd
    };
    for (old, new, expected) in [
        (crd(1, object), crd(10_000, object), "error[crd-served-versions-not-compared]"),
        (crd(1, properties), crd(90, properties), "error[crd-served-versions-not-compared]"),
        (columns(20_000), columns(10_000), "the column `c10000` is removed"),
    ] {
        fs::write(at.join("old.yaml"), old.to_string()).unwrap();
        fs::write(at.join("new.yaml"), new.to_string()).unwrap();
        says_little(at, &["bundle", "diff", "old.yaml", "new.yaml"], expected);
    }
}

/// A CRD whose default is a list of values, each held against thousands.
fn enums(at: &Path) {
    let values: Vec<usize> = (0..20_000).collect();
    let list = json!({"type": "array", "items": {"type": "integer", "enum": values}, "default": values});
    let schema =
        json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {"list": list}}}});
    fs::create_dir_all(at.join("bundle/manifests")).unwrap();
    fs::create_dir_all(at.join("bundle/metadata")).unwrap();
    fs::write(at.join("bundle/manifests/crd.yaml"), crd(1, |_| schema.clone()).to_string()).unwrap();
    fs::write(at.join("bundle/metadata/annotations.yaml"), "annotations: {}\n").unwrap();
    says(at, &["bundle", "validate", "bundle"], "checked 1 bundle");
}

/// Two versions with thousands of rules in all namespaces, and of webhooks, which differ.
fn rules_and_webhooks(at: &Path) {
    for (name, version, verb, policy) in [("old", "1.0.0", "get", "Fail"), ("new", "1.1.0", "list", "Ignore")]
    {
        let rule = |number| json!({"apiGroups": ["g"], "resources": [format!("r{number}")], "verbs": [verb]});
        let rules: Vec<_> = (0..8_000).map(rule).collect();
        let webhook = |number| json!({"type": "ValidatingAdmissionWebhook", "generateName": format!("w{number}.example.com"), "failurePolicy": policy});
        let webhooks: Vec<_> = (0..8_000).map(webhook).collect();
        let strategy = json!({"strategy": "deployment", "spec": {"clusterPermissions": [{"serviceAccountName": "x", "rules": rules}]}});
        let csv = json!({"apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
            "metadata": {"name": format!("p.v{version}")},
            "spec": {"version": version, "install": strategy, "webhookdefinitions": webhooks}});
        fs::create_dir_all(at.join(name).join("manifests")).unwrap();
        fs::create_dir_all(at.join(name).join("metadata")).unwrap();
        fs::write(at.join(name).join("manifests/csv.yaml"), csv.to_string()).unwrap();
        fs::write(at.join(name).join("metadata/annotations.yaml"), "annotations: {}\n").unwrap();
    }
    says_little(at, &["bundle", "diff", "old", "new"], "`x` may now do more in all namespaces");
}

fn git_object(at: &Path) {
    let git = |words: &[&str]| {
        let output = Command::new("git").args(words).current_dir(at).output().unwrap();
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    };
    git(&["init", "--quiet"]);
    // No bytes on the disk until git has packed them away.
    fs::File::create(at.join("large.yaml")).unwrap().set_len(1 << 30).unwrap();
    git(&["-c", "core.compression=1", "add", "large.yaml"]);
    git(&["-c", "user.name=x", "-c", "user.email=x@example.com", "commit", "--quiet", "-m", "x"]);
    for path in ["large.yaml", ""] {
        let revision = format!("git:HEAD:{path}");
        says(at, &["bundle", "diff", &revision, &revision], "is larger than 512 MiB");
    }
}
