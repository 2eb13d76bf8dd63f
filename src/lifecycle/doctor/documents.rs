//! Objects from text: what `kubectl get -o yaml` or `-o json` prints, `kubectl cluster-info dump`, and the files of a must-gather.
//!
//! Only objects of kinds that causes are read from are kept; the rest is passed over without being taken apart.

use std::collections::BTreeSet;
use std::fmt;

use olmkit_bundle::yaml;
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer as _};
use serde_json::Value;
use serde_json::value::RawValue;

use super::Observation;
use super::doc::Doc;
use super::lean::lean;
use super::observation::KINDS;
use super::unpack;

/// The kinds besides [`KINDS`] that say something.
const MORE: [&str; 8] = [
    "CustomResourceDefinition",
    "Namespace",
    "ServiceAccount",
    "APIService",
    "PackageManifest",
    "ValidatingWebhookConfiguration",
    "MutatingWebhookConfiguration",
    "Node",
];

/// What a text held.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Read {
    /// How many objects of Kubernetes there were, of whatever kind.
    pub objects: usize,
    /// The kinds of those that causes are read from.
    pub kinds: BTreeSet<String>,
    /// Why a part of it could not be read.
    pub problem: Option<String>,
}

/// A document, as far as it has to be known whether it counts.
#[derive(Deserialize)]
struct Head<'t> {
    kind: Option<String>,
    #[serde(rename = "apiVersion")]
    api_version: Option<String>,
    #[serde(borrow)]
    items: Option<&'t RawValue>,
}

/// Does something with each item of a list as it is met: there may be millions.
struct Each<F>(F);

impl<'t, F: FnMut(&'t RawValue)> Visitor<'t> for Each<F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'t>>(mut self, mut items: A) -> Result<(), A::Error> {
        while let Some(item) = items.next_element()? {
            (self.0)(item);
        }
        Ok(())
    }
}

/// The group of a kind; other groups have kinds of the same names, such as the Subscriptions of Knative.
fn group_of(kind: &str) -> &'static str {
    match kind {
        "Pod" | "Event" | "ConfigMap" | "Namespace" | "ServiceAccount" | "Node" => "",
        "Deployment" => "apps",
        "Job" => "batch",
        "CustomResourceDefinition" => "apiextensions.k8s.io",
        "APIService" => "apiregistration.k8s.io",
        "PackageManifest" => "packages.operators.coreos.com",
        "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration" => "admissionregistration.k8s.io",
        _ => "operators.coreos.com",
    }
}

/// Whether a cause is read from objects of a kind. Any version will do, for what is read has never changed.
fn is_wanted(kind: &str, api_version: Option<&str>) -> bool {
    let group = api_version.map(|text| text.split_once('/').map_or("", |(group, _)| group));
    (KINDS.contains(&kind) || MORE.contains(&kind)) && group.is_none_or(|group| group == group_of(kind))
}

/// Keeps an object, without what no cause is read from.
fn keep(seen: &mut Observation, mut object: Value, read: &mut Read) {
    if let Some(kind) = object["kind"].as_str().filter(|kind| !read.kinds.contains(*kind)) {
        read.kinds.insert(kind.to_owned());
    }
    seen.mentions(&object);
    if !is_of_use(Doc(&object)) {
        seen.look_at(object["kind"].as_str().unwrap_or(""));
        return;
    }
    lean(&mut object);
    seen.pack(&object);
}

/// Whether a cause may be read from an object of a kind of which there are many.
fn is_of_use(object: Doc<'_>) -> bool {
    match object.kind() {
        "Event" => object.text("/type") != "Normal",
        "ConfigMap" => unpack::is_unpacked(object),
        _ => true,
    }
}

/// The kinds that the path of a file names, as must-gathers and `kubectl cluster-info dump` have them: `…/pods.yaml`, `…/pods/x.yaml`.
pub fn kinds_in_path(path: &str) -> BTreeSet<String> {
    let names = |kind: &str| {
        let plural = format!("{}s", kind.to_lowercase());
        path.split(['/', '.']).any(|part| part == plural)
    };
    KINDS.iter().filter(|kind| names(kind)).map(|kind| (*kind).to_owned()).collect()
}

