//! Versions and version ranges as OLM compares them.
//!
//! Versions are semantic versions; build metadata does not order them. Ranges are those of blang/semver, which
//! OLM uses for `olm.skipRange` and package dependencies: pre-releases are plain points on the line, `x` is a wildcard.

mod release;

use std::cmp::Ordering;
use std::fmt;
use std::ops::Range;
use std::str::FromStr;

pub use release::{Release, ReleaseError, VersionRelease};
pub use semver::Version;

/// Orders versions as OLM does: build metadata does not count.
pub fn precedence(a: &Version, b: &Version) -> Ordering {
    a.cmp_precedence(b)
}

/// Reads a version as OLM reads `spec.version` of a ClusterServiceVersion: white space around it, a `v` in front, leading
/// zeros and absent numbers at the end do no harm (blang/semver `ParseTolerant`).
///
/// ```
/// use olmkit_bundle::version::{Version, parse_tolerant};
/// assert_eq!(parse_tolerant(" v1.02").unwrap(), Version::new(1, 2, 0));
/// ```
///
/// # Errors
/// When even so it is no semantic version.
pub fn parse_tolerant(text: &str) -> Result<Version, semver::Error> {
    let text = text.trim();
    let text = text.strip_prefix('v').unwrap_or(text);
    let without_zeros = |part: &str| {
        let rest = part.trim_start_matches('0');
        let has_number = rest.starts_with(|c: char| c.is_ascii_digit());
        if has_number || rest.len() == part.len() { rest.to_owned() } else { format!("0{rest}") }
    };
    let mut parts: Vec<_> = text.splitn(3, '.').map(without_zeros).collect();
    // A short version with a pre-release or build metadata fails below, as it should: `1.2-rc.0`.
    if parts.len() < 3 && !text.contains(['-', '+']) {
        parts.resize(3, "0".to_owned());
    }
    Version::parse(&parts.join("."))
}

/// Reads a version as OLM reads `spec.minKubeVersion`: a `v` in front and leading zeros do no harm, and all three numbers have to be there
/// (coreos/go-semver `NewVersion`).
///
/// ```
/// use olmkit_bundle::version::{Version, parse_min_kube};
/// assert_eq!(parse_min_kube("v1.25.0").unwrap(), Version::new(1, 25, 0));
/// assert!(parse_min_kube("1.25").is_err());
/// ```
///
/// # Errors
/// When it is not such a version: OLM never installs the operator then.
pub fn parse_min_kube(text: &str) -> Result<Version, semver::Error> {
    let is_whole = text.split('.').nth(2).is_some() && text.trim() == text;
    if is_whole { parse_tolerant(text) } else { Version::parse(text) }
}

