//! NetworkPolicies: peers, ports and blocks of addresses.

use std::net::IpAddr;

use k8s_openapi::api::networking::v1::{IPBlock, NetworkPolicy, NetworkPolicyPeer, NetworkPolicyPort};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use crate::refused::{Check, PROTOCOLS, plain};
use crate::yaml::{Step, steps};

const TYPES: [&str; 2] = ["Ingress", "Egress"];

pub(super) fn check(check: &mut Check<'_>, policy: &NetworkPolicy) {
    let Some(spec) = &policy.spec else { return };
    check.below(steps!("spec"), |check| {
        if let Some(selector) = &spec.pod_selector {
            check.label_selector(steps!("podSelector"), selector);
        }
        for (at, rule) in spec.ingress.iter().flatten().enumerate() {
            check.below(steps!("ingress", at), |check| {
                peers_and_ports(check, "from", rule.from.as_deref(), rule.ports.as_deref());
            });
        }
        for (at, rule) in spec.egress.iter().flatten().enumerate() {
            check.below(steps!("egress", at), |check| {
                peers_and_ports(check, "to", rule.to.as_deref(), rule.ports.as_deref());
            });
        }
        let types = spec.policy_types.as_deref().unwrap_or_default();
        if types.len() > TYPES.len() {
            check.push(steps!("policyTypes"), "there are more than two `policyTypes`", "list each once");
        }
        for (at, kind) in types.iter().enumerate() {
            check.one_of(steps!("policyTypes", at), Some(kind), &TYPES);
        }
    });
}

fn peers_and_ports(
    check: &mut Check<'_>,
    key: &'static str,
    peers: Option<&[NetworkPolicyPeer]>,
    ports: Option<&[NetworkPolicyPort]>,
) {
    for (at, peer) in peers.into_iter().flatten().enumerate() {
        check.below(&[Step::Key(key), Step::Index(at)], |check| self::peer(check, peer));
    }
    for (at, port) in ports.into_iter().flatten().enumerate() {
        check.below(steps!("ports", at), |check| self::port(check, port));
    }
}

fn peer(check: &mut Check<'_>, peer: &NetworkPolicyPeer) {
    let selectors = [("podSelector", &peer.pod_selector), ("namespaceSelector", &peer.namespace_selector)];
    for (key, selector) in selectors {
        if let Some(selector) = selector {
            check.label_selector(&[Step::Key(key)], selector);
        }
    }
    let selects = selectors.iter().any(|(_, selector)| selector.is_some());
    match &peer.ip_block {
        None if !selects => {
            let help =
                "set `podSelector`, `namespaceSelector` or `ipBlock`; `podSelector: {}` means every pod";
            check.push(&[], "a peer of the NetworkPolicy is empty", help);
        }
        Some(_) if selects => {
            check.push(&[], "a peer has both `ipBlock` and a selector", "split it into two peers");
        }
        _ => {}
    }
    if let Some(block) = &peer.ip_block {
        check.below(steps!("ipBlock"), |check| self::block(check, block));
    }
}

fn block(check: &mut Check<'_>, block: &IPBlock) {
    let cidrs = block.except.iter().flatten();
    let paths = cidrs.clone().enumerate().map(|(at, _)| vec![Step::Key("except"), Step::Index(at)]);
    let paths = std::iter::once(vec![Step::Key("cidr")]).chain(paths);
    for (cidr, path) in std::iter::once(&block.cidr).chain(cidrs).zip(paths) {
        if !is_cidr(cidr) {
            let message = format!("`{}` is not a block of addresses", plain(cidr));
            check.push(&path, message, "write it as `10.0.0.0/8`");
        }
    }
}

/// Whether a text is an address and the length of a prefix. Old clusters take more than one form of the address.
fn is_cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    let without_zeros: Vec<_> = address.split('.').map(|part| part.trim_start_matches('0')).collect();
    let most = if address.contains(':') { 128 } else { 32 };
    let is_address = address.parse::<IpAddr>().is_ok()
        || most == 32
            && without_zeros.len() == 4
            && without_zeros.iter().all(|part| part.is_empty() || part.parse::<u8>().is_ok());
    is_address && bits.parse::<u8>().is_ok_and(|bits| bits <= most)
}

fn port(check: &mut Check<'_>, port: &NetworkPolicyPort) {
    check.one_of(steps!("protocol"), port.protocol.as_deref(), &PROTOCOLS);
    if let Some(number) = &port.port {
        check.port_or_name(steps!("port"), number);
    }
    let Some(end) = port.end_port else { return };
    match &port.port {
        Some(IntOrString::Int(start)) if end < *start => {
            let message = format!("`endPort` {end} is before `port` {start}");
            check.push(steps!("endPort"), message, "set `port` to the lower of the two");
        }
        Some(IntOrString::Int(_)) => check.port(steps!("endPort"), end),
        _ => {
            let message = "`endPort` is set, and `port` is not a number";
            check.push(steps!("endPort"), message, "set `port` to a number, or remove `endPort`");
        }
    }
}
