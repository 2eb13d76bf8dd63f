use crate::finding::Findings;
use crate::validate::facts::Facts;
use crate::validate::{GOOD_PRACTICES, Rule, rule};
use crate::yaml::steps;

rule!("container-without-requests", Warning, GOOD_PRACTICES, "container_without_requests.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(csv) = facts.csv() else { return };
    for (index, deployment) in csv.typed.spec.install.spec.deployments.iter().enumerate() {
        let pod = deployment.spec.template.spec.as_ref();
        for (container, spec) in pod.into_iter().flat_map(|pod| &pod.containers).enumerate() {
            if spec.resources.as_ref().is_some_and(|resources| resources.requests.is_some()) {
                continue;
            }
            let path = steps!("spec", "install", "spec", "deployments", index, "spec", "template", "spec");
            let path: Vec<_> = path.iter().chain(steps!("containers", container, "name")).copied().collect();
            let message = format!("the container `{}` requests neither CPU nor memory", spec.name);
            let finding =
                csv.object.finding(&RULE.code, message, &path).subject(format!("container {}", spec.name));
            findings.push(finding.help("set `resources.requests.cpu` and `resources.requests.memory`"));
        }
    }
}
