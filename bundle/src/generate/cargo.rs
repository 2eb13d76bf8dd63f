//! Cargo.toml: what it says of the crate, and the package file it may hold under `[package.metadata.olmkit]`.

use toml::de::{DeTable, DeValue};

use super::codes;
use super::draft::{By, Draft, Origin};
use super::package_file::{PackageFile, PartlyRead};
use crate::finding::{Finding, Place};
use crate::source::{Source, Span};
use crate::yaml::{Entry, Mapping, Node, Value, steps};

/// A Cargo.toml that was read.
#[derive(Debug)]
pub struct CargoFile<'a> {
    source: Source<'a>,
    root: Node<'a>,
    workspace: Option<Box<CargoFile<'a>>>,
}

impl<'a> CargoFile<'a> {
    /// Reads a Cargo.toml.
    ///
    /// # Errors
    /// A finding when it is not TOML.
    pub fn parse(source: Source<'a>) -> Result<Self, Box<Finding>> {
        match DeTable::parse(source.text()) {
            Ok(table) => {
                let span = table.span();
                let root = node(DeValue::Table(table.into_inner()), span);
                Ok(Self { source, root, workspace: None })
            }
            Err(error) => {
                let span = error.span().map_or(Span::at(0), |span| Span::new(span.start, span.end));
                let finding = Finding::new(&codes::SYNTAX, error.message().to_owned());
                Err(Box::new(finding.at(Place::new(&source, span))))
            }
        }
    }

    /// Whether it describes a crate, rather than only a workspace.
    pub fn has_package(&self) -> bool {
        self.root.get("package").is_some()
    }

    /// Whether values of the crate stand in its workspace's Cargo.toml.
    pub fn inherits(&self) -> bool {
        let values = self.root.get("package").and_then(Node::as_mapping);
        values.is_some_and(|map| map.iter().any(|entry| inherited(&entry.value)))
    }

    /// Whether it is the root of a workspace.
    pub fn is_workspace(&self) -> bool {
        self.root.get("workspace").is_some()
    }

    /// The members of a workspace as it names them: directories, or patterns such as `crates/*`.
    pub fn members(&self) -> Vec<&str> {
        self.of_workspace("members")
    }

    /// The directories that are no members of a workspace, whatever patterns say.
    pub fn excluded(&self) -> Vec<&str> {
        self.of_workspace("exclude")
    }

    fn of_workspace(&self, key: &str) -> Vec<&str> {
        let list = self.root.at(&["workspace".into(), key.into()]).and_then(Node::as_sequence);
        list.unwrap_or(&[]).iter().filter_map(Node::as_str).collect()
    }

    /// Whether the crate names programs of its own, besides those that cargo finds.
    pub fn names_programs(&self) -> bool {
        self.root.get("bin").is_some()
    }

    /// Whether the crate depends on another.
    pub fn depends_on(&self, name: &str) -> bool {
        self.root.at(steps!("dependencies", name)).is_some()
    }

    /// The crate's name, and its version where it is one.
    pub fn name_and_version(&self) -> Option<(String, Option<String>)> {
        let text = |key: &str| self.text(key).map(|(text, _)| text.to_owned());
        Some((text("name")?, text("version")))
    }

    /// What else the crate says, as keys of the package file.
    pub fn fields(&self) -> Vec<(&'static str, String)> {
        let field = |key| Some((key, self.text(key)?.0.to_owned()));
        ["description", "license", "repository"].into_iter().filter_map(field).collect()
    }

    /// Names the workspace's Cargo.toml, for the values that are inherited from it.
    pub fn set_workspace(&mut self, workspace: CargoFile<'a>) {
        self.workspace = Some(Box::new(workspace));
    }

