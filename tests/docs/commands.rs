//! `docs/commands/`: one page per command, from the definitions of `--help`.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use clap::{Arg, Command, CommandFactory as _};
use olmkit::cli::Cli;

use super::fresh;

/// What each command reads, and what it writes besides its answer.
const EFFECTS: &[(&str, &str, &str)] = &[
    ("bundle init", "`Cargo.toml`, manifests and kustomizations of the project", "the package file"),
    (
        "bundle generate",
        "manifests, the package file; with `--catalog` a catalog; with `--pin-digests` registries",
        "the bundle's directory",
    ),
    ("bundle convert", "a directory of package manifests", "a directory per bundle"),
    (
        "bundle validate",
        "bundles: directories, layouts, archives, registries",
        "nothing; with `--fix` the bundle's files",
    ),
    (
        "bundle diff",
        "two bundles or CRDs: directories, git revisions, layouts, registries; with `--live` a cluster",
        "nothing",
    ),
    ("bundle manifests", "a bundle", "standard output, or the directory of `--kustomize` or `--helm-chart`"),
    ("bundle build", "a bundle", "an OCI layout, an archive or a registry: the place of `--to`"),
    ("bundle push", "a bundle", "a repository of a registry"),
    ("bundle unpack", "a bundle image", "the directory of `--output-dir`"),
    ("catalog add", "bundles, the catalog", "files of the catalog"),
    ("catalog validate", "catalogs", "nothing"),
    ("catalog promote", "the catalog", "files of the catalog"),
    ("catalog deprecate", "the catalog", "files of the catalog"),
    ("catalog undeprecate", "the catalog", "files of the catalog"),
    ("catalog remove", "the catalog", "files of the catalog"),
    ("catalog prune", "the catalog", "files of the catalog"),
    ("catalog set-default", "the catalog", "files of the catalog"),
    ("catalog rename-channel", "the catalog", "files of the catalog"),
    ("catalog init", "the catalog, description and icon", "files of the catalog"),
    ("catalog fmt", "the catalog", "files of the catalog"),
    ("catalog migrate", "the catalog", "files of the catalog"),
    ("catalog split", "the catalog", "files of the catalog"),
    ("catalog merge", "all catalogs", "files of the first catalog"),
    ("catalog diff", "two catalogs: directories, git revisions, layouts, registries", "nothing"),
    ("catalog path", "a catalog", "nothing"),
    ("catalog render", "bundles and catalogs", "nothing but standard output"),
    (
        "catalog template",
        "a template, and the bundles that it names",
        "standard output, or the directory of `--output-dir`",
    ),
    ("catalog convert", "a catalog", "nothing but standard output"),
    ("catalog list", "a catalog", "nothing"),
    ("catalog graph", "a catalog", "standard output, or the directory of `--output-dir`"),
    ("catalog browse", "a catalog", "nothing; serves web pages on this machine"),
    ("catalog resolve", "catalogs", "nothing"),
    (
        "catalog build",
        "a catalog; the image of `--base`, or a static server",
        "an OCI layout, an archive or a registry: the place of `--to`",
    ),
    ("catalog build-index", "a catalog", "the file of `--to`"),
    ("catalog serve", "a catalog or its index", "nothing; listens on the network"),
    ("catalog push", "a catalog", "a repository of a registry"),
    ("image inspect", "an image", "nothing"),
    ("image copy", "an image", "the place that the second argument names"),
    ("image digest", "an image", "nothing"),
    ("olm install", "OLM's manifests: files, or a release on GitHub", "the cluster: OLM's objects"),
    ("olm status", "the cluster", "nothing"),
    ("olm uninstall", "the cluster", "the cluster: deletes what `olm install` created"),
    (
        "operator install",
        "the cluster, its catalogs and their images",
        "the cluster: Namespace, OperatorGroup, Subscription, approvals",
    ),
    (
        "operator upgrade",
        "the cluster, its catalogs and their images",
        "the cluster: the Subscription, approvals of InstallPlans",
    ),
    (
        "operator approve",
        "the cluster, bundles of the InstallPlan",
        "the cluster: the approval of an InstallPlan",
    ),
    ("operator plan", "the cluster, bundles of the InstallPlan", "nothing"),
    ("operator list", "the cluster", "nothing"),
    ("operator describe", "the cluster, its catalogs", "nothing"),
    ("operator status", "the cluster", "nothing"),
    ("operator watch", "the cluster", "nothing"),
    (
        "operator doctor",
        "the cluster, or a recording of one",
        "nothing; with `--fix` the cluster, as the repair says",
    ),
    (
        "operator uninstall",
        "the cluster",
        "the cluster: deletes the Subscription, the ClusterServiceVersion, and what flags name",
    ),
    ("operator rollback", "the cluster, its catalogs", "the cluster: reinstalls the operator"),
    ("operator test", "a catalog, a cluster to test on", "the cluster, in a namespace of the test"),
    ("source add", "a catalog", "the cluster: a CatalogSource; with `--to` a registry"),
    ("source list", "the cluster", "nothing"),
    ("source remove", "the cluster", "the cluster: deletes the CatalogSource"),
    ("source refresh", "the cluster", "the cluster: a pod of the CatalogSource is replaced"),
    ("completions", "nothing", "nothing but standard output"),
    ("man", "nothing", "standard output, or the directory of `--output-dir`"),
    ("version", "nothing", "nothing"),
];

