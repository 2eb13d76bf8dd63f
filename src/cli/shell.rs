//! What shells offer behind TAB, and manual pages: both from the definitions of the command line.
//!
//! The script of a shell asks the program itself (`OLMKIT_COMPLETE=bash olmkit -- olmkit operator upgrade …`), so the names of
//! contexts, namespaces, operators, packages and channels are those of the kubeconfig, the cluster and the catalog of the line.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{Arg, Args, Command, CommandFactory as _};
use clap_complete::engine::{ArgValueCompleter, complete};
use clap_complete::env::{CompleteEnv, Shells};
use clap_complete::{CompletionCandidate, Shell};
use clap_mangen::Man;

use super::Cli;
use crate::actions::names::{self, Line};
use crate::actions::results::FileText;
use crate::exit::Failure;
use crate::files::{self, FileError, OutputDir};
use crate::report::Answer;

/// The variable with which a shell's script asks.
const VARIABLE: &str = "OLMKIT_COMPLETE";

/// What kubectl calls to complete `kubectl olmkit …`.
const PLUGIN_COMPLETION: &str = "kubectl_complete-olmkit";

/// The manual that the pages are of, which each names in its first lines.
const MANUAL: &str = "Commands of olmkit";

/// Flags of `completions`.
#[derive(Debug, Args)]
#[command(after_help = COMPLETIONS_EXAMPLES)]
pub struct Completions {
    /// Shell to print the script for
    #[arg(value_name = "SHELL", value_enum)]
    shell: Shell,
}

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  source <(olmkit completions bash)                                       # bash: this shell; put it in ~/.bashrc for all
  olmkit completions zsh > \"${fpath[1]}/_olmkit\"                          # zsh
  olmkit completions fish > ~/.config/fish/completions/olmkit.fish        # fish
  ln -s \"$(command -v olmkit)\" /usr/local/bin/kubectl_complete-olmkit     # `kubectl olmkit …`, with kubectl-olmkit beside it";

impl Completions {
    pub(super) fn run(self) -> Result<Box<dyn Answer>, Failure> {
        let (shell, mut script) = (self.shell.to_string(), Vec::new());
        Shells::builtins()
            .completer(&shell)
            .ok_or_else(|| Failure::incomplete(format!("there is no script for {shell}")))?
            .write_registration(VARIABLE, "olmkit", "olmkit", "olmkit", &mut script)
            .map_err(Failure::incomplete)?;
        Ok(file(script))
    }
}

/// Flags of `man`.
#[derive(Debug, Args)]
#[command(after_help = MAN_EXAMPLES)]
pub struct ManPages {
    /// Command to print the page of, such as `bundle generate` [default: olmkit itself]
    #[arg(value_name = "COMMAND", conflicts_with = "output_dir")]
    command: Vec<String>,
    /// Write the pages of all commands to this directory instead
    #[arg(long, value_name = "DIR")]
    output_dir: Option<PathBuf>,
}

const MAN_EXAMPLES: &str = "\
Examples:
  olmkit man bundle generate | man -l -
  olmkit man --output-dir /usr/local/share/man/man1";

impl ManPages {
    pub(super) fn run(self) -> Result<Box<dyn Answer>, Failure> {
        let mut root = Cli::command();
        root.build();
        let Some(dir) = self.output_dir else {
            let mut page = Vec::new();
            page_of(named(&root, &self.command)?).render(&mut page).map_err(Failure::incomplete)?;
            return Ok(file(page));
        };
        let mut written = String::new();
        let mut pages = BTreeMap::new();
        for command in with_subcommands(&root) {
            let man = page_of(command);
            let path = dir.join(man.get_filename());
            let mut page = Vec::new();
            man.render(&mut page).map_err(Failure::incomplete)?;
            check_replaced(&path)?;
            written += &format!("{}\n", path.display());
            pages.insert(man.get_filename(), Some(page));
        }
        OutputDir::open(&dir)?.write(&pages)?;
        Ok(Box::new(FileText { text: written }))
    }
}

