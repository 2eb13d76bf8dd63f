//! PodDisruptionBudgets: how many pods stay.

use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use crate::refused::{Check, plain};
use crate::yaml::{Step, steps};

const EVICTION_POLICIES: [&str; 2] = ["IfHealthyBudget", "AlwaysAllow"];

pub(super) fn check(check: &mut Check<'_>, budget: &PodDisruptionBudget) {
    let Some(spec) = &budget.spec else { return };
    check.below(steps!("spec"), |check| {
        if spec.min_available.is_some() && spec.max_unavailable.is_some() {
            let message = "both `minAvailable` and `maxUnavailable` are set, expected one of them";
            check.push(steps!("maxUnavailable"), message, "remove one of the two");
        }
        let counts = [("minAvailable", &spec.min_available), ("maxUnavailable", &spec.max_unavailable)];
        for (key, count) in counts {
            if let Some(count) = count {
                self::count(check, key, count);
            }
        }
        if let Some(selector) = &spec.selector {
            check.label_selector(steps!("selector"), selector);
        }
        let policy = spec.unhealthy_pod_eviction_policy.as_deref();
        check.one_of(steps!("unhealthyPodEvictionPolicy"), policy, &EVICTION_POLICIES);
    });
}

/// A number of pods, or a part of them.
fn count(check: &mut Check<'_>, key: &'static str, count: &IntOrString) {
    match count {
        IntOrString::Int(number) => check.not_negative(&[Step::Key(key)], Some(i64::from(*number))),
        IntOrString::String(text) => {
            let digits = text.strip_suffix('%').unwrap_or("");
            let is_percentage = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            if !is_percentage || digits.parse::<u32>().is_ok_and(|percent| percent > 100) {
                let message = format!("`{key}` is `{}`, expected a number or a percentage", plain(text));
                let help = "write `1` without quotes, or a percentage up to `100%`";
                check.push(&[Step::Key(key)], message, help);
            }
        }
    }
}
