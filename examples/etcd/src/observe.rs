//! Looking: the pods first, then the members, so that what a pod says is never newer than what its member says.

use std::time::Duration;

use futures_util::future::join_all;
use k8s_openapi::{
    api::core::v1::{ContainerStatus, Pod},
    apimachinery::pkg::apis::meta::v1::Time,
    jiff::Timestamp,
};
use kube::{Api, ResourceExt, api::ListParams};
use operator_process::{
    error::{ApiError, during},
    objects::is_controlled_by,
};

use crate::{
    Context,
    api::EtcdCluster,
    etcd::{MemberInfo, MemberStatus},
    objects::{CLIENT_PORT, CONTAINER, REPLACES, selector},
    plan::{self, Health, Member, Observed, PodState},
};

/// How long a pod may be there after the time by which it had to end. Clocks differ by less.
const OVERDUE: Duration = Duration::from_secs(10);

/// What was seen.
pub(crate) struct Seen {
    /// What the planner needs of it.
    pub(crate) observed: Observed,
    /// etcd's id of the cluster, in hexadecimal as etcdctl prints it.
    pub(crate) cluster_id: Option<String>,
    /// The members, as a quorum knows them.
    pub(crate) members: Vec<MemberInfo>,
    pods: Vec<Pod>,
    answers: Vec<Answer>,
}

/// The state of a member, and its address.
struct Answer {
    host: String,
    status: MemberStatus,
}

/// Looks at the pods of a cluster and asks their members.
pub(crate) async fn observe(cluster: &EtcdCluster, context: &Context) -> Result<Seen, ApiError> {
    let api: Api<Pod> = context.operator.api(&cluster.namespace().unwrap_or_default());
    let list = api.list(&ListParams::default().labels(&selector(cluster))).await;
    let mut pods = list.map_err(during("list the pods"))?.items;
    pods.retain(|pod| is_controlled_by(pod, cluster));

    let ask = async |host: String| {
        let status = context.etcd.status(&host).await.ok()?;
        Some(Answer { host, status })
    };
    let known = cluster.status.as_ref().and_then(|status| status.cluster_id.clone());
    let mut answers: Vec<Answer> =
        join_all(pods.iter().filter_map(host).map(ask)).await.into_iter().flatten().collect();
    // An address may belong to another cluster's pod by now.
    let ours =
        |answer: &Answer| known.as_ref().is_none_or(|known| *known == id(answer.status.header.cluster_id));
    answers.retain(ours);
    // The leader first.
    answers.sort_by_key(|answer| answer.status.leader != answer.status.header.member_id);

    let mut evidence = format!("{} of {} pods answer", answers.len(), pods.len());
    let mut leader = 0;
    let mut members = Err(());
    for answer in &answers {
        match context.etcd.members(&answer.host).await {
            Ok(list) => {
                leader = answer.status.leader;
                members = Ok(list.members);
                break;
            }
            Err(error) => evidence = format!("{} of {} pods answer; {error}", answers.len(), pods.len()),
        }
    }
    let observed = Observed {
        bootstrapped: known.is_some(),
        pods: pods.iter().map(pod).collect(),
        members: match &members {
            Ok(members) => Ok(members.iter().map(|info| member(info, leader, &answers)).collect()),
            Err(()) => Err(evidence),
        },
    };
    let cluster_id = members.is_ok().then(|| answers.first().map(|one| id(one.status.header.cluster_id)));
    Ok(Seen {
        observed,
        cluster_id: cluster_id.flatten(),
        members: members.unwrap_or_default(),
        pods,
        answers,
    })
}

fn id(number: u64) -> String {
    format!("{number:x}")
}

/// Where the member of a pod answers clients.
fn host(pod: &Pod) -> Option<String> {
    let ip = pod.status.as_ref()?.pod_ip.as_ref()?;
    Some(if ip.contains(':') { format!("[{ip}]:{CLIENT_PORT}") } else { format!("{ip}:{CLIENT_PORT}") })
}

fn container(pod: &Pod) -> Option<&ContainerStatus> {
    let mut all = pod.status.as_ref()?.container_statuses.iter().flatten();
    all.find(|one| one.name == CONTAINER)
}

fn pod(pod: &Pod) -> plan::Pod {
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    let image = containers.filter(|one| one.name == CONTAINER).find_map(|one| one.image.clone());
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    let replaced = pod.annotations().get(REPLACES);
    let state = if let Some(Time(deadline)) = pod.metadata.deletion_timestamp {
        if Timestamp::now() > deadline + OVERDUE { PodState::Overdue } else { PodState::Leaving }
    } else if matches!(phase, Some("Failed" | "Succeeded")) {
        PodState::Failed
    } else if replaced.is_some() && replaced == container(pod).and_then(|one| one.container_id.as_ref()) {
        PodState::Restarting
    } else {
        PodState::Present
    };
    plan::Pod { name: pod.name_any(), image: image.unwrap_or_default(), state }
}

fn member(info: &MemberInfo, leader: u64, answers: &[Answer]) -> Member {
    let status = |id: u64| answers.iter().map(|one| &one.status).find(|one| one.header.member_id == id);
    let head = status(leader).map_or(u64::MAX, |leader| leader.raft_applied_index);
    let health = match status(info.id) {
        // One that follows another leader, or none, is cut off from the others.
        Some(said) if said.leader != leader || leader == 0 => Health::Silent,
        // etcd's own condition for a promotion.
        Some(said) if info.is_learner && said.raft_applied_index < head / 10 * 9 => Health::Behind,
        Some(_) => Health::InSync,
        None => Health::Silent,
    };
    Member {
        id: info.id,
        name: info.pod().to_owned(),
        started: !info.name.is_empty(),
        learner: info.is_learner,
        leader: info.id == leader,
        health,
    }
}

impl Seen {
    /// The host that changes the members: the leader, if it answers.
    pub(crate) fn host(&self) -> &str {
        self.answers.first().map_or("", |answer| &answer.host)
    }

    /// The names of the voting members, and how many of them answer.
    pub(crate) fn voters(&self) -> (Vec<String>, usize) {
        let members = self.observed.members.as_deref().unwrap_or_default();
        let voters: Vec<&Member> = members.iter().filter(|member| !member.learner).collect();
        let ready = voters.iter().filter(|member| member.health == Health::InSync).count();
        let mut names: Vec<String> = voters.iter().map(|member| member.name.clone()).collect();
        names.sort();
        (names, ready)
    }

    /// The oldest version that answers.
    pub(crate) fn version(&self) -> Option<String> {
        let versions = self.answers.iter().map(|answer| answer.status.version.as_str());
        versions.min_by_key(|version| numbers(version)).map(str::to_owned)
    }

    /// The container of etcd in a pod, by its id.
    pub(crate) fn container(&self, name: &str) -> Option<&str> {
        container(self.pods.iter().find(|pod| pod.name_any() == name)?)?.container_id.as_deref()
    }
}

/// A version as numbers, which compare as versions do.
fn numbers(version: &str) -> Vec<u32> {
    version.split('.').map_while(|part| part.parse().ok()).collect()
}
