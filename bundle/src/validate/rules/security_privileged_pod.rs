use crate::finding::Findings;
use crate::validate::facts::Facts;
use crate::validate::{Rule, SECURITY, rule};
use crate::yaml::{Step, steps};

rule!("security-privileged-pod", Warning, SECURITY, "security_privileged_pod.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(csv) = facts.csv() else { return };
    for (index, deployment) in csv.typed.spec.install.spec.deployments.iter().enumerate() {
        let Some(pod) = &deployment.spec.template.spec else { continue };
        let mut report = |path: &[Step<'_>], message: String| {
            let above = steps!("spec", "install", "spec", "deployments", index, "spec", "template", "spec");
            let path: Vec<_> = above.iter().chain(path).copied().collect();
            let finding = csv.object.finding(&RULE.code, message, &path);
            findings.push(finding.help("remove it, unless the operator cannot do without"));
        };
        for (field, set) in
            [("hostNetwork", pod.host_network), ("hostPID", pod.host_pid), ("hostIPC", pod.host_ipc)]
        {
            if set == Some(true) {
                report(
                    steps!(field),
                    format!("the pods of `{}` use `{field}` of their node", deployment.name),
                );
            }
        }
        for (at, volume) in pod.volumes.iter().flatten().enumerate() {
            if let Some(host) = &volume.host_path {
                report(
                    steps!("volumes", at, "hostPath"),
                    format!(
                        "the pods of `{}` use `{}` of their node",
                        deployment.name,
                        host.path.replace('`', "'")
                    ),
                );
            }
        }
        let lists = [
            ("initContainers", pod.init_containers.as_deref().unwrap_or_default()),
            ("containers", pod.containers.as_slice()),
        ];
        for (list, containers) in lists {
            for (at, container) in containers.iter().enumerate() {
                let Some(context) = &container.security_context else { continue };
                let path = steps!(list, at, "securityContext");
                if context.privileged == Some(true) {
                    report(path, format!("the container `{}` is privileged", container.name));
                }
                if context.run_as_user == Some(0) {
                    report(path, format!("the container `{}` runs as root", container.name));
                }
                let added = context.capabilities.iter().flat_map(|all| all.add.iter().flatten());
                for capability in added
                    .filter(|name| matches!(name.as_str(), "ALL" | "SYS_ADMIN" | "NET_ADMIN" | "SYS_PTRACE"))
                {
                    report(
                        path,
                        format!("the container `{}` has the capability `{capability}`", container.name),
                    );
                }
            }
        }
    }
}
