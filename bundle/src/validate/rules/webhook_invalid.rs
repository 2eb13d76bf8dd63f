use std::collections::BTreeSet;

use crate::csv::WebhookDescription;
use crate::finding::{Findings, MOST_OF_A_KIND};
use crate::names::{check_label_value, check_subdomain};
use crate::validate::facts::Facts;
use crate::validate::{INSTALL, Rule, rule};
use crate::yaml::{Step, steps};

rule!("webhook-invalid", Error, INSTALL, "webhook_invalid.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(csv) = facts.csv() else { return };
    let spec = &csv.typed.spec;
    let deployments: BTreeSet<_> =
        spec.install.spec.deployments.iter().map(|own| own.name.as_str()).collect();
    let mut names = BTreeSet::new();
    for (index, webhook) in spec.webhook_definitions.iter().enumerate() {
        let mut refused = of_webhook(webhook);
        if !deployments.contains(webhook.deployment_name.as_str()) {
            let message =
                format!("there is no deployment `{}` to serve the webhook", plain(&webhook.deployment_name));
            refused.push((
                steps!("deploymentName").to_vec(),
                message,
                "name a deployment of `spec.install.spec.deployments`".into(),
            ));
        }
        let converts = webhook.kind == CONVERSION;
        if !converts && !names.insert((webhook.kind.as_str(), webhook.generate_name.as_str())) {
            let message =
                format!("a second webhook of this type is named `{}`", plain(&webhook.generate_name));
            refused.push((steps!("generateName").to_vec(), message, NAME_HELP.into()));
        }
        for (path, message, help) in refused {
            let path: Vec<_> =
                steps!("spec", "webhookdefinitions", index).iter().chain(&path).copied().collect();
            findings.push(csv.object.finding(&RULE.code, message, &path).help(help));
        }
    }
}

const NAME_HELP: &str = "give every webhook a unique name, such as `vredis.example.com`";
const TYPES: [&str; 3] = ["ValidatingAdmissionWebhook", "MutatingAdmissionWebhook", CONVERSION];
const CONVERSION: &str = "ConversionWebhook";
/// The versions of reviews that the API server sends.
const REVIEWS: [&str; 2] = ["v1", "v1beta1"];

/// A field, what is wrong with it, and the change to make.
type Refused = (Vec<Step<'static>>, String, String);

/// What Kubernetes or OLM refuse of a webhook, whatever else is in the bundle.
fn of_webhook(webhook: &WebhookDescription) -> Vec<Refused> {
    let mut refused = Vec::new();
    let mut push = |path: &[Step<'static>], message: String, help: &str| {
        if refused.len() <= MOST_OF_A_KIND {
            refused.push((path.to_vec(), message, help.to_owned()));
        }
    };
    let converts = webhook.kind == CONVERSION;
    let name = webhook.generate_name.as_str();
    let parts = name.split('.').count();
    // OLM makes it the webhook's name, which has a domain, and the value of a label; nothing of what converts.
    let why = check_subdomain(name).and_then(|()| check_label_value(name)).err();
    let why = why.or_else(|| (parts < 3).then_some("it has fewer than three parts with dots between"));
    if let Some(why) = why.filter(|_| !converts) {
        push(steps!("generateName"), format!("`{}` cannot name a webhook: {why}", plain(name)), NAME_HELP);
    }
    let side_effects = ["None", "NoneOnDryRun"];
    for (key, value, values) in [
        ("type", Some(&webhook.kind), TYPES.as_slice()),
        ("failurePolicy", webhook.failure_policy.as_ref(), &["Fail", "Ignore"]),
        ("matchPolicy", webhook.match_policy.as_ref(), &["Exact", "Equivalent"]),
        ("sideEffects", webhook.side_effects.as_ref(), &side_effects),
        ("reinvocationPolicy", webhook.reinvocation_policy.as_ref(), &["Never", "IfNeeded"]),
    ] {
        if let Some(value) = value.filter(|value| !values.contains(&value.as_str())) {
            let message = format!("`{}` is not a value of `{key}`", plain(value));
            push(&[Step::Key(key)], message, &format!("write one of `{}`", values.join("`, `")));
        }
    }
    if webhook.side_effects.is_none() {
        push(
            steps!("sideEffects"),
            "the webhook does not set `sideEffects`".into(),
            "write `sideEffects: None`",
        );
    }
    let reviews = &webhook.admission_review_versions;
    if !reviews.iter().any(|version| REVIEWS.contains(&version.as_str())) {
        let message = "`admissionReviewVersions` has no version that API servers send".into();
        push(steps!("admissionReviewVersions"), message, "write `admissionReviewVersions: [v1]`");
    }
    if let Some(seconds) = webhook.timeout_seconds.filter(|seconds| !(1..=30).contains(seconds)) {
        let message = format!("the timeout is {seconds} s, expected 1 to 30");
        push(steps!("timeoutSeconds"), message, "set `timeoutSeconds` to 10, or remove it");
    }
    if let Some(port) = webhook.container_port.filter(|port| !(1..=65535).contains(port)) {
        push(steps!("containerPort"), format!("{port} is not a port"), "ports are numbers from 1 to 65535");
    }
    if let Some(path) = webhook.webhook_path.as_deref().filter(|path| !is_path(path)) {
        let message = format!("`{}` is not the path of a URL", plain(path));
        push(steps!("webhookPath"), message, "start it with `/`, such as `/validate`");
    }
    if converts && webhook.conversion_crds.is_empty() {
        let message = "the webhook converts no CRD".into();
        push(steps!("conversionCRDs"), message, "name the CRDs that it converts in `conversionCRDs`");
    }
    for (at, rule) in webhook.rules.iter().enumerate().filter(|_| !converts) {
        for (key, list) in [
            ("apiGroups", &rule.api_groups),
            ("apiVersions", &rule.api_versions),
            ("operations", &rule.operations),
            ("resources", &rule.resources),
        ] {
            if list.as_deref().unwrap_or_default().is_empty() {
                let message = format!("the rule has no `{key}`");
                push(
                    steps!("rules", at, key),
                    message,
                    &format!("list in `{key}` what the webhook intercepts"),
                );
            }
        }
        let has = |list: &Option<Vec<String>>, words: &[&str]| {
            list.iter().flatten().any(|own| words.contains(&own.as_str()))
        };
        let configurations = ["*", "mutatingwebhookconfigurations", "validatingwebhookconfigurations"];
        let is_configuration =
            has(&rule.api_groups, &["admissionregistration.k8s.io"]) && has(&rule.resources, &configurations);
        let about = if has(&rule.api_groups, &["*"]) {
            "every API group"
        } else if has(&rule.api_groups, &["operators.coreos.com"]) {
            "the objects of OLM"
        } else if is_configuration {
            "the configurations of webhooks"
        } else {
            continue;
        };
        let message = format!("the webhook intercepts {about}, which OLM refuses");
        push(
            steps!("rules", at, "apiGroups"),
            message,
            "name the groups and resources that the webhook is for",
        );
    }
    refused
}

/// Whether a text is a path as Kubernetes takes it: `/`, or segments that are names.
fn is_path(path: &str) -> bool {
    path == "/"
        || path.strip_prefix('/').is_some_and(|rest| {
            rest.trim_end_matches('/').split('/').all(|part| check_subdomain(part).is_ok())
        })
}

fn plain(text: &str) -> String {
    text.replace('`', "'")
}
