//! Puts the ClusterServiceVersion together.
//!
//! Precedence of sources, first to last: the command line, the package file, the manifests, the base, Chart.yaml, Cargo.toml, our
//! own defaults. What the manifests decide (what runs, what it may do, which APIs it brings) the base can add to, never change.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use serde_json::{Value as Json, json};

use super::api::{Api, Known};
use super::assignment;
use super::chart::ChartFile;
use super::draft::{By, Draft, Origin};
use super::input::Objects;
use super::modes::{self, Modes};
use super::package::title;
use super::package_file::{CAPABILITIES, INSTALL_MODES};
use super::rbac::Rbac;
use super::webhook::Webhooks;
use super::workload::{self, Workload};
use super::{Compat, Request, codes};
use crate::csv::{API_VERSION, KIND, annotation};
use crate::finding::{Finding, Findings, Level};
use crate::parse::Object;
use crate::yaml::steps;

/// Where the Deployments are.
const DEPLOYMENTS: [&str; 4] = ["spec", "install", "spec", "deployments"];
/// The annotation for the licence, an SPDX expression.
const LICENSE: &str = "license";
/// The sidecar that operator-sdk's projects had; it is never the operator's main image.
const PROXY: &str = "kube-rbac-proxy";

/// What of a base the manifests have a say in, taken out of it.
pub(super) struct FromBase<'m> {
    pub(super) owned: Known<'m>,
    pub(super) images: Vec<Draft<'m>>,
    deployments: Vec<Draft<'m>>,
    permissions: Vec<Draft<'m>>,
    cluster_permissions: Vec<Draft<'m>>,
    webhooks: Vec<Draft<'m>>,
    /// Everything else.
    rest: Draft<'m>,
}

/// What is derived from the manifests.
pub(super) struct Parts<'p, 'm> {
    pub(super) objects: &'p Objects<'m>,
    pub(super) workload: &'p mut Workload<'m>,
    pub(super) rbac: &'p Rbac<'m>,
    pub(super) api: Api<'m>,
    pub(super) webhooks: Webhooks<'m>,
    pub(super) images: Vec<Draft<'m>>,
    /// What the manifests say of install modes.
    pub(super) modes: Option<Modes<'m>>,
}

impl<'m> FromBase<'m> {
    pub(super) fn take(mut base: Draft<'m>) -> Self {
        let mut list = |path: &[&str], key: &str| {
            let found = if path.is_empty() { Some(&mut base) } else { base.at_mut(path) };
            found.and_then(|draft| draft.remove(key)).map(Draft::into_items).unwrap_or_default()
        };
        let install = &["spec", "install", "spec"];
        Self {
            owned: Known(list(&["spec", "customresourcedefinitions"], "owned")),
            images: list(&["spec"], "relatedImages"),
            deployments: list(install, "deployments"),
            permissions: list(install, "permissions"),
            cluster_permissions: list(install, "clusterPermissions"),
            webhooks: list(&["spec"], "webhookdefinitions"),
            rest: base,
        }
    }

    /// The service accounts that it grants rights to.
    pub(super) fn accounts(&self) -> impl Iterator<Item = &str> {
        self.permissions.iter().chain(&self.cluster_permissions).map(|entry| entry.text("serviceAccountName"))
    }
}

/// The default base of operator-sdk, which its bundles show where nobody wrote one: its words, up to the `TODO` that it leaves
/// to the author. Only `--compat operator-sdk` starts from it.
pub(super) fn operator_sdk_base<'m>(package: &str) -> Draft<'m> {
    let name = title(package);
    let base = json!({
        "metadata": { "namespace": "placeholder", "annotations": { "capabilities": CAPABILITIES[0] } },
        "spec": {
            "displayName": name,
            "description": format!("{name} description. TODO."),
            "provider": { "name": "Provider Name", "url": "https://your.domain" },
            "maintainers": [{ "name": "Maintainer Name", "email": "your@email.com" }],
            "links": [{ "name": name, "url": format!("https://{package}.domain") }],
            "maturity": "alpha",
            "keywords": [package],
            "icon": [{ "base64data": "", "mediatype": "" }],
        },
    });
    Draft::new(base, Origin::unwritten(By::Rule("operator-sdk's default")))
}

