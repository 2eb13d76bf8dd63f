//! Two hundred transfers through a proxy that fails: each ends with exactly the image, or with a clear error.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use libtest_mimic::Trial;
use olmkit::image::{Access, Options, Patience, Place, Root, Unpack};

use crate::places::chain;
use crate::proxy::{Fault, Proxy};
use crate::server::{Kind, Registry, access, image, index, noise, place, quick};
use crate::support::trial;
use crate::uploads::Events;

const RUNS: u64 = 200;
/// Runs at once: most of the time is spent waiting.
const AT_ONCE: usize = 8;
/// How long a silent registry is waited for. A registry on a machine with much else to do needs a while for an answer.
const SILENCE: Duration = Duration::from_secs(1);

pub(crate) fn trials() -> Vec<Trial> {
    let registry = ["docker-registry"];
    vec![
        trial("two_hundred_runs_through_faults", &registry, || {
            let registry = Registry::start(Kind::Plain);
            let next = AtomicU64::new(0);
            let good = AtomicU64::new(0);
            thread::scope(|scope| {
                let work = || {
                    loop {
                        let seed = next.fetch_add(1, Ordering::Relaxed);
                        if seed >= RUNS {
                            return;
                        }
                        good.fetch_add(run(&registry, seed), Ordering::Relaxed);
                    }
                };
                let workers: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(work)).collect();
                for worker in workers {
                    worker.join().unwrap();
                }
            });
            let good = good.into_inner();
            // Of two transfers a run, every second run's have to end well, whatever they meet. Of the others some must not:
            // else the proxy would show nothing.
            assert!((RUNS..2 * RUNS).contains(&good), "{good} of {} transfers succeeded", 2 * RUNS);
            Ok(())
        }),
        trial("faults_that_pass_do_no_harm", &registry, || {
            let registry = Registry::start(Kind::Plain);
            // The first three requests of each kind fail in some way.
            for fault in [
                Fault::Hangup,
                Fault::HalfRequest,
                Fault::LostAnswer,
                Fault::HalfAnswer,
                Fault::Status(500, None),
                Fault::Status(429, Some(0)),
                Fault::OtherDigest,
                Fault::OtherBody,
            ] {
                let count = std::sync::Mutex::new(std::collections::HashMap::new());
                let proxy = Proxy::with(&registry.host, SILENCE, move |line| {
                    let mut count = count.lock().unwrap();
                    let seen = count.entry(line.split(' ').next().unwrap().to_owned()).or_insert(0);
                    *seen += 1;
                    if *seen <= 3 { fault } else { Fault::None }
                });
                let name = format!(
                    "passing/{}",
                    format!("{fault:?}").to_lowercase().replace(['(', ')', ',', ' '], "-").trim_matches('-')
                );
                let options = || Options { patience: Patience { attempts: 8, ..patience() }, ..quick() };
                let root = sent(1);
                let through = place(&proxy.host, &format!("{name}:v1"));
                let stored = through.store(&root, &access(options()));
                stored.unwrap_or_else(|error| panic!("{fault:?}: {}", chain(&error)));
                let found = through
                    .load(&access(options()))
                    .unwrap_or_else(|error| panic!("{fault:?}: {}", chain(&error)));
                assert_eq!(found.digest(), root.digest());
            }
            Ok(())
        }),
        trial("a_registry_that_never_answers", &[], || {
            let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            let place = place(&silent.local_addr().unwrap().to_string(), "team/app:v1");
            let options = Options { patience: Patience { attempts: 2, ..patience() }, ..quick() };
            let error = chain(&place.load(&access(options)).unwrap_err());
            assert!(error.contains("does not answer"), "{error}");
            let options = Options { timeout: Some(Duration::from_millis(200)), ..quick() };
            let error = chain(&place.load(&access(options)).unwrap_err());
            assert!(error.contains("timed out after"), "{error}");
            Ok(())
        }),
        trial("a_registry_that_lies_for_ever", &registry, || {
            let registry = Registry::start(Kind::Plain);
            registry.place("team/app:v1").store(&sent(1), &access(quick())).unwrap();
            let check = |fault: Fault, expected: &str| {
                let proxy = Proxy::with(&registry.host, SILENCE, move |line| {
                    if line.contains("/v2/ ") { Fault::None } else { fault }
                });
                let options = Options { patience: patience(), ..quick() };
                let place = place(&proxy.host, "team/app:v1");
                let loaded = place.load(&access(options.clone()));
                let error = match &loaded {
                    Err(error) => chain(error),
                    Ok(root) => chain(&root.image(None).unwrap().unpack(&Unpack::default()).unwrap_err()),
                };
                assert!(error.contains(expected), "{fault:?}: {error}");
            };
            check(Fault::OtherDigest, "digest mismatch");
            check(Fault::OtherBody, "digest mismatch");
            check(Fault::HalfAnswer, "was lost");
            check(Fault::Status(503, None), "responded with status 503");
            check(Fault::Status(429, Some(3600)), "retry after 3600 s");
            Ok(())
        }),
    ]
}

