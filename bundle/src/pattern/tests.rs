use super::{Pattern, PatternError};

/// Go's verdicts and matches, as `testdata/patterns/record.go` wrote them: a list of texts; then, in each line, a pattern, and
/// either why Go refuses it, or two more texts and which of all texts it matches, four in a digit.
const RECORDED: &str = include_str!("../../testdata/patterns/go.tsv");

#[test]
fn verdicts_and_matches_are_those_of_go() {
    let mut lines = RECORDED.lines();
    let texts: Vec<String> = serde_json::from_str(lines.next().unwrap()).unwrap();
    let (mut differences, mut patterns, mut matches) = (Vec::new(), 0, 0);
    for line in lines {
        let fields: Vec<_> = line.split('\t').collect();
        let text: String = serde_json::from_str(fields[0]).unwrap();
        patterns += 1;
        let parsed = Pattern::parse(&text);
        let (pattern, own, bits) = match (parsed, &fields[1..]) {
            (Err(error), [expected]) if error.to_string() == *expected => continue,
            (Ok(pattern), [own, bits]) => (pattern, own, bits),
            (parsed, expected) => {
                differences.push(format!("{text:?}: {:?}, Go: {}", parsed.map(|_| "valid"), expected[0]));
                continue;
            }
        };
        let own: Vec<String> = serde_json::from_str(own).unwrap();
        let digits: Vec<_> = bits.chars().map(|c| c.to_digit(16).unwrap()).collect();
        for (at, held) in texts.iter().chain(&own).enumerate() {
            let expected = digits[at / 4] >> (at % 4) & 1 == 1;
            matches += usize::from(expected);
            if pattern.is_match(held) != Some(expected) {
                let found = pattern.is_match(held);
                differences.push(format!("{text:?} on {held:?}: {found:?} ({})", pattern.translated));
            }
        }
    }
    let shown = differences.iter().take(40).map(String::as_str).collect::<Vec<_>>().join("\n");
    assert!(differences.is_empty(), "{} differences:\n{shown}", differences.len());
    assert!(patterns > 3_000 && matches > 30_000, "{patterns} patterns, {matches} matches");
}

#[test]
fn scripts_are_known_by_the_names_of_older_go_too() {
    let pattern = Pattern::parse(r"^\p{Old_Italic}$").unwrap();
    assert_eq!((pattern.is_match("𐌀"), pattern.is_match("a")), (Some(true), Some(false)));
    assert_eq!(Pattern::parse(r"\p{old_italic}").unwrap_err(), PatternError::CharRange);
}

#[test]
fn every_class_by_name_is_one_of_the_crate() {
    let names = RECORDED.lines().filter(|line| line.contains("p{")).count();
    assert!(names > 50);
    for name in super::classes::names() {
        let pattern = Pattern::parse(&format!(r"\p{{{name}}}")).unwrap_or_else(|why| panic!("{name}: {why}"));
        assert!(pattern.is_match("a").is_some(), "{name}");
    }
}

/// Go's verdicts on patterns that are too long for the recording.
#[test]
fn depth_and_size_are_bounded_as_in_go() {
    let nested = |open: &str, close: &str, times| format!("{}a{}", open.repeat(times), close.repeat(times));
    let verdict = |text: &str| Pattern::parse(text).map(|pattern| pattern.is_match("a"));
    assert_eq!(verdict(&nested("(", ")", 100)), Ok(Some(true)));
    // Valid, and deeper than we match.
    assert_eq!(verdict(&nested("(", ")", 999)), Ok(None));
    assert_eq!(verdict(&nested("(", ")", 1_000)), Err(PatternError::NestingDepth));
    assert_eq!(verdict(&nested("(?:", ")", 3_000)), Ok(None));
    assert_eq!(verdict(&nested("(?:", ")*", 999)), Ok(None));
    assert_eq!(verdict(&nested("(?:", ")*", 1_000)), Err(PatternError::NestingDepth));
    assert_eq!(verdict(&nested("(a|", ")", 600)), Err(PatternError::NestingDepth));
    assert_eq!(verdict(&"[a-z]{1000}".repeat(3_000)), Ok(None));
    assert_eq!(verdict(&"[a-z]{1000}".repeat(5_000)), Err(PatternError::Large));
}

#[test]
fn hostile_patterns_end_soon() {
    for text in [
        "(".repeat(1 << 17),
        "a*\\Q\\E".repeat(20_000) + "*",
        "[".repeat(1 << 17),
        "[[:".repeat(50_000),
        "a|".repeat(50_000),
        "(?i)".repeat(50_000),
        "\\p{".repeat(50_000),
        "(?P<".repeat(50_000),
        "(?:a*)*".repeat(20_000),
        "a".to_owned() + &"\\Q\\E*".repeat(20_000),
        "(?:".repeat(499) + &"x{2}".repeat(9) + &")?".repeat(499),
    ] {
        let start = std::time::Instant::now();
        if let Ok(pattern) = Pattern::parse(&text) {
            let _ = pattern.is_match("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
        }
        assert!(start.elapsed().as_secs() < 20, "{} took {:?}", &text[..20], start.elapsed());
    }
}