/// A set of versions such as `>=1.0.0 <1.3.0 || 2.x`.
///
/// ```
/// use olmkit_bundle::version::{Version, VersionRange};
/// let range: VersionRange = ">=1.0.0-0 <1.3.0".parse().unwrap();
/// assert!(range.contains(&Version::new(1, 2, 9)) && !range.contains(&Version::new(1, 3, 0)));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct VersionRange {
    text: String,
    /// One of these must hold; each is a list of comparisons that must all hold.
    alternatives: Vec<Vec<Comparison>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Comparison {
    operator: Operator,
    version: Version,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Operator {
    Equal,
    NotEqual,
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
}

/// A text that is no version range.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{range}` is not a version range: {why}")]
pub struct RangeError {
    /// The text.
    pub range: String,
    /// What is wrong with it.
    pub why: String,
}

impl VersionRange {
    /// Whether the version lies in the range.
    pub fn contains(&self, version: &Version) -> bool {
        self.alternatives.iter().any(|all| all.iter().all(|comparison| comparison.holds(version)))
    }

    /// The matching_ranges of a sorted list of versions that lie in the range. They may overlap, and are found without asking
    /// version by version.
    ///
    /// ```
    /// use olmkit_bundle::version::{Version, VersionRange};
    /// let versions: Vec<_> = (0..5).map(|minor| Version::new(1, minor, 0)).collect();
    /// let range: VersionRange = ">=1.1.0 !=1.2.0 <1.4.0".parse().unwrap();
    /// assert_eq!(range.matching_ranges(&versions), [1..2, 3..4]);
    /// ```
    pub fn matching_ranges(&self, sorted: &[Version]) -> Vec<Range<usize>> {
        let below = |version: &Version| sorted.partition_point(|other| precedence(other, version).is_lt());
        let through = |version: &Version| sorted.partition_point(|other| precedence(other, version).is_le());
        self.positions(sorted.len(), below, through)
    }

    /// The versions that are compared with.
    pub fn bounds(&self) -> impl Iterator<Item = &Version> {
        self.alternatives.iter().flatten().map(|comparison| &comparison.version)
    }

    /// Like [`Self::matching_ranges`], of the [positions](position) that any version has among bounds, which are sorted, each once, and
    /// have those of this range among them.
    pub fn matching_positions(&self, bounds: &[Version]) -> Vec<Range<usize>> {
        let below = |version: &Version| position(bounds, version);
        self.positions(2 * bounds.len() + 1, below, |version| below(version) + 1)
    }

    fn positions(
        &self,
        count: usize,
        below: impl Fn(&Version) -> usize,
        through: impl Fn(&Version) -> usize,
    ) -> Vec<Range<usize>> {
        let mut matching_ranges = Vec::new();
        for all in &self.alternatives {
            let (mut from, mut to) = (0, count);
            let mut holes = Vec::new();
            for Comparison { operator, version } in all {
                match operator {
                    Operator::Equal => {
                        from = from.max(below(version));
                        to = to.min(through(version));
                    }
                    Operator::NotEqual => holes.push(below(version)..through(version)),
                    Operator::Greater => from = from.max(through(version)),
                    Operator::GreaterOrEqual => from = from.max(below(version)),
                    Operator::Less => to = to.min(below(version)),
                    Operator::LessOrEqual => to = to.min(through(version)),
                }
            }
            holes.sort_by_key(|hole| hole.start);
            for hole in holes {
                if from < hole.start.min(to) {
                    matching_ranges.push(from..hole.start.min(to));
                }
                from = from.max(hole.end);
            }
            if from < to {
                matching_ranges.push(from..to);
            }
        }
        matching_ranges
    }

    /// A few versions that lie in the range, in order: its bounds where they belong to it, and the releases beside them.
    ///
    /// ```
    /// use olmkit_bundle::version::VersionRange;
    /// let examples = |range: &str| -> Vec<String> {
    ///     range.parse::<VersionRange>().unwrap().examples().iter().map(ToString::to_string).collect()
    /// };
    /// assert_eq!(examples(">=1.0.0 <1.2.0"), ["1.0.0", "1.0.1", "1.1.0"]);
    /// assert_eq!(examples("<2.0.0"), ["1.0.0"]);
    /// ```
    pub fn examples(&self) -> Vec<Version> {
        let beside = |bound: &Version| {
            let below = match (bound.major, bound.minor, bound.patch) {
                (major, minor, patch @ 1..) => Version::new(major, minor, patch - 1),
                (major, minor @ 1.., _) => Version::new(major, minor - 1, 0),
                (major, ..) => Version::new(major.saturating_sub(1), 0, 0),
            };
            [below, bound.clone(), Version::new(bound.major, bound.minor, bound.patch.saturating_add(1))]
        };
        let mut examples: Vec<Version> =
            self.bounds().flat_map(beside).filter(|version| self.contains(version)).collect();
        examples.sort_by(precedence);
        examples.dedup_by(|a, b| precedence(a, b).is_eq());
        examples
    }

    /// Whether no version lies in the range.
    ///
    /// ```
    /// use olmkit_bundle::version::VersionRange;
    /// assert!(">=2.0.0 <1.0.0".parse::<VersionRange>().unwrap().is_empty());
    /// assert!(!">=1.0.0 <=1.0.0".parse::<VersionRange>().unwrap().is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        // Of every alternative the bounds: between versions that differ there is always another one, a pre-release at least.
        self.alternatives.iter().all(|all| {
            let of = |wanted: &[Operator]| {
                let found = all.iter().filter(|comparison| wanted.contains(&comparison.operator));
                found.map(|comparison| &comparison.version).collect::<Vec<_>>()
            };
            if let Some(only) = of(&[Operator::Equal]).first() {
                return !all.iter().all(|comparison| comparison.holds(only));
            }
            let from = of(&[Operator::Greater, Operator::GreaterOrEqual])
                .into_iter()
                .max_by(|a, b| precedence(a, b));
            let to = of(&[Operator::Less, Operator::LessOrEqual]).into_iter().min_by(|a, b| precedence(a, b));
            match (from, to) {
                (Some(from), Some(to)) => match precedence(from, to) {
                    Ordering::Less => false,
                    Ordering::Equal => !all.iter().all(|comparison| comparison.holds(from)),
                    Ordering::Greater => true,
                },
                _ => false,
            }
        })
    }

    /// The range as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for VersionRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Comparison {
    fn holds(&self, version: &Version) -> bool {
        let order = precedence(version, &self.version);
        match self.operator {
            Operator::Equal => order.is_eq(),
            Operator::NotEqual => order.is_ne(),
            Operator::Greater => order.is_gt(),
            Operator::GreaterOrEqual => order.is_ge(),
            Operator::Less => order.is_lt(),
            Operator::LessOrEqual => order.is_le(),
        }
    }
}

