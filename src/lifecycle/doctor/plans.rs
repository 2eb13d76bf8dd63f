//! InstallPlans. Their first step creates the ClusterServiceVersion, so one that fails later has already begun an upgrade; and what
//! failed stands in its `status.message`, nowhere else.

use super::codes::{self, Code};
use super::doc::Doc;
use super::lean::LAST_APPLIED;
use super::observation::Observation;
use super::pods::{self, shorten};
use super::relations::left_behind;
use super::{Cause, DELETES, Repair, refusals, versions};
use crate::lifecycle::api::label;
use crate::sentence::Sentence;
use crate::shell::{Command, command};

/// How long an approval may take that needs nobody.
const APPROVING: i64 = 3_000;

/// The newest plan of a Subscription: the one that carries its version, or that its status names.
pub(super) fn of<'o>(seen: &'o Observation, subscription: Doc<'o>) -> Option<Doc<'o>> {
    let version = subscription.text("/status/currentCSV");
    let named = subscription.text("/status/installPlanRef/name");
    let all = seen.within("InstallPlan", subscription.namespace());
    let own = all.filter(|plan| plan.name() == named || !version.is_empty() && carries(*plan, version));
    own.max_by_key(|plan| (plan.number("/spec/generation"), plan.created(), plan.name()))
}

/// Whether a plan installs a version.
pub(super) fn carries(plan: Doc<'_>, csv: &str) -> bool {
    carried(plan).any(|name| name == csv)
}

/// The versions that a plan installs.
pub(super) fn carried<'o>(plan: Doc<'o>) -> impl Iterator<Item = &'o str> {
    plan.list("/spec/clusterServiceVersionNames").filter_map(serde_json::Value::as_str)
}

/// Whether nothing more comes of a plan.
pub(super) fn is_over(plan: Doc<'_>) -> bool {
    matches!(plan.text("/status/phase"), "Complete" | "Failed")
}

/// What a plan waits for, or why it fails.
pub(super) fn fault(seen: &Observation, plan: Doc<'_>) -> Option<Cause> {
    match plan.text("/status/phase") {
        "RequiresApproval" if plan.0.pointer("/spec/approved") != Some(&true.into()) => {
            // What approves plans automatically does so at once.
            (seen.age(plan.created()) >= APPROVING).then(|| unless_left(seen, plan, approval(seen, plan)))
        }
        "Failed" => Some(unserved(seen, plan).unwrap_or_else(|| failed(seen, plan))),
        "Installing" if !error(plan).1.is_empty() => {
            Some(unserved(seen, plan).unwrap_or_else(|| failed(seen, plan)))
        }
        _ => None,
    }
}

/// What a plan failed with, without OLM's words around it, and the field that says so.
fn error(plan: Doc<'_>) -> (&'static str, &str) {
    const MESSAGE: &str = "status.message";
    let message = plan.text("/status/message");
    let is_failed = plan.text("/status/phase") == "Failed";
    match message.strip_prefix("retrying execution due to error: ") {
        Some(error) => (MESSAGE, error),
        None if !is_failed => (MESSAGE, ""),
        None if !message.is_empty() => (MESSAGE, message),
        // What cannot be unpacked fails the plan of an older OLM, and only the condition says why.
        None => match plan.condition("Installed").filter(|found| !found.is_true) {
            Some(found) => ("status.conditions[Installed].message", found.message),
            None => (MESSAGE, ""),
        },
    }
}

