//! OperatorGroups: OLM resolves nothing in a namespace that does not have exactly one, and says so only in its log.

use serde_json::{Value, json};

use super::doc::Doc;
use super::observation::Observation;
use super::{Cause, Repair, codes, deletions};
use crate::sentence::first_of;
use crate::shell::{Command, command};

/// How long the objects of one `kubectl apply` may be apart.
const TOGETHER: i64 = 10_000;
/// How many of a namespace's groups are offered to be kept.
const CHOICES: usize = 4;

/// What is wrong with the OperatorGroups of a Subscription's namespace.
pub(super) fn fault(seen: &Observation, subscription: Doc<'_>) -> Option<Cause> {
    if !seen.looked_at("OperatorGroup") {
        return None;
    }
    let namespace = subscription.namespace();
    let groups: Vec<Doc<'_>> =
        seen.within("OperatorGroup", namespace).filter(|group| !group.is_going()).collect();
    match &groups[..] {
        [] if seen.age(subscription.created()) < TOGETHER => None,
        [] => {
            let mut going = seen.within("OperatorGroup", namespace);
            let blocked = going.find_map(|group| deletions::blocked(seen, group));
            blocked.or_else(|| Some(none(seen, subscription)))
        }
        [group] => account(seen, *group),
        several => Some(too_many(seen, namespace, several)),
    }
}

/// More than one OperatorGroup in a namespace.
pub(super) fn several(seen: &Observation, namespace: &str) -> Option<Cause> {
    let groups: Vec<Doc<'_>> =
        seen.within("OperatorGroup", namespace).filter(|group| !group.is_going()).collect();
    (groups.len() > 1).then(|| too_many(seen, namespace, &groups))
}

/// No OperatorGroup in the namespace of a Subscription or ClusterServiceVersion.
pub(super) fn none(seen: &Observation, concerned: Doc<'_>) -> Cause {
    let namespace = concerned.namespace();
    let text = format!(
        "the namespace `{namespace}` has no OperatorGroup, so OLM installs and upgrades nothing there (found 0 operatorGroups, expected 1)"
    );
    let object = super::ObjectRef {
        api_version: "v1".into(),
        kind: "Namespace".into(),
        name: namespace.to_owned(),
        ..Default::default()
    };
    let mut cause = Cause::new(&codes::NO_OPERATOR_GROUP, object, text).finally(true).shown(
        concerned,
        "metadata.namespace",
        format!("no OperatorGroup in the namespace `{namespace}`"),
        concerned.created(),
    );
    for csv in seen.within("ClusterServiceVersion", namespace) {
        if csv.text("/status/reason") == "NoOperatorGroup" {
            let since = csv.moment("/status/lastTransitionTime");
            cause = cause.shown(csv, "status.message", csv.text("/status/message"), since);
            cause
                .consequences
                .push(format!("clusterserviceversion/{} is Failed (NoOperatorGroup)", csv.name()));
        }
    }
    cause
        .safe_repair(
            create(namespace, &json!({"targetNamespaces": [namespace]})),
            "creates an OperatorGroup only for this namespace; OLM continues within 20 seconds, and running pods are not affected",
        )
        .repair(
            create(namespace, &json!({})),
            "instead, for an operator that watches all namespaces",
        )
}

/// Creates an OperatorGroup. One line: what is shown is indented, and the end of a here-document must not be.
fn create(namespace: &str, spec: &Value) -> Command {
    let group = json!({
        "apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup",
        "metadata": {"name": namespace, "namespace": namespace}, "spec": spec,
    });
    command!("echo {} | kubectl create -f -", group)
}

