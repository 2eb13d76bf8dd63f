//! SVG that needs no other file: a channel is a list of its entries, the highest version first, with lines beside it.
//!
//! Left of the list are the edges of `replaces`. Right of it each entry that skips others has a dashed line down to them with a
//! tick for each, and each `skipRange` a dotted one; an arrow ends at the entry that takes over. What an entry is stands beside its
//! name and in its mark: nothing is told by colour alone. Each line has a lane of its own where others would cross it.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::Range;

use olmkit_bundle::printable::{self, is_hidden};

use super::{Channel, Drawing, Entry};

const ROW: usize = 24;
const LANE: usize = 12;
/// The width of a character of the fonts below, about.
const CHAR: usize = 8;
const MARGIN: usize = 24;
const HEADER: usize = 44;
const LEGEND: usize = 64;
/// How many ticks the ranges of a channel have at most: above, each shows its ends alone. Its text says the range anyway.
const MOST_TICKS: usize = 200_000;

pub(super) fn text(drawing: &Drawing) -> String {
    let mut body = String::new();
    let mut y = MARGIN;
    let mut width = 640;
    for (name, package) in &drawing.packages {
        let note = if package.is_deprecated { " (deprecated)" } else { "" };
        // Writing to a string cannot fail, here and below.
        let _ = writeln!(
            body,
            "<text class=\"package\" x=\"{MARGIN}\" y=\"{}\">{}{note}</text>",
            y + 14,
            escaped(name)
        );
        y += 32;
        for channel in &package.channels {
            let drawn = Drawn::of(channel, None);
            let _ = writeln!(body, "<g transform=\"translate({MARGIN} {y})\">\n{}</g>", drawn.body);
            y += drawn.height;
            width = width.max(drawn.width + 2 * MARGIN);
        }
    }
    legend(&mut body, y);
    y += LEGEND;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{y}\" viewBox=\"0 0 {width} {y}\" role=\"img\">\n\
         <title>Upgrade graph</title>\n<style>{STYLE}</style>\n{DEFS}\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n{body}</svg>\n"
    )
}

/// The arrows' heads that the channels of [`channel`] refer to, once for a page.
pub(crate) fn markers() -> String {
    format!("<svg class=\"markers\" width=\"0\" height=\"0\" aria-hidden=\"true\">{DEFS}</svg>\n")
}

/// One channel for a page that has styles of its own. Each entry is a link to what `link` says of it, with its row in `data-row`, and each line
/// names the rows that it joins in `data-rows`.
pub(crate) fn channel(channel: &Channel, link: &dyn Fn(&str) -> String) -> String {
    let Drawn { body, width, height } = Drawn::of(channel, Some(link));
    let name = escaped(&channel.name);
    format!(
        "<svg class=\"channel\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" role=\"group\" aria-label=\"{name}\">\n{body}</svg>\n"
    )
}

const STYLE: &str = "\
text{font:13px ui-monospace,Menlo,Consolas,monospace;fill:#1b1f24}\
.package{font:bold 17px sans-serif}.channel{font:bold 14px sans-serif}.note{font:12px sans-serif;fill:#57606a}\
.head{font-weight:bold}.skipped{text-decoration:line-through;fill:#57606a}\
.replaces{stroke:#0550ae;stroke-width:2;fill:none}.skips{stroke:#8250df;stroke-width:1.5;stroke-dasharray:6 3;fill:none}\
.range{stroke:#1a7f37;stroke-width:1.5;stroke-dasharray:1.5 3;fill:none}\
.tick{stroke-dasharray:none}.mark{stroke:#1b1f24;stroke-width:1.5;fill:#ffffff}.warn{fill:#f3c98b}.solid{fill:#1b1f24}.stripe{fill:#f6f8fa}";

