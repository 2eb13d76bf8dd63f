//! Registries, and what answers in their place, that say yes to what they did not do.

use std::io::{self, Write as _};
use std::net::TcpStream;

use libtest_mimic::{Failed, Trial};
use olmkit::image::{Options, Patience, Root};

use crate::places::chain;
use crate::server::{access, image, place, quick};
use crate::stand_in::{Request, StandIn, say};
use crate::support::trial;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("a_manifest_is_sent_with_its_type_and_no_other", &[], || {
            let registry = StandIn::start(|request, stream| match &*request.method {
                "POST" => say(stream, "202 Accepted", &[("Location", "/v2/team/app/blobs/uploads/1")], b""),
                "PUT" => say(stream, "201 Created", &[], b""),
                _ => say(stream, "404 Nothing", &[], b""),
            });
            // What it took is not there to be read again.
            let small = image("linux/amd64", &[("a", b"a".to_vec())]).into();
            let _ = place(&registry.host, "team/app:v1").store(&small, &access(quick()));
            let types = |request: &Request| {
                let types = request.fields.iter().filter(|(name, _)| name == "content-type");
                types.map(|(_, value)| value.clone()).collect::<Vec<_>>()
            };
            let requests = registry.requests();
            let manifest =
                requests.iter().find(|one| one.method == "PUT" && one.path.contains("/manifests/"));
            assert_eq!(types(manifest.unwrap()), ["application/vnd.oci.image.manifest.v1+json"]);
            assert!(requests.iter().all(|request| types(request).len() <= 1), "{requests:?}");
            Ok(())
        }),
        trial("a_registry_that_lets_nobody_in_says_so_itself", &[], || {
            let body = br#"{"errors": [{"code": "DENIED", "message": "blocked by the firewall"}]}"#;
            let registry = StandIn::unfriendly(move |_, stream| say(stream, "403 No", &[], body));
            let error = place(&registry.host, "team/app:v1").load(&access(quick())).unwrap_err();
            let said = chain(&error);
            assert!(said.contains("responded with status 403: blocked by the firewall"), "{said}");
            assert!(error.help().is_some_and(|help| help.contains("--creds")), "{:?}", error.help());
            Ok(())
        }),
        trial("a_manifest_that_is_taken_and_not_kept_is_noticed", &[], not_kept),
        trial("a_registry_that_is_late_with_its_manifests_is_waited_for", &[], late),
        trial("a_blob_that_is_elsewhere_is_looked_for_there", &[], elsewhere),
        trial("a_page_to_log_in_at_is_no_manifest", &[], page),
        trial("what_arrives_damaged_is_sent_again_and_named", &[], damaged),
    ]
}

fn one() -> Root {
    image("linux/amd64", &[("a", b"a".to_vec())]).into()
}

/// Answers a HEAD without saying how long the content is.
fn without_length(stream: &mut TcpStream, status: &str) -> io::Result<()> {
    write!(stream, "HTTP/1.1 {status}\r\nConnection: close\r\n\r\n")
}

/// A registry that has every blob, and says this of a manifest once it was put.
fn with_manifest(
    put: &'static str,
    head: impl Fn(usize) -> (&'static str, Vec<(&'static str, String)>) + Send + Sync + 'static,
) -> StandIn {
    let asked = std::sync::atomic::AtomicUsize::new(0);
    StandIn::start(move |request, stream| {
        match (request.method.as_str(), request.path.contains("/manifests/")) {
            ("HEAD", false) => without_length(stream, "200 OK"),
            ("PUT", true) => say(stream, put, &[], b"<html>"),
            ("HEAD", true) => {
                let (status, fields) = head(asked.fetch_add(1, std::sync::atomic::Ordering::SeqCst));
                let fields: Vec<(&str, &str)> =
                    fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
                say(stream, status, &fields, b"")
            }
            _ => say(stream, "404 Nothing", &[], b""),
        }
    })
}

fn pushed(registry: &StandIn) -> Result<(), String> {
    let patience = Patience { attempts: 2, ..quick().patience };
    let options = Options { patience, ..quick() };
    let stored = place(&registry.host, "team/app:v1").store(&one(), &access(options));
    stored.map(drop).map_err(|error| chain(&error))
}

