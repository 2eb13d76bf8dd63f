//! What keeps OLM from installing a version, known before anything is touched: one list for `plan`, `approve`, `install`, `upgrade`,
//! `operator test` and the doctor. Each has the code that the doctor gives it once it has happened; `--accept CODE` goes on nevertheless.
//!
//! What needs only the manifests is decided here, by pure functions; `preflight` adds what has to be asked of the cluster and
//! of catalogs: CRDs with their custom resources, dependencies, APIs.

use std::collections::BTreeSet;
use std::fmt;

use olmkit_bundle::csv::KIND;
use olmkit_bundle::kinds;
use olmkit_bundle::names::check_csv_name;
use olmkit_bundle::version::{Version, VersionRange, parse_min_kube};
use serde::Serialize;
use serde_json::{Value, json};

use super::api::{InstallModeKind, Key, label};
use super::offer::{Need, Offer, OfferedPackage, needs, optional};
use super::{admission, immutable};
use crate::sentence::Help;

macro_rules! codes {
    ($($name:ident = $code:literal;)+) => {
        $(pub(super) const $name: &str = $code;)+

        /// The codes of all blockers: those of the doctor, as far as they can be known beforehand, and why a plan is not to be approved.
        pub const CODES: &[&str] = &[$($code),+];
    };
}

codes! {
    CONTAINER_CONFIG = "container-config";
    CRD_INVALIDATES_RESOURCES = "crd-invalidates-resources";
    CRD_STORED_VERSION = "crd-stored-version";
    DEPENDENCY_MISSING = "dependency-missing";
    IMAGE_PULL = "image-pull";
    IMMUTABLE_FIELD = "immutable-field";
    KUBERNETES_TOO_OLD = "kubernetes-too-old";
    OBJECT_INVALID = "object-invalid";
    PLAN_SUPERSEDED = "plan-superseded";
    PODS_REFUSED = "pods-refused";
    REQUIRED_API_MISSING = "required-api-missing";
    REQUIREMENT_MISSING = "requirement-missing";
    ROLLED_BACK = "rolled-back";
    UNSUPPORTED_INSTALL_MODE = "unsupported-install-mode";
    UNSUPPORTED_KIND = "unsupported-kind";
}

/// Something that keeps OLM from installing a version.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Blocker {
    /// The code.
    pub code: &'static str,
    /// What it is, with the version.
    pub sentence: String,
    /// The way out.
    pub help: Help,
}

impl Blocker {
    pub(super) fn new(code: &'static str, sentence: String, help: impl Into<Help>) -> Self {
        Self { code, sentence, help: help.into() }
    }

    /// The ways out, and the one that goes on nevertheless. `stop` is the version that an upgrade can go to all the same.
    pub fn ways_out(&self, stop: Option<&str>) -> Help {
        self.until(stop).and(format!("pass `--accept {}` to go on nevertheless", self.code))
    }

    /// The ways out without it.
    pub(super) fn until(&self, stop: Option<&str>) -> Help {
        let help = self.help.clone();
        match stop {
            Some(version) => help.ending(format!("; `--to {version}` stops before it")),
            None => help,
        }
    }
}

impl fmt::Display for Blocker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} [{}]", self.sentence, self.code)
    }
}

impl Serialize for Blocker {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A version that is to be installed.
#[derive(Clone, Copy)]
pub(super) struct Candidate<'c> {
    /// The ClusterServiceVersion.
    pub(super) name: &'c str,
    /// Its manifests, the ClusterServiceVersion among them.
    pub(super) manifests: &'c [Value],
    /// The ClusterServiceVersion that it replaces; none for an install.
    pub(super) before: Option<&'c Value>,
}

/// What a version comes to.
#[derive(Default)]
pub(super) struct Ground<'g> {
    /// The namespace of the operator.
    pub(super) namespace: &'g str,
    /// The namespaces that its OperatorGroup selects; none when nobody knows.
    pub(super) targets: Vec<String>,
    /// The version of Kubernetes; none when nobody knows.
    pub(super) kubernetes: Option<Version>,
    /// What comes with it.
    pub(super) company: Company,
}

/// What comes with a version.
#[derive(Default)]
pub(super) struct Company {
    /// Groups and kinds of the APIs that it and its dependencies bring; none when nobody knows.
    pub(super) brought: Option<BTreeSet<(String, String)>>,
    /// Objects that OLM can do without, by kind and name.
    pub(super) optional: BTreeSet<(String, String)>,
    /// The ClusterServiceVersions of other operators that are replaced along with it; none when nobody knows.
    pub(super) replaced: Option<BTreeSet<String>>,
}

