//! Logs: one JSON object per line, with the object, the id of the reconcile, and errors with all their causes.

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

/// Starts logging to stderr.
///
/// # Errors
/// If the filter is invalid.
pub fn start(filter: &str) -> Result<(), ParseError> {
    let parsed = EnvFilter::builder().parse(filter)?;
    let subscriber = tracing_subscriber::fmt()
        .json()
        .flatten_event(true)
        .with_current_span(true)
        .with_span_list(false)
        .with_env_filter(parsed)
        .with_writer(std::io::stderr);
    // In tests, a subscriber may already be set; it is kept.
    let _ = subscriber.try_init();
    Ok(())
}
