//! The language of Graphviz. Shapes and line styles tell apart what colours tell apart.

use std::fmt::Write;

use olmkit_bundle::printable::printable;

use super::Drawing;

pub(super) fn text(drawing: &Drawing) -> String {
    let mut out = String::from(
        "digraph catalog {\n  rankdir=LR;\n  node [shape=box, fontname=\"sans-serif\"];\n  edge [fontname=\"sans-serif\", fontsize=10];\n",
    );
    for (package_name, package) in &drawing.packages {
        let note = if package.is_deprecated { " (deprecated)" } else { "" };
        // Writing to a string cannot fail, here and below.
        let _ = writeln!(out, "  subgraph {} {{", quoted(&format!("cluster {package_name}")));
        let _ = writeln!(out, "    label={};", quoted(&format!("{package_name}{note}")));
        for channel in &package.channels {
            let channel_id = format!("{package_name}/{}", channel.name);
            let note = if channel.is_deprecated { " (deprecated)" } else { "" };
            let _ = writeln!(out, "    subgraph {} {{", quoted(&format!("cluster {channel_id}")));
            let _ = writeln!(out, "      label={};", quoted(&format!("{}{note}", channel.name)));
            let rows = channel.rows();
            let id = |name: &str| quoted(&format!("{channel_id}/{name}"));
            for entry in &channel.entries {
                let mut label = entry.name.clone();
                let mut style = Vec::new();
                let mut more = String::new();
                if entry.is_head {
                    label += "\nhead";
                    more += ", peripheries=2";
                }
                if entry.is_skipped {
                    label += "\nskipped";
                    style.push("dashed");
                }
                if entry.is_deprecated {
                    label += "\ndeprecated";
                    style.push("filled");
                    more += ", fillcolor=\"#f3c98b\"";
                }
                if !style.is_empty() {
                    let _ = write!(more, ", style={}", quoted(&style.join(",")));
                }
                let _ = writeln!(out, "      {} [label={}{more}];", id(&entry.name), quoted(&label));
            }
            for entry in &channel.entries {
                let olds = entry.replaces.iter().chain(&entry.skips);
                for old in olds.filter(|old| !rows.contains_key(old.as_str())) {
                    let label = quoted(&format!("{old}\nnot in the channel"));
                    let _ = writeln!(out, "      {} [label={label}, style=dotted];", id(old));
                }
            }
            for entry in &channel.entries {
                let new = id(&entry.name);
                if let Some(old) = &entry.replaces {
                    let _ = writeln!(out, "      {} -> {new};", id(old));
                }
                for old in &entry.skips {
                    let _ = writeln!(out, "      {} -> {new} [style=dashed, label=\"skip\"];", id(old));
                }
                let label = quoted(entry.range.as_ref().map_or("", |range| range.as_str()));
                for old in channel.named(&entry.in_range).filter(|old| *old != entry.name) {
                    let _ = writeln!(out, "      {} -> {new} [style=dotted, label={label}];", id(old));
                }
            }
            out += "    }\n";
        }
        out += "  }\n";
    }
    out + "}\n"
}

/// A text as DOT has it between quotes; `\n` is a line break there.
fn quoted(text: &str) -> String {
    format!("\"{}\"", printable(text).replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}
