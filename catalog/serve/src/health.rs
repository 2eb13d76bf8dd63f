//! `grpc.health.v1.Health`: whether the server is ready, and every change of that.
//!
//! A watch ends when the server does. As from opm, the answer is the same whatever service is asked about; it is `SERVING` only when a catalog is open.

use std::pin::Pin;
use std::sync::Arc;

use futures_util::stream::{self, Stream};
use tonic::{Request, Response, Status};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse, health_server::Health};

use crate::Shared;

/// Tells whether a catalog is open.
#[derive(Clone)]
pub(super) struct Readiness(pub(super) Arc<Shared>);

impl Readiness {
    fn now(&self) -> HealthCheckResponse {
        let ready = self.0.catalog.borrow().is_some() && !*self.0.ending.borrow();
        let status = if ready { ServingStatus::Serving } else { ServingStatus::NotServing };
        HealthCheckResponse { status: status.into() }
    }
}

#[tonic::async_trait]
impl Health for Readiness {
    async fn check(&self, _: Request<HealthCheckRequest>) -> Result<Response<HealthCheckResponse>, Status> {
        Ok(Response::new(self.now()))
    }

    type WatchStream = Pin<Box<dyn Stream<Item = Result<HealthCheckResponse, Status>> + Send>>;

    async fn watch(&self, _: Request<HealthCheckRequest>) -> Result<Response<Self::WatchStream>, Status> {
        let readiness = self.clone();
        let changes = (readiness.0.catalog.subscribe(), readiness.0.ending.subscribe());
        let changes =
            stream::unfold((readiness, changes, None), |(readiness, mut changes, said)| async move {
                loop {
                    changes.0.mark_unchanged();
                    changes.1.mark_unchanged();
                    let now = readiness.now();
                    if said.as_ref() != Some(&now) {
                        return Some((Ok(now), (readiness, changes, Some(now))));
                    }
                    if *readiness.0.ending.borrow() {
                        return None;
                    }
                    // The senders live as long as the server.
                    let changed = tokio::select! {
                        changed = changes.0.changed() => changed,
                        changed = changes.1.changed() => changed,
                    };
                    changed.ok()?;
                }
            });
        Ok(Response::new(Box::pin(changes)))
    }
}
