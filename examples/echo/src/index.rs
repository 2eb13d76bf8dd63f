//! The Jobs that an informer sees, by the uid of the Echo that owns them.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use k8s_openapi::api::batch::v1::Job;
use kube::{ResourceExt, runtime::watcher::Event};
use tokio::sync::watch;

/// Jobs by owner, and each owner's by name.
type ByOwner = HashMap<String, HashMap<String, Arc<Job>>>;

/// The index. A watch fills it, and fills it anew when it had to begin again.
pub(crate) struct JobIndex {
    /// What lookups see, and what the current listing has brought so far.
    maps: Mutex<(ByOwner, ByOwner)>,
    filled: watch::Sender<bool>,
}

impl Default for JobIndex {
    fn default() -> Self {
        Self { maps: Mutex::default(), filled: watch::Sender::new(false) }
    }
}

impl JobIndex {
    /// Resolves once every Job that existed at the start is in the index.
    pub(crate) async fn filled(&self) {
        // The sender lives as long as `self`.
        let _ = self.filled.subscribe().wait_for(|filled| *filled).await;
    }

    /// A Job of this owner, if there is one.
    pub(crate) fn of(&self, owner: &impl ResourceExt) -> Option<Arc<Job>> {
        self.lock().0.get(&owner.uid()?)?.values().next().cloned()
    }

    /// Follows one event of the watch. During a listing, lookups see what was known before it.
    pub(crate) fn apply(&self, event: &Event<Job>) {
        let mut maps = self.lock();
        let (seen, listed) = &mut *maps;
        match event {
            Event::Init => listed.clear(),
            Event::InitApply(job) => insert(listed, job),
            Event::InitDone => {
                *seen = std::mem::take(listed);
                self.filled.send_replace(true);
            }
            Event::Apply(job) => insert(seen, job),
            Event::Delete(job) => remove(seen, job),
        }
    }

    fn lock(&self) -> MutexGuard<'_, (ByOwner, ByOwner)> {
        self.maps.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The uid and the name under which a Job is found.
fn key(job: &Job) -> Option<(String, String)> {
    let owner = job.owner_references().iter().find(|one| one.controller == Some(true))?;
    Some((owner.uid.clone(), job.name_any()))
}

fn insert(map: &mut ByOwner, job: &Job) {
    let Some((owner, name)) = key(job) else { return };
    // Lookups need what is owned and how it ended: the rest is most of its size.
    let mut kept = Job { spec: None, ..job.clone() };
    kept.metadata.managed_fields = None;
    kept.metadata.annotations = None;
    kept.metadata.labels = None;
    map.entry(owner).or_default().insert(name, Arc::new(kept));
}

fn remove(map: &mut ByOwner, job: &Job) {
    let Some((owner, name)) = key(job) else { return };
    if let Some(jobs) = map.get_mut(&owner) {
        jobs.remove(&name);
        if jobs.is_empty() {
            map.remove(&owner);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn job(name: &str, owner: &str) -> Job {
        let owner =
            json!({"apiVersion": "v1", "kind": "Echo", "name": "e", "uid": owner, "controller": true});
        serde_json::from_value(json!({"metadata": {"name": name, "ownerReferences": [owner]}})).unwrap()
    }

    fn of(index: &JobIndex, owner: &str) -> Option<String> {
        let mut echo = Job::default();
        echo.metadata.uid = Some(owner.into());
        index.of(&echo).map(|job| job.name_any())
    }

    #[test]
    fn jobs_are_found_by_their_owner_until_they_are_deleted() {
        let index = JobIndex::default();
        index.apply(&Event::Apply(job("a", "1")));
        index.apply(&Event::Apply(job("b", "2")));
        assert_eq!(
            (of(&index, "1"), of(&index, "2"), of(&index, "3")),
            (Some("a".into()), Some("b".into()), None)
        );
        index.apply(&Event::Delete(job("a", "1")));
        assert_eq!((of(&index, "1"), of(&index, "2")), (None, Some("b".into())));
        assert_eq!(index.lock().0.len(), 1, "nothing is kept of what is gone");
    }

    /// Otherwise a second Job would be created in the middle of it.
    #[test]
    fn a_listing_that_goes_on_hides_nothing() {
        let index = JobIndex::default();
        index.apply(&Event::Apply(job("a", "1")));
        index.apply(&Event::Init);
        index.apply(&Event::InitApply(job("b", "2")));
        assert_eq!((of(&index, "1"), of(&index, "2")), (Some("a".into()), None));
        index.apply(&Event::InitDone);
        assert_eq!((of(&index, "1"), of(&index, "2")), (None, Some("b".into())));
    }
}
