//! A private network for these tests, where the machine permits: a network namespace, which ends with the process.
//!
//! Tests of other checkouts then do not take its addresses, and nodes can be cut off: their packets go to a device that drops
//! them. Nothing changes outside of it.

use std::{
    env, io,
    net::IpAddr,
    os::unix::process::CommandExt,
    process::Command,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::TcpSocket,
    task::JoinHandle,
};

use crate::servers::{PASSWORD, PORT};

/// Set for the process in the namespace.
const PRIVATE: &str = "OLMKIT_PRIVATE_NETWORK";

/// Rules for single addresses have to come before the one for all local addresses, which is the first by default.
const SETUP: &str = "\
ip link set lo up && ip link add drop type veth peer name end && \
ip link set drop arp off up && ip link set end arp off up && \
echo 1 > /proc/sys/net/ipv4/conf/drop/route_localnet && ip route add default dev drop table 66 && \
ip rule add pref 100 lookup local && ip rule del pref 0";

fn in_private_network(script: &str) -> Command {
    let script = format!("{SETUP} && {script}");
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--net", "sh", "-c", &script]);
    command
}

/// Replaces this process by one with a private network, if it has none. Returns why this machine cannot have one, if so.
pub(crate) fn enter() -> Option<String> {
    if is_private() {
        return None;
    }
    let why = match in_private_network("true").output() {
        Ok(output) if output.status.success() => {
            let mut command = in_private_network("exec \"$0\" \"$@\"");
            command.arg(env::current_exe().unwrap()).args(env::args_os().skip(1)).env(PRIVATE, "1").exec()
        }
        Ok(output) => io::Error::other(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        Err(error) => error,
    };
    Some(format!("cannot set up a network namespace: {}", why.to_string().replace('\n', "; ")))
}

fn is_private() -> bool {
    env::var_os(PRIVATE).is_some()
}

/// Cuts a node off from all others. Clients that bind to its own address still reach it.
pub(crate) fn cut_off(ip: IpAddr) {
    rules("add", ip);
}

/// Drops all packets between two nodes.
pub(crate) fn separate(a: IpAddr, b: IpAddr) {
    between("add", a, b);
}

/// Ends that.
pub(crate) fn rejoin(a: IpAddr, b: IpAddr) {
    between("del", a, b);
}

fn between(verb: &str, a: IpAddr, b: IpAddr) {
    for (from, to) in [(a, b), (b, a)] {
        rule(verb, &format!("pref 4 from {from} to {to} lookup 66"));
    }
}

/// Cuts nodes off from all others but each other, as a zone that is lost.
pub(crate) fn cut_off_together(ips: &[IpAddr]) {
    ips.iter().for_each(|ip| rules("add", *ip));
    together("add", ips);
}

/// Ends that.
pub(crate) fn reconnect_together(ips: &[IpAddr]) {
    ips.iter().for_each(|ip| rules("del", *ip));
    together("del", ips);
}

fn together(verb: &str, ips: &[IpAddr]) {
    for (from, to) in ips.iter().flat_map(|from| ips.iter().map(move |to| (from, to))) {
        if from != to {
            rule(verb, &format!("pref 5 from {from} to {to} lookup local"));
        }
    }
}

/// Ends that.
pub(crate) fn reconnect(ip: IpAddr) {
    rules("del", ip);
}

fn rules(verb: &str, ip: IpAddr) {
    for rule in [
        format!("pref 5 from {ip} to {ip} lookup local"),
        format!("pref 10 from {ip} lookup 66"),
        format!("pref 10 to {ip} lookup 66"),
    ] {
        self::rule(verb, &rule);
    }
}

fn rule(verb: &str, rule: &str) {
    assert!(is_private(), "the network of the machine is not to be changed");
    let output = Command::new("ip").args(["rule", verb]).args(rule.split(' ')).output().unwrap();
    assert!(output.status.success(), "ip rule {verb} {rule}: {output:?}");
}

/// A client on the side of a node that is cut off.
pub(crate) struct LocalClient(JoinHandle<std::io::Result<()>>, Arc<Mutex<Option<(Instant, u64)>>>);

impl LocalClient {
    /// Writes numbers to this key, from the address of the node.
    pub(crate) fn start(ip: IpAddr, key: String) -> Self {
        let last = Arc::new(Mutex::new(None));
        let acknowledged = last.clone();
        let task = tokio::spawn(async move {
            let socket = TcpSocket::new_v4()?;
            socket.bind((ip, 0).into())?;
            let mut stream = BufReader::new(socket.connect((ip, PORT).into()).await?);
            let mut command = format!("AUTH {PASSWORD}\r\n");
            for number in 0.. {
                let mut answer = String::new();
                stream.get_mut().write_all(command.as_bytes()).await?;
                stream.read_line(&mut answer).await?;
                if answer.starts_with('+') {
                    *acknowledged.lock().unwrap() = Some((Instant::now(), number));
                }
                command = format!("SET {key} {}\r\n", number + 1);
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            Ok(())
        });
        Self(task, last)
    }

    /// Stops, and returns when a write was last acknowledged, and which number.
    pub(crate) fn stop(self) -> Option<(Instant, u64)> {
        self.0.abort();
        *self.1.lock().unwrap()
    }
}
