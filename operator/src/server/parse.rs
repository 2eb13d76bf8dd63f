//! What redis-server writes, read: `CLUSTER NODES` and `INFO`.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use crate::plan::{
    Flavour, Link, Node, NodeId, NodeIdError, Peer, Persistence, SYNC_BYTES, SYNC_SECONDS, Slots, Version,
};

/// A text of redis-server that cannot be read.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParseError {
    /// An id that is none.
    #[error(transparent)]
    NodeId(#[from] NodeIdError),
    /// A line of CLUSTER NODES with too few words.
    #[error("expected at least 8 words in a line of CLUSTER NODES, found `{0}`")]
    Short(String),
    /// Something that should be a number.
    #[error("expected a number for {0}, found `{1}`")]
    Number(&'static str, String),
    /// CLUSTER NODES without a line of the node itself.
    #[error("CLUSTER NODES has no line for the node itself")]
    NoOwnLine,
}

fn number<T: std::str::FromStr>(what: &'static str, text: &str) -> Result<T, ParseError> {
    text.parse().map_err(|_| ParseError::Number(what, text.into()))
}

/// Reads what a node says about itself and the others: `CLUSTER NODES`, `CLUSTER INFO`, `INFO`, `DBSIZE`.
///
/// # Errors
/// When the table cannot be read. What is missing in the others counts as unknown.
pub fn node(nodes: &str, cluster_info: &str, info: &str, keys: u64) -> Result<Node, ParseError> {
    let mut table = vec![];
    let (mut id, mut hostname) = (None, None);
    let (mut migrating, mut importing) = (BTreeMap::new(), BTreeMap::new());
    for line in nodes.lines().filter(|line| !line.trim().is_empty()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [peer_id, address, flags, primary, _ping, _pong, epoch, link, slots @ ..] = &words[..] else {
            return Err(ParseError::Short(line.into()));
        };
        let peer_id: NodeId = peer_id.parse()?;
        let flags: Vec<&str> = flags.split(',').collect();
        let mut owned = Slots::default();
        for word in slots {
            match word.strip_prefix('[').and_then(|word| word.strip_suffix(']')) {
                Some(open) => {
                    if let Some((slot, to)) = open.split_once("->-") {
                        migrating.insert(number("a slot", slot)?, to.parse()?);
                    } else if let Some((slot, from)) = open.split_once("-<-") {
                        importing.insert(number("a slot", slot)?, from.parse()?);
                    }
                }
                None => {
                    let (first, last) = word.split_once('-').unwrap_or((word, word));
                    owned.insert(number("a slot", first)?, number("a slot", last)?);
                }
            }
        }
        let (ip, pod) = place(address);
        if flags.contains(&"myself") {
            id = Some(peer_id);
            hostname = announced(address).map(str::to_owned);
        }
        table.push(Peer {
            id: peer_id,
            ip,
            pod,
            primary: if *primary == "-" { None } else { Some(primary.parse()?) },
            handshake: flags.contains(&"handshake"),
            failed: flags.contains(&"fail"),
            suspected: flags.contains(&"fail?"),
            connected: *link == "connected" || flags.contains(&"myself"),
            epoch: number("an epoch", epoch)?,
            slots: owned,
        });
    }
    let cluster = fields(cluster_info);
    let info = fields(info);
    let get = |name: &str| info.get(name).copied().unwrap_or_default();
    let count = |name: &str| get(name).parse::<u64>().unwrap_or(0);
    let link = match (get("role"), get("master_link_status"), get("master_sync_in_progress")) {
        ("slave", "up", _) => Link::Up,
        ("slave", _, "1") => Link::Syncing,
        // -1: not since it started or became a replica.
        ("slave", ..) => get("master_link_down_since_seconds").parse().map_or(Link::Never, Link::Down),
        _ => Link::None,
    };
    let offset = if link == Link::None { "master_repl_offset" } else { "slave_repl_offset" };
    Ok(Node {
        id: id.ok_or(ParseError::NoOwnLine)?,
        hostname,
        table: table.into(),
        ok: cluster.get("cluster_state") == Some(&"ok"),
        current_epoch: cluster.get("cluster_current_epoch").and_then(|epoch| epoch.parse().ok()).unwrap_or(0),
        keys,
        memory: (count("used_memory"), count("maxmemory")),
        link,
        bound: get("master_host").parse().ok(),
        offset: get(offset).parse().unwrap_or(0),
        silence: get("master_last_io_seconds_ago").parse().ok(),
        attached: attached(&info),
        good_replicas: get("min_slaves_good_slaves").parse().ok(),
        migrating,
        importing,
        held: false,
        libraries: count("number_of_libraries"),
        settings: BTreeMap::new(),
        persistence: Persistence {
            write_failed: get("aof_last_write_status") == "err",
            rewrite_failed: get("aof_last_bgrewrite_status") == "err",
            snapshot_failed: get("rdb_last_bgsave_status") == "err",
            file_bytes: count("aof_current_size"),
        },
        version: version(get("redis_version"), get("valkey_version")),
        run_id: get("run_id").into(),
    })
}

/// Every Valkey says that it is Redis 7.2.4, for clients that ask.
fn version(redis: &str, valkey: &str) -> Version {
    let (flavour, number) =
        if valkey.is_empty() { (Flavour::Redis, redis) } else { (Flavour::Valkey, valkey) };
    Version { flavour, number: number.into() }
}

/// `ip:port@bus,hostname,…`: where it is, and the pod that it says it is.
fn place(address: &str) -> (Option<IpAddr>, Option<String>) {
    let socket = address.split(',').next().unwrap_or_default();
    let ip = socket.split('@').next().and_then(|socket| socket.rsplit_once(':')).map(|(ip, _)| ip);
    let ip = ip.and_then(|ip| ip.trim_start_matches('[').trim_end_matches(']').parse().ok());
    let pod = announced(address).and_then(|host| host.split('.').next());
    (ip, pod.map(str::to_owned))
}

/// The host name in `ip:port@bus,hostname,…`. In front of later fields, it may be missing.
fn announced(address: &str) -> Option<&str> {
    address.split(',').nth(1).filter(|host| !host.is_empty() && !host.contains('='))
}

/// Addresses of replicas that a primary lists as online and in sync: `slave0:ip=…,port=…,state=online,offset=…,lag=…`.
fn attached(info: &BTreeMap<&str, &str>) -> BTreeSet<IpAddr> {
    let end: i64 = info.get("master_repl_offset").and_then(|offset| offset.parse().ok()).unwrap_or(0);
    let replicas = info
        .iter()
        .filter(|(name, _)| name.strip_prefix("slave").is_some_and(|number| number.parse::<u32>().is_ok()));
    let in_sync = replicas.filter_map(|(_, value)| {
        let words: BTreeMap<&str, &str> = value.split(',').filter_map(|word| word.split_once('=')).collect();
        let (offset, lag): (i64, u64) = (words.get("offset")?.parse().ok()?, words.get("lag")?.parse().ok()?);
        let near = lag <= SYNC_SECONDS && end.saturating_sub(offset) <= SYNC_BYTES;
        (near && words.get("state") == Some(&"online")).then(|| words.get("ip")?.parse().ok())?
    });
    in_sync.collect()
}

/// `name:value` lines.
fn fields(text: &str) -> BTreeMap<&str, &str> {
    text.lines().filter_map(|line| line.trim_end().split_once(':')).collect()
}

#[cfg(test)]
mod tests {
    use insta::assert_debug_snapshot;

    use super::*;

    const NODES: &str = "\
3c6ef36200000000000000000000000000000002 10.0.0.1:6379@16379,rc-0.rc-headless.ns.svc.cluster.local myself,master - 0 1 2 connected 0-5460 5462 [5460->-1715607500000000000000000000000000000005]
1715607500000000000000000000000000000005 :0@0 master,noaddr,fail - 0 1 3 disconnected 5463-16383
1715607500000000000000000000000000000006 ::1:6379@16379,,shard-id=abc slave,fail? 3c6ef36200000000000000000000000000000002 0 1 2 disconnected
f1bbcd8800000000000000000000000000000008 10.0.0.9:6379@16379 handshake - 0 0 0 disconnected
";

    #[test]
    fn a_table() {
        let node =
            node(NODES, "cluster_state:ok\r\ncluster_current_epoch:7\r\n", "role:master\r\n", 5).unwrap();
        assert_eq!((node.ok, node.current_epoch, node.keys, node.epoch()), (true, 7, 5, 2));
        assert_eq!(node.slots().to_string(), "0-5460 5462");
        assert_debug_snapshot!(node.migrating, @r"
        {
            5460: 1715607500000000000000000000000000000005,
        }
        ");
        let peers: Vec<_> = node
            .table
            .iter()
            .map(|peer| {
                format!("{:?} {:?} {} {} {}", peer.ip, peer.pod, peer.failed, peer.suspected, peer.handshake)
            })
            .collect();
        assert_debug_snapshot!(peers, @r#"
        [
            "None None true false false",
            "Some(::1) None false true false",
            "Some(10.0.0.1) Some(\"rc-0\") false false false",
            "Some(10.0.0.9) None false false true",
        ]
        "#);
    }

    #[test]
    fn flavours() {
        let version = |info: &str| node(NODES, "", info, 0).unwrap().version.to_string();
        assert_eq!(version("redis_version:7.0.15\r\n"), "Redis 7.0.15");
        let valkey = "redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:9.1.2\r\n";
        assert_eq!(version(valkey), "Valkey 9.1.2");
    }

    #[test]
    fn links() {
        let link = |info: &str| node(NODES, "", info, 0).unwrap().link;
        assert_eq!(link("role:master"), Link::None);
        assert_eq!(link("role:slave\nmaster_link_status:up"), Link::Up);
        assert_eq!(link("role:slave\nmaster_link_status:down\nmaster_sync_in_progress:1"), Link::Syncing);
        assert_eq!(
            link("role:slave\nmaster_link_status:down\nmaster_link_down_since_seconds:12"),
            Link::Down(12)
        );
        assert_eq!(
            link("role:slave\nmaster_link_status:down\nmaster_link_down_since_seconds:-1"),
            Link::Never
        );
    }

    #[test]
    fn replicas_of_a_primary() {
        let attached = |line: &str| {
            let info = format!("role:master\nconnected_slaves:1\nslave0:{line}\nmaster_repl_offset:90000000");
            node(NODES, "", &info, 0).unwrap().attached.into_iter().collect::<Vec<_>>()
        };
        let ip: IpAddr = "10.0.0.2".parse().unwrap();
        assert_eq!(attached("ip=10.0.0.2,port=6379,state=online,offset=89999000,lag=1"), [ip]);
        assert_eq!(attached("ip=10.0.0.2,port=6379,state=online,offset=89999000,lag=16").len(), 0);
        assert_eq!(attached("ip=10.0.0.2,port=6379,state=online,offset=1000,lag=0").len(), 0);
        assert_eq!(attached("ip=10.0.0.2,port=6379,state=wait_bgsave,offset=0,lag=0").len(), 0);
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,80}|([0-9a-f]{40}( [-a-z0-9:,@\\[\\]<>]{0,12}){0,10}\n){0,4}") {
            let _ = node(&text, &text, &text, 0);
        }
    }
}
