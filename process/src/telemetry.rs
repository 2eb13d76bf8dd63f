//! Logs: one JSON object per line, with the object, the id of the reconcile, and errors with all their causes.

use std::future::{Ready, ready};

use tracing::debug;
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

/// For `for_each` on what a controller yields. A failed reconcile is logged where it is retried; this is about the queue, such
/// as an object that was deleted while it waited.
pub fn log_queue<T, E: std::error::Error + 'static>(result: Result<T, E>) -> Ready<()> {
    if let Err(error) = result {
        debug!(error = chain(&error), "queue");
    }
    ready(())
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