fn patience() -> Patience {
    Patience { silence: SILENCE, ..quick().patience }
}

/// What a seed sends: often one image, sometimes several; now and then a layer that is sent in parts.
fn sent(seed: u64) -> Root {
    let large = if seed.is_multiple_of(10) { 5 << 20 } else { 50_000 };
    let files = [("a", noise(seed, 1000)), ("b", noise(seed + 1, large)), ("c", b"shared".to_vec())];
    if seed.is_multiple_of(3) { index(&files) } else { image("linux/amd64", &files).into() }
}

/// One way through a proxy of its own, and what was seen there.
struct Way {
    seed: u64,
    proxy: Proxy,
    events: Events,
    place: Place,
    access: Access,
}

impl Way {
    /// With every second seed fewer faults than there are attempts, and none for good; else from a few faults to very many.
    fn new(registry: &Registry, seed: u64, salt: u64, name: &str) -> Self {
        let patience = patience();
        let (rate, limit) = if has_to_end_well(seed) {
            (10 + seed % 40, Some(patience.attempts - 1))
        } else {
            (2 + seed % 40, None)
        };
        let proxy = Proxy::start(&registry.host, seed + salt, rate, limit, SILENCE);
        let events = Events::default();
        let parallel = 1 + (seed % 4) as usize;
        let access = Access::new(Options { patience, parallel, ..quick() }, events.shared());
        Self { seed, place: place(&proxy.host, name), proxy, events, access }
    }

    /// An error is clear, and comes after a fault for good, or after as many attempts as there are.
    fn check(&self, error: &str) {
        let (seed, faults) = (self.seed, self.proxy.faults());
        is_clear(seed, error);
        // What a busy machine does to a transfer is a fault too, and the proxy does not know of it.
        let waits = self.events.count("Waiting");
        let is_final = faults.contains(&Fault::FOR_GOOD) || waits + 1 >= patience().attempts;
        assert!(is_final, "seed {seed}: {error}\n{faults:?}\n{}", self.events.text());
        let is_silent = |line: &&str| line.contains("does not answer");
        let silences = self.events.text().lines().filter(is_silent).count();
        let is_busy = silences > faults.iter().filter(|fault| **fault == Fault::Silence).count();
        assert!(
            !has_to_end_well(seed) || is_busy,
            "seed {seed}: {error}\n{faults:?}\n{}",
            self.events.text()
        );
    }
}

fn has_to_end_well(seed: u64) -> bool {
    seed.is_multiple_of(2)
}

/// Sends an image through faults, and fetches it through faults. Answers how often that went well.
fn run(registry: &Registry, seed: u64) -> u64 {
    let root = sent(seed);
    let digest = root.digest().to_string();
    let name = format!("faults/n{seed}");
    let there = Way::new(registry, seed, 0, &format!("{name}:v1"));
    let stored = there.place.store(&root, &there.access);
    let mut good = 0;
    match (&stored, registry.digest(&name, "v1")) {
        (Ok(stored), Some(found)) => {
            assert_eq!((stored.digest.to_string(), &found), (digest.clone(), &digest), "seed {seed}");
            good += 1;
        }
        // The registry took it and could not say so.
        (Err(error), Some(found)) => {
            assert_eq!(found, digest, "seed {seed}: {}", chain(error));
            there.check(&chain(error));
        }
        (Err(error), None) => there.check(&chain(error)),
        (Ok(_), None) => panic!("seed {seed}: stored, and no tag"),
    }
    if registry.tags(&name).is_empty() {
        registry.place(&format!("{name}:v1")).store(&root, &access(quick())).unwrap();
    }
    // Whatever has a tag is whole.
    for image in root.images() {
        for blob in image.layers().iter().chain([image.configuration()]) {
            assert!(registry.has_blob(&blob.digest().to_string()), "seed {seed}");
        }
    }

    let back = Way::new(registry, seed, RUNS, &format!("{name}:v1"));
    let fetched = back.place.load(&back.access).map_err(|error| chain(&error)).and_then(|found| {
        let image = found.image(None).map_err(|error| chain(&error))?;
        let tree = image.unpack(&Unpack::default()).map_err(|error| chain(&error))?;
        Ok((found, tree))
    });
    match fetched {
        Ok((found, tree)) => {
            assert_eq!(found.digest().to_string(), digest, "seed {seed}");
            assert_eq!(tree.file("a").unwrap().read().unwrap(), noise(seed, 1000), "seed {seed}");
            good + 1
        }
        Err(error) => {
            back.check(&error);
            good
        }
    }
}

/// An error that says which registry did what.
fn is_clear(seed: u64, error: &str) {
    let kinds = [
        "does not answer",
        "was lost",
        "cannot reach",
        "rate limited by",
        "responded with status",
        "invalid response",
        "digest mismatch",
        "has lost an upload",
        "refuses the image",
        "has no image",
        "has no blob",
        "is not an image manifest",
        "is not a valid image",
    ];
    assert!(kinds.iter().any(|kind| error.contains(kind)), "seed {seed}: {error}");
    assert!(error.contains("127.0.0.1:"), "seed {seed}: {error}");
}
