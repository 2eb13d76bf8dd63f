//! What is there of a kind in a namespace, as a list and the watches after it tell it.
//!
//! A watch that ends before it has told anything is opened again after a pause that grows: a server that is shutting down, or a
//! proxy that cuts connections, would be asked thousands of times a second otherwise. Where watches tell nothing for long, the
//! list is asked for instead; also where a watch does not end when it should: whatever is between us and the server has lost it.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use backon::{BackoffBuilder as _, ExponentialBackoff, ExponentialBuilder};
use futures_util::StreamExt as _;
use kube::api::{Api, DynamicObject, ListParams, WatchEvent, WatchParams};
use serde_json::Value;
use tokio::sync::watch;

use super::{PAGE, SILENCE, document};
use crate::lifecycle::api::{Key, Resource};

/// The pause after a watch that has told nothing; it doubles.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// Longer than this no pause gets.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// A watch that lasted this long had nothing to tell.
const LASTED: Duration = Duration::from_secs(10);
/// How long the server is asked to let a watch go on.
pub(super) const WATCH: Duration = Duration::from_secs(60);
/// How much longer a watch may take until its end arrives.
const MARGIN: Duration = Duration::from_secs(10);
/// After so many watches that told nothing the list is asked for.
const FRUITLESS: u32 = 3;

/// The objects of a kind in a namespace.
#[derive(Default)]
pub(super) struct Watched {
    pub(super) objects: BTreeMap<Key, Value>,
}

impl Watched {
    /// Stores a whole list; says whether that is a change.
    fn replace(&mut self, objects: BTreeMap<Key, Value>) -> bool {
        let is_new = self.objects != objects;
        self.objects = objects;
        is_new
    }

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

/// Keeps objects as the server has them, for as long as the process lives; `changes` counts what happens to them. Each watch goes on for
/// so long.
pub(super) async fn follow(
    api: Api<DynamicObject>,
    resource: Resource,
    watched: std::sync::Arc<Mutex<Watched>>,
    changes: watch::Sender<u64>,
    limit: Duration,
) {
    let mut pauses = pauses();
    let mut fruitless = 0;
    let mut from: Option<String> = None;
    loop {
        let begun = Instant::now();
        let version = match from {
            Some(from) => Some(from),
            None => within(SILENCE, everything(&api)).await.flatten().map(|(objects, version)| {
                let objects = objects.into_iter().map(|object| document(object, &resource));
                let objects = objects.map(|object| (Key::of(&object), object)).collect();
                if lock(&watched).replace(objects) {
                    changes.send_modify(|count| *count += 1);
                }
                version
            }),
        };
        let lost = Ended { told: false, from: None };
        let ended = match version {
            Some(version) => {
                let events = watch_from(&api, &version, &resource, &watched, &changes);
                within(limit + MARGIN.min(limit), events).await.unwrap_or(lost)
            }
            None => lost,
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

/// What comes of work in time.
async fn within<T>(limit: Duration, work: impl Future<Output = T>) -> Option<T> {
    tokio::time::timeout(limit, work).await.ok()
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
    let parameters = WatchParams::default().timeout(WATCH.as_secs() as u32);
    let events = match api.watch(&parameters, version).await {
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

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::future::{Ready, pending, ready};
    use std::pin::Pin;
    use std::sync::Arc;
    use std::task::{Context, Poll};

    use futures_util::future::Either;
    use http::{Request, Response};
    use kube::Client;
    use kube::client::Body;
    use kube::core::ApiResource;
    use serde_json::json;
    use tower_service::Service;

    use super::*;
    use crate::lifecycle::api::known;

    /// A server that answers a watch with nothing at all, and a list with an object of another name each time.
    #[derive(Clone, Default)]
    struct Mute(Arc<Mutex<u32>>);

    type Answer = Result<Response<Body>, Infallible>;

    impl Service<Request<Body>> for Mute {
        type Response = Response<Body>;
        type Error = Infallible;
        type Future = Either<Ready<Answer>, Pin<Box<dyn Future<Output = Answer> + Send>>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, request: Request<Body>) -> Self::Future {
            if request.uri().query().is_some_and(|query| query.contains("watch=true")) {
                return Either::Right(Box::pin(pending()));
            }
            let mut asked = self.0.lock().unwrap();
            *asked += 1;
            let list = json!({
                "apiVersion": "operators.coreos.com/v1alpha1", "kind": "SubscriptionList",
                "metadata": {"resourceVersion": "7"}, "items": [{"metadata": {"name": format!("s{asked}")}}],
            });
            Either::Left(ready(Ok(Response::new(Body::from(list.to_string().into_bytes())))))
        }
    }

    #[test]
    fn a_watch_that_falls_silent_is_listed_anew() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let kind = ApiResource {
                group: "operators.coreos.com".into(),
                version: "v1alpha1".into(),
                api_version: "operators.coreos.com/v1alpha1".into(),
                kind: "Subscription".into(),
                plural: "subscriptions".into(),
            };
            let api = Api::all_with(Client::new(Mute::default(), "default"), &kind);
            let watched = Arc::new(Mutex::new(Watched::default()));
            let (changes, mut seen) = watch::channel(0);
            let limit = Duration::from_millis(20);
            tokio::spawn(follow(api, known::SUBSCRIPTION.clone(), Arc::clone(&watched), changes, limit));
            let twice = seen.wait_for(|count| *count >= 2);
            tokio::time::timeout(Duration::from_secs(60), twice).await.expect("it is listed anew").unwrap();
            assert!(lock(&watched).objects.keys().all(|key| key.name != "s1"));
        });
    }
}
