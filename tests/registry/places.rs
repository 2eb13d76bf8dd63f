//! Every kind of place and every kind of registry: what goes in comes out, and skopeo reads it.

use std::fs;
use std::slice::from_ref;

use libtest_mimic::Trial;
use olmkit::image::{GivenCredentials, Options, Place, Root, Unpack};
pub(crate) use olmkit_serve::chain;

use crate::server::{Kind, PASSWORD, Registry, USER, access, image, index, noise, output, quick, sha256};
use crate::support::trial;

pub(crate) fn trials() -> Vec<Trial> {
    let registry = ["docker-registry"];
    let both = ["docker-registry", "skopeo"];
    vec![
        trial("images_come_back_as_they_were_sent", &registry, || {
            let registry = Registry::start(Kind::Plain);
            for (tag, root) in [("one", one()), ("several", index(&files()))] {
                let stored =
                    registry.place(&format!("team/app:{tag}")).store(&root, &access(quick())).unwrap();
                assert_eq!(stored.digest, root.digest());
                assert_eq!(registry.digest("team/app", tag), Some(root.digest().to_string()));
                check_same(&registry.place(&format!("team/app:{tag}")), &root, quick());
                check_same(&registry.place(&format!("team/app@{}", root.digest())), &root, quick());
            }
            Ok(())
        }),
        trial("a_login_is_needed_where_it_is_asked_for", &registry, || {
            let registry = Registry::start(Kind::Basic);
            let place = registry.place("team/app:v1");
            let none = place.store(&one(), &access(no_files())).unwrap_err();
            assert!(chain(&none).contains("not logged in"), "{}", chain(&none));
            let wrong = place.store(&one(), &access(given(&registry, "hunter2"))).unwrap_err();
            assert!(chain(&wrong).contains("to user `alice`"), "{}", chain(&wrong));
            assert!(!chain(&wrong).contains("hunter2"));
            assert!(registry.tags("team/app").is_empty());
            place.store(&one(), &access(given(&registry, PASSWORD))).unwrap();
            check_same(&place, &one(), given(&registry, PASSWORD));
            Ok(())
        }),
        trial("credentials_come_from_dockers_file", &registry, || {
            let registry = Registry::start(Kind::Basic);
            let dir = tempfile::tempdir().unwrap();
            let file = dir.path().join("config.json");
            // "alice:correct-horse-battery"
            let entry = "YWxpY2U6Y29ycmVjdC1ob3JzZS1iYXR0ZXJ5";
            fs::write(&file, format!(r#"{{"auths":{{"{}":{{"auth":"{entry}"}}}}}}"#, registry.host)).unwrap();
            let options = Options { auth_file: Some(file), ..quick() };
            registry.place("team/app:v1").store(&one(), &access(options)).unwrap();
            assert_eq!(registry.tags("team/app"), ["v1"]);
            Ok(())
        }),
        trial("certificates_count", &registry, || {
            let registry = Registry::start(Kind::Tls);
            let place = registry.place("team/app:v1");
            let tls = || Options { plain_http: Default::default(), ..quick() };
            let unknown = place.store(&one(), &access(tls())).unwrap_err();
            assert!(chain(&unknown).contains("has a certificate that is not trusted"), "{}", chain(&unknown));
            let trusting = || Options { ca_files: vec![registry.certificate()], ..tls() };
            place.store(&one(), &access(trusting())).unwrap();
            check_same(&place, &one(), trusting());
            let careless = Options { insecure: [registry.host.clone()].into(), ..tls() };
            check_same(&place, &one(), careless);
            let dir = tempfile::tempdir().unwrap();
            let empty = dir.path().join("empty.pem");
            fs::write(&empty, "no certificate").unwrap();
            let useless = Options { ca_files: vec![empty], ..tls() };
            let error = chain(&place.load(&access(useless)).unwrap_err());
            assert!(error.contains("cannot use the certificates in"), "{error}");
            Ok(())
        }),
        trial("a_host_of_this_machine_may_speak_plain_http", &registry, || {
            let registry = Registry::start(Kind::Plain);
            let options = Options { plain_http: Default::default(), ..quick() };
            registry.place("team/app:v1").store(&one(), &access(options)).unwrap();
            assert_eq!(registry.tags("team/app"), ["v1"]);
            Ok(())
        }),
        trial("skopeo_reads_and_copies_every_image", &both, skopeo),
        trial("what_skopeo_writes_is_read", &both, || {
            let registry = Registry::start(Kind::Plain);
            let dir = tempfile::tempdir().unwrap();
            let at = |rest: &str| rest.replace("DIR", dir.path().to_str().unwrap());
            let ours = registry.place("team/app:v1");
            ours.store(&one(), &access(quick())).unwrap();
            let from = format!("docker://{}/team/app:v1", registry.host);
            for to in [
                "oci:DIR/layout:v1",
                "oci-archive:DIR/oci.tar:v1",
                "docker-archive:DIR/docker.tar:example.com/a:v1",
            ] {
                output("skopeo", &["copy", "--src-tls-verify=false", &from, &at(to)]);
                let place: Place = at(to).parse().unwrap();
                let root = place.load(&access(quick())).unwrap();
                let tree = root.image(None).unwrap().unpack(&Unpack::default()).unwrap();
                assert_eq!(tree.file("large").unwrap().read().unwrap(), noise(2, 5 << 20), "{to}");
            }
            Ok(())
        }),
        trial("a_layout_and_a_registry_hold_the_same_bytes", &both, || {
            let registry = Registry::start(Kind::Plain);
            let dir = tempfile::tempdir().unwrap();
            let layout = dir.path().join("layout");
            let root = index(&files());
            format!("oci:{}:v1", layout.display())
                .parse::<Place>()
                .unwrap()
                .store(&root, &access(quick()))
                .unwrap();
            registry.place("team/app:v1").store(&root, &access(quick())).unwrap();
            let mut count = 0;
            for entry in fs::read_dir(layout.join("blobs/sha256")).unwrap() {
                let name = entry.unwrap().file_name().into_string().unwrap();
                assert!(registry.has_blob(&format!("sha256:{name}")), "{name}");
                count += 1;
            }
            assert_eq!(count, 7, "two layers, two configurations, two manifests, an index");
            Ok(())
        }),
        trial("between_repositories_of_a_registry_nothing_moves", &registry, || {
            let registry = Registry::start(Kind::Plain);
            registry.place("team/app:v1").store(&one(), &access(quick())).unwrap();
            let events = crate::uploads::Events::default();
            let access = olmkit::image::Access::new(quick(), events.shared());
            let loaded = registry.place("team/app:v1").load(&access).unwrap();
            registry.place("other/app:v2").store(&loaded, &access).unwrap();
            assert_eq!(registry.digest("other/app", "v2"), Some(one().digest().to_string()));
            assert_eq!(events.count("Uploaded"), 0, "{}", events.text());
            assert_eq!(events.count("Mounted"), 3, "{}", events.text());
            // The configuration was read, the layers were not.
            assert_eq!(events.count("Downloaded"), 1, "{}", events.text());
            Ok(())
        }),
        trial("what_is_there_is_not_sent_again", &registry, || {
            let registry = Registry::start(Kind::Plain);
            registry.place("team/app:v1").store(&one(), &access(quick())).unwrap();
            let events = crate::uploads::Events::default();
            let access = olmkit::image::Access::new(quick(), events.shared());
            let mut changed = files();
            changed[0].1 = b"changed".to_vec();
            let changed = Root::from(image("linux/amd64", &changed));
            registry.place("team/app:v2").store_also(&changed, &["latest".into()], &access).unwrap();
            assert_eq!(registry.tags("team/app"), ["latest", "v1", "v2"]);
            assert_eq!(registry.digest("team/app", "latest"), registry.digest("team/app", "v2"));
            // One layer and the configuration that names it.
            assert_eq!((events.count("Uploaded"), events.count("Exists")), (2, 1), "{}", events.text());
            Ok(())
        }),
        trial("a_dry_run_sends_nothing", &registry, || {
            let registry = Registry::start(Kind::Plain);
            let options = Options { dry_run: true, ..quick() };
            registry.place("team/app:v1").store(&one(), &access(options)).unwrap();
            assert!(registry.tags("team/app").is_empty());
            assert!(!registry.has_blob(&one().images()[0].layers()[0].digest().to_string()));
            Ok(())
        }),
        trial("the_cache_saves_the_second_pull", &registry, || {
            let registry = Registry::start(Kind::Plain);
            registry.place("team/app:v1").store(&one(), &access(quick())).unwrap();
            let dir = tempfile::tempdir().unwrap();
            let pull = || {
                let options = Options { cache_dir: Some(dir.path().into()), cache_limit: 1 << 30, ..quick() };
                let events = crate::uploads::Events::default();
                let access = olmkit::image::Access::new(options, events.shared());
                let root = registry.place("team/app:v1").load(&access).unwrap();
                root.image(None).unwrap().unpack(&Unpack::default()).unwrap();
                (events.count("Downloaded"), events.count("Cached"))
            };
            assert_eq!(pull(), (3, 0));
            assert_eq!(pull(), (0, 3));
            // Several at once, with damage in between.
            std::thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(pull);
                }
                for entry in fs::read_dir(dir.path().join("blobs/sha256")).unwrap().flatten() {
                    let _ = fs::write(entry.path(), "damaged");
                }
            });
            pull();
            assert_eq!(pull(), (0, 3));
            Ok(())
        }),
        trial("digests_and_platforms_of_many_names", &registry, lookups),
        trial("images_that_are_not_there", &registry, || {
            let registry = Registry::start(Kind::Plain);
            let error = registry.place("team/app:v1").load(&access(quick())).unwrap_err();
            assert!(chain(&error).contains("has no image `team/app:v1`"), "{}", chain(&error));
            let closed =
                crate::server::place(&format!("127.0.0.1:{}", crate::server::free_port()), "team/app:v1");
            let error = closed.load(&access(quick())).unwrap_err();
            assert!(chain(&error).contains("cannot reach"), "{}", chain(&error));
            Ok(())
        }),
    ]
}

