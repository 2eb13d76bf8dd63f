//! Where fields of a ClusterServiceVersion come from: `bundle generate --explain`.

use std::io::{self, Write};

use super::{Answer, json, pretty, printable};
use crate::actions::generate::{Explained, ExplainedField, FieldOrigin};

fn origin(origin: &FieldOrigin) -> json::Origin {
    json::Origin {
        by: origin.by,
        name: origin.name.clone(),
        place: origin.place.as_ref().map(json::Place::of),
    }
}

fn field(field: &ExplainedField) -> json::ExplainedField {
    json::ExplainedField {
        path: field.path.clone(),
        value: field.value.clone(),
        origin: origin(&field.origin),
        made_of: field.made_of.iter().map(origin).collect(),
        instead_of: field.instead_of.iter().map(origin).collect(),
    }
}

impl Answer for Explained {
    fn json(&self) -> String {
        pretty(&json::Explained {
            schema: "olmkit.explained/v1",
            csv: self.csv.clone(),
            fields: self.fields.iter().map(field).collect(),
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

fn sentence(origin: &FieldOrigin) -> String {
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
    let place = origin.place.as_ref().map(|place| match place.position {
        Some(at) => format!(" at {}:{}:{}", place.path, at.line, at.column),
        None => format!(" in {}", place.path),
    });
    printable(&(who + &place.unwrap_or_default())).into_owned()
}