impl FromStr for VersionRange {
    type Err = RangeError;

    fn from_str(text: &str) -> Result<Self, RangeError> {
        let fail = |why: String| RangeError { range: text.to_owned(), why };
        let mut alternatives = vec![Vec::new()];
        let parts = split(text);
        for (at, part) in parts.iter().enumerate() {
            if part != "||" {
                let comparisons = comparisons(part).map_err(fail)?;
                if let Some(all) = alternatives.last_mut() {
                    all.extend(comparisons);
                }
            } else if at == 0 {
                return Err(fail("it starts with `||`".into()));
            } else {
                alternatives.push(Vec::new());
            }
        }
        match alternatives.last() {
            _ if parts.is_empty() => Err(fail("it is empty".into())),
            Some(last) if last.is_empty() => Err(fail("it ends with `||`".into())),
            // Between `|| ||` blang leaves an alternative without a test, and panics when it is asked.
            _ if alternatives.iter().any(Vec::is_empty) => {
                Err(fail("there is nothing between two `||`".into()))
            }
            _ => Ok(Self { text: text.to_owned(), alternatives }),
        }
    }
}

/// The position of a version among bounds that are sorted: an odd one at a bound, an even one beside them.
pub fn position(bounds: &[Version], version: &Version) -> usize {
    match bounds.binary_search_by(|bound| precedence(bound, version)) {
        Ok(at) => 2 * at + 1,
        Err(at) => 2 * at,
    }
}

/// Splits at spaces, except behind an operator, and drops parts of one character, as blang does.
fn split(text: &str) -> Vec<String> {
    let mut parts = Vec::new();
    let mut part = String::new();
    let mut last_solid = None;
    for c in text.chars() {
        if c == ' ' && !matches!(last_solid, Some('>' | '<' | '=')) {
            parts.push(std::mem::take(&mut part));
        } else if c != ' ' {
            last_solid = Some(c);
            part.push(c);
        }
    }
    parts.push(part);
    parts.retain(|part| part.len() > 1);
    parts
}

/// One part such as `>=1.2.x` as comparisons; a wildcard makes one or two of them.
fn comparisons(part: &str) -> Result<Vec<Comparison>, String> {
    let digit = part.find(|c: char| c.is_ascii_digit()).ok_or_else(|| format!("`{part}` has no version"))?;
    let (operator, version) = part.split_at(digit);
    let operator = match operator {
        "" | "=" | "==" => Operator::Equal,
        "!" | "!=" => Operator::NotEqual,
        ">" => Operator::Greater,
        ">=" => Operator::GreaterOrEqual,
        "<" => Operator::Less,
        "<=" => Operator::LessOrEqual,
        other => return Err(format!("`{other}` in `{part}` is not an operator")),
    };
    let Some((first, after)) = wildcard(version) else {
        // blang takes any `x` for a wildcard, and only these two operators survive that.
        if version.contains('x') && !matches!(operator, Operator::GreaterOrEqual | Operator::Less) {
            return Err(format!("`x` in `{part}` is not a wildcard at the end"));
        }
        let version = Version::parse(version).map_err(|error| format!("`{version}`: {error}"))?;
        return Ok(vec![Comparison { operator, version }]);
    };
    let comparison = |operator, version| Comparison { operator, version };
    Ok(match operator {
        Operator::Equal => {
            vec![comparison(Operator::GreaterOrEqual, first), comparison(Operator::Less, after)]
        }
        Operator::NotEqual => {
            vec![comparison(Operator::Less, first), comparison(Operator::GreaterOrEqual, after)]
        }
        Operator::Greater => vec![comparison(Operator::GreaterOrEqual, after)],
        Operator::GreaterOrEqual => vec![comparison(Operator::GreaterOrEqual, first)],
        Operator::Less => vec![comparison(Operator::Less, first)],
        Operator::LessOrEqual => vec![comparison(Operator::Less, after)],
    })
}

