//! Links in documents lead somewhere, and the book contains every page. `make book` builds it with mdBook.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Pages that the book may name before they exist: it shows their titles without a link.
const PLANNED: [&str; 1] = ["docs/performance.md"];

/// The documents that are checked, relative to the project.
fn documents() -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> =
        ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "operator/README.md"].map(PathBuf::from).into();
    for folder in ["docs", "examples"] {
        let files = olmkit::files::below(&root().join(folder), |_| false).unwrap();
        let own = files.iter().filter(|file| file.extension().is_some_and(|ending| ending == "md"));
        let own = own.filter_map(|file| file.strip_prefix(root()).ok());
        // What is packaged is no page, and neither are inputs of transcripts.
        let is_page = |file: &&Path| {
            !file.starts_with("docs/generate.in")
                && !file.starts_with("docs/generate.out")
                && !file.ends_with("description.md")
        };
        found.extend(own.filter(is_page).map(Path::to_owned));
    }
    found
}

/// The lines outside fenced code.
fn prose(text: &str) -> Vec<&str> {
    let mut fence: Option<&str> = None;
    let mut lines = Vec::new();
    for line in text.lines() {
        let bare = line.trim_start();
        let mark = ["```", "~~~"].into_iter().find(|mark| bare.starts_with(mark));
        match (fence, mark) {
            (None, Some(mark)) => fence = Some(mark),
            (Some(open), Some(mark)) if open == mark => fence = None,
            (None, None) => lines.push(line),
            _ => {}
        }
    }
    lines
}

/// The anchors of a page's headings, as GitHub and mdBook make them: lower case, spaces as `-`, punctuation left out, and a number
/// at the end of those that repeat.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let mut found = BTreeSet::new();
    for line in prose(text) {
        let level = line.chars().take_while(|letter| *letter == '#').count();
        let Some(title) =
            line.get(level..).filter(|title| (1..=6).contains(&level) && title.starts_with(' '))
        else {
            continue;
        };
        let title = without_link_targets(title.trim());
        let is_kept = |letter: &char| letter.is_alphanumeric() || matches!(letter, '-' | '_' | ' ');
        let anchor = title
            .to_lowercase()
            .chars()
            .filter(is_kept)
            .map(|letter| if letter == ' ' { '-' } else { letter })
            .collect::<String>();
        let count = counts.entry(anchor.clone()).or_default();
        found.insert(if *count == 0 { anchor } else { format!("{anchor}-{count}") });
        *count += 1;
    }
    found
}

/// A heading with `[text](target)` as `text`.
fn without_link_targets(title: &str) -> String {
    let mut parts = title.split("](");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out += part.split_once(')').map_or(part, |(_, rest)| rest);
    }
    out
}

/// The targets of a page's links and pictures, without what is in code.
fn links(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    // Code may span lines only within a paragraph.
    for paragraph in prose(text).join("\n").split("\n\n") {
        let outside: Vec<&str> = paragraph.split('`').collect();
        // A link's text may be code: what is between backticks counts as one letter.
        let mut plain = String::new();
        for (number, part) in outside.iter().enumerate() {
            plain += if number % 2 == 0 { part } else { "x" };
        }
        for rest in plain.split("](").skip(1) {
            if let Some((target, _)) = rest.split_once(')') {
                found.push(target.split(' ').next().unwrap_or_default().to_owned());
            }
        }
    }
    found
}

/// A path without `.` and `..`; none where it leaves the project.
fn normal(path: &Path) -> Option<PathBuf> {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir if !out.pop() => return None,
            Component::ParentDir | Component::CurDir => {}
            part => out.push(part),
        }
    }
    Some(out)
}

/// What is wrong with a link of a page; `page` is relative to the project.
fn broken(page: &Path, text: &str, link: &str) -> Option<String> {
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
    let folder = page.parent().unwrap_or(Path::new(""));
    let target = if path.is_empty() { Some(page.to_owned()) } else { normal(&folder.join(path)) };
    let Some(target) = target else {
        return Some(format!("{}: `{link}` leaves the project", page.display()));
    };
    let file = root().join(&target);
    if file.is_dir() {
        return Some(format!(
            "{}: `{link}` is a directory, which a book cannot show: link its README.md",
            page.display()
        ));
    }
    if !path.is_empty() && !file.is_file() && !PLANNED.contains(&target.to_str().unwrap_or_default()) {
        return Some(format!("{}: `{link}` does not exist", page.display()));
    }
    if anchor.is_empty() || target.extension().is_none_or(|ending| ending != "md") {
        return None;
    }
    let other = if path.is_empty() { text.to_owned() } else { std::fs::read_to_string(file).unwrap() };
    (!anchors(&other).contains(anchor)).then(|| format!("{}: `{link}` names no heading", page.display()))
}

#[test]
fn links_lead_somewhere() {
    if std::env::var_os("OLMKIT_GENERATE").is_some() {
        return; // Other tests are writing the pages.
    }
    let mut wrong = Vec::new();
    for page in documents() {
        let text = std::fs::read_to_string(root().join(&page)).unwrap();
        wrong.extend(links(&text).iter().filter_map(|link| broken(&page, &text, link)));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn broken_links_are_found() {
    let text = "# One\n\n## A `b-c`: d\n\n[x](#one) [y](#a-b-c-d) [z](#two) [f](nowhere.md)\n```\n[code](gone.md)\n```\n`[code](gone.md)`\n";
    let page = Path::new("docs/x.md");
    let wrong: Vec<_> = links(text).iter().filter_map(|link| broken(page, text, link)).collect();
    assert_eq!(wrong, ["docs/x.md: `#two` names no heading", "docs/x.md: `nowhere.md` does not exist"]);
    assert!(broken(page, text, "design").is_some_and(|told| told.contains("directory")));
}

#[test]
fn repeated_headings_get_numbers() {
    let found = anchors("# Same\n## Same\n### [Link](x.md) too\n```\n# code\n```\n");
    assert_eq!(found.into_iter().collect::<Vec<_>>(), ["link-too", "same", "same-1"]);
}

#[test]
fn every_page_is_in_the_book() {
    let summary = std::fs::read_to_string(root().join("docs/SUMMARY.md")).unwrap();
    let mut listed = Vec::new();
    for link in links(&summary) {
        listed.push(normal(&Path::new("docs").join(link)).expect("a page of the project"));
    }
    let unique: BTreeSet<&PathBuf> = listed.iter().collect();
    assert_eq!(unique.len(), listed.len(), "docs/SUMMARY.md lists a page twice");
    let missing: Vec<_> = documents()
        .into_iter()
        .filter(|page| !page.ends_with("SUMMARY.md") && !unique.contains(page))
        .collect();
    assert!(missing.is_empty(), "docs/SUMMARY.md does not list {missing:?}");
}
