//! Requests to registries and API servers, for users who want to see them: method, URL without secrets, status, duration.

use std::fmt::Display;
use std::sync::OnceLock;
use std::time::Duration;

/// Where requests are shown; nowhere until [`show`] says so.
static SHOWN: OnceLock<fn(&str)> = OnceLock::new();

/// Shows every request of the process from now on, one line each.
pub fn show(line: fn(&str)) {
    // The first value stays: a process has one command line.
    let _ = SHOWN.set(line);
}

/// Tells of a request that was answered with `status`, or was not answered, `duration` after it was sent. The body may still be
/// on its way. `url` must carry no secret: see [`without_secrets`].
pub(crate) fn tell(method: &impl Display, url: &str, status: Option<u16>, duration: Duration) {
    let Some(show) = SHOWN.get() else { return };
    let status = status.map_or_else(|| "no answer".to_owned(), |status| status.to_string());
    show(&format!("request: {method} {url} {status} {} ms", duration.as_millis()));
}

/// Tells that a token server of another name than the registry is sent the credentials for it. Every registry may name any.
pub(crate) fn tell_of_credentials(registry: &str, token_server: &str) {
    let line = line_of_credentials(registry, token_server);
    if let Some((show, line)) = SHOWN.get().zip(line) {
        show(&line);
    }
}

fn line_of_credentials(registry: &str, token_server: &str) -> Option<String> {
    let line =
        format!("request: the credentials for {registry} go to {token_server}, which it names for tokens");
    (registry != token_server).then_some(line)
}

/// A URL without user, password, query and fragment: registries redirect to addresses with a signature in the query.
pub(crate) fn without_secrets(url: &reqwest::Url) -> String {
    let mut url = url.clone();
    let has_query = url.query().is_some();
    // Only addresses without a host have no user, and those are never asked.
    let _ = (url.set_username(""), url.set_password(None));
    url.set_query(None);
    url.set_fragment(None);
    if has_query { format!("{url}?…") } else { url.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verbose_names_the_token_server_that_gets_credentials() {
        let line = line_of_credentials("registry.example.com", "auth.elsewhere.example").unwrap();
        assert!(line.contains("for registry.example.com go to auth.elsewhere.example"), "{line}");
        assert_eq!(line_of_credentials("quay.io", "quay.io"), None);
    }

    #[test]
    fn signatures_and_passwords_are_left_out_of_urls() {
        let shown = |url: &str| without_secrets(&url.parse().unwrap());
        assert_eq!(
            shown("https://me:word@cdn.example.com/a?X-Amz-Signature=abc#x"),
            "https://cdn.example.com/a?…"
        );
        assert_eq!(shown("https://registry.example.com/v2/"), "https://registry.example.com/v2/");
    }
}
