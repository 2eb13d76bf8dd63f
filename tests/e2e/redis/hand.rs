//! Reaches into other pods: a pod that sees every process of the node, and sends signals as nobody else can.
//!
//! Inside a container process 1 cannot be killed by anybody, and what ends it from outside (deleting its pod) asks it
//! politely first. A crash is neither.

use libtest_mimic::Failed;

use super::operator::OPERATOR;
use crate::cluster::Namespace;

/// The pod that sends signals.
pub(super) struct Hand<'a> {
    namespace: &'a Namespace,
}

impl<'a> Hand<'a> {
    pub(super) fn of(namespace: &'a Namespace) -> Result<Self, Failed> {
        namespace.apply(
            "{apiVersion: v1, kind: Pod, metadata: {name: hand}, spec: {hostPID: true, terminationGracePeriodSeconds: 0, \
             containers: [{name: hand, image: '{registry}/redis-with-shell:e2e', \
             securityContext: {privileged: true, runAsUser: 0}, args: [--port, '6390', --save, '']}]}}",
        )?;
        namespace.wait("pod/hand", "condition=Ready")?;
        Ok(Self { namespace })
    }

    /// Sends a signal to a redis-server.
    pub(super) fn redis(&self, signal: &str, pod: &str) -> Result<(), Failed> {
        self.signal(signal, "redis-server", &self.namespace.name, pod)
    }

    /// Sends a signal to a replica of the operator.
    pub(super) fn operator(&self, signal: &str, pod: &str) -> Result<(), Failed> {
        self.operator_in(OPERATOR, signal, pod)
    }

    /// The same to an operator in another namespace.
    pub(super) fn operator_in(&self, namespace: &str, signal: &str, pod: &str) -> Result<(), Failed> {
        self.signal(signal, "redis-operator", namespace, pod)
    }

    fn signal(&self, signal: &str, program: &str, namespace: &str, pod: &str) -> Result<(), Failed> {
        let path = "jsonpath={.metadata.uid}";
        let kubectl = |words: &[&str]| self.namespace.cluster.kubectl(words);
        let uid = kubectl(&["--namespace", namespace, "get", "pod", pod, "--output", path])?;
        // Some container runtimes write the pod's id with underscores.
        let other = uid.replace('-', "_");
        let script = format!(
            "for process in /proc/[0-9]*; do\n\
             read -r name 2>/dev/null <$process/comm && [ \"$name\" = {program} ] || continue\n\
             while read -r group; do case $group in\n\
             *{uid}* | *{other}*) kill -{signal} ${{process#/proc/}} && echo sent; break ;;\n\
             esac; done <$process/cgroup\n\
             done"
        );
        let said = self.namespace.kubectl(&["exec", "hand", "--", "/bin/sh", "-c", &script])?;
        if said.trim() == "sent" {
            Ok(())
        } else {
            Err(format!("no {program} in pod {pod}: `{said}`").into())
        }
    }
}