/// Reads the objects of a text in JSON or YAML.
pub fn read(seen: &mut Observation, text: &str) -> Read {
    let text = text.trim_start_matches('\u{feff}');
    if text.trim_start().starts_with('{') {
        return json(seen, text);
    }
    let mut read = yaml(seen, text);
    if read.objects == 0 && is_end_of_json(text) {
        loose_items(seen, text, &mut read);
    }
    read
}

/// How many times its size is read of a text, after what cannot be read in it.
const MOST_ANEW: usize = 20;
const TOO_DAMAGED: &str = "it is damaged in so many places that it would be read more than 20 times over";

/// What is said of a text that begins in the middle of an object.
const WITHOUT_BEGINNING: &str = "its beginning is missing";

/// Whether a text may be the end of a list in JSON.
fn is_end_of_json(text: &str) -> bool {
    text.trim_end().ends_with('}') && text.contains("\"apiVersion\"")
}

/// The whole items of a list in JSON that has no beginning. Each begins with its version, as the API server writes it.
fn loose_items(seen: &mut Observation, mut text: &str, read: &mut Read) {
    read.problem = Some(WITHOUT_BEGINNING.into());
    let mut left = MOST_ANEW * text.len();
    while let Some(found) = text.find('{') {
        text = &text[found..];
        let begins = text[1..].trim_start().starts_with("\"apiVersion\"");
        let mut stream = serde_json::Deserializer::from_str(text).into_iter::<&RawValue>();
        match begins.then(|| stream.next()).flatten() {
            // What an object names, such as its owner, has a version too.
            Some(Ok(item)) => {
                if serde_json::from_str::<Value>(item.get()).is_ok_and(|item| item["metadata"].is_object()) {
                    json_object(seen, item, read);
                }
                text = &text[stream.byte_offset()..];
            }
            Some(Err(error)) => {
                let Some(rest) = left.checked_sub(read_until(text, &error)) else {
                    read.problem = Some(TOO_DAMAGED.into());
                    return;
                };
                (left, text) = (rest, &text[1..]);
            }
            None => text = &text[1..],
        }
    }
}

/// How many bytes of a text were read up to an error.
fn read_until(text: &str, error: &serde_json::Error) -> usize {
    let lines = text.split_inclusive('\n').take(error.line().saturating_sub(1));
    lines.map(str::len).sum::<usize>() + error.column()
}

/// Objects one after another; what is between them, such as logs, is passed over.
fn json(seen: &mut Observation, mut text: &str) -> Read {
    let mut read = Read::default();
    let mut left = MOST_ANEW * text.len();
    loop {
        let mut stream = serde_json::Deserializer::from_str(text).into_iter::<&RawValue>();
        let mut failed = None;
        for document in &mut stream {
            match document {
                Ok(document) => json_object(seen, document, &mut read),
                Err(error) => {
                    if error.is_eof() {
                        cut_list(seen, text.get(stream.byte_offset()..).unwrap_or(""), &mut read);
                        read.problem = Some(format!("it ends in the middle of an object: {error}"));
                        return read;
                    }
                    failed = Some(error);
                    break;
                }
            }
        }
        let Some(error) = failed else { return read };
        let Some(anew) = left.checked_sub(read_until(text, &error)) else {
            read.problem = Some(TOO_DAMAGED.into());
            return read;
        };
        left = anew;
        let rest = text.get(stream.byte_offset()..).unwrap_or("");
        if rest.trim_start().starts_with([',', ']', '}']) {
            loose_items(seen, rest, &mut read);
            return read;
        }
        let Some(next) = rest.find("\n{") else {
            if read.objects == 0 {
                read.problem = Some("it is not JSON".into());
            }
            return read;
        };
        text = &rest[next + 1..];
    }
}

