//! `source add`, `list`, `remove` and `refresh`: the CatalogSources that OLM gets its offers from.
//!
//! OLM says that a catalog is healthy as soon as its pod exists. What counts here is its connection, and that the pod runs the image
//! that is wanted.

use std::time::Duration;

use olmkit_bundle::suggest::some_of;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use super::api::{CatalogSource, Key, Named as _, Object, known, label, made_here};
use super::cluster::ClusterError;
use super::decide::Stuck;
use super::engine::{ContentError, Engine, EngineError, GRACE, UNWATCHED};
use super::mirrors;
use super::observe::pod_state;
use super::patch::difference;
use super::rights::Right;
use super::uninstall::{Part, Removed};
use crate::sentence::{Help, Sentence};
use crate::shell::command;

/// How long a catalog has to be up: OLM notices that a pod is being replaced a moment later.
const STEADY: Duration = Duration::from_secs(2);
/// The label of a catalog's pods.
const POD_LABEL: &str = "olm.catalogSource";

/// Where a catalog comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// An image that OLM starts a pod of.
    Image(String),
    /// An image of a catalog alone, which OLM serves with its own server.
    Data {
        /// The image.
        image: String,
        /// The directory of the image that holds the catalog.
        directory: String,
    },
    /// A server that runs somewhere, as `HOST:PORT`.
    Address(String),
}

/// A CatalogSource as it should be.
#[derive(Clone, Debug, PartialEq)]
pub struct Add {
    /// Its name.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// Where the catalog comes from.
    pub origin: Origin,
    /// How often OLM looks whether the image has changed; none for never.
    pub poll: Option<Duration>,
    /// Higher ones are asked first.
    pub priority: Option<i64>,
    /// Pull secrets in its namespace.
    pub secrets: Vec<String>,
    /// The name people see.
    pub display_name: Option<String>,
    /// Who publishes it.
    pub publisher: Option<String>,
    /// Settings of its pod, as `spec.grpcPodConfig` has them.
    pub pod: Option<Value>,
    /// Whether its image may be missing where it is looked for.
    pub accept_missing_image: bool,
}

/// A CatalogSource as people ask about it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Source {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The image or address that it is served from.
    pub source: String,
    /// Higher ones are asked first.
    pub priority: i64,
    /// How often OLM looks whether the image has changed; empty for never.
    pub poll: String,
    /// What OLM's client says of its connection; empty before it tried.
    pub state: String,
    /// How its pod is; empty where it has none.
    pub pod: String,
    /// What is wrong with it, in OLM's words; empty when nothing is.
    pub message: String,
    /// The Subscriptions that use it, as `NAMESPACE/NAME`.
    pub subscriptions: Vec<String>,
}

impl Add {
    /// What cannot be, before a cluster is asked.
    fn check(&self) -> Result<(), EngineError> {
        let refused = |what: &str, help: &str| Err(EngineError::refused_help(what, help));
        match &self.origin {
            Origin::Address(_) if self.poll.is_some() => {
                refused("a catalog at an address has no image to poll", "omit --poll")
            }
            Origin::Address(_) if !self.secrets.is_empty() || self.pod.is_some() => refused(
                "a catalog at an address has no pod",
                "omit --secret and --pod-config: they apply only to catalogs that OLM runs",
            ),
            Origin::Image(image) | Origin::Data { image, .. }
                if self.poll.is_some() && image.contains('@') =>
            {
                refused(
                    "an image that is named by its digest never changes, so there is nothing to poll",
                    "omit --poll, or name the image by a tag",
                )
            }
            _ => Ok(()),
        }
    }

