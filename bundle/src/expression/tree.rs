//! An expression that was read and typed.

use super::value::Value;

/// An expression. Chains are lists, so that its depth is no more than the depth of brackets and conditionals.
#[derive(Clone, Debug)]
pub(super) enum Expr {
    Literal(Value),
    /// The properties that the expression is asked about.
    Properties,
    /// The variable of a macro, by how many macros are around that one.
    Variable(usize),
    List(Vec<Expr>),
    Map(Vec<(Expr, Expr)>),
    Not(Box<Expr>),
    Minus(Box<Expr>),
    /// Operands from left to right, each with the operator before it.
    Chain(Box<Expr>, Vec<(&'static str, Expr)>),
    /// Condition, and what comes of it.
    Conditional(Box<[Expr; 3]>),
    /// A value and the way into it.
    Path(Box<Expr>, Vec<Step>),
    /// Whether a map has a field.
    Has(Box<Expr>, String),
    /// A function and its arguments.
    Call(String, Vec<Expr>),
}

/// One step into a value.
#[derive(Clone, Debug)]
pub(super) enum Step {
    Field(String),
    Index(Expr),
    /// A method and its arguments.
    Method(String, Vec<Expr>),
    /// A macro over the items of a list or the keys of a map, and the expressions in it.
    Macro(String, Vec<Expr>),
}
