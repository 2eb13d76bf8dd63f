//! Leader election by a Lease, so that of several replicas of an operator one acts.
//!
//! The rules are client-go's. A Lease names its holder; the holder renews it every few seconds by a write that fails when
//! somebody else wrote in between, and another may take it once it has not changed for its duration, measured
//! by the candidate's own clock from when *it* saw the last change: clocks of different machines are never compared.
//!
//! Start at [`elect`]. What acts asks [`Leadership::holds_for`] before every step: it is false early enough that a step
//! which takes no longer than it said ends before anybody else can lead, also after the process was frozen or its machine suspended.
//! This crate knows nothing of what is led.

mod record;

use std::{
    sync::{Arc, RwLock},
    time::{Duration, Instant, SystemTime},
};

use k8s_openapi::{
    api::coordination::v1::{Lease, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta},
    jiff::Timestamp,
};
use kube::{Api, Client, api::PostParams};
use tokio::sync::watch;
use tracing::{debug, info, warn};

pub use record::{Record, Seen, Verdict};

/// How a Lease is held.
#[derive(Clone, Debug)]
pub struct Terms {
    /// Namespace of the Lease.
    pub namespace: String,
    /// Its name: one for all replicas of an operator.
    pub name: String,
    /// The identity of this replica, unique among the replicas, such as the name of its pod.
    pub identity: String,
    /// How long others wait after the last change that they saw.
    pub duration: Duration,
    /// How long the holder goes on without a renewal before it gives up by itself.
    pub renew_deadline: Duration,
    /// How often the Lease is looked at.
    pub retry: Duration,
}

impl Terms {
    /// client-go's times: 15, 10 and 2 seconds.
    pub fn new(namespace: &str, name: &str, identity: &str) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
            identity: identity.into(),
            duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry: Duration::from_secs(2),
        }
    }
}

/// A moment by two clocks: one stands still while the machine is suspended, the other can be set. What one of them says is over
/// is over.
#[derive(Clone, Copy, Debug)]
struct Moment(Instant, SystemTime);

impl Moment {
    fn now() -> Self {
        Self(Instant::now(), SystemTime::now())
    }

    fn plus(self, time: Duration) -> Self {
        Self(self.0 + time, self.1 + time)
    }

    fn is_after(self, other: Self) -> bool {
        self.0 > other.0 && self.1 > other.1
    }
}

/// Whether this replica leads, and for how long for certain. Cheap to clone and to ask.
#[derive(Clone, Debug)]
pub struct Leadership {
    until: Arc<RwLock<Option<Moment>>>,
    changed: watch::Sender<bool>,
}

impl Default for Leadership {
    fn default() -> Self {
        Self { until: Arc::default(), changed: watch::Sender::new(false) }
    }
}

impl Leadership {
    /// One that leads without a Lease for as long as the process runs: for tests, and for a single replica.
    pub fn unopposed() -> Self {
        let leadership = Self::default();
        // 136 years.
        leadership.set(Some(Moment::now().plus(Duration::from_secs(u32::MAX.into()))));
        leadership
    }

    /// Whether nobody else can lead before so much time has passed.
    pub fn holds_for(&self, time: Duration) -> bool {
        let until = *self.until.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        until.is_some_and(|until| until.is_after(Moment::now().plus(time)))
    }

    /// Whether this replica leads now.
    pub fn leads(&self) -> bool {
        self.holds_for(Duration::ZERO)
    }

    /// Returns once this replica leads.
    pub async fn acquired(&self) {
        let mut changed = self.changed.subscribe();
        // The sender lives as long as `self`.
        let _ = changed.wait_for(|leads| *leads).await;
    }

    fn set(&self, until: Option<Moment>) {
        *self.until.write().unwrap_or_else(std::sync::PoisonError::into_inner) = until;
        self.changed.send_if_modified(|leads| std::mem::replace(leads, until.is_some()) != until.is_some());
    }
}

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It was asked to end, and gave the Lease back if it had it.
    Released,
    /// The Lease could not be renewed in time, or somebody else has it: end the process, since what it did may be
    /// going on elsewhere already.
    Lost,
}

