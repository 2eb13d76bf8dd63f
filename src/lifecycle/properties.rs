//! What an installed operator is and needs, by the properties that OLM wrote into its ClusterServiceVersion.

use serde_json::Value;

use super::api::{ClusterServiceVersion, Named as _, label};
use super::offer::{Need, needs};

/// The package of an installed operator, by the properties that OLM wrote into it.
pub(super) fn package_of(csv: &ClusterServiceVersion) -> Option<String> {
    let properties = properties_of(csv);
    let package = properties.iter().find(|found| found["type"] == "olm.package")?;
    package["value"]["packageName"].as_str().map(str::to_owned)
}

/// What an installed operator needs from others, by the same properties.
pub(super) fn needs_of(csv: &ClusterServiceVersion) -> Vec<Need> {
    needs(&properties_of(csv))
}

/// Whether an operator needs what another one, of a package, provides.
pub(super) fn requires(
    user: &ClusterServiceVersion,
    provider: &ClusterServiceVersion,
    package: &str,
) -> bool {
    let owned = &provider.spec.custom_resource_definitions.owned;
    let required = &user.spec.custom_resource_definitions.required;
    required.iter().any(|crd| owned.iter().any(|owned| owned.name == crd.name))
        || needs_of(user).iter().any(|need| match need {
            Need::Api(api) => owned.iter().any(|owned| owned.gvk() == *api),
            Need::Package { name, .. } => name == package,
        })
}

fn properties_of(csv: &ClusterServiceVersion) -> Vec<Value> {
    let written = csv.annotation(label::PROPERTIES).and_then(|text| serde_json::from_str::<Value>(text).ok());
    written.and_then(|written| written["properties"].as_array().cloned()).unwrap_or_default()
}
