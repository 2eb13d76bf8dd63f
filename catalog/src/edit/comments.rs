//! The comments of a YAML document: what each of them speaks of, and where it goes when the document is written anew.

use std::cell::OnceCell;
use std::collections::HashMap;

use olmkit_bundle::go::fold;
use olmkit_bundle::yaml::{self, Node, Value};

/// A comment, from its `#` to the end of its line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Comment {
    pub(super) text: String,
    anchor: Anchor,
}

/// What a comment speaks of.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Anchor {
    /// The document: it stands before everything else.
    Head,
    /// What is below it.
    Before(Vec<Step>),
    /// What is left of it, on the same line.
    Beside(Vec<Step>),
    /// The end of a member or an item, such as an entry that was commented out.
    After(Vec<Step>),
    /// It stands after everything else.
    Foot,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Step {
    Key(String),
    Item(usize),
}

/// A member of a map or an item of a list.
struct Part {
    path: Vec<Step>,
    /// Where its key or its dash stands.
    start: usize,
    column: usize,
}

/// A key or a scalar.
struct Leaf {
    start: usize,
    end: usize,
    /// The part that it is in; none when the document is nothing else.
    part: Option<usize>,
}

/// A document with its parts in the order of the text.
struct Layout<'t> {
    text: &'t str,
    parts: Vec<Part>,
    leaves: Vec<Leaf>,
    /// The first part of each path, in whatever case its keys are.
    by_path: OnceCell<HashMap<Vec<Step>, usize>>,
}

/// The comments of a document; none when it has anchors, tags, duplicate keys, or anything else that is lost when the document is
/// written anew.
pub(super) fn extract(text: &str) -> Option<Vec<Comment>> {
    let layout = Layout::of(text)?;
    let mut comments = Vec::new();
    let mut from = 0;
    for at in 0..=layout.leaves.len() {
        let leaf = layout.leaves.get(at);
        let to = leaf.map_or(text.len(), |leaf| leaf.start);
        layout.read_gap(at.checked_sub(1), from, to, &mut comments)?;
        let Some(leaf) = leaf else { break };
        from = leaf.end;
        if text[leaf.start..].starts_with(['|', '>']) {
            let header = text[leaf.start..leaf.end].lines().next().unwrap_or_default();
            if let Some(at) = header.find(" #") {
                let part = &layout.parts.get(leaf.part?)?.path;
                comments.push(Comment {
                    text: header[at + 1..].trim_end().to_owned(),
                    anchor: Anchor::Beside(part.clone()),
                });
            }
        }
    }
    Some(comments)
}

/// The document with comments, each at what it speaks of.
pub(super) fn insert(text: &str, comments: &[Comment]) -> Option<String> {
    let layout = Layout::of(text)?;
    let lines: Vec<&str> = text.lines().collect();
    let breaks: Vec<usize> = text.match_indices('\n').map(|(at, _)| at).collect();
    let line_of = |at: usize| breaks.partition_point(|newline| *newline < at);
    // By line: comments above it, the deepest of those that end a part first.
    let mut above: Vec<Vec<(usize, String)>> = vec![Vec::new(); lines.len() + 1];
    let mut beside: Vec<Option<&str>> = vec![None; lines.len()];
    let (mut head, mut foot) = (Vec::new(), Vec::new());
    const BEFORE: usize = usize::MAX;
    for Comment { text, anchor } in comments {
        let found = |path: &[Step]| layout.find(path);
        match anchor {
            Anchor::Head => head.push(text.as_str()),
            Anchor::Foot => foot.push(text.as_str()),
            Anchor::Before(path) | Anchor::Beside(path) | Anchor::After(path) => {
                let Some(at) = found(path) else {
                    head.push(text);
                    continue;
                };
                let part = &layout.parts[at];
                let line = line_of(part.start);
                // The first member of an item is on the line of its dash.
                let column = layout.item_around(at).map_or(part.column, |item| item.column);
                let column = if matches!(anchor, Anchor::Before(_)) { column } else { part.column };
                let indented = format!("{}{text}", " ".repeat(column));
                // A part that is not written, such as an empty list, leaves its comments to the part around it.
                let is_whole = part.path.len() == path.len();
                match anchor {
                    Anchor::Beside(_) if is_whole && beside[line].is_none() => beside[line] = Some(text),
                    Anchor::After(_) => {
                        let depth = part.path.len();
                        let next = layout.parts[at..].iter().find(|next| !next.path.starts_with(&part.path));
                        let line = next.map_or(lines.len(), |next| line_of(next.start));
                        above[line].push((BEFORE - depth, indented));
                    }
                    _ => above[line].push((BEFORE, indented)),
                }
            }
        }
    }
    let mut out = String::with_capacity(text.len() + comments.len() * 40);
    let mut push = |line: &str, beside: Option<&str>| {
        out += line;
        if let Some(comment) = beside {
            out.push(' ');
            out += comment;
        }
        out.push('\n');
    };
    head.iter().for_each(|comment| push(comment, None));
    for (number, comments) in above.iter_mut().enumerate() {
        comments.sort_by_key(|(rank, _)| *rank);
        comments.iter().for_each(|(_, comment)| push(comment, None));
        if let Some(line) = lines.get(number) {
            push(line, beside[number]);
        }
    }
    foot.iter().for_each(|comment| push(comment, None));
    Some(out)
}

