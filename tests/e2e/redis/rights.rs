//! What the operator asked the API server for, beside what it may: nothing was refused, and no right is for nothing.
//!
//! The cluster from parts notes what service accounts ask for (docs/cluster.md); other clusters keep that to themselves.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use libtest_mimic::Failed;
use serde_json::Value;

use super::operator::{OPERATOR, Operator};

/// Rights that no test makes the operator use: group, resource, verb, and what they are for.
const NOT_SEEN: &[(&str, &str, &str, &str)] = &[(
    "cache.example.com",
    "redisclusters/finalizers",
    "update",
    "asked for by an admission plugin, OwnerReferencesPermissionEnforcement, which this cluster does not run",
)];

/// One thing that may be done: group, resource with its subresource, verb.
type Right = (String, String, String);

/// What the operator did since it was installed, compared with its roles: the requests that were refused, and the rights that
/// were not used.
pub(super) fn compared(operator: &Operator, cluster_from_parts: &Path) -> Result<Vec<String>, Failed> {
    let installed = operator.kubectl(&[
        "get",
        "namespace",
        OPERATOR,
        "--output=jsonpath={.metadata.creationTimestamp}",
    ])?;
    let (used, mut wrong) = requests(cluster_from_parts, installed.trim_end_matches('Z'))?;
    let given = given(operator)?;
    for (group, resource, verb) in given.difference(&used.keys().cloned().collect()) {
        let known = NOT_SEEN.iter().any(|row| row.0 == *group && row.1 == *resource && row.2 == *verb);
        if !known {
            wrong.push(format!("it may {verb} {resource} of `{group}`, and never did"));
        }
    }
    Ok(wrong)
}

/// What its two roles allow.
fn given(operator: &Operator) -> Result<BTreeSet<Right>, Failed> {
    let mut given = BTreeSet::new();
    for role in ["clusterrole/redis-operator", "role/redis-operator"] {
        let role = operator.json(role)?;
        let words = |rule: &Value, field: &str| -> Vec<String> {
            rule[field]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect()
        };
        for rule in role["rules"].as_array().into_iter().flatten() {
            for group in words(rule, "apiGroups") {
                for resource in words(rule, "resources") {
                    let verbs = words(rule, "verbs").into_iter();
                    given.extend(verbs.map(|verb| (group.clone(), resource.clone(), verb)));
                }
            }
        }
    }
    Ok(given)
}

/// How often each right was used since a time, and the requests that were refused for want of one.
fn requests(directory: &Path, since: &str) -> Result<(BTreeMap<Right, usize>, Vec<String>), Failed> {
    let account = format!("system:serviceaccount:{OPERATOR}:redis-operator");
    let mut used = BTreeMap::new();
    let mut refused = BTreeSet::new();
    // The API server starts a new file at 100 MB, and gives the one before a name with the time.
    for file in fs::read_dir(directory)? {
        let file = file?;
        let name = file.file_name().to_string_lossy().into_owned();
        if !(name.starts_with("audit") && name.ends_with(".log")) {
            continue;
        }
        for line in fs::read_to_string(file.path())?.lines().filter(|line| line.contains(&account)) {
            // The last line may be half written.
            let Ok(event) = serde_json::from_str::<Value>(line) else { continue };
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let object = &event["objectRef"];
            let ours = event["user"]["username"] == account && object.is_object();
            if !ours || text(&event["requestReceivedTimestamp"]).as_str() < since {
                continue;
            }
            let mut resource = text(&object["resource"]);
            if let Some(subresource) = object["subresource"].as_str() {
                resource = format!("{resource}/{subresource}");
            }
            let (group, verb) = (text(&object["apiGroup"]), text(&event["verb"]));
            if event["annotations"]["authorization.k8s.io/decision"] == "forbid" {
                refused.insert(format!("it was not allowed to {verb} {resource} of `{group}`"));
                continue;
            }
            // A server-side apply of an object that was not there needs both rights.
            if verb == "patch" && event["responseStatus"]["code"] == 201 {
                *used.entry((group.clone(), resource.clone(), "create".into())).or_default() += 1;
            }
            *used.entry((group, resource, verb)).or_default() += 1;
        }
    }
    Ok((used, refused.into_iter().collect()))
}
