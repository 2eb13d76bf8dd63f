//! Transcripts: commands, exit codes and everything printed, as a user would see it.
//!
//! `TRYCMD=overwrite cargo test --test cli` writes what is printed now; read the difference like code.

#[test]
fn transcripts() {
    trycmd::TestCases::new().case("tests/cli/*.trycmd");
}
