//! Fuzzing without a nightly compiler: seeded mutations of real inputs, for as long as `OLMKIT_FUZZ_SECONDS` says (two seconds
//! for each body where it says nothing; `make fuzz` takes a minute). The same seed gives the same inputs in the same order;
//! `OLMKIT_FUZZ_SEED` chooses another. An input that breaks something is written to `target/fuzz/`, to be a seed from then on.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

mod bodies;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use bodies::BODIES;
use olmkit::image::{Access, Compression, Config, FileTree, Image, Layer, Place, Root};
use olmkit_catalog::load::CatalogFiles;
use rustix::process::{Resource, Rlimit, setrlimit};

/// No input of a few kilobytes may take longer.
const MOST_TIME: Duration = Duration::from_secs(5);

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// The address space that all bodies get together, in bytes: an input that wants more ends the test.
const MEMORY: u64 = 1 << 30;

#[test]
fn seeds_and_their_mutations_break_nothing() {
    let limit = Rlimit { current: Some(MEMORY), maximum: None };
    setrlimit(Resource::As, limit).expect("a limit may be lowered");
    let each = number("OLMKIT_FUZZ_SECONDS").map_or(Duration::from_secs(2), |seconds| {
        Duration::from_secs(seconds) / u32::try_from(BODIES.len()).expect("there are few")
    });
    let seeds = seeds();
    assert!(seeds.len() > 100, "{} seeds", seeds.len());
    for (name, body) in BODIES {
        let mut random = Random(number("OLMKIT_FUZZ_SEED").unwrap_or(1));
        let (start, mut inputs) = (Instant::now(), 0u64);
        while start.elapsed() < each || inputs < seeds.len() as u64 {
            let mut input = seeds[inputs as usize % seeds.len()].clone();
            if inputs >= seeds.len() as u64 {
                for _ in 0..=random.below(4) {
                    mutate(&mut input, &seeds, &mut random);
                }
            }
            run(name, *body, &input);
            inputs += 1;
        }
        eprintln!("{name}: {inputs} inputs in {:.1?}", start.elapsed());
    }
}

/// Runs a body, and keeps the input when it breaks something.
fn run(name: &str, body: fn(&[u8]), input: &[u8]) {
    let start = Instant::now();
    let outcome = std::panic::catch_unwind(|| body(input));
    let took = start.elapsed();
    if outcome.is_err() || took > MOST_TIME {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/fuzz").join(format!("{name}.input"));
        std::fs::create_dir_all(path.parent().expect("it has one")).expect("a directory");
        std::fs::write(&path, input).expect("a file");
        panic!("{name} breaks, or took {took:?}: the input is in {}", path.display());
    }
}

/// The examples of every kind of finding, the hand-made bundles, the manifests of the operators, and a few hostile texts.
fn seeds() -> Vec<Vec<u8>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut seeds: Vec<Vec<u8>> = Vec::new();
    for code in olmkit::actions::findings::codes() {
        let blocks = code.docs.split("```").skip(1).step_by(2);
        seeds.extend(blocks.filter_map(|block| Some(block.split_once('\n')?.1.as_bytes().to_vec())));
    }
    for directory in ["bundle/testdata", "operator/deploy", "tests/cli", "tests/fuzz/seeds"] {
        let mut open = vec![root.join(directory)];
        let mut paths: Vec<PathBuf> = Vec::new();
        while let Some(directory) = open.pop() {
            for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
                if entry.path().is_dir() { open.push(entry.path()) } else { paths.push(entry.path()) }
            }
        }
        paths.sort();
        seeds.extend(
            paths.iter().filter_map(|path| std::fs::read(path).ok()).filter(|bytes| bytes.len() < 64 << 10),
        );
    }
    for text in [
        "(((self.a",
        "self.all(x, x > 0)",
        ">=1.0.0 <2.x || !=3.0.0",
        "a@b",
        "https://example.com/a?b#c",
        "1.2.3-rc.1+5",
    ] {
        seeds.push(text.as_bytes().to_vec());
    }
    seeds.push([b"a: &a [x]\n".to_vec(), b"b: [*a, *a, *a, *a]\n".repeat(20)].concat());
    seeds.extend(images());
    seeds.push(b"[".repeat(5_000));
    seeds.push(b"- ".repeat(2_000));
    seeds.sort();
    seeds.dedup();
    seeds
}

