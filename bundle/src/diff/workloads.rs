//! What changes in an operator's Deployments: what makes an upgrade fail, and what the operator runs as.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{Container, PodSpec};
use serde::Serialize;
use serde_json::Value as Json;

use super::codes;
use crate::csv::DeploymentDescription;
use crate::finding::{Code, Finding, Findings};
use crate::installed;
use crate::manifests::canonical_pod;
use crate::parse::Csv;
use crate::yaml::Step;

struct Comparison<'f, 'b, 'a> {
    old: &'f Csv<'b, 'a>,
    new: &'f Csv<'b, 'a>,
    findings: &'f mut Findings,
}

/// Compares the Deployments of two ClusterServiceVersions.
pub(super) fn compare(old: &Csv<'_, '_>, new: &Csv<'_, '_>, findings: &mut Findings) {
    let mut comparison = Comparison { old, new, findings };
    // As OLM makes them: it replaces what is mounted where its certificates go. That they come or go is said of the APIs and webhooks.
    let mut serving = installed::serving(&old.typed.spec);
    serving.extend(installed::serving(&new.typed.spec));
    let deployments = |csv: &Csv<'_, '_>| {
        let mut all = csv.typed.spec.install.spec.deployments.clone();
        for own in &mut all {
            own.spec.template.spec = installed::pod(own, serving.contains(own.name.as_str()));
        }
        all
    };
    let (olds, news) = (deployments(old), deployments(new));
    for (at, deployment) in olds.iter().enumerate() {
        match news.iter().position(|next| next.name == deployment.name) {
            Some(to) => comparison.deployment((at, deployment), (to, &news[to])),
            None => {
                let message = format!("the Deployment `{}` is removed", deployment.name);
                comparison.push(&codes::DEPLOYMENT_REMOVED, message, &list(at), &list_only());
            }
        }
    }
    for (to, deployment) in news.iter().enumerate() {
        if !olds.iter().any(|other| other.name == deployment.name) {
            let message = format!("the Deployment `{}` is new", deployment.name);
            comparison.push(&codes::DEPLOYMENT_ADDED, message, &list_only(), &list(to));
        }
    }
}

fn list_only() -> Vec<Step<'static>> {
    ["spec", "install", "spec", "deployments"].map(Step::from).to_vec()
}

fn list(at: usize) -> Vec<Step<'static>> {
    let mut path = list_only();
    path.push(at.into());
    path.push("name".into());
    path
}

