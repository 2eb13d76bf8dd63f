//! Where a registry sends its clients: elsewhere for what they read, never without TLS, and never to another registry than
//! the one that was named.

use std::fs;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use libtest_mimic::{Failed, Trial};
use olmkit::image::{GivenCredentials, Options, Root, Unpack, digests};

use crate::bounds::{contents, serve};
use crate::command::{check, run, text, workplace};
use crate::places::chain;
use crate::server::{Kind, PASSWORD, Registry, USER, access, image, noise, output, place, quick};
use crate::stand_in::{StandIn, say};
use crate::support::trial;

pub(crate) fn trials() -> Vec<Trial> {
    let registry = ["docker-registry"];
    vec![
        trial("what_is_elsewhere_is_read_there_without_credentials", &[], elsewhere),
        trial("redirections_within_a_registry_keep_the_credentials", &[], || {
            let root = one();
            let known = contents(&root);
            let registry = StandIn::unfriendly(move |request, stream| {
                if request.field("authorization") != Some(&login()) {
                    return say(stream, "401 Who", &[("WWW-Authenticate", "Basic realm=\"x\"")], b"");
                }
                match request.path.strip_prefix("/v2/team/app/") {
                    Some(rest) => {
                        say(stream, "308 Moved", &[("Location", &format!("/v2/new/app/{rest}"))], b"")
                    }
                    None if request.path == "/v2/" => say(stream, "200 OK", &[], b""),
                    None => serve(request, stream, &known),
                }
            });
            let loaded = place(&registry.host, "team/app:v1").load(&access(given(&registry.host))).unwrap();
            assert_eq!(loaded.digest(), root.digest());
            Ok(())
        }),
        trial("verbose_shows_redirections_without_their_signatures", &[], || {
            let other = StandIn::start(|_, stream| say(stream, "404 Nothing", &[], b""));
            let there = format!("http://{}/blob?X-Signature=s3cret", other.host);
            let home = StandIn::unfriendly(move |request, stream| match &*request.path {
                "/v2/" => say(stream, "200 OK", &[], b""),
                _ => say(stream, "307 There", &[("Location", &there)], b""),
            });
            let reference = format!("{}/team/app:v1", home.host);
            let output = run(workplace().path(), &["image", "digest", &reference, "-v"]);
            let told = text(&output.stderr);
            for line in [
                format!("http://{}/v2/team/app/manifests/v1 307 ", home.host),
                format!("http://{}/blob?… 404 ", other.host),
            ] {
                assert!(told.contains(&line), "no `{line}`: {told}");
            }
            assert!(told.contains("request: ") && !told.contains("X-Signature"), "{told}");
            Ok(())
        }),
        trial("the_greeting_may_be_elsewhere", &[], || {
            let root = one();
            let known = contents(&root);
            let other = StandIn::start(|_, stream| say(stream, "404 Nothing", &[], b""));
            let there = format!("http://{}/v2/", other.host);
            let registry = StandIn::unfriendly(move |request, stream| match &*request.path {
                "/v2/" => say(stream, "302 There", &[("Location", &there)], b""),
                _ => serve(request, stream, &known),
            });
            let loaded = place(&registry.host, "team/app:v1").load(&access(quick())).unwrap();
            assert_eq!(loaded.digest(), root.digest());
            Ok(())
        }),
        trial("an_upload_does_not_go_on_over_plain_http", &registry, || {
            let dir = workplace();
            let registry = Registry::start(Kind::Misled);
            let reference = format!("{}/team/echo:v1", registry.host);
            let certificate = registry.certificate();
            let push = ["bundle", "push", "bundle", &reference, "--ca-file", certificate.to_str().unwrap()];
            let output = run(dir.path(), &push);
            check(&output, 3);
            let said = text(&output.stderr);
            assert!(said.contains("redirects from HTTPS to plain HTTP at"), "{said}");
            assert!(said.contains("X-Forwarded-Proto"), "{said}");
            assert!(registry.tags("team/echo").is_empty());
            Ok(())
        }),
        trial("nothing_goes_to_docker_hub_unless_it_is_named", &[], docker_hub),
        trial("what_push_prints_can_be_pasted", &["docker-registry", "skopeo"], pasted),
    ]
}

fn one() -> Root {
    image("linux/amd64", &[("a", noise(4, 10_000))]).into()
}

fn login() -> String {
    format!("Basic {}", STANDARD.encode(format!("{USER}:{PASSWORD}")))
}

fn given(host: &str) -> Options {
    let credentials: GivenCredentials = format!("{host}={USER}:{PASSWORD}").parse().unwrap();
    Options { credentials: vec![credentials], ..quick() }
}

