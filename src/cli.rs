//! The command line: noun, then verb. Flags become typed requests here; nothing is done and nothing printed.

mod bundle;
mod catalog;
mod diff;
mod image;
mod impersonation;
mod levels;
mod manifests;
mod olm;
mod operator;
mod pairs;
mod registry;
mod shell;
mod source;

use std::ffi::OsString;

use clap::builder::FalseyValueParser;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ColorChoice, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use olmkit_bundle::version::Version;

use crate::exit::Failure;
use crate::image::PlaceError;
use crate::report::{Answer, Format, VersionAnswer};

pub use shell::completed;

/// Package Kubernetes operators for OLM: bundles, catalogs and images, without Docker or Go.
#[derive(Debug, Parser)]
#[command(name = "olmkit", version, max_term_width = 100, disable_help_subcommand = true)]
pub struct Cli {
    /// Output format.
    #[arg(short, long, global = true, value_enum, value_name = "FORMAT", default_value_t = Format::Text, help_heading = "Output")]
    pub output: Format,
    /// When to use color.
    #[arg(long, global = true, value_name = "WHEN", default_value_t = ColorChoice::Auto, help_heading = "Output")]
    pub color: ColorChoice,
    /// Show answers, warnings and errors only: no progress, no next command
    #[arg(short, long, global = true, help_heading = "Output")]
    pub quiet: bool,
    /// Show each request to a registry or a cluster on standard error: method, URL, status and duration, without secrets
    #[arg(short, long, global = true, env = "OLMKIT_LOG", hide_env_values = true, value_parser = FalseyValueParser::new(), help_heading = "Output")]
    pub verbose: bool,
    /// Subject of the command.
    #[command(subcommand)]
    pub noun: Noun,
}

impl Cli {
    /// Reads a command line, and what of it contradicts itself.
    ///
    /// # Errors
    /// It is not a command line, or asks for help.
    pub fn read(args: &[OsString]) -> Result<(Self, Result<(), Failure>), clap::Error> {
        let mut command = Self::command();
        let matches = command.try_get_matches_from_mut(args)?;
        let cli = Self::from_arg_matches(&matches).map_err(|error| error.format(&mut command))?;
        Ok((cli, pairs::check(&command, &matches)))
    }
}

/// Subject of the command.
#[derive(Debug, Subcommand)]
pub enum Noun {
    /// Create, validate and publish bundles: one version of an operator each
    #[command(subcommand)]
    Bundle(bundle::Verb),
    /// Create, validate, query and publish catalogs: packages, channels and bundles
    #[command(subcommand)]
    Catalog(catalog::Verb),
    /// Inspect and copy images
    #[command(subcommand)]
    Image(image::Verb),
    /// Install, inspect and remove OLM itself
    #[command(subcommand)]
    Olm(olm::Verb),
    /// Install, upgrade and remove operators through OLM
    #[command(subcommand)]
    Operator(Box<operator::Verb>),
    /// Manage the catalogs of a cluster: the CatalogSources that OLM installs from
    #[command(subcommand)]
    Source(Box<source::Verb>),
    /// Print a completion script for a shell; it completes names of operators, packages, channels and namespaces too
    Completions(shell::Completions),
    /// Print the manual page of a command
    Man(shell::ManPages),
    /// Print the version, and the versions of OLM and Kubernetes that it is tested with
    Version,
}

impl Noun {
    /// Whether the answer has one of the formats for findings, or for tests.
    pub fn reports_in(&self, format: Format) -> bool {
        match self {
            Self::Operator(verb) if verb.is_test() => matches!(format, Format::Junit | Format::Markdown),
            Self::Bundle(bundle::Verb::Generate(_) | bundle::Verb::Validate(_) | bundle::Verb::Diff(_))
            | Self::Catalog(catalog::Verb::Validate(_)) => true,
            _ => false,
        }
    }

    /// Whether the answer is a script or a page, which has no other format.
    pub fn prints_text_only(&self) -> bool {
        matches!(self, Self::Completions(_) | Self::Man(_))
    }

