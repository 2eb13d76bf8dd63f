//! An expression that was read.

use super::value::Value;

/// An expression. Chains are lists, so that its depth is no more than the depth of brackets and conditionals.
#[derive(Clone, Debug)]
pub(super) enum Expr {
    Literal(Value),
    /// What no macro around it names: a variable of the environment, or a type.
    Name(String),
    /// The variable of a macro, by how many there are around that one.
    Variable(usize),
    List(Vec<Item>),
    Map(Vec<(Expr, Item)>),
    /// `!` or `-` before an operand.
    Unary(&'static str, Box<Expr>),
    /// Operands from left to right, each with the operator before it.
    Chain(Box<Expr>, Vec<(&'static str, Expr)>),
    /// Condition, and what comes of it.
    Conditional(Box<[Expr; 3]>),
    /// A value and the way into it.
    Path(Box<Expr>, Vec<Step>),
    /// Whether the last step of a path leads to something: it is a field.
    Has(Box<Expr>, Vec<Step>),
    /// A function and its arguments.
    Call(String, Vec<Expr>),
}

/// An item of a list or a value of a map, optional with a `?` in front, as only rules have it.
#[derive(Clone, Debug)]
pub(super) struct Item {
    pub(super) expr: Expr,
    pub(super) is_optional: bool,
}

/// One step into a value; only rules have optional ones.
#[derive(Clone, Debug)]
pub(super) enum Step {
    /// A field; its name is in backquotes when that is how it has to be written.
    Field {
        name: String,
        is_quoted: bool,
        is_optional: bool,
    },
    Index {
        index: Expr,
        is_optional: bool,
    },
    /// A method and its arguments.
    Method(String, Vec<Expr>),
    /// A macro over items or entries, how many variables it has, and the expressions in it.
    Macro {
        name: String,
        variables: usize,
        body: Vec<Expr>,
    },
}