    /// The package file under `[package.metadata.olmkit]`, if there is one.
    pub fn package_file(&self) -> Option<Result<PackageFile<'a>, Vec<Finding>>> {
        let root = self.root.at(steps!("package", "metadata", "olmkit"))?.clone();
        Some(PackageFile::new(Source::new(self.source.path(), self.source.text()), root))
    }

    /// The same as far as it can be read, and what is wrong with the rest.
    pub fn part_of_package_file(&self) -> Option<PartlyRead<'a>> {
        let root = self.root.at(steps!("package", "metadata", "olmkit"))?.clone();
        Some(PackageFile::part(Source::new(self.source.path(), self.source.text()), root))
    }

    /// A value of `[package]`, from the workspace where it is inherited, and the text it stands in.
    fn value(&self, key: &str) -> Option<(&Node<'a>, &Source<'a>)> {
        let own = self.root.at(&["package".into(), key.into()])?;
        if !inherited(own) {
            return Some((own, &self.source));
        }
        let workspace = self.workspace.as_deref().or_else(|| self.is_workspace().then_some(self))?;
        let path = ["workspace".into(), "package".into(), key.into()];
        Some((workspace.root.at(&path)?, &workspace.source))
    }

    /// A text of `[package]` with its origin.
    pub(super) fn text(&self, key: &str) -> Option<(&str, Origin<'_>)> {
        let (node, source) = self.value(key)?;
        Some((node.as_str()?, Origin::written(By::Cargo, source, node.span)))
    }

    /// A list of texts of `[package]`, each with its origin.
    pub(super) fn texts(&self, key: &str) -> Vec<(&str, Origin<'_>)> {
        let Some((node, source)) = self.value(key) else { return Vec::new() };
        let items = node.as_sequence().unwrap_or(&[]).iter();
        items
            .filter_map(|item| Some((item.as_str()?, Origin::written(By::Cargo, source, item.span))))
            .collect()
    }

    /// What stands in for a key of the package file, for its commented-out line.
    pub(super) fn initial(&self, key: &str) -> Option<String> {
        let key = match key {
            "package" => "name",
            "version" | "description" | "license" | "repository" => key,
            _ => return None,
        };
        let (text, _) = self.text(key)?;
        Some(serde_json::Value::from(text).to_string())
    }

    /// A value of `[package]` as a draft.
    pub(super) fn draft(&self, key: &str) -> Option<Draft<'_>> {
        let (node, source) = self.value(key)?;
        Some(Draft::node(node, source, By::Cargo))
    }
}

/// `key.workspace = true`
fn inherited(value: &Node<'_>) -> bool {
    value.get("workspace").and_then(Node::as_bool) == Some(true)
}

/// A value of TOML as the one in YAML that says the same.
fn node<'a>(value: DeValue<'a>, span: std::ops::Range<usize>) -> Node<'a> {
    let value = match value {
        DeValue::String(text) => Value::String(text),
        DeValue::Integer(number) => match i64::from_str_radix(number.as_str(), number.radix()) {
            Ok(number) => Value::Int(number),
            Err(_) => Value::String(number.to_string().into()),
        },
        DeValue::Float(number) => match number.as_str().parse::<f64>() {
            Ok(number) if number.is_finite() => Value::Float(number),
            _ => Value::String(number.to_string().into()),
        },
        DeValue::Boolean(value) => Value::Bool(value),
        DeValue::Datetime(time) => Value::String(time.to_string().into()),
        DeValue::Array(items) => Value::Sequence(
            items
                .into_iter()
                .map(|item| {
                    let span = item.span();
                    node(item.into_inner(), span)
                })
                .collect(),
        ),
        DeValue::Table(table) => {
            let entry = |(key, value): (toml::Spanned<_>, toml::Spanned<DeValue<'a>>)| {
                let (key_span, span) = (key.span(), value.span());
                Entry {
                    key: key.into_inner(),
                    key_span: Span::new(key_span.start, key_span.end),
                    value: node(value.into_inner(), span),
                }
            };
            Value::Mapping(Mapping::new(table.into_iter().map(entry).collect()))
        }
    };
    Node { value, span: Span::new(span.start, span.end) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_from_the_workspace_where_they_are_inherited() {
        let own = "[package]\nname = \"op\"\nversion.workspace = true\nkeywords = [\"a\"]\n\
                   authors = { workspace = true }\n[package.metadata.olmkit]\npackage = \"operator\"\n";
        let root = "[workspace.package]\nversion = \"1.2.3\"\n";
        let mut cargo = CargoFile::parse(Source::new("op/Cargo.toml", own)).unwrap();
        assert!(cargo.has_package() && cargo.inherits() && !cargo.is_workspace());
        assert!(cargo.text("version").is_none());
        cargo.set_workspace(CargoFile::parse(Source::new("Cargo.toml", root)).unwrap());
        let (version, origin) = cargo.text("version").unwrap();
        let place = origin.place().unwrap();
        assert_eq!((version, place.path.as_str(), place.position.unwrap().line), ("1.2.3", "Cargo.toml", 2));
        assert_eq!(cargo.texts("keywords")[0].0, "a");
        assert!(cargo.texts("authors").is_empty());
        let file = cargo.package_file().unwrap().unwrap();
        assert_eq!(file.settings.package, "operator");
        assert_eq!(file.place(&["package".into()]).position.unwrap().line, 7);
    }

    #[test]
    fn mistakes_are_placed_in_cargo_toml() {
        let broken = CargoFile::parse(Source::new("Cargo.toml", "[package]\nname = \n")).unwrap_err();
        assert_eq!(broken.place.unwrap().position.unwrap().line, 2);
        let odd = "[package.metadata.olmkit]\nchanels = [1979-05-27, 0x10, 1.5, inf, 99999999999999999999]\n";
        let cargo = CargoFile::parse(Source::new("Cargo.toml", odd)).unwrap();
        let findings = cargo.package_file().unwrap().unwrap_err();
        assert_eq!(findings[0].message, "`chanels` is not a key here");
        assert_eq!(findings[0].place.as_ref().unwrap().position.unwrap().column, 1);
    }
}