/// The whole items of a list that was cut off.
fn cut_list(seen: &mut Observation, text: &str, read: &mut Read) {
    let Some((_, rest)) = text.split_once("\"items\"") else { return };
    let Some((_, mut rest)) = rest.split_once('[') else { return };
    loop {
        rest = rest.trim_start_matches([',', ' ', '\t', '\r', '\n']);
        let mut stream = serde_json::Deserializer::from_str(rest).into_iter::<&RawValue>();
        let Some(Ok(item)) = stream.next() else { return };
        json_object(seen, item, read);
        rest = &rest[stream.byte_offset()..];
    }
}

fn json_object(seen: &mut Observation, document: &RawValue, read: &mut Read) {
    let Ok(head) = serde_json::from_str::<Head<'_>>(document.get()) else { return };
    let Some(kind) = head.kind else { return };
    let Some(items) = head.items else {
        read.objects += 1;
        if is_wanted(&kind, head.api_version.as_deref())
            && let Ok(value) = serde_json::from_str(document.get())
        {
            keep(seen, value, read);
        }
        return;
    };
    if !items.get().starts_with('[') {
        return;
    }
    let of = kind.strip_suffix("List").unwrap_or("");
    let of_list = head.api_version;
    if is_wanted(of, of_list.as_deref()) {
        seen.look_at(of);
    }
    let each = Each(|item: &RawValue| {
        read.objects += 1;
        let Ok(head) = serde_json::from_str::<Head<'_>>(item.get()) else { return };
        let kind = head.kind.as_deref().unwrap_or(of);
        let version = head.api_version.as_deref().or(of_list.as_deref().filter(|_| kind == of));
        if is_wanted(kind, version)
            && let Ok(value) = serde_json::from_str(item.get())
        {
            keep(seen, named(value, kind, version), read);
        }
    });
    // It is a list, and was read as JSON before.
    let _ = serde_json::Deserializer::from_str(items.get()).deserialize_seq(each);
}

/// Lists of one kind leave the kind of their items out.
fn named(mut value: Value, kind: &str, api_version: Option<&str>) -> Value {
    if let Some(fields) = value.as_object_mut() {
        fields.entry("kind").or_insert_with(|| kind.into());
        let version = api_version.unwrap_or(match kind {
            "Pod" | "Event" | "ConfigMap" | "Namespace" | "ServiceAccount" | "Node" => "v1",
            "Deployment" => "apps/v1",
            "Job" => "batch/v1",
            "OperatorGroup" => "operators.coreos.com/v1",
            "OperatorCondition" => "operators.coreos.com/v2",
            "CustomResourceDefinition" => "apiextensions.k8s.io/v1",
            _ => "operators.coreos.com/v1alpha1",
        });
        fields.entry("apiVersion").or_insert_with(|| version.into());
    }
    value
}

fn yaml(seen: &mut Observation, text: &str) -> Read {
    let mut read = Read::default();
    let mut begins_late = begins_inside(text);
    let mut text = text;
    if begins_late {
        // The parser would take the rest of the first object for the whole document.
        let first = document_at(text, 0);
        whole_items(first).into_iter().for_each(|item| loose_item(seen, item, &mut read));
        text = &text[first.len()..];
    }
    for (number, document) in yaml::documents(text).enumerate() {
        let document = match document {
            Ok(document) => document,
            Err(error) => {
                let known = read.objects;
                let damaged = document_at(text, error.span.start as usize);
                whole_items(damaged).into_iter().for_each(|item| loose_item(seen, item, &mut read));
                read.problem = Some(match read.objects > known {
                    true if !damaged.lines().any(is_list) => WITHOUT_BEGINNING.into(),
                    true => format!("it is cut off or damaged, and is read as far as it goes: {error}"),
                    false => error.to_string(),
                });
                continue;
            }
        };
        let root = &document.root;
        let items = root.get("items").and_then(yaml::Node::as_sequence);
        let Some(kind) = root.get("kind").and_then(yaml::Node::as_str) else {
            // kubectl writes the kind of a list after its items.
            if let Some((_, whole)) = items.and_then(<[_]>::split_last) {
                whole.iter().for_each(|item| yaml_item(seen, item, ("", None), &mut read));
                read.problem = Some("it ends in the middle of a list".into());
            }
            begins_late |= number == 0;
            for item in root.as_sequence().into_iter().flatten() {
                yaml_item(seen, item, ("", None), &mut read);
            }
            continue;
        };
        let of_list = root.get("apiVersion").and_then(yaml::Node::as_str);
        let Some(items) = items else {
            read.objects += 1;
            begins_late |= number == 0 && kind == "List" && root.get("items").is_none();
            if is_wanted(kind, of_list) {
                keep(seen, root.to_json(), &mut read);
            }
            continue;
        };
        let of = kind.strip_suffix("List").unwrap_or("");
        if is_wanted(of, of_list) {
            seen.look_at(of);
        }
        items.iter().for_each(|item| yaml_item(seen, item, (of, of_list), &mut read));
    }
    // Other files have no kind either, but no objects after that.
    if begins_late && read.objects > 0 {
        read.problem = Some(WITHOUT_BEGINNING.into());
    }
    read
}

