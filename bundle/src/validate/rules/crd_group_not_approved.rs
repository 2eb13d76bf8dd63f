use crate::finding::Findings;
use crate::url::Url;
use crate::validate::facts::Facts;
use crate::validate::{OLM, Rule, rule};
use crate::yaml::steps;

rule!("crd-group-not-approved", Error, OLM, "crd_group_not_approved.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    for (object, crd) in facts.readable_crds() {
        let group = crd.group();
        let protected = ["k8s.io", "kubernetes.io"].iter().any(|domain| {
            group.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        });
        let path = steps!("metadata", "annotations", APPROVED);
        let approval = crd.text(path);
        let is_address =
            |text| Url::parse_request(text).is_ok_and(|url| !url.host.is_empty() && !url.scheme.is_empty());
        if !protected || approval.starts_with("unapproved") || is_address(&approval) {
            continue;
        }
        let message = match approval.as_ref() {
            "" => format!("the group `{group}` belongs to Kubernetes, and no approval is named"),
            other => format!("`{other}` is neither the address of an approval nor a reason for having none"),
        };
        let finding = object.finding(&RULE.code, message, path);
        findings.push(finding.help("use a domain of your own; or set the annotation `api-approved.kubernetes.io` to the address of the approval"));
    }
}

const APPROVED: &str = "api-approved.kubernetes.io";
