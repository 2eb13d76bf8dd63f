//! Members without etcd, for clusters of one that are only looked at: a real one takes 128 MB of disk for its log.

use std::{
    collections::BTreeSet,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    time::Duration,
};

use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, ResourceExt,
    api::{ListParams, Patch, PatchParams},
};
use serde_json::{Value, json};

use crate::{
    members::{next, status},
    support::Cluster,
};

/// Runs the pods of one namespace for as long as the value lives: each answers as the only member of its cluster.
pub(crate) struct Settled(tokio::task::JoinHandle<()>);

impl Settled {
    pub(crate) fn start(cluster: &Cluster, namespace: &str) -> Self {
        let (api, namespace): (Api<Pod>, _) = (cluster.api(namespace), namespace.to_owned());
        Self(tokio::spawn(async move {
            let mut known = BTreeSet::new();
            loop {
                let pods = api.list(&ListParams::default()).await.map(|list| list.items).unwrap_or_default();
                for pod in pods.iter().filter(|pod| known.insert(pod.uid())) {
                    let (number, ip) = next();
                    let listener = TcpListener::bind((ip.as_str(), 2379)).unwrap();
                    let (name, service) = (pod.name_any(), &pod.labels()["app.kubernetes.io/instance"]);
                    let url = format!("http://{name}.{service}.{namespace}.svc:2380");
                    let patch = Patch::Merge(json!({"status": status(number, "etcd:3.6", &ip)}));
                    // It may be gone by now.
                    let _ = api.patch_status(&name, &PatchParams::default(), &patch).await;
                    std::thread::spawn(move || serve(&listener, number + 1, &name, &url));
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }))
    }
}

impl Drop for Settled {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn serve(listener: &TcpListener, id: u32, name: &str, url: &str) {
    let id = id.to_string();
    let header = json!({"cluster_id": id, "member_id": id});
    let members = json!([{"ID": id, "name": name, "peerURLs": [url]}]);
    let list = json!({"header": header, "members": members});
    let status = json!({"header": header, "version": "3.6.0", "leader": id, "raftAppliedIndex": "9"});
    for stream in listener.incoming().flatten() {
        // The operator may have given up.
        let _ = answer(stream, &list, &status);
    }
}

fn answer(mut stream: TcpStream, list: &Value, status: &Value) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let (mut head, mut line) = (String::new(), String::new());
    while reader.read_line(&mut line)? > 2 {
        head += &line.to_ascii_lowercase();
        line.clear();
    }
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:")).unwrap_or("0");
    reader.read_exact(&mut vec![0; length.trim().parse().unwrap_or_default()])?;
    let body = if head.contains("member/list") { list } else { status }.to_string();
    write!(stream, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}
