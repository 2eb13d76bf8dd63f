//! The API server as the oracle for CRDs: what it refuses, `bundle validate` finds, and what it takes, is without findings.
//!
//! CRDs are created in dry runs, so nothing stays. They are those of the operators here and of this test, changed in seeded ways
//! (`OLMKIT_CRD_CHANGES` says how many, 300 where it says nothing; `OLMKIT_FUZZ_SEED` chooses others), and every CRD of the corpus
//! where that is at hand.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use olmkit_bundle::load::{BundleFile, BundleFiles, Content};
use olmkit_bundle::parse::Bundle;
use olmkit_bundle::validate::{INSTALL, OLM, validate};
use olmkit_bundle::yaml;
use reqwest::Client;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use super::server::{ADMIN, Server};

/// Where the server and we differ, and why: a part of what the server says, or of what we say, and the reason. They are told in
/// docs/validate.md as well.
const KNOWN: &[(&str, &str)] = &[
    ("failed rule: ", RULES_ON_DEFAULTS),
    ("no such key", RULES_ON_DEFAULTS),
    ("no such overload", RULES_ON_DEFAULTS),
    (
        "the generation is",
        "the server sets `metadata.generation` itself; OLM's tools look at what is written",
    ),
    (
        "objects in a bundle have no namespace",
        "the server leaves the namespace of a CRD out; OLM's tools refuse it",
    ),
    (
        " of type string",
        "numbers and booleans become text where a bundle is read as YAML; these are sent as JSON",
    ),
    ("expected a string, found a list", TYPES_WITH_FORMATS),
    ("expected a boolean, found a string", TYPES_WITH_FORMATS),
    ("expected an integer or a string, found", INT_OR_STRING_IN_DEFAULTS),
    (": \"int64\"", "a format at what is an integer or a string is not held against numbers"),
    (": \"integer\"", INT_OR_STRING_IN_DEFAULTS),
    (
        "properties[metadata].properties[name].x-kubernetes-validations",
        "rules on the name are estimated without its limits, where the root has rules too",
    ),
    (".default.metadata", "the metadata of objects in defaults is not looked at"),
];
const INT_OR_STRING_IN_DEFAULTS: &str =
    "in defaults the server does not know of `x-kubernetes-int-or-string`";
const TYPES_WITH_FORMATS: &str = "of texts and lists the server ignores the type where there is a format";
const RULES_ON_DEFAULTS: &str = "the server runs the rules on the defaults, which are not evaluated here";

/// Findings that say that a cluster refuses a CRD.
fn says_refused(code: &str) -> bool {
    const OTHERS: [&str; 5] = [
        "crd-not-owned",
        "crd-duplicate",
        "crd-field-unknown",
        "crd-api-version-unsupported",
        "crd-conversion-unmatched",
    ];
    (code.starts_with("crd-") || code.starts_with("schema-")) && !OTHERS.contains(&code)
}

/// What we say of a CRD; empty when it can be created.
fn ours(crd: &Value) -> Vec<String> {
    let content = Content::from_bytes(crd.to_string().into_bytes());
    let files = vec![BundleFile { path: "manifests/crd.yaml".into(), content }];
    let files = BundleFiles { name: "bundle".into(), files };
    let findings = validate(&Bundle::parse(&files), &[OLM, INSTALL]);
    let refused = findings.iter().filter(|finding| says_refused(finding.code.name));
    refused.map(|finding| format!("{}: {}", finding.code.name, finding.message)).collect()
}

struct Api {
    client: Client,
    url: String,
}

impl Api {
    fn new(server: &Server) -> Self {
        let path = "apis/apiextensions.k8s.io/v1/customresourcedefinitions?dryRun=All";
        Self {
            client: Client::builder().danger_accept_invalid_certs(true).build().unwrap(),
            url: format!("{}/{path}", server.address()),
        }
    }

