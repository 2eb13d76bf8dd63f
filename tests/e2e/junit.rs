//! The results as JUnit's XML, for machines that show tests.

use std::fmt::Write;

use libtest_mimic::Failed;

use crate::harness::Record;

/// The whole file.
pub(crate) fn document(records: &[Record]) -> String {
    let failures = records.iter().filter(|record| record.failure.is_some()).count();
    let time: f64 = records.iter().map(|record| record.time.as_secs_f64()).sum();
    let mut xml = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <testsuite name=\"e2e\" tests=\"{}\" failures=\"{failures}\" time=\"{time:.3}\">\n",
        records.len()
    );
    for Record { name, time, failure } in records {
        let seconds = time.as_secs_f64();
        // Writing to a string cannot fail.
        let _ = write!(xml, "  <testcase classname=\"e2e\" name=\"{}\" time=\"{seconds:.3}\"", escaped(name));
        let _ = match failure {
            None => writeln!(xml, "/>"),
            Some(text) => {
                let first = escaped(text.lines().next().unwrap_or_default());
                writeln!(
                    xml,
                    ">\n    <failure message=\"{first}\">{}</failure>\n  </testcase>",
                    escaped(text)
                )
            }
        };
    }
    xml + "</testsuite>\n"
}

/// A text as XML has it; what XML has no way to say, control characters, becomes a question mark.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\t' => out.push(letter),
            '\u{fffe}' | '\u{ffff}' => out.push('?'),
            _ if letter.is_control() => out.push('?'),
            _ => out.push(letter),
        }
    }
    out
}

/// The test of this file.
pub(crate) fn check() -> Result<(), Failed> {
    use std::time::Duration;
    let record = |name: &str, millis, failure: Option<&str>| Record {
        name: name.into(),
        time: Duration::from_millis(millis),
        failure: failure.map(Into::into),
    };
    insta::assert_snapshot!(document(&[
        record("good", 1_234, None),
        record("bad", 500, Some("got \"<a>\" & \u{1b}[31mred\nsecond line")),
    ]), @r#"
    <?xml version="1.0" encoding="UTF-8"?>
    <testsuite name="e2e" tests="2" failures="1" time="1.734">
      <testcase classname="e2e" name="good" time="1.234"/>
      <testcase classname="e2e" name="bad" time="0.500">
        <failure message="got &quot;&lt;a&gt;&quot; &amp; ?[31mred">got &quot;&lt;a&gt;&quot; &amp; ?[31mred
    second line</failure>
      </testcase>
    </testsuite>
    "#);
    Ok(())
}
