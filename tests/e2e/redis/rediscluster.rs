//! A RedisCluster as its users see it, and its nodes as their clients do.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::Stdio;
use std::time::{Duration, Instant};

use libtest_mimic::Failed;
use serde_json::Value;

use crate::cluster::{Namespace, PATIENCE, finished, within};

/// Slots of 30,000 keys take their time on a busy machine.
const LONG: Duration = Duration::from_secs(420);

/// A RedisCluster of this name.
pub(super) struct Redis<'a> {
    pub(super) namespace: &'a Namespace,
    pub(super) name: &'static str,
}

impl Redis<'_> {
    pub(super) fn object(&self) -> String {
        format!("rediscluster/{}", self.name)
    }

    pub(super) fn create(&self, spec: &str) -> Result<(), Failed> {
        self.namespace.apply(&format!(
            "{{apiVersion: cache.example.com/v1, kind: RedisCluster, metadata: {{name: {}}}, \
             spec: {{image: '{{registry}}/redis-with-shell:e2e', {spec}}}}}",
            self.name
        ))
    }

    pub(super) fn patch(&self, spec: &str) -> Result<(), Failed> {
        let patch = format!("{{\"spec\":{spec}}}");
        self.namespace.kubectl(&["patch", &self.object(), "--type", "merge", "--patch", &patch])?;
        Ok(())
    }

    pub(super) fn status(&self) -> Result<Value, Failed> {
        Ok(self.namespace.json(&self.object())?["status"].clone())
    }

    /// Waits until the status describes the spec as it is now and is Ready, and says how long that took.
    pub(super) fn ready(&self) -> Result<Duration, Failed> {
        let started = Instant::now();
        let ready = within(LONG, || {
            let object = self.namespace.json(&self.object())?;
            let status = &object["status"];
            let current = status["observedGeneration"] == object["metadata"]["generation"];
            let all = status["readyNodes"] == object["spec"]["size"];
            Ok((current && all && status["phase"] == "Ready" && is(status, "Available")).then_some(()))
        })?;
        match ready {
            Some(()) => Ok(started.elapsed()),
            None => {
                let object = self.namespace.json(&self.object())?;
                let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
                let conditions =
                    conditions.map(|one| format!("{} {}: {}", one["type"], one["status"], one["message"]));
                let said: Vec<String> = conditions.collect();
                let objects = "secret,configmap,statefulset,service,pod";
                let columns = "--output=custom-columns=KIND:.kind,NAME:.metadata.name,OWNER:.metadata.ownerReferences[0].uid";
                let instance = format!("--selector=app.kubernetes.io/instance={}", self.name);
                let there = self.namespace.kubectl(&["get", objects, &instance, columns])?;
                Err(format!("{object:#}\n{there}{} is not ready:\n{}", self.name, said.join("\n")).into())
            }
        }
    }

    /// Asks one pod's Redis.
    pub(super) fn ask(&self, ordinal: usize, words: &[&str]) -> Result<String, Failed> {
        let pod = format!("{}-{ordinal}", self.name);
        self.namespace.kubectl(&[&["exec", &pod, "--", "redis-cli"], words].concat())
    }

    /// Feeds one pod's Redis with commands.
    fn feed(&self, pod: &str, commands: &str) -> Result<String, Failed> {
        let arguments = ["--namespace", &self.namespace.name, "exec", "--stdin", pod, "--", "redis-cli"];
        let mut child = self
            .namespace
            .cluster
            .command(&arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let mut input = child.stdin.take().ok_or("no input")?;
        let text = commands.to_owned();
        let fed = std::thread::spawn(move || input.write_all(text.as_bytes()));
        let output = child.wait_with_output()?;
        fed.join().map_err(|_| "feeding failed")??;
        finished(&arguments, &output)
    }

    /// Writes so many keys, each to the primary of its slot.
    pub(super) fn fill(&self, keys: usize) -> Result<(), Failed> {
        let status = self.status()?;
        let mut commands: BTreeMap<String, String> = BTreeMap::new();
        let owners = owners(&status);
        for key in 0..keys {
            let key = format!("key-{key}");
            let owner =
                owners.get(usize::from(slot(&key))).cloned().flatten().ok_or("a slot has no owner")?;
            *commands.entry(owner).or_default() += &format!("SET {key} {key}\n");
        }
        for (pod, commands) in commands {
            let said = self.feed(&pod, &commands)?;
            let refused = said.lines().find(|line| *line != "OK");
            assert!(refused.is_none(), "{pod}: {refused:?}");
        }
        Ok(())
    }

    /// Keys of all primaries.
    pub(super) fn keys(&self) -> Result<usize, Failed> {
        let mut keys = 0;
        for member in members(&self.status()?).filter(|member| member["role"] == "Primary") {
            let pod = member["pod"].as_str().ok_or("no pod")?;
            let said = self.namespace.kubectl(&["exec", pod, "--", "redis-cli", "dbsize"])?;
            keys += said.trim().parse::<usize>()?;
        }
        Ok(keys)
    }

    /// Slots of each primary, fewest first.
    pub(super) fn shares(&self) -> Result<Vec<usize>, Failed> {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for owner in owners(&self.status()?).into_iter().flatten() {
            *counts.entry(owner).or_default() += 1;
        }
        let mut shares: Vec<usize> = counts.into_values().collect();
        shares.sort_unstable();
        Ok(shares)
    }

    /// How often each reason was published about it.
    pub(super) fn events(&self) -> Result<BTreeMap<String, usize>, Failed> {
        let list = self.namespace.kubectl(&["get", "events.events.k8s.io", "--output", "json"])?;
        let list: Value = serde_json::from_str(&list)?;
        let mut reasons = BTreeMap::new();
        for event in list["items"].as_array().into_iter().flatten() {
            if event["regarding"]["kind"] == "RedisCluster" && event["regarding"]["name"] == self.name {
                let reason = event["reason"].as_str().unwrap_or_default().to_owned();
                *reasons.entry(reason).or_default() += 1;
            }
        }
        Ok(reasons)
    }

    pub(super) fn wait_event(&self, reason: &str) -> Result<(), Failed> {
        let found = within(PATIENCE, || Ok(self.events()?.contains_key(reason).then_some(())))?;
        found.ok_or_else(|| format!("no event {reason}: {:?}", self.events()).into())
    }

    /// The condition of this type, once it holds with this reason; its message.
    pub(super) fn wait_condition(&self, kind: &str, reason: &str) -> Result<String, Failed> {
        let found = within(PATIENCE, || {
            let status = self.status()?;
            let condition = condition(&status, kind).filter(|condition| condition["reason"] == reason);
            Ok(condition.map(|condition| condition["message"].as_str().unwrap_or_default().to_owned()))
        })?;
        match found {
            Some(message) => Ok(message),
            None => Err(format!("{kind} has no reason {reason}: {:#}", self.status()?).into()),
        }
    }

    /// Waits until the table of this pod's Redis is as wanted.
    pub(super) fn wait_table(
        &self,
        ordinal: usize,
        time: Duration,
        wanted: impl Fn(&str) -> bool,
    ) -> Result<Duration, Failed> {
        let started = Instant::now();
        let found = within(time, || {
            let table = self.ask(ordinal, &["cluster", "nodes"])?;
            Ok(wanted(&table).then_some(()))
        })?;
        match found {
            Some(()) => Ok(started.elapsed()),
            None => {
                let table = self.ask(ordinal, &["cluster", "nodes"])?;
                Err(format!("after {time:?} node {ordinal} still says\n{table}").into())
            }
        }
    }
}