/// Whether a text begins in the middle of a document: what follows is indented less.
fn begins_inside(text: &str) -> bool {
    let is_content = |line: &&str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
    let indent = |line: &str| line.len() - line.trim_start_matches(' ').len();
    let mut lines = text.lines().take_while(|line| !line.starts_with("---")).filter(is_content).map(indent);
    lines.next().is_some_and(|first| first > 0 && lines.any(|other| other < first))
}

/// An item of a list of a kind and version.
fn yaml_item(
    seen: &mut Observation,
    item: &yaml::Node<'_>,
    (of, of_list): (&str, Option<&str>),
    read: &mut Read,
) {
    read.objects += 1;
    let kind = item.get("kind").and_then(yaml::Node::as_str).unwrap_or(of);
    let version = item.get("apiVersion").and_then(yaml::Node::as_str);
    let version = version.or(of_list.filter(|_| kind == of));
    if is_wanted(kind, version) {
        keep(seen, named(item.to_json(), kind, version), read);
    }
}

/// An item that stands alone, with its dash.
fn loose_item(seen: &mut Observation, item: &str, read: &mut Read) {
    let item = item.replacen('-', " ", 1);
    if let Some(Ok(document)) = yaml::documents(&item).next() {
        yaml_item(seen, &document.root, ("", None), read);
    }
}

/// The document of a text around a byte.
fn document_at(text: &str, at: usize) -> &str {
    let (before, after) = text.split_at(text.floor_char_boundary(at));
    let start = before.rfind("\n---").map_or(0, |found| found + 1);
    let end = after.find("\n---").map_or(text.len(), |found| before.len() + found + 1);
    &text[start..end]
}

/// Whether the items of a list follow a line.
fn is_list(line: &str) -> bool {
    line.trim_end() == "items:"
}

