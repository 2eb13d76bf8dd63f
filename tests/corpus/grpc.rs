//! What opm's server answered, asked of ours: every method, and what is not there; by a client in Rust, and by Python's grpcio
//! where that is installed (`OLMKIT_PYTHON` names a Python that has it).

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use libtest_mimic::{Failed, Trial};
use prost::Message as _;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::client::{Refusal, Server, all_descriptors, arg};

use crate::support::{Part, trial_with};

/// The catalog that was made up for its answers: the project keeps them.
const MADE: (&str, &str) = ("inline-and-deprecated", "grpc/inline-and-deprecated");

pub(crate) fn kept(answers: &Path) -> Vec<Trial> {
    asked("kept::grpc", answers, &[], &[MADE])
}

pub(crate) fn trials(corpus: &Path, part: Part) -> Vec<Trial> {
    let catalogs = [
        MADE,
        ("aws-neuron-operator-v4.22", "catalogs/aws-neuron-operator/v4.22"),
        ("koku-metrics-operator-v4.22", "catalogs/koku-metrics-operator/v4.22"),
        ("kube-green-v4.21", "catalogs/kube-green/v4.21"),
        ("shipwright-operator-v4.13", "catalogs/shipwright-operator/v4.13"),
        ("visionone-containersecurity-v4.16", "catalogs/visionone-containersecurity/v4.16"),
    ];
    asked("grpc", corpus, &[part], &catalogs)
}

/// Questions about catalogs below a directory, each with the name of its answers.
fn asked(
    prefix: &str,
    corpus: &Path,
    parts: &[Part],
    catalogs: &[(&'static str, &'static str)],
) -> Vec<Trial> {
    let python = std::env::var("OLMKIT_PYTHON").unwrap_or_else(|_| "python3".into());
    let has_grpcio = Command::new(&python).args(["-c", "import grpc, google.protobuf"]).output();
    let has_grpcio = has_grpcio.is_ok_and(|output| output.status.success());
    let missing = "Python's grpcio is not installed (OLMKIT_PYTHON names a Python that has it)";
    let grpcio = Part::new("grpcio", (!has_grpcio).then(|| missing.to_owned()));
    let with_grpcio = [parts, &[grpcio]].concat();
    let trials = catalogs.iter().flat_map(|&(answers, catalog)| {
        let (path, python) = (corpus.to_owned(), python.clone());
        let ours = move || {
            let server = serve(&path, catalog);
            let client = server.client();
            check(&path, answers, &mut |service, method, request, metadata| {
                client.ask_with(service, method, request, metadata)
            })
        };
        let path = corpus.to_owned();
        let theirs = move || {
            let server = serve(&path, catalog);
            let mut client = Grpcio::start(&python, &server.address)?;
            check(&path, answers, &mut |service, method, request, metadata| {
                client.ask(service, method, request, metadata)
            })
        };
        [
            trial_with(&format!("{prefix}::{answers}"), parts, ours),
            trial_with(&format!("{prefix}::grpcio::{answers}"), &with_grpcio, theirs),
        ]
    });
    trials.collect()
}

fn serve(corpus: &Path, catalog: &str) -> Server {
    Server::start(&[arg(&corpus.join(catalog)), "--port", "0"])
}

/// Asks a question: service, method, request, metadata.
type Ask<'a> = dyn FnMut(&str, &str, &Value, &[(&'static str, &str)]) -> Result<Vec<Value>, Refusal> + 'a;

fn check(corpus: &Path, answers: &str, ask: &mut Ask<'_>) -> Result<(), Failed> {
    let mut differences = String::new();
    for line in std::fs::read_to_string(corpus.join("grpc").join(format!("{answers}.jsonl")))?.lines() {
        let row: Value = serde_json::from_str(line)?;
        if let Err(why) = compare(ask, &row) {
            differences += &format!("{} {}: {why}\n", row["method"], row["request"]);
        }
    }
    if differences.is_empty() { Ok(()) } else { Err(differences.into()) }
}

/// A client that is a program in Python. It ends with the value.
struct Grpcio {
    child: Child,
    answers: BufReader<std::process::ChildStdout>,
    _descriptors: tempfile::NamedTempFile,
}

impl Grpcio {
    fn start(python: &str, address: &str) -> Result<Self, Failed> {
        let file = tempfile::NamedTempFile::new()?;
        std::fs::write(file.path(), all_descriptors().encode_to_vec())?;
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/grpcio.py");
        let mut command = Command::new(python);
        command.arg(script).arg(address).arg(file.path());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let answers = BufReader::new(child.stdout.take().ok_or("it is piped")?);
        Ok(Self { child, answers, _descriptors: file })
    }