/// What names lead to, asked for all at once; one that leads nowhere has an answer of its own.
fn lookups() -> Result<(), libtest_mimic::Failed> {
    use olmkit::image::{digests, platforms};

    let registry = Registry::start(Kind::Plain);
    let dir = tempfile::tempdir().unwrap();
    let events = crate::uploads::Events::default();
    let access = olmkit::image::Access::new(quick(), events.shared());
    registry.place("team/one:v1").store(&one(), &access).unwrap();
    registry.place("team/two:v1").store(&index(&files()), &access).unwrap();
    let layout: Place = format!("oci:{}:v1", dir.path().join("layout").display()).parse().unwrap();
    layout.store(&index(&files()), &access).unwrap();
    let pinned = registry.place(&format!("team/elsewhere@{}", one().digest()));
    let places = [
        registry.place("team/two:v1"),
        registry.place("team/none:v1"),
        layout,
        registry.place("team/one:v1"),
        pinned,
    ];

    let shown: Vec<String> = digests(&places, &access)
        .unwrap()
        .into_iter()
        .map(|answer| answer.map_or_else(|error| chain(&error), |digest| digest.to_string()))
        .collect();
    let (one, two) = (one().digest().to_string(), index(&files()).digest().to_string());
    assert_eq!([&shown[0], &shown[2], &shown[3], &shown[4]], [&two, &two, &one, &one]);
    assert!(shown[1].contains("has no image `team/none:v1`"), "{}", shown[1]);

    let shown: Vec<String> = platforms(&places, &access)
        .unwrap()
        .into_iter()
        .map(|answer| match answer {
            Ok(platforms) => platforms.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "),
            Err(error) => chain(&error),
        })
        .collect();
    let both = "linux/amd64 linux/arm64";
    assert_eq!([&shown[0], &shown[2], &shown[3]], [both, both, "linux/amd64"]);
    assert!(shown[1].contains("has no image") && shown[4].contains("has no image"), "{shown:?}");
    assert_eq!(events.count("Downloaded"), 1, "the configuration of the image alone: {}", events.text());
    Ok(())
}

