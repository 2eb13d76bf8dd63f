//! redis.conf and the scripts of a pod: how Redis starts, when it is ready and alive, and what happens before it stops.

use kube::ResourceExt;

use super::{
    children::{Defaults, PORT},
    exporter::TELL_EXPORTER,
    live, tls,
};
use crate::{
    crd::RedisCluster,
    server::{
        configure::Directives,
        observe::{APPEND_ONLY, MIGRATION, NODE_TIMEOUT, SAVE, VALIDITY_FACTOR},
    },
};

/// The files by name. With `before`, redis.conf keeps the lines of it that running nodes have not changed; `limit` is its
/// `maxmemory`, where that follows from the memory limit.
pub(super) fn files(
    cluster: &RedisCluster,
    defaults: &Defaults,
    before: Option<&str>,
    limit: &str,
) -> [(&'static str, String); 5] {
    [
        ("redis.conf", redis_conf(cluster, defaults, before, limit)),
        ("start.sh", script(cluster, &start_script(cluster, defaults))),
        ("ready.sh", script(cluster, &format!("{PASSWORDS}{TELL_EXPORTER}{READY}"))),
        ("live.sh", script(cluster, LIVE)),
        ("stop.sh", script(cluster, &format!("{PASSWORDS}{STOP}"))),
    ]
}

/// A script that asks Redis.
fn script(cluster: &RedisCluster, text: &str) -> String {
    if cluster.spec.tls.is_some() { tls::script(text) } else { text.into() }
}

/// Node timeouts for which a replica may have heard nothing from its primary and still run for election, if the spec does not say
/// it. One that was never connected does not run in any case: it has no data yet, and a primary that comes back with all keys
/// would drop them. The operator promotes those that it knows to have been in sync.
const VALIDITY: i32 = 4;

/// Directives of redis.conf that are not the user's and that running nodes may have otherwise: those of older releases, of the
/// spec of before, or what somebody set by hand. Snapshots are off: one that fails would make Redis refuse writes, and the append-only
/// file has all data.
pub(super) fn own_directives(cluster: &RedisCluster, defaults: &Defaults) -> Directives {
    let own = [
        (VALIDITY_FACTOR, validity_factor(cluster)),
        (SAVE, String::new()),
        (APPEND_ONLY, if cluster.spec.storage.is_some() { "yes" } else { "no" }.into()),
        (NODE_TIMEOUT, defaults.node_timeout_ms.to_string()),
        (MIGRATION, "no".into()),
    ];
    own.into_iter().map(|(directive, value)| (directive.to_owned(), value)).collect()
}

fn validity_factor(cluster: &RedisCluster) -> String {
    let factor = cluster.spec.recovery.as_ref().and_then(|recovery| recovery.replica_validity_factor);
    factor.unwrap_or(VALIDITY).to_string()
}

fn redis_conf(cluster: &RedisCluster, defaults: &Defaults, before: Option<&str>, limit: &str) -> String {
    let persistence = if cluster.spec.storage.is_some() {
        "appendonly yes\nappendfilename appendonly.aof\nappenddirname appendonlydir\ndbfilename dump.rdb\nsave \"\""
    } else {
        "appendonly no\nsave \"\""
    };
    let timeout = defaults.node_timeout_ms;
    let validity = validity_factor(cluster);
    let wanted = live::wanted(cluster);
    // Later lines win over directives that were stored before the schema refused them.
    let mut conf = String::new();
    for (directive, value) in &cluster.spec.config {
        if before.is_none() || !live::is_live(directive) {
            conf += &format!("{directive} {value}\n");
        }
    }
    for line in before.into_iter().flat_map(|before| live::kept_lines(before, &wanted)) {
        conf += &format!("{line}\n");
    }
    let port = match cluster.spec.tls {
        Some(_) => tls::directives(PORT),
        None => format!("port {PORT}\n"),
    };
    conf += &format!(
        "{port}dir /data\n{persistence}\ncluster-enabled yes\ncluster-config-file nodes.conf\n\
         cluster-node-timeout {timeout}\ncluster-allow-replica-migration no\n\
         {VALIDITY_FACTOR} {validity}\n\
         repl-diskless-sync-delay 0\n"
    );
    conf + limit
}

/// The password comes from the environment and goes into a file in memory, since command lines are visible to others. The
/// environment is as new as the container, and the files may be older: what they have is accepted as well. The script only needs
/// a shell, `sleep`, `rm` and `mv`, so that small images work.
fn start_script(cluster: &RedisCluster, defaults: &Defaults) -> String {
    // A primary that restarts without its data would empty its replicas, also as a new node at its old address: its replica
    // reconnects before the old node is marked as failed. So it waits until that replica has been elected.
    let away = (2 * u64::from(defaults.node_timeout_ms)).div_ceil(1000) + 2;
    let prepare = if cluster.spec.storage.is_some() {
        let (namespace, uid) = (cluster.namespace().unwrap_or_default(), cluster.uid().unwrap_or_default());
        FORGET_ADDRESSES.replace("OWNER", &format!("{namespace}/{}/{uid}", cluster.name_any()))
    } else {
        // Files of an earlier container, such as a dump, do not belong to the new node.
        format!(
            "[ ! -s /data/nodes.conf ] || {{ sleep {away} & wait; }}\nrm -rf /data/*\n: > /data/nodes.conf\n"
        )
    };
    format!(
        "set -eu\numask 077\n{STOPPABLE}{LAST_WORDS}{PASSWORDS}{TELL_EXPORTER}password=$(printf %s \"$REDISCLI_AUTH\")\n\
         tell_exporter \"$password\"\n{prepare}\
         others=$(passwords | while IFS= read -r word; do\n\
         [ \"$word\" = \"$password\" ] || printf ' \">%s\"' \"$word\"\n\
         done)\n{{\n\
         printf 'include /etc/redis-operator/redis.conf\\n'\n\
         printf 'cluster-announce-ip %s\\n' \"$POD_IP\"\n\
         printf 'replica-announce-ip %s\\n' \"$POD_IP\"\n\
         printf 'cluster-announce-hostname %s\\n' \"$POD_HOST\"\n\
         printf 'requirepass \"%s\"\\nmasterauth \"%s\"\\n' \"$password\" \"$password\"\n\
         [ -z \"$others\" ] || printf 'user default on ~* &* +@all \">%s\"%s\\n' \"$password\" \"$others\"\n\
         }} > /run/redis/redis.conf\n\
         exec redis-server /run/redis/redis.conf\n"
    )
}

/// The first process of a container ignores SIGTERM unless it says otherwise. A pod that was deleted before Redis started would start it and
/// end a minute later. The shell ends as soon as a program that it waits for has ended, or at once with `wait`.
const STOPPABLE: &str = "trap 'exit 143' TERM\n";

/// What Redis and the shell write to standard error goes into the status of the pod when the container ends, such as the line of
/// redis.conf that Redis refuses. The log is on standard output.
const LAST_WORDS: &str = "[ ! -w /dev/termination-log ] || exec 2> /dev/termination-log\n";

/// A restored or cloned volume still has the addresses of the original cluster. They are removed before Redis starts, so that
/// it never connects there; the operator introduces the nodes of this cluster to it.
const FORGET_ADDRESSES: &str = "\
owner='OWNER'
seen=
[ ! -r /data/cluster ] || read -r seen < /data/cluster || :
if [ \"$seen\" != \"$owner\" ]; then
  if [ -s /data/nodes.conf ]; then
    while read -r id address flags rest; do
      case \"$id,$flags\" in
        vars,* | *myself*) ;;
        *) host=; case \"$address\" in *,*) host=,${address#*,} ;; esac
           address=:0@0$host; flags=noaddr,$flags ;;
      esac
      printf '%s %s %s %s\\n' \"$id\" \"$address\" \"$flags\" \"$rest\"
    done < /data/nodes.conf > /data/nodes.conf.new
    mv /data/nodes.conf.new /data/nodes.conf
  fi
  printf '%s\\n' \"$owner\" > /data/cluster