    /// Whether it works on a cluster, or writes to a registry.
    pub fn reaches_out(&self) -> bool {
        if let Self::Bundle(verb) = self {
            return verb.reaches_out();
        }
        matches!(
            self,
            Self::Catalog(catalog::Verb::Build(_) | catalog::Verb::Push(_))
                | Self::Image(image::Verb::Copy(_))
                | Self::Olm(_)
                | Self::Operator(_)
                | Self::Source(_)
        )
    }

    /// Whether it reaches out and changes nothing, so that nothing is kept of it when it is interrupted.
    pub fn only_reads(&self) -> bool {
        match self {
            Self::Bundle(bundle::Verb::Diff(_)) | Self::Olm(olm::Verb::Status(_)) => true,
            Self::Source(verb) => matches!(**verb, source::Verb::List(_)),
            Self::Operator(verb) => verb.only_reads(),
            _ => false,
        }
    }

    /// Whether its inputs alone decide how long it takes: it asks no cluster, serves nobody, and copies no images.
    pub fn only_computes(&self) -> bool {
        match self {
            Self::Bundle(bundle::Verb::Push(_)) => false,
            Self::Bundle(bundle::Verb::Diff(flags)) => !flags.is_live(),
            Self::Bundle(_) => true,
            Self::Catalog(verb) => {
                use catalog::Verb::{Browse, Push, Serve};
                !matches!(verb, Browse(_) | Push(_) | Serve(_))
            }
            Self::Image(verb) => !matches!(verb, image::Verb::Copy(_)),
            Self::Operator(verb) => verb.only_computes(),
            _ => false,
        }
    }

    /// Does what was asked. Answers that are files themselves are made for a format of output.
    ///
    /// # Errors
    /// When it could not be done.
    pub fn run(self, output: Format) -> Result<Box<dyn Answer>, Failure> {
        match self {
            Self::Bundle(verb) => verb.run(output),
            Self::Catalog(verb) => verb.run(output),
            Self::Image(verb) => verb.run(),
            Self::Olm(verb) => verb.run(),
            Self::Operator(verb) => verb.run(output),
            Self::Source(verb) => verb.run(),
            Self::Completions(flags) => flags.run(),
            Self::Man(flags) => flags.run(),
            Self::Version => Ok(Box::new(VersionAnswer)),
        }
    }
}

/// A version as people mistype it: the message says what one looks like.
fn version(text: &str) -> Result<Version, String> {
    Version::parse(text).map_err(|error| match nearest_version(text) {
        Some(near) => format!("not a semantic version: write it as {near}"),
        None => format!("a semantic version such as 1.2.3 is needed: {error}"),
    })
}

/// What somebody meant who put the `v` of tags before a version, or left out its zeros.
fn nearest_version(text: &str) -> Option<String> {
    let bare = text.trim().trim_start_matches(['v', 'V']);
    [bare.to_owned(), format!("{bare}.0"), format!("{bare}.0.0")]
        .into_iter()
        .find(|near| Version::parse(near).is_ok())
}

/// `olmkit help bundle diff` is `olmkit bundle diff --help`.
pub fn as_help(mut args: Vec<OsString>) -> Vec<OsString> {
    if let Some(at) = args.iter().take(3).position(|word| word == "help")
        && at > 0
        && args.iter().skip(1).all(|word| !word.to_string_lossy().starts_with('-'))
    {
        args.remove(at);
        args.push("--help".into());
    }
    args
}

