//! What differs between two catalogs, as text and as Markdown for a pull request.

use std::io::{self, Write};

use olmkit_catalog::diff::{
    ChannelDiff, Diff, Edges, EntryDiff, Kind, OtherDiff, PackageDiff, PathDiff, Stranded,
};
use serde::Serialize;

use super::markdown::acts;
use super::paths::{MAX_HOPS, hops, one_line, short};
use super::plural;
use super::{Answer, pretty, printable};
use crate::actions::catalog_diff::{Compared, Denied};
use crate::exit::Exit;
use crate::shell::argument;

impl Compared {
    fn denied(&self) -> Vec<(Denied, usize)> {
        let count =
            |denied: &Denied| (*denied, self.diff.packages.iter().map(|package| denied.count(package)).sum());
        let mut denied: Vec<_> = self.deny.iter().map(count).collect();
        if let Some((_, count)) = denied.iter_mut().find(|(denied, _)| *denied == Denied::Any) {
            *count += self.diff.others.len();
        }
        denied.retain(|(_, count)| *count > 0);
        denied
    }
}

impl Answer for Compared {
    fn json(&self) -> String {
        /// [`Diff`] as it is printed: one of a large catalog is not copied for what is denied.
        #[derive(Serialize)]
        struct Report<'d> {
            schema: &'static str,
            packages: &'d [PackageDiff],
            others: &'d [OtherDiff],
            denied: Vec<String>,
        }
        let Diff { schema, packages, others, .. } = &self.diff;
        let denied = self.denied().into_iter().map(|(denied, count)| plural(count, denied.noun())).collect();
        pretty(&Report { schema, packages, others, denied })
    }

    fn text(&self, out: &mut dyn Write, talk: &mut dyn Write) -> io::Result<()> {
        let page = if self.markdown { markdown(&self.diff, &self.sides) } else { plain(&self.diff) };
        write!(out, "{}", printable(&page))?;
        for (denied, count) in self.denied() {
            writeln!(talk, "denied: {}", plural(count, denied.noun()))?;
        }
        Ok(())
    }

    fn exit(&self) -> Exit {
        if self.denied().is_empty() { Exit::Success } else { Exit::Failed }
    }
}

/// As many paths of a package that differ in one way are listed as text.
const MAX_PATHS: usize = 100;

fn mark(kind: Kind) -> &'static str {
    match kind {
        Kind::Added => "+",
        Kind::Removed => "-",
        Kind::Changed => "~",
    }
}

fn word(kind: Kind) -> &'static str {
    match kind {
        Kind::Added => "new",
        Kind::Removed => "removed",
        Kind::Changed => "changed",
    }
}

/// The sentences about a package, each with its mark; headings are for the channels.
fn plain(diff: &Diff) -> String {
    let mut out = String::new();
    if diff.packages.is_empty() && diff.others.is_empty() {
        return "no differences\n".to_owned();
    }
    for package in &diff.packages {
        out += &format!("{} {}\n", mark(package.change), one_line(&package.name));
        for line in lines(package) {
            out += &format!("  {}\n", one_line(&line));
        }
    }
    for line in diff.others.iter().map(other) {
        out += &format!("{}\n", one_line(&line));
    }
    out
}

/// A blob of another schema, such as `~ example.com.note of x`.
fn other(other: &OtherDiff) -> String {
    let name = if other.name.is_empty() { String::new() } else { format!(" {}", other.name) };
    format!("{} {}{name}", mark(other.change), other.schema)
}

fn lines(package: &PackageDiff) -> Vec<String> {
    let name = |name: &str| short(name, &package.name).to_owned();
    let mut lines = Vec::new();
    if let Some(default) = &package.default_channel {
        lines.push(format!("~ default channel {}, was {}", default.new, default.old));
    }
    lines.extend(package.fields.iter().map(|field| format!("~ {field}")));
    for channel in &package.channels {
        let fields = if channel.fields.is_empty() {
            String::new()
        } else {
            format!(": {}", channel.fields.join(", "))
        };
        let head = head(channel, &name);
        lines.push(format!("{} channel {}{head}{fields}", mark(channel.change), channel.name));
        lines.extend(
            channel
                .entries
                .iter()
                .map(|entry| format!("  {} {}", mark(entry.change), entry_line(entry, &name))),
        );
    }
    for bundle in &package.bundles {
        let fields =
            if bundle.fields.is_empty() { String::new() } else { format!(": {}", bundle.fields.join(", ")) };
        lines.push(format!("{} bundle {}{fields}", mark(bundle.change), name(&bundle.name)));
    }
    for found in &package.deprecations {
        let what = if found.name.is_empty() { "the package".to_owned() } else { name(&found.name) };
        lines.push(match (&found.old, &found.new) {
            (_, Some(message)) => format!("~ {what} is deprecated: {message}"),
            _ => format!("~ {what} is no longer deprecated"),
        });
    }
    lines.extend(package.others.iter().map(other));
    lines.extend(path_lines(package, &name));
    lines
}