    /// What is to be changed of a CatalogSource that is there already. What nobody asks for stays, unless the catalog now comes from
    /// where it means nothing.
    fn change(&self, existing: &Value) -> Value {
        let wanted = &self.document()["spec"];
        let mut spec = existing.clone();
        for (name, value) in wanted.as_object().into_iter().flatten() {
            spec[name] = value.clone();
        }
        let mut remove = |name: &str| drop(spec.as_object_mut().map(|fields| fields.remove(name)));
        match &self.origin {
            Origin::Address(_) => {
                ["image", "updateStrategy", "secrets", "grpcPodConfig"].into_iter().for_each(remove);
            }
            Origin::Image(image) | Origin::Data { image, .. } => {
                remove("address");
                if image.contains('@') {
                    remove("updateStrategy");
                }
                self.keep_pod_config(existing, &mut spec);
            }
        }
        difference(existing, &spec)
    }

    /// Settings of the pod stay where no others are given; how the image is served goes with the image.
    fn keep_pod_config(&self, existing: &Value, spec: &mut Value) {
        const EXTRACT: &str = "extractContent";
        let mut config = match (&self.pod, existing.get("grpcPodConfig")) {
            (None, Some(old)) => old.clone(),
            (given, _) => given.clone().unwrap_or_else(|| json!({})),
        };
        if self.pod.is_none() {
            config.as_object_mut().map(|fields| fields.remove(EXTRACT));
        }
        if let Origin::Data { .. } = self.origin {
            config[EXTRACT] = self.document()["spec"]["grpcPodConfig"][EXTRACT].clone();
        }
        if config == json!({}) {
            spec.as_object_mut().map(|fields| fields.remove("grpcPodConfig"));
        } else {
            spec["grpcPodConfig"] = config;
        }
    }

    fn document(&self) -> Value {
        let mut spec = json!({"sourceType": "grpc"});
        match &self.origin {
            Origin::Image(image) => spec["image"] = json!(image),
            Origin::Data { image, directory } => {
                spec["image"] = json!(image);
                spec["grpcPodConfig"] = json!({"extractContent": {"catalogDir": directory}});
            }
            Origin::Address(address) => spec["address"] = json!(address),
        }
        if let Some(pod) = &self.pod {
            super::patch::merge(&mut spec, &json!({"grpcPodConfig": pod}));
        }
        if let Some(poll) = self.poll {
            spec["updateStrategy"] = json!({"registryPoll": {"interval": go_duration(poll)}});
        }
        if let Some(priority) = self.priority {
            spec["priority"] = json!(priority);
        }
        if !self.secrets.is_empty() {
            spec["secrets"] = json!(self.secrets);
        }
        if let Some(name) = &self.display_name {
            spec["displayName"] = json!(name);
        }
        if let Some(publisher) = &self.publisher {
            spec["publisher"] = json!(publisher);
        }
        json!({
            "apiVersion": known::CATALOG_SOURCE.api_version(), "kind": known::CATALOG_SOURCE.kind,
            "metadata": {
                "name": self.name, "namespace": self.namespace, "labels": {label::CREATED_BY: label::OLMKIT},
            },
            "spec": spec,
        })
    }
}

/// A duration as Go reads it, in its largest whole unit.
fn go_duration(duration: Duration) -> String {
    match duration.as_secs() {
        seconds if seconds % 3_600 == 0 => format!("{}h", seconds / 3_600),
        seconds if seconds % 60 == 0 => format!("{}m", seconds / 60),
        seconds => format!("{seconds}s"),
    }
}