/// `kubectl olmkit -n NAMESPACE operator status` is `kubectl olmkit operator status -n NAMESPACE`: kubectl and its plugins take the
/// flags that choose a cluster before the verb too.
pub fn with_cluster_flags_last(mut args: Vec<OsString>) -> Vec<OsString> {
    const CLUSTER: [&str; 4] = ["-n", "--namespace", "--context", "--kubeconfig"];
    const OTHERS: [&str; 3] = ["-o", "--output", "--color"];
    let (mut at, mut moved) = (1, Vec::new());
    while let Some(word) = args.get(at).map(|word| word.to_string_lossy().into_owned()) {
        let name = word.split('=').next().unwrap_or_default();
        let has_value = |names: &[&str]| names.contains(&word.as_str()) && args.get(at + 1).is_some();
        let length = if has_value(&CLUSTER) || has_value(&OTHERS) { 2 } else { 1 };
        match name {
            _ if CLUSTER.contains(&name) => moved.extend(args.drain(at..at + length)),
            _ if name.starts_with('-') && name != "--" => at += length,
            _ => break,
        }
    }
    let end = args.iter().position(|word| word == "--").unwrap_or(args.len());
    args.splice(end..end, moved);
    args
}

/// The name under which the program is the catalog server alone, as in the images of catalogs.
const SERVER_NAME: &str = "olmkit-serve";

/// `olmkit-serve CATALOG` is `olmkit catalog serve CATALOG`, where the whole program was put in its place.
pub fn as_server(mut args: Vec<OsString>) -> Vec<OsString> {
    let name = args.first().and_then(|program| std::path::Path::new(program).file_name());
    let words = || args.iter().skip(1).take(2).map(|word| word.to_string_lossy());
    let is_own = words().eq(["catalog", "build-index"]) || words().eq(["catalog", "serve"]);
    if name.is_some_and(|name| name == SERVER_NAME) && !is_own {
        if args.get(1).is_some_and(|word| word == "serve") {
            args.remove(1);
        }
        args.splice(1..1, ["catalog".into(), "serve".into()]);
    }
    args
}

/// Where to name directories that operator-sdk has flags for.
const DIRECTORIES: &str = "name directories with manifests without a flag: `olmkit bundle generate DIR`";
/// Where to name an image that is made.
const DESTINATION: &str =
    "`--to PLACE` says where the image goes: `HOST/NAME:TAG`, `oci:DIR:TAG` or `oci-archive:FILE`";
/// How images are moved.
const COPY: &str = "`olmkit image copy FROM TO` copies images, `FROM` and `TO` being `HOST/NAME:TAG`, `oci:DIR:TAG` or `oci-archive:FILE`";

/// Flags and verbs of operator-sdk, opm, docker and skopeo, by the verb of ours that they are given to, and what to write here.
const WORDS_OF_OTHER_TOOLS: [(&str, &str, &str); 20] = [
    ("generate", "--input-dir", DIRECTORIES),
    ("generate", "--deploy-dir", DIRECTORIES),
    ("generate", "--crds-dir", DIRECTORIES),
    (
        "generate",
        "--kustomize-dir",
        "`--kustomize DIR` builds a kustomization, and `--base CSV` names the base in its `bases`",
    ),
    ("generate", "--use-image-digests", "`--pin-digests` pins images to their digests"),
    ("generate", "--overwrite", "olmkit always replaces its own files; `--force` also replaces others"),
    (
        "validate",
        "--select-optional",
        "`--suite NAME,…` chooses suites of rules, such as `--suite olm,operatorhub,good-practices`; `--list` shows them",
    ),
    (
        "validate",
        "--optional-values",
        "`--kubernetes-version`, `--categories` and `--index-path` give these values",
    ),
    ("build", "--tag", DESTINATION),
    ("build", "-t", DESTINATION),
    ("build", "--output", DESTINATION),
    ("copy", "--output", COPY),
    ("catalog", "render-template", "`olmkit catalog template FILE` expands a template"),
    (
        "catalog",
        "generate",
        "`olmkit catalog build CATALOG --to HOST/NAME:TAG` makes the image without a Dockerfile",
    ),
    ("image", "pull", COPY),
    ("image", "push", COPY),
    ("upgrade", "--version", GOAL),
    ("rollback", "--version", GOAL),
    ("promote", "--channel", "`--to CHANNEL` names the channel that gets the version"),
    ("promote", "--channels", "`--to CHANNEL` names the channel that gets the version"),
];
/// The version that an operator is to have.
const GOAL: &str = "`--to VERSION` names the version";

