//! `.indexignore`: which files of a directory tree do not belong to the catalog, in gitignore's language.
//!
//! As in opm a pattern is asked about files only, and a file is also ignored by a pattern that matches a directory above it;
//! patterns apply to what lies beside and below the file they stand in, and the last one that matches decides.

/// The name of the files with patterns.
pub(crate) const IGNORE_FILE: &str = ".indexignore";

/// The patterns of a directory tree, those of deeper directories behind those above.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ignore {
    patterns: Vec<Pattern>,
}

#[derive(Clone, Debug)]
struct Pattern {
    /// The directory it stands in, empty or with a final `/`.
    directory: String,
    /// What must match, one component each; anchored to the directory when there are several.
    components: Vec<String>,
    anchored: bool,
    /// It ends in `/`.
    only_directories: bool,
    /// It starts with `!`.
    takes_back: bool,
}

impl Ignore {
    /// Adds the patterns of a directory's file; `directory` is empty for the root.
    pub(crate) fn add(&mut self, directory: &str, text: &str) {
        let directory = if directory.is_empty() { String::new() } else { format!("{directory}/") };
        let lines = text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
        self.patterns.extend(lines.map(|line| Pattern::parse(directory.clone(), line)));
    }

    /// Whether a file is ignored.
    pub(crate) fn matches(&self, path: &str) -> bool {
        self.patterns
            .iter()
            .rev()
            .find(|pattern| pattern.matches(path))
            .is_some_and(|pattern| !pattern.takes_back)
    }
}

impl Pattern {
    fn parse(directory: String, line: &str) -> Self {
        let (takes_back, line) = line.strip_prefix('!').map_or((false, line), |rest| (true, rest));
        let line = if line.ends_with("\\ ") { line } else { line.trim_end_matches(' ') };
        let (only_directories, line) = line.strip_suffix('/').map_or((false, line), |rest| (true, rest));
        let components: Vec<_> = line.split('/').map(str::to_owned).collect();
        Self { directory, anchored: components.len() > 1, components, only_directories, takes_back }
    }

    fn matches(&self, path: &str) -> bool {
        let Some(path) = path.strip_prefix(&self.directory) else { return false };
        let path: Vec<&str> = path.split('/').collect();
        // A match of fewer components than the path has is one of a directory above the file.
        let ends_well = |length: usize| match length == path.len() {
            true => !self.only_directories,
            false => !self.takes_back,
        };
        if !self.anchored {
            let pattern = &self.components[0];
            return (1..=path.len()).any(|length| glob(pattern, path[length - 1]) && ends_well(length));
        }
        let components: Vec<&str> =
            self.components.iter().map(String::as_str).skip_while(|c| c.is_empty()).collect();
        prefixes(&components, &path).into_iter().any(ends_well)
    }
}

/// How many components of `path` a pattern of several can take, `**` standing for any number of them.
fn prefixes(pattern: &[&str], path: &[&str]) -> Vec<usize> {
    let mut lengths = vec![0];
    for (at, component) in pattern.iter().enumerate() {
        let last = at + 1 == pattern.len();
        lengths = match *component {
            "**" if last => {
                lengths.first().map(|&first| (first + 1..=path.len()).collect()).unwrap_or_default()
            }
            "**" => lengths.first().map(|&first| (first..=path.len()).collect()).unwrap_or_default(),
            component => lengths
                .into_iter()
                .filter(|&length| path.get(length).is_some_and(|name| glob(component, name)))
                .map(|length| length + 1)
                .collect(),
        };
    }
    lengths
}

/// Whether a name matches a pattern of `*`, `?`, `[a-z]` and `\`.
fn glob(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    let (mut p, mut n) = (0, 0);
    // Where to go on when the last star has to take one character more.
    let mut star: Option<(usize, usize)> = None;
    loop {
        let step = match (pattern.get(p), name.get(n)) {
            (None, None) => return true,
            (Some('*'), _) => {
                star = Some((p + 1, n));
                p += 1;
                continue;
            }
            (Some('?'), Some(_)) => Some(1),
            (Some('['), Some(&c)) => {
                class(&pattern[p..], c).and_then(|(length, holds)| holds.then_some(length))
            }
            (Some('\\'), Some(c)) => (pattern.get(p + 1) == Some(c)).then_some(2),
            (Some(a), Some(b)) => (a == b).then_some(1),
            _ => None,
        };
        match (step, star) {
            (Some(length), _) => (p, n) = (p + length, n + 1),
            (None, Some((behind, taken))) if taken < name.len() => {
                (p, n) = (behind, taken + 1);
                star = Some((behind, taken + 1));
            }
            _ => return false,
        }
    }
}

/// The length of the class that a pattern starts with, and whether a character is in it; none when it does not end.
fn class(pattern: &[char], c: char) -> Option<(usize, bool)> {
    let negated = matches!(pattern.get(1), Some('!' | '^'));
    let mut at = if negated { 2 } else { 1 };
    let mut holds = false;
    let first = at;
    while pattern.get(at)? != &']' || at == first {
        let escaped = pattern[at] == '\\';
        at += usize::from(escaped);
        let low = *pattern.get(at)?;
        match (pattern.get(at + 1), pattern.get(at + 2)) {
            (Some('-'), Some(&high)) if high != ']' => {
                holds |= (low..=high).contains(&c);
                at += 3;
            }
            _ => {
                holds |= low == c;
                at += 1;
            }
        }
    }
    Some((at + 1, holds != negated))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(patterns: &str, ignored: &[&str], kept: &[&str]) {
        let mut ignore = Ignore::default();
        ignore.add("", patterns);
        for path in ignored {
            assert!(ignore.matches(path), "{path} by {patterns:?}");
        }
        for path in kept {
            assert!(!ignore.matches(path), "{path} not by {patterns:?}");
        }
    }

    #[test]
    fn names_match_anywhere() {
        check("*.md\n", &["a.md", "x/a.md", "a.md/b"], &["a.mdx", "md"]);
        check("dir/\n", &["dir/a", "x/dir/a"], &["dir", "x/dir"]);
    }

    #[test]
    fn paths_match_from_their_directory() {
        check("/a\n", &["a", "a/b"], &["x/a"]);
        check("a/b\n", &["a/b", "a/b/c"], &["x/a/b", "a"]);
        check("a/**/b", &["a/b", "a/x/b", "a/x/y/b"], &["b", "a/x"]);
        check("a/**", &["a/b", "a/b/c"], &["a"]);
        check("**/b", &["b", "x/b", "x/b/c"], &["x"]);
        let mut ignore = Ignore::default();
        ignore.add("sub", "/a\n");
        assert!(ignore.matches("sub/a") && !ignore.matches("a") && !ignore.matches("sub2/a"));
    }

    #[test]
    fn the_last_pattern_that_matches_decides() {
        check("*\n!kept\n", &["a", "x/a"], &["kept", "x/kept"]);
        check("*\n!kept\nkept\n", &["kept"], &[]);
        check("# *\n\n  \n", &[], &["a"]);
    }

    #[test]
    fn globs() {
        check("a?[b-d][!x]\\*", &["a1cy*"], &["a1cx*", "a1ey*", "a1cyz"]);
        check("*a*b*", &["xaxbx", "ab"], &["ba"]);
        check("[]]\n", &["]"], &["a"]);
        check("[ab\n", &[], &["a", "[ab"]);
        check(&format!("{}b\n", "a*".repeat(60)), &[], &[&"a".repeat(4000)]);
    }
}
