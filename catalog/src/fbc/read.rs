//! One value of a file to the blob it is, field by field; what does not fit becomes a fault.
//!
//! As in opm: the keys of a blob must differ in more than case; every field is matched without regard to case; null leaves a
//! field at its default, except in `schema`, `package` and `name`, which must be strings.

use std::borrow::Cow;
use std::collections::HashMap;

use olmkit_bundle::go::{self, fold, same_field};
use olmkit_bundle::source::Span;

use super::value::{Member, Text, Value};
use super::{
    At, Bundle, Catalog, Channel, Deprecation, Deprecations, Entry, Fault, FaultKind, Icon, Other, Package,
    Property, Reference, RelatedImage, schema,
};

/// Reads a value as a blob and puts it where it belongs.
pub(super) fn blob<'a>(catalog: &mut Catalog<'a>, file: u32, value: Value<'a>) {
    let at = At { file, span: value.span() };
    let mut reader = Reader { at, faults: &mut catalog.faults };
    let members = match value.into_members() {
        Ok(members) => members,
        Err(other) if other.is_null() => return reader.fault(at.span, FaultKind::NoSchema),
        Err(other) => return reader.fault(at.span, FaultKind::NotAMap(other.kind())),
    };
    if reader.reports_duplicate_keys(&members) {
        return;
    }
    let schema = members.iter().find(|member| same_field(&member.key, "schema"));
    let schema = schema.map(|member| reader.text_or_fault(member.value.clone(), || "schema".into()));
    match schema {
        Some(None) => {}
        Some(Some(schema)) if !schema.is_empty() => match schema.as_str() {
            schema::PACKAGE => catalog.packages.push(reader.package(members)),
            schema::CHANNEL => catalog.channels.push(reader.channel(members)),
            schema::BUNDLE => catalog.bundles.push(reader.bundle(members)),
            schema::DEPRECATIONS => catalog.deprecations.push(reader.deprecations(members)),
            _ => catalog.others.push(reader.other(schema, members)),
        },
        _ => reader.fault(at.span, FaultKind::NoSchema),
    }
}

/// Reads the fields of one blob.
struct Reader<'f> {
    at: At,
    faults: &'f mut Vec<Fault>,
}

