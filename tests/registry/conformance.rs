//! What the distribution specification asks of registries, seen through our client on a real one:
//! <https://github.com/opencontainers/distribution-spec/blob/main/spec.md>. The cases are named as there.
//!
//! Of its parts, this has pull and push. Tag lists, referrers and deletion are what no verb asks for.

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};

use libtest_mimic::{Failed, Trial};
use olmkit::image::{Access, Options, Place, Root, Unpack};
use serde_json::json;

use crate::command::{check, run, text, workplace};
use crate::places::chain;
use crate::proxy::{Fault, Proxy};
use crate::server::{Kind, Registry, access, image, index, noise, place, quick, sha256};
use crate::stand_in::{StandIn, say};
use crate::support::trial;
use crate::uploads::Events;

/// Sizes around those where a client sends otherwise: in one request, in one part, in several.
const SIZES: [usize; 8] = [0, 1, 4 << 20, (4 << 20) + 1, 16 << 20, (16 << 20) + 1, 32 << 20, (32 << 20) + 1];

pub(crate) fn trials() -> Vec<Trial> {
    let registry = ["docker-registry"];
    vec![
        trial("pull_of_what_is_not_there", &registry, || {
            let registry = Registry::start(Kind::Plain);
            registry.place("team/app:v1").store(&small(), &access(quick())).unwrap();
            let nothing = format!("team/app@sha256:{}", "0".repeat(64));
            for missing in ["team/app:v2", "team/none:v1", &nothing] {
                let error = chain(&registry.place(missing).load(&access(quick())).unwrap_err());
                assert!(error.contains(&format!("has no image `{missing}`")), "{error}");
            }
            // A blob that is gone since, though its manifest is there.
            let loaded = registry.place("team/app:v1").load(&access(quick())).unwrap();
            let layer = loaded.image(None).unwrap().layers()[0].digest().to_string();
            fs::remove_file(registry.blob(&layer)).unwrap();
            let error = loaded.image(None).unwrap().unpack(&Unpack::default()).unwrap_err();
            assert!(chain(&error).contains(&format!("has no blob `{layer}`")), "{}", chain(&error));
            Ok(())
        }),
        trial("pull_by_tag_and_by_digest", &registry, || {
            let registry = Registry::start(Kind::Plain);
            let roots = [small(), index(&[("a", b"a".to_vec())])];
            for (tag, root) in ["one", "all"].into_iter().zip(&roots) {
                registry.place(&format!("team/app:{tag}")).store(root, &access(quick())).unwrap();
                for name in [format!("team/app:{tag}"), format!("team/app@{}", root.digest())] {
                    let found = registry.place(&name).load(&access(quick())).unwrap();
                    assert_eq!(found.digest(), root.digest(), "{name}");
                }
                // With both, the digest counts.
                let both = format!("team/app:other@{}", root.digest());
                assert_eq!(registry.place(&both).load(&access(quick())).unwrap().digest(), root.digest());
            }
            Ok(())
        }),
        trial("push_of_blobs_of_every_size_and_kind", &registry, artifact),
        trial("push_goes_on_where_a_part_broke_off", &registry, || {
            let registry = Registry::start(Kind::Plain);
            // Uploads and parts that it takes. docker-registry ends an upload of which it has more than it said last.
            for (number, (fault, expected)) in [
                (Fault::Hangup, (2, 4)),
                (Fault::Status(502, None), (2, 4)),
                (Fault::HalfRequest, (3, 5)),
                (Fault::LostAnswer, (3, 5)),
            ]
            .into_iter()
            .enumerate()
            {
                let seen = Arc::new(Mutex::new(Vec::<String>::new()));
                let lines = Arc::clone(&seen);
                // The second part of a blob of three meets the fault.
                let proxy = Proxy::with(&registry.host, quick().patience.silence, move |line| {
                    let mut lines = lines.lock().unwrap();
                    lines.push(line.to_owned());
                    let parts = lines.iter().filter(|line| line.starts_with("PATCH")).count();
                    if line.starts_with("PATCH") && parts == 2 { fault } else { Fault::None }
                });
                let root: Root = image("linux/amd64", &[("large", noise(7, 40 << 20))]).into();
                let tag = format!("v{number}");
                let name = format!("resume{number}/app:{tag}");
                let stored = place(&proxy.host, &name).store(&root, &access(quick()));
                stored.unwrap_or_else(|error| panic!("{fault:?}: {}", chain(&error)));
                assert_eq!(
                    registry.digest(&format!("resume{number}/app"), &tag),
                    Some(root.digest().to_string())
                );
                let seen = seen.lock().unwrap();
                let count = |start: &str| seen.iter().filter(|line| line.starts_with(start)).count();
                let asked = format!("GET /v2/resume{number}/app/blobs/uploads/");
                assert_eq!(count(&asked), 1, "{fault:?}: {seen:#?}");
                // One upload for the layer and one for the configuration; of three parts, one again, or all.
                assert_eq!((count("POST"), count("PATCH")), expected, "{fault:?}: {seen:#?}");
            }
            Ok(())
        }),
        trial("push_asks_again_what_has_become_of_an_upload", &registry, || {
            let registry = Registry::start(Kind::Plain);
            let seen = Arc::new(Mutex::new(Vec::<String>::new()));
            let lines = Arc::clone(&seen);
            // The second part is lost, and so is the first question for how much has arrived.
            let proxy = Proxy::with(&registry.host, quick().patience.silence, move |line| {
                let mut lines = lines.lock().unwrap();
                lines.push(line.to_owned());
                let asks = |line: &str| line.starts_with("GET") && line.contains("/blobs/uploads/");
                let parts = lines.iter().filter(|line| line.starts_with("PATCH")).count();
                let asked = lines.iter().filter(|line| asks(line)).count();
                let is_lost = (line.starts_with("PATCH") && parts == 2) || (asks(line) && asked == 1);
                if is_lost { Fault::Hangup } else { Fault::None }
            });
            let root: Root = image("linux/amd64", &[("large", noise(7, 40 << 20))]).into();
            place(&proxy.host, "team/app:v1").store(&root, &access(quick())).unwrap();
            assert_eq!(registry.digest("team/app", "v1"), Some(root.digest().to_string()));
            let seen = seen.lock().unwrap();
            let count = |start: &str| seen.iter().filter(|line| line.starts_with(start)).count();
            assert_eq!((count("POST"), count("PATCH")), (2, 4), "{seen:#?}");
            Ok(())
        }),
        trial("push_mounts_what_another_repository_has", &registry, || {
            let registry = Registry::start(Kind::Plain);
            registry.place("team/app:v1").store(&small(), &access(quick())).unwrap();
            let events = Events::default();
            let ours = Access::new(quick(), events.shared());
            let loaded = registry.place("team/app:v1").load(&ours).unwrap();
            registry.place("other/app:v1").store(&loaded, &ours).unwrap();
            assert_eq!((events.count("Mounted"), events.count("Uploaded")), (2, 0), "{}", events.text());

            // What the other repository lost since is sent instead.
            let events = Events::default();
            let ours = Access::new(quick(), events.shared());
            let loaded = registry.place("team/app:v1").load(&ours).unwrap();
            loaded.image(None).unwrap().unpack(&Unpack::default()).unwrap();
            fs::remove_dir_all(registry.repository("team/app").join("_layers")).unwrap();
            registry.place("third/app:v1").store(&loaded, &ours).unwrap();
            assert_eq!((events.count("Mounted"), events.count("Uploaded")), (0, 2), "{}", events.text());
            assert_eq!(registry.digest("third/app", "v1"), registry.digest("team/app", "v1"));
            Ok(())
        }),
        trial("push_of_a_manifest_waits_for_its_blobs", &registry, || {
            let registry = Registry::start(Kind::Plain);
            // A registry that speaks of blobs which it does not have is not believed twice.
            let proxy = Proxy::with(&registry.host, quick().patience.silence, |_| Fault::FalseHead);
            place(&proxy.host, "team/app:v1").store(&small(), &access(quick())).unwrap();
            assert_eq!(registry.digest("team/app", "v1"), Some(small().digest().to_string()));
            Ok(())
        }),
        trial("push_moves_tags_and_leaves_digests", &registry, || {
            let registry = Registry::start(Kind::Plain);
            let (first, second) = (small(), Root::from(image("linux/amd64", &[("a", b"b".to_vec())])));
            registry.place("team/app:v1").store(&first, &access(quick())).unwrap();
            let more = ["latest".to_owned()];
            registry.place("team/app:v1").store_also(&second, &more, &access(quick())).unwrap();
            assert_eq!(registry.digest("team/app", "v1"), Some(second.digest().to_string()));
            assert_eq!(registry.digest("team/app", "latest"), Some(second.digest().to_string()));
            let old = registry.place(&format!("team/app@{}", first.digest()));
            assert_eq!(old.load(&access(quick())).unwrap().digest(), first.digest());
            // Under a digest that is another image's, nothing is pushed.
            let error = old.store(&second, &access(quick())).unwrap_err();
            assert!(chain(&error).contains("the image's digest is"), "{}", chain(&error));
            let long = "x".repeat(129);
            let error = registry.place("team/app:v1").store_also(&second, &[long], &access(quick()));
            assert!(chain(&error.unwrap_err()).contains("is not a tag"));
            Ok(())
        }),
        trial("error_codes_are_told_and_end_as_they_should", &[], error_codes),
    ]
}

