use crate::finding::Findings;
use crate::names::check_subdomain;
use crate::validate::facts::Facts;
use crate::validate::{INSTALL, Rule, rule};
use crate::yaml::steps;

rule!("service-account-name-invalid", Error, INSTALL, "service_account_name_invalid.md");

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