fn approval(seen: &Observation, plan: Doc<'_>) -> Cause {
    let (namespace, name) = (plan.namespace(), plan.name());
    let csvs: Vec<String> = plan
        .list("/spec/clusterServiceVersionNames")
        .filter_map(|name| name.as_str())
        .map(|name| format!("`{name}`"))
        .collect();
    let subscriptions: Vec<Doc<'_>> = seen.within("Subscription", namespace).collect();
    let manual: Vec<&str> = subscriptions
        .iter()
        .filter(|one| one.text("/spec/installPlanApproval") == "Manual")
        .map(|one| one.name())
        .collect();
    let why = match manual.len() < subscriptions.len() && !manual.is_empty() {
        true => format!(", because the Subscription `{}` of this namespace is Manual", manual.join("`, `")),
        false => String::new(),
    };
    let text = format!(
        "installplan/{name} in the namespace `{namespace}` waits for approval (RequiresApproval) to install {}{why}",
        csvs.join(" and ")
    );
    let is_for = |one: &&Doc<'_>| csvs.contains(&format!("`{}`", one.text("/status/currentCSV")));
    let own = subscriptions.iter().find(is_for).or(subscriptions.first()).map(|one| one.name());
    let mut cause = Cause::new(&codes::APPROVAL_REQUIRED, plan.reference(), text)
        .shown(plan, "status.phase", "RequiresApproval", plan.created())
        .shown(plan, "spec.approved", "false", None);
    for one in &subscriptions {
        let pending = one.holding("InstallPlanPending").filter(|found| found.reason == "RequiresApproval");
        if let Some(found) = pending {
            cause =
                cause.shown(*one, "status.conditions[InstallPlanPending].reason", found.reason, found.since);
        }
    }
    let effects = [
        "lists what the plan creates and changes; nothing is changed by that".to_owned(),
        format!("approves the plan: it installs all of {}", csvs.join(" and ")),
    ];
    let [plan, approve] = match own {
        Some(own) => [
            command!("olmkit operator plan {} -n {}", own, namespace),
            command!("olmkit operator approve {} -n {}", own, namespace),
        ],
        // Our verbs go by the Subscription.
        None => [
            command!(
                "kubectl -n {} get installplan.operators.coreos.com {} -o \
                 'custom-columns=KIND:.status.plan[*].resource.kind,NAME:.status.plan[*].resource.name'",
                namespace,
                name
            ),
            command!(
                "kubectl -n {} patch installplan.operators.coreos.com {} --type merge -p '{\"spec\":{\"approved\":true}}'",
                namespace,
                name
            ),
        ],
    };
    let [lists, approves] = effects;
    cause.repair(plan, lists).repair(approve, approves)
}

/// Nobody is told to approve the version that a rollback has left.
fn unless_left(seen: &Observation, plan: Doc<'_>, mut cause: Cause) -> Cause {
    let mut all = seen.within("Subscription", plan.namespace());
    let left = all.find_map(|one| {
        let left = one.annotation(label::ROLLED_BACK_FROM);
        (!left.is_empty() && carries(plan, left)).then_some(left)
    });
    if let Some(left) = left {
        cause.unapprove(format!("`{left}` is the version that a rollback has left"), DELETES);
    }
    cause
}

/// The commands that retry a plan in place.
fn retry(plan: Doc<'_>) -> Command {
    command!(
        "kubectl -n {} patch installplan.operators.coreos.com {} --subresource status --type merge -p '{\"status\":{\"phase\":\"Installing\"}}'",
        plan.namespace(),
        plan.name()
    )
}

/// A CRD of a plan that is not served, since another one has its names: OLM calls that an error of the custom resources.
fn unserved(seen: &Observation, plan: Doc<'_>) -> Option<Cause> {
    let (field, message) = error(plan);
    let crd = refusals::crd(message).filter(|_| refusals::is_not_served(message))?;
    let cause = versions::names_taken(seen, &format!("installplan/{}", plan.name()), crd)?;
    let cause = cause.shown(plan, field, plan.text("/status/message"), None);
    Some(match is_over(plan) {
        true => cause.repair(
            retry(plan),
            "then, since the plan has failed for good: OLM runs it again at once, and running pods are not affected",
        ),
        false => cause,
    })
}

fn failed(seen: &Observation, plan: Doc<'_>) -> Cause {
    let (field, message) = error(plan);
    let name = plan.name();
    let csvs: Vec<&str> =
        plan.list("/spec/clusterServiceVersionNames").filter_map(|name| name.as_str()).collect();
    let unsupported =
        plan.list("/status/plan").map(Doc).find(|step| step.text("/status") == "UnsupportedResource");
    let since =
        plan.condition("Installed").and_then(|found| found.since).or(plan.moment("/status/startTime"));
    let code: &'static Code = match refusals::code(message) {
        _ if unsupported.is_some() => &codes::UNSUPPORTED_KIND,
        Some(code) => code,
        None if !is_unpacking(message) => &codes::PLAN_FAILED,
        None if pods::is_pull_reason(message) => &codes::BUNDLE_IMAGE_PULL,
        None => &codes::UNPACK_FAILED,
    };
    let what = format!("installplan/{name} cannot install `{}`", csvs.join("`, `"));
    let text = match unsupported {
        Some(step) => format!(
            "{what}: its bundle has the object {} `{}`, and OLM does not install objects of kind {} (UnsupportedResource): {message}",
            step.text("/resource/kind"),
            step.text("/resource/name"),
            step.text("/resource/kind"),
        ),
        None if message.is_empty() => format!("{what}, and OLM does not say why"),
        None => format!("{what}: {}", shorten(core(message))),
    };
    let is_over = is_over(plan);
    let mut cause = Cause::new(code, plan.reference(), text).finally(is_over).shown(
        plan,
        field,
        if field == "status.message" { plan.text("/status/message") } else { message },
        since,
    );
    if let Some(step) = unsupported {
        let resource =
            format!("{} {}: UnsupportedResource", step.text("/resource/kind"), step.text("/resource/name"));
        cause = cause.shown(plan, "status.plan[].status", resource, None);
    }
    for name in &csvs {
        if let Some(csv) = seen
            .get("ClusterServiceVersion", plan.namespace(), name)
            .filter(|csv| csv.text("/status/phase") != "Succeeded")
        {
            cause.consequences.push(format!(
                "clusterserviceversion/{name} is {} ({})",
                csv.text("/status/phase"),
                csv.text("/status/reason")
            ));
            if !csv.text("/spec/replaces").is_empty() {
                cause.consequences.push(format!(
                    "clusterserviceversion/{} is Replacing and runs on",
                    csv.text("/spec/replaces")
                ));
            }
        }
    }
    mend(seen, plan, code, message, cause)
}