fn files() -> Vec<(&'static str, Vec<u8>)> {
    vec![("small", b"content".to_vec()), ("large", noise(2, 5 << 20))]
}

fn one() -> Root {
    image("linux/amd64", &files()).into()
}

fn no_files() -> Options {
    let nowhere = tempfile::NamedTempFile::new().unwrap();
    let (_, path) = nowhere.keep().unwrap();
    Options { auth_file: Some(path), ..quick() }
}

fn given(registry: &Registry, password: &str) -> Options {
    let credentials: GivenCredentials = format!("{}={USER}:{password}", registry.host).parse().unwrap();
    Options { credentials: vec![credentials], ..no_files() }
}

/// Pulls an image and compares it with what was sent.
fn check_same(place: &Place, sent: &Root, options: Options) {
    let found = place.load(&access(options)).unwrap();
    assert_eq!(found.digest(), sent.digest());
    let tree = found.image(None).unwrap().unpack(&Unpack::default()).unwrap();
    for (path, content) in files() {
        assert_eq!(tree.file(path).unwrap().read().unwrap(), content, "{path}");
    }
}

/// Images of every kind that we make, at every kind of place, read by skopeo; then copied by it, which reads every byte.
fn skopeo() -> Result<(), libtest_mimic::Failed> {
    use olmkit::image::{Compression, Config, FileTree, Image, Index, Layer};

    let registry = Registry::start(Kind::Plain);
    let dir = tempfile::tempdir().unwrap();
    let mut tree = FileTree::new();
    tree.add_file("small", "content").unwrap();
    tree.add_executable("bin/run", noise(1, 100_000)).unwrap();
    let gzip = Layer::build(&tree).unwrap();
    let zstd = Layer::build_with(&tree, Compression::Zstd).unwrap();
    let config = Config {
        labels: [("key".into(), "value".into())].into(),
        entrypoint: vec!["/bin/run".into()],
        cmd: vec!["serve".into()],
        env: [("A".into(), "1".into())].into(),
        user: Some("1001".into()),
        ports: [50051].into(),
    };
    let platform = |text: &str| text.parse().unwrap();
    let base = Image::new(&platform("linux/amd64"), &config, from_ref(&gzip));
    let images: [(&str, Root); 4] = [
        ("gzip", base.clone().into()),
        ("zstd", Image::new(&platform("linux/arm64"), &config, from_ref(&zstd)).into()),
        ("over", Image::on(&base, &Config::default(), from_ref(&zstd)).unwrap().into()),
        (
            "index",
            Index::new(vec![
                Image::new(&platform("linux/amd64"), &config, from_ref(&gzip)),
                Image::new(&platform("linux/arm/v7"), &config, &[gzip, zstd]),
            ])
            .unwrap()
            .into(),
        ),
    ];
    for (name, root) in images {
        for place in [
            format!("docker://{}/team/{name}:v1", registry.host),
            format!("oci:{}/layout-{name}:v1", dir.path().display()),
            format!("oci-archive:{}/{name}.tar:v1", dir.path().display()),
            format!("docker-archive:{}/{name}-docker.tar:example.com/team/{name}:v1", dir.path().display()),
        ] {
            place.parse::<Place>().unwrap().store(&root, &access(quick())).unwrap();
            let docker = place.starts_with("docker-archive");
            if !docker {
                // Docker's list has no digests; skopeo makes a manifest of its own.
                let raw = output("skopeo", &["inspect", "--raw", "--tls-verify=false", &place]);
                assert_eq!(sha256(raw.as_bytes()), root.digest().to_string(), "{place}");
            }
            let shown = output(
                "skopeo",
                &["inspect", "--config", "--tls-verify=false", "--override-arch", "amd64", &place],
            );
            assert!(
                name == "zstd" || shown.contains("\"key\": \"value\"") || shown.contains("\"key\":\"value\""),
                "{shown}"
            );
            let copy = format!("oci:{}/copy", dir.path().display());
            let all = if docker { "--format=oci" } else { "--all" };
            output("skopeo", &["copy", "--src-tls-verify=false", all, &place, &copy]);
            fs::remove_dir_all(dir.path().join("copy")).unwrap();
        }
    }
    Ok(())
}