    /// What the server says against a CRD; none when it takes it.
    async fn refuses(&self, crd: &Value) -> Option<String> {
        let request = self.client.post(&self.url).bearer_auth(format!("{ADMIN}-token"));
        let request = request.header("content-type", "application/json").body(crd.to_string());
        let answer = match request.send().await {
            Ok(answer) => answer,
            // Some fields that it does not take make it panic (`additionalItems: true`), and it goes on.
            Err(error) => return Some(format!("it hangs up: {error}")),
        };
        let status = answer.status().as_u16();
        let text = answer.text().await.unwrap();
        match status {
            201 => None,
            // What it cannot read, and what it does not want.
            400 | 422 => {
                let told: Value = serde_json::from_str(&text).unwrap_or_default();
                Some(told["message"].as_str().unwrap_or(&text).to_owned())
            }
            _ => panic!("the server answers {status} to\n{crd}\n{text}"),
        }
    }
}

/// Holds both verdicts against each other for every CRD, several at a time.
#[expect(clippy::print_stderr, reason = "the log says how many differences are known")]
fn compare(server: &Server, crds: &[(String, Value)]) {
    let (api, runtime) = (Api::new(server), Runtime::new().unwrap());
    let next = AtomicUsize::new(0);
    let (differences, known) = (Mutex::new(Vec::new()), Mutex::new(BTreeMap::<&str, usize>::new()));
    let refused = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some((name, crd)) = crds.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let theirs = runtime.block_on(api.refuses(crd));
                    let ours = ours(crd);
                    refused.fetch_add(usize::from(theirs.is_some()), Ordering::Relaxed);
                    if theirs.is_some() != ours.is_empty() {
                        continue;
                    }
                    let ours = ours.join("\n      ");
                    let said = theirs.as_deref().unwrap_or("");
                    match KNOWN.iter().find(|(part, _)| said.contains(part) || ours.contains(part)) {
                        Some((_, reason)) => *known.lock().unwrap().entry(reason).or_default() += 1,
                        None => differences.lock().unwrap().push(format!(
                            "{name}\n  server: {}\n  we: {ours}",
                            theirs.as_deref().unwrap_or("takes it")
                        )),
                    }
                }
            });
        }
    });
    let differences = differences.into_inner().unwrap();
    for (reason, count) in known.into_inner().unwrap() {
        eprintln!("{count} known differences: {reason}");
    }
    eprintln!("{} CRDs, of which the server refuses {}", crds.len(), refused.into_inner());
    let shown = differences.iter().take(20).map(String::as_str).collect::<Vec<_>>().join("\n");
    assert!(differences.is_empty(), "{} of {} CRDs differ:\n{shown}", differences.len(), crds.len());
}

/// CRDs of this test and of the operator here, as they are and changed.
pub(crate) fn what_it_refuses_of_changed_crds_is_found() {
    let server = Server::start();
    let number = |name: &str| std::env::var(name).ok()?.parse::<u64>().ok();
    let mut random = Random(number("OLMKIT_FUZZ_SEED").unwrap_or(1));
    let bases = bases();
    let mut crds: Vec<(String, Value)> =
        bases.iter().map(|crd| ("unchanged".to_owned(), crd.clone())).collect();
    for _ in 0..number("OLMKIT_CRD_CHANGES").unwrap_or(300) {
        let mut crd = bases[random.below(bases.len())].clone();
        let mut changes = Vec::new();
        for _ in 0..=random.below(2) {
            changes.push(change(&mut crd, &mut random));
        }
        crds.push((changes.join("; "), crd));
    }
    compare(&server, &crds);
}

/// Every CRD of the corpus that the server knows the version of, each once.
pub(crate) fn what_it_refuses_of_real_crds_is_found() {
    let server = Server::start();
    let (mut crds, mut seen) = (Vec::new(), HashSet::new());
    let mut open: Vec<PathBuf> = corpus().into_iter().collect();
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(directory).unwrap().flatten() {
            let path = entry.path();
            if entry.file_type().unwrap().is_dir() {
                open.push(path);
            } else if let Ok(text) = std::fs::read_to_string(&path)
                && text.contains("CustomResourceDefinition")
                && path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml")
            {
                for document in yaml::documents(&text).flatten() {
                    let crd = document.root.to_json();
                    let is_crd = crd["kind"] == "CustomResourceDefinition"
                        && crd["apiVersion"] == "apiextensions.k8s.io/v1";
                    if is_crd && seen.insert(crd.to_string()) {
                        crds.push((path.display().to_string(), crd));
                    }
                }
            }
        }
    }
    crds.sort_by(|a, b| a.0.cmp(&b.0));
    assert!(crds.len() > 100, "{} CRDs", crds.len());
    compare(&server, &crds);
}

