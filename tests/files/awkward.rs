//! Names that a terminal, a workflow, a browser or a drawing would act on: no format lets any of them through.

use std::fs;
use std::path::Path;
use std::process::Command;

use olmkit_bundle::printable::{has_command, is_hidden};
use serde_json::{Value, json};

/// Parts of names. Each acts on something.
const NAMES: [&str; 15] = [
    "\u{1b}]0;title\u{7}\u{1b}[2J",
    "\u{9b}31mred\u{7f}",
    "\u{202e}gpj.exe",
    "zero\u{200b}width\u{feff}",
    "line\u{2028}separator\u{2029}",
    "x\n::add-mask::yes",
    "x\r\n  ::stop-commands::no",
    "##[add-mask]z",
    "s\"]\n  click x href \"https://elsewhere.example\"",
    "[link](https://elsewhere.example)",
    "![image](https://elsewhere.example/i.png)",
    "@somebody #1",
    "<img src=x onerror=alert(1)>",
    "%%{init: {\"theme\": \"dark\"}}%%",
    "q\"]; other -> one [label=\"",
];

/// A catalog with the name as package, channel, bundle and message, and an edge that leads nowhere.
fn catalog(name: &str) -> String {
    let channel = json!({"schema": "olm.channel", "package": name, "name": name,
        "entries": [{"name": name, "replaces": format!("{name}-gone"), "skipRange": name}]});
    let reference = json!({"schema": "olm.channel", "name": name});
    [
        json!({"schema": "olm.package", "name": name, "defaultChannel": name, "description": name}),
        channel,
        json!({"schema": "olm.bundle", "package": name, "name": name, "image": name,
            "properties": [{"type": "olm.package", "value": {"packageName": name, "version": "1.0.0"}}]}),
        json!({"schema": "olm.deprecations", "package": name, "entries": [{"reference": reference, "message": name}]}),
    ]
    .map(|blob| blob.to_string() + "\n")
    .concat()
}

/// What a command prints to both streams.
fn printed(at: &Path, words: &[&str]) -> (String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_olmkit"));
    let output = command.args(words).current_dir(at).output().unwrap();
    assert!(output.status.code().is_some_and(|code| code != 2), "{words:?}: {output:?}");
    (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
}

/// Markdown without its code, which does nothing.
fn without_code(text: &str) -> String {
    text.lines().map(|line| line.split('`').step_by(2).collect::<String>() + "\n").collect()
}

fn check_text(text: &str, words: &[&str], name: &str) {
    assert!(!text.contains(is_hidden), "{words:?} of {name:?}:\n{text:?}");
    assert!(!has_command(text), "{words:?} of {name:?}:\n{text}");
}

fn check(words: &[&str], name: &str, (out, talk): &(String, String)) {
    check_text(talk, words, name);
    assert!(!out.contains(is_hidden), "{words:?} of {name:?}:\n{out:?}");
    let is_for_github = words.last() == Some(&"github");
    assert!(is_for_github || !has_command(out), "{words:?} of {name:?}:\n{out}");
    match *words.last().unwrap() {
        // A catalog is a stream of values.
        "json" | "sarif" => {
            let values: Result<Vec<Value>, _> = serde_json::Deserializer::from_str(out).into_iter().collect();
            assert!(values.is_ok_and(|values| !values.is_empty()), "{words:?} of {name:?}:\n{out}");
        }
        // Our own commands, and nothing else at the start of a line.
        "github" => {
            let is_ours =
                |line: &str| ["::error ", "::warning ", "::notice "].iter().any(|own| line.starts_with(own));
            assert!(out.lines().all(is_ours) && !out.contains("##["), "{words:?} of {name:?}:\n{out}");
        }
        "markdown" => {
            let text = without_code(out);
            for acting in ["](https", "@somebody", "<img", "https://elsewhere"] {
                assert!(!text.contains(acting), "{words:?} of {name:?}:\n{out}");
            }
        }
        "mermaid" => {
            let acts = |line: &str| line.trim_start().starts_with("click ");
            assert!(
                !out.lines().any(acts) && !out.contains("%%{") && !out.contains("<img"),
                "{name:?}:\n{out}"
            );
        }
        "dot" => assert!(!out.contains("\n  click") && !out.contains("[label=\"\""), "{name:?}:\n{out}"),
        "svg" => assert!(!out.contains("<img"), "{name:?}:\n{out}"),
        _ => check_text(out, words, name),
    }
}

#[test]
fn no_format_lets_an_awkward_name_act() {
    let commands: [&[&str]; 23] = [
        &["catalog", "graph", "c.json", "--format", "mermaid"],
        &["catalog", "graph", "c.json", "--format", "dot"],
        &["catalog", "graph", "c.json", "--format", "svg"],
        &["catalog", "path", "c.json", "--output", "text"],
        &["catalog", "path", "c.json", "--output", "json"],
        &["catalog", "path", "c.json", "--output", "yaml"],
        &["catalog", "list", "bundles", "c.json", "--output", "text"],
        &["catalog", "list", "channels", "c.json", "--output", "json"],
        &["catalog", "render", "c.json", "--format", "yaml"],
        &["catalog", "render", "c.json", "--format", "json"],
        &["catalog", "diff", "empty.json", "c.json", "--output", "text"],
        &["catalog", "diff", "empty.json", "c.json", "--output", "json"],
        &["catalog", "validate", "c.json", "--output", "text"],
        &["catalog", "validate", "c.json", "--output", "json"],
        &["catalog", "validate", "c.json", "--output", "yaml"],
        &["catalog", "validate", "c.json", "--output", "sarif"],
        &["catalog", "validate", "c.json", "--output", "junit"],
        &["catalog", "validate", "c.json", "--output", "github"],
        &["catalog", "validate", "c.json", "--output", "markdown"],
        &["bundle", "validate", "b", "--output", "text"],
        &["bundle", "validate", "b", "--output", "json"],
        &["bundle", "validate", "b", "--output", "github"],
        &["bundle", "validate", "b", "--output", "markdown"],
    ];
    for name in NAMES {
        let root = tempfile::tempdir().unwrap();
        let at = root.path();
        fs::write(at.join("c.json"), catalog(name)).unwrap();
        fs::write(at.join("empty.json"), "{\"schema\": \"olm.package\", \"name\": \"e\"}\n").unwrap();
        fs::create_dir_all(at.join("b/manifests")).unwrap();
        fs::create_dir_all(at.join("b/metadata")).unwrap();
        fs::write(at.join("b/metadata/annotations.yaml"), json!({"annotations": {name: name}}).to_string())
            .unwrap();
        let file = name.replace('/', "_");
        fs::write(at.join(format!("b/manifests/{file}.yaml")), "a: [\n").unwrap();
        let object =
            json!({"apiVersion": name, "kind": name, "metadata": {"name": name, "labels": {name: name}}});
        fs::write(at.join("b/manifests/object.yaml"), object.to_string()).unwrap();
        for words in commands {
            check(words, name, &printed(at, words));
        }
    }
}
