//! The Common Expression Language (CEL): constraints of OLM, and rules of `x-kubernetes-validations`.
//!
//! `lexer` cuts a text into tokens, `parse` makes a `tree` of them, `check` works out its `types` by the operators and functions
//! that are `declared`, and what it costs at most. Grammar, types and values are those of the language's definition (cel-spec
//! `doc/langdef.md`), as cel-go reads it. [`constraint`] is OLM's use, with an evaluator of our own; [`rule`] is the use of
//! Kubernetes, whose rules [`run`] runs by the crate `kube-cel`. `docs/design/cel.md` says why.
//!
//! Hostile texts are expected everywhere: depth, types and work are bounded.

pub mod constraint;
pub mod rule;
pub mod run;

mod check;
mod cost;
mod declared;
mod evaluate;
mod lexer;
mod parse;
mod size;
mod tree;
mod types;
mod value;

/// Whose expressions they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dialect {
    /// OLM's: the standard of the language.
    Constraint,
    /// Those of Kubernetes, with its libraries, optional values, and macros of two variables.
    Rule,
}

/// What went wrong, in words.
type Result<T, E = String> = std::result::Result<T, E>;

/// Deeper expressions are refused, as cel-go refuses them.
const MAX_DEPTH: usize = 250;

/// What may be nested deeper than this gets a stack of its own, which holds [`MAX_DEPTH`].
const DEEP: usize = 40;
const STACK: usize = 16 << 20;

/// Works on an expression with as many brackets where the stack holds all that is nested in it.
fn on_deep_stack<T: Send>(brackets: usize, work: impl FnOnce() -> T + Send) -> Result<T> {
    if brackets < DEEP {
        return Ok(work());
    }
    std::thread::scope(|threads| {
        let thread = std::thread::Builder::new().stack_size(STACK).spawn_scoped(threads, work);
        match thread.map(|thread| thread.join()) {
            Ok(Ok(done)) => Ok(done),
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            Err(error) => Err(format!("there is no memory to read it: {error}")),
        }
    })
}

/// How many signs of a text open something: what it makes is not nested deeper.
fn brackets(text: &str) -> usize {
    text.matches(['(', '[', '{', '?']).count()
}