impl Company {
    /// What comes with bundles of a package: they, and whatever their catalog may choose for their needs, and for the needs of that.
    pub(super) fn of(offer: &Offer, package: &OfferedPackage, bundles: &[&str]) -> Self {
        let mut company = Self { brought: Some(BTreeSet::new()), ..Self::default() };
        let mut open: Vec<_> = bundles.iter().filter_map(|name| package.bundles.get(*name)).collect();
        company.optional = open.iter().flat_map(|bundle| optional(&bundle.properties)).collect();
        let mut packages = BTreeSet::new();
        while let (Some(bundle), Some(brought)) = (open.pop(), &mut company.brought) {
            brought.extend(bundle.provides().into_iter().map(|api| (api.group, api.kind)));
            for need in needs(&bundle.properties) {
                let meets = |found: &OfferedPackage| match &need {
                    Need::Api(api) => found.bundles.values().any(|one| one.provides().contains(api)),
                    Need::Package { .. } => true,
                };
                let is_meant =
                    |name: &str| !matches!(&need, Need::Package { name: wanted, .. } if wanted != name);
                let mut found =
                    offer.packages.iter().filter(|(name, one)| is_meant(name) && meets(one)).peekable();
                if found.peek().is_none() {
                    // Another catalog has it, or the cluster.
                    company.brought = None;
                    break;
                }
                open.extend(
                    found
                        .filter(|(name, _)| packages.insert(*name))
                        .flat_map(|(_, one)| one.bundles.values()),
                );
            }
        }
        company
    }

    /// Whether an API may come with it.
    fn brings(&self, group: &str, kind: &str) -> bool {
        let api = (group.to_owned(), kind.to_owned());
        self.brought.as_ref().is_none_or(|all| all.contains(&api))
    }
}

impl<'c> Candidate<'c> {
    /// Its ClusterServiceVersion.
    pub(super) fn csv(self) -> Option<&'c Value> {
        self.manifests.iter().find(|object| object["kind"] == KIND)
    }
}

/// What keeps a version from being installed, as far as manifests tell.
pub(super) fn of(candidate: Candidate<'_>, ground: &Ground<'_>) -> Vec<Blocker> {
    const CHECKS: [fn(Candidate<'_>, &Ground<'_>) -> Vec<Blocker>; 6] =
        [kubernetes, install_mode, kinds_of, selectors, name, objects];
    CHECKS.iter().flat_map(|check| check(candidate, ground)).collect()
}

/// OLM holds `minKubeVersion` against the version of the API server, without its pre-release (operator-lifecycle-manager
/// `pkg/controller/operators/olm/requirements.go`).
fn kubernetes(candidate: Candidate<'_>, ground: &Ground<'_>) -> Vec<Blocker> {
    let needed = candidate.csv().and_then(|csv| csv.pointer("/spec/minKubeVersion")?.as_str());
    let Some(text) = needed.filter(|text| !text.is_empty()) else { return Vec::new() };
    let name = candidate.name;
    let Ok(needed) = parse_min_kube(text) else {
        let sentence = format!("`{name}` cannot be installed: OLM cannot read its minKubeVersion `{text}`");
        let help = "ask its author for all three numbers in `spec.minKubeVersion`, such as 1.25.0";
        return vec![Blocker::new(KUBERNETES_TOO_OLD, sentence, help)];
    };
    let Some(found) = ground.kubernetes.as_ref().filter(|found| **found < needed) else { return Vec::new() };
    let sentence =
        format!("`{name}` cannot be installed: it needs Kubernetes {needed}, and the cluster has {found}");
    vec![Blocker::new(
        KUBERNETES_TOO_OLD,
        sentence,
        "upgrade the cluster, or install a version that runs on it",
    )]
}

fn install_mode(candidate: Candidate<'_>, ground: &Ground<'_>) -> Vec<Blocker> {
    let listed = candidate.csv().and_then(|csv| csv.pointer("/spec/installModes")?.as_array());
    let (Some(listed), false) = (listed, ground.targets.is_empty()) else { return Vec::new() };
    let supported: Vec<&str> = listed
        .iter()
        .filter(|mode| mode["supported"] == true)
        .filter_map(|mode| mode["type"].as_str())
        .collect();
    let needed = InstallModeKind::needed(ground.namespace, &ground.targets);
    let Some(missing) = needed.iter().find(|mode| !supported.contains(&mode.as_str())) else {
        return Vec::new();
    };
    let supported = if supported.is_empty() { "no install mode".to_owned() } else { supported.join(", ") };
    let sentence = format!(
        "`{}` cannot be installed: the OperatorGroup of the namespace `{}` needs the install mode {missing}, and it supports {supported}",
        candidate.name, ground.namespace
    );
    let help = "stay at this version, or install the operator again in a namespace with an OperatorGroup that the new version supports";
    vec![Blocker::new(UNSUPPORTED_INSTALL_MODE, sentence, help)]
}