const DEFS: &str = "<defs>\
<marker id=\"r\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"5\" markerHeight=\"5\" orient=\"auto\"><path d=\"M0 0L8 4L0 8z\" fill=\"#0550ae\"/></marker>\
<marker id=\"s\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"6\" markerHeight=\"6\" orient=\"auto\"><path d=\"M0 0L8 4L0 8z\" fill=\"#8250df\"/></marker>\
<marker id=\"g\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"6\" markerHeight=\"6\" orient=\"auto\"><path d=\"M0 0L8 4L0 8z\" fill=\"#1a7f37\"/></marker>\
</defs>\n";

/// A drawn channel; its upper left corner is the origin.
struct Drawn {
    body: String,
    width: usize,
    height: usize,
}

/// Rows that are joined by a line: the entry that takes over, and those it takes over from.
struct Join {
    new: usize,
    olds: Vec<usize>,
}

impl Join {
    fn span(&self) -> (usize, usize) {
        let rows = self.olds.iter().copied().chain([self.new]);
        (rows.clone().min().unwrap_or(self.new), rows.max().unwrap_or(self.new))
    }
}

impl Drawn {
    /// Draws a channel; for a page with links and rows.
    fn of(channel: &Channel, link: Option<&dyn Fn(&str) -> String>) -> Self {
        let joined = |join: &Join| match link {
            None => String::new(),
            Some(_) => {
                let rows: Vec<String> = [join.new].iter().chain(&join.olds).map(usize::to_string).collect();
                format!(" data-rows=\"{}\"", rows.join(" "))
            }
        };
        let rows = channel.rows();
        let row = |name: &String| rows.get(name.as_str()).copied();
        let joins = |olds: &dyn Fn(&Entry) -> Vec<usize>| -> Vec<Join> {
            let join = |(new, entry)| Join { new, olds: olds(entry) };
            let mut joins: Vec<Join> = channel.entries.iter().enumerate().map(join).collect();
            joins.retain(|join| !join.olds.is_empty());
            joins
        };
        let replaces = joins(&|entry| entry.replaces.iter().filter_map(row).collect());
        let skips = joins(&|entry| entry.skips.iter().filter_map(row).collect());
        let ticks: usize = channel.entries.iter().flat_map(|entry| &entry.in_range).map(Range::len).sum();
        let ranges = joins(&|entry| {
            let own = row(&entry.name);
            let mut olds = entry.in_range.iter().cloned().flatten().filter(|old| Some(*old) != own);
            if ticks <= MOST_TICKS {
                return olds.collect();
            }
            let mut from_below = entry.in_range.iter().rev().flat_map(|rows| rows.clone().rev());
            let last = from_below.find(|old| Some(*old) != own);
            let first = olds.next();
            first.into_iter().chain(last.filter(|_| first != last)).collect()
        });
        let (left, left_lanes) = lanes(&replaces);
        let (skip_lanes, skip_count) = lanes(&skips);
        let (range_lanes, range_count) = lanes(&ranges);
        let marks = left_lanes * LANE + 20;
        let names = marks + 16;
        let longest = channel.entries.iter().map(|entry| entry.name.chars().count()).max().unwrap_or(0);
        let tags = names + longest * CHAR + 12;
        let widest =
            channel.entries.iter().map(|entry| note(entry, &rows).chars().count()).max().unwrap_or(0);
        let right = tags + widest * 7 + 16;
        let mut body = String::new();
        let mut title = channel.name.clone();
        for (is_so, words) in
            [(channel.is_default, " (default channel)"), (channel.is_deprecated, " (deprecated)")]
        {
            title += if is_so { words } else { "" };
        }
        let _ = writeln!(body, "<text class=\"channel\" x=\"0\" y=\"16\">{}</text>", escaped(&title));
        let width = right + (skip_count + range_count) * LANE + 24;
        let y = |row: usize| 28 + row * ROW + ROW / 2;
        for (at, entry) in channel.entries.iter().enumerate() {
            if at % 2 == 0 {
                let top = y(at) - ROW / 2;
                let _ = writeln!(
                    body,
                    "<rect class=\"stripe\" x=\"{names}\" y=\"{top}\" width=\"{}\" height=\"{ROW}\"/>",
                    width - names
                );
            }
            let class = match (entry.is_head, entry.is_skipped) {
                (true, _) => "head",
                (_, true) => "skipped",
                _ => "",
            };
            let (base, name, note) = (y(at) + 5, escaped(&entry.name), escaped(&note(entry, &rows)));
            if let Some(link) = link {
                let _ = write!(
                    body,
                    "<a class=\"row\" data-row=\"{at}\" href=\"{}\">",
                    escaped(&link(&entry.name))
                );
            }
            let _ = writeln!(body, "<text class=\"{class}\" x=\"{names}\" y=\"{base}\">{name}</text>");
            if !note.is_empty() {
                let _ = writeln!(body, "<text class=\"note\" x=\"{tags}\" y=\"{base}\">{note}</text>");
            }
            body += if link.is_some() { "</a>" } else { "" };
        }
        for (join, lane) in replaces.iter().zip(left) {
            // The first lane runs through the marks.
            let x = marks - lane * LANE;
            let (new, old) = (y(join.new), y(join.olds[0]));
            let (from, to) = if new < old { (old - 7, new + 8) } else { (old + 7, new - 8) };
            let path = if lane == 0 {
                format!("M{marks} {from}V{to}")
            } else {
                format!("M{} {old}H{x}V{new}H{}", marks - 6, marks - 8)
            };
            let rows = joined(join);
            let _ = writeln!(body, "<path class=\"replaces\"{rows} d=\"{path}\" marker-end=\"url(#r)\"/>");
        }
        let mut beside = |joins: &[Join], lanes: Vec<usize>, first: usize, class: &str, marker: char| {
            for (join, lane) in joins.iter().zip(lanes) {
                let x = right + (first + lane) * LANE + 12;
                let (top, bottom) = join.span();
                let rows = joined(join);
                let _ = writeln!(body, "<path class=\"{class}\"{rows} d=\"M{x} {}V{}\"/>", y(top), y(bottom));
                let tick = |old: &usize| format!("M{} {}H{x}", x - 6, y(*old));
                let ticks: String = join.olds.iter().map(tick).collect();
                let _ = writeln!(body, "<path class=\"{class} tick\"{rows} d=\"{ticks}\"/>");
                let arrow = format!("M{x} {}H{}", y(join.new), right + 1);
                let _ = writeln!(
                    body,
                    "<path class=\"{class}\"{rows} d=\"{arrow}\" marker-end=\"url(#{marker})\"/>"
                );
            }
        };
        beside(&skips, skip_lanes, 0, "skips", 's');
        beside(&ranges, range_lanes, skip_count, "range", 'g');
        for (at, entry) in channel.entries.iter().enumerate() {
            mark(&mut body, marks, y(at), entry);
        }
        Self { body, width, height: HEADER + channel.entries.len() * ROW }
    }
}