/// The help of an argument, with `<` and `*` as Markdown takes them outside code.
fn prose(text: &str) -> String {
    let mut out = String::new();
    for (number, part) in text.split('`').enumerate() {
        if number > 0 {
            out.push('`');
        }
        match number % 2 {
            0 => out += &part.replace('<', "&lt;").replace('*', "\\*").replace('_', "\\_"),
            _ => out += part,
        }
    }
    out.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn code(words: &[impl AsRef<str>]) -> String {
    words.iter().map(|word| format!("`{}`", word.as_ref())).collect::<Vec<_>>().join(", ")
}

/// `-n`, `--namespace <NAMESPACE>`, or `<CATALOG>`.
fn name(arg: &Arg) -> String {
    let takes = arg.get_action().takes_values();
    let names = arg.get_value_names().unwrap_or_default();
    let value = names.iter().map(|name| format!("<{name}>")).collect::<Vec<_>>().join(" ");
    let value = if takes && value.is_empty() { format!("<{}>", arg.get_id()) } else { value };
    let Some(long) = arg.get_long() else { return format!("`{value}`") };
    let short = arg.get_short().map(|short| format!("`-{short}`, ")).unwrap_or_default();
    if takes { format!("{short}`--{long} {value}`") } else { format!("{short}`--{long}`") }
}

fn describe(page: &mut String, arg: &Arg) {
    let help = arg.get_long_help().or(arg.get_help()).map(ToString::to_string).unwrap_or_default();
    write!(page, "- {}: {}.", name(arg), prose(&help).trim_end_matches('.')).unwrap();
    if let Some(variable) = arg.get_env() {
        write!(page, " Environment: `{}`.", variable.display()).unwrap();
    }
    let default: Vec<_> = arg.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
    if arg.get_action().takes_values() && !default.is_empty() {
        write!(page, " Default: {}.", code(&default)).unwrap();
    }
    page.push('\n');
    if !arg.get_action().takes_values() {
        return;
    }
    let values: Vec<_> = arg.get_possible_values().into_iter().filter(|value| !value.is_hide_set()).collect();
    if values.iter().any(|value| value.get_help().is_some()) {
        for value in values {
            let help =
                value.get_help().map(|help| format!(": {}", prose(&help.to_string()))).unwrap_or_default();
            writeln!(page, "  - `{}`{help}", value.get_name()).unwrap();
        }
    } else if !values.is_empty() {
        let names: Vec<_> = values.iter().map(|value| value.get_name()).collect();
        writeln!(page, "  - one of {}", code(&names)).unwrap();
    }
}

/// The page of one command; `words` is its name without the program's.
fn page(command: &Command, words: &str) -> String {
    let about = command.get_long_about().or(command.get_about()).map(ToString::to_string).unwrap_or_default();
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ");
    let mut page =
        format!("# olmkit {words}\n\n{}.\n\n```text\n{usage}\n```\n", prose(&about).trim_end_matches('.'));
    let (_, reads, writes) = EFFECTS.iter().find(|(name, ..)| *name == words).unwrap_or_else(|| {
        panic!("`{words}` is new: add a line with what it reads and writes to EFFECTS in {}", file!())
    });
    write!(page, "\n- Reads: {reads}.\n- Writes: {writes}.\n").unwrap();
    let examples = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    if let Some(examples) = examples.strip_prefix("Examples:\n") {
        let lines: Vec<_> = examples.lines().map(|line| line.strip_prefix("  ").unwrap_or(line)).collect();
        write!(page, "\n## Examples\n\n```sh\n{}\n```\n", lines.join("\n")).unwrap();
    }
    let args: Vec<&Arg> = command.get_arguments().filter(|arg| !arg.is_hide_set()).collect();
    let mut headings: Vec<&str> = Vec::new();
    for arg in &args {
        let heading = heading(arg);
        if !headings.contains(&heading) {
            headings.push(heading);
        }
    }
    headings.sort_by_key(|heading| {
        ["Arguments", "Options"].iter().position(|first| first == heading).unwrap_or(2)
    });
    for group in headings {
        write!(page, "\n## {group}\n\n").unwrap();
        for arg in args.iter().filter(|arg| heading(arg) == group) {
            describe(&mut page, arg);
        }
    }
    page + &exit_codes(command)
}

fn heading(arg: &Arg) -> &str {
    match arg.get_help_heading() {
        Some(heading) => heading,
        None if arg.is_positional() => "Arguments",
        None => "Options",
    }
}

/// The exit codes that a command can have.
fn exit_codes(command: &Command) -> String {
    let mut text = String::from(
        "\n## Exit codes\n\n| code | name | meaning |\n|---|---|---|\n\
         | 0 | success | the work was done; warnings alone do not change that |\n\
         | 1 | failed | errors were found, or the work failed |\n\
         | 2 | usage | the command line is invalid |\n\
         | 3 | could not complete | I/O, network or API error |\n",
    );
    if command.get_arguments().any(|arg| arg.get_long() == Some("timeout")) {
        text += "| 4 | timed out | `--timeout` ran out |\n";
    }
    text + "| 130 | interrupted | Ctrl-C |\n"
}

/// Every command with a page: its name without the program's, and its definition.
fn commands(root: &Command) -> Vec<(String, &Command)> {
    let mut found = Vec::new();
    for noun in root.get_subcommands() {
        let mut verbs = noun.get_subcommands().peekable();
        if verbs.peek().is_none() {
            found.push((noun.get_name().to_owned(), noun));
        }
        found.extend(verbs.map(|verb| (format!("{} {}", noun.get_name(), verb.get_name()), verb)));
    }
    found
}

#[test]
fn commands_have_pages() {
    let mut root = Cli::command();
    root.build();
    let mut index = String::from(
        "# Commands\n\nOne page per command, with the text of its `--help`. This page and those below it are generated: `make generate`.\n",
    );
    let mut names = BTreeSet::from(["README.md".to_owned()]);
    for noun in root.get_subcommands() {
        let about = noun.get_about().map(ToString::to_string).unwrap_or_default();
        write!(index, "\n## {}\n\n{}.\n\n", noun.get_name(), prose(&about).trim_end_matches('.')).unwrap();
        let all = commands(&root);
        let of_noun = all.iter().filter(|(words, _)| words.split(' ').next() == Some(noun.get_name()));
        for (words, command) in of_noun {
            let file = format!("{}.md", words.replace(' ', "-"));
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            writeln!(index, "- [{words}]({file}): {}", prose(&about)).unwrap();
            fresh(&format!("docs/commands/{file}"), &page(command, words));
            names.insert(file);
        }
    }
    fresh("docs/commands/README.md", &index);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/commands");
    for entry in std::fs::read_dir(folder).unwrap() {
        let found = entry.unwrap().file_name().into_string().unwrap();
        assert!(names.contains(&found), "docs/commands/{found} is of no command: remove it");
    }
}

#[test]
fn effects_are_of_commands_that_exist() {
    let root = Cli::command();
    let names: BTreeSet<String> = commands(&root).into_iter().map(|(words, _)| words).collect();
    for (words, ..) in EFFECTS {
        assert!(names.contains(*words), "`{words}` in EFFECTS is no command");
    }
}

/// The words of a line as a shell would take them, where nothing but quotes is special.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for letter in line.chars() {
        match letter {
            '\'' => quoted = !quoted,
            ' ' if !quoted => words.push(String::new()),
            _ => words.last_mut().unwrap().push(letter),
        }
    }
    words
}

/// kind is not on every machine that runs the tests; that its page names real commands and flags can be seen everywhere.
#[test]
fn the_page_about_kind_has_commands_that_exist() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/kind.md");
    let page = std::fs::read_to_string(page).unwrap();
    let lines = page.lines().map(|line| line.strip_prefix("$ ").unwrap_or(line));
    let lines: Vec<&str> = lines.filter(|line| line.starts_with("olmkit ")).collect();
    assert!(lines.len() > 15, "{lines:?}");
    for line in lines {
        if let Err(error) = Cli::command().try_get_matches_from(words(line)) {
            panic!("{line}\n{error}");
        }
    }
}