fi
";

/// Prints the passwords that Redis may accept, each on a line: those of the Secret's files, which the kubelet keeps up to date, and
/// that of the environment, which is as old as the container. Pods of release 0.5 have no files. Passwords that
/// redis.conf cannot quote are omitted, and the operator reports them.
const PASSWORDS: &str = "\
passwords() {
  for file in password previousPassword; do
    word=
    [ ! -r \"/etc/redis-passwords/$file\" ] || IFS= read -r word < \"/etc/redis-passwords/$file\" || :
    case \"$word\" in '' | *[\\\"\\\\]*) ;; *) printf '%s\\n' \"$word\" ;; esac
  done
  printf '%s\\n' \"$(printf %s \"$REDISCLI_AUTH\")\"
}
";

/// Does not check `cluster_state`: one lost slot would make every node not ready.
/// A node that accepts none of the passwords serves the clients that have its own. The readiness gate says whether it is in sync.
const READY: &str = "\
passwords | {
  refused=
  while IFS= read -r word; do
    case \"$(REDISCLI_AUTH=$word redis-cli ping 2>/dev/null </dev/null)\" in
      PONG) tell_exporter \"$word\"; exit 0 ;;
      NOAUTH*) refused=yes ;;
      *) exit 1 ;;
    esac
  done
  [ -n \"$refused\" ]
}
";

