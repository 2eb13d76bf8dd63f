//! OLM is put on a cluster, and waited for until it works.

use super::manifests::{Part, Release, Stage};
use super::status::OlmStatus;
use super::{GROUP, OLM_OPERATOR, PACKAGE_SERVER, condition, is_own, probe, status, text};
use crate::lifecycle::api::{Key, Resource, known};
use crate::lifecycle::cluster::ClusterError;
use crate::lifecycle::decide::Stuck;
use crate::lifecycle::engine::{Engine, EngineError, Seen};
use crate::lifecycle::rights::Right;
use crate::sentence::{Help, Sentence};
use crate::shell::command;
use olmkit_bundle::version::Version;
use serde_json::Value;

/// What to install.
#[derive(Clone, Debug)]
pub struct Install {
    /// The manifests.
    pub release: Release,
    /// Whether objects that were made by others are taken over.
    pub adopt: bool,
}

/// The most objects of others that a refusal names.
const MOST_NAMED: usize = 5;

impl Engine<'_> {
    /// Installs OLM, or goes on where an earlier run ended, or brings an older one that was installed here up to date.
    ///
    /// # Errors
    /// There is another OLM; the server refuses something; OLM does not come up, or does not answer.
    pub fn install_olm(&mut self, request: &Install) -> Result<OlmStatus, EngineError> {
        let release = &request.release;
        let parts = release.labelled();
        self.only_one(release)?;
        let found = self.found(&parts)?;
        not_going(&parts, &found)?;
        self.not_of_others(&parts, &found, request.adopt)?;
        self.not_newer(&found, release)?;
        let verbs = ["create", "patch"];
        let rights = parts
            .iter()
            .flat_map(|part| verbs.map(|verb| Right::new(verb, &part.resource, &part.key.namespace, "")));
        self.need(rights.collect::<Vec<_>>())?;

        self.still_to_do(parts.iter().map(|part| format!("apply {}", part.key.placed())).collect::<Vec<_>>());
        let (crds, rest): (Vec<_>, Vec<_>) =
            parts.iter().zip(&found).partition(|(part, _)| part.stage <= Stage::Crds);
        self.apply_all(&crds, request.adopt)?;
        if !self.options.dry_run {
            self.established(crds.iter().map(|(part, _)| *part))?;
        }
        let (settings, catalogs): (Vec<_>, Vec<_>) =
            rest.into_iter().partition(|(part, _)| part.stage < Stage::Catalogs);
        self.apply_all(&settings, request.adopt)?;
        if self.options.dry_run {
            self.apply_all(&catalogs, request.adopt)?;
            return Ok(OlmStatus::default());
        }
        if self.options.wait {
            self.up(release)?;
            self.probe()?;
        }
        // They come last: whether a registry can be reached says nothing of OLM.
        self.apply_all(&catalogs, request.adopt)?;
        let sources: Vec<&Part> = catalogs.iter().map(|(part, _)| *part).collect();
        if self.options.wait {
            self.ready(&sources)?;
        }
        Ok(status::look(self.cluster)?)
    }

    /// A cluster has one OLM.
    fn only_one(&mut self, release: &Release) -> Result<(), EngineError> {
        let deployments = self.cluster.list(&known::DEPLOYMENT, None)?;
        let elsewhere = deployments
            .iter()
            .map(Key::of)
            .find(|key| key.name == OLM_OPERATOR && key.namespace != release.namespace);
        match elsewhere {
            Some(key) => Err(EngineError::refused_help(
                format!("OLM is already installed in the namespace `{}`", key.namespace),
                Sentence::from("a cluster can have only one; ") + command!("olmkit olm status") + " shows it",
            )),
            None => Ok(()),
        }
    }

    /// What is there already, for each object.
    fn found(&mut self, parts: &[Part]) -> Result<Vec<Option<Value>>, EngineError> {
        let look = |part: &Part| match self.cluster.get(&part.resource, &part.key.namespace, &part.key.name) {
            // Of a kind that is still to be defined there is nothing.
            Err(ClusterError::NotServed { .. } | ClusterError::NotFound { .. }) => Ok(None),
            found => Ok(found?),
        };
        parts.iter().map(look).collect()
    }

    /// Refuses to change what others have made. A namespace of others is used as it is.
    fn not_of_others(&self, parts: &[Part], found: &[Option<Value>], adopt: bool) -> Result<(), EngineError> {
        let of_others: Vec<String> = parts
            .iter()
            .zip(found)
            .filter(|(part, found)| {
                part.stage != Stage::Namespaces && found.as_ref().is_some_and(|found| !is_own(found))
            })
            .map(|(part, _)| part.key.placed())
            .collect();
        if of_others.is_empty() || adopt {
            return Ok(());
        }
        let named = of_others.iter().take(MOST_NAMED).cloned().collect::<Vec<_>>().join(", ");
        let more = of_others.len().saturating_sub(MOST_NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        Err(EngineError::refused_help(
            format!("objects of OLM exist that olmkit did not create: {named}{more}"),
            command!("olmkit olm status")
                + " shows what is installed; --adopt takes over these objects and updates them to this release",
        ))
    }

    /// Refuses to go back: OLM's CRDs do not.
    fn not_newer(&self, found: &[Option<Value>], release: &Release) -> Result<(), EngineError> {
        let installed = super::manifests::version(found.iter().flatten());
        let (Ok(there), Ok(wanted)) = (Version::parse(&installed), Version::parse(&release.version)) else {
            return Ok(());
        };
        if there.cmp_precedence(&wanted).is_gt() {
            return Err(EngineError::refused_help(
                format!("OLM {installed} is installed, which is newer than {}", release.version),
                Sentence::from("uninstall it first: ") + command!("olmkit olm uninstall"),
            ));
        }
        Ok(())
    }

    fn apply_all(&mut self, parts: &[(&Part, &Option<Value>)], adopt: bool) -> Result<(), EngineError> {
        for (part, found) in parts {
            let is_shared =
                part.stage == Stage::Namespaces && found.as_ref().is_some_and(|found| !is_own(found));
            if is_shared && !adopt {
                self.say(format!("{} exists and is used as it is", part.key.placed()));
                self.one_is_done();
                continue;
            }
            self.apply_soon(part, found.is_none())?;
            self.one_is_done();
        }
        Ok(())
    }

    /// Applies an object; one of a kind that was just defined is taken a moment later.
    fn apply_soon(&mut self, part: &Part, is_new: bool) -> Result<(), EngineError> {
        let is_custom = part.key.group == GROUP;
        self.until(format!("the cluster to serve `{}`", part.resource.full_name()), |engine| {
            match engine.apply(&part.resource, part.document.clone(), is_new) {
                Err(EngineError::Cluster(ClusterError::NotServed { .. } | ClusterError::NotFound { .. }))
                    if is_custom =>
                {
                    Ok(Seen::NotYet(None))
                }
                done => done.map(Seen::Done),
            }
        })
    }

    /// Waits until CRDs are served.
    fn established<'p>(&mut self, parts: impl Iterator<Item = &'p Part>) -> Result<(), EngineError> {
        for part in parts.filter(|part| part.stage == Stage::Crds) {
            self.until(format!("{} to be established", part.key), |engine| {
                let crd = engine.cluster.get(&part.resource, "", &part.key.name)?;
                let established = crd.as_ref().and_then(|crd| condition(crd, "Established"));
                Ok(match established {
                    Some(found) if found["status"] == "True" => Seen::Done(()),
                    _ => {
                        let refused = crd.as_ref().and_then(|crd| condition(crd, "NamesAccepted"));
                        let refused = refused.filter(|found| found["status"] == "False");
                        Seen::NotYet(refused.map(|found| Stuck {
                            code: "crd-names",
                            sentence: format!("{}: {}", part.key, text(found, "/message")),
                            help: "another CRD has these names: remove one of the two".into(),
                        }))
                    }
                })
            })?;
        }
        Ok(())
    }

    /// Waits until OLM's programs run and its API of packages answers.
    fn up(&mut self, release: &Release) -> Result<(), EngineError> {
        let namespace = release.namespace.as_str();
        for part in release.objects.iter().filter(|part| part.stage == Stage::Deployments) {
            self.available(&part.resource, &part.key)?;
        }
        for part in release.objects.iter().filter(|part| part.key.kind == known::CSV.kind) {
            let name = part.key.to_string();
            let mut told = String::new();
            self.until(format!("{name} to succeed"), |engine| {
                let csv = engine.cluster.get(&part.resource, namespace, &part.key.name)?.unwrap_or_default();
                let phase = text(&csv, "/status/phase");
                if phase != told && !phase.is_empty() {
                    phase.clone_into(&mut told);
                    engine.progress.state(engine.elapsed(), &name, phase);
                }
                Ok(match phase {
                    "Succeeded" => Seen::Done(()),
                    "Failed" => Seen::NotYet(Some(Stuck {
                        code: "csv-failed",
                        sentence: format!("{name} failed: {}", text(&csv, "/status/message")),
                        help: Help::default(),
                    })),
                    _ => Seen::NotYet(engine.broken_pod(namespace)?),
                })
            })?;
            if part.key.name == PACKAGE_SERVER {
                self.until("the API of packages to answer", |engine| {
                    match engine.cluster.list(&known::PACKAGE_MANIFEST, Some(namespace)) {
                        Ok(_) => Ok(Seen::Done(())),
                        Err(ClusterError::NotServed { .. } | ClusterError::Failed { .. }) => {
                            Ok(Seen::NotYet(engine.broken_pod(namespace)?))
                        }
                        Err(error) => Err(error.into()),
                    }
                })?;
            }
        }
        Ok(())
    }

    fn available(&mut self, resource: &Resource, key: &Key) -> Result<(), EngineError> {
        self.until(format!("{} to be available", key.placed()), |engine| {
            let found = engine.cluster.get(resource, &key.namespace, &key.name)?.unwrap_or_default();
            if status::is_available(&found) {
                engine.progress.state(engine.elapsed(), &key.to_string(), "Available");
                return Ok(Seen::Done(()));
            }
            Ok(Seen::NotYet(engine.broken_pod(&key.namespace)?))
        })
    }

    /// The first pod of OLM that cannot run.
    fn broken_pod(&mut self, namespace: &str) -> Result<Option<Stuck>, EngineError> {
        let pods = match self.cluster.list(&known::POD, Some(namespace)) {
            Err(ClusterError::Forbidden { .. }) => return Ok(None),
            pods => pods?,
        };
        Ok(pods.iter().find_map(status::pod_fault))
    }

    /// Waits until catalogs are served. That they are not is no fault of OLM: then OLM stays.
    fn ready(&mut self, sources: &[&Part]) -> Result<(), EngineError> {
        for part in sources {
            let name = part.key.placed();
            let seen = self.until(format!("{name} to be READY"), |engine| {
                let source = engine.cluster.get(&part.resource, &part.key.namespace, &part.key.name)?;
                let state = source.as_ref().map_or("", |source| text(source, probe::CONNECTION));
                Ok(if state == "READY" {
                    Seen::Done(())
                } else {
                    Seen::NotYet(engine.broken_pod(&part.key.namespace)?)
                })
            });
            match seen {
                Ok(()) => self.progress.state(self.elapsed(), &part.key.to_string(), "READY"),
                Err(EngineError::Stuck(stuck)) => self.unready(&name, &stuck.sentence),
                Err(EngineError::TimedOut { suspicion, .. }) => {
                    self.unready(&name, &suspicion.map_or(String::new(), |stuck| stuck.sentence));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn unready(&self, name: &str, why: &str) {
        let why = if why.is_empty() { String::new() } else { format!(": {why}") };
        self.say(format!("OLM works, but {name} is not READY{why}; --without-catalogs leaves catalogs out"));
    }
}

/// Refuses namespaces that are being deleted: nothing can be created in them, and nobody can say where else OLM goes.
fn not_going(parts: &[Part], found: &[Option<Value>]) -> Result<(), EngineError> {
    let going: Vec<&str> = parts
        .iter()
        .zip(found)
        .filter(|(part, found)| {
            part.stage == Stage::Namespaces
                && found.as_ref().is_some_and(|found| found.pointer("/metadata/deletionTimestamp").is_some())
        })
        .map(|(part, _)| part.key.name.as_str())
        .collect();
    let what = match &going[..] {
        [] => return Ok(()),
        [one] => format!("the namespace `{one}` is being deleted"),
        several => format!("the namespaces `{}` are being deleted", several.join("`, `")),
    };
    let commands =
        going.iter().map(|name| Sentence::from(command!("kubectl get namespace {} -o yaml", name)));
    let shows = commands.map(|command| command + " shows what blocks it");
    let wait = Sentence::from("wait until it is gone, then run the same command again");
    Err(EngineError::refused_help(what, std::iter::once(wait).chain(shows).collect::<Vec<_>>()))
}
