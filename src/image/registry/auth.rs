//! What a registry wants to see before it answers: nothing, a password, or a token from somewhere else.
//!
//! <https://distribution.github.io/distribution/spec/auth/token/> and, for identity tokens,
//! <https://distribution.github.io/distribution/spec/auth/oauth/>.

use std::time::{Duration, Instant};

use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, WWW_AUTHENTICATE};
use reqwest::{Method, StatusCode, Url};
use serde::Deserialize;

use super::credentials::{Credentials, Secret};
use super::error::RegistryError;
use super::http::{Http, body, host_of, is_page, malformed, refusal};

/// The largest answer of an authorization server that is read, in bytes.
const MAX_TOKEN: u64 = 1 << 20;
/// How long a token is good when its server does not say; the specification's number.
const DEFAULT_LIFE: u64 = 60;
/// How long before its end a token is taken for spent.
const MARGIN: Duration = Duration::from_secs(5);

/// What a registry wants to see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Challenge {
    /// Nothing.
    Nothing,
    /// User and password.
    Basic,
    /// A token that `realm` gives out.
    Bearer { realm: Url, service: Option<String> },
}

/// A token, and until when it is good.
#[derive(Clone)]
pub(super) struct Token {
    header: HeaderValue,
    end: Instant,
}

impl Token {
    pub(super) fn header(&self) -> Option<HeaderValue> {
        (Instant::now() < self.end).then(|| self.header.clone())
    }
}

#[derive(Deserialize)]
struct TokenAnswer {
    token: Option<String>,
    access_token: Option<String>,
    expires_in: Option<u64>,
}

impl Challenge {
    /// What the answer to `GET /v2/` asks for.
    pub(super) fn of(url: &Url, status: StatusCode, headers: &HeaderMap) -> Result<Self, RegistryError> {
        if status != StatusCode::UNAUTHORIZED {
            return Ok(Self::Nothing);
        }
        let mut basic = false;
        for value in headers.get_all(WWW_AUTHENTICATE) {
            let Ok(value) = value.to_str() else { continue };
            for challenge in http_auth::parse_challenges(value).unwrap_or_default() {
                let parameter = |name: &str| {
                    let mut found = challenge.params.iter().filter(|(key, _)| key.eq_ignore_ascii_case(name));
                    found.next().map(|(_, value)| value.to_unescaped())
                };
                if challenge.scheme.eq_ignore_ascii_case("basic") {
                    basic = true;
                } else if challenge.scheme.eq_ignore_ascii_case("bearer") {
                    let realm = parameter("realm").and_then(|realm| realm.parse::<Url>().ok());
                    let realm = realm.filter(|realm| matches!(realm.scheme(), "http" | "https"));
                    let realm = realm
                        .ok_or_else(|| malformed(url, "it requires a token, but names no token server"))?;
                    if url.scheme() == "https" && realm.scheme() != "https" {
                        return Err(malformed(url, "it wants credentials to be sent over plain HTTP"));
                    }
                    return Ok(Self::Bearer { realm, service: parameter("service") });
                }
            }
        }
        if basic { Ok(Self::Basic) } else { Err(malformed(url, "it wants a login of an unknown kind")) }
    }
}

