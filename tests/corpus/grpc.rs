//! What opm's server answered, asked of ours: every method, and what is not there.

use std::path::Path;

use libtest_mimic::{Failed, Trial};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::client::{Client, Server, arg};

pub(crate) fn trials(corpus: &Path) -> Vec<Trial> {
    let catalogs = [
        ("aws-neuron-operator-v4.22", "catalogs/aws-neuron-operator/v4.22"),
        ("inline-and-deprecated", "grpc/inline-and-deprecated"),
        ("koku-metrics-operator-v4.22", "catalogs/koku-metrics-operator/v4.22"),
        ("kube-green-v4.21", "catalogs/kube-green/v4.21"),
        ("shipwright-operator-v4.13", "catalogs/shipwright-operator/v4.13"),
        ("visionone-containersecurity-v4.16", "catalogs/visionone-containersecurity/v4.16"),
    ];
    let trial = |(answers, catalog): (&'static str, &'static str)| {
        let corpus = corpus.to_owned();
        Trial::test(format!("grpc::{answers}"), move || check(&corpus, answers, catalog))
    };
    catalogs.into_iter().map(trial).collect()
}

fn check(corpus: &Path, answers: &str, catalog: &str) -> Result<(), Failed> {
    let server = Server::start(&[arg(&corpus.join(catalog)), "--port", "0"]);
    let client = server.client();
    let mut differences = String::new();
    for line in std::fs::read_to_string(corpus.join("grpc").join(format!("{answers}.jsonl")))?.lines() {
        let row: Value = serde_json::from_str(line)?;
        if let Err(why) = compare(&client, &row) {
            differences += &format!("{} {}: {why}\n", row["method"], row["request"]);
        }
    }
    if differences.is_empty() { Ok(()) } else { Err(differences.into()) }
}

/// Asks a row's question and compares the answer with the row's.
fn compare(client: &Client, row: &Value) -> Result<(), String> {
    let method = row["method"].as_str().unwrap_or_default();
    let (service, name) = match method.rsplit_once('/') {
        Some(parts) => parts,
        None if method.starts_with("Experimental") => ("api.ExperimentalRegistry", method),
        None => ("api.Registry", method),
    };
    let acknowledged = row["metadata"]["x-acknowledge-experimental"].as_str();
    let metadata: Vec<_> =
        acknowledged.map(|value| ("x-acknowledge-experimental", value)).into_iter().collect();
    let found = client.ask_with(service, name, &row["request"], &metadata);
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
        let entries = client
            .ask("api.Registry", "GetChannelEntriesThatReplace", &request)
            .map_err(|e| format!("{e:?}"))?;
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
