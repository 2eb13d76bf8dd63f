//! What differs between two catalogs, as text and as Markdown for a pull request.

use std::io::{self, Write};

use olmkit_catalog::diff::{ChannelDiff, Diff, Edges, EntryDiff, Kind, PackageDiff};

use super::findings::plural;
use super::paths::short;
use super::{Answer, pretty, printable};
use crate::exit::Exit;

/// The differences, and which of them are failures.
#[derive(Debug)]
pub struct CatalogDiffAnswer {
    /// The differences.
    pub diff: Diff,
    /// Those that are failures.
    pub deny: Vec<Denied>,
    /// Whether text is Markdown.
    pub markdown: bool,
}

/// A difference that is a failure where it is denied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denied {
    /// A version can no longer upgrade to the head of its channel.
    LostPaths,
    /// Clusters with a version no longer reach the head of its channel.
    Stranded,
    /// A package is gone.
    RemovedPackages,
    /// A channel is gone.
    RemovedChannels,
    /// A bundle is gone.
    RemovedBundles,
    /// A published bundle is not what it was.
    ChangedBundles,
    /// The default channel is another one.
    DefaultChannel,
    /// Anything.
    Any,
}

impl Denied {
    /// How many of these differences a package has, and what they are called.
    pub fn count(self, package: &PackageDiff) -> usize {
        let bundles = |change| package.bundles.iter().filter(|bundle| bundle.change == change).count();
        match self {
            Self::LostPaths => package.paths_lost.len(),
            Self::Stranded => package.stranded.len(),
            Self::RemovedPackages => usize::from(package.change == Kind::Removed),
            Self::RemovedChannels => {
                package.channels.iter().filter(|channel| channel.change == Kind::Removed).count()
            }
            Self::RemovedBundles => bundles(Kind::Removed),
            Self::ChangedBundles => bundles(Kind::Changed),
            Self::DefaultChannel => usize::from(package.default_channel.is_some()),
            Self::Any => 1,
        }
    }

    /// What one of them is called.
    pub fn noun(self) -> &'static str {
        match self {
            Self::LostPaths => "lost upgrade path",
            Self::Stranded => "stranded version",
            Self::RemovedPackages => "removed package",
            Self::RemovedChannels => "removed channel",
            Self::RemovedBundles => "removed bundle",
            Self::ChangedBundles => "changed bundle",
            Self::DefaultChannel => "changed default channel",
            Self::Any => "changed package",
        }
    }
}

impl CatalogDiffAnswer {
    fn denied(&self) -> Vec<(Denied, usize)> {
        let count =
            |denied: &Denied| (*denied, self.diff.packages.iter().map(|package| denied.count(package)).sum());
        self.deny.iter().map(count).filter(|(_, count)| *count > 0).collect()
    }
}

impl Answer for CatalogDiffAnswer {
    fn json(&self) -> String {
        pretty(&self.diff)
    }

    fn text(&self, out: &mut dyn Write, talk: &mut dyn Write) -> io::Result<()> {
        let page = if self.markdown { markdown(&self.diff) } else { plain(&self.diff) };
        write!(out, "{}", printable(&page))?;
        for (denied, count) in self.denied() {
            writeln!(talk, "denied: {}", plural(count, denied.noun()))?;
        }
        Ok(())
    }

    fn exit(&self) -> Exit {
        if self.denied().is_empty() { Exit::Yes } else { Exit::No }
    }
}

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
    if diff.packages.is_empty() {
        return "no differences\n".to_owned();
    }
    for package in &diff.packages {
        out += &format!("{} {}\n", mark(package.change), package.name);
        for line in lines(package) {
            out += &format!("  {line}\n");
        }
    }
    out
}