/// Gets a token for these scopes. Without credentials, one that anybody gets.
///
/// # Errors
/// The authorization server refuses, is unreachable, or its response is invalid.
pub(super) async fn token(
    http: &Http,
    realm: &Url,
    service: Option<&str>,
    scopes: &[String],
    credentials: Option<&Credentials>,
) -> Result<Token, RegistryError> {
    let asked = Instant::now();
    let request = match credentials {
        Some(Credentials::Identity { token }) => {
            let mut form = Url::parse("form:?").map_err(|_| malformed(realm, "no form"))?;
            form.query_pairs_mut()
                .append_pair("grant_type", "refresh_token")
                .append_pair("service", service.unwrap_or_default())
                .append_pair("client_id", "olmkit")
                .append_pair("scope", &scopes.join(" "))
                .append_pair("refresh_token", token.reveal());
            http.request(Method::POST, realm.clone())?
                .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
                .body(form.query().unwrap_or_default().to_owned())
        }
        _ => {
            let mut url = realm.clone();
            let query = service.map(|service| ("service", service)).into_iter();
            url.query_pairs_mut()
                .extend_pairs(query.chain(scopes.iter().map(|scope| ("scope", scope.as_str()))));
            let mut request = http.request(Method::GET, url)?;
            if let Some(basic) = credentials.and_then(Credentials::basic) {
                request = request.header(AUTHORIZATION, sensitive(&basic, realm)?);
            }
            request
        }
    };
    let response = http.send(request).await?;
    if !response.status().is_success() {
        return Err(refusal(response).await.into());
    }
    if is_page(&response) {
        return Err(RegistryError::WebPage { host: host_of(realm) });
    }
    let bytes = body(response, MAX_TOKEN).await?;
    // Not serde's own message: it may repeat the token.
    let answer: TokenAnswer =
        serde_json::from_slice(&bytes).map_err(|_| malformed(realm, "it returned an invalid token"))?;
    let text = answer.token.or(answer.access_token).filter(|token| !token.is_empty());
    let text = text.ok_or_else(|| malformed(realm, "it returned an empty token"))?;
    let life = Duration::from_secs(answer.expires_in.unwrap_or(DEFAULT_LIFE).clamp(DEFAULT_LIFE, 86_400));
    let header = sensitive(&Secret::from(format!("Bearer {text}")), realm)?;
    Ok(Token { header, end: asked + life - MARGIN })
}

/// A header that is left out of every log.
pub(super) fn sensitive(value: &Secret, url: &Url) -> Result<HeaderValue, RegistryError> {
    let header = HeaderValue::from_str(value.reveal());
    let mut header = header.map_err(|_| malformed(url, "the credentials for it have control characters"))?;
    header.set_sensitive(true);
    Ok(header)
}

#[cfg(test)]
mod tests {
    use super::*;
    use insta::assert_snapshot;

    fn check(url: &str, headers: &[&'static str]) -> String {
        let mut map = HeaderMap::new();
        for value in headers {
            map.append(WWW_AUTHENTICATE, HeaderValue::from_static(value));
        }
        match Challenge::of(&url.parse().unwrap(), StatusCode::UNAUTHORIZED, &map) {
            Ok(Challenge::Nothing) => "nothing".into(),
            Ok(Challenge::Basic) => "basic".into(),
            Ok(Challenge::Bearer { realm, service }) => format!("bearer {realm} {service:?}"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn what_registries_ask_for() {
        let url = "https://quay.io/v2/";
        assert_snapshot!(check(url, &[r#"Bearer realm="https://quay.io/v2/auth",service="quay.io",scope="a,b""#]), @r#"bearer https://quay.io/v2/auth Some("quay.io")"#);
        assert_snapshot!(check(url, &[r#"Basic realm="x", Bearer realm="https://a.example.com/t""#]), @"bearer https://a.example.com/t None");
        assert_snapshot!(check(url, &["Negotiate", r#"BASIC Realm="x""#]), @"basic");
        assert_snapshot!(check(url, &["Negotiate"]), @"invalid response from `quay.io`: it wants a login of an unknown kind");
        assert_snapshot!(check(url, &[]), @"invalid response from `quay.io`: it wants a login of an unknown kind");
        assert_snapshot!(check(url, &[r#"Bearer realm="file:///etc/passwd""#]), @"invalid response from `quay.io`: it requires a token, but names no token server");
        assert_snapshot!(check(url, &[r#"Bearer realm="http://quay.io/token""#]), @"invalid response from `quay.io`: it wants credentials to be sent over plain HTTP");
        assert_snapshot!(check("http://localhost:5000/v2/", &[r#"Bearer realm="http://localhost:5001/token""#]), @"bearer http://localhost:5001/token None");
    }
}
