//! `bundle diff --live`: the custom resources of a cluster against the new schemas.

use std::time::Duration;

use olmkit_bundle::diff::live::{Live, Tally};
use olmkit_bundle::finding::Finding;
use olmkit_bundle::parse::Object;
use serde_json::Value;

use crate::actions::operator::connect;
use crate::exit::{Exit, Failure};
use crate::lifecycle::api::known;
use crate::lifecycle::checks::served;
use crate::lifecycle::cluster::{Cluster, ClusterError, Selection};
use crate::lifecycle::kubernetes::Choice;

/// Which cluster, and how long it may take.
#[derive(Clone, Debug)]
pub struct Request {
    /// The cluster.
    pub choice: Choice,
    /// The time for everything that is asked of it.
    pub timeout: Duration,
}

/// How long a cluster may take by default.
pub const TIMEOUT: Duration = Duration::from_secs(300);

/// Holds all custom resources of the new CRDs against them.
///
/// # Errors
/// When the cluster does not answer, or not in time. What may not be looked at is a finding.
pub(super) fn check(
    request: &Request,
    olds: &[Object<'_, '_>],
    news: &[Object<'_, '_>],
) -> Result<Vec<Finding>, Failure> {
    let mut cluster = connect(&request.choice, ", or omit --live", request.timeout)?;
    let live = Live::new(olds, news);
    let mut findings = Vec::new();
    for crd in live.crds() {
        match look(&mut cluster, &live, crd) {
            Ok(found) => findings.extend(found),
            Err(error) if is_no_obstacle(&error) => {
                findings.push(live.not_checked(crd, &error.to_string(), error.help()));
            }
            Err(error) => return Err(failure(error)),
        }
    }
    Ok(findings)
}

fn look(
    cluster: &mut dyn Cluster,
    live: &Live<'_, '_, '_>,
    crd: Object<'_, '_>,
) -> Result<Vec<Finding>, ClusterError> {
    // An upgrade of a CRD that is not there finds no objects.
    let Some(found) = cluster.get(&known::CRD, "", crd.name())? else { return Ok(Vec::new()) };
    let mut tally = Tally::default();
    for resource in served(&found) {
        let Some(schema) = live.schema(crd, &resource.version) else { continue };
        let mut take = |object: Value| tally.take(&schema, &object);
        match cluster.each(&resource, None, &Selection::default(), &mut take) {
            // A CRD that is being made or removed.
            Err(ClusterError::NotServed { .. }) => {}
            done => done?,
        }
    }
    let mut findings = live.lost_versions(crd, &found);
    findings.extend(live.findings(crd, tally));
    Ok(findings)
}

/// What keeps one kind from being looked at, and not the others.
fn is_no_obstacle(error: &ClusterError) -> bool {
    matches!(
        error,
        ClusterError::Forbidden { .. } | ClusterError::Refused { .. } | ClusterError::Failed { .. }
    )
}

fn failure(error: ClusterError) -> Failure {
    let exit = match &error {
        ClusterError::Interrupted => Exit::Interrupted,
        ClusterError::TimedOut { .. } => Exit::TimedOut,
        _ => Exit::Incomplete,
    };
    let help = match &error {
        ClusterError::TimedOut { .. } => {
            Some("check the kubeconfig, the context and the network, or give more --live-timeout".into())
        }
        other => other.help(),
    };
    Failure { exit, ..Failure::incomplete(error).help(help) }
}