pub(super) fn csv<'m>(
    request: &Request<'m>,
    base: FromBase<'m>,
    parts: Parts<'_, 'm>,
    findings: &mut Findings,
) -> Draft<'m> {
    let FromBase { rest, deployments, permissions, cluster_permissions, webhooks, .. } = base;
    let mut assembly = Assembly { request, csv: rest, findings };
    assembly.identity();
    assembly.deployments(parts.workload, deployments);
    let deployed = parts.workload.accounts.iter().map(|account| account.name.as_str());
    let accounts: BTreeSet<_> =
        deployed.chain(parts.objects.service_accounts.iter().map(Object::name)).collect();
    assembly.permissions("permissions", &accounts, &parts.rbac.permissions, permissions);
    assembly.permissions(
        "clusterPermissions",
        &accounts,
        &parts.rbac.cluster_permissions,
        cluster_permissions,
    );
    assembly.webhooks(parts.webhooks.definitions, webhooks);
    assembly.examples(&parts.api.examples);
    assembly.apis(parts.api.owned, parts.api.owned_services);
    assembly.images(parts.images);
    assembly.texts();
    assembly.annotations(parts.objects, parts.workload.namespace());
    assembly.install_modes(parts.modes, parts.webhooks.conversion);
    assembly.edge();
    assembly.apply_overrides();
    assembly.csv
}

struct Assembly<'r, 'm> {
    request: &'r Request<'m>,
    csv: Draft<'m>,
    findings: &'r mut Findings,
}

