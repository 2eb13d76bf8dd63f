use crate::crd::Crd;
use crate::finding::Findings;
use crate::names::{check_dns_1035_label, check_subdomain};
use crate::url::Url;
use crate::validate::facts::Facts;
use crate::validate::{OLM, Rule, rule};
use crate::yaml::{Node, Step, Value, steps};

rule!("crd-conversion-invalid", Error, OLM, "crd_conversion_invalid.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    for (object, crd) in facts.readable_crds() {
        let Some(conversion) = crd.get(steps!("spec", "conversion")).map(Crd) else { continue };
        let mut report = |path: &[Step<'_>], message: String, help: &str| {
            let path: Vec<_> = steps!("spec", "conversion").iter().chain(path).copied().collect();
            findings.push(object.finding(&RULE.code, message, &path).help(help));
        };
        let strategy = conversion.text(steps!("strategy"));
        if !matches!(strategy.as_ref(), "None" | "Webhook") {
            let message = match strategy.as_ref() {
                "" => "the conversion has no strategy".into(),
                other => format!("`{other}` is not a strategy of conversion"),
            };
            report(steps!("strategy"), message, "write `None` or `Webhook`");
        }
        if strategy != "None" && crd.preserves_unknown_fields() {
            let message = format!("`{strategy}` needs a CRD whose unknown fields are pruned");
            report(steps!("strategy"), message, "write `preserveUnknownFields: false`");
        }
        let webhook = match crd.is_v1() {
            true => conversion.get(steps!("webhook")).map(Crd),
            false => Some(conversion),
        };
        let field = if crd.is_v1() { "clientConfig" } else { "webhookClientConfig" };
        let above: &[Step<'_>] = if crd.is_v1() { &[Step::Key("webhook")] } else { &[] };
        let path = |more: &[Step<'static>]| above.iter().chain(more).copied().collect::<Vec<_>>();
        let client = webhook.and_then(|webhook| webhook.get(&[Step::Key(field)])).map(Crd);
        let versions = webhook.map_or(&[][..], |webhook| webhook.list(steps!("conversionReviewVersions")));
        if strategy != "Webhook" {
            if client.is_some() || !versions.is_empty() {
                let message = format!("a webhook is set, but the strategy is `{strategy}`");
                report(steps!("strategy"), message, "write `strategy: Webhook`, or remove the webhook");
            }
            continue;
        }
        match client {
            None => report(&path(&[]), "the conversion has no webhook to call".into(), CLIENT_HELP),
            Some(client) => check_client(client, |more, message, help| {
                let path: Vec<_> =
                    path(&[Step::Key(field)]).into_iter().chain(more.iter().copied()).collect();
                report(&path, message, help);
            }),
        }
        // The older API has a default.
        if versions.is_empty() && !crd.is_v1() {
            continue;
        }
        check_versions(versions, |more, message, help| {
            let path: Vec<_> = path(&[Step::Key("conversionReviewVersions")])
                .into_iter()
                .chain(more.iter().copied())
                .collect();
            report(&path, message, help);
        });
    }
}

fn check_client(client: Crd<'_, '_>, mut report: impl FnMut(&[Step<'_>], String, &str)) {
    let (url, service) = (client.get(steps!("url")), client.get(steps!("service")).map(Crd));
    match (url, service) {
        (Some(_), Some(_)) | (None, None) => {
            report(&[], "exactly one of `url` and `service` must be set".into(), CLIENT_HELP);
        }
        (Some(url), None) => {
            let text = url.to_text().unwrap_or_default();
            let why = match Url::parse(&text) {
                Err(why) => why,
                Ok(url) if !url.scheme.eq_ignore_ascii_case("https") => "its scheme is not `https`",
                Ok(url) if url.host.is_empty() => "it has no host",
                Ok(url) if url.user.is_some() => "it names a user",
                Ok(url) if !url.fragment.is_empty() || !url.query.is_empty() => {
                    "it has a query or a fragment"
                }
                Ok(_) => return,
            };
            report(
                steps!("url"),
                format!("`{text}` cannot be the address of a webhook: {why}"),
                "write `https://HOST/PATH`",
            );
        }
        (None, Some(service)) => check_service(service, report),
    }
}

fn check_service(service: Crd<'_, '_>, mut report: impl FnMut(&[Step<'_>], String, &str)) {
    for field in ["name", "namespace"] {
        if service.text(steps!(field)).is_empty() {
            report(
                steps!("service", field),
                format!("the service of the webhook has no {field}"),
                "name the service",
            );
        }
    }
    if let Some(Value::Int(port)) = service.get(steps!("port")).map(|node| &node.value)
        && !(1..=65_535).contains(port)
    {
        report(
            steps!("service", "port"),
            format!("`{port}` is not a port"),
            "write a number from 1 to 65535",
        );
    }
    let path = service.text(steps!("path"));
    if matches!(path.as_ref(), "" | "/") {
        return;
    }
    let rest = path.strip_prefix('/');
    let segments = rest.unwrap_or(path.get(1..).unwrap_or(""));
    let segments = segments.strip_suffix('/').unwrap_or(segments);
    if rest.is_none() || segments.split('/').any(|segment| check_subdomain(segment).is_err()) {
        report(
            steps!("service", "path"),
            format!("`{path}` is not a path of a webhook"),
            "write a path such as `/convert`",
        );
    }
}

fn check_versions(versions: &[Node<'_>], mut report: impl FnMut(&[Step<'_>], String, &str)) {
    let texts: Vec<_> = versions.iter().map(|node| node.to_text().unwrap_or_default()).collect();
    for (index, version) in texts.iter().enumerate() {
        if texts[..index].contains(version) {
            report(&[Step::Index(index)], format!("`{version}` is listed twice"), VERSIONS_HELP);
        } else if let Err(why) = check_dns_1035_label(version) {
            report(&[Step::Index(index)], format!("`{version}` is not a version: {why}"), VERSIONS_HELP);
        }
    }
    if !texts.iter().any(|version| matches!(version.as_ref(), "v1" | "v1beta1")) {
        let message = "no supported version of ConversionReview is listed".into();
        report(&[], message, VERSIONS_HELP);
    }
}

const CLIENT_HELP: &str = "name the service of the webhook; OLM puts in its own when the bundle is installed";
const VERSIONS_HELP: &str = "write `conversionReviewVersions: [v1]`";
