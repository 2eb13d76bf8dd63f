//! Kinds of findings: all of some suites, or one explained.

use std::io::{self, Write};

use olmkit_bundle::finding::Code;
use olmkit_bundle::validate::about;

use super::{Answer, json, pretty};
use crate::actions::validate::{Codes, ExplainedCode};

fn entry(code: &'static Code) -> json::CodeEntry {
    json::CodeEntry { code: code.name, level: code.level.to_string(), suite: code.suite, docs: code.docs }
}

fn codes_json(codes: impl Iterator<Item = &'static Code>) -> String {
    pretty(&json::Codes { schema: "olmkit.codes/v1", codes: codes.map(entry).collect() })
}

impl Answer for Codes {
    fn json(&self) -> String {
        codes_json(self.suites.iter().flat_map(|(_, codes)| codes.iter().copied()))
    }

    fn text(&self, out: &mut dyn Write, _: &mut dyn Write) -> io::Result<()> {
        for (suite, codes) in &self.suites {
            writeln!(out, "{suite}: {}", about(suite))?;
            codes
                .iter()
                .try_for_each(|code| writeln!(out, "  {:7}  {}", code.level.to_string(), code.name))?;
        }
        Ok(())
    }
}

impl Answer for ExplainedCode {
    fn json(&self) -> String {
        codes_json(std::iter::once(self.code))
    }

    fn text(&self, out: &mut dyn Write, _: &mut dyn Write) -> io::Result<()> {
        let Code { name, level, suite, docs } = self.code;
        let docs =
            docs.trim().replace("```yaml bad", "Bad:\n\n```yaml").replace("```yaml good", "Good:\n\n```yaml");
        writeln!(out, "{name} ({level}, suite {suite})\n\n{docs}")
    }
}
