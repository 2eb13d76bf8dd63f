//! What of a Deployment's `spec` Kubernetes refuses, or never starts: the rules of `pkg/apis/{apps,core}/validation` that
//! people run into.
//!
//! OLM copies the `spec` from the ClusterServiceVersion to the cluster as it is, and nobody before the API server looks at it.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::apps::v1::DeploymentSpec;
use k8s_openapi::api::core::v1::{
    Container, ContainerPort, NodeAffinity, NodeSelectorTerm, PodSpec, Probe, ResourceRequirements,
    Toleration, Volume,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use crate::installed;
use crate::names::{ImageRef, check_label, check_subdomain};
use crate::quantity;
use crate::refused::{Check, PROTOCOLS, Refused, check_port_name, plain};
use crate::yaml::{Node, Step, decode, steps};

const PULL_POLICIES: [&str; 3] = ["Always", "IfNotPresent", "Never"];
const STRATEGIES: [&str; 2] = ["RollingUpdate", "Recreate"];
const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
const TOLERATION_OPERATORS: [&str; 2] = ["Equal", "Exists"];
const NODE_OPERATORS: [&str; 6] = ["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"];
const FIELD_OPERATORS: [&str; 2] = ["In", "NotIn"];
/// Seconds that a Deployment may take where it does not say.
const PROGRESS_DEADLINE: i32 = 600;

/// Everything that Kubernetes refuses of a Deployment's `spec`, in the order of its fields; then the numbers and booleans in
/// it where Kubernetes expects a string. Nothing of a `spec` that does not fit the type otherwise: other findings say that.
/// OLM mounts the `certificate` first, the Secret with the one that it issues for webhooks.
pub(crate) fn refused<'n>(spec: &'n Node<'n>, certificate: Option<&str>) -> Vec<Refused<'n>> {
    let Ok((mut typed, noted)) = decode::decode_noting::<DeploymentSpec>(spec) else { return Vec::new() };
    if let (Some(secret), Some(pod)) = (certificate, &mut typed.template.spec) {
        installed::mount_certificates(pod, secret);
    }
    let mut check = Check::default();
    check.deployment(&typed);
    let quantities: BTreeSet<_> = noted.quantities.into_iter().collect();
    let as_text: BTreeSet<_> = noted.as_text.into_iter().filter(|span| !quantities.contains(span)).collect();
    if !as_text.is_empty() {
        check.unquoted(spec, &as_text);
    }
    check.refused
}

impl<'n> Check<'n> {
    fn deployment(&mut self, spec: &DeploymentSpec) {
        self.not_negative(steps!("replicas"), spec.replicas.map(i64::from));
        self.not_negative(steps!("minReadySeconds"), spec.min_ready_seconds.map(i64::from));
        self.not_negative(steps!("revisionHistoryLimit"), spec.revision_history_limit.map(i64::from));
        let deadline = spec.progress_deadline_seconds.unwrap_or(PROGRESS_DEADLINE);
        let ready = spec.min_ready_seconds.unwrap_or(0);
        if deadline <= ready {
            let message = format!(
                "the progress deadline of {deadline} s is not longer than `minReadySeconds`, {ready} s"
            );
            self.push(steps!("progressDeadlineSeconds"), message, "set a longer `progressDeadlineSeconds`");
        }
        if let Some(strategy) = &spec.strategy {
            self.one_of(steps!("strategy", "type"), strategy.type_.as_deref(), &STRATEGIES);
            if strategy.type_.as_deref() == Some("Recreate") && strategy.rolling_update.is_some() {
                let message = "`rollingUpdate` is set, and the strategy is `Recreate`";
                self.push(steps!("strategy", "rollingUpdate"), message, "remove one of the two");
            }
        }
        let metadata = spec.template.metadata.as_ref();
        let labels = metadata.and_then(|metadata| metadata.labels.clone()).unwrap_or_default();
        self.labels(&labels);
        self.selector(&spec.selector, &labels);
        match &spec.template.spec {
            Some(pod) => self.below(steps!("template", "spec"), |check| check.pod(pod)),
            None => self.push(
                steps!("template"),
                "the pod template has no `spec`, so there is no container",
                "describe the pods under `spec.template.spec`",
            ),
        }
    }

    fn labels(&mut self, labels: &BTreeMap<String, String>) {
        for (key, value) in labels {
            self.label(steps!("template", "metadata", "labels"), key, value);
        }
    }

    fn selector(&mut self, selector: &LabelSelector, labels: &BTreeMap<String, String>) {
        let wanted = selector.match_labels.clone().unwrap_or_default();
        let expressions = selector.match_expressions.as_deref().unwrap_or_default();
        let example = labels.iter().next().map(|(key, value)| format!("{}: {}", plain(key), plain(value)));
        if wanted.is_empty() && expressions.is_empty() {
            let help = match example {
                Some(label) => format!("set `spec.selector.matchLabels`, for example to `{label}`"),
                None => {
                    "set the same label under `spec.selector.matchLabels` and `spec.template.metadata.labels`"
                        .into()
                }
            };
            self.push(steps!("selector"), "the Deployment has no selector for its pods", help);
            return;
        }
        let own = |key: &str| labels.get(key).map(String::as_str);
        let differs = wanted.iter().find(|(key, value)| own(key) != Some(value.as_str()));
        let expression = expressions.iter().find(|expression| {
            let values = expression.values.as_deref().unwrap_or_default();
            let among = own(&expression.key).is_some_and(|own| values.iter().any(|value| value == own));
            !match expression.operator.as_str() {
                "In" => among,
                "NotIn" => !among,
                "Exists" => own(&expression.key).is_some(),
                "DoesNotExist" => own(&expression.key).is_none(),
                _ => false,
            }
        });
        let key = differs.map(|(key, _)| key).or(expression.map(|expression| &expression.key));
        if let Some(key) = key {
            let found = match own(key) {
                Some(value) => format!("they have `{}: {}`", plain(key), plain(value)),
                None => format!("they have no label `{}`", plain(key)),
            };
            self.push(
                steps!("selector"),
                format!("the selector does not select the Deployment's own pods: {found}"),
                "give `spec.template.metadata.labels` the labels of `spec.selector`",
            );
        }
    }

    fn pod(&mut self, pod: &PodSpec) {
        if let Some(policy) = pod.restart_policy.as_deref().filter(|policy| *policy != "Always") {
            let message = format!(
                "the restart policy of a Deployment's pods is always `Always`, not `{}`",
                plain(policy)
            );
            self.push(steps!("restartPolicy"), message, "remove `restartPolicy`");
        }
        if pod.active_deadline_seconds.is_some() {
            let message = "the pods of a Deployment cannot have a deadline";
            self.push(steps!("activeDeadlineSeconds"), message, "remove `activeDeadlineSeconds`");
        }
        self.not_negative(steps!("terminationGracePeriodSeconds"), pod.termination_grace_period_seconds);
        let accounts =
            [("serviceAccountName", &pod.service_account_name), ("serviceAccount", &pod.service_account)];
        for (key, account) in accounts {
            let account = account.as_deref().filter(|account| !account.is_empty());
            if let Some((account, why)) = account.and_then(|own| Some((own, check_subdomain(own).err()?))) {
                let message = format!("`{}` cannot name a service account: {why}", plain(account));
                self.push(&[Step::Key(key)], message, "use the `metadata.name` of the ServiceAccount");
            }
        }
        let mut volumes = BTreeSet::new();
        for (at, volume) in pod.volumes.iter().flatten().enumerate() {
            self.name(steps!("volumes", at, "name"), "volume", &volume.name, &mut volumes);
            self.sources(steps!("volumes", at), volume);
        }
        for (at, toleration) in pod.tolerations.iter().flatten().enumerate() {
            self.below(steps!("tolerations", at), |check| check.toleration(toleration));
        }
        if let Some(affinity) = pod.affinity.as_ref().and_then(|affinity| affinity.node_affinity.as_ref()) {
            self.below(steps!("affinity", "nodeAffinity"), |check| check.node_affinity(affinity));
        }
        if pod.containers.is_empty() {
            self.push(
                steps!("containers"),
                "the pods have no containers",
                "add the container that runs the operator",
            );
        }
        self.root_user(pod);
        let mut names = BTreeSet::new();
        let init = pod.init_containers.as_deref().unwrap_or_default();
        for (list, containers) in [("initContainers", init), ("containers", &pod.containers)] {
            for (at, container) in containers.iter().enumerate() {
                self.name(steps!(list, at, "name"), "container", &container.name, &mut names);
                self.below(steps!(list, at), |check| check.container(container, &volumes));
            }
        }
    }

    /// The kubelet starts no container that is told to run as root and not as root.
    fn root_user(&mut self, pod: &PodSpec) {
        const HELP: &str = "set `runAsUser` to another number, such as 65532, or remove it";
        let of_pod = pod.security_context.as_ref();
        let init = pod.init_containers.as_deref().unwrap_or_default();
        for (list, containers) in [("initContainers", init), ("containers", &pod.containers)] {
            for (at, container) in containers.iter().enumerate() {
                let own = container.security_context.as_ref();
                let user = own.and_then(|own| own.run_as_user);
                let not_root = own.and_then(|own| own.run_as_non_root);
                let not_root = not_root.or_else(|| of_pod.and_then(|own| own.run_as_non_root));
                if not_root != Some(true)
                    || user.or_else(|| of_pod.and_then(|own| own.run_as_user)) != Some(0)
                {
                    continue;
                }
                let message = format!(
                    "the container `{}` never starts: `runAsUser` is 0, and `runAsNonRoot` is true",
                    plain(&container.name)
                );
                match user {
                    Some(_) => self.push(steps!(list, at, "securityContext", "runAsUser"), message, HELP),
                    None => self.push(steps!("securityContext", "runAsUser"), message, HELP),
                }
            }
        }
    }

    /// A name that is a DNS-1123 label, and no other of its kind has.
    fn name<'p>(&mut self, path: &[Step<'n>], what: &str, name: &'p str, names: &mut BTreeSet<&'p str>) {
        if let Err(why) = check_label(name) {
            let message = format!("`{}` cannot name a {what}: {why}", plain(name));
            self.push(path, message, format!("give the {what} a name such as `manager`"));
        } else if !names.insert(name) {
            self.push(path, format!("two {what}s are named `{name}`"), "give one of them another name");
        }
    }

    /// A volume without a source is an empty directory.
    fn sources(&mut self, path: &[Step<'n>], volume: &Volume) {
        let volume_as_json = serde_json::to_value(volume).unwrap_or_default();
        let keys = volume_as_json.as_object().into_iter().flat_map(|fields| fields.keys());
        let sources: Vec<_> = keys.filter(|key| *key != "name").map(|source| format!("`{source}`")).collect();
        if sources.len() > 1 {
            let name = plain(&volume.name);
            let message = format!(
                "the volume `{name}` has {} sources, expected one: {}",
                sources.len(),
                sources.join(", ")
            );
            self.push(path, message, "keep one of them, and move the others to separate volumes");
        }
    }

    fn toleration(&mut self, toleration: &Toleration) {
        let operator = toleration.operator.as_deref().filter(|operator| !operator.is_empty());
        self.one_of(steps!("operator"), operator, &TOLERATION_OPERATORS);
        let effect = toleration.effect.as_deref().filter(|effect| !effect.is_empty());
        self.one_of(steps!("effect"), effect, &EFFECTS);
    }

    fn node_affinity(&mut self, affinity: &NodeAffinity) {
        if let Some(required) = &affinity.required_during_scheduling_ignored_during_execution {
            for (at, term) in required.node_selector_terms.iter().enumerate() {
                let path = steps!("requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms", at);
                self.below(path, |check| check.node_selector(term));
            }
        }
        let preferred = affinity.preferred_during_scheduling_ignored_during_execution.iter().flatten();
        for (at, term) in preferred.enumerate() {
            let path = steps!("preferredDuringSchedulingIgnoredDuringExecution", at, "preference");
            self.below(path, |check| check.node_selector(&term.preference));
        }
    }

    fn node_selector(&mut self, term: &NodeSelectorTerm) {
        let lists = [
            ("matchExpressions", &term.match_expressions, &NODE_OPERATORS as &[&str]),
            ("matchFields", &term.match_fields, &FIELD_OPERATORS),
        ];
        for (list, requirements, operators) in lists {
            for (at, requirement) in requirements.iter().flatten().enumerate() {
                self.one_of(steps!(list, at, "operator"), Some(requirement.operator.as_str()), operators);
            }
        }
    }

    /// A probe asks the container that it belongs to.
    fn probe(&mut self, key: &'static str, probe: &Probe, ports: &[ContainerPort]) {
        let handlers = [
            ("exec", probe.exec.is_some()),
            ("grpc", probe.grpc.is_some()),
            ("httpGet", probe.http_get.is_some()),
            ("tcpSocket", probe.tcp_socket.is_some()),
        ];
        let given: Vec<_> =
            handlers.iter().filter(|(_, is_given)| *is_given).map(|(name, _)| format!("`{name}`")).collect();
        match given.as_slice() {
            [] => self.push(
                &[Step::Key(key)],
                format!("`{key}` has no handler"),
                "set one of `exec`, `grpc`, `httpGet` and `tcpSocket`",
            ),
            [_] => {}
            several => {
                let message = format!("`{key}` has {}, expected one of them", several.join(" and "));
                self.push(&[Step::Key(key)], message, "remove all but one");
            }
        }
        if let Some(http) = &probe.http_get {
            self.probe_port(steps!(key, "httpGet", "port"), &http.port, ports);
        }
        if let Some(tcp) = &probe.tcp_socket {
            self.probe_port(steps!(key, "tcpSocket", "port"), &tcp.port, ports);
        }
        if let Some(grpc) = &probe.grpc {
            self.probe_port(steps!(key, "grpc", "port"), &IntOrString::Int(grpc.port), ports);
        }
    }

    fn probe_port(&mut self, path: &[Step<'n>], port: &IntOrString, ports: &[ContainerPort]) {
        let (message, help) = match port {
            IntOrString::Int(1..=65535) => return,
            IntOrString::Int(0) => ("the probe has no port".to_owned(), "set `port`"),
            IntOrString::Int(number) => {
                (format!("{number} is not a port"), "ports are numbers from 1 to 65535")
            }
            IntOrString::String(name) => match check_port_name(name) {
                Err(why) => (
                    format!("`{}` cannot name a port: {why}", plain(name)),
                    "set `port` to a number without quotes, or to the name of one of the container's `ports`",
                ),
                Ok(()) if ports.iter().any(|own| own.name.as_ref() == Some(name)) => return,
                Ok(()) => (
                    format!("the probe uses the port `{}`, which the container does not have", plain(name)),
                    "name one of the container's `ports`, or set `port` to a number",
                ),
            },
        };
        self.push(path, message, help);
    }

    fn container(&mut self, container: &Container, volumes: &BTreeSet<&str>) {
        let name = plain(&container.name);
        match container.image.as_deref().unwrap_or("") {
            "" => {
                let message = format!("the container `{name}` has no image");
                self.push(steps!("image"), message, "set `image`");
            }
            image => {
                if let Err(error) = image.parse::<ImageRef>() {
                    let message = format!("`{}` is not an image: {}", plain(image), error.why);
                    self.push(steps!("image"), message, "write it as `quay.io/example/operator:v1`");
                }
            }
        }
        self.one_of(steps!("imagePullPolicy"), container.image_pull_policy.as_deref(), &PULL_POLICIES);
        let ports = container.ports.as_deref().unwrap_or_default();
        self.ports(ports);
        let probes = [
            ("livenessProbe", &container.liveness_probe),
            ("readinessProbe", &container.readiness_probe),
            ("startupProbe", &container.startup_probe),
        ];
        for (key, probe) in probes {
            if let Some(probe) = probe {
                self.probe(key, probe, ports);
            }
        }
        for (at, variable) in container.env.iter().flatten().enumerate() {
            if variable.name.is_empty() {
                self.push(steps!("env", at, "name"), "a variable has no name", "set `name`");
            }
            if variable.value.as_deref().is_some_and(|value| !value.is_empty())
                && variable.value_from.is_some()
            {
                let message =
                    format!("the variable `{}` has both `value` and `valueFrom`", plain(&variable.name));
                self.push(steps!("env", at, "valueFrom"), message, "remove one of the two");
            }
        }
        let mut paths = BTreeSet::new();
        for (at, mount) in container.volume_mounts.iter().flatten().enumerate() {
            if !volumes.contains(mount.name.as_str()) {
                let message = format!(
                    "the container `{name}` mounts the volume `{}`, which the pods do not have",
                    plain(&mount.name)
                );
                let help = "declare it under `spec.template.spec.volumes`, or remove the mount";
                self.push(steps!("volumeMounts", at, "name"), message, help);
            }
            if mount.mount_path.is_empty() {
                self.push(steps!("volumeMounts", at), "a mount has no path", "set `mountPath`");
            } else if !paths.insert(mount.mount_path.as_str()) {
                let message = format!("two volumes are mounted at `{}`", plain(&mount.mount_path));
                self.push(steps!("volumeMounts", at, "mountPath"), message, "mount one of them elsewhere");
            }
        }
        if let Some(resources) = &container.resources {
            self.below(steps!("resources"), |check| check.resources(resources));
        }
    }

    fn ports(&mut self, ports: &[ContainerPort]) {
        let mut names = BTreeSet::new();
        for (at, port) in ports.iter().enumerate() {
            for (key, least, number) in
                [("containerPort", 1, Some(port.container_port)), ("hostPort", 0, port.host_port)]
            {
                if let Some(number) = number.filter(|number| !(least..=65535).contains(number)) {
                    let message = format!("{number} is not a port");
                    self.push(steps!("ports", at, key), message, "ports are numbers from 1 to 65535");
                }
            }
            self.one_of(steps!("ports", at, "protocol"), port.protocol.as_deref(), &PROTOCOLS);
            let Some(name) = port.name.as_deref().filter(|name| !name.is_empty()) else { continue };
            if let Err(why) = check_port_name(name) {
                let message = format!("`{}` cannot name a port: {why}", plain(name));
                self.push(steps!("ports", at, "name"), message, "use a name such as `https`");
            } else if !names.insert(name) {
                let message = format!("two ports of the container are named `{name}`");
                self.push(steps!("ports", at, "name"), message, "give one of them another name");
            }
        }
    }

    fn resources(&mut self, resources: &ResourceRequirements) {
        let empty = BTreeMap::new();
        let limits = resources.limits.as_ref().unwrap_or(&empty);
        let requests = resources.requests.as_ref().unwrap_or(&empty);
        for (list, quantities) in [("limits", limits), ("requests", requests)] {
            for (resource, quantity) in quantities {
                let text = plain(&quantity.0);
                let why = match quantity::billionths(&quantity.0) {
                    None => "is not a quantity",
                    Some(amount) if amount < 0 => "is negative",
                    Some(_) => continue,
                };
                let message = format!("`{}: {text}` {why}", plain(resource));
                self.push(&[Step::Key(list)], message, "write it as `100m` or `64Mi`");
            }
        }
        for (resource, request) in requests {
            let Some(limit) = limits.get(resource) else { continue };
            let (Some(least), Some(most)) =
                (quantity::billionths(&request.0), quantity::billionths(&limit.0))
            else {
                continue;
            };
            if least > most {
                let message = format!(
                    "the container requests `{}` of {}, and its limit is `{}`",
                    plain(&request.0),
                    plain(resource),
                    plain(&limit.0)
                );
                self.push(steps!("requests"), message, "raise the limit, or request less");
            }
        }
    }
}

#[cfg(test)]
mod tests;