impl<'m> Assembly<'_, 'm> {
    /// Whether we derive what operator-sdk does not.
    fn repairs(&self) -> bool {
        self.request.compat.is_none()
    }

    fn rule(rule: &'static str) -> Origin<'m> {
        Origin::unwritten(By::Rule(rule))
    }

    fn identity(&mut self) {
        let package = self.request.package;
        let kind = Self::rule("what a ClusterServiceVersion is");
        self.csv.set(&["apiVersion"], Draft::new(API_VERSION, kind));
        self.csv.set(&["kind"], Draft::new(KIND, kind));
        let named = package.origins.name.by_rule("package and version make the name");
        let name = Draft::new(package.csv_name(), named).made_of([package.origins.version]);
        self.csv.set(&["metadata", "name"], name);
        self.csv.set(&["spec", "version"], Draft::new(package.version.to_string(), package.origins.version));
        self.csv
            .set_some(&["spec", "release"], Draft::new(package.release.as_str(), package.origins.release));
    }

    /// Moves the Deployments into the ClusterServiceVersion: see [`Self::deployed`].
    fn deployments(&mut self, workload: &mut Workload<'m>, base: Vec<Draft<'m>>) {
        for entry in &base {
            let name = entry.text("name");
            if self.repairs() && workload.deployments.iter().all(|own| own.text("name") != name) {
                let message = format!(
                    "the base has a Deployment `{name}`, and the manifests have none: it is left out"
                );
                self.findings
                    .push(entry.finding(&codes::BASE_OVERRULED, message).help("add it to the manifests"));
            }
        }
        let origin = workload
            .deployments
            .first()
            .map_or(Self::rule("the Deployments of the manifests"), Draft::origin);
        let deployments = Draft::list(std::mem::take(&mut workload.deployments), origin);
        self.csv.set(&DEPLOYMENTS, deployments);
        let strategy = Draft::new("deployment", Self::rule("the only strategy there is"));
        self.csv.set(&["spec", "install", "strategy"], strategy);
    }

    /// The Deployments, once they are in the ClusterServiceVersion.
    fn deployed(&self) -> &[Draft<'m>] {
        self.csv.at(&DEPLOYMENTS).map(Draft::items).unwrap_or_default()
    }

    /// What the manifests grant; to `accounts` that they grant nothing, what the base grants. A base often still has the
    /// account of an older operator, whose rights nothing would use.
    fn permissions(
        &mut self,
        key: &str,
        accounts: &BTreeSet<&str>,
        derived: &[Draft<'m>],
        base: Vec<Draft<'m>>,
    ) {
        let mut all = derived.to_vec();
        for entry in base.into_iter().filter(|_| self.request.compat.is_none()) {
            let account = entry.text("serviceAccountName");
            match derived.iter().find(|own| own.text("serviceAccountName") == account) {
                None if accounts.contains(account) => all.push(entry),
                None => {
                    let message = format!(
                        "the base grants rights to `{account}`, which is not a service account in the manifests: they are left out"
                    );
                    let finding = entry.finding(&codes::BASE_OVERRULED, message);
                    self.findings.push(finding.help(format!(
                        "to keep them, add `{account}` to `extraServiceAccounts` in the package file"
                    )));
                }
                Some(own)
                    if own.get("rules").map(Draft::to_json) == entry.get("rules").map(Draft::to_json) => {}
                Some(_) => {
                    let message = format!(
                        "the base grants `{account}` other rules than the manifests do: theirs count"
                    );
                    let finding = entry.finding(&codes::BASE_OVERRULED, message);
                    self.findings
                        .push(finding.help("remove them from the base, or add what is missing to the roles"));
                }
            }
        }
        if let Some(origin) = all.first().map(Draft::origin) {
            self.csv.set(&["spec", "install", "spec", key], Draft::list(all, origin));
        }
    }

    fn webhooks(&mut self, mut all: Vec<Draft<'m>>, base: Vec<Draft<'m>>) {
        let id = |entry: &Draft<'_>| (entry.text("type").to_owned(), entry.text("generateName").to_owned());
        for entry in base.into_iter().filter(|_| self.request.compat.is_none()) {
            let served = self.deployed().iter().any(|own| own.text("name") == entry.text("deploymentName"));
            if all.iter().any(|own| id(own) == id(&entry)) {
                continue;
            }
            if served {
                all.push(entry);
                continue;
            }
            let name = entry.text("generateName");
            let message =
                format!("the base has a webhook `{name}` that no Deployment serves: it is left out");
            self.findings.push(
                entry.finding(&codes::BASE_OVERRULED, message).help("add its Deployment to the manifests"),
            );
        }
        if let Some(origin) = all.first().map(Draft::origin) {
            self.csv.set(&["spec", "webhookdefinitions"], Draft::list(all, origin));
        }
    }

    fn apis(&mut self, owned: Vec<Draft<'m>>, services: Vec<Draft<'m>>) {
        let rule = Self::rule("the CRDs and APIServices of the manifests");
        self.csv.set_default(&["spec", "customresourcedefinitions"], Draft::map(rule));
        self.csv.set_default(&["spec", "apiservicedefinitions"], Draft::map(rule));
        for key in ["customresourcedefinitions", "apiservicedefinitions"] {
            if self.csv.at(&["spec", key]).is_none() {
                self.csv.set(&["spec", key], Draft::map(rule));
            }
        }
        if !owned.is_empty() {
            self.csv.set(&["spec", "customresourcedefinitions", "owned"], Draft::list(owned, rule));
        }
        self.join(&["spec", "apiservicedefinitions", "owned"], services, &["group", "version", "kind"]);
        let Some(file) = self.request.package.sources.file else { return };
        let items = |key: &str| file.items(key);
        self.join(
            &["spec", "customresourcedefinitions", "required"],
            items("requiredCrds"),
            &["name", "version", "kind"],
        );
        self.join(
            &["spec", "apiservicedefinitions", "required"],
            items("requiredApiServices"),
            &["group", "version", "kind"],
        );
        self.join(&["spec", "nativeAPIs"], items("nativeAPIs"), &["group", "version", "kind"]);
    }

    /// Adds entries to a list; one that is there by the same keys is overlaid.
    fn join(&mut self, path: &[&str], items: Vec<Draft<'m>>, keys: &[&str]) {
        let Some(first) = items.first() else { return };
        if self.csv.at(path).is_none_or(Draft::is_empty) {
            self.csv.set(path, Draft::list(Vec::new(), first.origin()));
        }
        let Some(list) = self.csv.at_mut(path) else { return };
        let id = |item: &Draft<'_>| keys.iter().map(|key| item.text(key).to_owned()).collect::<Vec<_>>();
        // The last ones first, so that the first of several with the same keys stays.
        let known = list.items().iter().map(id).enumerate().rev();
        let mut known: BTreeMap<_, _> = known.map(|(at, id)| (id, at)).collect();
        for item in items {
            let at = *known.entry(id(&item)).or_insert(list.items().len());
            match list.items_mut().get_mut(at) {
                Some(other) => other.merge(item),
                None => list.push(item),
            }
        }
    }

    /// The samples, and the examples of the base for which there is no sample.
    fn examples(&mut self, samples: &[Draft<'m>]) {
        let path = &["metadata", "annotations", annotation::ALM_EXAMPLES];
        let mut examples: Vec<Json> = samples.iter().map(Draft::to_json).collect();
        let mut origins: Vec<_> = samples.iter().map(Draft::origin).collect();
        let base =
            self.csv.at(path).filter(|base| !base.is_empty() && self.request.compat.is_none()).cloned();
        if let Some(base) = base {
            let id = |example: &Json| {
                ["/apiVersion", "/kind", "/metadata/name"]
                    .map(|at| example.pointer(at).cloned().unwrap_or_default())
            };
            match serde_json::from_str::<Vec<Json>>(base.as_str().unwrap_or_default()) {
                Ok(known) => {
                    let own: HashSet<_> = examples.iter().map(id).collect();
                    let fresh: Vec<_> = known.into_iter().filter(|known| !own.contains(&id(known))).collect();
                    if !fresh.is_empty() {
                        origins.push(base.origin());
                    }
                    examples.extend(fresh);
                }
                Err(error) => {
                    let message = format!("the examples of the base are not a list in JSON: {error}");
                    self.findings.push(base.finding(&codes::BASE_INVALID, message));
                }
            }
        }
        // Pretty-printed, so that a change to one example is a change to a few lines; without examples still JSON.
        let text = format!("{:#}", Json::from(examples));
        let mut origins = origins.into_iter();
        let first = origins.next().unwrap_or(Self::rule("there are no examples"));
        self.csv.set(path, Draft::new(text, first).made_of(origins));
    }

    fn images(&mut self, images: Vec<Draft<'m>>) {
        if let Some(origin) = images.first().map(Draft::origin) {
            self.csv.set(&["spec", "relatedImages"], Draft::list(images, origin));
        }
    }

    /// What people read, and what the package file says in a field of its own.
    fn texts(&mut self) {
        let package = self.request.package;
        let (settings, sources) = (&package.settings, package.sources);
        if let Some(file) = sources.file {
            for (key, empty) in [
                ("displayName", settings.display_name.is_empty()),
                ("maturity", settings.maturity.is_empty()),
                ("minKubeVersion", settings.min_kube_version.is_empty()),
                ("provider", file.item_is_empty("provider")),
                ("maintainers", settings.maintainers.is_empty()),
                ("links", settings.links.is_empty()),
                ("keywords", settings.keywords.is_empty()),
            ] {
                if let Some(draft) = file.free(key).filter(|_| !empty) {
                    self.csv.set(&["spec", key], draft.texts());
                }
            }
            if let Some(text) = &package.description {
                let origin = file.origin(&["descriptionFile".into()]);
                self.csv.set_some(&["spec", "description"], Draft::new(text.as_str(), origin));
            } else if !settings.description.is_empty() {
                let origin = file.origin(&["description".into()]);
                self.csv.set(&["spec", "description"], Draft::new(settings.description.as_str(), origin));
            }
            if let Some(icon) = &package.icon {
                let origin = file.origin(&["icon".into()]);
                let icon = json!([{ "base64data": icon.data, "mediatype": icon.media_type }]);
                self.csv.set(&["spec", "icon"], Draft::new(icon, origin));
            }
        }
        if !self.repairs() {
            return;
        }
        // operator-sdk's scaffold has an icon without a picture.
        let no_picture =
            |icons: &Draft<'_>| icons.items().iter().all(|icon| icon.text("base64data").is_empty());
        if self.csv.at(&["spec", "icon"]).is_some_and(no_picture)
            && let Some(spec) = self.csv.at_mut(&["spec"])
        {
            spec.remove("icon");
        }
        if let Some(chart) = sources.chart {
            self.chart(chart);
        }
        if let Some(cargo) = sources.cargo {
            let people = cargo.texts("authors").into_iter().map(|(author, origin)| {
                let (name, email) = match author.split_once('<') {
                    Some((name, rest)) => (name.trim(), rest.trim_end_matches('>').trim()),
                    None => (author.trim(), ""),
                };
                let mut person = Draft::map(origin);
                person.set_some(&["name"], Draft::new(name, origin));
                person.set_some(&["email"], Draft::new(email, origin));
                person
            });
            let links = [("homepage", "Homepage"), ("documentation", "Documentation")];
            let links = links.into_iter().filter_map(|(key, name)| {
                let (url, origin) = cargo.text(key)?;
                Some(Draft::new(json!({ "name": name, "url": url }), origin))
            });
            for (key, items) in [("maintainers", people.collect::<Vec<_>>()), ("links", links.collect())] {
                if let Some(origin) = items.first().map(Draft::origin) {
                    self.csv.set_default(&["spec", key], Draft::list(items, origin));
                }
            }
            for key in ["description", "keywords"] {
                if let Some(draft) = cargo.draft(key) {
                    self.csv.set_default(&["spec", key], draft);
                }
            }
        }
        let name = Draft::new(
            title(package.name.as_str()),
            package.origins.name.by_rule("the package's name, in words"),
        );
        self.csv.set_default(&["spec", "displayName"], name);
        if self.csv.at(&["spec", "provider"]).is_none() {
            self.csv.set(&["spec", "provider"], Draft::map(Self::rule("no provider given")));
        }
    }

    /// The chart's metadata, where nothing else has a value.
    fn chart(&mut self, chart: &'m ChartFile<'m>) {
        for key in ["description", "keywords"] {
            if let Some(draft) = chart.draft(key) {
                self.csv.set_default(&["spec", key], draft.texts());
            }
        }
        let people = chart.maintainers();
        if let Some(origin) = people.first().map(Draft::origin) {
            self.csv.set_default(&["spec", "maintainers"], Draft::list(people, origin));
        }
        if let Some((home, origin)) = chart.text("home") {
            let links = json!([{ "name": "Homepage", "url": home }]);
            self.csv.set_default(&["spec", "links"], Draft::new(links, origin));
        }
        if let Some((version, origin)) = chart.oldest_kubernetes() {
            self.csv.set_default(&["spec", "minKubeVersion"], Draft::new(version, origin));
        }
        if self.csv.at(&["spec", "icon"]).is_none_or(Draft::is_empty) {
            match chart.icon() {
                Some(icon) => self.csv.set(&["spec", "icon"], icon),
                None => self.findings.extend(chart.icon_elsewhere()),
            }
        }
    }

    fn annotations(&mut self, objects: &Objects<'m>, namespace: Option<&'m str>) {
        let package = self.request.package;
        let settings = &package.settings;
        let set = |csv: &mut Draft<'m>, key: &str, draft: Draft<'m>| {
            csv.set_some(&["metadata", "annotations", key], draft);
        };
        if let Some(file) = package.sources.file {
            for (key, setting, text) in [
                (annotation::CAPABILITIES, "capabilities", &settings.capabilities),
                (annotation::REPOSITORY, "repository", &settings.repository),
                (annotation::SUPPORT, "support", &settings.support),
                (annotation::CONTAINER_IMAGE, "containerImage", &settings.container_image),
                (annotation::SUGGESTED_NAMESPACE, "suggestedNamespace", &settings.suggested_namespace),
                (LICENSE, "license", &settings.license),
                (annotation::CATEGORIES, "categories", &settings.categories.join(", ")),
            ] {
                set(&mut self.csv, key, Draft::new(text.as_str(), file.origin(&[setting.into()])));
            }
            for (key, value) in &settings.annotations {
                set(
                    &mut self.csv,
                    key,
                    Draft::new(value.as_str(), file.origin(steps!("annotations", key.as_str()))),
                );
            }
            for (key, value) in &settings.labels {
                let origin = file.origin(steps!("labels", key.as_str()));
                self.csv.set(&["metadata", "labels", key], Draft::new(value.as_str(), origin));
            }
        }
        if let Some((created_at, origin)) = &self.request.created_at {
            set(&mut self.csv, annotation::CREATED_AT, Draft::new(created_at.as_str(), *origin));
        }
        if self.repairs() {
            self.other_image();
        }
        let mut default = |key: &str, draft: Draft<'m>| {
            self.csv.set_default(&["metadata", "annotations", key], draft);
        };
        if self.request.compat.is_some() {
            let rule = Self::rule("what operator-sdk's bundles say of their making");
            let builder = concat!("olmkit-v", env!("CARGO_PKG_VERSION"));
            default("operators.operatorframework.io/builder", Draft::new(builder, rule));
            default("operators.operatorframework.io/project_layout", Draft::new("unknown", rule));
            return;
        }
        default(
            annotation::CAPABILITIES,
            Draft::new(CAPABILITIES[0], Self::rule("the lowest level, by default")),
        );
        if let Some((text, origin)) = package.sources.chart.and_then(ChartFile::repository) {
            default(annotation::REPOSITORY, Draft::new(text, origin));
        }
        if let Some(cargo) = package.sources.cargo {
            for (key, of_crate) in [(annotation::REPOSITORY, "repository"), (LICENSE, "license")] {
                if let Some((text, origin)) = cargo.text(of_crate) {
                    default(key, Draft::new(text, origin));
                }
            }
        }
        self.annotations_of_deployments(namespace);
        self.platforms(objects);
    }

    /// The image that consoles show, and the namespace that they suggest.
    fn annotations_of_deployments(&mut self, namespace: Option<&'m str>) {
        let origin = self.deployed().first().map_or(Self::rule("the Deployments' namespace"), Draft::origin);
        let origin = origin.by_rule("the namespace of the Deployments");
        let namespace = namespace.filter(|namespace| *namespace != "default");
        let namespace = namespace.map(|namespace| Draft::new(namespace, origin));
        let image = main_image(self.deployed());
        for (key, value) in
            [(annotation::CONTAINER_IMAGE, image), (annotation::SUGGESTED_NAMESPACE, namespace)]
        {
            if let Some(value) = value {
                self.csv.set_default(&["metadata", "annotations", key], value);
            }
        }
    }

    /// Says that the base, which is easily forgotten, names an image that no Deployment runs.
    fn other_image(&mut self) {
        let settings = &self.request.package.settings;
        let is_chosen = !settings.container_image.is_empty()
            || settings.annotations.contains_key(annotation::CONTAINER_IMAGE);
        let Some(named) = self.csv.at(&["metadata", "annotations", annotation::CONTAINER_IMAGE]) else {
            return;
        };
        let text = named.as_str().unwrap_or_default();
        let running = images_of(self.deployed());
        // A digest may be that of the image which the base names by tag.
        let is_same = |running: &str| {
            running == text || running.split_once('@').is_some_and(|(name, _)| text.starts_with(name))
        };
        if is_chosen || running.iter().any(|running| is_same(running)) {
            return;
        }
        let message = format!(
            "the base says `containerImage: {}`, and no Deployment runs that image: consoles show it",
            text.replace('`', "'")
        );
        let finding = named.finding(&codes::BASE_OVERRULED, message);
        self.findings.push(
            finding.help("remove the annotation from the base, for the image of the Deployment, or set `containerImage` in the package file"),
        );
    }

    fn platforms(&mut self, objects: &Objects<'m>) {
        let package = self.request.package;
        let mut labels = Vec::new();
        for (at, platform) in package.settings.platforms.iter().enumerate() {
            let Some((os, arch)) = platform.split_once('/') else { continue };
            let Some(file) = package.sources.file else { continue };
            let origin = file.origin(steps!("platforms", at));
            labels.push((format!("operatorframework.io/arch.{arch}"), origin));
            labels.push((format!("operatorframework.io/os.{os}"), origin));
        }
        if labels.is_empty() {
            labels = workload::platforms(objects);
        }
        for (label, origin) in labels {
            self.csv.set_default(&["metadata", "labels", &label], Draft::new("supported", origin));
        }
    }

    fn install_modes(&mut self, derived: Option<Modes<'m>>, conversion: Option<Origin<'m>>) {
        let path = &["spec", "installModes"];
        let settings = &self.request.package.settings;
        let modes = |supported: &dyn Fn(&str) -> bool| -> Json {
            INSTALL_MODES.iter().map(|mode| json!({ "type": mode, "supported": supported(mode) })).collect()
        };
        if let Some(file) = self.request.package.sources.file.filter(|_| !settings.install_modes.is_empty()) {
            let named = modes(&|mode| settings.install_modes.iter().any(|own| own == mode));
            self.csv.set(path, Draft::new(named, file.origin(&["installModes".into()])));
        }
        let all = modes(&|mode| mode == modes::ALL);
        // A webhook that converts custom resources leaves no choice.
        if let Some(derived) = derived.as_ref().filter(|own| conversion.is_some() && !own.supports_all()) {
            let message = format!(
                "a webhook converts custom resources, so OLM accepts only the install mode `AllNamespaces`, but {}",
                derived.why
            );
            let finding = Finding::new(&codes::INSTALL_MODE_IMPOSSIBLE, message).help(
                "have the operator watch all namespaces, and grant its rights by a ClusterRole; or serve one version without the webhook",
            );
            self.findings.push(match derived.origin.place() {
                Some(place) => finding.at(place),
                None => finding,
            });
        }
        if let Some(derived) = derived.filter(|_| conversion.is_none()) {
            let supports_all = |modes: &Draft<'_>| {
                let all = modes.items().iter().find(|mode| mode.text("type") == "AllNamespaces");
                all.and_then(|all| all.get("supported")).map(Draft::to_json) == Some(Json::Bool(true))
            };
            let said = self.csv.at(path).filter(|modes| !modes.is_empty());
            let finding = match said {
                None => {
                    let finding = Finding::new(&codes::INSTALL_MODE_DERIVED, derived.message());
                    Some(finding.help(derived.help()))
                }
                Some(said) if supports_all(said) && !derived.is_told => {
                    let message = format!("`AllNamespaces` is among the install modes, but {}", derived.why);
                    let finding = said.finding(&codes::INSTALL_MODE_DERIVED, message);
                    let finding = Finding { level: Level::Warning, ..finding };
                    Some(finding.help("have the operator watch the namespaces in `metadata.annotations['olm.targetNamespaces']`, and grant its rights by a ClusterRole; or support only `OwnNamespace`"))
                }
                Some(_) => None,
            };
            if let (Some(finding), Some(place)) = (finding, derived.origin.place()) {
                let finding = if finding.place.is_some() { finding.and(place) } else { finding.at(place) };
                self.findings.push(finding);
            }
            let own = modes(&|mode| derived.supported.contains(&mode));
            let origin = derived.origin.by_rule("what the operator may read and is told to watch");
            self.csv.set_default(path, Draft::new(own, origin));
        }
        self.csv.set_default(path, Draft::new(all.clone(), Self::rule("all namespaces, by default")));
        let Some(conversion) = conversion.filter(|_| self.repairs()) else { return };
        let Some(current) = self.csv.at(path).cloned() else { return };
        let only_all = current.items().iter().all(|mode| {
            let supported = mode.get("supported").map(Draft::to_json) == Some(Json::Bool(true));
            supported == (mode.text("type") == "AllNamespaces")
        });
        if !only_all {
            let message = "a webhook converts custom resources, so OLM accepts only the install mode `AllNamespaces`: the others are left out";
            let finding = current.finding(&codes::INSTALL_MODE_IMPOSSIBLE, message);
            self.findings.push(match conversion.place() {
                Some(place) => finding.and(place),
                None => finding,
            });
            self.csv.set(path, Draft::new(all, conversion.by_rule("a webhook converts custom resources")));
        }
    }

    /// The place among the versions: what the catalog says, else the package file, else the base.
    fn edge(&mut self) {
        let skip_range = &["metadata", "annotations", annotation::SKIP_RANGE];
        if let Some(edge) = &self.request.edge {
            if let Some(spec) = self.csv.at_mut(&["spec"]) {
                spec.remove("replaces");
                spec.remove("skips");
            }
            if let Some(annotations) = self.csv.at_mut(&["metadata", "annotations"]) {
                annotations.remove(annotation::SKIP_RANGE);
            }
            let origin = Origin::unwritten(By::Catalog);
            let text = |text: &Option<String>| Draft::new(text.as_deref().unwrap_or(""), origin);
            self.csv.set_some(&["spec", "replaces"], text(&edge.replaces));
            self.csv.set_some(&["spec", "skips"], Draft::new(json!(edge.skips), origin));
            self.csv.set_some(skip_range, text(&edge.skip_range));
            return;
        }
        let settings = &self.request.package.settings;
        let Some(file) = self.request.package.sources.file else { return };
        let text = |text: &str, key: &str| Draft::new(text, file.origin(&[key.into()]));
        self.csv.set_some(&["spec", "replaces"], text(&settings.replaces, "replaces"));
        if let Some(skips) = file.free("skips") {
            self.csv.set_some(&["spec", "skips"], skips.texts());
        }
        self.csv.set_some(skip_range, text(&settings.skip_range, "skipRange"));
    }

    /// What was said of the ClusterServiceVersion as it is.
    fn apply_overrides(&mut self) {
        let package = self.request.package;
        if let Some(over) = package.sources.file.and_then(|file| file.free("csv")) {
            self.csv.merge(over);
        }
        for assignment in &package.set {
            if let Err(finding) = assignment.apply(&mut self.csv) {
                self.findings.push(*finding);
            }
        }
        if !package.set.is_empty() {
            self.findings.extend(assignment::missing(&package.set, &self.csv.to_json()));
        }
    }
}