/// The most lanes with one line each; ranges beyond them share the last lane.
const MOST_LANES: usize = 200;

/// Which lane each line runs in, and how many there are. Short lines come first, and lines that only meet at an end share one.
fn lanes(joins: &[Join]) -> (Vec<usize>, usize) {
    let mut order: Vec<usize> = (0..joins.len()).collect();
    order.sort_by_key(|at| {
        let (top, bottom) = joins[*at].span();
        (bottom - top, top)
    });
    // Of each lane where a line starts, and where it ends.
    let mut taken: Vec<BTreeMap<usize, usize>> = Vec::new();
    let mut lanes = vec![0; joins.len()];
    for at in order {
        let (top, bottom) = joins[at].span();
        let is_free =
            |lane: &BTreeMap<usize, usize>| lane.range(..bottom).next_back().is_none_or(|(_, to)| *to <= top);
        let free = taken.iter().position(is_free);
        let lane = free.unwrap_or(taken.len().min(MOST_LANES - 1));
        if lane == taken.len() {
            taken.push(BTreeMap::new());
        }
        taken[lane].insert(top, bottom);
        lanes[at] = lane;
    }
    (lanes, taken.len())
}

/// What there is to say of an entry, in words.
fn note(entry: &Entry, rows: &std::collections::HashMap<&str, usize>) -> String {
    let mut notes = Vec::new();
    for (is_so, word) in [
        (entry.is_head, "head"),
        (entry.is_skipped, "skipped"),
        (entry.is_deprecated, "deprecated"),
        (entry.is_stranded, "stranded"),
    ] {
        if is_so {
            notes.push(word.to_owned());
        }
    }
    if let Some(range) = &entry.range {
        notes.push(format!("skipRange {range}"));
    }
    if let Some(old) = entry.replaces.as_ref().filter(|old| !rows.contains_key(old.as_str())) {
        notes.push(format!("replaces {old}, which is not here"));
    }
    match entry.skips.iter().filter(|old| !rows.contains_key(old.as_str())).count() {
        0 => {}
        1 => notes.push("skips 1 that is not here".into()),
        count => notes.push(format!("skips {count} that are not here")),
    }
    notes.join(" · ")
}