/// A path below the spec of a Deployment.
fn below(at: usize, rest: &[Step<'static>]) -> Vec<Step<'static>> {
    let mut path = list_only();
    path.extend([Step::from(at), "spec".into()]);
    path.extend_from_slice(rest);
    path
}

impl Comparison<'_, '_, '_> {
    fn push(&mut self, code: &'static Code, message: String, old: &[Step<'_>], new: &[Step<'_>]) {
        self.findings.push(
            Finding::new(code, message)
                .at(self.new.object.place(new))
                .and(self.old.object.place(old).label("before"))
                .subject(self.new.object.subject()),
        );
    }

    fn deployment(
        &mut self,
        (at, old): (usize, &DeploymentDescription),
        (to, new): (usize, &DeploymentDescription),
    ) {
        let name = &new.name;
        if old.spec.selector != new.spec.selector {
            let rest = ["selector".into()];
            let message =
                format!("the selector of the Deployment `{name}` changes, which Kubernetes refuses");
            self.push(&codes::DEPLOYMENT_SELECTOR_CHANGED, message, &below(at, &rest), &below(to, &rest));
        }
        if old.spec.replicas.unwrap_or(1) != new.spec.replicas.unwrap_or(1) {
            let (from, count) = (old.spec.replicas.unwrap_or(1), new.spec.replicas.unwrap_or(1));
            let rest = ["replicas".into()];
            let message = format!("the replicas of the Deployment `{name}` were {from}, and are now {count}");
            self.push(&codes::DEPLOYMENT_CHANGED, message, &below(at, &rest), &below(to, &rest));
        }
        if differs(&old.spec.strategy, &new.spec.strategy) {
            let rest = ["strategy".into()];
            let message = format!("the update strategy of the Deployment `{name}` changes");
            self.push(&codes::DEPLOYMENT_CHANGED, message, &below(at, &rest), &below(to, &rest));
        }
        let (Some(from), Some(next)) = (&old.spec.template.spec, &new.spec.template.spec) else { return };
        let pod = |key: &'static str| ["template".into(), "spec".into(), key.into()];
        if from.service_account_name != next.service_account_name {
            let show = |name: &Option<String>| name.clone().unwrap_or_else(|| "default".to_owned());
            let (before, after) = (show(&from.service_account_name), show(&next.service_account_name));
            let rest = pod("serviceAccountName");
            let message = format!("the Deployment `{name}` ran as `{before}`, and now runs as `{after}`");
            self.push(&codes::DEPLOYMENT_CHANGED, message, &below(at, &rest), &below(to, &rest));
        }
        if differs(&from.security_context, &next.security_context) {
            let rest = pod("securityContext");
            let message = format!("the security context of the pods of `{name}` changes");
            self.push(&codes::SECURITY_CONTEXT_CHANGED, message, &below(at, &rest), &below(to, &rest));
        }
        let host = |spec: &PodSpec| {
            [
                ("hostNetwork", spec.host_network),
                ("hostPID", spec.host_pid),
                ("hostIPC", spec.host_ipc),
                ("shareProcessNamespace", spec.share_process_namespace),
            ]
        };
        for ((key, before), (_, after)) in host(from).into_iter().zip(host(next)) {
            if before.unwrap_or(false) != after.unwrap_or(false) {
                let word = if after.unwrap_or(false) { "now" } else { "no longer" };
                let rest = pod(key);
                let message = format!("the pods of `{name}` {word} have `{key}`");
                self.push(&codes::SECURITY_CONTEXT_CHANGED, message, &below(at, &rest), &below(to, &rest));
            }
        }
        self.host_access((at, from), (to, next), name);
        let parts = [
            ("affinity", "the affinity", differs(&from.affinity, &next.affinity)),
            ("nodeSelector", "the node selector", differs(&from.node_selector, &next.node_selector)),
            ("priorityClassName", "the priority class", from.priority_class_name != next.priority_class_name),
            ("runtimeClassName", "the runtime class", from.runtime_class_name != next.runtime_class_name),
            ("tolerations", "the list of tolerations", differs(&from.tolerations, &next.tolerations)),
            ("volumes", "the list of volumes", differs(&from.volumes, &next.volumes)),
        ];
        for (key, what, _) in parts.into_iter().filter(|(_, _, differs)| *differs) {
            let message = format!("{what} of the pods of `{name}` changes");
            self.push(&codes::DEPLOYMENT_CHANGED, message, &below(at, &pod(key)), &below(to, &pod(key)));
        }
        self.containers(at, to, "containers", &from.containers, &next.containers);
        let none = Vec::new();
        let inits = |spec: &'_ PodSpec| spec.init_containers.clone();
        let (from, next) = (inits(from).unwrap_or(none.clone()), inits(next).unwrap_or(none));
        self.containers(at, to, "initContainers", &from, &next);
    }

    /// Directories and ports of the nodes that the pods use.
    fn host_access(&mut self, (at, old): (usize, &PodSpec), (to, new): (usize, &PodSpec), name: &str) {
        let paths = |spec: &PodSpec| {
            let volumes = spec.volumes.iter().flatten();
            volumes
                .filter_map(|volume| Some(volume.host_path.as_ref()?.path.clone()))
                .collect::<BTreeSet<_>>()
        };
        let ports = |spec: &PodSpec| {
            let ports = spec.containers.iter().flat_map(|container| container.ports.iter().flatten());
            ports.filter_map(|port| port.host_port.filter(|port| *port > 0)).collect::<BTreeSet<_>>()
        };
        let pod = |key: &'static str| ["template".into(), "spec".into(), key.into()];
        for path in paths(new).difference(&paths(old)) {
            let (from, next) = (below(at, &pod("volumes")), below(to, &pod("volumes")));
            let message = format!("the pods of `{name}` now mount `{path}` of their node");
            self.push(&codes::SECURITY_CONTEXT_CHANGED, message, &from, &next);
        }
        for port in ports(new).difference(&ports(old)) {
            let (from, next) = (below(at, &pod("containers")), below(to, &pod("containers")));
            let message = format!("the pods of `{name}` now use the port {port} of their node");
            self.push(&codes::SECURITY_CONTEXT_CHANGED, message, &from, &next);
        }
    }

    fn containers(
        &mut self,
        at: usize,
        to: usize,
        key: &'static str,
        olds: &[Container],
        news: &[Container],
    ) {
        let path = |at: usize, index: usize, field: &'static str| {
            below(at, &["template".into(), "spec".into(), key.into(), index.into(), field.into()])
        };
        let all = |at: usize| below(at, &["template".into(), "spec".into(), key.into()]);
        for (index, old) in olds.iter().enumerate() {
            let name = &old.name;
            let Some(next) = news.iter().position(|new| new.name == *name) else {
                let message = format!("the container `{name}` is removed");
                self.push(&codes::DEPLOYMENT_CHANGED, message, &path(at, index, "name"), &all(to));
                continue;
            };
            let new = &news[next];
            if old.image != new.image {
                let show = |image: &Option<String>| image.clone().unwrap_or_default();
                let (before, after) = (show(&old.image), show(&new.image));
                let message = format!("the container `{name}` ran `{before}`, and now runs `{after}`");
                self.push(
                    &codes::IMAGE_CHANGED,
                    message,
                    &path(at, index, "image"),
                    &path(to, next, "image"),
                );
            }
            let parts: [(&'static str, &'static str, bool, &'static Code); 9] = [
                ("command", "command", differs(&old.command, &new.command), &codes::DEPLOYMENT_CHANGED),
                ("args", "arguments", differs(&old.args, &new.args), &codes::DEPLOYMENT_CHANGED),
                ("env", "environment", environment(old) != environment(new), &codes::DEPLOYMENT_CHANGED),
                (
                    "resources",
                    "resources",
                    differs(&old.resources, &new.resources),
                    &codes::DEPLOYMENT_CHANGED,
                ),
                (
                    "securityContext",
                    "security context",
                    differs(&old.security_context, &new.security_context),
                    &codes::SECURITY_CONTEXT_CHANGED,
                ),
                ("ports", "ports", differs(&old.ports, &new.ports), &codes::DEPLOYMENT_CHANGED),
                ("livenessProbe", "probes", differs(&probes(old), &probes(new)), &codes::DEPLOYMENT_CHANGED),
                (
                    "volumeMounts",
                    "volume mounts",
                    differs(&old.volume_mounts, &new.volume_mounts),
                    &codes::DEPLOYMENT_CHANGED,
                ),
                (
                    "envFrom",
                    "sources of environment",
                    differs(&old.env_from, &new.env_from),
                    &codes::DEPLOYMENT_CHANGED,
                ),
            ];
            for (field, what, _, code) in parts.into_iter().filter(|(_, _, differs, _)| *differs) {
                let verb = if what.ends_with('s') { "change" } else { "changes" };
                let message = format!("the {what} of the container `{name}` {verb}");
                self.push(code, message, &path(at, index, field), &path(to, next, field));
            }
        }
        for (next, new) in news.iter().enumerate() {
            if !olds.iter().any(|old| old.name == new.name) {
                let message = format!("the container `{}` is new", new.name);
                self.push(&codes::DEPLOYMENT_CHANGED, message, &all(at), &path(to, next, "name"));
                if let Some(privilege) = privilege(new) {
                    let message = format!("the new container `{}` {privilege}", new.name);
                    let place = path(to, next, "securityContext");
                    self.push(&codes::SECURITY_CONTEXT_CHANGED, message, &all(at), &place);
                }
            }
        }
    }
}

/// The probes of a container.
fn probes(container: &Container) -> [Option<&k8s_openapi::api::core::v1::Probe>; 3] {
    let Container { liveness_probe, readiness_probe, startup_probe, .. } = container;
    [liveness_probe.as_ref(), readiness_probe.as_ref(), startup_probe.as_ref()]
}

/// What a container may do on its node, if anything.
fn privilege(container: &Container) -> Option<String> {
    let context = container.security_context.as_ref()?;
    let added = context.capabilities.iter().flat_map(|capabilities| capabilities.add.iter().flatten());
    let added: Vec<_> = added.map(|capability| format!("`{capability}`")).collect();
    if context.privileged == Some(true) {
        Some("is privileged".to_owned())
    } else if !added.is_empty() {
        Some(format!("has the capabilities {}", added.join(", ")))
    } else if context.run_as_user == Some(0) {
        Some("runs as root".to_owned())
    } else {
        None
    }
}

/// Whether two parts of a pod mean something else. OLM stores what a bundle leaves out as `{}`.
fn differs<T: Serialize>(old: &T, new: &T) -> bool {
    let value = |part: &T| {
        let part = serde_json::to_value(part).unwrap_or_default();
        let is_empty = part.as_object().is_some_and(|fields| fields.is_empty());
        canonical_pod(serde_json::json!({ "resources": if is_empty { Json::Null } else { part } }))
    };
    value(old) != value(new)
}

/// The environment by name: its order means nothing.
fn environment(container: &Container) -> Vec<(String, Json)> {
    let of = |variable: &k8s_openapi::api::core::v1::EnvVar| {
        (variable.name.clone(), canonical_pod(serde_json::to_value(variable).unwrap_or_default()))
    };
    let mut variables: Vec<_> = container.env.iter().flatten().map(of).collect();
    variables.sort_by(|a, b| a.0.cmp(&b.0));
    variables
}