fn small() -> Root {
    image("linux/amd64", &[("a", b"a".to_vec())]).into()
}

/// What is no image travels too: an artifact with a subject, and layers of every size, byte for byte there and back.
fn artifact() -> Result<(), Failed> {
    let (dir, registry) = (workplace(), Registry::start(Kind::Plain));
    let layout = dir.path().join("layout");
    let blob = |bytes: &[u8], kind: &str| {
        let digest = sha256(bytes);
        write(&layout, &format!("blobs/sha256/{}", &digest[7..]), bytes);
        json!({"mediaType": kind, "digest": digest, "size": bytes.len()})
    };
    let layers: Vec<_> =
        SIZES.iter().map(|size| blob(&noise(*size as u64, *size), "application/x.test")).collect();
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "artifactType": "application/x.test",
        "config": blob(b"{}", "application/vnd.oci.empty.v1+json"),
        "layers": layers,
        "subject": {"mediaType": "application/vnd.oci.image.manifest.v1+json", "size": 3, "digest": sha256(b"abc")},
        "annotations": {"a": "b"},
    });
    let manifest = serde_json::to_vec_pretty(&manifest).unwrap();
    let mut descriptor = blob(&manifest, "application/vnd.oci.image.manifest.v1+json");
    descriptor["annotations"] = json!({"org.opencontainers.image.ref.name": "v1"});
    let index = json!({"schemaVersion": 2, "manifests": [descriptor]});
    write(&layout, "index.json", index.to_string().as_bytes());
    write(&layout, "oci-layout", br#"{"imageLayoutVersion":"1.0.0"}"#);

    let events = Events::default();
    let ours = Access::new(quick(), events.shared());
    let loaded =
        "oci:LAYOUT:v1".replace("LAYOUT", layout.to_str().unwrap()).parse::<Place>().unwrap().load(&ours);
    registry.place("team/artifact:v1").store(&loaded.unwrap(), &ours).unwrap();
    assert_eq!(registry.digest("team/artifact", "v1"), Some(sha256(&manifest)));
    assert_eq!(events.count("Uploaded"), SIZES.len() + 1, "{}", events.text());
    for size in SIZES {
        let digest = sha256(&noise(size as u64, size));
        assert_eq!(fs::metadata(registry.blob(&digest)).unwrap().len(), size as u64);
    }
    let back = format!("{}/team/artifact:v1", registry.host);
    check(&run(dir.path(), &["image", "copy", &back, "oci:back:v1"]), 0);
    for entry in fs::read_dir(layout.join("blobs/sha256")).unwrap() {
        let name = entry.unwrap().file_name();
        let there = fs::read(dir.path().join("back/blobs/sha256").join(&name)).unwrap();
        assert_eq!(sha256(&there)[7..], *name.to_str().unwrap());
    }
    Ok(())
}

