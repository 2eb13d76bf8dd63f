//! The kinds of findings that comparing two versions can bring.

use crate::finding::{Code, Level};

/// The suite of findings about what an upgrade changes.
pub const SUITE: &str = "diff";

macro_rules! codes {
    ($($constant:ident $name:literal $level:ident $docs:literal)*) => {
        $(
            #[doc = $docs]
            pub static $constant: Code = Code { name: $name, level: Level::$level, suite: SUITE, docs: $docs };
        )*
        /// Every code, sorted by name.
        pub static ALL: &[&Code] = &[$(&$constant),*];
    };
}

codes! {
    API_SERVICE_ADDED "api-service-added" Warning
        "The operator serves an API with an APIService from now on. OLM v1 refuses such bundles."
    CRD_ADDED "crd-added" Info
        "The new version brings a CustomResourceDefinition that the old one does not have."
    CRD_CONVERSION_ADDED "crd-conversion-added" Warning
        "Versions are converted by a webhook from now on. Until the webhook answers, objects in other versions than the stored one cannot be read."
    CRD_CONVERSION_CHANGED "crd-conversion-changed" Warning
        "The conversion webhook of a CRD changes: its address, or the review versions that it understands."
    CRD_CONVERSION_REMOVED "crd-conversion-removed" Error
        "The CRD no longer has a conversion webhook. Kubernetes then only changes `apiVersion` when it converts: fields that the versions do not share are lost."
    CRD_NAMES_CHANGED "crd-names-changed" Error
        "The group, kind, plural, singular or list kind of a CRD changes. Kubernetes does not rename objects: existing ones stay under the old name."
    CRD_PRESERVE_UNKNOWN_FIELDS_CHANGED "crd-preserve-unknown-fields-changed" Error
        "`spec.preserveUnknownFields` changes. Once it is false, fields that the schema does not know are removed from every object that is written."
    CRD_PRINTER_COLUMN_CHANGED "crd-printer-column-changed" Warning
        "A column of `kubectl get` is removed or shows something else. Scripts that read the table see other text."
    CRD_REMOVED "crd-removed" Error
        "The new version no longer has a CustomResourceDefinition. OLM v1 deletes the CRD, and with it every object of its kind; OLM v0 leaves both behind without an operator."
    CRD_SCOPE_CHANGED "crd-scope-changed" Error
        "A CRD changes between `Namespaced` and `Cluster`. Kubernetes refuses this change: the CRD has to be deleted, with all its objects."
    CRD_SELECTABLE_FIELD_REMOVED "crd-selectable-field-removed" Warning
        "A field can no longer be used in field selectors. Clients that select by it get an error."
    CRD_SERVED_VERSION_REMOVED "crd-served-version-removed" Error
        "A version of a custom resource is no longer served. Clients, manifests and Helm charts that name it fail. Deprecate it first, and stop serving it some versions later."
    CRD_SERVED_VERSIONS_DIFFER "crd-served-versions-differ" Error
        "Two served versions of a new CRD do not admit the same objects, and there is no conversion webhook. OLM v1 refuses such an upgrade unless the old CRD had the same difference."
    CRD_SERVED_VERSIONS_NOT_COMPARED "crd-served-versions-not-compared" Error
        "The new CRD serves more than 100 versions, or they differ in more than 10,000 places: not every served version was compared with every other, as OLM v1 does."
    CRD_SHORT_NAME_REMOVED "crd-short-name-removed" Warning
        "A short name or category of a CRD is removed. Commands such as `kubectl get SHORTNAME` fail."
    CRD_STORAGE_VERSION_CHANGED "crd-storage-version-changed" Warning
        "New objects are stored in another version. Existing objects stay in the old one until they are written again, so the old version has to stay in the CRD until they are migrated."
    CRD_STORED_VERSION_REMOVED "crd-stored-version-removed" Error
        "The CRD loses a version that objects may be stored in. Kubernetes refuses this, OLM v0 stops with `risk of data loss`, OLM v1 with `storedVersionRemoval`. Migrate the objects in one release, remove the version in a later one."
    CRD_SUBRESOURCE_CHANGED "crd-subresource-changed" Warning
        "A subresource is added or changes. Once a CRD has `status` as a subresource, writes to the object itself no longer change its status."
    CRD_SUBRESOURCE_REMOVED "crd-subresource-removed" Error
        "The CRD loses its `status` or `scale` subresource. Controllers that write the status, `kubectl scale` and autoscalers fail."
    CRD_UPGRADE_REFUSED "crd-upgrade-refused" Error
        "OLM v1 refuses the upgrade for this change, though it may be harmless. Its check has a name, which the finding says; a ClusterExtension can turn the checks off with `install.preflight.crdUpgradeSafety.enforcement: None`."
    CRD_VERSION_ADDED "crd-version-added" Info
        "A custom resource gets a new version."
    CRD_VERSION_DEPRECATED "crd-version-deprecated" Warning
        "A version of a custom resource is deprecated: clients that use it get a warning from now on."
    CRD_VERSION_REMOVED "crd-version-removed" Info
        "A version that was neither served nor stored is removed."
    DEPENDENCY_ADDED "dependency-added" Warning
        "The operator needs a package or an API that it did not need before. OLM v0 installs it along, or does not upgrade; OLM v1 refuses bundles with dependencies."
    DEPENDENCY_CHANGED "dependency-changed" Warning
        "The operator needs another range of versions of a package. Where the installed version is outside, OLM v0 upgrades it along, or does not upgrade."
    DEPENDENCY_REMOVED "dependency-removed" Info
        "The operator no longer needs a package or an API. What OLM v0 installed for it stays."
    DEPLOYMENT_ADDED "deployment-added" Info
        "The operator has another Deployment."
    DEPLOYMENT_CHANGED "deployment-changed" Info
        "What a Deployment of the operator runs changes: replicas, service account, containers, command, arguments, environment or resources."
    DEPLOYMENT_REMOVED "deployment-removed" Warning
        "A Deployment of the operator is removed. OLM deletes it with the old version."
    DEPLOYMENT_SELECTOR_CHANGED "deployment-selector-changed" Error
        "The selector of a Deployment changes. Kubernetes refuses that for an existing Deployment, so the upgrade fails; give the Deployment another name."
    IMAGE_CHANGED "image-changed" Info
        "A container of the operator runs another image."
    INSTALL_MODE_ADDED "install-mode-added" Info
        "The operator supports another install mode."
    INSTALL_MODE_REMOVED "install-mode-removed" Error
        "The operator no longer supports an install mode. Where an OperatorGroup asks for it, the upgrade ends with `UnsupportedOperatorGroup`; OLM v1 refuses `watchNamespace`."
    LIVE_NOT_CHECKED "live-not-checked" Warning
        "Custom resources of the cluster could not be checked against the new schema: they cannot be listed, or the schema has a rule or a pattern that cannot be evaluated here."
    LIVE_PRUNED "live-pruned" Error
        "Custom resources on the cluster lose a field once they are written under the new schema. `--live` lists and counts them."
    LIVE_REFUSED "live-refused" Error
        "Custom resources on the cluster are no longer valid under the new schema: OLM v0 stops the upgrade, and they cannot be changed until they are corrected. `--live` lists and counts them."
    MAX_OPENSHIFT_VERSION_CHANGED "max-openshift-version-changed" Warning
        "The new version sets another `olm.maxOpenShiftVersion`. OpenShift refuses to upgrade to a newer minor version while the operator is installed."
    MIN_KUBE_VERSION_RAISED "min-kube-version-raised" Warning
        "The operator needs a newer Kubernetes. On older clusters OLM v0 leaves the new version pending; OLM v1 installs it anyway."
    OBJECT_ADDED "object-added" Info
        "The bundle has a new object."
    OBJECT_CHANGED "object-changed" Info
        "An object of the bundle, other than CRDs and the ClusterServiceVersion, changes."
    OBJECT_REMOVED "object-removed" Info
        "An object is no longer in the bundle. OLM removes it with the old version."
    OBJECT_UPDATE_REFUSED "object-update-refused" Error
        "An object of the bundle changes in a way that Kubernetes refuses for existing objects: data of an immutable ConfigMap or Secret, `clusterIP` of a Service, `roleRef` of a binding. The upgrade fails; give the object another name."
    OWNED_API_REMOVED "owned-api-removed" Error
        "The ClusterServiceVersion no longer lists an API as owned. Operators that require it cannot be installed or upgraded, and OLM no longer manages it."
    PERMISSION_ESCALATES "permission-escalates" Warning
        "The operator gets a right that can be turned into others: `escalate` or `bind` on roles, `impersonate`, tokens of service accounts, or all secrets of the cluster."
    PERMISSION_GAINED "permission-gained" Warning
        "The operator may do more than before. Whoever approves the upgrade approves this too."
    PERMISSION_LOST "permission-lost" Info
        "The operator may do less than before."
    POLICY_KUBERNETES_BROKEN "policy-kubernetes-broken" Error
        "The package file promises to support a version of Kubernetes (`policy.kubernetes`) that the bundle does not run on: `minKubeVersion` is higher, or an object of the bundle is of an API that this version does not have."
    POLICY_NOTICE_TOO_SHORT "policy-notice-too-short" Error
        "A field or a served version of an API is removed before it was deprecated for as many minor versions as the package file promises (`policy.deprecationNotice`). A version is deprecated by `deprecated: true`, a field by a line of its description that begins with `Deprecated`. With `--catalog`, earlier bundles count too; otherwise it must be deprecated in the old version."
    POLICY_OPERAND_UNSUPPORTED "policy-operand-unsupported" Error
        "The bundle names an image of an operand whose version is outside what the package file promises to support (`policy.operands`): as the default of a field, in a variable, among the related images or in an example."
    RELATED_IMAGES_CHANGED "related-images-changed" Info
        "Other images have to be mirrored for clusters without access to the registries."
    SAMPLE_NOT_CHECKED "sample-not-checked" Warning
        "A custom resource given with `--samples` is of no version of any CRD of the new bundle, or the schema has a rule or a pattern that cannot be evaluated here."
    SAMPLE_PRUNED "sample-pruned" Error
        "A custom resource that was valid before loses a field once it is written under the new schema. Examples of the old version are checked, and those given with `--samples`."
    SAMPLE_REFUSED "sample-refused" Error
        "A custom resource that was valid before is refused by the new schema. Examples of the old version are checked, and those given with `--samples`."
    SCHEMA_BOUND_NARROWED "schema-bound-narrowed" Error
        "A bound is new or tighter: a maximum or minimum of a number, a length or a count, `multipleOf` or `uniqueItems`. Objects outside it can no longer be written."
    SCHEMA_COMBINATION_NARROWED "schema-combination-narrowed" Error
        "`allOf`, `anyOf`, `oneOf` or `not` admits less than before. Objects that only the old schema admits can no longer be written."
    SCHEMA_DEFAULT_CHANGED "schema-default-changed" Warning
        "A default is new, changes or is removed. Objects that do not set the field behave differently after the upgrade, although they were not changed."
    SCHEMA_ENUM_NARROWED "schema-enum-narrowed" Error
        "A value is no longer allowed. Objects that have it can no longer be written."
    SCHEMA_FIELD_ADDED "schema-field-added" Info
        "A field is new."
    SCHEMA_FIELD_REMOVED "schema-field-removed" Error
        "A field is removed from a schema. Kubernetes removes it from every object that is written, without an error; its value is lost. Keep the field and deprecate it, or bring a new version with a conversion."
    SCHEMA_FORMAT_NARROWED "schema-format-narrowed" Error
        "A format is new or changes. Texts of another format can no longer be written."
    SCHEMA_LIST_TYPE_CHANGED "schema-list-type-changed" Error
        "`x-kubernetes-list-type`, its map keys or `x-kubernetes-map-type` change. Sets and maps refuse duplicates, and server-side apply merges otherwise: owners of fields are lost or conflict."
    SCHEMA_MAP_NARROWED "schema-map-narrowed" Error
        "A map no longer takes any key, or any value. Keys that the schema does not know are removed from every object that is written."
    SCHEMA_NULLABLE_REMOVED "schema-nullable-removed" Error
        "`null` is no longer allowed. Objects that have it can no longer be written, or get the default."
    SCHEMA_PATTERN_NARROWED "schema-pattern-narrowed" Error
        "A pattern is new or changes. Texts that do not match can no longer be written. Whether one pattern admits all that another does is not computed."
    SCHEMA_REQUIRED_ADDED "schema-required-added" Error
        "A field is now required. Objects without it can no longer be written, unless the schema has a default for it."
    SCHEMA_RULE_NARROWED "schema-rule-narrowed" Error
        "A CEL rule is new or changes. Objects that do not keep it can no longer be written, except where the part that it looks at does not change. A new rule that concerns only new fields and holds without them does not break users, though OLM v1 refuses it (`crd-upgrade-refused`)."
    SCHEMA_TYPE_CHANGED "schema-type-changed" Error
        "A field has another type. Objects with a value of the old type can no longer be written."
    SCHEMA_UNKNOWN_FIELDS_PRUNED "schema-unknown-fields-pruned" Error
        "`x-kubernetes-preserve-unknown-fields` is removed. Fields that the schema does not know are removed from every object that is written, without an error."
    SCHEMA_WIDENED "schema-widened" Info
        "A schema admits more than before: a bound is looser, an enum has more values, a field is no longer required. An operator of the old version may not understand what is written now."
    SECURITY_CONTEXT_CHANGED "security-context-changed" Warning
        "The pods of the operator run with other privileges: user, capabilities, privileged containers, or namespaces of the host."
    VERSION_BUMP_TOO_SMALL "version-bump-too-small" Warning
        "The version goes up by less than its changes require. Breaking changes require a major version, additions and changes that users must know about a minor one, anything else a patch; below 1.0.0, breaking changes require a minor version, anything else a patch. An error where the package file has a `policy`."
    VERSION_NOT_HIGHER "version-not-higher" Error
        "The new bundle does not have a higher version than the old one. OLM does not upgrade to it."
    WEBHOOK_ADDED "webhook-added" Warning
        "The operator has another webhook. Requests that it is asked about fail while it does not answer, unless its failure policy is `Ignore`."
    WEBHOOK_CHANGED "webhook-changed" Warning
        "A webhook of the operator changes: its rules, its failure policy, its address."
    WEBHOOK_REMOVED "webhook-removed" Info
        "A webhook of the operator is removed."
}
