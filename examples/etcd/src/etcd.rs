//! What the operator asks of etcd, by the JSON gateway that every member serves beside gRPC.
//!
//! The gateway needs no generated code and no gRPC in the program: five small requests over the HTTP client that kube-rs brings
//! anyway. What it costs: 64-bit numbers are strings.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, header::CONTENT_TYPE};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use serde::{Deserialize, Deserializer, de::Error as _};
use serde_json::{Value, json};

/// How long a member may take to answer. Its own limit for a request that needs a quorum is five seconds.
const TIMEOUT: Duration = Duration::from_secs(3);
/// No answer that is asked for is larger.
const LARGEST: usize = 1 << 20;

/// A request to a member failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EtcdError {
    /// Nobody answers at this address.
    #[error("{host} gives no answer within {} s", TIMEOUT.as_secs())]
    Unreachable { host: String },
    /// etcd said no.
    #[error("{host} says: {message}")]
    Refused { host: String, message: String },
}

/// The members, as a quorum knows them.
#[derive(Debug, Deserialize)]
pub(crate) struct MemberList {
    #[serde(default)]
    pub(crate) members: Vec<MemberInfo>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Header {
    #[serde(deserialize_with = "number")]
    pub(crate) cluster_id: u64,
    #[serde(deserialize_with = "number")]
    pub(crate) member_id: u64,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MemberInfo {
    #[serde(rename = "ID", deserialize_with = "number")]
    pub(crate) id: u64,
    /// Empty until it has started.
    #[serde(default)]
    pub(crate) name: String,
    #[serde(rename = "peerURLs", default)]
    pub(crate) peer_urls: Vec<String>,
    #[serde(default)]
    pub(crate) is_learner: bool,
}

impl MemberInfo {
    /// Where the other members reach it.
    pub(crate) fn peer_url(&self) -> &str {
        self.peer_urls.first().map_or("", String::as_str)
    }

    /// The name of its pod: the first part of the host in its peer URL.
    pub(crate) fn pod(&self) -> &str {
        let url = self.peer_url();
        let host = url.split_once("://").map_or(url, |(_, host)| host);
        host.split(['.', ':', '/']).next().unwrap_or_default()
    }
}

/// The state of a member, as it reports it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MemberStatus {
    pub(crate) header: Header,
    pub(crate) version: String,
    /// Id of the leader that it follows, or 0.
    #[serde(default, deserialize_with = "number")]
    pub(crate) leader: u64,
    /// The last entry of the log that it has applied.
    #[serde(default, deserialize_with = "number")]
    pub(crate) raft_applied_index: u64,
}

/// Numbers of 64 bits are strings in JSON.
fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
}

/// A client of all members of all clusters.
pub(crate) struct Etcd(Client<HttpConnector, Full<Bytes>>);

impl Default for Etcd {
    fn default() -> Self {
        // One connection per request: the operator asks rarely, and of many clusters.
        Self(Client::builder(TokioExecutor::new()).pool_max_idle_per_host(0).build_http())
    }
}

impl Etcd {
    /// The members. Only a member that reaches a quorum can answer: the evidence that there is one.
    pub(crate) async fn members(&self, host: &str) -> Result<MemberList, EtcdError> {
        self.post(host, "cluster/member/list", json!({"linearizable": true})).await
    }

    /// The state of a member, with or without a quorum.
    pub(crate) async fn status(&self, host: &str) -> Result<MemberStatus, EtcdError> {
        self.post(host, "maintenance/status", json!({})).await
    }

    pub(crate) async fn add_learner(&self, host: &str, peer_url: &str) -> Result<(), EtcdError> {
        let body = json!({"peerURLs": [peer_url], "isLearner": true});
        self.post::<Value>(host, "cluster/member/add", body).await.map(drop)
    }

    pub(crate) async fn promote(&self, host: &str, id: u64) -> Result<(), EtcdError> {
        self.post::<Value>(host, "cluster/member/promote", json!({"ID": id.to_string()})).await.map(drop)
    }

    pub(crate) async fn remove(&self, host: &str, id: u64) -> Result<(), EtcdError> {
        self.post::<Value>(host, "cluster/member/remove", json!({"ID": id.to_string()})).await.map(drop)
    }

    async fn post<T>(&self, host: &str, path: &str, body: Value) -> Result<T, EtcdError>
    where
        T: for<'de> Deserialize<'de>,
    {
        let unreachable = || EtcdError::Unreachable { host: host.to_owned() };
        let refused = |message: String| EtcdError::Refused { host: host.to_owned(), message };
        let request = Request::post(format!("http://{host}/v3/{path}"))
            .header(CONTENT_TYPE, "application/json")
            .body(Full::from(body.to_string()))
            .map_err(|_| unreachable())?;
        let answered = async {
            let answer = self.0.request(request).await.ok()?;
            let status = answer.status();
            let body = Limited::new(answer.into_body(), LARGEST).collect().await.ok()?.to_bytes();
            Some((status, body))
        };
        let answered = tokio::time::timeout(TIMEOUT, answered).await.ok().flatten();
        let (status, body) = answered.ok_or_else(unreachable)?;
        if !status.is_success() {
            let said: Value = serde_json::from_slice(&body).unwrap_or_default();
            let message = said["message"].as_str().map_or_else(|| status.to_string(), str::to_owned);
            return Err(refused(message));
        }
        serde_json::from_slice(&body).map_err(|error| refused(format!("invalid answer: {error}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As 3.5 and 3.6 answer: what is zero or empty is left out.
    #[test]
    fn answers_of_members_are_understood() {
        let list = json!({
            "header": {"cluster_id": "14841639068965178418", "member_id": "10276657743932975437", "raft_term": "2"},
            "members": [
                {"ID": "10276657743932975437", "name": "e-0", "peerURLs": ["http://e-0.e.ns.svc:2380"], "clientURLs": ["http://e"]},
                {"ID": "18249187646912138824", "peerURLs": ["http://e-12.e.ns.svc:2380"], "isLearner": true},
            ],
        });
        let list: MemberList = serde_json::from_value(list).unwrap();
        let said: Vec<_> =
            list.members.iter().map(|one| (one.pod(), one.name.as_str(), one.is_learner)).collect();
        assert_eq!(said, [("e-0", "e-0", false), ("e-12", "", true)]);
        assert_eq!(list.members[0].id, 10_276_657_743_932_975_437);
        let status = json!({"header": {"cluster_id": "1", "member_id": "2"}, "version": "3.5.34", "raftAppliedIndex": "7"});
        let status: MemberStatus = serde_json::from_value(status).unwrap();
        assert_eq!((status.leader, status.raft_applied_index), (0, 7));
    }
}
