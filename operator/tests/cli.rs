//! Transcripts of the command line.

#[test]
fn transcripts() {
    trycmd::TestCases::new()
        .case("tests/cli/*.trycmd")
        .insert_var("[VERSION]", env!("CARGO_PKG_VERSION"))
        .expect("one name, once");
}
