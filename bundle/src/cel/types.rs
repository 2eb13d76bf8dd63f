//! Types: what schemas declare, and when a value of one type may stand where another is wanted (apiserver
//! `pkg/cel/common/schemas.go`, cel-go `checker/types.go`).

use std::fmt;

use super::Result;
use super::parse::RESERVED;
use crate::schema::{Additional, Schema};
use crate::yaml::Node;

/// The type of an expression.
#[derive(Clone, Debug)]
pub(super) enum Type<'s> {
    /// Known only when the expression is evaluated; fits everything.
    Dyn,
    /// The value of a property, which is like that, but whose items macros do not go through.
    Any,
    /// A type without parts, by its name.
    Named(&'static str),
    List(Box<Self>),
    Map(Box<Self>, Box<Self>),
    Optional(Box<Self>),
    /// A type as a value, such as `int`.
    Kind,
    /// An object with the fields that a schema names.
    Object(Object<'s>),
    /// In the declaration of a function: any type, the same wherever this number stands.
    Parameter(usize),
}

/// A schema of fields. Two of them are the same type only when they stand at the same place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Object<'s> {
    schema: &'s Node<'s>,
    /// Whether it has `apiVersion`, `kind` and `metadata` whatever the schema says.
    is_resource: bool,
}

pub(super) const BOOL: Type<'static> = Type::Named("bool");
pub(super) const INT: Type<'static> = Type::Named("int");
pub(super) const STRING: Type<'static> = Type::Named("string");
/// Names of types, which are values too.
pub(super) const TYPES: [&str; 10] =
    ["bool", "bytes", "double", "int", "list", "map", "null_type", "string", "type", "uint"];
/// The metadata of an object, of which rules see the names alone.
const METADATA: &str = "ObjectMeta";

/// The name of the type of null.
const NULL: &str = "null_type";

/// The most parts of a type that are told apart.
const MAX_PARTS: usize = 100;

/// The most parameters that a declaration has.
pub(super) const PARAMETERS: usize = 2;

/// What the parameters of a declaration stand for, as far as operands have told.
pub(super) type Bound<'s> = [Option<Type<'s>>; PARAMETERS];

impl<'s> Type<'s> {
    /// The type of values that follow a schema; none where rules cannot see them.
    pub(super) fn of(schema: Schema<'s, 's>, is_resource: bool) -> Option<Self> {
        if schema.flag("x-kubernetes-int-or-string") {
            return Some(Self::Dyn);
        }
        let named = match (schema.text("type").as_ref(), schema.text("format").as_ref()) {
            ("array", _) => {
                let items = schema.items()?;
                return Some(Self::List(Self::of_inner(items)?.into()));
            }
            ("object", _) => {
                return match schema.additional() {
                    Additional::Schema(values) => {
                        Some(Self::Map(STRING.into(), Self::of_inner(values)?.into()))
                    }
                    _ => Some(Self::Object(Object { schema: schema.0, is_resource })),
                };
            }
            ("string", "byte") => "bytes",
            ("string", "duration") => "Duration",
            ("string", "date" | "date-time") => "Timestamp",
            ("string", _) => "string",
            ("boolean", _) => "bool",
            ("integer", _) => "int",
            ("number", _) => "double",
            _ => return None,
        };
        Some(Self::Named(named))
    }

    fn of_inner(schema: Schema<'s, 's>) -> Option<Self> {
        Self::of(schema, schema.flag("x-kubernetes-embedded-resource"))
    }

    /// The type, or one that fits everything when it has grown beyond all that anybody writes: `[1].map(a, {a: a})` goes
    /// twice as deep with each such step.
    pub(super) fn bounded(self) -> Self {
        if self.parts() > MAX_PARTS { Self::Dyn } else { self }
    }

    /// Whether it is the metadata of an object.
    pub(super) fn is_metadata(&self) -> bool {
        matches!(self, Self::Named(METADATA))
    }

    fn parts(&self) -> usize {
        1 + match self {
            Self::List(of) | Self::Optional(of) => of.parts(),
            Self::Map(key, value) => key.parts() + value.parts(),
            _ => 0,
        }
    }

    /// The type of a field.
    pub(super) fn field(&self, name: &str) -> Result<Self> {
        match self {
            Self::Dyn | Self::Any => Ok(Self::Dyn),
            Self::Map(_, value) => Ok(value.as_ref().clone()),
            Self::Optional(inner) => Ok(Self::Optional(inner.field(name)?.into())),
            Self::Object(object) => object.field(name).ok_or_else(|| {
                let known: Vec<_> = object.fields().collect();
                let meant = crate::suggest::did_you_mean(name, known.iter().map(String::as_str));
                let meant = meant.map_or(String::new(), |meant| format!("; {meant}"));
                format!("the schema has no field `{name}` here{meant}")
            }),
            Self::Named(METADATA) if matches!(name, "name" | "generateName") => Ok(STRING),
            other => Err(format!("{other} has no field `{name}`")),
        }
    }

    /// What the variables of a macro stand for: the items of a list with their numbers, the keys of a map with the values.
    pub(super) fn items(&self) -> Result<(Self, Self)> {
        match self {
            Self::Dyn => Ok((Self::Dyn, Self::Dyn)),
            Self::List(item) => Ok((INT, item.as_ref().clone())),
            Self::Map(key, value) => Ok((key.as_ref().clone(), value.as_ref().clone())),
            other => Err(format!("{other} has no items to go through")),
        }
    }

