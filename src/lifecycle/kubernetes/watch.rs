//! What is there of a kind in a namespace, as a list and the watches after it tell it.
//!
//! A watch that ends before it has told anything is opened again after a pause that grows: a server that is shutting down, or a
//! proxy that cuts connections, would be asked thousands of times a second otherwise. Where watches tell nothing for long, the
//! list is asked for instead.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use backon::{BackoffBuilder as _, ExponentialBackoff, ExponentialBuilder};
use futures_util::StreamExt as _;
use kube::api::{Api, DynamicObject, ListParams, WatchEvent, WatchParams};
use serde_json::Value;
use tokio::sync::watch;

use super::{PAGE, document};
use crate::lifecycle::api::{Key, Resource};

/// The pause after a watch that has told nothing; it doubles.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// Longer than this no pause gets.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// A watch that lasted this long had nothing to tell.
const LASTED: Duration = Duration::from_secs(10);
/// After so many watches that told nothing the list is asked for.
const FRUITLESS: u32 = 3;

/// The objects of a kind in a namespace.
#[derive(Default)]
pub(super) struct Watched {
    pub(super) objects: BTreeMap<Key, Value>,
}

impl Watched {
    /// Stores an object, unless a newer state of it is there.
    pub(super) fn put(&mut self, key: Key, object: Value) {
        let version = |object: &Value| {
            object.pointer("/metadata/resourceVersion").and_then(Value::as_str)?.parse::<u64>().ok()
        };
        let older = self.objects.get(&key).is_some_and(|known| version(&object) < version(known));
        if !older {
            self.objects.insert(key, object);
        }
    }
}

pub(super) fn lock(watched: &Mutex<Watched>) -> MutexGuard<'_, Watched> {
    // Objects are put in whole, so a panic elsewhere leaves nothing half made.
    watched.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A watch that has ended.
struct Ended {
    /// Whether it told anything.
    told: bool,
    /// Where the next one goes on; none when the list has to be asked for.
    from: Option<String>,
}

/// Keeps objects as the server has them, for as long as the process lives; `changes` counts what happens to them.
pub(super) async fn follow(
    api: Api<DynamicObject>,
    resource: Resource,
    watched: std::sync::Arc<Mutex<Watched>>,
    changes: watch::Sender<u64>,
) {
    let mut pauses = pauses();
    let mut fruitless = 0;
    let mut from: Option<String> = None;
    loop {
        let begun = Instant::now();
        let ended = match from {
            Some(from) => watch_from(&api, &from, &resource, &watched, &changes).await,
            None => match everything(&api).await {
                Some((objects, version)) => {
                    let objects = objects.into_iter().map(|object| document(object, &resource));
                    let objects = objects.map(|object| (Key::of(&object), object)).collect();
                    let is_new = std::mem::replace(&mut lock(&watched).objects, objects);
                    if is_new != lock(&watched).objects {
                        changes.send_modify(|count| *count += 1);
                    }
                    watch_from(&api, &version, &resource, &watched, &changes).await
                }
                None => Ended { told: false, from: None },
            },
        };
        if ended.told || begun.elapsed() >= LASTED {
            pauses = self::pauses();
            fruitless = 0;
        } else {
            fruitless += 1;
        }
        from = ended.from.filter(|_| fruitless < FRUITLESS);
        tokio::time::sleep(pauses.next().unwrap_or(LONGEST_PAUSE)).await;
    }
}

fn pauses() -> ExponentialBackoff {
    ExponentialBuilder::default()
        .with_min_delay(FIRST_PAUSE)
        .with_max_delay(LONGEST_PAUSE)
        .with_jitter()
        .without_max_times()
        .build()
}

/// The whole list and its version; none when it cannot be had now.
async fn everything(api: &Api<DynamicObject>) -> Option<(Vec<DynamicObject>, String)> {
    let mut objects = Vec::new();
    let mut page = ListParams::default().limit(PAGE);
    let mut tokens = BTreeSet::new();
    loop {
        let list = api.list(&page).await.ok()?;
        objects.extend(list.items);
        let version = list.metadata.resource_version.unwrap_or_default();
        match list.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) if tokens.insert(token.clone()) => {
                page = ListParams::default().limit(PAGE).continue_token(&token);
            }
            // A token that was given before leads round in a circle.
            Some(_) => return None,
            None => return Some((objects, version)),
        }
    }
}

/// Takes what a watch tells, up to its end.
async fn watch_from(
    api: &Api<DynamicObject>,
    version: &str,
    resource: &Resource,
    watched: &Mutex<Watched>,
    changes: &watch::Sender<u64>,
) -> Ended {
    let mut ended = Ended { told: false, from: Some(version.to_owned()) };
    let events = match api.watch(&WatchParams::default(), version).await {
        Ok(events) => events,
        Err(kube::Error::Api(status)) if status.code == 410 => return Ended { from: None, ..ended },
        Err(_) => return ended,
    };
    let mut events = pin!(events);
    while let Some(event) = events.next().await {
        let (object, gone) = match event {
            Ok(WatchEvent::Added(object) | WatchEvent::Modified(object)) => (object, false),
            Ok(WatchEvent::Deleted(object)) => (object, true),
            Ok(WatchEvent::Bookmark(bookmark)) => {
                ended.from = Some(bookmark.metadata.resource_version);
                continue;
            }
            // What it would go on from is forgotten, or it cannot be made out.
            Ok(WatchEvent::Error(_)) | Err(kube::Error::Api(_) | kube::Error::SerdeError(_)) => {
                ended.from = None;
                break;
            }
            Err(_) => break,
        };
        ended.told = true;
        ended.from = object.metadata.resource_version.clone().or(ended.from);
        let object = document(object, resource);
        let key = Key::of(&object);
        match gone {
            true => drop(lock(watched).objects.remove(&key)),
            false => lock(watched).put(key, object),
        }
        changes.send_modify(|count| *count += 1);
    }
    ended
}