/// What to write here for a flag that many other tools have.
fn word_of_kubectl(word: &str) -> Option<&'static str> {
    match word {
        "--json" => Some("`--output json` prints JSON, where the command has it"),
        "--yaml" => Some("`--output yaml` prints YAML, where the command has it"),
        _ => None,
    }
}

/// The error with a hint, where somebody passes what the other tool takes, or names an image in a way that it cannot have.
pub fn with_hint(mut error: clap::Error, args: &[OsString]) -> clap::Error {
    let place = std::error::Error::source(&error).and_then(|source| source.downcast_ref::<PlaceError>());
    if let Some(help) = place.and_then(PlaceError::help) {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![help.into()]));
        return error;
    }
    let found = error.get(ContextKind::InvalidSubcommand).or_else(|| error.get(ContextKind::InvalidArg));
    let Some(ContextValue::String(found)) = found else { return error };
    // Of a flag with a value, the name of the value follows.
    let word = found.split(' ').next().unwrap_or_default();
    let is_given = |verb: &str| args.iter().take(3).any(|word| word == verb);
    let known = WORDS_OF_OTHER_TOOLS.iter().find(|(verb, known, _)| *known == word && is_given(verb));
    if let Some(hint) = known.map(|(.., hint)| *hint).or_else(|| word_of_kubectl(word)) {
        error.remove(ContextKind::SuggestedArg);
        error.remove(ContextKind::SuggestedSubcommand);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![hint.into()]));
    } else if error.kind() == ErrorKind::InvalidSubcommand {
        let elsewhere = commands_of_name(&Cli::command(), word, "olmkit");
        if !elsewhere.is_empty() {
            error.remove(ContextKind::SuggestedSubcommand);
            let hint = format!("the command is `{}`", elsewhere.join("` or `"));
            error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![hint.into()]));
        }
    }
    error
}

/// The commands below one that have this name, each as it is typed.
fn commands_of_name(above: &clap::Command, name: &str, typed: &str) -> Vec<String> {
    let below = above.get_subcommands().flat_map(|command| {
        let typed = format!("{typed} {}", command.get_name());
        let more = commands_of_name(command, name, &typed);
        (command.get_name() == name).then_some(typed).into_iter().chain(more)
    });
    below.collect()
}

/// Whether a command line may be one that [`Noun::reaches_out`], before it is understood.
pub fn may_reach_out(args: &[OsString]) -> bool {
    let verbs = ["olm", "operator", "source", "build", "push", "copy", "--live"];
    args.iter().any(|word| verbs.iter().any(|verb| word == verb))
}