/// The paths of a package that differ, the first of each kind, and how many more there are.
fn path_lines(package: &PackageDiff, name: &impl Fn(&str) -> String) -> Vec<String> {
    let mut lines = Vec::new();
    let mut add = |what: &str, all: Vec<String>, count: usize| {
        lines.extend(all);
        if count > MAX_PATHS {
            lines.push(format!("{what}: {} more, listed by `--output json`", count - MAX_PATHS));
        }
    };
    for (what, paths) in [("path gained", &package.paths_gained), ("path lost", &package.paths_lost)] {
        let line = |path: &PathDiff| format!("{what} in {}: {}", path.channel, way(path, name));
        add(what, paths.iter().take(MAX_PATHS).map(line).collect(), paths.len());
    }
    let line = |found: &Stranded| {
        let end = if found.stops_at == found.from {
            "no upgrade".to_owned()
        } else {
            format!("upgrades end at {}", name(&found.stops_at))
        };
        format!("stranded in {}: {}, {end}", found.channel, name(&found.from))
    };
    add("stranded", package.stranded.iter().take(MAX_PATHS).map(line).collect(), package.stranded.len());
    lines
}

fn way(path: &PathDiff, name: &impl Fn(&str) -> String) -> String {
    format!("{} → {}", name(&path.from), hops(&path.hops, path.hops_left_out, MAX_HOPS, name))
}

fn head(channel: &ChannelDiff, name: &impl Fn(&str) -> String) -> String {
    match &channel.head {
        Some(head) if head.old.is_empty() => format!(", head {}", name(&head.new)),
        Some(head) if head.new.is_empty() => format!(", head was {}", name(&head.old)),
        Some(head) => format!(", head {}, was {}", name(&head.new), name(&head.old)),
        None => String::new(),
    }
}

fn edges(edges: &Edges, name: &impl Fn(&str) -> String) -> String {
    let mut parts = Vec::new();
    parts.extend(edges.replaces.as_ref().map(|replaces| format!("replaces {}", name(replaces))));
    if !edges.skips.is_empty() {
        parts.push(format!(
            "skips {}",
            edges.skips.iter().map(|skip| name(skip)).collect::<Vec<_>>().join(" ")
        ));
    }
    parts.extend(edges.skip_range.as_ref().map(|range| format!("skips all of {range}")));
    if parts.is_empty() { "no edges".to_owned() } else { parts.join(", ") }
}

fn entry_line(entry: &EntryDiff, name: &impl Fn(&str) -> String) -> String {
    let shown = name(&entry.name);
    match (&entry.old, &entry.new) {
        (Some(old), Some(new)) => format!("{shown} {}; was: {}", edges(new, name), edges(old, name)),
        (None, Some(new)) if *new == Edges::default() => shown,
        (None, Some(new)) => format!("{shown} {}", edges(new, name)),
        _ => shown,
    }
}

/// A cell or a paragraph of Markdown: what input says is text, not markup. A word that GitHub would act on whatever is before it is code.
fn escaped(text: &str) -> String {
    let word = |word: &str| match acts(word) {
        true => format!("`{}`", word.replace('`', "'").replace('|', "\\|")),
        false => without_markup(word),
    };
    text.replace(['\n', '\r'], " ").split(' ').map(word).collect::<Vec<_>>().join(" ")
}

fn without_markup(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '>' => out.push_str("&gt;"),
            '\\' | '`' | '*' | '_' | '{' | '}' | '(' | ')' | '#' | '!' | '|' | '~' => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}

/// GitHub takes comments of so many characters.
const MAX_COMMENT: usize = 65_536;
/// As many entries of a channel are named in its row.
const MAX_ENTRIES: usize = 100;

fn markdown(diff: &Diff, (old, new): &(String, String)) -> String {
    if diff.packages.is_empty() && diff.others.is_empty() {
        return "No differences between the catalogs.\n".to_owned();
    }
    let mut lines: Vec<String> = diff.packages.iter().flat_map(section).collect();
    lines.extend(diff.others.iter().map(|found| format!("- {}", escaped(&spelled(&other(found))))));
    shortened(&lines, MAX_COMMENT, &format!("olmkit catalog diff {} {}", argument(old), argument(new)))
}

