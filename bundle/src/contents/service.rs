//! Services: their ports, and what does not go together.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{Service, ServicePort, ServiceSpec};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use crate::names::{check_dns_1035_label, check_label, check_subdomain};
use crate::refused::{Check, PROTOCOLS, plain};
use crate::yaml::steps;

const TYPES: [&str; 4] = ["ClusterIP", "NodePort", "LoadBalancer", "ExternalName"];
const AFFINITIES: [&str; 2] = ["ClientIP", "None"];
const TRAFFIC_POLICIES: [&str; 2] = ["Cluster", "Local"];
/// The `clusterIP` of a headless Service.
const HEADLESS: &str = "None";

pub(super) fn check(check: &mut Check<'_>, service: &Service) {
    let name = service.metadata.name.as_deref().unwrap_or("");
    if let Some(why) = check_dns_1035_label(name).err().filter(|_| !name.is_empty()) {
        let message = format!("`{}` cannot name a Service: {why}", plain(name));
        check.push(steps!("metadata", "name"), message, "use a name such as `redis-operator-metrics`");
    }
    let none = ServiceSpec::default();
    check.below(steps!("spec"), |check| spec(check, service.spec.as_ref().unwrap_or(&none)));
}

fn spec(check: &mut Check<'_>, spec: &ServiceSpec) {
    let kind = spec.type_.as_deref().filter(|kind| !kind.is_empty()).unwrap_or("ClusterIP");
    let is_headless = spec.cluster_ip.as_deref() == Some(HEADLESS);
    check.one_of(steps!("type"), Some(kind), &TYPES);
    let affinity = spec.session_affinity.as_deref().filter(|affinity| !affinity.is_empty());
    check.one_of(steps!("sessionAffinity"), affinity, &AFFINITIES);
    let ports = spec.ports.as_deref().unwrap_or_default();
    if ports.is_empty() && !is_headless && kind != "ExternalName" {
        check.push(steps!("ports"), "the Service has no ports", "list at least one under `spec.ports`");
    }
    if is_headless && matches!(kind, "NodePort" | "LoadBalancer") {
        let message = format!("a Service of the type `{kind}` cannot be headless");
        check.push(steps!("clusterIP"), message, "remove `clusterIP: None` or `type`");
    }
    if kind == "ExternalName" {
        external_name(check, spec);
    }
    for (key, value) in spec.selector.iter().flatten() {
        check.label(steps!("selector"), key, value);
    }
    external_traffic(check, spec, kind);
    all_ports(check, ports, kind);
}

fn external_name(check: &mut Check<'_>, spec: &ServiceSpec) {
    let name = spec.external_name.as_deref().unwrap_or("");
    if let Err(why) = check_subdomain(name.strip_suffix('.').unwrap_or(name)) {
        let message = format!("`{}` is not a name in DNS: {why}", plain(name));
        check.push(steps!("externalName"), message, "set `externalName` to a name such as `db.example.com`");
    }
    if spec.cluster_ip.as_deref().is_some_and(|ip| !ip.is_empty()) {
        let message = "a Service of the type `ExternalName` has no `clusterIP`";
        check.push(steps!("clusterIP"), message, "remove `clusterIP`");
    }
}

fn external_traffic(check: &mut Check<'_>, spec: &ServiceSpec, kind: &str) {
    let policy = spec.external_traffic_policy.as_deref().filter(|policy| !policy.is_empty());
    check.one_of(steps!("externalTrafficPolicy"), policy, &TRAFFIC_POLICIES);
    let has_addresses = spec.external_ips.as_ref().is_some_and(|ips| !ips.is_empty());
    let is_external = matches!(kind, "NodePort" | "LoadBalancer") || kind == "ClusterIP" && has_addresses;
    if policy.is_some() && !is_external {
        let message = format!("`externalTrafficPolicy` is set, and the type is `{}`", plain(kind));
        check.push(steps!("externalTrafficPolicy"), message, "remove `externalTrafficPolicy`");
    }
}

fn all_ports(check: &mut Check<'_>, ports: &[ServicePort], kind: &str) {
    let (mut names, mut numbers) = (BTreeSet::new(), BTreeSet::new());
    for (at, port) in ports.iter().enumerate() {
        check.below(steps!("ports", at), |check| {
            let name = port.name.as_deref().unwrap_or("");
            if name.is_empty() && ports.len() > 1 {
                let message = "a port has no name, and the Service has several";
                check.push(&[], message, "set `name`, such as `https`, at each port");
            } else if let Some(why) = check_label(name).err().filter(|_| !name.is_empty()) {
                let message = format!("`{}` cannot name a port: {why}", plain(name));
                check.push(steps!("name"), message, "use a name such as `https`");
            } else if !name.is_empty() && !names.insert(name) {
                let message = format!("two ports of the Service are named `{name}`");
                check.push(steps!("name"), message, "give one of them another name");
            }
            check.port(steps!("port"), port.port);
            match &port.target_port {
                // The port itself.
                None | Some(IntOrString::Int(0)) => {}
                Some(IntOrString::String(name)) if name.is_empty() => {}
                Some(target) => check.port_or_name(steps!("targetPort"), target),
            }
            let protocol = port.protocol.as_deref().filter(|protocol| !protocol.is_empty());
            check.one_of(steps!("protocol"), protocol, &PROTOCOLS);
            if !numbers.insert((protocol.unwrap_or("TCP"), port.port)) {
                let message = format!("two ports of the Service are {}", port.port);
                check.push(steps!("port"), message, "remove one, or give it another number or protocol");
            }
            if kind == "ClusterIP" && port.node_port.is_some_and(|port| port != 0) {
                let message = "a Service of the type `ClusterIP` has no `nodePort`";
                check.push(steps!("nodePort"), message, "remove `nodePort`, or set `type: NodePort`");
            }
        });
    }
}