/// The condition of this type.
pub(super) fn condition<'a>(status: &'a Value, kind: &str) -> Option<&'a Value> {
    status["conditions"].as_array()?.iter().find(|condition| condition["type"] == kind)
}

pub(super) fn members(status: &Value) -> impl Iterator<Item = &Value> {
    status["members"].as_array().into_iter().flatten()
}

pub(super) fn is(status: &Value, kind: &str) -> bool {
    condition(status, kind).is_some_and(|condition| condition["status"] == "True")
}

/// The pod that owns each slot, as the status has it.
pub(super) fn owners(status: &Value) -> Vec<Option<String>> {
    let mut owners = vec![None; 16384];
    for member in members(status) {
        for range in member["slots"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            if let (Ok(first), Ok(last)) = (first.parse::<usize>(), last.parse::<usize>()) {
                for owner in owners.iter_mut().take(last + 1).skip(first) {
                    *owner = member["pod"].as_str().map(str::to_owned);
                }
            }
        }
    }
    owners
}

/// The slot of a key: CRC-16 (XMODEM), as Redis has it.
fn slot(key: &str) -> u16 {
    let crc = key.bytes().fold(0u16, |crc, byte| {
        (0..8).fold(crc ^ (u16::from(byte) << 8), |crc, _| {
            if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ 0x1021 }
        })
    });
    crc % 16384
}
