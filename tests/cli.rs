//! Transcripts: commands, exit codes and everything printed, as a user would see it.
//!
//! `TRYCMD=overwrite cargo test --test cli` writes what is printed now; read the difference like code.

#[test]
fn transcripts() {
    trycmd::TestCases::new().case("tests/cli/*.trycmd").case("docs/generate.md");
}

/// What a page shows of commands is a part of a transcript, so that nothing shown is not so.
#[test]
fn pages_show_what_transcripts_say() {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let transcript = read("tests/cli/operator.trycmd");
    let page = read("docs/operator.md");
    let blocks: Vec<&str> =
        page.split("```console\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(blocks.len() > 5, "docs/operator.md shows too little");
    for block in blocks {
        assert!(
            transcript.contains(block.trim_end()),
            "no transcript has this block of docs/operator.md:\n{block}"
        );
    }
}

/// The same for the page about catalogs, whose transcripts are several.
#[test]
fn the_page_about_catalogs_shows_what_transcripts_say() {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let transcripts: String = ["catalog", "resolve", "show", "template"]
        .map(|name| read(&format!("tests/cli/{name}.trycmd")))
        .concat();
    let page = read("docs/catalogs.md");
    let blocks: Vec<&str> =
        page.split("```console\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(blocks.len() > 10, "docs/catalogs.md shows too little");
    for block in blocks {
        assert!(
            transcripts.contains(block.trim_end()),
            "no transcript has this block of docs/catalogs.md:\n{block}"
        );
    }
}

/// The same for the page about edits of catalogs.
#[test]
fn the_page_about_edits_shows_what_transcripts_say() {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let transcript = read("tests/cli/edit.trycmd") + &read("tests/cli/layout.trycmd");
    let page = read("docs/catalog-edits.md");
    let blocks: Vec<&str> =
        page.split("```console\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(blocks.len() > 5, "docs/catalog-edits.md shows too little");
    for block in blocks {
        assert!(
            transcript.contains(block.trim_end()),
            "no transcript has this block of docs/catalog-edits.md:\n{block}"
        );
    }
}