/// Every code of the specification: what the user is told, how often it is tried, and how the command ends.
fn error_codes() -> Result<(), Failed> {
    let dir = workplace();
    // Status and code of the answer to a push, what is said, requests of the same kind, exit code.
    let cases = [
        ("400 Bad", "NAME_INVALID", "responded with status 400: told why", 1),
        ("401 Who", "UNAUTHORIZED", "refuses to write to `team/app`: not logged in: told why", 1),
        ("403 No", "DENIED", "refuses to write to `team/app`: not logged in: told why", 1),
        ("404 None", "NAME_UNKNOWN", "has no such repository", 1),
        ("405 No", "UNSUPPORTED", "responded with status 405: told why", 1),
        ("413 Big", "SIZE_INVALID", "responded with status 413: told why", 1),
        ("429 Busy", "TOOMANYREQUESTS", "rate limited by", 5),
        ("500 Down", "UNKNOWN", "responded with status 500: told why", 5),
        ("507 Full", "UNKNOWN", "responded with status 507: told why", 5),
    ];
    for (status, code, expected, attempts) in cases {
        for method in ["POST", "PUT"] {
            let body = json!({"errors": [{"code": code, "message": "told why", "detail": {"a": ["b"]}}]})
                .to_string();
            let registry = StandIn::start(move |request, stream| {
                let is_manifest = request.path.contains("/manifests/");
                match &*request.method {
                    "POST" if method == "POST" => say(stream, status, &[], body.as_bytes()),
                    "PUT" if is_manifest => say(stream, status, &[], body.as_bytes()),
                    "POST" => {
                        say(stream, "202 Accepted", &[("Location", "/v2/team/app/blobs/uploads/1")], b"")
                    }
                    "PUT" => say(stream, "201 Created", &[], b""),
                    _ => say(stream, "404 Nothing", &[], b""),
                }
            });
            let options = Options { parallel: 1, ..quick() };
            let error = place(&registry.host, "team/app:v1").store(&small(), &access(options)).unwrap_err();
            let error = chain(&error);
            assert!(error.contains("no tag was set") && error.contains(expected), "{method} {code}: {error}");
            let path = if method == "POST" { "/blobs/uploads/" } else { "/manifests/" };
            let is_it = |seen: &&crate::stand_in::Request| seen.method == method && seen.path.contains(path);
            assert_eq!(registry.requests().iter().filter(is_it).count(), attempts, "{method} {code}");
        }
    }
    // Codes that say that the manifest names what is not there: once more with all blobs, and no more.
    for code in ["MANIFEST_BLOB_UNKNOWN", "BLOB_UNKNOWN"] {
        let body = json!({"errors": [{"code": code}]}).to_string();
        let registry = StandIn::start(move |request, stream| match &*request.method {
            "POST" => say(stream, "202 Accepted", &[("Location", "/v2/team/app/blobs/uploads/1")], b""),
            "PUT" if request.path.contains("/manifests/") => say(stream, "404 Blob", &[], body.as_bytes()),
            "PUT" => say(stream, "201 Created", &[], b""),
            _ => say(stream, "404 Nothing", &[], b""),
        });
        let reference = format!("{}/team/echo:v1", registry.host);
        let output = run(dir.path(), &["bundle", "push", "bundle", &reference]);
        check(&output, 3);
        assert!(text(&output.stderr).contains("it reports blobs as missing"), "{}", text(&output.stderr));
        let manifests = registry.requests().iter().filter(|seen| seen.path.contains("/manifests/")).count();
        assert_eq!(manifests, 2, "{code}");
    }
    Ok(())
}

fn write(dir: &Path, path: &str, bytes: &[u8]) {
    let path = dir.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}