/// Lines up to a number of characters, and how many differences are left out; without an empty line at the end.
fn shortened(lines: &[String], most: usize, command: &str) -> String {
    let is_difference =
        |line: &&String| line.starts_with(['-', '|']) && !line.starts_with("|---") && *line != TABLE;
    let note = |left_out: usize| {
        format!(
            "\n{left_out} more differences are left out, since a comment has at most {most} characters. \
             To see all of them, run `{}`.\n",
            code(command)
        )
    };
    let mut out = lines.join("\n");
    out.truncate(out.trim_end().len());
    out.push('\n');
    if out.chars().count() <= most {
        return out;
    }
    let room = most.saturating_sub(note(usize::MAX).chars().count());
    let (mut out, mut used, mut shown) = (String::new(), 0, 0);
    for line in lines {
        used += line.chars().count() + 1;
        if used > room {
            break;
        }
        out += line;
        out.push('\n');
        shown += 1;
    }
    out.truncate(out.trim_end().len());
    out + "\n" + &note(lines.iter().skip(shown).filter(is_difference).count())
}

const TABLE: &str = "| channel | change | head | entries |";

/// The lines about a package: what users lose comes first.
fn section(package: &PackageDiff) -> Vec<String> {
    let mut out = vec![format!("### {} ({})", escaped(&package.name), word(package.change)), String::new()];
    let name = |name: &str| short(name, &package.name).to_owned();
    let lost = package.paths_lost.iter().map(|path| {
        format!("- **Upgrade path lost** in `{}`: {}", code(&path.channel), escaped(&way(path, &name)))
    });
    let stranded = package.stranded.iter().map(|found| {
        format!("- **Stranded** in `{}`: {}", code(&found.channel), escaped(&name(&found.from)))
    });
    let bad: Vec<String> = lost.chain(stranded).collect();
    if !bad.is_empty() {
        out.extend(bad);
        out.push(String::new());
    }
    if !package.channels.is_empty() {
        out.extend([TABLE.to_owned(), "|---|---|---|---|".to_owned()]);
        out.extend(package.channels.iter().map(|channel| row(channel, &name)));
        out.push(String::new());
    }
    let others = lines(package);
    let is_other = |line: &&String| !line.contains(" channel ") || line.starts_with("~ default channel");
    let others: Vec<String> = others
        .iter()
        .filter(is_other)
        .filter(|line| {
            !line.starts_with("  ") && !line.starts_with("path lost") && !line.starts_with("stranded")
        })
        .map(|line| format!("- {}", escaped(&spelled(line))))
        .collect();
    if !others.is_empty() {
        out.extend(others);
        out.push(String::new());
    }
    out
}

/// A channel in the table of its package.
fn row(channel: &ChannelDiff, name: &impl Fn(&str) -> String) -> String {
    let head = match &channel.head {
        Some(head) => format!("{} → {}", escaped(&name(&head.old)), escaped(&name(&head.new))),
        None => String::new(),
    };
    let entry = |entry: &EntryDiff| {
        format!("{} {}", mark(entry.change).replace('~', "\\~"), escaped(&entry_line(entry, name)))
    };
    let mut entries: Vec<String> = channel.entries.iter().take(MAX_ENTRIES).map(entry).collect();
    if channel.entries.len() > MAX_ENTRIES {
        entries.push(format!("and {} more", channel.entries.len() - MAX_ENTRIES));
    }
    entries.extend(channel.fields.iter().map(|field| format!("\\~ {}", escaped(field))));
    let (channel_name, change) = (escaped(&channel.name), word(channel.change));
    format!("| {channel_name} | {change} | {head} | {} |", entries.join("<br>"))
}

/// A line of the text without its mark.
fn spelled(line: &str) -> String {
    let spelled = [("+ ", "new "), ("- ", "removed "), ("~ ", "")];
    let change = spelled.iter().find_map(|(mark, word)| Some(format!("{word}{}", line.strip_prefix(mark)?)));
    change.unwrap_or_else(|| line.to_owned())
}

/// Text between backticks.
fn code(text: &str) -> String {
    text.replace(['`', '\n', '\r'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comment_that_is_too_long_says_how_much_is_left_out() {
        let lines: Vec<String> = (0..100).map(|number| format!("- difference {number} \u{2192}")).collect();
        let whole = shortened(&lines, 5_000, "olmkit catalog diff a b");
        assert_eq!(whole, lines.join("\n") + "\n");
        let short = shortened(&lines, 1_000, "olmkit catalog diff a b");
        assert!(short.chars().count() <= 1_000, "{}", short.chars().count());
        let shown = short.lines().filter(|line| line.starts_with("- ")).count();
        let note = format!(
            "\n\n{} more differences are left out, since a comment has at most 1000 characters. \
             To see all of them, run `olmkit catalog diff a b`.\n",
            100 - shown
        );
        assert!(shown > 20 && short.ends_with(&note), "{short}");
    }

    #[test]
    fn a_line_break_in_a_name_is_no_line_of_the_page() {
        assert_eq!(one_line("a\n~ b\r"), "a ~ b ");
    }

    #[test]
    fn catalog_text_is_not_markup() {
        assert_eq!(escaped("<b>*x* [a](b) | `c`\n"), r"`<b>*x*` `[a](b)` \| \`c\` ");
        assert_eq!(code("a`b"), "a b");
    }
}
