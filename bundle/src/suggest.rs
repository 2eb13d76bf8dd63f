//! "Did you mean": the nearest of the words that would have been right.

/// The candidate nearest to `word`, if one is near enough to be what was meant.
///
/// ```
/// use olmkit_bundle::suggest::nearest;
/// assert_eq!(nearest("discription", ["description", "displayName"]), Some("description"));
/// assert_eq!(nearest("foo", ["description"]), None);
/// ```
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let scored = candidates.into_iter().map(|candidate| (distance(word, candidate), candidate));
    let (distance, candidate) = scored.min()?;
    let letters = candidate.chars().count();
    // One slip in three letters is a slip; more is another word.
    (distance < letters && distance * 3 <= letters.max(3)).then_some(candidate)
}

/// The same as a help text, `did you mean …?`.
pub fn did_you_mean<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    nearest(word, candidates).map(|candidate| format!("did you mean `{candidate}`?"))
}

/// The most candidates that a sentence names.
const MOST: usize = 10;

/// Candidates for a sentence, all of them where there are few. Of many those nearest to `word`, the nearest first, and how many more there
/// are.
///
/// ```
/// use olmkit_bundle::suggest::some_of;
/// assert_eq!(some_of("x", ["stable", "fast"]), "stable, fast");
/// let many: Vec<String> = (0..12).map(|number| format!("v{number}")).collect();
/// let told = some_of("v11", many.iter().map(String::as_str));
/// assert_eq!(told, "v11, v1, v10, v0, v2, v3, v4, v5, v6, v7 and 2 more");
/// ```
pub fn some_of<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    let mut all: Vec<&str> = candidates.into_iter().collect();
    if all.len() <= MOST {
        return all.join(", ");
    }
    all.sort_by_cached_key(|candidate| (distance(word, candidate), *candidate));
    format!("{} and {} more", all[..MOST].join(", "), all.len() - MOST)
}

/// How far two words are apart, in letters; large and small ones are the same.
fn distance(word: &str, candidate: &str) -> usize {
    strsim::damerau_levenshtein(&word.to_lowercase(), &candidate.to_lowercase())
}
