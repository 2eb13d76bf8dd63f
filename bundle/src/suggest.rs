//! "Did you mean": the nearest of the words that would have been right.

/// The candidate nearest to `word`, if one is near enough to be what was meant.
///
/// ```
/// use olmkit_bundle::suggest::nearest;
/// assert_eq!(nearest("discription", ["description", "displayName"]), Some("description"));
/// assert_eq!(nearest("foo", ["description"]), None);
/// ```
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let scored = candidates.into_iter().map(|candidate| {
        let distance = strsim::damerau_levenshtein(&word.to_lowercase(), &candidate.to_lowercase());
        (distance, candidate)
    });
    let (distance, candidate) = scored.min()?;
    // One slip in three letters is a slip; more is another word.
    (distance * 3 <= candidate.chars().count().max(3)).then_some(candidate)
}

/// The same as a help text, `did you mean …?`.
pub fn did_you_mean<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    nearest(word, candidates).map(|candidate| format!("did you mean `{candidate}`?"))
}
