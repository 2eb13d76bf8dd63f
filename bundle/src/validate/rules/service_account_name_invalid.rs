use crate::finding::{Code, Findings, Level};
use crate::names::check_subdomain;
use crate::validate::facts::Facts;
use crate::validate::{INSTALL, Rule};
use crate::yaml::steps;

pub(crate) static RULE: Rule = Rule {
    code: Code {
        name: "service-account-name-invalid",
        level: Level::Error,
        suite: INSTALL,
        docs: include_str!("service_account_name_invalid.md"),
    },
    check,
};

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(csv) = facts.csv() else { return };
    let spec = &csv.typed.spec.install.spec;
    for (field, permissions) in
        [("permissions", &spec.permissions), ("clusterPermissions", &spec.cluster_permissions)]
    {
        for (index, entry) in permissions.iter().enumerate() {
            let name = entry.service_account_name.as_str();
            let Err(why) = check_subdomain(name) else { continue };
            let message = format!("`{}` cannot name a service account: {why}", name.replace('`', "'"));
            let path = steps!("spec", "install", "spec", field, index, "serviceAccountName");
            let finding = csv.object.finding(&RULE.code, message, path);
            findings
                .push(finding.help("use the `serviceAccountName` of the deployment that needs the rights"));
        }
    }
}