/// The first version of a wildcard such as `1.2.x`, `1.x` or `1.x.x`, and the first one after it.
fn wildcard(text: &str) -> Option<(Version, Version)> {
    let mut parts = text.strip_suffix(".x")?.split('.');
    let major: u64 = parts.next()?.parse().ok()?;
    match (parts.next(), parts.next()) {
        (None | Some("x"), None) => {
            Some((Version::new(major, 0, 0), Version::new(major.checked_add(1)?, 0, 0)))
        }
        (Some(minor), None) => {
            let minor: u64 = minor.parse().ok()?;
            Some((Version::new(major, minor, 0), Version::new(major, minor.checked_add(1)?, 0)))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(range: &str, inside: &[&str], outside: &[&str]) {
        let range: VersionRange = range.parse().unwrap();
        for version in inside {
            assert!(range.contains(&version.parse().unwrap()), "{version} in {range}");
        }
        for version in outside {
            assert!(!range.contains(&version.parse().unwrap()), "{version} not in {range}");
        }
    }

    #[test]
    fn operators_and_their_combination() {
        check(">=1.0.0 <1.3.0", &["1.0.0", "1.2.9"], &["1.3.0", "0.9.0"]);
        check(">= 1.0.0 < 1.3.0 || 2.0.0", &["1.0.0", "2.0.0"], &["1.3.0"]);
        check("!=1.0.0", &["1.0.1"], &["1.0.0", "1.0.0+build"]);
        check("=1.0.0", &["1.0.0+build"], &["1.0.0-rc1"]);
        check("<1.0.0", &["1.0.0-rc1"], &["1.0.0"]);
    }

    #[test]
    fn matching_ranges_are_what_contains_says() {
        let mut versions: Vec<Version> =
            ["1.0.0-rc.1", "1.0.0", "1.0.0+b", "1.1.0", "1.2.0", "2.0.0", "2.0.1"]
                .map(|text| text.parse().unwrap())
                .into();
        versions.sort_by(precedence);
        for text in [
            ">=1.0.0 <2.0.0",
            "!=1.0.0",
            "!=1.1.0 !=1.0.0 <2.0.1",
            "<1.0.0 || >=2.0.0",
            "1.0.0",
            ">1.0.0 <=2.0.0",
            ">3.0.0",
            "1.x || !=2.x",
            ">2.0.0 <1.0.0 !=1.1.0",
        ] {
            let range: VersionRange = text.parse().unwrap();
            let matching_ranges = range.matching_ranges(&versions);
            for (at, version) in versions.iter().enumerate() {
                let inside = matching_ranges.iter().any(|stretch| stretch.contains(&at));
                assert_eq!(inside, range.contains(version), "{version} in {text}");
            }
        }
    }

    #[test]
    fn wildcards() {
        check("1.2.x", &["1.2.0", "1.2.9", "1.3.0-rc1"], &["1.3.0", "1.2.0-rc1"]);
        check("1.x", &["1.0.0", "1.9.9"], &["2.0.0"]);
        check("1.x.x", &["1.5.0"], &["2.0.0"]);
        check(">1.2.x", &["1.3.0"], &["1.2.9"]);
        check("<=1.x", &["1.9.0"], &["2.0.0"]);
    }

    #[test]
    fn what_blang_refuses() {
        for bad in [
            "",
            " ",
            "|| 1.0.0",
            "1.0.0 ||",
            "<v1.2.3",
            "1.2",
            "~1.2.3",
            "^1.0.0",
            ">=1.0.0,<2.0.0",
            "*",
            "1.0.0 || || 2.0.0",
            "01.0.0",
            "<=1.0.0-rex",
        ] {
            assert!(bad.parse::<VersionRange>().is_err(), "{bad}");
        }
    }
}
