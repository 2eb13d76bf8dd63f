//! How many instructions commands take, counted by valgrind: unlike seconds, the same in every run, so that 5 % more is a change.
//!
//! The counts in `instructions.tsv` are those of `make test`, a development build of the whole workspace: built alone, crates
//! have fewer features, and `regex` then takes other ways. `OLMKIT_GENERATE=1` writes them anew.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use libtest_mimic::{Failed, Trial};

use crate::support::{Part, trial_with};

/// Each by the name that it has in `instructions.tsv`.
const COMMANDS: [(&str, &str); 4] = [
    (
        "bundle generate",
        "bundle generate operator/deploy/0.2.1 --package-file operator/olmkit.yaml --version 0.2.1",
    ),
    ("bundle validate", "bundle validate given"),
    ("catalog validate", "catalog validate many"),
    ("catalog render", "catalog render few --format yaml"),
];

/// How much more may be needed before somebody has to look.
const GROWTH: f64 = 1.05;

pub(crate) fn trials() -> Vec<Trial> {
    vec![trial_with(
        "commands_take_no_more_instructions_than_before",
        &[Part::program("valgrind"), Part::program("taskset")],
        no_more_than_before,
    )]
}

/// A catalog of packages with thirty bundles each.
fn catalog(packages: u64) -> String {
    let words = ["cluster", "controller", "reconcile", "namespace", "storage", "secret", "webhook", "backup"];
    let mut state = 7_u64;
    let mut word = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        words[usize::try_from(state >> 61).unwrap()]
    };
    let mut text = String::new();
    for package in 1..=packages {
        let name = format!("operator-{package}");
        let mut entries = vec![];
        writeln!(text, r#"{{"schema":"olm.package","name":"{name}","defaultChannel":"stable"}}"#).unwrap();
        for bundle in 1..=30 {
            let description = std::iter::repeat_with(&mut word).take(600).collect::<Vec<_>>().join(" ");
            writeln!(
                text,
                r#"{{"schema":"olm.bundle","name":"{name}.v1.{bundle}.0","package":"{name}","image":"registry.example/{name}:v1.{bundle}.0","properties":[{{"type":"olm.package","value":{{"packageName":"{name}","version":"1.{bundle}.0"}}}},{{"type":"olm.csv.metadata","value":{{"displayName":"{name}","description":"{description}"}}}}]}}"#
            )
            .unwrap();
            let replaces = format!(r#","replaces":"{name}.v1.{}.0""#, bundle - 1);
            let replaces = if bundle == 1 { "" } else { &replaces };
            entries.push(format!(r#"{{"name":"{name}.v1.{bundle}.0"{replaces}}}"#));
        }
        let entries = entries.join(",");
        writeln!(
            text,
            r#"{{"schema":"olm.channel","name":"stable","package":"{name}","entries":[{entries}]}}"#
        )
        .unwrap();
    }
    text
}

/// The instructions of one command, on one processor: how often idle threads look for work is no figure of ours.
fn instructions(directory: &Path, command: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let (_, allowed) = status.split_once("Cpus_allowed_list:").unwrap();
    let first = allowed.trim_start().split(['-', ',', '\n']).next().unwrap();
    let output = Command::new("taskset")
        .args(["-c", first, "valgrind", "--tool=cachegrind", "--cache-sim=no"])
        .args(["--cachegrind-out-file=/dev/null", env!("CARGO_BIN_EXE_olmkit")])
        .args(command.split(' '))
        .current_dir(directory)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command}: {said}");
    let (_, count) = said.split_once("refs:").unwrap_or_else(|| panic!("{command}: {said}"));
    count.lines().next().unwrap().trim().replace(',', "").parse().unwrap()
}

fn no_more_than_before() -> Result<(), Failed> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let directory = tempfile::tempdir()?;
    let at = |name: &str| directory.path().join(name);
    for (name, packages) in [("few", 2), ("many", 10)] {
        fs::create_dir(at(name))?;
        fs::write(at(name).join("catalog.json"), catalog(packages))?;
    }
    std::os::unix::fs::symlink(root.join("operator"), at("operator"))?;
    let mut made = Command::new(env!("CARGO_BIN_EXE_olmkit"));
    made.args(COMMANDS[0].1.split(' ')).args(["--output-dir", "given"]).current_dir(directory.path());
    let made = made.output()?;
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));

    let counts: Vec<u64> = std::thread::scope(|threads| {
        let counting = COMMANDS.map(|(_, command)| threads.spawn(|| instructions(directory.path(), command)));
        counting.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let file = root.join("tests/machine/instructions.tsv");
    if std::env::var_os("OLMKIT_GENERATE").is_some() {
        let lines: String =
            COMMANDS.iter().zip(counts).map(|((name, _), count)| format!("{name}\t{count}\n")).collect();
        return Ok(fs::write(file, lines)?);
    }
    let before = fs::read_to_string(file)?;
    for ((name, _), now) in COMMANDS.iter().zip(counts) {
        let line = before.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('\t'));
        let before: u64 = line.ok_or_else(|| format!("instructions.tsv has no `{name}`"))?.parse()?;
        #[expect(clippy::cast_precision_loss, reason = "a ratio")]
        let growth = now as f64 / before as f64;
        assert!(
            growth < GROWTH,
            "{name} takes {now} instructions, {growth:.2} times as many as before. If the work is needed, write the \
             new count with `OLMKIT_GENERATE=1 cargo test --workspace --test machine commands_take`",
        );
    }
    Ok(())
}