fn kinds_of(candidate: Candidate<'_>, _: &Ground<'_>) -> Vec<Blocker> {
    // OLM itself adds the Subscription of a dependency.
    let is_installed =
        |kind: &str| kind == "Subscription" || kinds::supported(kind).is_some_and(|kind| kind.installed);
    let stranger = |object: &Value| {
        let key = Key::of(object);
        (!key.kind.is_empty() && !is_installed(&key.kind)).then(|| {
            let sentence = format!(
                "`{}` cannot be installed: its bundle has the {} `{}`, a kind that OLM does not install",
                candidate.name, key.kind, key.name
            );
            let help = "publish a bundle without it, and let the operator or its users create the object";
            Blocker::new(UNSUPPORTED_KIND, sentence, help)
        })
    };
    candidate.manifests.iter().filter_map(stranger).collect()
}

/// The object of a version whose API is to be asked for, by group, version and kind: not every cluster has it, and it does not come
/// with the version.
pub(super) fn asked_for(candidate: Candidate<'_>, ground: &Ground<'_>) -> Vec<(String, String, Key)> {
    let asked = candidate.manifests.iter().filter_map(|object| {
        let key = Key::of(object);
        kinds::supported(&key.kind).filter(|kind| kind.installed)?.crd?;
        let version = object["apiVersion"].as_str()?.rsplit('/').next()?.to_owned();
        let is_spared = ground.company.optional.contains(&(key.kind.clone(), key.name.clone()));
        (!is_spared && !ground.company.brings(&key.group, &key.kind))
            .then(|| (key.group.clone(), version, key))
    });
    asked.collect()
}

/// The ServiceAccounts of a version that its bundle has as objects too.
pub(super) fn shipped_accounts(candidate: Candidate<'_>) -> impl Iterator<Item = &str> {
    let strategy = candidate.csv().map(|csv| &csv["spec"]["install"]["spec"]);
    let lists = strategy.into_iter().flat_map(|own| [&own["permissions"], &own["clusterPermissions"]]);
    let all = lists.filter_map(Value::as_array).flatten();
    let named: BTreeSet<&str> = all.filter_map(|one| one["serviceAccountName"].as_str()).collect();
    // What OLM makes of the permissions stands in some plans beside the objects of the bundle.
    let is_made = |object: &Value| object["metadata"]["labels"].get(label::MANAGED).is_some();
    let accounts = candidate.manifests.iter();
    let accounts = accounts.filter(move |object| object["kind"] == "ServiceAccount" && !is_made(object));
    accounts.filter_map(|object| object["metadata"]["name"].as_str()).filter(move |name| named.contains(name))
}

/// OLM puts the name into labels of all that it creates.
fn name(candidate: Candidate<'_>, _: &Ground<'_>) -> Vec<Blocker> {
    let Err(why) = check_csv_name(candidate.name) else { return Vec::new() };
    let sentence = format!(
        "`{}` cannot be installed: OLM puts its name into labels, and Kubernetes refuses it there: {why}",
        candidate.name
    );
    vec![Blocker::new(OBJECT_INVALID, sentence, "publish a bundle with another `metadata.name`")]
}

/// What the API server refuses whatever else there is. OLM has begun the upgrade by then.
fn objects(candidate: Candidate<'_>, _: &Ground<'_>) -> Vec<Blocker> {
    let others = candidate.manifests.iter().filter(|object| object["kind"] != KIND).filter_map(|object| {
        let key = Key::of(object);
        Some((format!("the {} `{}`", key.kind, key.name), admission::object(object)?))
    });
    let csv = candidate.csv();
    let deployments = csv.and_then(admission::deployments).map(|why| ("a Deployment".to_owned(), why));
    let webhooks = csv.into_iter().flat_map(|csv| {
        let all = csv.pointer("/spec/webhookdefinitions").and_then(Value::as_array).into_iter().flatten();
        all.filter_map(move |one| {
            let named = format!("the webhook `{}`", one["generateName"].as_str().unwrap_or(""));
            Some((named, admission::webhook(csv, one)?))
        })
    });
    let found = others.chain(deployments).chain(webhooks).map(|(what, why)| {
        let sentence = format!(
            "`{}` cannot be installed: Kubernetes refuses {what} of its bundle: {why}",
            candidate.name
        );
        let help = "publish a corrected bundle: `olmkit bundle validate --suite install` shows the place";
        Blocker::new(OBJECT_INVALID, sentence, help)
    });
    found.collect()
}

