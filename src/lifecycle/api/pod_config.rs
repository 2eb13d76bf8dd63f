//! Settings of pods that users write into a file. They are checked here: an API server drops a field that it does not know without
//! a word, and the setting is missing.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    Affinity, EnvFromSource, EnvVar, ResourceRequirements, Toleration, Volume, VolumeMount,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use olmkit_bundle::suggest::did_you_mean;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Reads a field as its type, and writes it again.
type Read = fn(&Value) -> serde_json::Result<Value>;

/// The settings that a field of OLM's takes.
#[derive(Clone, Copy, Debug)]
pub struct PodConfig {
    /// The field, as in `spec.config` of a Subscription.
    pub field: &'static str,
    fields: &'static [(&'static str, Read)],
}

/// `spec.config` of a Subscription (`SubscriptionConfig` of operator-framework/api).
pub const SUBSCRIPTION: PodConfig = PodConfig {
    field: "`spec.config` of a Subscription",
    fields: &[
        ("affinity", read::<Affinity>),
        ("annotations", read::<BTreeMap<String, String>>),
        ("env", read::<Vec<EnvVar>>),
        ("envFrom", read::<Vec<EnvFromSource>>),
        ("nodeSelector", read::<BTreeMap<String, String>>),
        ("resources", read::<ResourceRequirements>),
        ("selector", read::<LabelSelector>),
        ("tolerations", read::<Vec<Toleration>>),
        ("volumeMounts", read::<Vec<VolumeMount>>),
        ("volumes", read::<Vec<Volume>>),
    ],
};

/// `spec.grpcPodConfig` of a CatalogSource (`GrpcPodConfig` of operator-framework/api).
pub const CATALOG_SOURCE: PodConfig = PodConfig {
    field: "`spec.grpcPodConfig` of a CatalogSource",
    fields: &[
        ("affinity", read::<Affinity>),
        ("extractContent", read::<BTreeMap<String, String>>),
        ("memoryTarget", read::<Quantity>),
        ("nodeSelector", read::<BTreeMap<String, String>>),
        ("priorityClassName", read::<String>),
        ("securityContextConfig", read::<String>),
        ("tolerations", read::<Vec<Toleration>>),
    ],
};

/// Settings that OLM would not take, or not as they are meant.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PodConfigError {
    /// There is no such field.
    #[error("unknown field `{path}`")]
    Unknown {
        /// Its path.
        path: String,
        /// What is known instead.
        help: String,
    },
    /// A field has another type.
    #[error("invalid field `{name}`")]
    Type {
        /// The field.
        name: String,
        /// Why.
        source: serde_json::Error,
    },
}

impl PodConfig {
    /// Checks the names and types of settings, nested ones included.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check(&self, settings: &Value) -> Result<(), PodConfigError> {
        let fields = settings.as_object().into_iter().flatten();
        for (name, value) in fields.filter(|(_, value)| !value.is_null()) {
            let Some((_, read)) = self.fields.iter().find(|(known, _)| known == name) else {
                let known = self.fields.iter().map(|(known, _)| *known);
                let help = did_you_mean(name, known.clone()).unwrap_or_else(|| {
                    format!("write what is below {}: {}", self.field, known.collect::<Vec<_>>().join(", "))
                });
                return Err(PodConfigError::Unknown { path: name.clone(), help });
            };
            let value = with_quantities(name, value);
            let taken = read(&value).map_err(|source| PodConfigError::Type { name: name.clone(), source })?;
            if let Some(path) = lost(&value, &taken, name) {
                let help = "Kubernetes has no such field there: check the spelling".to_owned();
                return Err(PodConfigError::Unknown { path, help });
            }
        }
        Ok(())
    }
}

fn read<T: DeserializeOwned + Serialize>(value: &Value) -> serde_json::Result<Value> {
    serde_json::to_value(serde_json::from_value::<T>(value.clone())?)
}

/// The same with quantities as text: an API server takes `cpu: 1` too.
fn with_quantities(name: &str, value: &Value) -> Value {
    match value {
        Value::Number(number) if ["divisor", "memoryTarget", "sizeLimit"].contains(&name) => {
            Value::String(number.to_string())
        }
        Value::Object(fields) => {
            let amounts = ["limits", "requests"].contains(&name);
            let field = |(field, value): (&String, &Value)| match value {
                Value::Number(number) if amounts => (field.clone(), Value::String(number.to_string())),
                value => (field.clone(), with_quantities(field, value)),
            };
            Value::Object(fields.iter().map(field).collect())
        }
        Value::Array(items) => items.iter().map(|item| with_quantities(name, item)).collect(),
        value => value.clone(),
    }
}

/// The path of the first field that was not taken over.
fn lost(given: &Value, taken: &Value, path: &str) -> Option<String> {
    match (given, taken) {
        (Value::Object(given), Value::Object(taken)) => given
            .iter()
            .filter(|(_, value)| !value.is_null())
            .find_map(|(name, value)| match taken.get(name) {
                Some(taken) => lost(value, taken, &format!("{path}.{name}")),
                None => Some(format!("{path}.{name}")),
            }),
        (Value::Array(given), Value::Array(taken)) => given
            .iter()
            .zip(taken)
            .enumerate()
            .find_map(|(at, (given, taken))| lost(given, taken, &format!("{path}[{at}]"))),
        _ => None,
    }
}