/// As public registries do it: the registry answers for itself, and sends on for everything else.
fn elsewhere() -> Result<(), Failed> {
    let root = one();
    let known = contents(&root);
    let other = StandIn::start(move |request, stream| serve(request, stream, &known));
    for status in ["301", "302", "303", "307", "308"] {
        let there = format!("http://{}", other.host);
        let home = StandIn::unfriendly(move |request, stream| {
            if request.field("authorization") != Some(&login()) {
                return say(stream, "401 Who", &[("WWW-Authenticate", "Basic realm=\"x\"")], b"");
            }
            match &*request.path {
                "/v2/" => say(stream, "200 OK", &[], b""),
                path => {
                    say(stream, &format!("{status} There"), &[("Location", &format!("{there}{path}"))], b"")
                }
            }
        });
        let place = place(&home.host, "team/app:v1");
        let access = access(given(&home.host));
        let found = digests(std::slice::from_ref(&place), &access).unwrap().remove(0);
        assert_eq!(found.unwrap_or_else(|error| panic!("{status}: {}", chain(&error))), root.digest());
        let loaded = place.load(&access).unwrap_or_else(|error| panic!("{status}: {}", chain(&error)));
        assert_eq!(loaded.digest(), root.digest());
        let tree = loaded.image(None).unwrap().unpack(&Unpack::default()).unwrap();
        assert_eq!(tree.file("a").unwrap().read().unwrap(), noise(4, 10_000));
        assert!(home.requests().iter().skip(1).all(|request| request.field("authorization").is_some()));
    }
    let seen = other.requests();
    assert!(seen.iter().any(|request| request.method == "HEAD"));
    assert!(seen.iter().any(|request| request.path.contains("/manifests/")));
    assert!(seen.iter().all(|request| request.field("authorization").is_none()), "{seen:?}");
    Ok(())
}

/// A word is a typing error more often than the name of a repository of Docker's.
fn docker_hub() -> Result<(), Failed> {
    let dir = workplace();
    fs::create_dir(dir.path().join("catalog")).unwrap();
    fs::write(dir.path().join("catalog/catalog.yaml"), "schema: olm.package\nname: a\n").unwrap();
    check(&run(dir.path(), &["bundle", "build", "bundle", "--to", "oci:images:team/app:v1"]), 0);
    let refused = |arguments: &[&str], help: &str| {
        let output = run(dir.path(), arguments);
        check(&output, 2);
        let said = text(&output.stderr);
        assert!(said.contains(help), "{arguments:?}: {said}");
    };
    refused(&["bundle", "push", "bundle", "foo"], "write `docker://foo` for Docker Hub, `HOST/foo`");
    refused(&["bundle", "push", "bundle", "team/foo:v1"], "`docker://team/foo:v1`");
    refused(&["bundle", "build", "bundle", "--to", "keda:v1"], "or `oci:keda:v1` for a directory");
    refused(&["catalog", "push", "catalog", "keda:v1"], "`docker://keda:v1`");
    refused(&["catalog", "build", "catalog", "--data-only", "--to", "keda:v1"], "`docker://keda:v1`");
    refused(&["image", "copy", "oci:images", "keda:v1"], "`docker://keda:v1`");
    refused(&["image", "digest", "keda:v1"], "`docker://keda:v1`");
    refused(
        &["bundle", "push", "oci:images:team/app:v1"],
        "`olmkit bundle push oci:images:team/app:v1 HOST/NAME:TAG`",
    );
    let install = ["operator", "install", "--bundle", "bundle", "-n", "echo", "--simulate", "cluster.json"];
    refused(&[install.as_slice(), &["--push-to", "me/try"]].concat(), "registry.example.com/me/try");
    Ok(())
}

/// A reference that a verb prints is one that verbs take.
fn pasted() -> Result<(), Failed> {
    let (dir, registry) = (workplace(), Registry::start(Kind::Plain));
    let run = |arguments: &[&str]| {
        let output = run(dir.path(), arguments);
        check(&output, 0);
        text(&output.stdout).trim_end().to_owned()
    };
    let digest = |repository: &str| registry.digest(repository, "v1").unwrap();
    let reference = format!("{}/team/echo:v1", registry.host);
    let bundle = run(&["bundle", "push", "bundle", &reference]);
    assert_eq!(bundle, format!("{reference}@{}", digest("team/echo")));

    run(&["catalog", "add", "catalog", &bundle, "--channels", "stable"]);
    let written = run(&["catalog", "render", "catalog"]);
    assert!(written.contains(&bundle), "{written}");
    run(&["bundle", "unpack", &bundle, "--output-dir", "unpacked"]);
    run(&["catalog", "render", &bundle]);
    assert_eq!(run(&["image", "digest", &bundle]), digest("team/echo"));
    let shown = run(&["image", "inspect", &bundle]);
    run(&["image", "inspect", shown.lines().next().unwrap()]);

    let reference = format!("{}/team/catalog:v1", registry.host);
    let catalog = run(&["catalog", "push", "catalog", &reference]);
    assert_eq!(catalog, format!("{reference}@{}", digest("team/catalog")));
    for verb in ["validate", "path", "render"] {
        run(&["catalog", verb, &catalog]);
    }
    let copied = run(&["image", "copy", &catalog, &format!("{}/other/catalog:v1", registry.host)]);
    let again = run(&["image", "copy", &copied, "oci:images:catalog"]);
    let (layout, _) = again.split_once(' ').unwrap();
    run(&["catalog", "list", "packages", layout]);
    // By digest alone, as skopeo has it.
    let by_digest = catalog.replace(":v1@", "@");
    output("skopeo", &["inspect", "--tls-verify=false", &format!("docker://{by_digest}")]);
    assert_eq!(run(&["image", "copy", &by_digest, &by_digest]), by_digest);
    Ok(())
}