/// A Deployment that both versions have is updated in place.
fn selectors(candidate: Candidate<'_>, _: &Ground<'_>) -> Vec<Blocker> {
    let Some((old, new)) = candidate.before.zip(candidate.csv()) else { return Vec::new() };
    let of = |csv| deployments(csv).map(|one| (one["name"].as_str().unwrap_or(""), one));
    let changed = of(new).filter_map(|(name, one)| {
        let (_, before) = of(old).find(|(old, _)| *old == name)?;
        let form = |one: &Value| json!({"kind": "Deployment", "spec": one["spec"]});
        let found = immutable::changed(&form(before), &form(one))?;
        let sentence = format!(
            "`{}` cannot be installed: its Deployment `{name}` changes `{}` from {} to {}, which Kubernetes refuses",
            candidate.name, found.field, found.old, found.new
        );
        Some(Blocker::new(IMMUTABLE_FIELD, sentence, "publish a bundle that keeps it, or that gives the Deployment another name"))
    });
    changed.collect()
}

fn deployments(csv: &Value) -> impl Iterator<Item = &Value> {
    csv.pointer("/spec/install/spec/deployments").and_then(Value::as_array).into_iter().flatten()
}

/// A need that no bundle of a catalog meets, in words.
pub(super) fn lacking(need: &Need, offer: &Offer) -> Option<String> {
    let mut bundles = offer.packages.values().flat_map(|package| package.bundles.values());
    match need {
        Need::Api(api) => {
            let name = format!("{}.{}/{}", api.kind, api.group, api.version);
            bundles.all(|bundle| !bundle.provides().contains(api)).then(|| format!("the API `{name}`"))
        }
        Need::Package { name, range } => {
            let wanted: VersionRange = range.parse().ok()?;
            let found = offer.packages.get(name);
            let mut versions = found.into_iter().flat_map(|package| package.bundles.values());
            let is_offered = versions
                .any(|bundle| bundle.version.as_ref().is_some_and(|found| wanted.contains(&found.version)));
            (!is_offered).then(|| format!("the package `{name}` in the range `{range}`"))
        }
    }
}

#[cfg(test)]
mod tests {
    use olmkit_catalog::fbc::Catalog;
    use olmkit_catalog::load::CatalogFiles;

    use super::*;

    fn csv(spec: Value) -> Value {
        json!({"kind": KIND, "metadata": {"name": "demo.v2"}, "spec": spec})
    }

