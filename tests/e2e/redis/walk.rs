//! The walk through `docs/redis-operator.md`, run line by line: what the page shows is what comes.
//!
//! In what a command prints, `…` on the page stands for any text in a word, alone between words for one or more of them,
//! and on a line of its own for any lines. What asks
//! (`kubectl get`, `kubectl logs`) is asked again until it shows what the page shows, as its readers would do.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use libtest_mimic::Failed;

use super::operator::{MANIFESTS, built, image};
use crate::cluster::Namespace;

/// How long a question is asked again.
const PATIENCE: Duration = Duration::from_secs(150);
/// What the page calls the registry.
const REGISTRY: &str = "registry.example.com";

pub(super) fn walked(namespace: &Namespace) -> Result<(), Failed> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("docs/redis-operator.md"))?;
    let block = page.split("```console\n").nth(1).and_then(|rest| rest.split("\n```").next());
    let steps = steps(block.ok_or("the page has no walk")?);
    assert!(steps.len() > 8, "{steps:?}");

    // A kubectl of this name that means this namespace, as the page's reader has it.
    let dir = tempfile::tempdir()?;
    let kubectl = namespace.cluster.command(&[]).get_program().to_string_lossy().into_owned();
    let kubectl = if kubectl.contains('/') { fs::canonicalize(&kubectl)? } else { kubectl.into() };
    if kubectl.is_absolute() {
        std::os::unix::fs::symlink(&kubectl, dir.path().join("kubectl"))?;
    }
    let config = dir.path().join("kubeconfig");
    fs::write(&config, namespace.cluster.kubectl(&["config", "view", "--raw", "--flatten"])?)?;
    let path = format!("{}:{}", dir.path().display(), std::env::var("PATH").unwrap_or_default());
    let manifests = format!("{} manifests", built()?.display());
    let run = |command: &str| -> Result<(bool, String), Failed> {
        let command = command
            .replace(&format!("{REGISTRY}/redis-operator:0.5.0"), &format!("{REGISTRY}/{}", image()))
            .replace(REGISTRY, &namespace.cluster.registry);
        let output = Command::new("bash")
            .args(["-o", "pipefail", "-c", &format!("{command} 2>&1")])
            .env("PATH", &path)
            .env("KUBECONFIG", &config)
            .env(MANIFESTS, &manifests)
            .env_remove("KUBECTL")
            .current_dir(root)
            .output()?;
        let said = String::from_utf8_lossy(&output.stdout).replace(&namespace.cluster.registry, REGISTRY);
        Ok((output.status.success(), said))
    };
    run(&format!("kubectl config set-context --current --namespace={}", namespace.name))?;
    for (command, shown) in steps {
        let asks =
            ["kubectl get", "kubectl -n redis-operator logs"].iter().any(|ask| command.starts_with(ask));
        let started = Instant::now();
        loop {
            let (well, said) = run(&command)?;
            if well && alike(&shown, &said) {
                break;
            }
            if !asks || started.elapsed() > PATIENCE {
                return Err(format!("$ {command}\nthe page shows\n{shown}\nand it says\n{said}").into());
            }
            std::thread::park_timeout(Duration::from_millis(500));
        }
    }
    Ok(())
}

/// Commands, and what they print.
fn steps(block: &str) -> Vec<(String, String)> {
    let mut steps: Vec<(String, String)> = vec![];
    for line in block.lines() {
        match (line.strip_prefix("$ "), steps.last_mut()) {
            (Some(command), _) => steps.push((command.to_owned(), String::new())),
            (None, Some((_, shown))) => {
                shown.push_str(line);
                shown.push('\n');
            }
            (None, None) => {}
        }
    }
    steps
}

/// Whether lines are alike, word by word.
fn alike(shown: &str, said: &str) -> bool {
    let lines = |text: &str| -> Vec<Vec<String>> {
        let lines = text.lines().map(|line| line.split_whitespace().map(str::to_owned).collect());
        lines.filter(|words: &Vec<String>| !words.is_empty()).collect()
    };
    rest_alike(&lines(shown), &lines(said))
}

fn rest_alike(shown: &[Vec<String>], said: &[Vec<String>]) -> bool {
    match shown.split_first() {
        None => said.is_empty(),
        Some((line, shown)) if line.len() == 1 && line[0] == "…" => {
            (0..=said.len()).any(|skipped| rest_alike(shown, &said[skipped..]))
        }
        Some((line, shown)) => {
            said.split_first().is_some_and(|(first, said)| words(line, first) && rest_alike(shown, said))
        }
    }
}

fn words(shown: &[String], said: &[String]) -> bool {
    match (shown.split_first(), said.split_first()) {
        (None, None) => true,
        (Some((any, shown)), Some((_, said))) if any == "…" => {
            (0..=said.len()).any(|skipped| words(shown, &said[skipped..]))
        }
        (Some((one, shown)), Some((other, said))) => word(one, other) && words(shown, said),
        _ => false,
    }
}

fn word(shown: &str, said: &str) -> bool {
    let Some((start, rest)) = shown.split_once('…') else { return shown == said };
    said.strip_prefix(start).is_some_and(|said| {
        let places = said.char_indices().map(|(at, _)| at).chain([said.len()]);
        places.into_iter().any(|at| word(rest, &said[at..]))
    })
}

/// Needs no cluster: what counts as alike.
pub(super) fn check() -> Result<(), Failed> {
    for (shown, said, same) in [
        ("NAME  AGE\nrc  …\n", "NAME   AGE\n\nrc     25s\n", true),
        ("rc … end", "rc 25s more end", true),
        ("rc … end", "rc end", false),
        (
            "{\"time\":\"…\",\"message\":\"leading\",…}",
            "{\"time\":\"12\",\"message\":\"leading\",\"a\":1}",
            true,
        ),
        ("{\"time\":\"…\",\"message\":\"leading\",…}", "{\"time\":\"12\",\"message\":\"waiting\"}", false),
        ("a\n…\nz", "a\nb c\nd\nz", true),
        ("a\n…\nz", "a\nb c\nd", false),
        ("", "unexpected", false),
    ] {
        assert_eq!(alike(shown, said), same, "{shown} and {said}");
    }
    assert_eq!(steps("$ one\na\nb\n$ two"), [("one".into(), "a\nb\n".into()), ("two".into(), String::new())]);
    Ok(())
}