/// Where the corpus is, if it is anywhere.
pub(crate) fn corpus() -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/corpus");
    let path = std::env::var_os("OLMKIT_CORPUS").map_or_else(beside, PathBuf::from);
    path.is_dir().then_some(path)
}

fn bases() -> Vec<Value> {
    let read = |text: &str| yaml::first_document(text).unwrap().root.to_json();
    vec![
        read(include_str!("crds/wide.yaml")),
        read(include_str!("crds/wide.yaml")),
        read(include_str!("crds/wide.yaml")),
        read(include_str!("../../operator/deploy/0.4.0/install/customresourcedefinition.yaml")),
    ]
}

/// Changes one thing, and says what.
fn change(crd: &mut Value, random: &mut Random) -> String {
    let mut all = Vec::new();
    pointers(crd, String::new(), &mut all);
    // Without these it is no CRD at all, which is another matter.
    all.retain(|at| at != "/kind" && at != "/apiVersion");
    let is_object = |at: &&String| crd.pointer(at).is_some_and(Value::is_object);
    let schemas: Vec<_> = all.iter().filter(|at| is_schema(at)).filter(is_object).cloned().collect();
    match if schemas.is_empty() { 1 } else { random.below(6) } {
        // Anything, anywhere; the whole comes last.
        0 => {
            let at = all[random.below(all.len() - 1)].clone();
            let (parent, key) = at.rsplit_once('/').unwrap();
            let value = crd.pointer(&at).unwrap().clone();
            match (crd.pointer_mut(parent).unwrap(), random.below(3)) {
                (Value::Object(map), 0) => {
                    map.remove(&unescaped(key));
                    format!("remove {at}")
                }
                (Value::Object(map), 1) => {
                    let other = format!("{}x", unescaped(key));
                    map.remove(&unescaped(key));
                    map.insert(other, value);
                    format!("rename {at}")
                }
                (Value::Array(items), 0) => {
                    items.push(value);
                    format!("repeat {at}")
                }
                (Value::Array(items), 1) => {
                    items.remove(key.parse().unwrap());
                    format!("remove {at}")
                }
                _ => {
                    let values = [
                        json!(null),
                        json!(true),
                        json!(""),
                        json!("text"),
                        json!(-1),
                        json!(1.5),
                        json!([]),
                        json!({}),
                        json!(["a"]),
                        json!({"a": 1}),
                        json!("A B"),
                        json!(1e30),
                    ];
                    let other = random.of(&values).clone();
                    *crd.pointer_mut(&at).unwrap() = other.clone();
                    format!("{at} = {other}")
                }
            }
        }
        1 => {
            let (at, values) = random.of(OUTSIDE);
            let value: Value = serde_json::from_str(random.of::<&str>(values)).unwrap();
            set(crd, at, value.clone());
            format!("{at} = {value}")
        }
        2 => {
            let at = schemas[random.below(schemas.len())].clone();
            let rule = json!([{"rule": random.of(RULES)}]);
            set(crd, &format!("{at}/x-kubernetes-validations"), rule.clone());
            format!("{at} rule {rule}")
        }
        _ => {
            let at = schemas[random.below(schemas.len())].clone();
            let (keyword, values) = random.of(KEYWORDS);
            let value: Value = serde_json::from_str(random.of::<&str>(values)).unwrap();
            set(crd, &format!("{at}/{keyword}"), value.clone());
            format!("{at}/{keyword} = {value}")
        }
    }
}

/// Sets a member of a map, and does nothing where there is no map.
fn set(crd: &mut Value, at: &str, value: Value) {
    let (parent, key) = at.rsplit_once('/').unwrap();
    if let Some(Value::Object(map)) = crd.pointer_mut(parent) {
        map.insert(unescaped(key), value);
    }
}

fn unescaped(key: &str) -> String {
    key.replace("~1", "/").replace("~0", "~")
}

fn pointers(value: &Value, at: String, all: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                pointers(value, format!("{at}/{}", key.replace('~', "~0").replace('/', "~1")), all);
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                pointers(value, format!("{at}/{index}"), all);
            }
        }
        _ => {}
    }
    all.push(at);
}