    fn ask(
        &mut self,
        service: &str,
        method: &str,
        request: &Value,
        metadata: &[(&'static str, &str)],
    ) -> Result<Vec<Value>, Refusal> {
        let metadata: Value = metadata.iter().map(|(key, value)| ((*key).to_owned(), json!(value))).collect();
        let question =
            json!({"service": service, "method": method, "request": request, "metadata": metadata});
        let mut answer = String::new();
        let asked = self
            .child
            .stdin
            .as_mut()
            .ok_or("it is piped")
            .and_then(|stdin| writeln!(stdin, "{question}").map_err(|_| "it reads no more"));
        let read = asked.is_ok() && self.answers.read_line(&mut answer).is_ok();
        let answer: Value =
            if read { serde_json::from_str(&answer).unwrap_or_default() } else { Value::Null };
        match answer["answers"].as_array() {
            Some(answers) => Ok(answers.clone()),
            None => {
                // As the client in Rust names codes.
                let code = answer["code"].as_str().unwrap_or("no answer").replace('_', "");
                Err((code, answer["message"].as_str().unwrap_or_default().to_owned()))
            }
        }
    }
}

impl Drop for Grpcio {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Asks a row's question and compares the answer with the row's.
fn compare(ask: &mut Ask<'_>, row: &Value) -> Result<(), String> {
    let method = row["method"].as_str().unwrap_or_default();
    let (service, name) = match method.rsplit_once('/') {
        Some(parts) => parts,
        None if method.starts_with("Experimental") => ("api.ExperimentalRegistry", method),
        None => ("api.Registry", method),
    };
    let acknowledged = row["metadata"]["x-acknowledge-experimental"].as_str();
    let metadata: Vec<_> =
        acknowledged.map(|value| ("x-acknowledge-experimental", value)).into_iter().collect();
    let found = ask(service, name, &row["request"], &metadata);
    if let Some(error) = row.get("error") {
        let expected = (&error["code"], error["message"].as_str().unwrap_or_default());
        return match found {
            Err((code, message)) if json!(code.to_uppercase()) == *expected.0 && message == expected.1 => {
                Ok(())
            }
            found => Err(format!("expected {expected:?}, found {found:?}")),
        };
    }
    let mut found = found.map_err(|refusal| format!("refused: {refusal:?}"))?;
    if let Some(hashes) = row["sha256"].as_array() {
        let key = |bundle: &Value| json!([bundle["packageName"], bundle["channelName"], bundle["csvName"]]);
        let keys: Value = found.iter().map(key).collect();
        same("keys", &keys, &row["keys"])?;
        let digests: Value = found.iter().map(digest).collect();
        same("digests", &digests, &json!(hashes))?;
        let first: Value =
            found.iter().take(row["responses"].as_array().map_or(0, Vec::len)).map(parsed).collect();
        let expected: Value = row["responses"].as_array().into_iter().flatten().map(parsed).collect();
        return same("the first", &first, &expected);
    }
    if let Some(expected) = row.get("responses") {
        if row["ordered"] == false {
            // Ours has an order; the list has that of its own text.
            found.sort_by_key(sort_key);
            let mut expected = expected.as_array().cloned().unwrap_or_default();
            expected.sort_by_key(sort_key);
            return same("answers", &json!(found), &json!(expected));
        }
        return same("answers", &json!(found), expected);
    }
    let [only] = found.as_slice() else { return Err(format!("{} answers", found.len())) };
    if row["varies"] == true && row["sha256"] != json!(digest(only)) {
        // Another bundle that qualifies is right as well: it is one of those that replace the one asked about.
        let request = json!({"csvName": row["request"]["csvName"]});
        let entries = ask("api.Registry", "GetChannelEntriesThatReplace", &request, &[])
            .map_err(|refusal| format!("{refusal:?}"))?;
        let qualifies = entries.iter().any(|entry| {
            entry["bundleName"] == only["csvName"] && entry["channelName"] == row["request"]["channelName"]
        });
        return if qualifies { Ok(()) } else { Err(format!("{} does not qualify", only["csvName"])) };
    }
    if let Some(expected) = row.get("response") {
        same("answer", &parsed(only), &parsed(expected))?;
    }
    if let Some(expected) = row.get("responseWithoutCsvJsonAndObject") {
        let mut trimmed = only.clone();
        for field in ["csvJson", "object"] {
            trimmed.as_object_mut().map(|message| message.remove(field));
        }
        same("answer", &parsed(&trimmed), &parsed(expected))?;
    }
    match row.get("sha256") {
        Some(expected) => same("digest", &json!(digest(only)), expected),
        None => Ok(()),
    }
}

fn sort_key(value: &Value) -> String {
    canonical(value)
}

fn same(what: &str, found: &Value, expected: &Value) -> Result<(), String> {
    if canonical(found) == canonical(expected) {
        return Ok(());
    }
    let cut = |value: &Value| canonical(value).chars().take(1500).collect::<String>();
    Err(format!("{what}: expected\n  {}\nfound\n  {}", cut(expected), cut(found)))
}

/// A message with the JSON in its texts taken apart, so that only what it says counts.
fn parsed(message: &Value) -> Value {
    let json =
        |text: &Value| text.as_str().and_then(|text| serde_json::from_str(text).ok()).unwrap_or(text.clone());
    let mut message = message.clone();
    if let Some(csv) = message.get_mut("csvJson") {
        *csv = json(csv);
    }
    for object in message.get_mut("object").and_then(Value::as_array_mut).into_iter().flatten() {
        *object = json(object);
    }
    for list in ["properties", "dependencies"] {
        for item in message.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            item["value"] = json(&item["value"]);
        }
    }
    message
}

fn digest(message: &Value) -> String {
    let digest = Sha256::digest(canonical(&parsed(message)).as_bytes());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The text with sorted keys and no spaces, whatever order the maps have.
fn canonical(value: &Value) -> String {
    match value {
        Value::Object(map) => {
            let mut members: Vec<_> = map.iter().collect();
            members.sort_by_key(|(key, _)| *key);
            let member = |(key, value): (&String, &Value)| format!("{}:{}", json!(key), canonical(value));
            format!("{{{}}}", members.into_iter().map(member).collect::<Vec<_>>().join(","))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(canonical).collect::<Vec<_>>().join(",")),
        scalar => scalar.to_string(),
    }
}