impl Reader<'_> {
    fn package<'a>(&mut self, members: Vec<Member<'a>>) -> Package<'a> {
        let mut package = Package { at: self.at, ..Package::default() };
        self.absent([&mut package.name, &mut package.default_channel, &mut package.description]);
        for Member { key, value } in members {
            match field(
                &key,
                &["schema", "name", "package", "defaultChannel", "icon", "description", "properties"],
            ) {
                Some("schema") => {}
                Some("name") => package.name = self.text(value, || "name".into()),
                Some("defaultChannel") => {
                    package.default_channel = self.optional_text(value, || "defaultChannel".into())
                }
                Some("icon") if value.is_null() => package.icon = None,
                Some("icon") => package.icon = Some(self.icon(value)),
                Some("description") => {
                    package.description = self.optional_text(value, || "description".into())
                }
                Some("properties") => package.properties = self.properties(value),
                Some("package") => {
                    // Not a field of a package, but opm wants a string of it everywhere.
                    self.text_or_fault(value.clone(), || "package".into());
                    package.unknown.push(Member { key, value });
                }
                _ => package.unknown.push(Member { key, value }),
            }
        }
        package
    }

    fn icon<'a>(&mut self, value: Value<'a>) -> Icon<'a> {
        let mut icon = Icon::default();
        self.absent([&mut icon.data, &mut icon.media_type]);
        for Member { key, value } in self.members(value, || "icon".into()) {
            match field(&key, &["base64data", "mediatype"]) {
                Some("base64data") => icon.data = self.optional_text(value, || "icon.base64data".into()),
                Some("mediatype") => icon.media_type = self.optional_text(value, || "icon.mediatype".into()),
                _ => icon.unknown.push(Member { key, value }),
            }
        }
        icon
    }

    fn channel<'a>(&mut self, members: Vec<Member<'a>>) -> Channel<'a> {
        let mut channel = Channel { at: self.at, ..Channel::default() };
        self.absent([&mut channel.name, &mut channel.package]);
        for Member { key, value } in members {
            match field(&key, &["schema", "name", "package", "entries", "properties"]) {
                Some("schema") => {}
                Some("name") => channel.name = self.text(value, || "name".into()),
                Some("package") => channel.package = self.text(value, || "package".into()),
                Some("entries") => {
                    let items = self.items(value, || "entries".into());
                    channel.entries =
                        items.into_iter().enumerate().map(|(at, item)| self.entry(at, item)).collect();
                }
                Some("properties") => channel.properties = self.properties(value),
                _ => channel.unknown.push(Member { key, value }),
            }
        }
        channel
    }

    fn entry<'a>(&mut self, index: usize, value: Value<'a>) -> Entry<'a> {
        let path =
            |field: &str| format!("entries[{index}]{}{field}", if field.is_empty() { "" } else { "." });
        let mut entry = Entry { span: value.span(), ..Entry::default() };
        for text in [&mut entry.name, &mut entry.replaces, &mut entry.skip_range] {
            text.span = Span::at(entry.span.start as usize);
        }
        for Member { key, value } in self.members(value, || path("")) {
            match field(&key, &["name", "replaces", "skips", "skipRange"]) {
                Some("name") => entry.name = self.optional_text(value, || path("name")),
                Some("replaces") => entry.replaces = self.optional_text(value, || path("replaces")),
                Some("skips") => {
                    let items = self.items(value, || path("skips"));
                    let text = |(at, item)| self.optional_text(item, || path(&format!("skips[{at}]")));
                    entry.skips = items.into_iter().enumerate().map(text).collect();
                }
                Some("skipRange") => entry.skip_range = self.optional_text(value, || path("skipRange")),
                _ => entry.unknown.push(Member { key, value }),
            }
        }
        entry
    }

    fn bundle<'a>(&mut self, members: Vec<Member<'a>>) -> Bundle<'a> {
        let mut bundle = Bundle { at: self.at, ..Bundle::default() };
        self.absent([&mut bundle.name, &mut bundle.package, &mut bundle.image]);
        for Member { key, value } in members {
            match field(&key, &["schema", "name", "package", "image", "properties", "relatedImages"]) {
                Some("schema") => {}
                Some("name") => bundle.name = self.text(value, || "name".into()),
                Some("package") => bundle.package = self.text(value, || "package".into()),
                Some("image") => bundle.image = self.optional_text(value, || "image".into()),
                Some("properties") => bundle.properties = self.properties(value),
                Some("relatedImages") => {
                    let items = self.items(value, || "relatedImages".into());
                    let images = items.into_iter().enumerate();
                    bundle.related_images = images.map(|(at, item)| self.related_image(at, item)).collect();
                }
                _ => bundle.unknown.push(Member { key, value }),
            }
        }
        bundle
    }

    fn related_image<'a>(&mut self, index: usize, value: Value<'a>) -> RelatedImage<'a> {
        let mut image = RelatedImage::default();
        (image.name.span, image.image.span) = (value.span(), value.span());
        for Member { key, value } in self.members(value, || format!("relatedImages[{index}]")) {
            match field(&key, &["name", "image"]) {
                Some("name") => {
                    image.name = self.optional_text(value, || format!("relatedImages[{index}].name"))
                }
                Some("image") => {
                    image.image = self.optional_text(value, || format!("relatedImages[{index}].image"))
                }
                _ => image.unknown.push(Member { key, value }),
            }
        }
        image
    }

    fn properties<'a>(&mut self, value: Value<'a>) -> Vec<Property<'a>> {
        let items = self.items(value, || "properties".into());
        items.into_iter().enumerate().map(|(at, item)| self.property(at, item)).collect()
    }

    fn property<'a>(&mut self, index: usize, value: Value<'a>) -> Property<'a> {
        let mut property = Property { span: value.span(), ..Property::default() };
        property.kind.span = Span::at(property.span.start as usize);
        for Member { key, value } in self.members(value, || format!("properties[{index}]")) {
            match field(&key, &["type", "value"]) {
                Some("type") => {
                    property.kind = self.optional_text(value, || format!("properties[{index}].type"))
                }
                Some("value") => property.value = Some(value),
                _ => property.unknown.push(Member { key, value }),
            }
        }
        property
    }

    fn deprecations<'a>(&mut self, members: Vec<Member<'a>>) -> Deprecations<'a> {
        let mut deprecations = Deprecations { at: self.at, ..Deprecations::default() };
        self.absent([&mut deprecations.package]);
        for Member { key, value } in members {
            match field(&key, &["schema", "name", "package", "entries"]) {
                Some("schema") => {}
                Some("package") => deprecations.package = self.text(value, || "package".into()),
                Some("entries") => {
                    let items = self.items(value, || "entries".into()).into_iter().enumerate();
                    deprecations.entries = items.map(|(at, item)| self.deprecation(at, item)).collect();
                }
                Some("name") => {
                    self.text_or_fault(value.clone(), || "name".into());
                    deprecations.unknown.push(Member { key, value });
                }
                _ => deprecations.unknown.push(Member { key, value }),
            }
        }
        deprecations
    }

    fn deprecation<'a>(&mut self, index: usize, value: Value<'a>) -> Deprecation<'a> {
        let mut entry = Deprecation { span: value.span(), ..Deprecation::default() };
        for text in [&mut entry.reference.schema, &mut entry.reference.name, &mut entry.message] {
            text.span = Span::at(entry.span.start as usize);
        }
        for Member { key, value } in self.members(value, || format!("entries[{index}]")) {
            match field(&key, &["reference", "message"]) {
                Some("message") => {
                    entry.message = self.optional_text(value, || format!("entries[{index}].message"))
                }
                Some("reference") => entry.reference = self.reference(index, value),
                _ => entry.unknown.push(Member { key, value }),
            }
        }
        entry
    }

    fn reference<'a>(&mut self, index: usize, value: Value<'a>) -> Reference<'a> {
        let path = |field: &str| format!("entries[{index}].reference{field}");
        let mut reference = Reference::default();
        (reference.schema.span, reference.name.span) = (value.span(), value.span());
        for Member { key, value } in self.members(value, || path("")) {
            match field(&key, &["schema", "name"]) {
                Some("schema") => reference.schema = self.optional_text(value, || path(".schema")),
                Some("name") => reference.name = self.optional_text(value, || path(".name")),
                _ => reference.unknown.push(Member { key, value }),
            }
        }
        reference
    }

    fn other<'a>(&mut self, schema: Text<'a>, members: Vec<Member<'a>>) -> Other<'a> {
        let mut other = Other { at: self.at, schema, ..Other::default() };
        self.absent([&mut other.package, &mut other.name]);
        for member in &members {
            match field(&member.key, &["name", "package"]) {
                Some("name") => other.name = self.text(member.value.clone(), || "name".into()),
                Some("package") => other.package = self.text(member.value.clone(), || "package".into()),
                _ => {}
            }
        }
        other.members = members;
        other
    }

    /// Texts that are absent stand where the blob starts.
    fn absent<'t, 'a: 't>(&self, texts: impl IntoIterator<Item = &'t mut Text<'a>>) {
        for text in texts {
            text.span = Span::at(self.at.span.start as usize);
        }
    }

    /// A text that may be null.
    fn optional_text<'a>(&mut self, value: Value<'a>, path: impl FnOnce() -> String) -> Text<'a> {
        if value.is_null() {
            return Text { value: Cow::Borrowed(""), span: value.span() };
        }
        self.text(value, path)
    }

    fn text<'a>(&mut self, value: Value<'a>, path: impl FnOnce() -> String) -> Text<'a> {
        let span = value.span();
        self.text_or_fault(value, path).unwrap_or(Text { value: Cow::Borrowed(""), span })
    }

    fn text_or_fault<'a>(&mut self, value: Value<'a>, path: impl FnOnce() -> String) -> Option<Text<'a>> {
        match value.into_text() {
            Ok(text) => Some(text),
            Err(other) => {
                self.wrong_type(&other, "a string", path);
                None
            }
        }
    }

    fn items<'a>(&mut self, value: Value<'a>, path: impl FnOnce() -> String) -> Vec<Value<'a>> {
        if value.is_null() {
            return Vec::new();
        }
        value.into_items().unwrap_or_else(|other| {
            self.wrong_type(&other, "a list", path);
            Vec::new()
        })
    }

    /// The fields of a map inside a blob, in the order of their keys: of two that differ in case, the last one sets the
    /// field.
    fn members<'a>(&mut self, value: Value<'a>, path: impl FnOnce() -> String) -> Vec<Member<'a>> {
        if value.is_null() {
            return Vec::new();
        }
        let mut members = value.into_members().unwrap_or_else(|other| {
            self.wrong_type(&other, "a map", path);
            Vec::new()
        });
        members.sort_by(|a, b| a.key.cmp(&b.key));
        members
    }

    fn wrong_type(&mut self, value: &Value<'_>, expected: &'static str, path: impl FnOnce() -> String) {
        // Only half of a surrogate pair makes a JSON string that is no text.
        let found = if value.kind() == expected { "one that is not Unicode" } else { value.kind() };
        self.fault(value.span(), FaultKind::WrongType { field: path(), expected, found });
    }

    fn reports_duplicate_keys(&mut self, members: &[Member<'_>]) -> bool {
        let twins = match members.len() {
            count @ 0..=16 => (1..count).find_map(|at| {
                Some((members[..at].iter().find(|a| same_field(&a.key, &members[at].key))?, &members[at]))
            }),
            count => {
                let mut seen = HashMap::with_capacity(count);
                members.iter().find_map(|member| Some((seen.insert(fold(&member.key), member)?, member)))
            }
        };
        let Some((first, second)) = twins else { return false };
        let kind = FaultKind::DuplicateKeys { first: first.key.to_string(), second: second.key.to_string() };
        self.fault(second.value.span(), kind);
        true
    }

    fn fault(&mut self, span: Span, kind: FaultKind) {
        self.faults.push(Fault { at: self.at.with(span), kind });
    }
}

/// The field that a key sets.
fn field(key: &str, fields: &[&'static str]) -> Option<&'static str> {
    go::field(key, fields.iter().copied()).map(|at| fields[at])
}
