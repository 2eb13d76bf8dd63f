//! What a Makefile says of the bundle: the variables that operator-sdk's Makefiles have.

use olmkit_bundle::names::ChannelName;

/// The value of a variable that is set once for all: without references to others, quotes and comments.
///
/// `make` takes the last of several that stand one after another; which of two branches it takes is not known here, so that a
/// variable with two values has none.
pub(super) fn variable<'t>(makefile: &'t str, name: &str) -> Option<&'t str> {
    let value = |line: &'t str| {
        let line = line.trim_start_matches("export ").trim_start();
        let rest = line.strip_prefix(name)?.trim_start();
        let value = ["::=", ":=", "?=", "="].iter().find_map(|sign| rest.strip_prefix(sign))?;
        let value = value.split(" #").next().unwrap_or("").trim();
        let quoted = |quote| value.strip_prefix(quote)?.strip_suffix(quote);
        Some(quoted('"').or_else(|| quoted('\'')).unwrap_or(value).trim())
    };
    // A line that starts with a tab is a command.
    let mut values = makefile.lines().filter(|line| !line.starts_with('\t')).filter_map(value);
    let first = values.next().filter(|value| !value.is_empty() && !value.contains('$'))?;
    values.all(|other| other == first).then_some(first)
}

/// The channels that `CHANNELS` lists.
pub(super) fn channels(makefile: &str) -> Vec<String> {
    let names = variable(makefile, "CHANNELS").unwrap_or("").split(',').map(str::trim);
    names.filter(|name| is_channel(name)).map(ToOwned::to_owned).collect()
}

/// The channel that `DEFAULT_CHANNEL` names.
pub(super) fn default_channel(makefile: &str) -> Option<String> {
    variable(makefile, "DEFAULT_CHANNEL").filter(|name| is_channel(name)).map(ToOwned::to_owned)
}

fn is_channel(name: &str) -> bool {
    name.parse::<ChannelName>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_as_make_writes_them() {
        for (text, expected) in [
            ("CHANNELS = stable,beta\n", "stable beta"),
            ("CHANNELS ?= \"stable, beta\" # both\n", "stable beta"),
            ("export CHANNELS:='stable'\n", "stable"),
            ("# CHANNELS = a\n\tCHANNELS=b make bundle\nBUNDLE_CHANNELS := --channels=$(CHANNELS)\n", ""),
            ("ifeq (a,b)\nCHANNELS = a\nelse\nCHANNELS = b\nendif\n", ""),
            ("CHANNELS = $(OTHER)\n", ""),
            ("CHANNELS_MORE = a\n", ""),
            ("CHANNELS =\n", ""),
        ] {
            assert_eq!(channels(text).join(" "), expected, "{text}");
        }
        assert_eq!(default_channel("DEFAULT_CHANNEL=\"stable\"\n").as_deref(), Some("stable"));
        assert_eq!(variable("VERSION ?= 0.0.1\n", "VERSION"), Some("0.0.1"));
    }
}