impl Engine<'_> {
    /// Creates a CatalogSource, or changes one that was created here, and waits until OLM is connected to it.
    ///
    /// # Errors
    /// Something is wrong, which is said before anything is changed; or the catalog does not come up.
    pub fn add_source(&mut self, wanted: &Add) -> Result<Source, EngineError> {
        wanted.check()?;
        let document = wanted.document();
        let key = Key::of(&document);
        self.catalog_sources_are_served(&key.namespace)?;
        let existing = self.cluster.get(&known::CATALOG_SOURCE, &key.namespace, &key.name)?;
        let change = existing.as_ref().map(|existing| wanted.change(&existing["spec"]));
        let changes = change.as_ref().is_some_and(|change| *change != json!({}));
        if changes && !existing.as_ref().is_some_and(made_here) {
            return Err(EngineError::refused_help(
                format!("{} already exists and was not created by olmkit", key.placed()),
                Sentence::from("choose another name, or remove it first with ")
                    + command!("olmkit source remove {} -n {}", key.name, key.namespace),
            ));
        }
        self.namespace_exists(&key.namespace)?;
        if let Origin::Image(image) | Origin::Data { image, .. } = &wanted.origin {
            self.image_exists(image, wanted.accept_missing_image)?;
        }
        let verb = if existing.is_none() { Some("create") } else { changes.then_some("patch") };
        self.need(verb.map(|verb| Right::new(verb, &known::CATALOG_SOURCE, &key.namespace, "")))?;
        match (existing, change) {
            (None, _) => self.create(&known::CATALOG_SOURCE, document)?,
            (Some(_), Some(change)) if changes => {
                let mut removed: Vec<&str> = change
                    .as_object()
                    .into_iter()
                    .flatten()
                    .filter_map(|(name, value)| value.is_null().then_some(name.as_str()))
                    .collect();
                removed.sort_unstable();
                if !removed.is_empty() {
                    self.say(format!("removing {} from {}", removed.join(", "), key.placed()));
                }
                self.patch(&known::CATALOG_SOURCE, &key, json!({"spec": change}))?;
            }
            (Some(_), _) => self.say(format!("{} is up to date", key.placed())),
        }
        if self.options.dry_run {
            return Ok(Source::default());
        }
        if self.options.wait {
            self.connected(&key, &[])?;
        }
        self.one_source(&key)
    }

    /// Finds out whether the cluster has CatalogSources at all: of one that is not there it says no more than that.
    ///
    /// # Errors
    /// It has no OLM, or does not answer.
    pub fn catalog_sources_are_served(&mut self, namespace: &str) -> Result<(), EngineError> {
        match self.cluster.list(&known::CATALOG_SOURCE, Some(namespace)) {
            // A user without the right to list them may still create one.
            Ok(_) | Err(ClusterError::Forbidden { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// The CatalogSources of a namespace, or of all.
    ///
    /// # Errors
    /// The cluster does not answer, or has no OLM.
    pub fn sources(&mut self, namespace: Option<&str>) -> Result<Vec<Source>, EngineError> {
        let found = self.cluster.list(&known::CATALOG_SOURCE, namespace)?;
        let users = self.cluster.list(&known::SUBSCRIPTION, None)?;
        let mut sources = Vec::new();
        for document in found {
            let pods = self.catalog_pods(&Key::of(&document))?;
            sources.extend(Source::of(document, &pods, &users));
        }
        sources.sort_by(|a, b| (&a.namespace, &a.name).cmp(&(&b.namespace, &b.name)));
        Ok(sources)
    }

    /// Removes a CatalogSource. Operators that came from it go on running, and are not upgraded any more.
    ///
    /// # Errors
    /// No such CatalogSource, or Subscriptions use it.
    pub fn remove_source(
        &mut self,
        name: &str,
        namespace: Option<&str>,
        force: bool,
    ) -> Result<Removed, EngineError> {
        let key = self.find_source(name, namespace)?.key();
        let users = self.users(&key)?;
        if !users.is_empty() && !force {
            let several = if users.len() == 1 { "a Subscription uses" } else { "Subscriptions use" };
            return Err(EngineError::refused_help(
                format!("{several} {}: {}", key.placed(), some_of("", users.iter().map(String::as_str))),
                "uninstall those operators first, or pass --force: they keep running but get no upgrades",
            ));
        }
        self.need([Right::new("delete", &known::CATALOG_SOURCE, &key.namespace, &key.name)])?;
        self.delete(&known::CATALOG_SOURCE, &key)?;
        if self.options.wait {
            self.gone(&known::CATALOG_SOURCE, &key)?;
        }
        let part =
            Part { kind: key.kind, namespace: key.namespace, name: key.name, reason: Sentence::default() };
        Ok(Removed { dry_run: self.options.dry_run, removed: vec![part], ..Removed::default() })
    }

    /// Makes OLM pull a catalog's image again: deletes the catalog's pod, or, if there is no pod, changes an annotation of the
    /// CatalogSource, so that OLM reconciles it and creates one.
    ///
    /// # Errors
    /// No such CatalogSource, it is served from an address, or it does not come up again.
    pub fn refresh_source(&mut self, name: &str, namespace: Option<&str>) -> Result<Source, EngineError> {
        let source = self.find_source(name, namespace)?;
        let key = source.key();
        if source.spec.image.is_empty() {
            return Err(EngineError::refused_help(
                format!("{} is served from `{}`: it has no pod", key.placed(), source.source()),
                "have the server at that address read its catalog again",
            ));
        }
        if source.spec.image.contains('@') {
            self.say("the image is named by its digest: the new pod serves the same content");
        }
        let pods = self.visible_pods(&key)?;
        if pods.is_empty() && self.cluster.has_pods() {
            self.olm_runs()?;
            self.need([Right::new("patch", &known::CATALOG_SOURCE, &key.namespace, &key.name)])?;
            self.say(format!("{} has no pod; triggering OLM to create one", key.placed()));
            // Any change makes OLM look again. An annotation comes and goes.
            for value in [json!(self.elapsed().as_secs().to_string()), Value::Null] {
                let patch = json!({"metadata": {"annotations": {label::LOOK_AGAIN: value}}});
                self.patch(&known::CATALOG_SOURCE, &key, patch)?;
            }
        } else {
            self.need([Right::new("delete", &known::POD, &key.namespace, "")])?;
        }
        for pod in &pods {
            self.delete(&known::POD, &Key::of(pod))?;
        }
        let old: Vec<Value> = pods.iter().map(|pod| pod["metadata"]["uid"].clone()).collect();
        if self.options.wait && !self.options.dry_run {
            self.connected(&key, &old)?;
        }
        self.one_source(&key)
    }

    fn namespace_exists(&mut self, namespace: &str) -> Result<(), EngineError> {
        match self.cluster.get(&known::NAMESPACE, "", namespace) {
            Ok(Some(_)) | Err(ClusterError::Forbidden { .. }) => Ok(()),
            Ok(None) => Err(EngineError::refused_help(
                format!("the namespace `{namespace}` does not exist"),
                "create it first; catalogs in OLM's own namespace are visible in every namespace",
            )),
            Err(error) => Err(error.into()),
        }
    }

    /// Looks for an image from here, and where the cluster's mirror settings lead.
    fn image_exists(&mut self, image: &str, accept_missing: bool) -> Result<(), EngineError> {
        let Err(error) = self.catalogs.image(image) else { return Ok(()) };
        if matches!(error, ContentError::Interrupted) {
            return Err(ClusterError::Interrupted.into());
        }
        let settings = mirrors::settings(self.cluster)?;
        let mirrored = mirrors::mirrored(image, &settings);
        if let Some(mirror) = mirrored.iter().find(|mirror| self.catalogs.image(mirror).is_ok()) {
            self.say(format!(
                "`{image}` cannot be read from here; the cluster pulls it from its mirror `{mirror}`"
            ));
            return Ok(());
        }
        let tried = match &mirrored[..] {
            [] => String::new(),
            several => format!("; nor at its mirrors {}", several.join(", ")),
        };
        match error {
            ContentError::NotFound { .. } if !accept_missing => Err(EngineError::refused_help(
                format!("the image `{image}` does not exist{tried}"),
                "push it first; if the nodes pull it from elsewhere, pass --accept-missing-images",
            )),
            error => {
                let cause =
                    std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
                self.say(format!("not checked: {error}{cause}{tried}"));
                Ok(())
            }
        }
    }

    /// Waits until OLM is connected to a catalog, whose pod runs the image that is wanted and is not one of `old`.
    fn connected(&mut self, key: &Key, old: &[Value]) -> Result<(), EngineError> {
        let deadline = self.deadline();
        let mut told = String::new();
        let mut up_since: Option<Duration> = None;
        let mut fault_since: Option<(Stuck, Duration)> = None;
        loop {
            let looked = self.cluster.get(&known::CATALOG_SOURCE, &key.namespace, &key.name);
            let looked =
                looked.map_err(EngineError::from).and_then(|found| Ok((found, self.catalog_pods(key)?)));
            let (found, pods) = match looked {
                Ok((Some(found), pods)) => (found, pods),
                Ok((None, _)) => {
                    return Err(EngineError::refused(format!("{} was deleted meanwhile", key.placed())));
                }
                Err(error) => {
                    let suspicion = fault_since.map(|(stuck, _)| stuck);
                    return Err(self.while_waiting(error, suspicion));
                }
            };
            let now = self.cluster.now();
            let state = State::of(&found, &pods, old);
            if state.words != told {
                self.progress.state(self.elapsed(), &key.to_string(), &state.words);
                told.clone_from(&state.words);
            }
            up_since = state.is_up.then(|| up_since.unwrap_or(now));
            if up_since.is_some_and(|since| now.saturating_sub(since) >= STEADY) {
                self.waits_no_more();
                return Ok(());
            }
            fault_since = match (fault_since, state.fault) {
                (Some((old, since)), Some(new)) if old == new => Some((old, since)),
                (_, new) => new.map(|new| (new, now)),
            };
            if let Some((stuck, since)) = &fault_since
                && now.saturating_sub(*since) >= GRACE
            {
                return Err(EngineError::Stuck(stuck.clone()));
            }
            let awaited = format!("{} to be READY; it is {}", key.placed(), state.words);
            self.waits_for(awaited.clone());
            if now >= deadline {
                let after = self.options.timeout;
                return Err(EngineError::TimedOut {
                    after,
                    awaited,
                    suspicion: fault_since.map(|(stuck, _)| stuck),
                });
            }
            self.cluster.wait((deadline - now).min(UNWATCHED))?;
        }
    }

    /// The pods of a catalog; none where they may not be looked at.
    fn catalog_pods(&mut self, key: &Key) -> Result<Vec<Value>, EngineError> {
        match self.visible_pods(key) {
            Err(EngineError::Cluster(ClusterError::Forbidden { .. })) => Ok(Vec::new()),
            pods => pods,
        }
    }

    /// The pods of a catalog.
    fn visible_pods(&mut self, key: &Key) -> Result<Vec<Value>, EngineError> {
        let is_own = |pod: &Value| {
            pod.pointer("/metadata/labels").is_some_and(|labels| labels[POD_LABEL] == key.name.as_str())
        };
        let pods = self.cluster.list(&known::POD, Some(&key.namespace))?;
        Ok(pods.into_iter().filter(is_own).collect())
    }

    /// The Subscriptions that use a catalog, as `NAMESPACE/NAME`.
    fn users(&mut self, key: &Key) -> Result<Vec<String>, EngineError> {
        Ok(users(&self.cluster.list(&known::SUBSCRIPTION, None)?, key))
    }

    fn one_source(&mut self, key: &Key) -> Result<Source, EngineError> {
        let found = self.cluster.get(&known::CATALOG_SOURCE, &key.namespace, &key.name)?.unwrap_or_default();
        let (pods, users) = (self.catalog_pods(key)?, self.cluster.list(&known::SUBSCRIPTION, None)?);
        Ok(Source::of(found, &pods, &users).unwrap_or_default())
    }

    /// The CatalogSource that a name means.
    fn find_source(
        &mut self,
        name: &str,
        namespace: Option<&str>,
    ) -> Result<Object<CatalogSource>, EngineError> {
        let found = self.cluster.list(&known::CATALOG_SOURCE, namespace)?;
        let mut all: Vec<Object<CatalogSource>> =
            found.into_iter().filter_map(|found| Object::read(found).ok()).collect();
        let names: Vec<String> = all.iter().map(|found| found.name().to_owned()).collect();
        all.retain(|found| found.name() == name);
        if all.len() > 1 {
            let places: Vec<&str> = all.iter().map(|found| found.namespace()).collect();
            return Err(EngineError::refused_help(
                format!("`{name}` means {} CatalogSources, in {}", all.len(), some_of("", places)),
                "name one of them as NAMESPACE/NAME",
            ));
        }
        let place = namespace.map(|namespace| format!(" in the namespace `{namespace}`")).unwrap_or_default();
        all.pop().ok_or_else(|| EngineError::Refused {
            what: format!("there is no CatalogSource `{name}`{place}"),
            help: Help::from(olmkit_bundle::suggest::did_you_mean(name, names.iter().map(String::as_str)))
                .or(command!("olmkit source list -A") + " shows those of all namespaces"),
        })
    }
}

fn users(subscriptions: &[Value], key: &Key) -> Vec<String> {
    let uses = |found: &&Value| {
        found["spec"]["source"] == key.name.as_str()
            && found["spec"]["sourceNamespace"] == key.namespace.as_str()
    };
    let name = |found: &Value| {
        let Key { namespace, name, .. } = Key::of(found);
        format!("{namespace}/{name}")
    };
    subscriptions.iter().filter(uses).map(name).collect()
}

/// How far a catalog is.
struct State {
    words: String,
    is_up: bool,
    fault: Option<Stuck>,
}

impl State {
    fn of(document: &Value, pods: &[Value], old: &[Value]) -> Self {
        let image = document["spec"]["image"].as_str().unwrap_or("");
        let status = |field: &str| {
            let state = document.pointer("/status/connectionState");
            state.and_then(|state| state[field].as_str()).unwrap_or("")
        };
        // OLM may not have seen yet that the address is another one.
        let address = document["spec"]["address"].as_str().unwrap_or("");
        let of = status("address");
        let is_of_another = image.is_empty() && !address.is_empty() && !of.is_empty() && of != address;
        let connection = if is_of_another { "" } else { status("lastObservedState") };
        let new: Vec<&Value> = pods.iter().filter(|pod| !old.contains(&pod["metadata"]["uid"])).collect();
        let runs = |pod: &&&Value| {
            let lists = [pod.pointer("/spec/initContainers"), pod.pointer("/spec/containers")];
            let containers = lists.into_iter().flatten().filter_map(Value::as_array).flatten();
            containers.into_iter().any(|container| container["image"] == image)
        };
        let pod = new.iter().find(runs).map(|pod| pod_state(pod));
        // Where pods cannot be seen, the connection has to do.
        let pods_are_fine =
            pods.is_empty() && old.is_empty() || pod.as_ref().is_some_and(|(_, ready)| *ready);
        let is_up = connection == "READY" && (image.is_empty() || pods_are_fine);
        let connection = if connection.is_empty() { "not connected yet" } else { connection };
        let words = match &pod {
            Some((pod, _)) => format!("{connection}, pod {pod}"),
            None if connection == "READY" && !is_up && !old.is_empty() => {
                "connected to the old pod, and there is no new one".to_owned()
            }
            None if connection == "READY" && !is_up => {
                format!("connected, and no pod runs `{image}` yet")
            }
            None => connection.to_owned(),
        };
        let name = Key::of(document);
        let fault = pod.filter(|(state, _)| {
            ["ImagePull", "CrashLoop", "InvalidImage"].iter().any(|bad| state.contains(bad))
        });
        let fault = fault.map(|(state, _)| Stuck {
            code: "catalog-pod",
            sentence: format!("the pod of {} does not run: {state}", name.placed()),
            help: (Sentence::from("see ")
                + command!("kubectl describe pods -n {} -l {}={}", name.namespace, POD_LABEL, name.name))
            .into(),
        });
        let message = document.pointer("/status/message").and_then(Value::as_str).unwrap_or("");
        let fault = fault.or_else(|| {
            (!message.is_empty()).then(|| Stuck {
                code: "catalog-invalid",
                sentence: format!("OLM refuses {}: {message}", name.placed()),
                help: Help::default(),
            })
        });
        Self { words, is_up, fault }
    }
}

impl Source {
    fn of(document: Value, pods: &[Value], subscriptions: &[Value]) -> Option<Self> {
        let found = Object::<CatalogSource>::read(document).ok()?;
        let poll = found.document().pointer("/spec/updateStrategy/registryPoll/interval");
        Some(Self {
            namespace: found.namespace().to_owned(),
            name: found.name().to_owned(),
            source: found.source().to_owned(),
            priority: found.spec.priority,
            poll: poll.and_then(Value::as_str).unwrap_or("").to_owned(),
            state: found.connection().to_owned(),
            pod: pods.last().map(|pod| pod_state(pod).0).unwrap_or_default(),
            message: found.status.message.clone(),
            subscriptions: users(subscriptions, &found.key()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_written_in_their_largest_whole_unit() {
        let written = |seconds| go_duration(Duration::from_secs(seconds));
        assert_eq!([7_200, 600, 90, 3_660].map(written), ["2h", "10m", "90s", "61m"]);
    }

    fn pod(uid: &str, image: &str, ready: &str) -> Value {
        json!({
            "metadata": {"uid": uid}, "spec": {"containers": [{"image": image}]},
            "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": ready}]},
        })
    }

    #[test]
    fn a_catalog_is_up_when_the_pod_of_its_image_is_and_olm_is_connected() {
        let source = json!({
            "kind": "CatalogSource", "metadata": {"name": "c", "namespace": "olm"}, "spec": {"image": "r/c:v2"},
            "status": {"connectionState": {"lastObservedState": "READY"}},
        });
        let is_up = |pods: &[Value], old: &[&str]| {
            let old: Vec<Value> = old.iter().map(|uid| json!(uid)).collect();
            State::of(&source, pods, &old).is_up
        };
        assert!(is_up(&[pod("1", "r/c:v2", "True")], &[]));
        assert!(!is_up(&[pod("1", "r/c:v2", "False")], &[]));
        // Connected, but to the image of before.
        assert!(!is_up(&[pod("1", "r/c:v1", "True")], &[]));
        let words = |pods: &[Value], old: &[&str]| {
            let old: Vec<Value> = old.iter().map(|uid| json!(uid)).collect();
            State::of(&source, pods, &old).words
        };
        assert_eq!(words(&[pod("1", "r/c:v1", "True")], &[]), "connected, and no pod runs `r/c:v2` yet");
        let new = "connected to the old pod, and there is no new one";
        assert_eq!(words(&[pod("1", "r/c:v2", "True")], &["1"]), new);
        // Told to pull again, and not done yet.
        assert!(!is_up(&[pod("1", "r/c:v2", "True")], &["1"]));
        assert!(is_up(&[pod("1", "r/c:v2", "True"), pod("2", "r/c:v2", "True")], &["1"]));
        assert!(!is_up(&[], &["1"]));
    }

    #[test]
    fn the_connection_to_a_former_address_is_none_to_the_new_one() {
        let is_up = |connected: &str| {
            let source = json!({
                "kind": "CatalogSource", "metadata": {"name": "c", "namespace": "olm"}, "spec": {"address": "c:50051"},
                "status": {"connectionState": {"address": connected, "lastObservedState": "READY"}},
            });
            State::of(&source, &[], &[]).is_up
        };
        assert!(is_up("c:50051") && !is_up("old:50051") && !is_up("c.olm.svc:50051"));
    }
}
