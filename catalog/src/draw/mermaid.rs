//! Mermaid, line for line as `opm alpha render-graph` writes it (operator-registry `alpha/declcfg/write.go`).

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write;

use olmkit_bundle::printable::one_line;

use super::Drawing;

pub(super) fn text(drawing: &Drawing) -> String {
    let mut out = String::from(
        "graph LR\n  classDef deprecated fill:#E8960F\n  classDef skipped stroke:#FF0000,stroke-width:4px\n  \
         classDef deprecatedskipped fill:#E8960F,stroke:#FF0000,stroke-width:4px\n",
    );
    let mut styles = String::new();
    let mut classes: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let mut links = Links { v0_semantics: drawing.v0_semantics, drawn: 0, not_followed: Vec::new() };
    for (package_name, package) in &drawing.packages {
        // Writing to a string cannot fail, here and below.
        let _ = writeln!(out, "  %% package {0}\n  subgraph {0}", label(package_name));
        if package.is_deprecated {
            let _ = writeln!(styles, "style {} fill:#989695", id(package_name));
        }
        for channel in &package.channels {
            let channel_id = id(&format!("{package_name}-{}", channel.name));
            let _ = writeln!(out, "    %% channel {0}\n    subgraph {channel_id}[{0}]", label(&channel.name));
            if channel.is_deprecated {
                let _ = writeln!(styles, "style {channel_id} fill:#DCD0FF");
            }
            let mut skipped: HashSet<&str> = HashSet::new();
            let node = |name: &str| format!("{channel_id}-{}[{}]", id(name), label(name));
            let mut nodes: HashMap<&str, String> = HashMap::new();
            for entry in &channel.entries {
                let new = node(&entry.name);
                let _ = writeln!(out, "      {new}");
                let class = match (entry.is_deprecated, skipped.contains(entry.name.as_str())) {
                    (true, true) => Some("deprecatedskipped"),
                    (true, false) => Some("deprecated"),
                    (false, true) => Some("skipped"),
                    (false, false) => None,
                };
                if let Some(class) = class {
                    classes.entry(class).or_default().push(format!("{channel_id}-{}", id(&entry.name)));
                }
                for skip in &entry.skips {
                    let _ = writeln!(out, "      {}-- skip --> {new}", node(skip));
                    let is_new = drawing.v0_semantics && skipped.insert(skip);
                    links.draw(!is_new);
                }
                let is_skipped = skipped.contains(entry.name.as_str());
                let range = entry.range.as_ref().map_or("", |range| range.as_str());
                let range = label(&format!("skipRange({range})"));
                for old in channel.named(&entry.in_range) {
                    // Ranges over each other make thousands of edges to every entry.
                    let old = nodes.entry(old).or_insert_with(|| node(old));
                    let _ = writeln!(out, "      {old}-- {range} --> {new}");
                    links.draw(is_skipped);
                }
                if let Some(old) = &entry.replaces {
                    let _ = writeln!(out, "      {}-- replace --> {new}", node(old));
                    links.draw(is_skipped);
                }
            }
            out += "    end\n";
        }
        out += "  end\n";
    }
    out += &styles;
    for (class, mut ids) in classes {
        ids.sort();
        let _ = writeln!(out, "class {} {class}", ids.join(","));
    }
    if !links.not_followed.is_empty() {
        let _ = writeln!(
            out,
            "linkStyle {} stroke:#FF0000,stroke-width:3px,stroke-dasharray:5;",
            links.not_followed.join(",")
        );
    }
    out
}

/// Counts the links, and remembers those that OLM v0 does not follow.
struct Links {
    v0_semantics: bool,
    drawn: usize,
    not_followed: Vec<String>,
}

impl Links {
    fn draw(&mut self, is_not_followed: bool) {
        if self.v0_semantics && is_not_followed {
            self.not_followed.push(self.drawn.to_string());
        }
        self.drawn += 1;
    }
}

/// A name as an id: whatever could end it or begin something else is written as its number.
fn id(name: &str) -> String {
    let mut id = String::with_capacity(name.len());
    for c in name.chars() {
        match c {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '.' | '_' | '-' | '+' => id.push(c),
            other => {
                let _ = write!(id, "_{:x}_", other as u32);
            }
        }
    }
    id
}

/// A text between quotes, with entities for what would end it, and for what begins a directive or a tag of HTML.
fn label(text: &str) -> String {
    let text = one_line(text).replace('"', "#quot;").replace("%%", "%#37;");
    let mut out = String::with_capacity(text.len() + 2);
    let mut next = text.chars().peekable();
    out.push('"');
    while let Some(c) = next.next() {
        let is_tag =
            c == '<' && next.peek().is_some_and(|c| c.is_ascii_alphabetic() || matches!(c, '/' | '!' | '?'));
        if is_tag { out += "#lt;" } else { out.push(c) }
    }
    out.push('"');
    out
}