/// Killing a primary in memory loses its data, so only a Redis that does not respond fails. It also responds to those who do not
/// say a password.
const LIVE: &str = "\
unset REDISCLI_AUTH
case \"$(redis-cli ping 2>&1)\" in *PONG* | *NOAUTH* | *LOADING* | *MASTERDOWN*) ;; *) exit 1 ;; esac
";

/// Before a primary stops, its best replica takes over: Redis does not do that by itself, and its slots would have no owner
/// until it is marked as failed. Where all pods are about to stop, the operator has said so, clients
/// cannot write, and nobody takes over; if they can write again, the operator died before it stopped the pods. Where a whole
/// cluster is deleted, the replica may be gone already: `redis-cli` would wait for it until the grace period is over.
const STOP: &str = "\
REDISCLI_AUTH=$(passwords | while IFS= read -r word; do
  if [ \"$(REDISCLI_AUTH=$word redis-cli ping 2>/dev/null </dev/null)\" = PONG ]; then
    printf %s \"$word\"
    break
  fi
done)
export REDISCLI_AUTH
case \"$(redis-cli config get cluster-replica-no-failover 2>/dev/null)\" in *yes*)
  redis-cli publish redis-operator stop > /run/redis/held 2>&1 </dev/null &
  asked=$!
  sleep 2
  if kill \"$asked\" 2>/dev/null; then exit 0; fi
  ;;