/// Whether a plan of an older OLM failed because its bundle could not be unpacked.
fn is_unpacking(message: &str) -> bool {
    message.to_lowercase().contains("bundle unpacking failed")
}

/// The part of a message that names the cause.
fn core(message: &str) -> &str {
    // Before it stand the properties of the bundle, which may be long.
    let of_bundle = message.rfind(": configmap ").filter(|_| is_without_bundle(message)).map(|at| at + 2);
    of_bundle.or_else(|| message.find("conversion webhook for ")).map_or(message, |at| &message[at..])
}

/// Whether the ConfigMap that a plan's bundle was unpacked into is gone.
fn is_without_bundle(message: &str) -> bool {
    message.contains("unpacked bundle configmap")
        || message.contains("configmaps") && message.contains("not found")
}

/// The CRD that a plan cannot create or update: as its message names it, else as the cluster or the plan does.
fn crd_of<'o>(seen: &'o Observation, plan: Doc<'o>, message: &'o str) -> Option<&'o str> {
    let unconverted = refusals::unconverted(message);
    let is_unconverted = |crd: &Doc<'_>| {
        unconverted.is_some_and(|found| found == (crd.text("/spec/group"), crd.text("/spec/names/kind")))
    };
    let is_of_group = |name: &str| {
        unconverted.is_none_or(|(group, _)| name.split_once('.').is_some_and(|(_, of)| of == group))
    };
    let planned = || {
        let steps = plan.list("/status/plan").map(Doc);
        let crds = steps.filter(|step| step.text("/resource/kind") == "CustomResourceDefinition");
        let mut names = crds
            .map(|step| step.text("/resource/name"))
            .filter(|name| refusals::is_object_name(name) && is_of_group(name));
        // One of several would be a guess.
        names.next().filter(|_| names.next().is_none())
    };
    refusals::crd(message)
        .or_else(|| seen.of("CustomResourceDefinition").find(is_unconverted).map(Doc::name))
        .or_else(planned)
}

/// The repairs of a plan: its cause, then the plan.
fn mend(seen: &Observation, plan: Doc<'_>, code: &Code, message: &str, cause: Cause) -> Cause {
    let namespace = plan.namespace();
    let crd = crd_of(seen, plan, message);
    let again = "once the cause is gone: OLM runs the plan again at once, and running pods are not affected. Deleting the plan does not help, because its ClusterServiceVersion already exists";
    match code.name {
        "crd-invalidates-resources" => invalidated(crd, message, cause).safe_repair(retry(plan), again),
        "crd-stored-version" => stored(crd, message, cause).safe_repair(retry(plan), again),
        "unsupported-kind" => reinstall(seen, plan, cause.repair(
            "olmkit bundle validate bundle",
            "names objects that OLM does not install; remove them from the bundle in the directory `bundle`, and publish it as a new version",
        )),
        "required-api-missing" => cause
            .repair("kubectl api-resources", "lists the APIs of the cluster: install what serves the missing one")
            .safe_repair(retry(plan), again),
        "object-invalid" => reinstall(seen, plan, cause.repair(
            "olmkit bundle validate bundle --suite install",
            "names what Kubernetes refuses: correct it in the bundle in the directory `bundle`, and publish it as a new version",
        )),
        "webhook-unreachable" => {
            let webhook = refusals::webhook(message).unwrap_or("");
            webhook_repairs(seen, webhook, cause).safe_repair(retry(plan), again)
        }
        "conversion-webhook" => unconverted(crd, cause).safe_repair(retry(plan), again),
        "unpack-failed" | "bundle-image-pull" => {
            let mut all = seen.within("Subscription", namespace);
            let home = all.find(|one| one.text("/status/installPlanRef/name") == plan.name());
            let home = home.map_or(namespace, |one| one.text("/spec/sourceNamespace"));
            let cause = cause.repair(
                command!("kubectl -n {} get jobs,configmaps", home),
                "shows the unpack Job that failed: once its cause is gone, delete it and the ConfigMap of the same name. OLM never runs this InstallPlan again",
            );
            reinstall(seen, plan, cause)
        }
        "quota-exceeded" => cause
            .repair(command!("kubectl -n {} describe resourcequota", namespace), "shows what is used: raise the quota, or free what is not needed")
            .safe_repair(retry(plan), again),
        "api-service-down" => cause
            .repair(
                "kubectl get apiservices",
                "shows the API that does not answer in the column AVAILABLE: start the Service that answers for it, or delete the APIService if its operator is gone",
            )
            .safe_repair(retry(plan), again),
        "rights-missing" => cause
            .repair(
                command!("kubectl -n {} get operatorgroup.operators.coreos.com -o jsonpath='{.items[*].spec.serviceAccountName}'", namespace),
                "names the ServiceAccount that OLM installs with: give it the rights that the message names",
            )
            .safe_repair(retry(plan), again),
        _ if is_without_bundle(message) => cause.safe_repair(
            command!("kubectl -n {} delete installplan.operators.coreos.com {}", namespace, plan.name()),
            "deletes the plan, whose unpacked bundle is gone: OLM unpacks it again and creates a new plan; running pods are not affected",
        ),
        _ => cause.safe_repair(retry(plan), again),
    }
}