/// Whether a schema stands there.
fn is_schema(at: &str) -> bool {
    let Some((_, inside)) = at.split_once("/openAPIV3Schema") else { return false };
    let mut steps = inside.split('/').skip(1);
    while let Some(step) = steps.next() {
        match step {
            "items" | "additionalProperties" | "not" => {}
            "properties" | "oneOf" | "anyOf" | "allOf" if steps.next().is_some() => {}
            _ => return false,
        }
    }
    true
}

/// What stands outside of schemas, and what else may.
const OUTSIDE: &[(&str, &[&str])] = &[
    ("/metadata/name", &["\"widget.shop.example.com\"", "\"Widgets.shop.example.com\"", "\"\""]),
    ("/metadata/labels", &["{\"a b\": \"c\"}", "{\"a\": \"-\"}", "null", "[]"]),
    ("/metadata/annotations", &["{\"a/b/c\": \"d\"}", "{\"A\": \"\"}"]),
    ("/metadata/finalizers", &["[\"a\"]", "[\"a.b/c\"]"]),
    ("/metadata/generation", &["-1", "7"]),
    ("/metadata/namespace", &["\"shop\"", "\"\""]),
    ("/spec/group", &["\"shop\"", "\"k8s.io\"", "\"Shop.example.com\"", "\"\"", "null"]),
    ("/spec/scope", &["\"Cluster\"", "\"cluster\"", "\"\"", "null"]),
    ("/spec/preserveUnknownFields", &["true", "false", "null"]),
    ("/spec/names/kind", &["\"widget\"", "\"Wid get\"", "\"\"", "\"WidgetList\"", "\"1Widget\""]),
    ("/spec/names/listKind", &["\"\"", "\"Widget\"", "\"Widgets\""]),
    ("/spec/names/singular", &["\"\"", "\"Widget\"", "\"wi_dget\""]),
    ("/spec/names/shortNames", &["[\"\"]", "[\"WD\"]", "[\"wd\", \"wd\"]", "null"]),
    ("/spec/names/categories", &["[\"all\"]", "[\"a.b\"]"]),
    (
        "/spec/conversion",
        &[
            "null",
            "{\"strategy\": \"None\"}",
            "{\"strategy\": \"Webhook\"}",
            "{}",
            "{\"strategy\": \"Other\"}",
        ],
    ),
    ("/spec/conversion/strategy", &["\"None\"", "\"\""]),
    (
        "/spec/conversion/webhook/conversionReviewVersions",
        &["[]", "[\"v2\"]", "[\"v1\", \"v1\"]", "[\"V1\"]", "[\"v3\", \"v1\"]"],
    ),
    (
        "/spec/conversion/webhook/clientConfig",
        &[
            "{}",
            "{\"url\": \"https://a.example.com/x\"}",
            "{\"url\": \"http://a.example.com\"}",
            "{\"url\": \"https://a?b\"}",
            "{\"service\": {\"namespace\": \"a\", \"name\": \"b\", \"port\": 0}}",
            "{\"service\": {\"namespace\": \"a\", \"name\": \"b\", \"path\": \"convert\"}}",
            "{\"service\": {\"namespace\": \"a\", \"name\": \"b\"}, \"caBundle\": \"AAAA\"}",
            "{\"service\": {\"namespace\": \"a\", \"name\": \"b\"}, \"caBundle\": \"!\"}",
            "{\"service\": {\"namespace\": \"A\", \"name\": \"b c\"}}",
        ],
    ),
    ("/spec/versions/0/name", &["\"V1\"", "\"v1beta1\"", "\"1\"", "\"\""]),
    ("/spec/versions/0/storage", &["false", "null"]),
    ("/spec/versions/0/served", &["false", "null", "\"yes\""]),
    ("/spec/versions/0/deprecationWarning", &["\"old\"", "\"\"", "null"]),
    ("/spec/versions/1/deprecationWarning", &["\"\"", "\"a\\nb\"", "\"é\"", "null"]),
    ("/spec/versions/0/schema", &["null", "{}", "{\"openAPIV3Schema\": null}", "{\"openAPIV3Schema\": {}}"]),
    ("/spec/versions/0/subresources", &["null", "{}", "{\"status\": null}", "{\"scale\": {}}"]),
    (
        "/spec/versions/0/subresources/scale/specReplicasPath",
        &["\".status.size\"", "\"spec.size\"", "\".spec.\"", "\".spec\"", "\"\""],
    ),
    (
        "/spec/versions/0/subresources/scale/statusReplicasPath",
        &["\".spec.size\"", "\"\"", "\".status.a.b\"", "null"],
    ),
    (
        "/spec/versions/0/subresources/scale/labelSelectorPath",
        &["\".metadata.x\"", "\"\"", "null", "\".spec.x\""],
    ),
    (
        "/spec/versions/0/additionalPrinterColumns/0/jsonPath",
        &["\"spec.size\"", "\"\"", "\".\"", "\".a[0].b\"", "\".a{\""],
    ),
    ("/spec/versions/0/additionalPrinterColumns/0/type", &["\"int\"", "\"\"", "\"array\"", "\"string\""]),
    (
        "/spec/versions/0/additionalPrinterColumns/0/format",
        &["\"int16\"", "\"\"", "\"date-time\"", "\"email\""],
    ),
    ("/spec/versions/0/additionalPrinterColumns/0/name", &["\"\"", "\"Age\"", "\"a b\""]),
    ("/spec/versions/0/additionalPrinterColumns/0/priority", &["-1", "3000000000", "1.5"]),
    (
        "/spec/versions/0/selectableFields",
        &[
            "[]",
            "[{\"jsonPath\": \".spec.parts\"}]",
            "[{\"jsonPath\": \".metadata.name\"}]",
            "[{\"jsonPath\": \"spec.size\"}]",
            "[{\"jsonPath\": \".spec.color\"}, {\"jsonPath\": \".spec.color\"}]",
            "[{\"jsonPath\": \".spec.labels.a\"}]",
            "[{\"jsonPath\": \".spec['color']\"}]",
            "[{\"jsonPath\": \".spec.enabled\"}]",
            "[{}]",
            "[{\"jsonPath\": \".spec.ratio\"}]",
            "[{\"jsonPath\": \".spec.port\"}]",
            "[{\"jsonPath\": \".spec.parts[0].name\"}]",
        ],
    ),
    (
        "/spec/versions/0/schema/openAPIV3Schema/properties/metadata",
        &[
            "{\"type\": \"object\", \"description\": null}",
            "{\"type\": \"string\"}",
            "{}",
            "{\"type\": \"object\", \"properties\": {\"labels\": {\"type\": \"object\"}}}",
            "{\"type\": \"object\", \"default\": {}}",
            "{\"type\": \"object\", \"properties\": {\"name\": {\"type\": \"string\", \"default\": \"a\"}}}",
            "{\"type\": \"object\", \"required\": [\"name\"]}",
            "{\"type\": \"object\", \"properties\": {\"name\": {\"type\": \"integer\"}}}",
        ],
    ),
    (
        "/spec/versions/0/schema/openAPIV3Schema/properties/kind",
        &[
            "{\"type\": \"object\"}",
            "{\"type\": \"string\", \"default\": \"a\"}",
            "{\"type\": \"string\", \"enum\": [\"A\"]}",
        ],
    ),
    (
        "/spec/versions/0/schema/openAPIV3Schema/properties/spec/x-kubernetes-validations/0/fieldPath",
        &[
            "\".size\"",
            "\"size\"",
            "\".nothing\"",
            "\".\"",
            "\"\"",
            "\" \"",
            "\".labels.a\"",
            "\".labels['a b']\"",
            "\"['size']\"",
            "\".parts\"",
            "\".parts[0]\"",
            "\".parts[0].name\"",
            "\".either.a\"",
            "\".either.a.b\"",
            "\".free.a\"",
            "\".template.kind\"",
            "\".size\\n\"",
            "\".color'\"",
            "\".labels[a]\"",
            "\".labels['a'\"",
            "\"..size\"",
            "\".size.\"",
        ],
    ),
    (
        "/spec/versions/0/schema/openAPIV3Schema/properties/spec/x-kubernetes-validations/0/message",
        &["\"\"", "\" \"", "\"a\\nb\"", "null"],
    ),
    (
        "/spec/versions/0/schema/openAPIV3Schema/properties/spec/x-kubernetes-validations/0/reason",
        &["\"\"", "\"Other\"", "null", "\"FieldValueForbidden\""],
    ),
    (
        "/spec/versions/0/schema/openAPIV3Schema/properties/spec/x-kubernetes-validations/0/rule",
        &["\"\"", "\" \"", "\"true\\n&& true\"", "\"1\""],
    ),
    (
        "/spec/versions/0/schema/openAPIV3Schema/properties/spec/x-kubernetes-validations/1/messageExpression",
        &["\"\"", "\" \"", "\"1\"", "\"self.nothing\"", "\"string(self.size)\""],
    ),
    (
        "/spec/versions/0/schema/openAPIV3Schema/properties/spec/x-kubernetes-validations/1/optionalOldSelf",
        &["true", "false", "null"],
    ),
    (
        "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/template",
        &[
            "{\"type\": \"object\", \"x-kubernetes-embedded-resource\": true}",
            "{\"type\": \"object\", \"x-kubernetes-embedded-resource\": true, \"properties\": {\"spec\": {\"type\": \"object\"}}}",
            "{\"type\": \"object\", \"x-kubernetes-embedded-resource\": true, \"x-kubernetes-preserve-unknown-fields\": true, \"default\": {\"apiVersion\": \"v1\", \"kind\": \"Pod\"}}",
            "{\"type\": \"object\", \"x-kubernetes-embedded-resource\": true, \"x-kubernetes-preserve-unknown-fields\": true, \"default\": {\"kind\": 1}}",
            "{\"type\": \"object\", \"x-kubernetes-embedded-resource\": true, \"x-kubernetes-preserve-unknown-fields\": true, \"default\": {}}",
            "{\"type\": \"object\", \"x-kubernetes-embedded-resource\": true, \"x-kubernetes-preserve-unknown-fields\": true, \"default\": {\"apiVersion\": \"v1\", \"kind\": \"Pod\", \"metadata\": {\"name\": \"A B\"}}}",
            "{\"type\": \"object\", \"x-kubernetes-embedded-resource\": true, \"x-kubernetes-preserve-unknown-fields\": true, \"default\": {\"apiVersion\": \"v1\", \"kind\": \"Pod\", \"metadata\": {\"labels\": {\"a b\": \"c\"}}}}",
            "{\"type\": \"object\", \"x-kubernetes-embedded-resource\": true, \"x-kubernetes-preserve-unknown-fields\": true, \"properties\": {\"metadata\": {\"type\": \"object\", \"properties\": {\"name\": {\"type\": \"string\", \"default\": \"A B\"}}}}}",
            "{\"type\": \"array\", \"items\": {\"type\": \"string\"}, \"x-kubernetes-embedded-resource\": true}",
        ],
    ),
];