impl<'t> Layout<'t> {
    fn of(text: &'t str) -> Option<Self> {
        let document = yaml::first_document(text).ok()?;
        let mut layout = Self { text, parts: Vec::new(), leaves: Vec::new(), by_path: OnceCell::new() };
        layout.walk(&document.root, &mut Vec::new(), None)?;
        Some(layout)
    }

    fn walk(&mut self, node: &Node<'_>, path: &mut Vec<Step>, part: Option<usize>) -> Option<()> {
        let last_end = |layout: &Self| layout.leaves.last().map_or(0, |leaf| leaf.end);
        match &node.value {
            Value::Mapping(map) => {
                for entry in map.iter() {
                    let (start, end) = (entry.key_span.start as usize, entry.key_span.end as usize);
                    if start < last_end(self) {
                        return None;
                    }
                    path.push(Step::Key(entry.key.to_string()));
                    let part = Some(self.add_part(path, start));
                    self.leaves.push(Leaf { start, end, part });
                    self.walk(&entry.value, path, part)?;
                    path.pop();
                }
            }
            Value::Sequence(items) => {
                for (number, item) in items.iter().enumerate() {
                    let from = last_end(self);
                    let to = item.span.start as usize;
                    let gap = self.text.get(from..to)?;
                    let dash = tokens(gap).rfind(|(_, token)| *token == '-').map(|(at, _)| from + at);
                    path.push(Step::Item(number));
                    let part = Some(self.add_part(path, dash.unwrap_or(to)));
                    self.walk(item, path, part)?;
                    path.pop();
                }
            }
            _ => {
                let (start, end) = (node.span.start as usize, node.span.end as usize);
                let from = last_end(self);
                let gap = self.text.get(from..start)?;
                // A block scalar is said to start at its first word.
                let header =
                    tokens(gap).find(|(_, token)| matches!(token, '|' | '>')).map(|(at, _)| from + at);
                let (start, end) = match header {
                    Some(header) => (header, block_scalar(self.text, header).unwrap_or(end)),
                    None => (start, end),
                };
                if start < end {
                    self.leaves.push(Leaf { start, end, part });
                }
            }
        }
        Some(())
    }

    fn add_part(&mut self, path: &[Step], start: usize) -> usize {
        let (from, line) = self.parts.last().map_or((0, 0), |last| (last.start, last.start - last.column));
        let between = self.text.get(from..start).unwrap_or_default();
        let line = between.rfind('\n').map_or(line, |newline| from + newline + 1);
        self.parts.push(Part { path: path.to_owned(), start, column: start.saturating_sub(line) });
        self.parts.len() - 1
    }

    /// The item of which a part is the first member.
    fn item_around(&self, at: usize) -> Option<&Part> {
        let (outer, inner) = (self.parts.get(at.checked_sub(1)?)?, self.parts.get(at)?);
        let is_first = inner.path.len() == outer.path.len() + 1 && inner.path.starts_with(&outer.path);
        let kinds = (outer.path.last(), inner.path.last());
        (is_first && matches!(kinds, (Some(Step::Item(_)), Some(Step::Key(_))))).then_some(outer)
    }

    /// The part at a path, or the nearest one around it.
    fn find(&self, path: &[Step]) -> Option<usize> {
        let folded = |path: &[Step]| path.iter().map(Step::folded).collect::<Vec<_>>();
        let by_path = self.by_path.get_or_init(|| {
            // Backwards: of several, the first is to stay.
            self.parts.iter().enumerate().rev().map(|(at, part)| (folded(&part.path), at)).collect()
        });
        let path = folded(path);
        (1..=path.len()).rev().find_map(|length| by_path.get(&path[..length]).copied())
    }