/// Custom resources that a new schema rejects.
fn invalidated(crd: Option<&str>, message: &str, cause: Cause) -> Cause {
    const EFFECT: &str =
        "correct the custom resource so that the new schema accepts it; the operator acts on the change";
    match (crd, refusals::custom_resource(message)) {
        (Some(crd), Some(("", name))) => cause.repair(command!("kubectl edit {} {}", crd, name), EFFECT),
        (Some(crd), Some((within, name))) => {
            cause.repair(command!("kubectl -n {} edit {} {}", within, crd, name), EFFECT)
        }
        (Some(crd), None) => cause.repair(
            command!("kubectl get {} -A", crd),
            "lists the custom resources: correct those that the message names",
        ),
        (None, _) => cause.repair(
            "kubectl get crds",
            "lists the CRDs: correct the custom resources of the one that the message names",
        ),
    }
}

/// A stored version that a new CRD drops.
fn stored(crd: Option<&str>, message: &str, cause: Cause) -> Cause {
    let version = stored_version(message).unwrap_or("the old version");
    let Some(crd) = crd else {
        return cause.repair(
            "kubectl get crds -o 'custom-columns=NAME:.metadata.name,STORED:.status.storedVersions'",
            format!("lists the stored versions of every CRD: rewrite the custom resources of the one that the message names, then remove `{version}` from its `status.storedVersions`"),
        );
    };
    cause
        .repair(
            command!("kubectl get {} -A -o json | kubectl replace -f -", crd),
            format!("rewrites every custom resource, so that none is stored as {version}: its storage version must be one that the new CRD keeps"),
        )
        .repair(
            command!("kubectl edit crd {} --subresource status", crd),
            format!("then remove `{version}` from `status.storedVersions`: data that is still stored as that version is lost"),
        )
}

/// A conversion webhook that does not answer.
fn unconverted(crd: Option<&str>, cause: Cause) -> Cause {
    match crd {
        Some(crd) => cause.repair(
            command!("kubectl get crd {} -o jsonpath='{.spec.conversion.webhook.clientConfig.service}'", crd),
            "names the Service that converts: its operator must run before objects of the CRD can be read",
        ),
        None => cause.repair(
            "kubectl get crds -o 'custom-columns=NAME:.metadata.name,SERVICE:.spec.conversion.webhook.clientConfig.service.name'",
            "names the Service that converts the objects of each CRD: its operator must run before they can be read",
        ),
    }
}