fn not_kept() -> Result<(), Failed> {
    for put in ["200 OK", "201 Created", "202 Accepted"] {
        let error = pushed(&with_manifest(put, |_| ("404 Nothing", Vec::new()))).unwrap_err();
        assert!(error.contains("accepted `team/app:v1`, but does not serve it: it is not found"), "{error}");
        assert!(error.contains("no tag was set"), "{error}");
    }
    let other = format!("sha256:{}", "0".repeat(64));
    let digest = vec![("Docker-Content-Digest", other.clone())];
    let error = pushed(&with_manifest("201 Created", move |_| ("200 OK", digest.clone()))).unwrap_err();
    assert!(error.contains(&format!("it has the digest `{other}`")), "{error}");
    let page = vec![("Content-Type", "text/html".to_owned())];
    let error = pushed(&with_manifest("200 OK", move |_| ("200 OK", page.clone()))).unwrap_err();
    assert!(error.contains("`text/html` is there instead"), "{error}");
    // Who says nothing of digests, or does not answer such questions, is believed.
    for status in ["200 OK", "403 No", "405 No"] {
        pushed(&with_manifest("201 Created", move |_| (status, Vec::new()))).unwrap();
    }
    Ok(())
}

fn late() -> Result<(), Failed> {
    let digest = one().digest().to_string();
    let registry = with_manifest("201 Created", move |asked| {
        let fields = vec![("Docker-Content-Digest", digest.clone())];
        if asked == 0 { ("404 Nothing", Vec::new()) } else { ("200 OK", fields) }
    });
    Ok(pushed(&registry)?)
}

/// Where a registry sends those who ask for a blob decides whether it is there.
fn elsewhere() -> Result<(), Failed> {
    let with_blobs = |status: &'static str| {
        let storage = StandIn::start(move |_, stream| without_length(stream, status));
        let to = format!("http://{}/there", storage.host);
        let registry = StandIn::start(move |request, stream| {
            match (request.method.as_str(), request.path.contains("/manifests/")) {
                ("HEAD", false) => say(stream, "307 There", &[("Location", &to)], b""),
                (_, true) => say(stream, "201 Created", &[], b""),
                _ => say(stream, "500 Not taken", &[], b""),
            }
        });
        (storage, registry)
    };
    for status in ["200 OK", "403 Only GET is signed", "405 Only GET"] {
        let (_storage, registry) = with_blobs(status);
        pushed(&registry).unwrap();
        assert_eq!(registry.count("POST"), 0, "{status}");
    }
    let (_storage, registry) = with_blobs("404 Nothing");
    assert!(pushed(&registry).unwrap_err().contains("0 of 2 blobs"), "what is nowhere counts as there");
    assert!(registry.count("POST") > 0);
    // Round and round.
    let registry =
        StandIn::start(|request, stream| say(stream, "302 Here", &[("Location", &request.path)], b""));
    let error = pushed(&registry).unwrap_err();
    assert!(error.contains("0 of 2 blobs are there"), "{error}");
    Ok(())
}

/// A page to log in at, for whatever is asked, directly or after a redirection.
fn page() -> Result<(), Failed> {
    let html = [("Content-Type", "text/html; charset=utf-8")];
    let registry = StandIn::unfriendly(move |request, stream| {
        if request.path.starts_with("/v2/moved") {
            say(stream, "302 Log in", &[("Location", "/login")], b"")
        } else {
            say(stream, "200 OK", &html, b"<!DOCTYPE html><title>Sign in</title>")
        }
    });
    for name in ["team/app:v1", "moved/app:v1"] {
        let error = place(&registry.host, name).load(&access(quick())).unwrap_err();
        assert!(
            chain(&error).contains("answers with a web page, not as a registry does"),
            "{}",
            chain(&error)
        );
        assert!(error.help().is_some_and(|help| help.contains("a login page")), "{:?}", error.help());
    }
    let error = pushed(&registry).unwrap_err();
    assert!(error.contains("no tag was set") && error.contains("answers with a web page"), "{error}");
    Ok(())
}

/// A registry to which something else arrives than was sent: a few attempts, and their reason in the end.
fn damaged() -> Result<(), Failed> {
    let says = br#"{"errors":[{"code":"DIGEST_INVALID","message":"other content"}]}"#;
    let registry = StandIn::start(move |request, stream| match request.method.as_str() {
        "POST" => say(stream, "202 Accepted", &[("Location", "/v2/team/app/blobs/uploads/1")], b""),
        "PUT" => say(stream, "400 Bad", &[("Content-Type", "application/json")], says),
        _ => say(stream, "404 Nothing", &[], b""),
    });
    let error = pushed(&registry).unwrap_err();
    assert!(error.contains("received other bytes than were sent: other content"), "{error}");
    assert!(error.contains("0 of 2 blobs are there"), "{error}");
    let sent = registry.count("PUT");
    assert!((2..=4).contains(&sent), "two attempts for each of two blobs, and not {sent}");
    Ok(())
}