/// Refuses to replace a file that is no page of ours. A link that leads out of the directory is refused when it is written.
fn check_replaced(path: &Path) -> Result<(), Failure> {
    if !path.exists() || files::is_marked(path, MANUAL) {
        return Ok(());
    }
    let error = FileError::Foreign { path: path.to_owned(), what: "a page that olmkit wrote" };
    Err(Failure::usage(error).help("choose another directory, or remove the file first"))
}

/// The page of a command, which names the program that it is a part of.
fn page_of(command: &Command) -> Man {
    Man::new(command.clone()).source(concat!("olmkit ", env!("CARGO_PKG_VERSION"))).manual(MANUAL)
}

/// A file on standard output.
fn file(bytes: Vec<u8>) -> Box<dyn Answer> {
    Box::new(FileText { text: String::from_utf8_lossy(&bytes).into_owned() })
}

/// The command of some words.
fn named<'c>(root: &'c Command, words: &[String]) -> Result<&'c Command, Failure> {
    words.iter().try_fold(root, |command, word| {
        command.find_subcommand(word).ok_or_else(|| {
            let name = command.get_bin_name().unwrap_or("olmkit");
            Failure::usage(format!("`{name}` has no command `{word}`")).help(format!("see `{name} --help`"))
        })
    })
}

/// A command, and all below it.
fn with_subcommands(command: &Command) -> Vec<&Command> {
    let below = command.get_subcommands().flat_map(with_subcommands);
    std::iter::once(command).chain(below).collect()
}

/// The answer to a shell that asks what may follow, what of it is still to be printed; none where no shell asks.
///
/// # Errors
/// What is to be told, when the shell is not known or standard output is gone.
pub fn completed(args: &[OsString]) -> Result<Option<FileText>, clap::Error> {
    let here = std::env::current_dir().ok();
    if is_plugin_completion(args) {
        return Ok(Some(FileText { text: plugin_completion(args, here.as_deref())? }));
    }
    let is_done = CompleteEnv::with_factory(completable).var(VARIABLE).try_complete(args, here.as_deref())?;
    Ok(is_done.then(|| FileText { text: String::new() }))
}

fn is_plugin_completion(args: &[OsString]) -> bool {
    args.first()
        .and_then(|program| Path::new(program).file_name())
        .is_some_and(|name| name == PLUGIN_COMPLETION)
}

/// The answer to kubectl: a value in each line, its description behind a tab, and last that these are all (`:4`; kubectl's
/// plugins, "completion for plugins").
fn plugin_completion(args: &[OsString], here: Option<&Path>) -> std::io::Result<String> {
    let last = args.len().saturating_sub(1);
    let mut text = String::new();
    for candidate in complete(&mut completable(), args.to_vec(), last, here)? {
        text += &candidate.get_value().to_string_lossy();
        let help = candidate.get_help().map(ToString::to_string).unwrap_or_default();
        if let Some(help) = help.lines().next() {
            text.extend(["\t", help]);
        }
        text.push('\n');
    }
    Ok(text + ":4\n")
}

/// The command line, with what its values may be.
fn completable() -> Command {
    with_values(Cli::command(), "")
}

fn with_values(command: Command, noun: &str) -> Command {
    let noun = if noun.is_empty() { command.get_name().to_owned() } else { noun.to_owned() };
    let below = if noun == "olmkit" { String::new() } else { noun.clone() };
    command.mut_subcommands(|verb| with_values(verb, &below)).mut_args(|arg| with_value(arg, &noun))
}

/// What an argument takes, by its name: `--namespace` is the same everywhere.
fn with_value(arg: Arg, noun: &str) -> Arg {
    let found: fn(&Line) -> Vec<String> = match (noun, arg.get_id().as_str()) {
        (_, "context") => names::contexts,
        (_, "namespace") => names::namespaces,
        ("catalog" | "bundle" | "operator", "package" | "packages") => names::packages,
        ("catalog" | "operator", "channel" | "channels") => names::channels,
        ("operator", "name") => names::subscriptions,
        ("source", "name") => names::catalog_sources,
        _ => return arg,
    };
    arg.add(ArgValueCompleter::new(move |begun: &std::ffi::OsStr| {
        let begun = begun.to_string_lossy();
        let found = found(&Line::of(std::env::args_os()));
        found.into_iter().filter(|name| name.starts_with(&*begun)).map(CompletionCandidate::new).collect()
    }))
}
