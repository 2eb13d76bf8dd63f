//! Objects as JSON text. The types have a field for everything that Kubernetes knows, so they take up to eight times the memory.

use std::{borrow::Cow, fmt, marker::PhantomData};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{DeserializeOwned, Error},
};

/// An object in a cache: its metadata, and the rest as text.
pub struct Packed<K> {
    metadata: ObjectMeta,
    rest: Box<str>,
    kind: PhantomData<fn() -> K>,
}

impl<K> Clone for Packed<K> {
    fn clone(&self) -> Self {
        Self { metadata: self.metadata.clone(), rest: self.rest.clone(), kind: PhantomData }
    }
}

/// Without the rest, which may be a password.
impl<K> fmt::Debug for Packed<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Packed").field("metadata", &self.metadata).finish_non_exhaustive()
    }
}

impl<K> Packed<K>
where
    K: Resource + DeserializeOwned,
{
    /// The object itself. It is there: what cannot be read again is an error of the watch, and no object that is missing.
    pub fn unpack(&self) -> Option<K> {
        let mut object: K = serde_json::from_str(&self.rest).ok()?;
        *object.meta_mut() = self.metadata.clone();
        Some(object)
    }

    /// Changes the object; one that could not be read afterwards stays as it is.
    pub fn change(&mut self, change: impl FnOnce(&mut K))
    where
        K: Serialize,
    {
        let Some(mut object) = self.unpack() else { return };
        change(&mut object);
        if let Ok(packed) = Self::of(object) {
            *self = packed;
        }
    }

    fn of(mut object: K) -> serde_json::Result<Self>
    where
        K: Serialize,
    {
        let metadata = std::mem::take(object.meta_mut());
        let rest: Box<str> = serde_json::to_string(&object)?.into();
        serde_json::from_str::<K>(&rest)?;
        Ok(Self { metadata, rest, kind: PhantomData })
    }
}

impl<'de, K> Deserialize<'de> for Packed<K>
where
    K: Resource + Serialize + DeserializeOwned,
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::of(K::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

impl<K: Resource<DynamicType = ()>> Resource for Packed<K> {
    type DynamicType = ();
    type Scope = K::Scope;

    fn kind((): &()) -> Cow<'_, str> {
        K::kind(&())
    }

    fn group((): &()) -> Cow<'_, str> {
        K::group(&())
    }

    fn version((): &()) -> Cow<'_, str> {
        K::version(&())
    }

    fn plural((): &()) -> Cow<'_, str> {
        K::plural(&())
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Secret;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_packed_object_is_what_it_was() {
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": "rc-auth", "namespace": "ns", "labels": {"a": "b"}},
            "data": {"password": "c2VjcmV0"}, "immutable": false, "type": "Opaque",
        });
        let packed: Packed<Secret> = serde_json::from_value(secret.clone()).unwrap();
        assert_eq!(packed.meta().name.as_deref(), Some("rc-auth"));
        assert_eq!(serde_json::to_value(packed.clone().unpack().unwrap()).unwrap(), secret);
        assert!(!format!("{packed:?}").contains("c2VjcmV0"), "{packed:?}");
    }
}