/// The smallest catalog that can be compiled.
const CATALOG: &str = "\
    {schema: olm.package, name: p, defaultChannel: c}\n---\n\
    {schema: olm.channel, package: p, name: c, entries: [{name: p.v1.0.0}]}\n---\n\
    {schema: olm.bundle, package: p, name: p.v1.0.0, image: example.com/p, \
     properties: [{type: olm.package, value: {packageName: p, version: 1.0.0}}]}\n";

/// Small archives of an image, and a compiled catalog.
fn images() -> Vec<Vec<u8>> {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut tree = FileTree::new();
    tree.add_file("manifests/a.yaml", b"a: 1\n".to_vec()).expect("it is no link");
    let platform = "linux/amd64".parse().expect("a platform");
    let mut seeds = Vec::new();
    for (kind, compression) in [("docker-archive", Compression::Gzip), ("oci-archive", Compression::Zstd)] {
        let layer = Layer::build_with(&tree, compression).expect("a layer");
        let image = Image::new(&platform, &Config::default(), &[layer]);
        let path = directory.path().join(format!("{kind}-{compression:?}"));
        let place: Place = format!("{kind}:{}", path.display()).parse().expect("a place");
        place.store(&Root::from(image), &Access::default()).expect("room for it");
        seeds.push(std::fs::read(path).expect("it was written"));
    }
    let catalog = CatalogFiles::from_text("catalog.yaml", CATALOG);
    let path = directory.path().join("index");
    olmkit_serve::compiled::build(&catalog, &path).expect("a compiled catalog");
    seeds.push(std::fs::read(path).expect("it was written"));
    seeds
}

fn mutate(input: &mut Vec<u8>, seeds: &[Vec<u8>], random: &mut Random) {
    let at = random.below(input.len() + 1);
    let length = random.below(1 + (input.len() - at).min(64));
    match random.below(8) {
        0 => drop(input.drain(at..at + length)),
        1 => {
            let part = input[at..at + length].to_vec();
            input.splice(at..at, part);
        }
        2 => {
            let other = &seeds[random.below(seeds.len())];
            let from = random.below(other.len() + 1);
            let to = from + random.below(1 + (other.len() - from).min(256));
            input.splice(at..at, other[from..to].iter().copied());
        }
        3 => {
            const WORDS: [&[u8]; 16] = [
                b"\n---\n",
                b"&a ",
                b"*a",
                b"<<: ",
                b"|\n",
                b"!!int ",
                b"\t",
                b"\xff",
                b"\0",
                b"\x1b[2J",
                b"\n# manifests/x.yaml\n",
                b"~",
                b"{}",
                b"[]",
                b"99999999999999999999",
                b"\xc2\x85",
            ];
            input.splice(at..at, WORDS[random.below(WORDS.len())].iter().copied());
        }
        4 => {
            // A whole line goes elsewhere, or twice.
            let mut lines: Vec<_> =
                input.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
            if !lines.is_empty() {
                let line = lines[random.below(lines.len())].clone();
                let to = random.below(lines.len() + 1);
                lines.insert(to, line);
            }
            *input = lines.concat();
        }
        _ => {
            if let Some(byte) = input.get_mut(at) {
                *byte = byte.wrapping_add(1 + random.below(255) as u8);
            }
        }
    }
    input.truncate(256 << 10);
}

/// Numbers that look random and are the same in every run (Knuth's linear congruential generator).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % limit.max(1)
    }
}
