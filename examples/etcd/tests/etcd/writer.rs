//! A client that writes all the time, and knows what was acknowledged.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use serde_json::json;

use crate::members::{Members, ask};

/// Writes numbered keys to any member that takes them, until it is stopped.
pub(crate) struct Writer {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Written>,
}

/// What a writer has seen.
pub(crate) struct Written {
    /// Numbers of the keys that etcd has acknowledged.
    acknowledged: Vec<u32>,
    /// The longest time without an acknowledgement.
    pub(crate) longest_pause: Duration,
}

/// Base64 of the key with this number: eight digits and a letter, so that nothing has to be padded.
fn key(number: u32) -> String {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let text = format!("k{number:08}");
    let group = |bytes: &[u8]| {
        let bits = bytes.iter().fold(0_usize, |bits, byte| (bits << 8) | usize::from(*byte));
        [18, 12, 6, 0].map(|shift| char::from(DIGITS[(bits >> shift) & 63]))
    };
    text.as_bytes().chunks(3).flat_map(group).collect()
}

impl Writer {
    pub(crate) fn start(members: &Arc<Members>, cluster: &'static str) -> Self {
        let (stop, members) = (Arc::new(AtomicBool::new(false)), members.clone());
        let stopped = stop.clone();
        let thread = std::thread::spawn(move || {
            let mut written = Written { acknowledged: vec![], longest_pause: Duration::ZERO };
            let mut last = Instant::now();
            for number in 0.. {
                if stopped.load(Ordering::Relaxed) {
                    break;
                }
                let body = json!({"key": key(number), "value": key(number)});
                let taken = members.addresses(cluster).iter().any(|ip| ask(ip, "kv/put", &body).is_some());
                if taken {
                    written.acknowledged.push(number);
                    written.longest_pause = written.longest_pause.max(last.elapsed());
                    last = Instant::now();
                }
                std::thread::park_timeout(Duration::from_millis(20));
            }
            written
        });
        Self { stop, thread }
    }

    pub(crate) fn stop(self) -> Written {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

impl Written {
    pub(crate) fn count(&self) -> usize {
        self.acknowledged.len()
    }

    /// How many of the acknowledged keys are not there.
    pub(crate) fn lost(&self, members: &Members, cluster: &str) -> usize {
        let addresses = members.addresses(cluster);
        let there = |number: &&u32| {
            let body = json!({"key": key(**number)});
            let answer = addresses.iter().find_map(|ip| ask(ip, "kv/range", &body)).unwrap();
            answer["kvs"][0]["value"] == key(**number)
        };
        self.acknowledged.len() - self.acknowledged.iter().filter(there).count()
    }
}