/// The items of a list that were written whole: what follows them has begun. They are indented alike, and all in them more.
fn whole_items(document: &str) -> Vec<&str> {
    let mut whole = Vec::new();
    let lines = || {
        document.split_inclusive('\n').scan(0, |end, line| {
            *end += line.len();
            Some((*end - line.len(), line))
        })
    };
    let indent = |line: &str| line.len() - line.trim_start_matches(' ').len();
    let list = lines().find(|(_, line)| is_list(line)).map(|(start, line)| start + line.len());
    // Where the beginning of the list is missing, its items are indented least.
    let loose = || lines().filter(|(_, line)| line.trim_start().starts_with("- apiVersion:"));
    let Some(from) = list.or_else(|| loose().min_by_key(|(_, line)| indent(line)).map(|(start, _)| start))
    else {
        return whole;
    };
    let mut begun: Option<(usize, usize)> = None;
    for (start, line) in lines().filter(|(start, _)| *start >= from) {
        let content = line.trim_start_matches(' ');
        let indent = line.len() - content.len();
        let is_item = content.starts_with("- ") && begun.is_none_or(|(_, known)| known == indent);
        let is_over = indent == 0 && !is_item && !content.trim().is_empty() && !content.starts_with('#');
        if is_item || is_over {
            whole.extend(begun.map(|(from, _)| &document[from..start]));
            begun = Some((start, indent));
        }
        if is_over {
            break;
        }
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(seen: &Observation, kind: &str) -> Vec<String> {
        seen.of(kind).map(|one| one.name().to_owned()).collect()
    }

    #[test]
    fn lists_streams_and_single_objects_are_read() {
        for text in [
            r#"{"kind":"List","apiVersion":"v1","items":[{"kind":"Pod","metadata":{"name":"a"}},{"kind":"Secret","metadata":{"name":"s"}}]}"#,
            r#"{"kind":"PodList","apiVersion":"v1","items":[{"metadata":{"name":"a"}},{"kind":"Lease","metadata":{"name":"l"}}]}"#,
            "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\"}}\n==== START logs for container x\n{not json\n==== END logs\n{\"kind\":\"Lease\",\"metadata\":{\"name\":\"l\"}}",
            "kind: Pod\nmetadata: {name: a}\n---\nkind: Lease\nmetadata: {name: l}\n",
            "apiVersion: v1\nkind: List\nitems:\n- kind: Pod\n  metadata: {name: a}\n- kind: Lease\n  metadata: {name: l}\n",
        ] {
            let mut seen = Observation::new();
            let found = read(&mut seen, text);
            assert_eq!((found.objects, found.problem), (2, None), "{text}");
            assert_eq!(names(&seen, "Pod"), ["a"], "{text}");
            assert_eq!(seen.len(), 1, "{text}");
        }
    }

    #[test]
    fn half_a_text_is_read_as_far_as_it_goes() {
        let mut seen = Observation::new();
        let found =
            read(&mut seen, "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\"}}\n{\"kind\":\"Pod\",\"meta");
        assert_eq!(found.objects, 1);
        assert!(found.problem.unwrap().contains("in the middle"));
        assert_eq!(names(&seen, "Pod"), ["a"]);
        // So are the whole items of half a list.
        let mut seen = Observation::new();
        let list = r#"{"kind":"List","items":[{"kind":"Pod","metadata":{"name":"a"}}, {"kind":"Pod","metadata":{"name":"b"}},{"kind":"Po"#;
        assert!(read(&mut seen, list).problem.is_some());
        assert_eq!(names(&seen, "Pod"), ["a", "b"]);
        assert!(!seen.looked_at("Subscription"));
    }

    #[test]
    fn the_whole_items_of_a_cut_or_damaged_yaml_list_are_read() {
        let item = |name: &str| {
            format!(
                "- apiVersion: v1\n  kind: Pod\n  metadata:\n    name: {name}\n  status:\n    message: 'it: is\n\n      so'\n    list:\n    - x: |\n        - y\n"
            )
        };
        let text = format!("apiVersion: v1\nitems:\n{}{}{}kind: List\n", item("a"), item("b"), item("c"));
        let all = ["a", "b", "c"];
        for start in ["", "kind: Lease\nmetadata: {name: l}\n---\n"] {
            for cut in 1..text.find("kind: List").unwrap() {
                let mut seen = Observation::new();
                let found = read(&mut seen, &format!("{start}{}", &text[..cut]));
                let begun = text[..cut].matches("\n- ").count();
                let names = names(&seen, "Pod");
                assert_eq!(names, all[..names.len()], "{cut}");
                assert!(names.len() + 1 >= begun && names.len() <= begun, "{cut}: {names:?}");
                assert!(begun == 0 || found.problem.is_some(), "{cut}");
            }
        }
        // A broken item does not take the others with it.
        let mut seen = Observation::new();
        let broken = text.replace("name: b", "name: \"b");
        assert!(read(&mut seen, &broken).problem.unwrap().contains("as far as it goes"));
        assert_eq!(names(&seen, "Pod"), ["a", "c"]);
    }

    #[test]
    fn a_text_without_its_beginning_is_read_from_there_and_says_so() {
        let item = |name: &str| {
            serde_json::json!({
                "apiVersion": "v1", "kind": "Pod",
                "metadata": {"name": name, "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r"}]},
                "spec": {"containers": [{"name": "x", "image": "i"}]},
            })
        };
        let all = ["a", "b", "c"];
        let items = all.map(item);
        let list = serde_json::json!({"apiVersion": "v1", "items": items, "kind": "List"});
        let yaml = |value: &serde_json::Value| yaml::write::to_string(value).unwrap();
        let stream = items.each_ref().map(yaml).join("---\n");
        let pretty = serde_json::to_string_pretty(&list).unwrap();
        let lines = items.each_ref().map(|item| serde_json::to_string_pretty(item).unwrap()).join("\n");
        for text in [pretty, lines, list.to_string(), yaml(&list), stream] {
            let mut counts = [0; 4];
            for cut in 1..text.len() {
                let rest = &text[cut..];
                let mut seen = Observation::new();
                let found = read(&mut seen, rest);
                let names = names(&seen, "Pod");
                assert_eq!(names, all[3 - names.len()..], "{rest}: {found:?}");
                // Without an object there is nothing that could be taken for all. An object that begins in time is whole.
                let is_told = found.problem.is_some() || found.objects == 0;
                let start = rest.trim_start().trim_start_matches('-').trim_start();
                let first = start.lines().next().unwrap_or_default();
                let is_whole = "apiVersion: v1".ends_with(first)
                    || first == "kind: Pod"
                    || start.starts_with("{\n  \"apiVersion\": \"v1\",");
                assert!(is_told || is_whole || names.len() == 3, "{rest}");
                counts[names.len()] += 1;
            }
            assert!(counts[1] > 0 && counts[2] > 0, "{counts:?}: {text}");
        }
    }

    #[test]
    fn a_text_with_very_many_damages_is_not_read_over_and_over() {
        let pod = "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\"}}\n";
        for text in [
            format!("{pod}{}x", "{\"a\":\n".repeat(60_000)),
            format!("x{}{pod}", "{\"apiVersion\":".repeat(60_000)),
        ] {
            let found = read(&mut Observation::new(), &text);
            assert_eq!(found.problem.as_deref(), Some(TOO_DAMAGED));
        }
    }

    #[test]
    fn kinds_of_other_groups_are_passed_over_and_other_versions_are_read() {
        let mut seen = Observation::new();
        for version in ["messaging.knative.dev/v1", "apps.open-cluster-management.io/v1"] {
            read(
                &mut seen,
                &format!("apiVersion: {version}\nkind: Subscription\nmetadata: {{name: theirs}}"),
            );
        }
        read(
            &mut seen,
            r#"{"kind":"SubscriptionList","apiVersion":"messaging.knative.dev/v1","items":[{"metadata":{"name":"a"}}]}"#,
        );
        assert!(seen.is_empty() && !seen.looked_at("Subscription"));
        read(
            &mut seen,
            "apiVersion: operators.coreos.com/v1alpha2\nkind: OperatorGroup\nmetadata: {name: older}",
        );
        assert_eq!(names(&seen, "OperatorGroup"), ["older"]);
    }

    /// Repairs are commands with names in them.
    #[test]
    fn names_that_a_shell_would_run_are_left_out() {
        let mut seen = Observation::new();
        for name in ["a$(touch x)", "a; id", "a`id`", "a b", "a\u{202e}b"] {
            read(&mut seen, &serde_json::json!({"kind": "Pod", "metadata": {"name": name}}).to_string());
        }
        assert_eq!(names(&seen, "Pod"), [""; 0]);
        assert_eq!(seen.not_seen().iter().filter(|one| one.why.contains("no such name")).count(), 5);
    }

    #[test]
    fn an_empty_list_says_that_there_is_none() {
        let mut seen = Observation::new();
        read(&mut seen, r#"{"kind":"OperatorGroupList","apiVersion":"operators.coreos.com/v1","items":[]}"#);
        assert!(seen.looked_at("OperatorGroup") && !seen.looked_at("Pod"));
    }
}