fn lines(package: &PackageDiff) -> Vec<String> {
    let name = |name: &str| short(name, &package.name).to_owned();
    let mut lines = Vec::new();
    if let Some(default) = &package.default_channel {
        lines.push(format!("~ default channel {}, was {}", default.new, default.old));
    }
    lines.extend(package.fields.iter().map(|field| format!("~ {field}")));
    for channel in &package.channels {
        lines.push(format!("{} channel {}{}", mark(channel.change), channel.name, head(channel, &name)));
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
    for path in &package.paths_gained {
        lines.push(format!(
            "path gained in {}: {} → {}",
            path.channel,
            name(&path.from),
            hops(&path.hops, &name)
        ));
    }
    for path in &package.paths_lost {
        lines.push(format!(
            "path lost in {}: {} → {}",
            path.channel,
            name(&path.from),
            hops(&path.hops, &name)
        ));
    }
    for found in &package.stranded {
        let end = if found.stops_at == found.from {
            "no upgrade".to_owned()
        } else {
            format!("upgrades end at {}", name(&found.stops_at))
        };
        lines.push(format!("stranded in {}: {}, {end}", found.channel, name(&found.from)));
    }
    lines
}

fn hops(hops: &[String], name: &impl Fn(&str) -> String) -> String {
    hops.iter().map(|hop| name(hop)).collect::<Vec<_>>().join(" → ")
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

/// A cell or a paragraph of Markdown: what input says is text, not markup.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '\n' | '\r' => out.push(' '),
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\\' | '`' | '*' | '_' | '{' | '}' | '[' | ']' | '(' | ')' | '#' | '!' | '|' | '~' | '@' => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}

fn markdown(diff: &Diff) -> String {
    if diff.packages.is_empty() {
        return "No differences between the catalogs.\n".to_owned();
    }
    let mut out = String::new();
    for package in &diff.packages {
        out += &format!("### {} ({})\n\n", escaped(&package.name), word(package.change));
        let name = |name: &str| short(name, &package.name).to_owned();
        let lost = package.paths_lost.iter().map(|path| {
            format!(
                "**Upgrade path lost** in `{}`: {} → {}",
                code(&path.channel),
                escaped(&name(&path.from)),
                escaped(&hops(&path.hops, &name))
            )
        });
        let stranded = package.stranded.iter().map(|found| {
            format!("**Stranded** in `{}`: {}", code(&found.channel), escaped(&name(&found.from)))
        });
        let bad: Vec<String> = lost.chain(stranded).collect();
        for line in &bad {
            out += &format!("- {line}\n");
        }
        if !bad.is_empty() {
            out.push('\n');
        }
        if !package.channels.is_empty() {
            out += "| channel | change | head | entries |\n|---|---|---|---|\n";
            for channel in &package.channels {
                let head = match &channel.head {
                    Some(head) => format!("{} → {}", escaped(&name(&head.old)), escaped(&name(&head.new))),
                    None => String::new(),
                };
                let entry = |entry: &EntryDiff| {
                    format!(
                        "{} {}",
                        mark(entry.change).replace('~', "\\~"),
                        escaped(&entry_line(entry, &name))
                    )
                };
                let entries: Vec<String> = channel.entries.iter().map(entry).collect();
                out += &format!(
                    "| {} | {} | {head} | {} |\n",
                    escaped(&channel.name),
                    word(channel.change),
                    entries.join("<br>")
                );
            }
            out.push('\n');
        }
        let others = lines(package);
        let is_other = |line: &&String| !line.contains(" channel ") || line.starts_with("~ default channel");
        let others: Vec<&String> = others
            .iter()
            .filter(is_other)
            .filter(|line| {
                !line.starts_with("  ") && !line.starts_with("path lost") && !line.starts_with("stranded")
            })
            .collect();
        for line in &others {
            let spelled = [("+ ", "new "), ("- ", "removed "), ("~ ", "")];
            let change =
                spelled.iter().find_map(|(mark, word)| Some(format!("{word}{}", line.strip_prefix(mark)?)));
            out += &format!("- {}\n", escaped(change.as_deref().unwrap_or(line)));
        }
        if !others.is_empty() {
            out.push('\n');
        }
    }
    out.truncate(out.trim_end().len());
    out + "\n"
}

/// Text between backticks.
fn code(text: &str) -> String {
    text.replace(['`', '\n', '\r'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn catalog_text_is_not_markup() {
        assert_eq!(escaped("<b>*x* [a](b) | `c`\n"), r"&lt;b&gt;\*x\* \[a\]\(b\) \| \`c\` ");
        assert_eq!(code("a`b"), "a b");
    }
}