esac
redis-cli role > /run/redis/role 2>/dev/null || exit 0
best=
top=-1
{
  read -r role && read -r offset || exit 0
  [ \"$role\" = master ] || exit 0
  while read -r ip && read -r port && read -r seen; do
    if [ \"$seen\" -gt \"$top\" ]; then
      top=$seen
      best=$ip
    fi
  done
} < /run/redis/role
[ -n \"$best\" ] || exit 0
passwords | {
  while IFS= read -r word; do
    REDISCLI_AUTH=$word redis-cli -h \"$best\" cluster failover > /run/redis/failover 2>&1 </dev/null &
    asked=$!
    (exec >/dev/null 2>&1 </dev/null; sleep 10; kill \"$asked\") &
    limit=$!
    wait \"$asked\" || [ \"$?\" -lt 128 ] || exit 1
    kill \"$limit\" 2>/dev/null
    answer=
    read -r answer < /run/redis/failover || :
    case \"$answer\" in OK*) exit 0 ;; esac
  done
  exit 1
} || exit 0
for second in 1 2 3 4 5 6 7 8 9 10; do
  case \"$(redis-cli role 2>/dev/null)\" in slave*) exit 0 ;; esac
  sleep 1
done
";

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// The script, with the places of a container moved to `dir`, and how long it took to the start of Redis.
    fn started(dir: &std::path::Path, storage: Value) -> (bool, String) {
        started_with(dir, std::path::Path::new("/nowhere"), storage, "a b")
    }

    /// The same with the files of a Secret, and the password of the environment.
    fn started_with(
        dir: &std::path::Path,
        files: &std::path::Path,
        storage: Value,
        password: &str,
    ) -> (bool, String) {
        let object = json!({
            "apiVersion": "cache.example.com/v1", "kind": "RedisCluster", "metadata": {"name": "rc"},
            "spec": {"size": 3, "storage": storage},
        });
        let cluster: RedisCluster = serde_json::from_value(object).unwrap();
        let defaults = Defaults { node_timeout_ms: 500, ..Defaults::default() };
        let script = start_script(&cluster, &defaults);
        let place = dir.display().to_string();
        let script = script.replace(" /data", &format!(" {place}")).replace("/run/redis", &place);
        let script = script.replace("exec redis-server", "exec cat");
        let script = script.replace("/etc/redis-passwords", &files.display().to_string());
        let started = std::time::Instant::now();
        let output = std::process::Command::new("sh")
            .args(["-c", &script])
            .envs([("POD_IP", "10.0.0.1"), ("POD_HOST", "rc-0.rc"), ("REDISCLI_AUTH", password)])
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        (started.elapsed().as_secs() >= 3, String::from_utf8(output.stdout).unwrap())
    }

    /// Its replica has to be elected first: it would copy the emptiness otherwise.
    #[test]
    fn a_node_without_a_volume_that_starts_again_stays_away_for_a_while() {
        let dir = tempfile::tempdir().unwrap();
        let table = dir.path().join("nodes.conf");
        let (waited, conf) = started(dir.path(), Value::Null);
        assert!(!waited && conf.contains("requirepass \"a b\"\nmasterauth \"a b\"\n"), "{conf}");
        std::fs::write(&table, "0123 10.0.0.1:6379@16379,rc-0 myself,master - 0 0 1 connected").unwrap();
        std::fs::write(dir.path().join("dump.rdb"), "old").unwrap();
        assert!(started(dir.path(), Value::Null).0);
        assert_eq!(std::fs::read_to_string(&table).unwrap(), "");
        assert_eq!(
            std::fs::read_dir(dir.path()).unwrap().count(),
            2,
            "what an earlier container left is gone"
        );
    }

    /// Its pod may be deleted meanwhile.
    #[test]
    fn a_node_that_stays_away_ends_when_it_is_told_to() {
        use std::process::{Command, Stdio};
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("nodes.conf"), "0123 10.0.0.1:6379@16379 myself,master").unwrap();
        let object = json!({
            "apiVersion": "cache.example.com/v1", "kind": "RedisCluster", "metadata": {"name": "rc"},
            "spec": {"size": 3},
        });
        let defaults = Defaults { node_timeout_ms: 60_000, ..Defaults::default() };
        let script = start_script(&serde_json::from_value(object).unwrap(), &defaults);
        let place = dir.path().display().to_string();
        let script = script.replace(" /data", &format!(" {place}")).replace("/run/redis", &place);
        let script = script.replace("{ sleep", "{ echo away; sleep");
        let mut child = Command::new("sh")
            .args(["-c", &script])
            .env("REDISCLI_AUTH", "word")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = [0; 4];
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut said).unwrap();
        let told = std::time::Instant::now();
        let kill = Command::new("kill").arg(child.id().to_string()).status().unwrap();
        assert!(kill.success() && &said == b"away");
        assert_eq!(child.wait().unwrap().code(), Some(143));
        assert!(told.elapsed().as_secs() < 60, "it waited for the sleep");
    }

    /// While the password changes, clients use both, and the files may be older than the container.
    #[test]
    fn a_node_that_starts_accepts_the_passwords_of_the_environment_and_of_the_files() {
        let storage = || json!({"size": "1Gi"});
        let check = |password: &str, files: &[(&str, &str)], expected: &str| {
            let (dir, place) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
            for (name, text) in files {
                std::fs::write(place.path().join(name), text).unwrap();
            }
            let (_, conf) = started_with(dir.path(), place.path(), storage(), password);
            let lines = conf.lines().skip_while(|line| !line.starts_with("requirepass"));
            assert_eq!(lines.collect::<Vec<_>>().join("; "), expected, "{password}, {files:?}");
        };
        let one = r#"requirepass "new %s $x"; masterauth "new %s $x""#;
        let two = format!(r#"{one}; user default on ~* &* +@all ">new %s $x" "> old `x` '""#);
        check("new %s $x", &[("password", "new %s $x")], one);
        check("new %s $x\n", &[("password", "new %s $x\n")], one);
        check("new %s $x", &[("password", "new %s $x\n"), ("previousPassword", " old `x` '\n")], &two);
        check("new %s $x", &[("password", " old `x` '")], &two);
        check("new %s $x", &[("previousPassword", "")], one);
        // It would keep Redis from starting, or add directives.
        check("new %s $x", &[("previousPassword", "a\" \"b"), ("password", "a\\b")], one);
        check("new %s $x", &[("previousPassword", " old `x` '\nappendonly no")], &two);
    }

    /// The output of a script in a container where redis-cli and redis-server are these.
    fn run(script: &str, programs: &[(&str, &str)]) -> std::process::Output {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in programs {
            let program = dir.path().join(name);
            std::fs::write(&program, format!("#!/bin/sh\n{text}\n")).unwrap();
            std::fs::set_permissions(program, PermissionsExt::from_mode(0o755)).unwrap();
        }
        let path = format!("{}:{}", dir.path().display(), std::env::var("PATH").unwrap());
        let variables =
            [("POD_IP", "10.0.0.1"), ("POD_HOST", "rc-0.rc"), ("REDISCLI_AUTH", "word"), ("PATH", &path)];
        std::process::Command::new("sh").args(["-c", script]).envs(variables).output().unwrap()
    }

    #[test]
    fn a_node_that_loads_its_data_is_alive_and_not_ready() {
        let ready = format!("{PASSWORDS}{TELL_EXPORTER}{READY}");
        for (answer, is_ready, is_alive) in [
            ("PONG", true, true),
            ("NOAUTH Authentication required.", true, true),
            ("LOADING Redis is loading the dataset in memory", false, true),
            ("MASTERDOWN Link with MASTER is down", false, true),
            ("Could not connect to Redis at 127.0.0.1:6379: Connection refused", false, false),
            ("", false, false),
        ] {
            let succeeds =
                |script: &str| run(script, &[("redis-cli", &format!("echo '{answer}'"))]).status.success();
            assert_eq!((succeeds(&ready), succeeds(LIVE)), (is_ready, is_alive), "{answer}");
        }
    }

    /// The kubelet puts it into the status of the pod. And the exporter has its password before Redis starts.
    #[test]
    fn what_redis_says_of_its_configuration_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().display().to_string();
        let outside = tempfile::tempdir().unwrap();
        let file = outside.path().join("termination-log");
        std::fs::write(&file, "").unwrap();
        let object = json!({
            "apiVersion": "cache.example.com/v1", "kind": "RedisCluster", "metadata": {"name": "rc"},
            "spec": {"size": 3},
        });
        let cluster: RedisCluster = serde_json::from_value(object).unwrap();
        let script = start_script(&cluster, &Defaults::default());
        let script = script.replace("/dev/termination-log", &file.display().to_string());
        let exporter = outside.path().join("exporter");
        std::fs::create_dir(&exporter).unwrap();
        let script = script.replace("/run/exporter", &exporter.display().to_string());
        let script = script.replace(" /data", &format!(" {place}")).replace("/run/redis", &place);
        let output = run(&script, &[("redis-server", "echo log; echo refused >&2; exit 1")]);
        assert_eq!(output.status.code(), Some(1));
        assert_eq!((&*output.stdout, &*output.stderr), (&b"log\n"[..], &b""[..]));
        assert_eq!(std::fs::read_to_string(file).unwrap(), "refused\n");
        let told = std::fs::read_to_string(exporter.join("passwords.json")).unwrap();
        assert_eq!(told, "{\"redis://localhost:6379\":\"word\"}\n");
    }

    /// A copy of a volume would speak with the cluster that it was copied from.
    #[test]
    fn a_volume_of_another_cluster_forgets_the_addresses() {
        const OWN: &str =
            "07c3 10.0.0.1:6379@16379,rc-0.rc-headless.ns myself,master - 0 0 1 connected 0-5460";
        const OTHER: &str =
            "67ed 10.0.0.2:6379@16379,rc-1.rc-headless.ns master - 0 1426238316232 2 connected 5461-16383";
        const VARS: &str = "vars currentEpoch 2 lastVoteEpoch 0";
        let dir = tempfile::tempdir().unwrap();
        let table = dir.path().join("nodes.conf");
        let read = || std::fs::read_to_string(&table).unwrap();
        let storage = json!({"size": "1Gi"});
        let text = format!("{OWN}\n{OTHER}\n{VARS}\n");
        std::fs::write(&table, &text).unwrap();
        assert!(!started(dir.path(), storage.clone()).0, "it does not stay away");
        let forgotten = OTHER.replace("10.0.0.2:6379@16379", ":0@0").replace(" master", " noaddr,master");
        assert_eq!(read(), format!("{OWN}\n{forgotten}\n{VARS}\n"));
        // Redis learns the addresses again, and the next start leaves them alone.
        std::fs::write(&table, &text).unwrap();
        started(dir.path(), storage.clone());
        assert_eq!(read(), text);
        std::fs::write(dir.path().join("cluster"), "ns/other/uid").unwrap();
        started(dir.path(), storage);
        assert!(read().contains(":0@0,rc-1"), "{}", read());
    }

    /// What the API refuses today may have been stored before.
    #[test]
    fn configuration_cannot_turn_off_what_keeps_the_data() {
        let conf = |storage: Value| {
            let object = json!({
                "apiVersion": "cache.example.com/v1", "kind": "RedisCluster", "metadata": {"name": "rc"},
                "spec": {"size": 3, "storage": storage, "config": {
                    "appendonly": "no", "dir": "/tmp", "cluster-enabled": "no", "save": "1 1", "appendfilename": "x",
                }},
            });
            let cluster: RedisCluster = serde_json::from_value(object).unwrap();
            redis_conf(&cluster, &Defaults::default(), None, "")
        };
        let last = |conf: &str, directive: &str| {
            let lines = conf.lines().filter_map(|line| line.split_once(' '));
            lines.rev().find(|(name, _)| *name == directive).unwrap().1.to_owned()
        };
        let with_volumes = conf(json!({"size": "1Gi"}));
        let in_memory = conf(Value::Null);
        assert_eq!(last(&with_volumes, "appendonly"), "yes");
        assert_eq!(last(&with_volumes, "appendfilename"), "appendonly.aof");
        assert_eq!(last(&with_volumes, "save"), "\"\"");
        assert_eq!((last(&in_memory, "appendonly"), last(&in_memory, "save")), ("no".into(), "\"\"".into()));
        for conf in [with_volumes, in_memory] {
            assert_eq!((last(&conf, "dir"), last(&conf, "cluster-enabled")), ("/data".into(), "yes".into()));
        }
    }
}
