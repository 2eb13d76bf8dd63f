//! "Did you mean": the nearest of the words that would have been right.

/// The candidate nearest to `word`, if one is near enough to be what was meant.
///
/// ```
/// use olmkit_bundle::suggest::nearest;
/// assert_eq!(nearest("discription", ["description", "displayName"]), Some("description"));
/// assert_eq!(nearest("foo", ["description"]), None);
/// ```
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // A word of another length is another word: the letters need not be compared.
    let near = |candidate: &&str| candidate.len().abs_diff(word.len()) <= candidate.len().max(word.len()) / 2;
    let near = candidates.into_iter().filter(near).take(MOST_COMPARED);
    let (distance, candidate) = near.map(|candidate| (distance(word, candidate), candidate)).min()?;
    let letters = candidate.chars().count();
    // One slip in three letters is a slip; more is another word.
    (distance < letters && distance * 3 <= letters.max(3)).then_some(candidate)
}

/// The same as a help text, `did you mean …?`.
pub fn did_you_mean<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    nearest(word, candidates).map(|candidate| format!("did you mean `{candidate}`?"))
}

/// Candidates that are compared letter by letter: a file may have as many of them as it has mistakes.
const MOST_COMPARED: usize = 1000;
/// Letters of a word that are compared, which takes the square of them.
const MOST_LETTERS: usize = 256;

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
    let letters = |text: &str| text.chars().take(MOST_LETTERS).collect::<String>().to_lowercase();
    strsim::damerau_levenshtein(&letters(word), &letters(candidate))
}