/// Why a look at the Lease, or a write, brought nothing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
enum TurnError {
    #[error("the API server did not answer within {} s", .0.as_secs())]
    TimedOut(Duration),
    #[error(transparent)]
    Api(#[from] kube::Error),
}

/// Tries to lead, then goes on leading, until `shutdown` resolves or leadership is lost.
pub async fn elect(
    client: Client,
    terms: &Terms,
    leadership: &Leadership,
    shutdown: impl Future<Output = ()>,
) -> End {
    let api: Api<Lease> = Api::namespaced(client, &terms.namespace);
    let mut seen = Seen::default();
    let mut renewed: Option<Moment> = None;
    tokio::pin!(shutdown);
    loop {
        // Before the request: other processes see the write later than this.
        let asked = Moment::now();
        let patience = terms.retry.max(Duration::from_secs(1)) * 2;
        let turn = tokio::time::timeout(patience, turn(&api, terms, &mut seen));
        let held = tokio::select! {
            held = turn => held.unwrap_or_else(|_| Err(TurnError::TimedOut(patience))),
            () = &mut shutdown => break,
        };
        match held {
            Ok(true) => {
                if renewed.is_none() {
                    info!(lease = terms.name, identity = terms.identity, "leading");
                }
                renewed = Some(asked);
                leadership.set(Some(asked.plus(terms.duration)));
            }
            Ok(false) if renewed.is_some() => {
                warn!(lease = terms.name, holder = seen.holder(), "another replica leads now");
                leadership.set(None);
                return End::Lost;
            }
            Ok(false) => debug!(lease = terms.name, holder = seen.holder(), "waiting"),
            Err(error) => warn!(
                lease = terms.name,
                error = &error as &dyn std::error::Error,
                "no answer about the lease"
            ),
        }
        if renewed.is_some_and(|renewed| !renewed.plus(terms.renew_deadline).is_after(Moment::now())) {
            warn!(lease = terms.name, "the lease was not renewed in time");
            leadership.set(None);
            return End::Lost;
        }
        tokio::select! {
            () = tokio::time::sleep(terms.retry) => {}
            () = &mut shutdown => break,
        }
    }
    End::Released
}

/// Gives the Lease back, so that another replica leads at once and not only when it has expired. To be called once nothing
/// acts any more.
pub async fn release(client: Client, terms: &Terms, leadership: &Leadership) {
    leadership.set(None);
    let api: Api<Lease> = Api::namespaced(client, &terms.namespace);
    let give_back = async {
        let Some(mut lease) = api.get_opt(&terms.name).await? else { return Ok(()) };
        let spec = lease.spec.get_or_insert_default();
        if spec.holder_identity.as_deref() == Some(&terms.identity) {
            spec.holder_identity = Some(String::new());
            spec.lease_duration_seconds = Some(1);
            api.replace(&terms.name, &PostParams::default(), &lease).await?;
            info!(lease = terms.name, "gave the lease back");
        }
        Ok::<(), kube::Error>(())
    };
    match tokio::time::timeout(Duration::from_secs(2), give_back).await {
        Ok(Ok(())) => {}
        // It expires by itself.
        Ok(Err(error)) => warn!(error = &error as &dyn std::error::Error, "could not give the lease back"),
        Err(_) => warn!("could not give the lease back in time"),
    }
}

/// Looks at the Lease, and takes or renews it where the rules allow it. Says whether this replica holds it now.
async fn turn(api: &Api<Lease>, terms: &Terms, seen: &mut Seen) -> Result<bool, TurnError> {
    let Some(lease) = api.get_opt(&terms.name).await? else {
        let lease = Lease {
            metadata: ObjectMeta { name: Some(terms.name.clone()), ..Default::default() },
            spec: Some(spec(terms, None)),
        };
        return match api.create(&PostParams::default(), &lease).await {
            Ok(lease) => {
                seen.look(Record::of(&lease), Instant::now());
                Ok(true)
            }
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(false),
            Err(error) => Err(error.into()),
        };
    };
    seen.look(Record::of(&lease), Instant::now());
    if seen.verdict(&terms.identity, terms.duration, Instant::now()) == Verdict::Wait {
        return Ok(false);
    }
    // The resource version goes along: when somebody wrote since, this fails.
    let next = Lease { spec: Some(spec(terms, lease.spec.as_ref())), ..lease };
    match api.replace(&terms.name, &PostParams::default(), &next).await {
        Ok(lease) => {
            seen.look(Record::of(&lease), Instant::now());
            Ok(true)
        }
        // Somebody was faster, who may be this replica in an earlier life: the next look says.
        Err(kube::Error::Api(status)) if status.code == 409 && seen.holder() != terms.identity => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn spec(terms: &Terms, old: Option<&LeaseSpec>) -> LeaseSpec {
    let now = MicroTime(Timestamp::now());
    let mine = old.filter(|old| old.holder_identity.as_deref() == Some(&terms.identity));
    let transitions = old.and_then(|old| old.lease_transitions).unwrap_or(0);
    LeaseSpec {
        holder_identity: Some(terms.identity.clone()),
        lease_duration_seconds: i32::try_from(terms.duration.as_secs()).ok(),
        acquire_time: mine.and_then(|mine| mine.acquire_time.clone()).or_else(|| Some(now.clone())),
        renew_time: Some(now),
        lease_transitions: Some(transitions + i32::from(old.is_some() && mine.is_none())),
        ..old.cloned().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_replica_leads_for_more_than_a_day() {
        assert!(Leadership::unopposed().holds_for(Duration::from_secs(30 * 86400)));
    }

    /// The monotonic clock of Linux does not count the time for which a machine is suspended.
    #[test]
    fn a_machine_that_was_suspended_does_not_lead() {
        let leadership = Leadership::default();
        let (term, suspended) = (Duration::from_secs(15), Duration::from_secs(60));
        leadership.set(Some(Moment::now().plus(term)));
        assert!(leadership.leads());
        let renewed = Moment(Instant::now(), SystemTime::now() - suspended);
        leadership.set(Some(renewed.plus(term)));
        assert!(!leadership.leads());
        // Neither does one with a clock that was set back.
        leadership.set(Some(Moment(Instant::now(), SystemTime::now() + suspended)));
        assert!(!leadership.leads());
    }
}