/// `cargo olmkit …` calls `cargo-olmkit olmkit …`: takes the repeated word away.
pub fn without_plugin_word(args: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut args: Vec<_> = args.into_iter().collect();
    let program =
        args.first().map(|program| std::path::Path::new(program).file_stem().map(ToOwned::to_owned));
    if program.flatten().is_some_and(|name| name == "cargo-olmkit")
        && args.get(1).is_some_and(|word| word == "olmkit")
    {
        args.remove(1);
    }
    args
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn what_changes_nothing_has_nothing_to_resume() {
        for (line, only_reads) in [
            ("olmkit operator doctor --from must-gather.tar.gz", true),
            ("olmkit source list", true),
            ("olmkit operator uninstall redis -n redis", false),
            ("olmkit bundle push bundle localhost/a/b:v1", false),
        ] {
            let args: Vec<_> = line.split(' ').map(OsString::from).collect();
            assert_eq!(Cli::read(&args).unwrap().0.noun.only_reads(), only_reads, "{line}");
        }
    }

    #[test]
    fn flags_that_choose_a_cluster_may_stand_before_the_verb() {
        let args = |line: &str| line.split(' ').map(OsString::from).collect::<Vec<_>>();
        for (given, meant) in [
            ("kubectl-olmkit -n a operator status x", "kubectl-olmkit operator status x -n a"),
            (
                "olmkit -o json --context=c --namespace a operator status -- x",
                "olmkit -o json operator status --context=c --namespace a -- x",
            ),
            ("olmkit operator status -n a", "olmkit operator status -n a"),
            ("olmkit --help", "olmkit --help"),
        ] {
            assert_eq!(with_cluster_flags_last(args(given)), args(meant), "{given}");
        }
    }

    #[test]
    fn the_program_may_stand_for_its_server() {
        let args = |line: &str| line.split(' ').map(OsString::from).collect::<Vec<_>>();
        for (given, meant) in [
            ("/bin/olmkit-serve /configs --index x", "/bin/olmkit-serve catalog serve /configs --index x"),
            ("olmkit-serve serve /configs", "olmkit-serve catalog serve /configs"),
            ("olmkit-serve catalog", "olmkit-serve catalog serve catalog"),
            ("olmkit-serve catalog build-index x --to y", "olmkit-serve catalog build-index x --to y"),
            ("olmkit serve x", "olmkit serve x"),
        ] {
            assert_eq!(as_server(args(given)), args(meant));
        }
    }

    #[test]
    fn flags_of_the_other_tool_get_a_hint() {
        let said = |line: &str| {
            let args: Vec<_> = line.split(' ').map(OsString::from).collect();
            let error = Cli::try_parse_from(&args).expect_err("it is no flag");
            with_hint(error, &args).to_string()
        };
        let tip = "tip: name directories with manifests without a flag: `olmkit bundle generate DIR`";
        assert!(said("olmkit bundle generate --input-dir deploy").contains(tip));
        let digests = said("olmkit bundle generate --use-image-digests");
        assert!(digests.contains("tip: `--pin-digests`") && !digests.contains("as a value"), "{digests}");
        assert!(!said("olmkit bundle validate --overwrite").contains("olmkit always replaces"));
        for (line, hint) in [
            ("olmkit generate", "tip: the command is `olmkit bundle generate`\n"),
            (
                "olmkit validate x",
                "tip: the command is `olmkit bundle validate` or `olmkit catalog validate`\n",
            ),
            ("olmkit catalog upgrade", "tip: the command is `olmkit operator upgrade`\n"),
            ("olmkit bundle validate b --select-optional suite=x", "tip: `--suite NAME,…` chooses suites"),
            ("olmkit bundle build b --tag x.y/z:v1", "tip: `--to PLACE` says where the image goes"),
            ("olmkit bundle build b -t x.y/z:v1", "tip: `--to PLACE` says where the image goes"),
            ("olmkit catalog build c --output x.tar", "tip: `--to PLACE` says where the image goes"),
            ("olmkit catalog render-template x.yaml", "tip: `olmkit catalog template FILE`"),
            ("olmkit image push x", "tip: `olmkit image copy FROM TO`"),
            ("olmkit operator upgrade x --version 1.0.0", "tip: `--to VERSION` names the version"),
            ("olmkit bundle validate b --json", "tip: `--output json` prints JSON"),
        ] {
            let said = said(line);
            assert!(said.contains(hint) && said.matches("tip:").count() == 1, "{said}");
        }
        let place = said("olmkit image inspect https://quay.io/x/y:v1");
        assert!(place.contains("tip: write `docker://HOST/NAME:TAG` for an image in a registry"), "{place}");
    }

    #[test]
    fn help_is_a_command_too() {
        let args = |line: &str| line.split(' ').map(OsString::from).collect::<Vec<_>>();
        for (given, meant) in [
            ("olmkit help", "olmkit --help"),
            ("olmkit help bundle diff", "olmkit bundle diff --help"),
            ("olmkit catalog help promote", "olmkit catalog promote --help"),
            ("olmkit operator status help", "olmkit operator status help"),
        ] {
            assert_eq!(as_help(args(given)), args(meant));
        }
    }

    #[test]
    fn cargo_repeats_the_word() {
        let args = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>();
        assert_eq!(
            without_plugin_word(args(&["/x/cargo-olmkit", "olmkit", "bundle"])),
            args(&["/x/cargo-olmkit", "bundle"])
        );
        assert_eq!(without_plugin_word(args(&["olmkit", "olmkit"])), args(&["olmkit", "olmkit"]));
    }
}
