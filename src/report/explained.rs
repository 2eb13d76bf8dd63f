//! Where fields of a ClusterServiceVersion come from: `bundle generate --explain`.

use std::io::{self, Write};

use olmkit_bundle::generate::{By, Field, Origin, Relation};

use super::{Answer, json, pretty, printable};

/// Fields with their values and origins.
#[derive(Debug)]
pub struct ExplainedAnswer {
    csv: String,
    fields: Vec<json::ExplainedField>,
}

impl ExplainedAnswer {
    /// Takes from the fields what is to be shown.
    pub fn new(csv: String, fields: &[Field<'_, '_>]) -> Self {
        let fields = fields.iter().map(|field| json::ExplainedField {
            path: field.path.clone(),
            value: field.draft.to_json(),
            origin: origin(&field.draft.origin()),
            made_of: related(field, Relation::MadeOf),
            instead_of: related(field, Relation::InsteadOf),
        });
        Self { csv, fields: fields.collect() }
    }
}

fn related(field: &Field<'_, '_>, wanted: Relation) -> Vec<json::Origin> {
    let mine = field.draft.related().iter().filter(|(relation, _)| *relation == wanted);
    mine.map(|(_, related)| origin(related)).collect()
}

fn origin(origin: &Origin<'_>) -> json::Origin {
    let name = match origin.by {
        By::Flag(name) | By::Environment(name) | By::Rule(name) => Some(name.to_owned()),
        _ => None,
    };
    json::Origin { by: origin.by.word(), name, place: origin.place().as_ref().map(json::Place::of) }
}

impl Answer for ExplainedAnswer {
    fn json(&self) -> String {
        pretty(&json::Explained {
            schema: "olmkit.explained/v1",
            csv: self.csv.clone(),
            fields: self.fields.clone(),
        })
    }

    fn text(&self, out: &mut dyn Write, _talk: &mut dyn Write) -> io::Result<()> {
        for field in &self.fields {
            let value = field.value.to_string();
            let cut: String = value.chars().take(100).collect();
            let dots = if cut.len() < value.len() { "…" } else { "" };
            writeln!(out, "{}: {}{dots}", printable(&field.path), printable(&cut))?;
            writeln!(out, "  from {}", sentence(&field.origin))?;
            for origin in &field.made_of {
                writeln!(out, "   and {}", sentence(origin))?;
            }
            for origin in &field.instead_of {
                writeln!(out, "  instead of {}", sentence(origin))?;
            }
        }
        Ok(())
    }
}

fn sentence(origin: &json::Origin) -> String {
    let who = match (origin.by, origin.name.as_deref()) {
        ("rule", Some(rule)) => format!("the rule \"{rule}\""),
        ("flag", Some(name)) => name.to_owned(),
        ("environment", Some(name)) => format!("the environment: {name}"),
        ("manifest", _) => "the manifest".to_owned(),
        ("base", _) => "the base".to_owned(),
        ("packageFile", _) => "the package file".to_owned(),
        ("cargo", _) => "Cargo".to_owned(),
        (other, _) => format!("the {other}"),
    };
    let place = origin.place.as_ref().map(|place| match (place.line, place.column) {
        (Some(line), Some(column)) => format!(" at {}:{line}:{column}", place.path),
        _ => format!(" in {}", place.path),
    });
    printable(&(who + &place.unwrap_or_default())).into_owned()
}