/// A disc for the head, a circle, one with a cross when it is skipped; a triangle instead when it is deprecated.
fn mark(body: &mut String, x: usize, y: usize, entry: &Entry) {
    if entry.is_deprecated {
        let _ =
            writeln!(body, "<path class=\"mark warn\" d=\"M{x} {}L{} {}H{}z\"/>", y - 7, x + 7, y + 5, x - 7);
    } else {
        let solid = if entry.is_head { " solid" } else { "" };
        let _ = writeln!(body, "<circle class=\"mark{solid}\" cx=\"{x}\" cy=\"{y}\" r=\"5\"/>");
    }
    if entry.is_head {
        let _ = writeln!(
            body,
            "<circle cx=\"{x}\" cy=\"{y}\" r=\"9\" fill=\"none\" stroke=\"#1b1f24\" stroke-width=\"1.5\"/>"
        );
    }
    if entry.is_skipped {
        let (left, top) = (x - 4, y - 4);
        let _ = writeln!(body, "<path class=\"mark\" d=\"M{left} {top}l8 8m0 -8l-8 8\"/>");
    }
}

fn legend(body: &mut String, y: usize) {
    let (line, words) = (y + 28, y + 32);
    let _ = writeln!(body, "<g>");
    let _ = writeln!(body, "<path class=\"mark\" style=\"stroke:#d0d7de\" d=\"M{MARGIN} {}H620\"/>", y + 8);
    let mut x = MARGIN;
    for (class, marker, word) in
        [("replaces", 'r', "replaces"), ("skips", 's', "skips"), ("range", 'g', "skipRange")]
    {
        let _ = writeln!(
            body,
            "<path class=\"{class}\" d=\"M{x} {line}H{}\" marker-end=\"url(#{marker})\"/>",
            x + 26
        );
        let _ = writeln!(body, "<text class=\"note\" x=\"{}\" y=\"{words}\">{word}</text>", x + 32);
        x += 48 + word.len() * CHAR;
    }
    let entry = Entry {
        name: String::new(),
        is_head: false,
        is_skipped: false,
        is_deprecated: false,
        is_stranded: false,
        replaces: None,
        skips: Vec::new(),
        range: None,
        in_range: Vec::new(),
    };
    for (word, entry) in [
        ("head", Entry { is_head: true, ..entry.clone() }),
        ("skipped", Entry { is_skipped: true, ..entry.clone() }),
        ("deprecated", Entry { is_deprecated: true, ..entry }),
    ] {
        mark(body, x + 8, line, &entry);
        let _ = writeln!(body, "<text class=\"note\" x=\"{}\" y=\"{words}\">{word}</text>", x + 24);
        x += 40 + word.len() * CHAR;
    }
    let _ = writeln!(body, "</g>");
}

/// A text as XML has it; what XML cannot hold is left out, and what nobody sees is written as its number.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            c if is_hidden(c) => out += &printable::escaped(c),
            c => out.push(c),
        }
    }
    if printable::has_command(&out) { out.replace("##[", "#&#35;[") } else { out }
}