/// The images of all containers.
fn images_of<'d>(deployments: &'d [Draft<'_>]) -> Vec<&'d str> {
    let pods = deployments.iter().filter_map(|deployment| deployment.at(&["spec", "template", "spec"]));
    let containers = pods.flat_map(|pod| {
        ["initContainers", "containers"].into_iter().filter_map(|key| pod.get(key)).flat_map(Draft::items)
    });
    containers.map(|container| container.text("image")).collect()
}

/// The image of the container that is the operator: the one named `manager`, else the first that is no known sidecar.
fn main_image<'m>(deployments: &[Draft<'m>]) -> Option<Draft<'m>> {
    let containers = deployments.iter().flat_map(|deployment| {
        deployment.at(&["spec", "template", "spec", "containers"]).map(Draft::items).unwrap_or_default()
    });
    let containers: Vec<_> = containers.collect();
    let manager = containers.iter().find(|container| container.text("name") == "manager");
    let container =
        manager.or_else(|| containers.iter().find(|container| container.text("name") != PROXY))?;
    let image = container.get("image").filter(|image| !image.is_empty())?;
    Some(Draft::new(image.to_json(), image.origin().by_rule("the image of the operator's container")))
}

/// What the package file and the base say of related images, the file first.
pub(super) fn written_images<'m>(request: &Request<'m>, base: &mut Vec<Draft<'m>>) -> Vec<Draft<'m>> {
    let mut written =
        request.package.sources.file.map(|file| file.items("relatedImages")).unwrap_or_default();
    written.append(base);
    written
}

/// A finding about a base of another package.
pub(super) fn foreign_base(object: &crate::parse::Object<'_, '_>) -> Finding {
    let message = format!("a bundle gets one ClusterServiceVersion: `{}` is left out", object.name());
    let finding = object.finding(&codes::KIND_LEFT_OUT, message, steps!("kind"));
    finding.help("pass it with `--base` to start from it, or put its contents in the package file")
}

/// The compatibility that a request asks for decides which base stands in where there is none.
pub(super) fn default_base<'m>(request: &Request<'m>) -> Draft<'m> {
    match request.compat {
        Some(Compat::OperatorSdk) => operator_sdk_base(request.package.name.as_str()),
        None => Draft::map(Origin::unwritten(By::Base)),
    }
}
