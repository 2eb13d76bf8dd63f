//! Logs: one JSON object a line, with the object, the reconcile's id and what went wrong and why.

use tracing_subscriber::{EnvFilter, filter::ParseError};

/// An error with all its causes, in one line.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text += &format!(": {error}");
        cause = error.source();
    }
    text
}

/// Begins to log to stderr.
///
/// # Errors
/// When the filter cannot be read.
pub fn start(filter: &str) -> Result<(), ParseError> {
    let parsed = EnvFilter::builder().parse(filter)?;
    let subscriber = tracing_subscriber::fmt()
        .json()
        .flatten_event(true)
        .with_current_span(true)
        .with_span_list(false)
        .with_env_filter(parsed)
        .with_writer(std::io::stderr);
    // A test may have set one: then that one is used.
    let _ = subscriber.try_init();
    Ok(())
}
