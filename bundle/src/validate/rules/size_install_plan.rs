use crate::finding::{Finding, Findings};
use crate::validate::facts::Facts;
use crate::validate::{Rule, SIZE, rule};

rule!("size-install-plan", Warning, SIZE, "size_install_plan.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let total: u64 = facts.object_sizes().iter().map(|(_, bytes)| bytes).sum();
    if total > MAX_OBJECT_BYTES {
        findings.push(
            Finding::new(&RULE.code, format!("the objects take {total} bytes in JSON, and an InstallPlan with them can have {MAX_OBJECT_BYTES}"))
                .at(facts.place())
                .subject(facts.name)
                .help("refer to the bundle's image in catalogs, or shorten the descriptions of CRDs"),
        );
    }
}

/// What etcd takes in one request unless it is told otherwise (`--max-request-bytes`).
const MAX_OBJECT_BYTES: u64 = 3 << 19;
