//! Every cause that is known, with its page in `docs/doctor.md`, in the order of OLM's work: what comes first explains the rest.

use super::Level;

/// A cause that is known.
#[derive(Clone, Copy, Debug)]
pub struct Code {
    /// The code: stable, and never used for anything else.
    pub name: &'static str,
    /// How bad it is.
    pub level: Level,
    /// What it is, in a few words.
    pub title: &'static str,
    /// What it means, how to see it, how to repair it and what that costs, in Markdown.
    pub page: &'static str,
}

impl Code {
    /// Whether it is about a version that does not come up. Where an older one still runs, the way back to that is the first repair.
    pub fn has_way_back(&self) -> bool {
        self.level == Level::Error && rank(self.name) >= rank(UNSUPPORTED_KIND.name)
    }
}

macro_rules! codes {
    ($($name:ident = $code:literal $level:ident $title:literal;)+) => {
        $(
            pub(super) static $name: Code = Code {
                name: $code,
                level: Level::$level,
                title: $title,
                page: include_str!(concat!("pages/", $code, ".md")),
            };
        )+

        /// All of them.
        pub static CODES: &[&Code] = &[$(&$name),+];
    };
}

codes! {
    OLM_NOT_RUNNING = "olm-not-running" Error "OLM does not run";
    NAMESPACE_TERMINATING = "namespace-terminating" Error "the namespace is being deleted";
    DELETION_BLOCKED = "deletion-blocked" Error "a finalizer keeps an object from being deleted";
    NO_OPERATOR_GROUP = "no-operator-group" Error "no OperatorGroup";
    SEVERAL_OPERATOR_GROUPS = "several-operator-groups" Error "more than one OperatorGroup";
    INSTALLER_ACCOUNT_MISSING = "installer-account-missing" Error "the ServiceAccount of the OperatorGroup is missing";
    COPIED_CSV = "copied-csv" Error "the Subscription adopted a copied ClusterServiceVersion";
    CATALOG_NOT_FOUND = "catalog-not-found" Error "no such CatalogSource";
    CATALOG_INVALID = "catalog-invalid" Error "the CatalogSource is invalid";
    CATALOG_IMAGE_PULL = "catalog-image-pull" Error "the image of the catalog cannot be pulled";
    CATALOG_OUT_OF_MEMORY = "catalog-out-of-memory" Error "the catalog pod runs out of memory";
    CATALOG_CRASHING = "catalog-crashing" Error "the catalog pod crashes";
    CATALOG_POD_PENDING = "catalog-pod-pending" Error "the catalog pod does not start";
    CATALOG_POD_CHANGED = "catalog-pod-changed" Error "something changes the image of the catalog pod";
    CATALOG_UNREACHABLE = "catalog-unreachable" Error "the catalog does not answer";
    PACKAGE_NOT_FOUND = "package-not-found" Error "no such package";
    CHANNEL_NOT_FOUND = "channel-not-found" Error "no such channel";
    STARTING_CSV_NOT_FOUND = "starting-csv-not-found" Error "no such startingCSV";
    CSV_ORPHANED = "csv-orphaned" Error "a ClusterServiceVersion that no Subscription references";
    API_CONFLICT = "api-conflict" Error "two operators provide the same API";
    DEPENDENCY_MISSING = "dependency-missing" Error "a dependency is in no catalog";
    RESOLUTION_FAILED = "resolution-failed" Error "OLM finds no solution";
    BUNDLE_IMAGE_PULL = "bundle-image-pull" Error "the bundle image cannot be pulled";
    BUNDLE_INVALID = "bundle-invalid" Error "the bundle cannot be unpacked";
    BUNDLE_WITHOUT_CSV = "bundle-without-csv" Error "the bundle has no ClusterServiceVersion";
    UNPACK_FAILED = "unpack-failed" Error "the unpack Job failed";
    UPGRADE_BLOCKED = "upgrade-blocked" Warning "OLM stays below the head of the channel";
    APPROVAL_REQUIRED = "approval-required" Warning "an InstallPlan waits for approval";
    UNSUPPORTED_KIND = "unsupported-kind" Error "the bundle has an object that OLM does not install";
    IMMUTABLE_FIELD = "immutable-field" Error "the new version changes a field that Kubernetes lets nobody change";
    OBJECT_INVALID = "object-invalid" Error "Kubernetes refuses an object of the operator";
    CRD_INVALIDATES_RESOURCES = "crd-invalidates-resources" Error "the new CRD rejects custom resources that exist";
    CRD_STORED_VERSION = "crd-stored-version" Error "the new CRD drops a stored version";
    WEBHOOK_UNREACHABLE = "webhook-unreachable" Error "an admission webhook does not answer";
    CONVERSION_WEBHOOK = "conversion-webhook" Error "a conversion webhook does not answer";
    QUOTA_EXCEEDED = "quota-exceeded" Error "a quota is exhausted";
    LIMIT_RANGE = "limit-range" Error "a LimitRange refuses the pods";
    POD_SECURITY = "pod-security" Error "Pod Security refuses the pods";
    RIGHTS_MISSING = "rights-missing" Error "rights are missing";
    PLAN_FAILED = "plan-failed" Error "the InstallPlan failed";
    PLAN_DELETED = "plan-deleted" Error "the InstallPlan was deleted before it was complete";
    CSV_DELETED = "csv-deleted" Error "the ClusterServiceVersion was deleted";
    REPLACED_BY_NOTHING = "replaced-by-nothing" Error "replaced by a ClusterServiceVersion that does not exist";
    NOT_UPGRADEABLE = "not-upgradeable" Warning "the operator does not allow upgrades now";
    UNSUPPORTED_INSTALL_MODE = "unsupported-install-mode" Error "the operator does not support the OperatorGroup's namespaces";
    OPERATOR_GROUP_CONFLICT = "operator-group-conflict" Error "another OperatorGroup provides the same API";
    KUBERNETES_TOO_OLD = "kubernetes-too-old" Error "Kubernetes is too old for the operator";
    REQUIRED_API_MISSING = "required-api-missing" Error "a required API does not exist";
    CRD_NAMES_TAKEN = "crd-names-taken" Error "another CRD has a name of the operator's CRD";
    OWNED_CRD_MISSING = "owned-crd-missing" Error "a CRD of the operator does not exist";
    API_SERVICE_DOWN = "api-service-down" Error "an aggregated API does not answer";
    CERTIFICATE_EXPIRED = "certificate-expired" Error "a certificate that OLM created has expired";
    REQUIREMENT_MISSING = "requirement-missing" Error "a requirement of the operator is not met";
    CSV_FAILED = "csv-failed" Error "the ClusterServiceVersion failed";
    IMAGE_PULL = "image-pull" Error "the operator image cannot be pulled";
    IMAGE_PULL_SECRET = "image-pull-secret" Error "the registry refuses to hand out the image";
    OUT_OF_MEMORY = "out-of-memory" Error "the operator runs out of memory";
    CRASHING = "crashing" Error "the operator crashes";
    CONTAINER_CONFIG = "container-config" Error "a container cannot be configured";
    NODE_PRESSURE = "node-pressure" Error "nodes are short of memory, disk or process IDs";
    UNSCHEDULABLE = "unschedulable" Error "no node fits the operator pod";
    MOUNT_FAILED = "mount-failed" Error "a volume or the network of the pod cannot be set up";
    PODS_REFUSED = "pods-refused" Error "the pods of the operator are refused";
    NOT_READY = "not-ready" Error "the operator runs and is not ready";
    PROGRESS_DEADLINE = "progress-deadline" Error "the Deployment missed its progress deadline";
    DEPLOYMENT_MISSING = "deployment-missing" Error "the Deployment of the operator does not exist";
    SCALED_TO_ZERO = "scaled-to-zero" Warning "the Deployment of the operator was scaled to zero";
    NOT_COLLECTED = "not-collected" Warning "objects that show the cause were not collected";
    NO_PROGRESS = "no-progress" Error "nothing happens";
}

