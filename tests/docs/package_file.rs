//! `docs/package-file.md`: the reference of the package file, from its schema.

use std::fmt::Write as _;

use serde_json::Value;

use super::fresh;

/// The type of a value, in words, with links to the sections of structures.
fn kind(schema: &Value) -> String {
    if let Some(name) = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next()) {
        return format!("[{name}](#{})", name.to_lowercase());
    }
    for any in ["anyOf", "oneOf"] {
        if let Some(all) = schema[any].as_array() {
            let kinds: Vec<_> = all.iter().filter(|one| one["type"] != "null").map(kind).collect();
            return kinds.join(" or ");
        }
    }
    if let Some(values) = schema["enum"].as_array() {
        let values: Vec<_> = values
            .iter()
            .filter(|value| !value.is_null())
            .map(|value| format!("`{}`", text(value)))
            .collect();
        return format!("one of {}", values.join(", "));
    }
    if let Some(value) = schema.get("const") {
        return format!("`{}`", text(value));
    }
    let types: Vec<&str> = match &schema["type"] {
        Value::Array(all) => all.iter().filter_map(Value::as_str).filter(|kind| *kind != "null").collect(),
        one => one.as_str().into_iter().collect(),
    };
    match types[..] {
        ["array"] => format!("list of {}", kind(&schema["items"])),
        ["object"] if schema["additionalProperties"].is_object() => {
            format!("map of {}", kind(&schema["additionalProperties"]))
        }
        [] => "any value".to_owned(),
        _ => types.join(" or "),
    }
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned)
}

fn fields(page: &mut String, schema: &Value) {
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let needed = if required.contains(&name.as_str()) { ", required" } else { "" };
        let description =
            field["description"].as_str().unwrap_or_default().replace('\n', " ").replace('<', "&lt;");
        writeln!(page, "- `{name}` ({}{needed}): {description}", kind(field)).unwrap();
    }
}

#[test]
fn package_file_reference() {
    let schema = olmkit_bundle::generate::package_file::schema();
    let schema = schema.as_value();
    let mut page = String::from(
        "# The package file\n\nThe package file, `olmkit.yaml`, holds what manifests cannot say. `olmkit bundle init` writes one, and \
         `olmkit bundle generate` reads it: [Generating bundles](generate.md).\nThis page is generated from the schema, \
         [schemas/package-file.json](schemas/package-file.json), with which editors complete and check the file: `make generate`.\n\n\
         Every field may be left out unless it says otherwise. Paths are relative to the file. Unknown fields are errors.\n\n## Fields\n\n",
    );
    fields(&mut page, schema);
    for (name, structure) in schema["$defs"].as_object().into_iter().flatten() {
        let description = structure["description"].as_str().unwrap_or_default().replace('\n', " ");
        write!(page, "\n## {name}\n\n{description}\n\n").unwrap();
        if structure["properties"].is_object() {
            fields(&mut page, structure);
        } else {
            writeln!(page, "Value: {}.", kind(structure)).unwrap();
        }
    }
    fresh("docs/package-file.md", &page);
}

/// What each schema of answers is for, with a link: `docs/schemas/README.md`.
#[test]
fn schemas_have_an_index() {
    let mut page = String::from(
        "# Schemas\n\nThe documents that `-o json` and `-o yaml` print, by the name in their field `schema`. Generated from the code: `make generate`.\n\n\
         - [package-file](package-file.json): the package file, which [package-file.md](../package-file.md) describes\n",
    );
    for (name, schema) in olmkit::report::json::schemas() {
        let about = schema.as_value()["description"]
            .as_str()
            .unwrap_or_default()
            .lines()
            .next()
            .unwrap_or_default()
            .to_owned();
        let about = if about.is_empty() { about } else { format!(": {about}") };
        writeln!(page, "- [{name}]({name}.json){about}").unwrap();
    }
    fresh("docs/schemas/README.md", &page);
}