    /// Takes the comments between two leaves.
    fn read_gap(
        &self,
        last: Option<usize>,
        from: usize,
        to: usize,
        comments: &mut Vec<Comment>,
    ) -> Option<()> {
        let gap = self.text.get(from..to)?;
        if tokens(gap).any(|(_, token)| !matches!(token, '-' | '?' | ':' | ',' | '[' | ']' | '{' | '}')) {
            return None;
        }
        let part = last.and_then(|last| self.leaves[last].part);
        let mut least_column = usize::MAX;
        for (at, comment) in comments_in(gap) {
            let position = from + at;
            let text = comment.trim_end().to_owned();
            let line = self.text[..position].rfind('\n').map_or(0, |newline| newline + 1);
            let is_alone = self.text[line..position].trim_matches([' ', '\t', '-']).is_empty();
            let anchor = match part {
                None => Anchor::Head,
                Some(part) if !is_alone => {
                    // Behind closing brackets it speaks of what they close.
                    let depth: isize = tokens(&gap[..at])
                        .map(|(_, token)| match token {
                            ']' | '}' => 1,
                            '[' | '{' => -1,
                            _ => 0,
                        })
                        .sum();
                    let path = &self.parts[part].path;
                    match path.len().checked_sub(depth.max(0).unsigned_abs()) {
                        Some(length) if length > 0 => Anchor::Beside(path[..length].to_vec()),
                        _ => Anchor::Head,
                    }
                }
                Some(part) => {
                    least_column = least_column.min(position - line);
                    self.anchor_of_line(part, position, least_column)
                }
            };
            comments.push(Comment { text, anchor });
        }
        Some(())
    }

    /// What a comment on a line of its own speaks of: the part that follows, unless it is deeper than that.
    fn anchor_of_line(&self, part: usize, position: usize, column: usize) -> Anchor {
        let at = self.parts.partition_point(|part| part.start <= position);
        // Between a dash and the first member it speaks of the item.
        let next = self.parts.get(at).map(|next| self.item_around(at).unwrap_or(next));
        match next {
            Some(next) if column <= next.column => return Anchor::Before(next.path.clone()),
            None if column == 0 => return Anchor::Foot,
            _ => {}
        }
        let path = &self.parts[part].path;
        let ended = (1..=path.len()).rev().map(|length| &path[..length]);
        let mut ended = ended.filter(|path| next.is_none_or(|next| !next.path.starts_with(path)));
        let fits = |path: &[Step]| self.find(path).is_some_and(|at| self.parts[at].column <= column);
        match (ended.find(|path| fits(path)), next) {
            (Some(path), _) => Anchor::After(path.to_vec()),
            (None, Some(next)) => Anchor::Before(next.path.clone()),
            (None, None) => Anchor::Foot,
        }
    }
}

impl Step {
    /// The step without the difference of case.
    fn folded(&self) -> Self {
        match self {
            Self::Key(key) => Self::Key(fold(key).into_owned()),
            Self::Item(number) => Self::Item(*number),
        }
    }
}

/// The comments in what stands between keys and scalars, and their offsets.
fn comments_in(gap: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    gap.split_inclusive('\n').filter_map(move |line| {
        let start = at;
        at += line.len();
        let comment = comment_start(line)?;
        Some((start + comment, &line[comment..]))
    })
}

/// The characters between keys and scalars that are neither white space nor comments.
fn tokens(gap: &str) -> impl DoubleEndedIterator<Item = (usize, char)> {
    let mut all = Vec::new();
    let mut at = 0;
    for line in gap.split_inclusive('\n') {
        let code = &line[..comment_start(line).unwrap_or(line.len())];
        all.extend(
            code.char_indices().map(|(offset, c)| (at + offset, c)).filter(|(_, c)| !c.is_whitespace()),
        );
        at += line.len();
    }
    all.into_iter()
}

/// Where the comment of a line without texts starts.
fn comment_start(line: &str) -> Option<usize> {
    let mut hashes = line.match_indices('#').map(|(at, _)| at);
    hashes.find(|at| *at == 0 || line[..*at].ends_with([' ', '\t', ',', '[', ']', '{', '}', '-', ':']))
}

/// Where a block scalar ends, without comments and empty lines that follow; none when it says how deep it is.
fn block_scalar(text: &str, header: usize) -> Option<usize> {
    let mut lines = text[header..].split_inclusive('\n');
    let first = lines.next()?;
    if first.bytes().take(3).any(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let mut at = header + first.len();
    let (mut end, mut indent) = (at, None);
    for line in lines {
        at += line.len();
        let content = line.trim_start_matches(' ');
        if content.trim().is_empty() {
            continue;
        }
        let depth = line.len() - content.len();
        if depth < *indent.get_or_insert(depth) {
            break;
        }
        end = at;
    }
    Some(end)
}