/// Keywords of schemas, and values for them.
const KEYWORDS: &[(&str, &[&str])] = &[
    (
        "type",
        &[
            "\"object\"",
            "\"string\"",
            "\"integer\"",
            "\"number\"",
            "\"boolean\"",
            "\"array\"",
            "\"null\"",
            "\"text\"",
            "\"\"",
            "null",
            "[\"string\"]",
        ],
    ),
    (
        "default",
        &[
            "{}",
            "[]",
            "\"a\"",
            "1",
            "1.5",
            "true",
            "null",
            "{\"size\": 1}",
            "{\"unknown\": 1}",
            "[\"a\", \"a\"]",
            "[{\"name\": \"a\"}]",
            "0",
            "-1",
            "\"\"",
            "9223372036854775808",
            "3.0",
        ],
    ),
    (
        "format",
        &[
            "\"int32\"",
            "\"date\"",
            "\"email\"",
            "\"uuid\"",
            "\"ipv4\"",
            "\"ipv6\"",
            "\"cidr\"",
            "\"mac\"",
            "\"uri\"",
            "\"hostname\"",
            "\"duration\"",
            "\"date-time\"",
            "\"datetime\"",
            "\"byte\"",
            "\"password\"",
            "\"quantity\"",
            "\"isbn\"",
            "\"hexcolor\"",
            "\"k8s-short-name\"",
            "\"int64\"",
            "\"double\"",
        ],
    ),
    (
        "pattern",
        &[
            "\"^a\"",
            "\"(\"",
            "\"^{{.*}}$\"",
            "\"^[^[\\\\]]+$\"",
            "\"^.{1,4096}$\"",
            "\"\\\\u0041\"",
            "\"\\\\d+\"",
            "\"(?x)a\"",
            "\"(?=a)\"",
            "\"[a&&b]\"",
            "\"\\\\p{Greek}\"",
            "\"a**\"",
        ],
    ),
    ("enum", &["[\"a\"]", "[]", "[1, 2]", "[null]", "[\"red\", \"red\"]", "\"a\""]),
    ("minimum", &["0", "5", "0.5", "\"1\""]),
    ("maximum", &["0", "2", "1e30"]),
    ("exclusiveMinimum", &["true", "false", "1"]),
    ("multipleOf", &["0.1", "2", "0", "-1"]),
    ("minLength", &["0", "5", "-1", "1.5"]),
    ("maxLength", &["0", "2", "100000000", "-1"]),
    ("minItems", &["0", "3"]),
    ("maxItems", &["0", "2", "100000000"]),
    ("maxProperties", &["0", "1", "100000000"]),
    ("uniqueItems", &["true", "false"]),
    ("required", &["[]", "[\"size\"]", "[\"nothing\"]", "\"size\"", "[\"size\", \"size\"]"]),
    ("nullable", &["true", "false", "null"]),
    ("title", &["\"a\"", "[]"]),
    ("description", &["null", "\"a\"", "{}"]),
    ("example", &["1", "{}"]),
    ("externalDocs", &["{\"url\": \"https://example.com\"}", "{}", "1"]),
    (
        "additionalProperties",
        &[
            "true",
            "false",
            "{}",
            "{\"type\": \"string\"}",
            "null",
            "{\"type\": \"string\", \"default\": \"a\"}",
        ],
    ),
    (
        "properties",
        &[
            "{}",
            "null",
            "{\"a\": {}}",
            "{\"a\": {\"type\": \"string\"}}",
            "{\"a\": null}",
            "{\"metadata\": {\"type\": \"string\"}}",
        ],
    ),
    ("items", &["{}", "{\"type\": \"string\"}", "[]", "[{\"type\": \"string\"}]", "null"]),
    (
        "allOf",
        &[
            "[{\"type\": \"string\"}]",
            "[{\"pattern\": \"a\"}]",
            "[]",
            "[{}]",
            "[{\"default\": 1}]",
            "[{\"properties\": {\"zz\": {\"minimum\": 1}}}]",
        ],
    ),
    (
        "anyOf",
        &[
            "[{\"type\": \"integer\"}, {\"type\": \"string\"}]",
            "[{\"required\": [\"a\"]}]",
            "[{\"nullable\": true}]",
            "[{\"items\": {\"minimum\": 1}}]",
        ],
    ),
    (
        "oneOf",
        &[
            "[{\"minimum\": 1}, {\"maximum\": 0}]",
            "[{\"description\": \"a\"}]",
            "[{\"x-kubernetes-validations\": [{\"rule\": \"true\"}]}]",
        ],
    ),
    ("not", &["{}", "{\"type\": \"string\"}", "{\"enum\": [\"a\"]}", "{\"properties\": {\"a\": {}}}"]),
    ("id", &["\"a\"", "\"\""]),
    ("$ref", &["\"#/definitions/a\"", "\"\""]),
    ("$schema", &["\"http://json-schema.org/draft-04/schema#\""]),
    ("definitions", &["{}", "{\"a\": {}}"]),
    ("dependencies", &["{}", "{\"a\": [\"b\"]}"]),
    ("patternProperties", &["{}", "{\"a\": {}}"]),
    ("additionalItems", &["true", "false"]),
    ("x-kubernetes-preserve-unknown-fields", &["true", "false", "null"]),
    ("x-kubernetes-int-or-string", &["true", "false"]),
    ("x-kubernetes-embedded-resource", &["true", "false"]),
    ("x-kubernetes-list-type", &["\"set\"", "\"map\"", "\"atomic\"", "\"list\"", "\"\"", "null"]),
    (
        "x-kubernetes-list-map-keys",
        &["[\"name\"]", "[]", "[\"nothing\"]", "[\"name\", \"name\"]", "[\"weight\"]"],
    ),
    ("x-kubernetes-map-type", &["\"atomic\"", "\"granular\"", "\"set\"", "\"\""]),
];

