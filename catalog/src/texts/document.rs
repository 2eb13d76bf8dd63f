//! Changes a document of YAML or JSON where it stands: comments, order, quotes and everything untouched stay as they are.
//!
//! A document is read as a tree with places; an [`Editor`] gathers changes to its text in the style it finds there: block or flow,
//! the indentation of the neighbours, quotes where they have quotes. What it cannot do in place it refuses. Whether the
//! result means what it should is for the caller to check.

use std::collections::HashSet;

use olmkit_bundle::go::same_field;
use olmkit_bundle::yaml::{self, Node, Step, Value};
use serde_json::Value as Json;

use crate::json::{Layout, Tree};

/// Changes to one text, by byte offsets, applied together.
#[derive(Clone, Debug, Default)]
pub(crate) struct Edits(Vec<(usize, usize, String)>);

impl Edits {
    /// Replaces the bytes from one offset to another.
    pub(crate) fn replace(&mut self, from: usize, to: usize, text: String) {
        self.0.push((from, to, text));
    }

    /// Takes over the changes of a part that starts at `offset`.
    pub(crate) fn extend(&mut self, part: Self, offset: usize) {
        self.0.extend(part.0.into_iter().map(|(from, to, text)| (from + offset, to + offset, text)));
    }

    fn has(&self, at: usize, text: &str) -> bool {
        self.0.iter().any(|(from, to, new)| (*from, *to) == (at, at) && new == text)
    }

    /// The text with all changes made. Line breaks are those of the text.
    pub(crate) fn apply(&self, text: &str) -> String {
        let mut edits: Vec<_> = self.0.iter().collect();
        // Stable: what is inserted at one place stays in the order it came.
        edits.sort_by_key(|(from, ..)| *from);
        let crlf = text.contains("\r\n");
        let mut out =
            String::with_capacity(text.len() + edits.iter().map(|(.., new)| new.len()).sum::<usize>());
        let mut copied = 0;
        for (from, to, new) in edits {
            out += text.get(copied..*from).unwrap_or("");
            out += &if crlf { new.replace("\r\n", "\n").replace('\n', "\r\n") } else { new.clone() };
            copied = copied.max(*to);
        }
        out + text.get(copied..).unwrap_or("")
    }
}

/// A document under change.
pub(crate) struct Editor<'t> {
    text: &'t str,
    root: Node<'t>,
    pub(crate) edits: Edits,
}

/// The bytes from one offset to another that go, and what of them stays.
type Removal = (usize, usize, String);

/// The members of a map or the items of a list, where they stand in the text.
struct Parts {
    /// Their places: a member's from its key on, an item's without its dash.
    spans: Vec<(usize, usize)>,
    /// Whether they are members of a map.
    is_map: bool,
    /// Whether there are brackets around them.
    is_flow: bool,
    /// Where the first would go, behind the opening bracket.
    inside: usize,
}

impl<'t> Editor<'t> {
    /// Reads the one document in a text.
    pub(crate) fn open(text: &'t str) -> Option<Self> {
        let root = yaml::first_document(text).ok()?.root;
        Some(Self { text, root, edits: Edits::default() })
    }

    /// Changes the document from one value to another, member by member and item by item. Lists may lose and gain items; their order
    /// stays.
    pub(crate) fn reconcile(&mut self, old: &Json, new: &Json) -> Option<()> {
        self.change(&mut Vec::new(), old, new)
    }

