//! Transcripts: commands, exit codes and everything printed, as a user would see it.
//!
//! `TRYCMD=overwrite cargo test --test cli` writes what is printed now; read the difference like code.

#[test]
fn transcripts() {
    trycmd::TestCases::new().case("tests/cli/*.trycmd").case("docs/generate.md");
}

/// What a page shows of commands is a part of a transcript, so that nothing shown is not so.
#[track_caller]
fn check_page(page: &str, transcripts: &[&str], least: usize) {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let transcripts: String =
        transcripts.iter().map(|name| read(&format!("tests/cli/{name}.trycmd"))).collect();
    let text = read(page);
    let blocks: Vec<&str> =
        text.split("```console\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(blocks.len() >= least, "{page} shows too little");
    for block in blocks {
        assert!(transcripts.contains(block.trim_end()), "no transcript has this block of {page}:\n{block}");
    }
}

#[test]
fn pages_show_what_transcripts_say() {
    check_page("docs/operator.md", &["operator"], 6);
    check_page("docs/doctor.md", &["doctor", "fix"], 3);
    check_page("docs/operator-test.md", &["operator-test"], 1);
    check_page("docs/catalogs.md", &["catalog", "resolve", "show", "template"], 11);
    check_page("docs/catalog-edits.md", &["edit", "layout"], 6);
    check_page("docs/catalog-pull-request.md", &["pull-request"], 7);
}
