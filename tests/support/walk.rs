//! Walks through a page: every command in its blocks is run, and what the page shows is what comes.
//!
//! In what a command prints, `…` on the page stands for any text in a word, alone between words for one or more of them,
//! and on a line of its own for any lines. Commands that only ask are asked again until they show what the page shows, as readers
//! would do. A command that ends in ` &` runs until the end of its block, and what it prints does not count. `cd` counts for all
//! commands after it.

use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use libtest_mimic::Failed;

/// How the commands of a page are run.
pub(crate) struct Walk<'a> {
    /// Where they run.
    pub(crate) directory: &'a Path,
    /// Their environment, besides that of the test.
    pub(crate) environment: Vec<(&'a str, String)>,
    /// What the page says, and what it means here; the most special first.
    pub(crate) meaning: Vec<(String, String)>,
    /// How commands begin that only ask.
    pub(crate) asks: &'a [&'a str],
    /// For how long they are asked again.
    pub(crate) patience: Duration,
}

impl Walk<'_> {
    /// Runs the blocks of a page that have this fence, such as `console`, from top to bottom.
    pub(crate) fn through(&self, page: &str, fence: &str) -> Result<(), Failed> {
        let blocks = blocks(page, fence);
        if blocks.is_empty() {
            return Err(format!("the page has no block `{fence}`").into());
        }
        let mut directory = self.directory.to_path_buf();
        blocks.iter().try_for_each(|block| self.block(block, &mut directory))
    }

    fn block(&self, block: &str, directory: &mut PathBuf) -> Result<(), Failed> {
        let mut background = Background::default();
        for (command, shown) in steps(block) {
            if let Some(to) = command.strip_prefix("cd ") {
                directory.push(to);
                continue;
            }
            if let Some(command) = command.strip_suffix(" &") {
                background
                    .0
                    .push(self.command(command, directory).stdout(Stdio::null()).process_group(0).spawn()?);
                continue;
            }
            let asks = self.asks.iter().any(|ask| command.starts_with(ask));
            let started = Instant::now();
            loop {
                let (well, said) = self.run(&command, directory)?;
                if well && alike(&shown, &said) {
                    break;
                }
                if !asks || started.elapsed() > self.patience {
                    return Err(format!("$ {command}\nthe page shows\n{shown}\nand it says\n{said}").into());
                }
                std::thread::park_timeout(Duration::from_millis(500));
            }
        }
        Ok(())
    }

    /// Whether it went well, and all that it said, in the words of the page.
    fn run(&self, command: &str, directory: &Path) -> Result<(bool, String), Failed> {
        let output = self.command(command, directory).output()?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let said = self.meaning.iter().fold(said, |said, (page, here)| said.replace(here, page));
        Ok((output.status.success(), said))
    }

    fn command(&self, command: &str, directory: &Path) -> Command {
        let line =
            self.meaning.iter().fold(command.to_owned(), |line, (page, here)| line.replace(page, here));
        let mut command = Command::new("bash");
        command.args(["-o", "pipefail", "-c", &format!("exec 2>&1; {line}")]).stdin(Stdio::null());
        command.envs(self.environment.iter().map(|(name, value)| (name, value))).current_dir(directory);
        command
    }
}

/// Commands that run until the end of a block, each with all that it has started.
#[derive(Default)]
struct Background(Vec<Child>);

impl Drop for Background {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let line = format!("kill -s INT -- -{}", child.id());
            // It may have ended already.
            let _ = Command::new("sh").args(["-c", &line]).stderr(Stdio::null()).status();
            let _ = child.wait();
        }
    }
}

/// The blocks of a page that have this fence.
pub(crate) fn blocks<'a>(page: &'a str, fence: &str) -> Vec<&'a str> {
    let opening = format!("```{fence}\n");
    page.split(opening.as_str()).skip(1).filter_map(|rest| rest.split("\n```").next()).collect()
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

/// What counts as alike.
#[allow(dead_code, reason = "of the programs that include this file, one checks it")]
pub(crate) fn check() -> Result<(), Failed> {
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