    fn change<'v>(&mut self, path: &mut Vec<Step<'v>>, old: &'v Json, new: &'v Json) -> Option<()> {
        match (old, new) {
            (Json::Object(old), Json::Object(new)) => {
                let gone: Vec<&str> =
                    old.keys().filter(|key| !new.contains_key(*key)).map(String::as_str).collect();
                if !gone.is_empty() {
                    let map = self.at(path)?.as_mapping()?;
                    let is_gone =
                        map.iter().map(|entry| gone.iter().any(|gone| same_field(&entry.key, gone)));
                    let is_gone: Vec<bool> = is_gone.collect();
                    self.remove_parts(path, &is_gone)?;
                }
                for (key, value) in new {
                    match old.get(key) {
                        Some(old) if old == value => {}
                        Some(old @ (Json::Object(_) | Json::Array(_))) => {
                            path.push(Step::Key(key));
                            self.change(path, old, value)?;
                            path.pop();
                        }
                        _ => self.set(path, key, value)?,
                    }
                }
                Some(())
            }
            (Json::Array(old), Json::Array(new)) => self.change_list(path, old, new),
            _ => None,
        }
    }

    fn change_list<'v>(&mut self, path: &mut Vec<Step<'v>>, old: &'v [Json], new: &'v [Json]) -> Option<()> {
        let (old_ids, new_ids): (Vec<_>, Vec<_>) =
            (old.iter().map(identity).collect(), new.iter().map(identity).collect());
        let known: HashSet<_> = old_ids.iter().copied().collect();
        let wanted: HashSet<_> = new_ids.iter().copied().collect();
        let mut gone = vec![false; old.len()];
        let (mut from, mut to) = (0, 0);
        while from < old.len() || to < new.len() {
            if let (Some(a), Some(b)) = (old_ids.get(from), new_ids.get(to))
                && a == b
            {
                if old[from] != new[to] {
                    path.push(Step::Index(from));
                    self.change(path, &old[from], &new[to])?;
                    path.pop();
                }
                (from, to) = (from + 1, to + 1);
                continue;
            }
            let is_gone = old_ids.get(from).is_some_and(|id| !wanted.contains(id));
            let is_new = new_ids.get(to).is_some_and(|id| !known.contains(id));
            match (is_gone, is_new) {
                (true, true) if old[from].is_string() && new[to].is_string() => {
                    path.push(Step::Index(from));
                    let node = self.at(path)?;
                    let text = self.text_in_place(node, Style::Block, &new[to])?;
                    let (start, end) = (node.span.start as usize, node.span.end as usize);
                    self.edits.replace(start, end, text);
                    path.pop();
                    (from, to) = (from + 1, to + 1);
                }
                // A deprecation of something, or a blob in a template, that has another name now.
                (true, true)
                    if old[from].get("reference").is_some()
                        || old[from].get("schema").is_some_and(|own| Some(own) == new[to].get("schema")) =>
                {
                    path.push(Step::Index(from));
                    self.change(path, &old[from], &new[to])?;
                    path.pop();
                    (from, to) = (from + 1, to + 1);
                }
                (true, _) => {
                    gone[from] = true;
                    from += 1;
                }
                (false, true) => {
                    self.insert(path, from, &ordered(&new[to]))?;
                    to += 1;
                }
                (false, false) => return None,
            }
        }
        if gone.contains(&true) { self.remove_parts(path, &gone) } else { Some(()) }
    }

    /// Removes members of the map, or items of the list, at a path.
    fn remove_parts(&mut self, path: &[Step<'_>], gone: &[bool]) -> Option<()> {
        let parts = self.parts(self.at(path)?)?;
        if parts.spans.len() != gone.len() {
            return None;
        }
        let removals =
            if parts.is_flow { self.flow_removals(&parts, gone) } else { self.block_removals(&parts, gone) };
        for (from, to, kept) in removals? {
            self.edits.replace(from, to, kept);
        }
        Some(())
    }

    /// The lines of parts in block style, with comments that belong to them: those on their lines, those directly above, and deeper ones after
    /// them. Comments of other parts stay.
    fn block_removals(&self, parts: &Parts, gone: &[bool]) -> Option<Vec<Removal>> {
        if !gone.contains(&false) {
            return None;
        }
        let mut removals = Vec::new();
        for (number, (start, end)) in parts.spans.iter().enumerate().filter(|(number, _)| gone[*number]) {
            let start = if parts.is_map { *start } else { self.dash(*start)?.0 };
            if !self.text[self.line_start(start)..start].trim_matches(' ').is_empty() {
                // The first member of an item, behind its dash: the first that stays takes its place, and its comments go above the dash.
                let stays = number + gone[number..].iter().position(|gone| !gone)?;
                let next = parts.spans[stays].0;
                let behind = self.behind_part(start, parts.spans[stays - 1].1);
                let item = self.line_start(start);
                let indent =
                    " ".repeat(self.text[item..].len() - self.text[item..].trim_start_matches(' ').len());
                let comments = self.text.get(behind..self.line_start(next)).unwrap_or_default().lines();
                let comments = comments.map(str::trim).filter(|line| line.starts_with('#'));
                let comments: String = comments.map(|line| format!("{indent}{line}\n")).collect();
                removals.push((item, item, comments));
                removals.push((start, next, String::new()));
                continue;
            }
            let to = self.behind_part(start, *end);
            let is_head_of_document = parts.is_map && number == 0;
            let mut from = self.line_start(start);
            if !is_head_of_document {
                from = self.with_comments_above(from);
            }
            if to == self.text.len() && !self.text.ends_with('\n') {
                from = self.text[..from].trim_end_matches(['\n', '\r']).len();
            }
            removals.push((from, to, String::new()));
        }
        Some(removals)
    }

    /// Where the lines of a part from one offset to another end, with deeper comments after them.
    fn behind_part(&self, start: usize, end: usize) -> usize {
        let mut to = self.behind_line(end);
        while let Some(line) = self.text[to..].split_inclusive('\n').next() {
            let trimmed = line.trim_start_matches(' ');
            if !trimmed.starts_with('#') || line.len() - trimmed.len() <= self.column(start) {
                break;
            }
            to += line.len();
        }
        to
    }

    /// Where the comments start that stand directly above a line and as deep as it: they speak of what is in it.
    fn with_comments_above(&self, line: usize) -> usize {
        let indent = |at: usize| self.text[at..].len() - self.text[at..].trim_start_matches(' ').len();
        let mut from = line;
        while from > 0 {
            let above = self.line_start(from - 1);
            if indent(above) != indent(line) || !self.text[above..].trim_start_matches(' ').starts_with('#') {
                break;
            }
            from = above;
        }
        from
    }

    /// Parts in brackets, with their commas. One on lines of its own goes with its lines. Comments of other parts stay.
    fn flow_removals(&self, parts: &Parts, gone: &[bool]) -> Option<Vec<Removal>> {
        let spans = &parts.spans;
        let last_kept = gone.iter().rposition(|gone| !*gone);
        let Some(last_kept) = last_kept else {
            let whole = (self.with_properties(spans.first()?.0), spans.last()?.1, String::new());
            return Some(vec![whole]);
        };
        let own_lines = |number: usize| {
            let (start, end) = spans[number];
            let rest = self.text[end..].trim_start_matches([' ', '\t']);
            let (has_comma, rest) = match rest.strip_prefix(',') {
                Some(rest) => (true, rest.trim_start_matches([' ', '\t', '\r'])),
                None => (false, rest.trim_start_matches('\r')),
            };
            (self.is_first_in_line(start) && rest.starts_with(['#', '\n'])).then_some(has_comma)
        };
        let mut removals = Vec::new();
        for number in (0..spans.len()).filter(|number| gone[*number]) {
            let (start, end) = (self.with_properties(spans[number].0), spans[number].1);
            match own_lines(number) {
                Some(_) => {
                    let from = self.with_comments_above(self.line_start(start));
                    removals.push((from, self.behind_line(end), String::new()));
                }
                None if number > last_kept || number > 0 && !gone[..number].iter().all(|gone| *gone) => {
                    let before = spans[number - 1].1;
                    removals.push((before, end, self.comment_beside(before, start)));
                }
                None => {
                    let next = self.with_properties(spans[number + 1].0);
                    removals.push((start, next, self.comments_above(end, next)));
                }
            }
        }
        if last_kept + 1 < spans.len() && own_lines(spans.len() - 1) == Some(false) {
            // The one that is the last now has a comma behind it that the last one did not have.
            let end = spans[last_kept].1;
            let comma = end + self.text[end..].len() - self.text[end..].trim_start().len();
            if self.byte(comma) == Some(b',') {
                removals.push((comma, comma + 1, String::new()));
            }
        }
        Some(removals)
    }

    /// The comment that follows a part in brackets on its line, with the line break that ends it; nothing where the next part is
    /// on the same line.
    fn comment_beside(&self, end: usize, next: usize) -> String {
        let line =
            self.text.get(end..next).unwrap_or_default().split_inclusive('\n').next().unwrap_or_default();
        match line.find('#').filter(|_| line.ends_with('\n')) {
            Some(at) => format!(" {}\n{}", line[at..].trim_end(), self.margin(next)),
            None => String::new(),
        }
    }

    /// The lines of comments above a part in brackets, with the line break before them; nothing where there are none.
    fn comments_above(&self, end: usize, next: usize) -> String {
        let lines = self.text.get(self.behind_line(end)..self.line_start(next)).unwrap_or_default();
        let comments: String = lines
            .lines()
            .filter(|line| line.trim_start().starts_with('#'))
            .map(|line| format!("\n{line}"))
            .collect();
        if comments.is_empty() { comments } else { format!("{comments}\n{}", self.margin(next)) }
    }

    /// Sets a field of the map at a path to a text, or to a list of texts when it has none.
    fn set(&mut self, path: &[Step<'_>], key: &str, value: &Json) -> Option<()> {
        let node = self.at(path)?;
        let style = self.style_of(node);
        let Some(entry) = node.as_mapping()?.entry_folded(key) else {
            return self.add_member(path, key, value);
        };
        let old = &entry.value;
        let (from, to) = (old.span.start as usize, old.span.end as usize);
        if from < entry.key_span.end as usize {
            // An alias: its text is not here.
            return None;
        }
        if old.is_null() && self.text.get(from..to)?.is_empty() {
            let new = style.in_line(value, self.space())?;
            let key_end = entry.key_span.end as usize;
            let colon = key_end + self.text.get(key_end..)?.find(':')? + 1;
            self.edits.replace(colon, colon, format!(" {new}"));
            return Some(());
        }
        match self.text_in_place(old, style, value) {
            Some(new) => self.edits.replace(from, to, new),
            None if matches!(style, Style::Block) => {
                // As lines of its own, such as a text that has several.
                let start = entry.key_span.start as usize;
                let end = self.end(old)?;
                let end = self.text[..end].trim_end_matches(['\n', '\r']).len();
                let member = Json::Object([(entry.key.to_string(), value.clone())].into_iter().collect());
                let lines = indented(&yaml_lines(&member)?, "", &" ".repeat(self.column(start)));
                self.edits.replace(start, end, lines.trim_end().to_owned());
            }
            None => return None,
        }
        Some(())
    }

    /// What to write in the place of a value, on one line.
    fn text_in_place(&self, old: &Node<'t>, style: Style, value: &Json) -> Option<String> {
        let from = old.span.start as usize;
        match (&old.value, self.byte(from)) {
            (Value::Sequence(items), Some(b'[')) if items.is_empty() => style.in_line(value, self.space()),
            (Value::Null, _) => style.in_line(value, self.space()),
            (Value::Sequence(_) | Value::Mapping(_), _) => None,
            (_, Some(b'"')) => Some(Tree::from(value.as_str()?).to_text(&Layout::COMPACT)),
            (_, Some(b'\'')) => Some(format!("'{}'", one_line(value.as_str()?)?.replace('\'', "''"))),
            _ if self.is_block_scalar(from) => None,
            _ => style.scalar(value),
        }
    }

    /// Whether the text that starts here, on a line of its own, has `|` or `>` above it.
    fn is_block_scalar(&self, from: usize) -> bool {
        if !self.text[self.line_start(from)..from].trim_start_matches(' ').is_empty() {
            return false;
        }
        let above = self.text[..self.line_start(from)].trim_end();
        let line = &above[self.line_start(above.len())..];
        let header = line.find(" #").map_or(line, |comment| &line[..comment]).trim_end();
        header.trim_end_matches(|c: char| matches!(c, '-' | '+') || c.is_ascii_digit()).ends_with(['|', '>'])
    }

    /// Puts an item into the list at a path, behind the first `behind` items. Several at one place stay in the order they come in.
    fn insert(&mut self, path: &[Step<'_>], behind: usize, item: &Tree<'_>) -> Option<()> {
        let list = self.at(path)?;
        let items = list.as_sequence()?;
        let parts = self.parts(list)?;
        let neighbour = items.get(behind.saturating_sub(1));
        let style = match neighbour {
            Some(item) if item.as_mapping().is_some() => self.style_of(item),
            Some(item) if parts.is_flow => {
                Style::Flow { quoted: self.byte(item.span.start as usize) == Some(b'"') }
            }
            None if parts.is_flow => Style::Flow { quoted: self.text.contains("\":") },
            _ => Style::Block,
        };
        if parts.is_flow {
            let is_long = parts.spans.first().is_some_and(|(from, to)| self.text[*from..*to].contains('\n'));
            let item = match neighbour.filter(|_| is_long && style.is_json()) {
                Some(neighbour) => {
                    let margin = self.margin(parts.spans[behind.saturating_sub(1)].0);
                    item.to_text(&Layout::Lines { unit: self.unit(neighbour, margin.len()), margin: &margin })
                }
                None => style.line(item, self.space())?,
            };
            return self.insert_in_flow(&parts, behind, item);
        }
        let (dash, indent) = self.dash(parts.spans.get(behind.saturating_sub(1))?.0)?;
        let lines = match style {
            Style::Block => {
                let lines = yaml_lines(&item.clone().into_json())?;
                indented(&lines, &format!("{indent}- "), &format!("{indent}  "))
            }
            Style::Flow { .. } => format!("{indent}- {}\n", style.line(item, self.space())?),
        };
        match behind.checked_sub(1) {
            Some(before) => self.insert_lines(parts.spans[before].1, indent.len(), lines),
            None => {
                // Above the comments of the item that was the first.
                let at = self.with_comments_above(dash - indent.len());
                self.edits.replace(at, at, lines);
            }
        }
        Some(())
    }

    /// The value at a path, its keys matched as Go matches fields.
    fn at(&self, path: &[Step<'_>]) -> Option<&Node<'t>> {
        self.root.at_folded(path)
    }

    fn add_member(&mut self, path: &[Step<'_>], key: &str, value: &Json) -> Option<()> {
        let node = self.at(path)?;
        let map = node.as_mapping()?;
        let parts = self.parts(node)?;
        // Behind the last key that sorts before it.
        let before =
            map.iter().rposition(|entry| *entry.key < *key).or_else(|| map.iter().count().checked_sub(1))?;
        if parts.is_flow {
            let style = self.style_of(node);
            let is_long = parts.spans.len() > 1 && self.is_first_in_line(parts.spans[1].0);
            let margin = self.margin(parts.spans[before].0);
            let value = match value {
                Json::Array(_) if is_long && style.is_json() => {
                    Tree::Leaf(value.clone()).to_text(&Layout::Lines {
                        unit: self.unit(node, self.margin(node.span.start as usize).len()),
                        margin: &margin,
                    })
                }
                _ => style.line(&Tree::Leaf(value.clone()), self.space())?,
            };
            let space = if is_long || !style.is_json() { " " } else { self.space() };
            let member = format!("{}:{space}{value}", style.scalar(&Json::from(key))?);
            return self.insert_in_flow(&parts, before + 1, member);
        }
        let column = self.column(parts.spans[0].0);
        let indent = " ".repeat(column);
        let member = Json::Object([(key.to_owned(), value.clone())].into_iter().collect());
        let lines = indented(&yaml_lines(&member)?, &indent, &indent);
        self.insert_lines(parts.spans[before].1, column, lines);
        Some(())
    }

    /// Puts a part between brackets, behind the first `behind` parts. A comment stays with the part that it stands behind.
    fn insert_in_flow(&mut self, parts: &Parts, behind: usize, new: String) -> Option<()> {
        let Some(before) = behind.checked_sub(1) else {
            let at = parts.spans.first().map_or(parts.inside, |(start, _)| self.with_properties(*start));
            let new = match parts.spans.first() {
                Some(_) if self.is_first_in_line(at) => format!("{new},\n{}", self.margin(at)),
                Some(_) => format!("{new},{}", self.space()),
                None if self.edits.0.iter().any(|(from, to, _)| (*from, *to) == (at, at)) => {
                    format!(",{}{new}", self.space())
                }
                None => new,
            };
            self.edits.replace(at, at, new);
            return Some(());
        };
        let end = parts.spans.get(before)?.1;
        let next = parts.spans.get(behind).map(|(start, _)| *start);
        // The indentation of the part behind, or of the one before.
        let own_line =
            [next, Some(parts.spans[before].0)].into_iter().flatten().find(|at| self.is_first_in_line(*at));
        let margin = own_line.map(|at| self.margin(at));
        let rest = &self.text[end..];
        let after_space = rest.trim_start_matches([' ', '\t']);
        let after_comma =
            after_space.strip_prefix(',').map(|rest| rest.trim_start_matches([' ', '\t', '\r']));
        let ends_line = |rest: &str| rest.starts_with(['#', '\n']);
        let newline = || rest.find('\n').map(|at| end + at);
        match (after_comma, margin) {
            (Some(after), Some(margin)) if ends_line(after) => {
                let at = newline()? + 1;
                self.edits.replace(at, at, format!("{margin}{new},\n"));
            }
            (None, Some(margin)) if after_space.starts_with('#') => {
                let at = newline()?;
                let at = if self.text[..at].ends_with('\r') { at - 1 } else { at };
                // The comma belongs before the comment, and only once.
                let has_comma = self.edits.has(end, ",");
                if !has_comma {
                    self.edits.replace(end, end, ",".to_owned());
                }
                let comma = if has_comma { "," } else { "" };
                self.edits.replace(at, at, format!("{comma}\n{margin}{new}"));
            }
            (_, Some(margin)) if self.has_line_breaks(parts) => {
                self.edits.replace(end, end, format!(",\n{margin}{new}"));
            }
            _ => self.edits.replace(end, end, format!(",{}{new}", self.space())),
        }
        Some(())
    }

    /// Whether each part of a flow collection has lines of its own.
    fn has_line_breaks(&self, parts: &Parts) -> bool {
        match parts.spans[..] {
            [(start, _)] => self.text[parts.inside..start].contains('\n'),
            _ => parts.spans.windows(2).all(|pair| self.text[pair[0].1..pair[1].0].contains('\n')),
        }
    }

    /// Inserts lines behind the line that `end` is in, and behind comments that stand deeper than `column`.
    fn insert_lines(&mut self, end: usize, column: usize, lines: String) {
        let mut at = self.behind_line(end);
        while let Some(line) = self.text[at..].split_inclusive('\n').next() {
            let trimmed = line.trim_start_matches(' ');
            if !trimmed.starts_with('#') || line.len() - trimmed.len() <= column {
                break;
            }
            at += line.len();
        }
        if at == self.text.len() && !self.text.ends_with('\n') {
            self.edits.replace(at, at, format!("\n{}", lines.trim_end_matches('\n')));
        } else {
            self.edits.replace(at, at, lines);
        }
    }

    /// The parts of a collection that stands in the text. None for an alias, which has no parts of its own.
    fn parts(&self, node: &Node<'t>) -> Option<Parts> {
        let start = node.span.start as usize;
        let is_flow = self.is_flow(node);
        let mut spans = Vec::new();
        let mut from = if is_flow { start + 1 } else { start };
        let nodes: Vec<(Option<usize>, &Node<'t>)> = match &node.value {
            Value::Mapping(map) => {
                map.iter().map(|entry| (Some(entry.key_span.start as usize), &entry.value)).collect()
            }
            Value::Sequence(items) => items.iter().map(|item| (None, item)).collect(),
            _ => return None,
        };
        for (key, value) in nodes {
            let is_here = value.span.start as usize >= key.unwrap_or(from).max(from);
            let (start, end) = if is_here {
                (key.unwrap_or(value.span.start as usize), self.end(value)?)
            } else {
                let search = key.unwrap_or(from);
                let alias = search + self.text.get(search..)?.find('*')?;
                let name =
                    self.text[alias..].find(|c: char| c.is_whitespace() || matches!(c, ',' | ']' | '}'));
                (key.unwrap_or(alias), name.map_or(self.text.len(), |length| alias + length))
            };
            if start < from {
                return None;
            }
            from = end;
            spans.push((start, end));
        }
        Some(Parts { spans, is_map: node.as_mapping().is_some(), is_flow, inside: start + 1 })
    }

    /// Where a value ends. A block collection ends where its last part does, which may be an alias.
    fn end(&self, node: &Node<'t>) -> Option<usize> {
        let is_collection = matches!(node.value, Value::Mapping(_) | Value::Sequence(_));
        if !is_collection || self.is_flow(node) {
            return Some(node.span.end as usize);
        }
        Some(self.parts(node)?.spans.last()?.1)
    }

    /// How much deeper the members of a map stand than the map's own line.
    fn unit(&self, node: &Node<'t>, margin: usize) -> &'static str {
        let first = node.as_mapping().and_then(|map| map.iter().next());
        let depth = first.map_or(0, |entry| self.column(entry.key_span.start as usize));
        match depth.saturating_sub(margin) {
            1 => " ",
            2 => "  ",
            3 => "   ",
            8 => "        ",
            _ => "    ",
        }
    }

    /// Where the next line starts behind a value that ends there.
    fn behind_line(&self, end: usize) -> usize {
        // The value may end in a line break, as block scalars do.
        let from = if end > 0 && self.byte(end - 1) == Some(b'\n') { end - 1 } else { end };
        self.text[from..].find('\n').map_or(self.text.len(), |newline| from + newline + 1)
    }

    /// Where the line of an offset starts.
    fn line_start(&self, at: usize) -> usize {
        self.text[..at].rfind('\n').map_or(0, |newline| newline + 1)
    }

    /// The column of an offset, in bytes from 0.
    fn column(&self, at: usize) -> usize {
        at - self.line_start(at)
    }

    /// The white space that the line of an offset starts with.
    fn margin(&self, at: usize) -> String {
        let line = &self.text[self.line_start(at)..at];
        line[..line.len() - line.trim_start_matches([' ', '\t']).len()].to_owned()
    }

    fn is_first_in_line(&self, at: usize) -> bool {
        let at = self.with_properties(at);
        self.text[self.line_start(at)..at].trim_matches([' ', '\t']).is_empty()
    }

    /// The start of a value with the anchor and the tag before it.
    fn with_properties(&self, mut at: usize) -> usize {
        loop {
            let head = self.text[..at].trim_end_matches(' ');
            let word = head
                .rfind(|c: char| c.is_whitespace() || matches!(c, '[' | '{' | ','))
                .map_or(0, |before| before + 1);
            if !head[word..].starts_with(['&', '!']) {
                return at;
            }
            at = word;
        }
    }

    /// The dash of a block list's item, and the indentation before it. Between the dash and the item there may be an
    /// anchor, a tag, and comments.
    fn dash(&self, item: usize) -> Option<(usize, &'t str)> {
        let mut head = self.text[..item].trim_end();
        while !head.ends_with('-') {
            let line = head.rfind('\n').map_or(0, |newline| newline + 1);
            let word = head.rfind(char::is_whitespace).map_or(0, |before| before + 1);
            head = match head[line..].find('#') {
                Some(comment) => head[..line + comment].trim_end(),
                None if head[word..].starts_with(['&', '!']) => head[..word].trim_end(),
                None => return None,
            };
        }
        let dash = head.len() - 1;
        let indent = &self.text[self.line_start(dash)..dash];
        indent.bytes().all(|byte| byte == b' ').then_some((dash, indent))
    }

    fn byte(&self, at: usize) -> Option<u8> {
        self.text.as_bytes().get(at).copied()
    }

    fn style_of(&self, node: &Node<'t>) -> Style {
        if !self.is_flow(node) {
            return Style::Block;
        }
        let first = node.as_mapping().and_then(|map| map.iter().next());
        let quoted = first.is_none_or(|entry| self.byte(entry.key_span.start as usize) == Some(b'"'));
        Style::Flow { quoted }
    }

    /// Whether a collection has brackets. One without starts where its first part does, which may have some.
    fn is_flow(&self, node: &Node<'t>) -> bool {
        let first = match &node.value {
            Value::Mapping(map) => map.iter().next().map(|entry| entry.key_span.start),
            Value::Sequence(items) => items.first().map(|item| item.span.start),
            _ => None,
        };
        let start = node.span.start;
        matches!(self.byte(start as usize), Some(b'{' | b'[')) && first != Some(start)
    }

    /// What stands behind `:` and `,` in one line of JSON.
    fn space(&self) -> &'static str {
        let colon = self.text.find("\":").map(|at| at + 2);
        match colon.and_then(|at| self.byte(at)) {
            Some(byte) if !byte.is_ascii_whitespace() => "",
            _ => " ",
        }
    }
}

/// What tells an item of a list from the others: of a blob its schema, package and name, the name of an entry, the reference of a
/// deprecation, else all of it. Components of a template have the name of a catalog, which several share.
fn identity(item: &Json) -> [Option<&Json>; 3] {
    if item.get("image").is_some() || item.get("destination").is_some() {
        return [Some(item), None, None];
    }
    match (item.get("schema"), item.get("reference").or(item.get("name"))) {
        (Some(schema), name) => [Some(schema), item.get("package"), name],
        (None, Some(name)) => [Some(name), None, None],
        (None, None) => [Some(item), None, None],
    }
}

/// A new item with its fields in the order of their schemas.
fn ordered(value: &Json) -> Tree<'_> {
    const ORDER: [&str; 9] =
        ["schema", "reference", "type", "name", "message", "value", "replaces", "skips", "skipRange"];
    match value {
        Json::Object(map) => {
            let rank = |key: &str| ORDER.iter().position(|known| *known == key).unwrap_or(ORDER.len());
            let mut members: Vec<_> = map.iter().collect();
            members.sort_by_key(|(key, _)| (rank(key), key.as_str()));
            Tree::Map(members.into_iter().map(|(key, value)| (key.as_str().into(), ordered(value))).collect())
        }
        Json::Array(items) => Tree::List(items.iter().map(ordered).collect()),
        _ => Tree::Leaf(value.clone()),
    }
}

/// How a collection is written.
#[derive(Clone, Copy)]
enum Style {
    Block,
    /// With brackets; with quotes around keys and texts, as in JSON, or not.
    Flow {
        quoted: bool,
    },
}

impl Style {
    fn is_json(self) -> bool {
        matches!(self, Self::Flow { quoted: true })
    }

    /// A text on one line.
    fn scalar(self, value: &Json) -> Option<String> {
        let text = value.as_str()?;
        match self {
            Self::Block => one_line(yaml_lines(value)?.trim_end()).map(str::to_owned),
            Self::Flow { quoted: false } if is_plain(text) => Some(text.to_owned()),
            Self::Flow { .. } => Some(Tree::from(text).to_text(&Layout::COMPACT)),
        }
    }

    /// A text or a list of texts on one line.
    fn in_line(self, value: &Json, space: &str) -> Option<String> {
        match (self, value) {
            (Self::Block, Json::Array(_)) => {
                Self::Flow { quoted: false }.line(&Tree::Leaf(value.clone()), space)
            }
            (Self::Block, _) => self.scalar(value),
            _ => self.line(&Tree::Leaf(value.clone()), space),
        }
    }

    /// A value on one line of flow style.
    fn line(self, value: &Tree<'_>, space: &str) -> Option<String> {
        let Self::Flow { quoted: false } = self else {
            return Some(value.to_text(&Layout::Line { space }));
        };
        let item = |(key, value): &(std::borrow::Cow<'_, str>, Tree<'_>)| {
            Some(format!("{}: {}", self.scalar(&Json::from(&**key))?, self.line(value, space)?))
        };
        match value {
            Tree::Map(members) => {
                Some(format!("{{{}}}", members.iter().map(item).collect::<Option<Vec<_>>>()?.join(", ")))
            }
            Tree::List(items) => {
                let items: Option<Vec<_>> = items.iter().map(|item| self.line(item, space)).collect();
                Some(format!("[{}]", items?.join(", ")))
            }
            Tree::Leaf(Json::Array(items)) => {
                let items: Option<Vec<_>> = items.iter().map(|item| self.scalar(item)).collect();
                Some(format!("[{}]", items?.join(", ")))
            }
            Tree::Leaf(value) => self.scalar(value),
        }
    }
}

/// Whether a text needs no quotes in flow style.
fn is_plain(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_' | b'/'))
        && yaml::first_document(text).is_ok_and(|document| document.root.as_str() == Some(text))
}

fn one_line(text: &str) -> Option<&str> {
    (!text.contains('\n')).then_some(text)
}

fn yaml_lines(value: &Json) -> Option<String> {
    yaml::write::to_string(value).ok()
}

fn indented(lines: &str, first: &str, rest: &str) -> String {
    let line = |(at, line): (usize, &str)| format!("{}{line}\n", if at == 0 { first } else { rest });
    lines.lines().enumerate().map(line).collect()
}
