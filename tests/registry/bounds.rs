//! Nothing is waited for or repeated without end, however a registry behaves.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use libtest_mimic::{Failed, Trial};
use olmkit::image::{Blob, Image, Options, Patience, Place, Root, Unpack, digests};

use crate::command::{check, run, text, workplace};
use crate::places::chain;
use crate::server::{Kind, Registry, access, image, noise, place, quick, sha256};
use crate::stand_in::{Request, StandIn, say};
use crate::support::trial;

/// Longer than anything here takes, shorter than for ever.
const LONG: Duration = Duration::from_secs(120);

pub(crate) fn trials() -> Vec<Trial> {
    let registry = ["docker-registry"];
    vec![
        trial("a_copy_with_more_layers_than_may_move_at_once_ends", &registry, copies),
        trial("a_catalog_on_a_base_with_more_layers_than_may_move_at_once_is_pushed", &registry, bases),
        trial("an_upload_that_makes_no_progress_ends", &[], || {
            // 1,024 bytes have arrived, whatever is sent; or one more each time.
            for step in [0, 1] {
                let root = large();
                let registry = StandIn::start(move |request, stream| {
                    let (start, _) = span(request);
                    let range = format!("0-{}", (start * step).max(1023));
                    upload(request, stream, &[("Range", &range)], "202 Accepted")
                });
                let error = chain(&store(&registry, &root, quick()).unwrap_err());
                assert!(error.contains("has lost an upload: it has 1024 bytes of"), "{error}");
                let sent = registry.count("PATCH");
                assert!(sent <= 5, "{sent} parts were sent");
            }
            Ok(())
        }),
        trial("an_upload_that_moves_in_small_steps_ends_well", &[], || {
            // Of each part the first MiB arrives.
            let root = large();
            let registry = StandIn::start(|request, stream| {
                let (start, _) = span(request);
                let range = format!("0-{}", start + request.body.len().clamp(1, 1 << 20) - 1);
                upload(request, stream, &[("Range", &range)], "202 Accepted")
            });
            store(&registry, &root, quick()).unwrap();
            let size = root.images()[0].layers()[0].size();
            assert_eq!(registry.count("PATCH") as u64, size.div_ceil(1 << 20));
            Ok(())
        }),
        trial("a_registry_that_forgets_uploads_is_given_up", &[], || {
            let registry =
                StandIn::start(|request, stream| upload(request, stream, &[], "404 Upload unknown"));
            let error = chain(&store(&registry, &large(), quick()).unwrap_err());
            assert!(error.contains("has lost an upload"), "{error}");
            assert!(registry.count("POST") <= 5 * 2, "{} uploads were opened", registry.count("POST"));
            Ok(())
        }),
        trial("a_registry_that_is_always_busy_is_given_up", &[], || {
            for path in ["/v2/", "/v2/team"] {
                let registry = StandIn::unfriendly(move |request, stream| match &*request.path {
                    "/v2/" if path != "/v2/" => say(stream, "200 OK", &[], b""),
                    _ => say(stream, "429 Too many", &[("Retry-After", "0")], b""),
                });
                let error = store(&registry, &large(), quick()).unwrap_err();
                assert!(chain(&error).contains("rate limited by"), "{}", chain(&error));
                let asked = registry.requests().len();
                assert!(asked <= 1 + 2 * 5, "{asked} requests");
            }
            Ok(())
        }),
        trial("redirections_without_end_are_not_followed", &[], || {
            let registry = StandIn::unfriendly(|request, stream| match &*request.path {
                "/v2/" => say(stream, "200 OK", &[], b""),
                path => say(stream, "307 Elsewhere", &[("Location", &format!("{path}x"))], b""),
            });
            let error = load(&registry, quick()).unwrap_err();
            assert!(error.contains("it redirects too often"), "{error}");
            assert_eq!(registry.requests().len(), 1 + 6);
            Ok(())
        }),
        trial("tokens_that_are_never_taken_are_not_fetched_for_ever", &[], || {
            let tokens = StandIn::unfriendly(|_, stream| say(stream, "200 OK", &[], br#"{"token":"t"}"#));
            let wanted = format!("Bearer realm=\"http://{}/token\",service=\"x\"", tokens.host);
            let registry = StandIn::unfriendly(move |_, stream| {
                say(stream, "401 Who", &[("WWW-Authenticate", &wanted)], b"")
            });
            let error = load(&registry, quick()).unwrap_err();
            assert!(error.contains("not logged in"), "{error}");
            assert_eq!((tokens.requests().len(), registry.requests().len()), (2, 3));
            Ok(())
        }),
        trial("an_answer_that_trickles_is_given_up", &[], || {
            let root = one();
            let known = contents(&root);
            // Manifests, or only layers, come a few bytes at a time.
            for slow in ["/manifests/", "/blobs/"] {
                let known = known.clone();
                let registry = StandIn::start(move |request, stream| {
                    if !request.path.contains(slow) {
                        return serve(request, stream, &known);
                    }
                    write!(
                        stream,
                        "HTTP/1.1 200 OK\r\nContent-Length: 4000000\r\nConnection: close\r\n\r\n"
                    )?;
                    loop {
                        stream.write_all(b" ")?;
                        stream.flush()?;
                        // A slow line is made, not waited for.
                        thread::sleep(Duration::from_millis(20));
                    }
                });
                let silence = Duration::from_millis(300);
                let patience = Patience { attempts: 2, silence, ..quick().patience };
                let started = Instant::now();
                let error = load(&registry, Options { patience, ..quick() }).unwrap_err();
                assert!(error.contains("is too slow"), "{error}");
                assert!(started.elapsed() < LONG);
                // By the time for all that is ended too, when it is shorter.
                let timeout = Some(Duration::from_millis(100));
                let error = load(&registry, Options { timeout, ..quick() }).unwrap_err();
                assert!(error.contains("timed out after"), "{error}");
            }
            Ok(())
        }),
        trial("a_registry_that_cannot_be_reached_is_not_tried_for_every_name", &[], || {
            let registry = StandIn::unfriendly(|_, stream| say(stream, "503 Down", &[], b""));
            let names: Vec<Place> =
                (0..20).map(|number| place(&registry.host, &format!("team/app-{number}:v1"))).collect();
            let answers = digests(&names, &access(quick())).unwrap();
            for answer in answers {
                let error = chain(&answer.unwrap_err());
                assert!(error.contains("responded with status 503"), "{error}");
            }
            assert_eq!(registry.requests().len(), 5, "as often as for one name");
            Ok(())
        }),
        trial("the_time_for_all_ends_every_verb", &[], every_verb),
        trial("a_registry_that_falls_silent_is_not_asked_for_every_name", &[], || {
            let silence = Duration::from_millis(300);
            for tokens_too in [false, true] {
                let tokens = StandIn::unfriendly(|_, stream| stream.read(&mut [0]).map(drop));
                let wanted = format!("Bearer realm=\"http://{}/token\"", tokens.host);
                let registry = StandIn::unfriendly(move |request, stream| match &*request.path {
                    "/v2/" if tokens_too => say(stream, "401 Who", &[("WWW-Authenticate", &wanted)], b""),
                    "/v2/" => say(stream, "200 OK", &[], b""),
                    _ => stream.read(&mut [0]).map(drop),
                });
                let names: Vec<Place> =
                    (0..40).map(|number| place(&registry.host, &format!("team/app-{number}:v1"))).collect();
                let patience = Patience { attempts: 2, silence, ..quick().patience };
                for answer in digests(&names, &access(Options { patience, ..quick() })).unwrap() {
                    let error = chain(&answer.unwrap_err());
                    assert!(error.contains("does not answer"), "{error}");
                }
                // Those that were on their way at once.
                let asked = registry.requests().len() + tokens.requests().len();
                assert!(asked <= 1 + 4 * 2, "{asked} requests");
            }
            Ok(())
        }),
        trial("an_index_that_is_wrong_about_its_images_is_refused", &[], || {
            let image = image("linux/amd64", &[("a", b"a".to_vec())]);
            let mut known = contents(&image.clone().into());
            let child = |size: u64, extra: &str| {
                format!(
                    r#"{{"schemaVersion":2,"mediaType":"{INDEX}","manifests":[{{"mediaType":"{MANIFEST}","size":{size},"digest":"{}"}}]{extra}}}"#,
                    image.digest()
                )
            };
            let size = image.manifest().size();
            for (index, expected) in [
                (child(size + 1, ""), "should have"),
                (child(size, r#","config":{"mediaType":"x/y","size":1,"digest":"sha256:0"}"#), ""),
            ] {
                known.insert("v1".into(), (INDEX.into(), index.into_bytes()));
                let known = known.clone();
                let registry = StandIn::start(move |request, stream| serve(request, stream, &known));
                match load(&registry, quick()) {
                    Ok(()) => assert_eq!(expected, ""),
                    Err(error) => assert!(!expected.is_empty() && error.contains(expected), "{error}"),
                }
            }
            Ok(())
        }),
    ]
}

const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

/// What a registry has, by tag or digest: its kind and its bytes.
pub(crate) type Contents = BTreeMap<String, (String, Vec<u8>)>;

/// A registry's documents and blobs for an image that has the tag `v1`.
pub(crate) fn contents(root: &Root) -> Contents {
    let of = |blob: &Blob| {
        let bytes = blob.read(1 << 30).unwrap();
        (blob.digest().to_string(), (blob.media_type().to_string(), bytes))
    };
    let mut all: Contents = root
        .images()
        .iter()
        .flat_map(|image: &Image| {
            let mut blobs = vec![of(image.manifest()), of(image.configuration())];
            blobs.extend(image.layers().iter().map(of));
            blobs
        })
        .collect();
    let top = all[&root.digest().to_string()].clone();
    all.insert("v1".into(), top);
    all
}

/// Answers as a registry with these contents.
pub(crate) fn serve(request: &Request, stream: &mut TcpStream, contents: &Contents) -> std::io::Result<()> {
    let name = request.path.rsplit('/').next().unwrap_or_default();
    match contents.get(name) {
        None => say(stream, "404 Nothing", &[], b""),
        Some((kind, bytes)) => {
            let digest = sha256(bytes);
            let fields = [("Content-Type", kind.as_str()), ("Docker-Content-Digest", &digest)];
            let body: &[u8] = if request.method == "HEAD" { b"" } else { bytes };
            say(stream, "200 OK", &fields, body)
        }
    }
}

/// Answers as a registry without any blob, which says this of each part of an upload.
fn upload(
    request: &Request,
    stream: &mut TcpStream,
    fields: &[(&str, &str)],
    part: &str,
) -> std::io::Result<()> {
    let location = ("Location", "/v2/team/app/blobs/uploads/1");
    let is_upload = request.path.contains("/blobs/uploads/");
    match &*request.method {
        "POST" => say(stream, "202 Accepted", &[location], b""),
        "PATCH" => say(stream, part, &[&[location], fields].concat(), b""),
        "PUT" if is_upload && !part.starts_with('2') => say(stream, part, &[], b""),
        "PUT" => say(stream, "201 Created", &[], b""),
        "DELETE" => say(stream, "204 Gone", &[], b""),
        "HEAD" if request.path.contains("/manifests/") => say(stream, "200 OK", &[], b""),
        _ => say(stream, "404 Nothing", &[], b""),
    }
}

/// Which bytes of a blob a request carries, its end not included.
fn span(request: &Request) -> (usize, usize) {
    let range = request.field("content-range").and_then(|range| range.split_once('-'));
    let start = range.and_then(|(start, _)| start.parse().ok()).unwrap_or(0);
    (start, start + request.body.len())
}

/// An image with a layer that is sent in parts: two of them.
fn large() -> Root {
    image("linux/amd64", &[("large", noise(3, 18 << 20))]).into()
}

fn one() -> Root {
    image("linux/amd64", &[("a", noise(4, 10_000))]).into()
}

fn store(registry: &StandIn, root: &Root, options: Options) -> Result<(), olmkit::image::StoreError> {
    let options = Options { timeout: options.timeout.or(Some(LONG)), ..options };
    place(&registry.host, "team/app:v1").store(root, &access(options)).map(drop)
}

/// Reads an image, layers and all.
fn load(registry: &StandIn, options: Options) -> Result<(), String> {
    let options = Options { timeout: options.timeout.or(Some(LONG)), ..options };
    let root = place(&registry.host, "team/app:v1").load(&access(options)).map_err(|error| chain(&error))?;
    let image = root.image(None).map_err(|error| chain(&error))?;
    image.unpack(&Unpack::default()).map(drop).map_err(|error| chain(&error))
}

/// Whatever the other side does, `--timeout` ends the command, with its own exit code and without a trace.
fn every_verb() -> Result<(), Failed> {
    let dir = workplace();
    write(dir.path(), "catalog/catalog.yaml", "schema: olm.package\nname: a\n");
    let silent = StandIn::start(|_, stream| stream.read(&mut [0]).map(drop));
    let busy = StandIn::start(|_, stream| say(stream, "429 Busy", &[("Retry-After", "60")], b""));
    let half = StandIn::start(|_, stream| {
        write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{{")?;
        stream.flush()?;
        stream.read(&mut [0]).map(drop)
    });
    thread::scope(|scope| {
        for (number, host) in [&silent.host, &busy.host, &half.host].into_iter().enumerate() {
            let (dir, image, to) = (dir.path(), format!("{host}/team/app:v1"), format!("unpacked-{number}"));
            let manifest = format!("{to}.yaml");
            let container = format!("{{name: a, image: '{image}'}}");
            let spec = format!("spec: {{template: {{spec: {{containers: [{container}]}}}}}}");
            let head = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}";
            write(dir, &manifest, &format!("{head}\n{spec}\n"));
            scope.spawn(move || {
                for verb in [
                    ["image", "inspect", &image].as_slice(),
                    &["image", "digest", &image],
                    &["image", "copy", &image, &format!("oci:{to}:v1")],
                    &["bundle", "unpack", &image, "--output-dir", &to],
                    &["bundle", "push", "bundle", &image],
                    &["bundle", "build", "bundle", "--to", &image],
                    &["catalog", "push", "catalog", &image],
                    &["catalog", "build", "catalog", "--base", &image, "--to", &format!("oci:{to}:v1")],
                    &["catalog", "add", &to, &image, "--channels", "a"],
                    &["catalog", "render", &image],
                    &[
                        "bundle",
                        "generate",
                        &manifest,
                        "--package=a",
                        "--version=0.1.0",
                        "--pin-digests",
                        "--output-dir",
                        &to,
                    ],
                ] {
                    let started = Instant::now();
                    let output = run(dir, &[verb, &["--timeout", "1s"]].concat());
                    check(&output, 4);
                    assert!(started.elapsed() < Duration::from_secs(25), "{verb:?}: {:?}", started.elapsed());
                    let said = text(&output.stderr);
                    assert!(said.contains("timed out after 1 s"), "{verb:?}: {said}");
                    assert!(!dir.join(&to).exists(), "{verb:?}");
                }
            });
        }
    });
    Ok(())
}

/// Layers that have to be fetched before they can be sent, in every number that could make them wait for each other.
fn copies() -> Result<(), Failed> {
    let (from, to) = (Registry::start(Kind::Plain), Registry::start(Kind::Plain));
    for (parallel, layers) in [(1, 1), (1, 2), (1, 3), (4, 4), (4, 5), (4, 12)] {
        let name = format!("team/app:p{parallel}-{layers}");
        let files: Vec<(String, Vec<u8>)> =
            (0..layers).map(|number| (format!("f{number}"), noise(layers * 100 + number, 2000))).collect();
        let files: Vec<_> = files.iter().map(|(path, bytes)| (path.as_str(), bytes.clone())).collect();
        let root = Root::from(image("linux/amd64", &files));
        from.place(&name).store(&root, &access(quick())).unwrap();
        let access = access(Options { parallel, timeout: Some(LONG), ..quick() });
        let loaded = from.place(&name).load(&access).unwrap();
        let stored = to.place(&name).store(&loaded, &access);
        stored.unwrap_or_else(|error| panic!("{layers} layers, {parallel} at once: {}", chain(&error)));
        assert_eq!(to.digest("team/app", &format!("p{parallel}-{layers}")), Some(root.digest().to_string()));
    }
    Ok(())
}

/// The layers of a base have to be fetched while those of the catalog are sent ahead.
fn bases() -> Result<(), Failed> {
    let (dir, from, to) = (workplace(), Registry::start(Kind::Plain), Registry::start(Kind::Plain));
    let files: Vec<(String, Vec<u8>)> =
        (0..6).map(|number| (format!("f{number}"), noise(number, 2000))).collect();
    let files: Vec<_> = files.iter().map(|(path, bytes)| (path.as_str(), bytes.clone())).collect();
    from.place("base/opm:v1").store(&image("linux/amd64", &files).into(), &access(quick())).unwrap();
    write(dir.path(), "catalog/catalog.yaml", "schema: olm.package\nname: a\n");
    let base = format!("{}/base/opm:v1", from.host);
    for parallel in ["1", "4"] {
        let reference = format!("{}/team/catalog:p{parallel}", to.host);
        let build = ["catalog", "build", "catalog", "--base", &base, "--to", &reference];
        let more = ["--parallel", parallel, "--timeout", "120s", "--cache-limit", "0"];
        check(&run(dir.path(), &[build.as_slice(), &more].concat()), 0);
        let from = format!("{}/base/opm:v1", from.host);
        let copy = format!("{}/team/copy:p{parallel}", to.host);
        let copied = run(dir.path(), &[["image", "copy", &from, &copy].as_slice(), &more].concat());
        check(&copied, 0);
        assert!(text(&copied.stdout).contains(&copy), "{}", text(&copied.stdout));
    }
    Ok(())
}

fn write(dir: &Path, path: &str, text: &str) {
    let path = dir.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}
