//! Flags with a key and a value that may be repeated, such as `--label KEY=VALUE`: whatever the flag, two values for one key are
//! refused, since one of them would be lost.

use std::collections::BTreeMap;

use clap::{Arg, ArgAction, ArgMatches, Command};
use olmkit_bundle::generate::{Assignment, ImageOverride};

use crate::exit::Failure;

/// A key with its value.
struct Pair {
    /// What tells whether two keys are the same, and two values: some flags can write one thing in two ways.
    identity: (String, String),
    key: String,
    value: String,
}

impl Pair {
    fn of(key: &str, value: &str) -> Self {
        let (key, value) = (key.to_owned(), value.to_owned());
        Self { identity: (key.clone(), value.clone()), key, value }
    }
}

/// Checks the flags of a command and of the verb that was chosen.
///
/// # Errors
/// A flag gives one key two values.
pub(super) fn check(command: &Command, matches: &ArgMatches) -> Result<(), Failure> {
    let flags = command.get_arguments().filter(|flag| takes_pairs(flag));
    for flag in flags {
        let Some(name) = flag.get_long() else { continue };
        let given = matches.try_get_raw(flag.get_id().as_str()).ok().flatten().into_iter().flatten();
        let mut seen = BTreeMap::<String, (String, String)>::new();
        for pair in given.flat_map(|text| pairs(flag, &text.to_string_lossy())) {
            let (key, value) = pair.identity;
            let first = seen.entry(key).or_insert_with(|| (value.clone(), pair.value.clone()));
            if first.0 == value {
                continue;
            }
            let values = match flag.is_hide_env_values_set() {
                true => String::new(),
                false => format!(": `{}` and `{}`", first.1, pair.value),
            };
            let error = format!("`--{name}` gives `{}` two values{values}", pair.key);
            return Err(Failure::usage(error).help("pass one of them"));
        }
    }
    match matches.subcommand().and_then(|(name, below)| Some((command.find_subcommand(name)?, below))) {
        Some((verb, below)) => check(verb, below),
        None => Ok(()),
    }
}

/// Whether a flag may be repeated and takes a key, `=` and a value, by the name that the help gives its value. A `NAME` is one that
/// the user invents, and its verb says what is wrong with two of them.
fn takes_pairs(flag: &Arg) -> bool {
    let is_upper = |key: &str| key.bytes().all(|c| c.is_ascii_uppercase() || c == b'/');
    let is_key = |key: &str| !key.is_empty() && key != "NAME" && is_upper(key);
    let name = flag.get_value_names().and_then(|names| names.first());
    matches!(flag.get_action(), ArgAction::Append)
        && name.is_some_and(|name| name.split_once('=').is_some_and(|(key, _)| is_key(key)))
}

/// The pairs in the text of a flag. What is not a pair is the flag's own business.
fn pairs(flag: &Arg, text: &str) -> Vec<Pair> {
    let plain = |text: &str| text.split_once('=').map(|(key, value)| Pair::of(key, value));
    match (flag.get_id().as_str(), flag.get_value_names().and_then(|names| names.first())) {
        // A path can be written in several ways, and a value too.
        ("set", _) => {
            let Ok(Assignment { path, value }) = text.parse() else { return Vec::new() };
            let identity = (format!("{path:?}"), value.to_string());
            plain(text).map(|pair| Pair { identity, ..pair }).into_iter().collect()
        }
        ("helm_set", _) => helm_pairs(text).into_iter().filter_map(plain).collect(),
        (_, Some(name)) if name == "OLD=NEW" => {
            let Ok(ImageOverride { name, .. }) = text.parse() else { return Vec::new() };
            let value = text.split_once('=').map_or(text, |(_, new)| new);
            vec![Pair::of(&name, value)]
        }
        _ => plain(text).into_iter().collect(),
    }
}

/// The pairs of `helm template --set`: commas part them, except in braces and after a backslash.
fn helm_pairs(text: &str) -> Vec<&str> {
    let (mut pairs, mut from, mut depth, mut is_escaped) = (Vec::new(), 0, 0_u32, false);
    for (at, letter) in text.char_indices() {
        match letter {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                pairs.push(&text[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    pairs.push(&text[from..]);
    pairs
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::cli::Cli;

    #[track_caller]
    fn said(line: &str) -> String {
        let matches = Cli::command().try_get_matches_from(line.split(' ')).expect(line);
        let checked = check(&Cli::command(), &matches);
        checked.map_or_else(|failure| failure.to_string(), |()| "fine".to_owned())
    }

    #[test]
    fn a_key_with_two_values_is_refused_by_every_flag_that_may_be_repeated() {
        let build = "olmkit catalog build catalog --to oci:x";
        let generate = "olmkit bundle generate";
        for (line, expected) in [
            (format!("{build} --label k=a --label k=b"), "`--label` gives `k` two values: `a` and `b`"),
            (format!("{build} --label k=a --label k=a --label l=b"), "fine"),
            (
                format!("{build} --server-binary linux/amd64=x --server-binary linux/amd64=y"),
                "`--server-binary` gives `linux/amd64` two values: `x` and `y`",
            ),
            (
                format!("{build} --creds quay.io=u:secret --creds quay.io=u:other"),
                "`--creds` gives `quay.io` two values",
            ),
            (
                format!("{generate} --set spec.maturity=alpha --set spec.maturity=stable"),
                "`--set` gives `spec.maturity` two values: `alpha` and `stable`",
            ),
            (
                format!("{generate} --set spec.a-b=1 --set spec['a-b']=2"),
                "`--set` gives `spec['a-b']` two values: `1` and `2`",
            ),
            (format!("{generate} --set spec.maturity=alpha --set spec.maturity=\"alpha\""), "fine"),
            (
                format!("{generate} --image controller=x:1 --image controller=y:1"),
                "`--image` gives `controller` two values: `x:1` and `y:1`",
            ),
            (format!("{generate} --helm-set a=1,b=2 --helm-set a=1,c=3"), "fine"),
            (format!("{generate} --helm-set a={{1,b=2}} --helm-set b=3"), "fine"),
            (
                format!("{generate} --helm-set a=1,b=2 --helm-set b=3"),
                "`--helm-set` gives `b` two values: `2` and `3`",
            ),
            (
                "olmkit olm install --version v0.30.0 --image a=b --image a=c".to_owned(),
                "`--image` gives `a` two values: `b` and `c`",
            ),
        ] {
            assert_eq!(said(&line), expected, "{line}");
        }
    }
}