    fn ground() -> Ground<'static> {
        let kubernetes = Some(Version::new(1, 34, 0));
        Ground { namespace: "here", targets: vec!["here".to_owned()], kubernetes, ..Ground::default() }
    }

    #[track_caller]
    fn check(manifests: &[Value], before: Option<&Value>, expected: &[&str]) {
        let candidate = Candidate { name: "demo.v2", manifests, before };
        let found: Vec<String> = of(candidate, &ground()).iter().map(ToString::to_string).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_version_that_fits_is_not_blocked() {
        let modes = json!([{"type": "OwnNamespace", "supported": true}]);
        check(&[csv(json!({"minKubeVersion": "1.34.0", "installModes": modes}))], None, &[]);
        check(&[csv(json!({}))], Some(&csv(json!({}))), &[]);
    }

    #[test]
    fn the_cluster_is_too_old() {
        check(
            &[csv(json!({"minKubeVersion": "1.99.0"}))],
            None,
            &[
                "`demo.v2` cannot be installed: it needs Kubernetes 1.99.0, and the cluster has 1.34.0 [kubernetes-too-old]",
            ],
        );
    }

    #[test]
    fn the_oldest_kubernetes_cannot_be_read() {
        check(
            &[csv(json!({"minKubeVersion": "1.25"}))],
            None,
            &[
                "`demo.v2` cannot be installed: OLM cannot read its minKubeVersion `1.25` [kubernetes-too-old]",
            ],
        );
        check(&[csv(json!({"minKubeVersion": "v1.25.0"}))], None, &[]);
        check(&[csv(json!({"minKubeVersion": ""}))], None, &[]);
    }

    #[test]
    fn the_operator_group_no_longer_fits() {
        let modes = json!([{"type": "OwnNamespace", "supported": false}, {"type": "AllNamespaces", "supported": true}]);
        check(
            &[csv(json!({"installModes": modes}))],
            None,
            &[
                "`demo.v2` cannot be installed: the OperatorGroup of the namespace `here` needs the install mode OwnNamespace, and it supports AllNamespaces [unsupported-install-mode]",
            ],
        );
    }

    #[test]
    fn olm_does_not_install_a_kind() {
        let ingress =
            json!({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "web"}});
        check(
            &[csv(json!({})), ingress],
            None,
            &[
                "`demo.v2` cannot be installed: its bundle has the Ingress `web`, a kind that OLM does not install [unsupported-kind]",
            ],
        );
    }

    #[test]
    fn a_name_does_not_fit_into_a_label() {
        let name = format!("demo.v{}", "9".repeat(58));
        let candidate = Candidate { name: &name, manifests: &[], before: None };
        let found = of(candidate, &ground());
        assert_eq!(found.len(), 1);
        assert!(found[0].to_string().ends_with("longer than 63 characters [object-invalid]"), "{}", found[0]);
    }

    #[test]
    fn kubernetes_refuses_what_olm_makes_of_it() {
        let pod = |image: &str| json!({"containers": [{"name": "manager", "image": image}]});
        let deployed = |image: &str| {
            let template = json!({"metadata": {"labels": {"app": "demo"}}, "spec": pod(image)});
            let spec = json!({"selector": {"matchLabels": {"app": "demo"}}, "template": template});
            json!({"spec": {"deployments": [{"name": "demo", "spec": spec}]}})
        };
        check(&[csv(json!({"install": deployed("r/demo:1")}))], None, &[]);
        check(
            &[csv(json!({"install": deployed("r/demo: 1")}))],
            None,
            &[
                "`demo.v2` cannot be installed: Kubernetes refuses a Deployment of its bundle: `r/demo: 1` is not an image: the tag has something other than letters, digits, `_`, `.` and `-` [object-invalid]",
            ],
        );
    }

    #[test]
    fn what_a_dependency_brings_is_not_asked_for() {
        let monitor = json!({
            "apiVersion": "monitoring.coreos.com/v1", "kind": "ServiceMonitor", "metadata": {"name": "demo"},
        });
        let manifests = [monitor];
        let candidate = Candidate { name: "demo.v2", manifests: &manifests, before: None };
        let check = |properties: &str, expected: usize| {
            let text = format!(
                "{{schema: olm.bundle, package: demo, name: demo.v2, image: r/demo:2, properties: [{properties}]}}\n---\n\
                 {{schema: olm.bundle, package: prom, name: prom.v1, image: r/prom:1, properties: [\
                 {{type: olm.gvk, value: {{group: monitoring.coreos.com, version: v1, kind: ServiceMonitor}}}}]}}"
            );
            let files = CatalogFiles::from_text("catalog.yaml", &text);
            let offer = Offer::of(&Catalog::parse(&files));
            let company = Company::of(&offer, &offer.packages["demo"], &["demo.v2"]);
            assert_eq!(asked_for(candidate, &Ground { company, ..ground() }).len(), expected, "{properties}");
        };
        check("", 1);
        check("{type: olm.package.required, value: {packageName: prom, versionRange: '>=0.1.0'}}", 0);
        check(
            "{type: olm.gvk.required, value: {group: monitoring.coreos.com, version: v1, kind: ServiceMonitor}}",
            0,
        );
        // Another catalog may have it, with whatever that needs.
        check("{type: olm.package.required, value: {packageName: other, versionRange: '>=0.1.0'}}", 0);
        let optional = "{group: monitoring.coreos.com, kind: ServiceMonitor, name: demo}";
        check(&format!("{{type: olm.manifests.optional, value: {{manifests: [{optional}]}}}}"), 0);
    }

    #[test]
    fn the_selector_of_a_deployment_changes() {
        let deployed = |name: &str, app: &str| {
            let spec = json!({"selector": {"matchLabels": {"app": app}}});
            csv(json!({"install": {"spec": {"deployments": [{"name": name, "spec": spec}]}}}))
        };
        check(
            &[deployed("manager", "b")],
            Some(&deployed("manager", "a")),
            &[
                r#"`demo.v2` cannot be installed: its Deployment `manager` changes `spec.selector` from {"matchLabels":{"app":"a"}} to {"matchLabels":{"app":"b"}}, which Kubernetes refuses [immutable-field]"#,
            ],
        );
        check(&[deployed("other", "b")], Some(&deployed("manager", "a")), &[]);
    }
}