/// Where a code stands.
pub(super) fn rank(code: &str) -> usize {
    CODES.iter().position(|known| known.name == code).unwrap_or(CODES.len())
}

/// Whether a cause sometimes passes by itself: registries and networks come back, pods come up at the next try.
pub(super) fn may_pass(code: &str) -> bool {
    [
        &CATALOG_IMAGE_PULL,
        &CATALOG_OUT_OF_MEMORY,
        &CATALOG_CRASHING,
        &CATALOG_POD_PENDING,
        &CATALOG_UNREACHABLE,
        &CATALOG_POD_CHANGED,
        &RESOLUTION_FAILED,
        &BUNDLE_IMAGE_PULL,
        &UNPACK_FAILED,
        &WEBHOOK_UNREACHABLE,
        &CONVERSION_WEBHOOK,
        &NOT_UPGRADEABLE,
        &API_SERVICE_DOWN,
        &REQUIREMENT_MISSING,
        &CSV_FAILED,
        &IMAGE_PULL,
        &IMAGE_PULL_SECRET,
        &OUT_OF_MEMORY,
        &CRASHING,
        &CONTAINER_CONFIG,
        &NODE_PRESSURE,
        &UNSCHEDULABLE,
        &MOUNT_FAILED,
        &PODS_REFUSED,
        &DEPLOYMENT_MISSING,
    ]
    .iter()
    .any(|one| one.name == code)
}

/// Whether a repair of a cause may change which namespaces an OperatorGroup selects.
pub(super) fn is_of_groups(code: &str) -> bool {
    [&NO_OPERATOR_GROUP, &SEVERAL_OPERATOR_GROUPS, &UNSUPPORTED_INSTALL_MODE, &OPERATOR_GROUP_CONFLICT]
        .iter()
        .any(|one| one.name == code)
}

/// Whether a cause is about finding and unpacking the next version.
pub(super) fn is_upstream(code: &str) -> bool {
    (rank(CATALOG_NOT_FOUND.name)..=rank(UNPACK_FAILED.name)).contains(&rank(code))
        && code != CSV_ORPHANED.name
}