/// Rules, of which some cost too much where they stand, and some cannot be compiled.
const RULES: &[&str] = &[
    "true",
    "self == self",
    "self == oldSelf",
    "self.size() > 0",
    "size(self) < 10",
    "has(self.spec)",
    "has(self.size) && self.size > 3",
    "self.all(x, x == x)",
    "self.all(x, self.all(y, x == y))",
    "self.all(x, self.all(y, self.all(z, x == y && y == z)))",
    "self.exists(x, x.size() > 3)",
    "self.map(x, x).size() > 1",
    "self.filter(x, x != x).size() == 0",
    "self.matches('^a')",
    "self.matches('(')",
    "self.matches('^.{1,4096}$')",
    "self.matches(self)",
    "self.contains('a')",
    "self.contains(self)",
    "self.startsWith('a') || self.endsWith('b')",
    "self.split(',').all(x, x.size() < 5)",
    "self.replace('a', 'bb').size() < 5",
    "self.lowerAscii() == self",
    "self + self == self",
    "self in ['a', 'b']",
    "'a' in self",
    "self.spec.size > 0",
    "self.spec.parts.all(p, self.spec.parts.all(q, p.name == q.name))",
    "self.spec.parts.all(p, p.notes.all(n, n.contains(p.name)))",
    "self.spec.labels.all(k, self.spec.labels[k].size() > k.size())",
    "self.spec.free == self.spec.free",
    "self.status.conditions.all(c, self.status.conditions.exists(d, d.type == c.type))",
    "self.status.conditions.map(c, c.type + c.type).exists(t, t.matches('a+'))",
    "self.parts.all(p, p.name.startsWith(self.name))",
    "self.parts.map(p, p.notes).size() > 1",
    "self.parts.exists_one(p, p.weight > 1) ? self.tags.size() > 0 : self.tags.isSorted()",
    "self.tags.join(',').size() < 100",
    "self.name.find('[0-9]+') == ''",
    "self.name.findAll('[0-9]+').size() == 0",
    "quantity(self.name).isGreaterThan(quantity('1Gi'))",
    "isQuantity(self.name) && url(self.name).getHost() == 'a'",
    "ip(self.address).family() == 4 && cidr('10.0.0.0/8').containsIP(self.address)",
    "self.since < timestamp('2030-01-01T00:00:00Z')",
    "self.since < timestamp('tomorrow')",
    "self.timeout < duration('1h')",
    "self.timeout < duration('1 hour')",
    "self.?color.orValue('red') == 'red'",
    "self.?color.optMap(c, c.size()).orValue(0) < 5",
    "type(self.port) == int ? self.port < 5 : self.port.matches('a')",
    "[1, 'a'].size() == 2",
    "[1, 2].exists(x, x == self.size)",
    "{'a': 1, 'b': 'c'}.size() == 2",
    "dyn(self) == 1",
    "self.nothing == 1",
    "self.size",
    "self.size == 'a'",
    "1 +",
    "string(self) == 'a'",
    "oldSelf.size() < self.size()",
    "self.metadata.name == 'a' && self.metadata.generateName == ''",
    "self.metadata.labels.size() == 0",
    "self.apiVersion == 'v1' && self.kind == 'A'",
    "self.spec.parts.all(p, p.name in self.spec.tags)",
    "self.spec.tags.all(t, self.spec.tags.filter(u, u == t).size() == 1)",
    "!self.spec.enabled || self.spec.size - 1 > 0 && -self.spec.size < 3",
    "self.spec.ratio * 2.0 < 1.0",
];

/// Numbers that look random and are the same in every run (Knuth's linear congruential generator).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % limit.max(1)
    }

    fn of<'t, T>(&mut self, of: &'t [T]) -> &'t T {
        &of[self.below(of.len())]
    }
}
