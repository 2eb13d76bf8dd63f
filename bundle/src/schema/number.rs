//! Numbers as clusters compare them with schemas.

use std::cmp::Ordering;
use std::fmt;

use crate::yaml::{Node, Value};

/// A number as clusters hold it: what JSON writes without a fraction and fits into 64 bits is an integer, the rest is not.
///
/// Limits are floats; clusters cut off their fraction before they compare an integer with them (kube-openapi
/// `pkg/validation/validate/values.go`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// An integer.
    Int(i64),
    /// Any other number.
    Float(f64),
}

impl Number {
    /// The number in a node, if it is one.
    pub fn of(node: &Node<'_>) -> Option<Self> {
        match node.value {
            Value::Int(value) => Some(Self::Int(value)),
            Value::UInt(value) => Some(Self::Float(value as f64)),
            Value::Float(value) => Some(Self::from(value)),
            _ => None,
        }
    }

    /// Whether it fits the type `integer`.
    pub fn is_integer(self) -> bool {
        match self {
            Self::Int(_) => true,
            Self::Float(value) => is_nearly_integer(value),
        }
    }

    /// Whether it fits `multipleOf`.
    ///
    /// ```
    /// use olmkit_bundle::schema::number::Number;
    /// assert!(Number::from(0.3).is_multiple_of(0.1));
    /// assert!(!Number::from(0.25).is_multiple_of(0.1));
    /// ```
    pub fn is_multiple_of(self, step: f64) -> bool {
        match self {
            _ if step <= 0.0 => false,
            // A step below 1 becomes 0, of which nothing is a multiple.
            Self::Int(value) => value.checked_rem(step as i64) == Some(0),
            Self::Float(value) => {
                is_nearly_integer(if step < 1.0 { 1.0 / step * value } else { value / step })
            }
        }
    }

    /// How it compares with `minimum` or `maximum`.
    pub fn compare(self, limit: f64) -> Ordering {
        match self {
            Self::Int(value) => value.cmp(&cut_off(limit)),
            Self::Float(value) => value.total_cmp(&limit),
        }
    }
}

impl From<f64> for Number {
    fn from(value: f64) -> Self {
        // Both ends are floats exactly.
        let fits = value.fract() == 0.0 && (-(2f64.powi(63))..2f64.powi(63)).contains(&value);
        if fits { Self::Int(value as i64) } else { Self::Float(value) }
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(value) => value.fmt(f),
            Self::Float(value) => value.fmt(f),
        }
    }
}

/// A limit without its fraction, as processors of clusters make it: one that is too large is the smallest.
fn cut_off(limit: f64) -> i64 {
    match Number::from(limit.trunc()) {
        Number::Int(limit) => limit,
        Number::Float(_) => i64::MIN,
    }
}

/// Whether clusters take a float for an integer: within 2^53, and above the next lower integer by no more than one part in a
/// thousand millions (go-openapi/swag `convert.go`).
fn is_nearly_integer(value: f64) -> bool {
    const MOST: f64 = ((1u64 << 53) - 1) as f64;
    const EPSILON: f64 = 1e-9;
    let lower = value.trunc();
    value.abs() <= MOST && (value == lower || lower > 0.0 && (value - lower) / (value + lower) < EPSILON)
}

/// The number in a node as a float, if it is one.
pub(super) fn as_float(value: &Node<'_>) -> Option<f64> {
    match value.value {
        Value::Int(value) => Some(value as f64),
        Value::UInt(value) => Some(value as f64),
        Value::Float(value) => Some(value),
        _ => None,
    }
}