fn too_many(seen: &Observation, namespace: &str, groups: &[Doc<'_>]) -> Cause {
    let names: Vec<&str> = groups.iter().map(|group| group.name()).collect();
    let text = format!(
        "the namespace `{namespace}` has {count} OperatorGroups: {}, so OLM installs and upgrades nothing there (found {count} operatorGroups, expected 1)",
        some(&names),
        count = groups.len(),
    );
    // The newest is the one too many.
    let mut newest = groups.to_vec();
    newest.sort_by_key(|group| (std::cmp::Reverse(group.created()), group.name()));
    let mut cause = Cause::new(&codes::SEVERAL_OPERATOR_GROUPS, newest[0].reference(), text).finally(true);
    for group in groups {
        cause = match group.holding("MultipleOperatorGroup") {
            Some(found) => cause.shown(
                *group,
                "status.conditions[MultipleOperatorGroup].message",
                found.message,
                found.since,
            ),
            None => cause.shown(*group, "metadata.name", group.name(), group.created()),
        };
    }
    for csv in seen.within("ClusterServiceVersion", namespace) {
        if csv.text("/status/reason") == "TooManyOperatorGroups" {
            cause = cause.shown(
                csv,
                "status.message",
                csv.text("/status/message"),
                csv.moment("/status/lastTransitionTime"),
            );
            cause
                .consequences
                .push(format!("clusterserviceversion/{} is Failed (TooManyOperatorGroups)", csv.name()));
        }
    }
    newest.iter().rev().take(CHOICES).fold(cause, |cause, kept| cause.instead(keep(*kept, &newest)))
}

/// The most names in a sentence or a command.
const MOST_NAMED: usize = 20;

/// Names in a sentence, the first ones of many.
fn some(names: &[&str]) -> String {
    first_of(&names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>(), MOST_NAMED)
}

/// Deletes all groups but one; of very many, the first ones.
fn keep(kept: Doc<'_>, groups: &[Doc<'_>]) -> Repair {
    let others: Vec<&str> =
        groups.iter().map(|group| group.name()).filter(|name| *name != kept.name()).collect();
    let targets = targets(kept);
    let watched =
        if targets.is_empty() || targets == [""] { "all namespaces".to_owned() } else { targets.join(", ") };
    let first = &others[..others.len().min(MOST_NAMED)];
    let then = match others.len() - first.len() {
        0 => "OLM continues within 10 seconds".to_owned(),
        more => format!("diagnose it again then, for the {more} others"),
    };
    Repair::of(
        command!("kubectl -n {} delete operatorgroup.operators.coreos.com", kept.namespace()).words(first),
        format!(
            "deletes {} and keeps the OperatorGroup `{}`, which is for {watched}: {then}",
            some(first),
            kept.name()
        ),
    )
}

/// The ServiceAccount that a group installs with.
fn account(seen: &Observation, group: Doc<'_>) -> Option<Cause> {
    let found = group.conditions().find(|one| one.is_true && one.reason == "ServiceAccountNotFound")?;
    let name = group.text("/spec/serviceAccountName");
    let namespace = group.namespace();
    // The condition is minutes behind.
    if name.is_empty() || seen.get("ServiceAccount", namespace, name).is_some() {
        return None;
    }
    let text = format!(
        "the OperatorGroup `{}` installs as the ServiceAccount `{name}`, which is not found in the namespace `{namespace}`",
        group.name()
    );
    let field = "status.conditions[OperatorGroupServiceAccount].message";
    let mut cause = Cause::new(&codes::INSTALLER_ACCOUNT_MISSING, group.reference(), text).shown(
        group,
        field,
        found.message,
        found.since,
    );
    for plan in seen.within("InstallPlan", namespace) {
        let held =
            plan.condition("Installed").filter(|one| !one.is_true && one.reason == "InstallCheckFailed");
        if let Some(held) = held {
            cause = cause.shown(plan, "status.conditions[Installed].message", held.message, held.since);
            cause.consequences.push(format!("installplan/{} waits", plan.name()));
        }
    }
    Some(
        cause
            .safe_repair(
                command!("kubectl -n {} create serviceaccount {}", namespace, name),
                "creates the account; OLM notices within about three minutes",
            )
            .repair(
                command!("kubectl -n {} create rolebinding {} --clusterrole cluster-admin --serviceaccount {}:{}", namespace, name, namespace, name),
                "lets the account install anything in this namespace; bind a narrower role if you have one",
            )
            .repair(
                command!("kubectl -n {} patch operatorgroup.operators.coreos.com {} --type json -p '[{\"op\":\"remove\",\"path\":\"/spec/serviceAccountName\"}]'", namespace, group.name()),
                "instead, installs with the rights of OLM itself",
            ),
    )
}

/// The namespaces that a group is about; one empty name means all.
pub(super) fn targets(group: Doc<'_>) -> Vec<&str> {
    let texts = |path: &str| group.list(path).filter_map(serde_json::Value::as_str).collect::<Vec<_>>();
    let (found, wanted) = (texts("/status/namespaces"), texts("/spec/targetNamespaces"));
    match (found.is_empty(), wanted.is_empty()) {
        (_, false) => wanted,
        (false, true) => found,
        (true, true) if group.0.pointer("/spec/selector").is_none() => vec![""],
        (true, true) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_works_where_it_is_indented() {
        let command = create("redis", &json!({"targetNamespaces": ["redis"]})).to_string();
        assert!(command.starts_with("echo '{") && command.ends_with("}' | kubectl create -f -"), "{command}");
        assert!(!command.contains('\n'));
    }
}