/// How to get by a webhook that does not answer.
pub(super) fn webhook_repairs(seen: &Observation, webhook: &str, cause: Cause) -> Cause {
    let kinds = ["ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"];
    let found = kinds
        .iter()
        .flat_map(|kind| seen.of(kind))
        .find(|one| one.list("/webhooks").any(|found| found["name"] == webhook));
    match found {
        Some(found) => {
            let hook = found.list("/webhooks").find(|one| one["name"] == webhook).map(Doc);
            let service = |field: &str| hook.map_or("", |hook| hook.text(&format!("/clientConfig/service/{field}")));
            let mut cause = cause.shown(found, "webhooks[].name", webhook, found.created());
            if !service("name").is_empty() {
                cause = cause.repair(
                    command!("kubectl -n {} get endpointslices -l kubernetes.io/service-name={}", service("namespace"), service("name")),
                    "shows whether the operator that answers for the webhook runs: starting it again is the repair that costs nothing",
                );
            }
            cause.repair(
                command!("kubectl delete {} {}", found.kind().to_lowercase(), found.name()),
                "instead, if its operator is gone: objects are no longer checked or changed by it",
            )
        }
        None => cause.repair(
            "kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations",
            format!("find the configuration of `{webhook}`: start the operator that answers for it, or delete the configuration if that operator is gone"),
        ),
    }
}

/// The repair of last resort: everything of the operator but its CRDs and custom resources is created again.
pub(super) fn reinstall(seen: &Observation, plan: Doc<'_>, cause: Cause) -> Cause {
    let namespace = plan.namespace();
    let owner = plan
        .owners("Subscription")
        .find_map(|name| seen.get("Subscription", namespace, name))
        .or_else(|| {
            let mut all = seen.within("Subscription", namespace);
            all.find(|one| one.text("/status/installPlanRef/name") == plan.name())
        })
        .filter(|one| {
            plan.list("/spec/clusterServiceVersionNames").any(|name| name == one.text("/status/currentCSV"))
        });
    let mut cause = cause;
    cause.repair.extend(owner.map(|subscription| reinstallation(seen, subscription)));
    cause
}

/// As [`reinstall`], of a Subscription, instead of the repairs that a cause has.
pub(super) fn reinstall_of(seen: &Observation, subscription: Doc<'_>, cause: Cause) -> Cause {
    cause.instead(reinstallation(seen, subscription))
}

/// Deletes a Subscription with its versions, and creates it again.
fn reinstallation(seen: &Observation, subscription: Doc<'_>) -> Repair {
    let (namespace, name) = (subscription.namespace(), subscription.name());
    let current = subscription.text("/status/currentCSV");
    let mut csvs = Vec::new();
    // What was replacing an older version when it was deleted may never have run.
    let mut next = match seen.get("ClusterServiceVersion", namespace, current) {
        Some(_) => current,
        None => left_behind(seen, subscription).map_or(current, Doc::name),
    };
    while let Some(csv) =
        seen.get("ClusterServiceVersion", namespace, next).filter(|_| !next.is_empty() && csvs.len() < 8)
    {
        csvs.push(format!("clusterserviceversion.operators.coreos.com/{next}"));
        next = csv.text("/spec/replaces");
    }
    let mut spec = subscription.0["spec"].clone();
    if let Some(fields) = spec.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
        // Where it began is long past: what was installed comes back, and in place of a version that failed the channel's head.
        fields.remove("startingCSV");
        let installed = subscription.text("/status/installedCSV");
        if csvs.is_empty() && !installed.is_empty() {
            fields.insert("startingCSV".to_owned(), installed.into());
        }
    }
    let mut manifest = serde_json::json!({
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "Subscription",
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    });
    for field in ["labels", "annotations"] {
        let mut kept = subscription.0["metadata"][field].as_object().cloned().unwrap_or_default();
        kept.retain(|name, _| name != LAST_APPLIED);
        if !kept.is_empty() {
            manifest["metadata"][field] = kept.into();
        }
    }
    let objects = [&[format!("subscription.operators.coreos.com/{name}")][..], &csvs].concat();
    let effect = match csvs.is_empty() {
        true => {
            "recreates the Subscription: OLM installs the same version again within about 10 seconds; CRDs and custom resources stay"
        }
        false => {
            "deletes the Subscription and its ClusterServiceVersions and recreates the Subscription: OLM installs the head of the channel, and the operator is down for about half a minute; CRDs and custom resources stay"
        }
    };
    let effect = match subscription.text("/spec/installPlanApproval") {
        "Manual" => {
            Sentence::from(effect)
                + ". Then approve the InstallPlan: "
                + command!("olmkit operator approve {} -n {}", name, namespace)
        }
        _ => effect.into(),
    };
    let command = command!("kubectl -n {} delete", namespace)
        .words(objects)
        .then(" && echo {} | kubectl create -f -", &[&manifest]);
    Repair { safe: csvs.is_empty(), ..Repair::of(command, effect) }
}

/// The version that a new CRD drops.
fn stored_version(message: &str) -> Option<&str> {
    let (_, rest) = message.split_once("removes version ")?;
    rest.split_whitespace().next()
}