    /// Whether a value of this type may be one of another.
    pub(super) fn fits(&self, other: &Self) -> bool {
        self.fits_declared(other, &mut Bound::default())
    }

    /// Whether a value of this type may stand where a declaration wants another; binds the declaration's parameters.
    pub(super) fn fits_declared(&self, declared: &Type<'s>, bound: &mut Bound<'s>) -> bool {
        match (self, declared) {
            (_, Self::Parameter(number)) => match bound[*number].take() {
                None => {
                    bound[*number] = Some(self.clone());
                    true
                }
                Some(before) => {
                    let fits = self.fits(&before);
                    bound[*number] = Some(if fits { self.clone().join(before) } else { before });
                    fits
                }
            },
            (Self::Dyn | Self::Any, _) | (_, Self::Dyn | Self::Any) => true,
            (Self::Named(NULL), other) | (other, Self::Named(NULL)) => other.is_nullable(),
            (Self::Named(a), Self::Named(b)) => a == b,
            (Self::List(a), Self::List(b)) | (Self::Optional(a), Self::Optional(b)) => {
                a.fits_declared(b, bound)
            }
            (Self::Map(a, of_a), Self::Map(b, of_b)) => {
                a.fits_declared(b, bound) && of_a.fits_declared(of_b, bound)
            }
            (Self::Kind, Self::Kind) => true,
            (Self::Object(a), Self::Object(b)) => std::ptr::eq(a.schema, b.schema),
            _ => false,
        }
    }

    /// Whether null may stand for it: for objects and what clusters add to the language, not for what JSON knows.
    fn is_nullable(&self) -> bool {
        match self {
            Self::Named(name) => !matches!(*name, "bool" | "int" | "uint" | "double" | "string" | "bytes"),
            Self::Object(_) | Self::Optional(_) => true,
            _ => false,
        }
    }

    /// The more general of two types that fit each other.
    pub(super) fn join(self, other: Self) -> Self {
        if self.is_as_general_as(&other) { self } else { other }
    }

    fn is_as_general_as(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Dyn | Self::Any, _) => true,
            (Self::List(a), Self::List(b)) | (Self::Optional(a), Self::Optional(b)) => a.is_as_general_as(b),
            (Self::Map(a, of_a), Self::Map(b, of_b)) => a.is_as_general_as(b) && of_a.is_as_general_as(of_b),
            (_, Self::Dyn | Self::Any) => false,
            _ => self.fits(other),
        }
    }

    /// A declared type with its parameters filled in; what no operand has told is known only when the rule runs.
    pub(super) fn filled_in(&self, bound: &Bound<'s>) -> Type<'s> {
        let inner = |of: &Self| Box::new(of.filled_in(bound));
        match self {
            Self::Parameter(number) => bound[*number].clone().unwrap_or(Type::Dyn),
            Self::List(of) => Type::List(inner(of)),
            Self::Optional(of) => Type::Optional(inner(of)),
            Self::Map(key, value) => Type::Map(inner(key), inner(value)),
            other => other.clone(),
        }
    }
}

impl<'s> Object<'s> {
    fn field(self, name: &str) -> Option<Type<'s>> {
        match name {
            "apiVersion" | "kind" if self.is_resource => return Some(STRING),
            "metadata" if self.is_resource => return Some(Type::Named(METADATA)),
            _ => {}
        }
        Type::of_inner(property(Schema(self.schema), name)?)
    }

    /// The names that rules know its fields by.
    fn fields(self) -> impl Iterator<Item = String> {
        Schema(self.schema).properties().filter_map(|(entry, _)| escape(&entry.key))
    }
}

impl fmt::Display for Type<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dyn => f.write_str("dyn"),
            Self::Any => f.write_str("any"),
            Self::Named(name) => f.write_str(name),
            Self::List(item) => write!(f, "list({item})"),
            Self::Map(key, value) => write!(f, "map({key}, {value})"),
            Self::Optional(inner) => write!(f, "optional({inner})"),
            Self::Kind => f.write_str("type"),
            Self::Object(_) => f.write_str("object"),
            Self::Parameter(number) => write!(f, "{number}"),
        }
    }
}

/// The property that rules know by a name.
pub(super) fn property<'s>(schema: Schema<'s, 's>, name: &str) -> Option<Schema<'s, 's>> {
    let is_named = |key: &str| escape(key).as_deref() == Some(name);
    if !name.contains("__") {
        // Nothing is escaped in it, so it can be looked up.
        return schema.property(name).filter(|_| is_named(name));
    }
    schema.properties().find(|(entry, _)| is_named(&entry.key)).map(|(_, property)| property)
}

/// The name that rules know a field by, none for those that they cannot reach.
fn escape(field: &str) -> Option<String> {
    if RESERVED.contains(&field) {
        return Some(format!("__{field}__"));
    }
    if field.is_empty() || field.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    if field.contains(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-' | '/'))) {
        return None;
    }
    let escaped = field.replace("__", "__underscores__").replace('.', "__dot__");
    Some(escaped.replace('-', "__dash__").replace('/', "__slash__"))
}
