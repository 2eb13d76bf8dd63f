//! Endurance: clients that never stop reading, a catalog that never stops changing, and memory that stays where it is.
//!
//! It takes a quarter of a minute; `OLMKIT_SOAK_SECONDS` says otherwise (`make soak`, and CI).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::client::{Client, DEADLINE, Server, arg};
use crate::fixture::Catalog;

const REGISTRY: &str = "api.Registry";
const PACKAGES: usize = 20;
const VERSIONS: usize = 60;
/// What memory may go up and down by, in KiB: the buffers of a handful of streams.
const PLAY: u64 = 4 << 10;

/// What the server holds in memory, in KiB.
fn resident(server: &Server) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.child.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// Lists all bundles until told to stop; an answer that has begun must come to its end.
fn read_on(client: &Client, stop: &AtomicBool, answers: &AtomicUsize) {
    while !stop.load(Ordering::Relaxed) {
        client.runtime.block_on(async {
            // A connection that is being asked to go may not take a new question: then the next one does.
            let Ok(mut bundles) = client.open(REGISTRY, "ListBundles", &json!({}), &[]).await else { return };
            let mut count = 0;
            loop {
                match tokio::time::timeout(DEADLINE, bundles.message()).await.expect("answers in time") {
                    Ok(Some(_)) => count += 1,
                    Ok(None) => break,
                    Err(status) if count == 0 && status.message().contains("connection") => return,
                    Err(status) => panic!("an answer ended after {count} bundles: {status}"),
                }
            }
            // Each package has this many, or one more.
            assert!((PACKAGES * VERSIONS..=PACKAGES * (VERSIONS + 1)).contains(&count), "{count} bundles");
            answers.fetch_add(1, Ordering::Relaxed);
        });
    }
}

#[test]
fn memory_stays_flat_while_catalogs_change() {
    let seconds = std::env::var("OLMKIT_SOAK_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(15);
    let names: Vec<String> = (0..PACKAGES).map(|number| format!("package-{number}")).collect();
    let packages: Vec<_> = names.iter().map(|name| (name.as_str(), VERSIONS)).collect();
    let catalog = Catalog::new(&packages);
    let (path, index) = (catalog.path(), catalog.index());
    let server = Server::start(&[arg(&path), "--index", arg(&index), "--port", "0"]);
    let (stop, answers) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let readers: Vec<_> = (0..4)
        .map(|_| {
            let (client, stop, answers) = (server.client(), stop.clone(), answers.clone());
            std::thread::spawn(move || read_on(&client, &stop, &answers))
        })
        .collect();
    let start = Instant::now();
    let mut memory = Vec::new();
    let mut reloads = 0;
    while start.elapsed() < Duration::from_secs(seconds) {
        catalog.put(&names[reloads % PACKAGES], VERSIONS + (reloads / PACKAGES + 1) % 2);
        server.wait("reloaded");
        reloads += 1;
        memory.push(resident(&server));
    }
    stop.store(true, Ordering::Relaxed);
    for reader in readers {
        reader.join().expect("every answer was whole");
    }
    let most = |memory: &[u64]| memory.iter().copied().max().unwrap_or(0);
    let (first, last) = memory.split_at(memory.len() / 2);
    let (first, last) = (most(first), most(last));
    let answers = answers.load(Ordering::Relaxed);
    println!(
        "{seconds} s, {reloads} reloads, {answers} answers: at most {first} KiB in the first half, {last} KiB in the second"
    );
    assert!(reloads > 3 && answers > 3, "{reloads} reloads, {answers} answers");
    assert!(last <= first + PLAY, "memory grows: {memory:?} KiB");
}
