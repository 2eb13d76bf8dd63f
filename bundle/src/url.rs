//! Addresses on the web as Go reads them: OLM's tools and Kubernetes judge by its `net/url`.
//!
//! Only what is judged is kept; nothing is decoded.

use std::net::Ipv6Addr;

/// The parts of an address, as they were written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Url<'a> {
    /// Such as `https`; empty if missing.
    pub scheme: &'a str,
    /// What stands before `@` in the authority.
    pub user: Option<&'a str>,
    /// The host with its port.
    pub host: &'a str,
    /// What follows `?`.
    pub query: &'a str,
    /// What follows `#`; a part of the path where requests are read.
    pub fragment: &'a str,
}

/// Why a text is no address.
type Why = &'static str;

const BAD_ESCAPE: Why = "`%` is not followed by two hexadecimal digits";

impl<'a> Url<'a> {
    /// Reads any address, also a relative one (Go's `url.Parse`).
    ///
    /// # Errors
    /// Says in words what is wrong.
    pub fn parse(text: &'a str) -> Result<Self, Why> {
        let (rest, fragment) = text.split_once('#').unwrap_or((text, ""));
        check_escapes(fragment)?;
        Ok(Self { fragment, ..Self::read(rest, false)? })
    }

    /// Reads an address that a request can be sent to: absolute, or a path from the root (Go's `url.ParseRequestURI`).
    ///
    /// ```
    /// use olmkit_bundle::url::Url;
    /// assert_eq!(Url::parse_request("https://example.com/docs").unwrap().host, "example.com");
    /// assert_eq!(Url::parse_request("example.com"), Err("it has no scheme such as `https://`"));
    /// ```
    ///
    /// # Errors
    /// Says in words what is wrong.
    pub fn parse_request(text: &'a str) -> Result<Self, Why> {
        Self::read(text, true)
    }

    fn read(text: &'a str, request: bool) -> Result<Self, Why> {
        if text.bytes().any(|byte| byte < b' ' || byte == 0x7f) {
            return Err("it has a control character");
        }
        let mut url = Url { scheme: "", user: None, host: "", query: "", fragment: "" };
        if request && text.is_empty() {
            return Err("it is empty");
        }
        if text == "*" {
            return Ok(url);
        }
        let (scheme, rest) = split_scheme(text)?;
        url.scheme = scheme;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        url.query = query;
        let mut path = rest;
        if !rest.starts_with('/') {
            if !scheme.is_empty() {
                return Ok(url);
            }
            if request {
                return Err("it has no scheme such as `https://`");
            }
            if rest.split('/').next().is_some_and(|segment| segment.contains(':')) {
                return Err("the first segment of its path has a colon");
            }
        }
        let has_authority = !scheme.is_empty() || !request && !rest.starts_with("///");
        if let Some(authority) = rest.strip_prefix("//").filter(|_| has_authority) {
            let (authority, behind) = authority.split_at(authority.find('/').unwrap_or(authority.len()));
            let (user, host) = match authority.rsplit_once('@') {
                Some((user, host)) => (Some(user), host),
                None => (None, authority),
            };
            check_host(scheme, host)?;
            if let Some(user) = user {
                if !user.bytes().all(|c| c.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&c)) {
                    return Err("the part before `@` has characters that are not allowed there");
                }
                check_escapes(user)?;
            }
            (url.user, url.host, path) = (user, host, behind);
        }
        check_escapes(path)?;
        Ok(url)
    }
}

fn split_scheme(text: &str) -> Result<(&str, &str), Why> {
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if at > 0 => {}
            b':' if at == 0 => return Err("there is nothing before the colon"),
            b':' => return Ok((&text[..at], &text[at + 1..])),
            _ => break,
        }
    }
    Ok(("", text))
}

fn check_escapes(text: &str) -> Result<(), Why> {
    let mut escapes = text.split('%').skip(1).map(str::as_bytes);
    let is_escape = |rest: &[u8]| rest.len() >= 2 && rest[..2].iter().all(u8::is_ascii_hexdigit);
    if escapes.all(is_escape) { Ok(()) } else { Err(BAD_ESCAPE) }
}

fn check_host(scheme: &str, host: &str) -> Result<(), Why> {
    let port = match (host.rfind('['), host.find(':')) {
        (Some(1..), _) => return Err("its host has a bracket"),
        (Some(0), _) => {
            let (address, port) =
                host[1..].rsplit_once(']').ok_or("its host has a bracket that is not closed")?;
            // A zone may follow the address.
            let address = address.split_once("%25").map_or(address, |(address, _)| address);
            if address.parse::<Ipv6Addr>().is_err() {
                return Err("the part in brackets is not an IPv6 address");
            }
            return if is_port(port) { Ok(()) } else { Err(BAD_PORT) };
        }
        (None, None) => "",
        (None, Some(first)) => {
            let strict = matches!(scheme.to_ascii_lowercase().as_str(), "http" | "https");
            &host[if strict { first } else { host.rfind(':').unwrap_or(first) }..]
        }
    };
    if !is_port(port) {
        return Err(BAD_PORT);
    }
    check_escapes(host)?;
    for (at, byte) in host.bytes().enumerate() {
        let escaped = || host.get(at + 1..at + 3).and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match byte {
            // Only what is not ASCII may be escaped in a host.
            b'%' if escaped().is_some_and(|byte| byte < 0x80 && byte != b'%') => return Err(BAD_HOST),
            b'%' | 0x80.. => {}
            _ if byte.is_ascii_alphanumeric() || b"-_.~!$&'()*+,;=:[]<>\"".contains(&byte) => {}
            _ => return Err(BAD_HOST),
        }
    }
    Ok(())
}

const BAD_PORT: Why = "the port after its host is not a number";
const BAD_HOST: Why = "its host has a character that is not allowed there";

fn is_port(text: &str) -> bool {
    text.is_empty() || text.strip_prefix(':').is_some_and(|port| port.bytes().all(|c| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests() {
        for good in [
            "https://example.com",
            "/docs",
            "//x y",
            "mailto:a b",
            "a:",
            "https://",
            "http://a:80/x?y#z",
            "http://ü.example/%20",
            "http://u:p@h",
            "http://[::1%25eth0]:80",
            "*",
            "ftp://a:b:80",
        ] {
            assert!(Url::parse_request(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "example.com/x",
            "www.example.com",
            ":x",
            "1a:b",
            "http://a b",
            "http://a:x",
            "http://a:1:2",
            "http://[::1",
            "http://[1.2.3.4]",
            "http://a[",
            "http://%41",
            "http://a/%zz",
            "http://a\n",
            "http://a{b",
            "http://ü@h",
            "https//example.com",
        ] {
            assert!(Url::parse_request(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn any_address() {
        let url = Url::parse("HTTPS://u@h:1/p?q#f").unwrap();
        assert_eq!(url, Url { scheme: "HTTPS", user: Some("u"), host: "h:1", query: "q", fragment: "f" });
        assert_eq!(Url::parse("x").map(|url| url.host), Ok(""));
        assert!(Url::parse("a b:c").is_err() && Url::parse("#%").is_err());
    }
}
