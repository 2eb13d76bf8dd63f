//! PriorityClasses: names and values that are the cluster's own.

use k8s_openapi::api::scheduling::v1::PriorityClass;

use crate::refused::{Check, plain};
use crate::yaml::steps;

/// The highest value that is not the cluster's own.
const MAX_VALUE: i32 = 1_000_000_000;
const POLICIES: [&str; 2] = ["PreemptLowerPriority", "Never"];

pub(super) fn check(check: &mut Check<'_>, class: &PriorityClass) {
    let name = class.metadata.name.as_deref().unwrap_or("");
    if name.starts_with("system-") {
        let message = format!("`{}`: names that start with `system-` are the cluster's own", plain(name));
        check.push(steps!("metadata", "name"), message, "use another name");
    }
    if class.value > MAX_VALUE {
        let message = format!("the priority is {}, and {MAX_VALUE} is the highest allowed", class.value);
        check.push(steps!("value"), message, "set a lower `value`");
    }
    check.one_of(steps!("preemptionPolicy"), class.preemption_policy.as_deref(), &POLICIES);
}
