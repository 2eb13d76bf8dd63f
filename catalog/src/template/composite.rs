//! Several templates for several catalogs: `olm.composite`, which opm had until 2024.

use olmkit_bundle::printable::is_hidden;

use super::TemplateError;
use super::read::Fields;

/// Templates, and where what they stand for goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Composite {
    /// The templates.
    pub components: Vec<Component>,
}

/// A template of a composite.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Component {
    /// The catalog that it is for.
    pub name: String,
    /// Where in that catalog it goes: a directory.
    pub path: String,
    /// What is made of the input.
    pub strategy: Strategy,
    /// The file with the template.
    pub input: String,
    /// The name of the file that comes of it.
    pub output: String,
}

/// What is made of a component's input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// It is a template.
    Template,
    /// It is a catalog already.
    Raw,
}

const NO_SCHEMA: &str = "a component has no `schema` in `strategy.template`";

impl Composite {
    pub(super) fn parse(fields: &Fields<'_, '_>) -> Result<Self, TemplateError> {
        let mut components = Vec::new();
        for component in fields.maps("components")? {
            let template = component.map("strategy")?.map("template")?;
            let config = template.map("config")?;
            let schema = template.text("schema")?;
            let strategy = match schema.as_str() {
                "olm.builder.basic" | "olm.builder.semver" => Strategy::Template,
                "olm.builder.raw" => Strategy::Raw,
                "" => return Err(template.wrong("schema", NO_SCHEMA)),
                other => {
                    let why = format!(
                        "`{other}` is not `olm.builder.basic`, `olm.builder.semver` or `olm.builder.raw`"
                    );
                    return Err(template.wrong("schema", why));
                }
            };
            let found = Component {
                name: component.text("name")?,
                path: component.map("destination")?.text("path")?,
                strategy,
                input: config.text("input")?,
                output: config.text("output")?,
            };
            if found.name.is_empty() {
                return Err(component.wrong("name", "a component has no `name`"));
            }
            for (key, value) in [("input", &found.input), ("output", &found.output)] {
                if value.is_empty() {
                    return Err(config.wrong(key, format!("a component has no `{key}`")));
                }
            }
            let destination = component.map("destination")?;
            let paths = [(&component, "name", &found.name), (&destination, "path", &found.path)];
            for (fields, key, text) in paths.into_iter().chain([(&config, "output", &found.output)]) {
                if text.contains(|c: char| c.is_control() || is_hidden(c)) {
                    let why = format!("`{}` has characters that are not shown", text.escape_debug());
                    return Err(fields.wrong(key, why));
                }
            }
            components.push(found);
        }
        if components.is_empty() {
            return Err(fields.wrong("components", "there are no components"));
        }
        Ok(Self { components })
    }
}
