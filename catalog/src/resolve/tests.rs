mod pruning;

use serde_json::json;

use super::*;
use crate::load::CatalogFiles;

/// A catalog written in lines: `PACKAGE CHANNEL NAME VERSION [replaces X] [property TYPE VALUE]…`. The first channel of a package is
/// its default.
fn catalog(lines: &str) -> CatalogFiles {
    let mut text = String::new();
    let mut packages: Vec<&str> = Vec::new();
    let mut channels: Vec<((&str, &str), Vec<Json>)> = Vec::new();
    for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [package, channel, name, version, rest @ ..] = &words[..] else { panic!("{line}") };
        let mut properties =
            vec![json!({"type": "olm.package", "value": {"packageName": package, "version": version}})];
        let mut entry = json!({ "name": name });
        let mut rest = rest.iter();
        while let Some(word) = rest.next() {
            match *word {
                "replaces" => entry["replaces"] = json!(rest.next().unwrap()),
                "skipRange" => entry["skipRange"] = json!(rest.next().unwrap().replace('_', " ")),
                kind => {
                    let value: Json = serde_json::from_str(rest.next().unwrap()).unwrap();
                    properties.push(json!({ "type": kind, "value": value }));
                }
            }
        }
        if !packages.contains(package) {
            packages.push(package);
            text += &json!({"schema": "olm.package", "name": package, "defaultChannel": channel}).to_string();
        }
        match channels.iter_mut().find(|(id, _)| *id == (*package, *channel)) {
            Some((_, entries)) => entries.push(entry),
            None => channels.push(((package, channel), vec![entry])),
        }
        text += &json!({"schema": "olm.bundle", "package": package, "name": name, "image": "x/y:z", "properties": properties})
            .to_string();
    }
    for ((package, name), entries) in channels {
        text += &json!({"schema": "olm.channel", "package": package, "name": name, "entries": entries})
            .to_string();
    }
    CatalogFiles::from_text("catalog.json", text)
}

/// Resolves Subscriptions `PACKAGE[=INSTALLED]` and other installed ones, `+NAME`, over catalogs; what comes last has the
/// highest priority.
fn answer(catalogs: &[&str], asked: &str) -> String {
    let files: Vec<_> = catalogs.iter().map(|lines| catalog(lines)).collect();
    let parsed: Vec<_> = files.iter().map(Catalog::parse).collect();
    let mut question = Question::default();
    for (at, catalog) in parsed.iter().enumerate() {
        question.catalogs.push(Offer { name: ["a", "b", "c"][at], catalog, priority: at as i32 });
    }
    for word in asked.split_whitespace() {
        let (package, installed) = word.split_once('=').unwrap_or((word, ""));
        let installed = word.strip_prefix('+').unwrap_or(installed);
        if !installed.is_empty() {
            let known = parsed.iter().find_map(|catalog| Existing::of_bundle(catalog, installed));
            question.existing.push(known.unwrap_or_else(|| Existing::of_name(installed)));
        }
        if !word.starts_with('+') {
            let installed = Some(installed.to_owned()).filter(|name| !name.is_empty());
            let package = package.to_owned();
            question.subscriptions.push(Subscription { package, installed, ..Subscription::default() });
        }
    }
    match resolve(&question) {
        Ok(found) => found
            .install
            .iter()
            .map(|new| {
                let dependency = if new.dependency { " (dependency)" } else { "" };
                format!("{} of {}{dependency}", new.csv, new.catalog)
            })
            .collect::<Vec<_>>()
            .join("\n"),
        Err(ResolveError::Unsatisfiable { constraints }) => constraints.join("\n"),
        Err(error) => format!("error: {error}"),
    }
}

#[test]
fn the_head_unless_its_requirement_cannot_be_met() {
    let lines = r#"
        app stable app.v1 1.0.0
        app stable app.v2 2.0.0 replaces app.v1 olm.gvk.required {"group":"db.io","version":"v1","kind":"Db"}
        db  stable db.v1  1.0.0 olm.gvk {"group":"db.io","version":"v1","kind":"Db"}
    "#;
    insta::assert_snapshot!(answer(&[lines], "app"), @r"
    app.v2 of a
    db.v1 of a (dependency)
    ");
    let without = lines.lines().filter(|line| !line.contains("db.v1")).collect::<Vec<_>>().join("\n");
    insta::assert_snapshot!(answer(&[&without], "app"), @"app.v1 of a");
    insta::assert_snapshot!(answer(&[&without], "app=app.v2"), @r"
    the Subscription to `app`, which has `app.v2` installed, wants the installed `app.v2`
    the installed `app.v2` requires the API `Db` (db.io/v1), which no catalog has
    ");
}

#[test]
fn one_hop_at_a_time() {
    let lines = "
        app stable app.v1 1.0.0
        app stable app.v2 2.0.0 replaces app.v1
        app stable app.v3 3.0.0 replaces app.v2 skipRange <1.0.0";
    insta::assert_snapshot!(answer(&[lines], "app=app.v1"), @"app.v2 of a");
    insta::assert_snapshot!(answer(&[lines], "app=app.v0.5.0"), @"app.v3 of a");
    insta::assert_snapshot!(answer(&[lines], "app=app.v3"), @"");
}

#[test]
fn a_dependency_comes_from_the_own_catalog_before_priority_decides() {
    let needs =
        r#"app stable app.v1 1.0.0 olm.package.required {"packageName":"db","versionRange":">=1.0.0"}"#;
    let own = format!("{needs}\ndb stable db.v1 1.0.0");
    let other = "db stable db.v2 2.0.0";
    let third = "db stable db.v3 3.0.0";
    insta::assert_snapshot!(answer(&[&own, other, third], "app"), @r"
    app.v1 of a
    db.v1 of a (dependency)
    ");
    insta::assert_snapshot!(answer(&[needs, other, third], "app"), @r"
    app.v1 of a
    db.v3 of c (dependency)
    ");
    insta::assert_snapshot!(answer(&[&own, other, third], "app +db.v2"), @r"app.v1 of a");
}

#[test]
fn two_operators_that_need_different_versions_of_a_third() {
    let lines = r#"
        app stable app.v1 1.0.0 olm.package.required {"packageName":"db","versionRange":"<2.0.0"}
        web stable web.v1 1.0.0 olm.package.required {"packageName":"db","versionRange":">=2.0.0"}
        db  stable db.v1  1.0.0
        db  stable db.v2  2.0.0 replaces db.v1
    "#;
    insta::assert_snapshot!(answer(&[lines], "app web"), @r"
    the Subscription to `app` wants `app.v1`
    the Subscription to `web` wants `web.v1`
    `app.v1` requires a bundle that is of package `db` in the range `<2.0.0`: `db.v1`
    `web.v1` requires a bundle that is of package `db` in the range `>=2.0.0`: `db.v2`
    `db.v1` and `db.v2` are of package `db`, of which a namespace may have only one
    ");
}

#[test]
fn an_orphan_is_in_the_way() {
    let lines = "app stable app.v1 1.0.0";
    insta::assert_snapshot!(answer(&[lines], "app +app.v1"), @r"
    the installed `app.v1` exists, and no Subscription refers to it
    the Subscription to `app` wants `app.v1`
    `app.v1` and the installed `app.v1` are of package `app`, of which a namespace may have only one
    ");
}

#[test]
fn compound_constraints_and_expressions() {
    let needs = |constraint: &str| {
        let lines = format!(
            r#"
            app stable app.v1 1.0.0 olm.constraint {constraint}
            db  stable db.v1  1.0.0 olm.label {{"label":"old"}} tier "silver"
            db  stable db.v2  2.0.0 replaces db.v1 tier "gold"
            "#
        );
        answer(&[&lines], "app")
    };
    insta::assert_snapshot!(
        needs(r#"{"all":{"constraints":[{"package":{"packageName":"db","versionRange":">=1.0.0"}},{"not":{"constraints":[{"cel":{"rule":"properties.exists(p,p.type=='tier'&&p.value=='gold')"}}]}}]}}"#),
        @r"
    app.v1 of a
    db.v1 of a (dependency)
    ");
    insta::assert_snapshot!(
        needs(r#"{"any":{"constraints":[{"gvk":{"group":"x","version":"v1","kind":"X"}},{"package":{"packageName":"db","versionRange":">2.0.0"}}]},"failureMessage":"why"}"#),
        @r"
    the Subscription to `app` wants `app.v1`
    `app.v1` requires a bundle that provides `X` (x/v1) or is of package `db` in the range `>2.0.0`, which no catalog has
    ");
    for (bad, why) in [
        (r#"{}"#, "a constraint is empty"),
        (r#"{"other":1}"#, "unknown field `other`"),
        (r#"{"cel":{"rule":"properties"}}"#, "it gives list(map(string, any)), expected bool"),
        (r#"{"package":{"packageName":"db","versionRange":""}}"#, "is not a version range"),
        (r#"[]"#, "not a map"),
    ] {
        let answer = needs(bad);
        assert!(answer.starts_with("error: `app.v1` requires") && answer.contains(why), "{answer}");
    }
}

#[test]
fn what_is_not_there() {
    insta::assert_snapshot!(
        answer(&["app stable app.v1 1.0.0"], "web"),
        @"the Subscription to `web` exists, and the catalog `a` has no package `web`"
    );
    insta::assert_snapshot!(
        answer(&["server stable server.v1 1.0.0"], "sever"),
        @"the Subscription to `sever` exists, and the catalog `a` has no package `sever`; did you mean `server`?"
    );
    let two_heads = "app stable app.v1 1.0.0\napp stable app.v2 2.0.0";
    insta::assert_snapshot!(
        answer(&[two_heads], "app"),
        @"error: the channel `stable` of `app` cannot be followed: it has several heads: `app.v1`, `app.v2`"
    );
}

#[test]
fn an_installed_csv_says_what_it_is() {
    let manifest = json!({
        "kind": "ClusterServiceVersion",
        "metadata": {"name": "db.v1"},
        "spec": {
            "version": "1.2.3",
            "install": {"strategy": "deployment"},
            "customresourcedefinitions": {"owned": [{"name": "dbs.db.io", "kind": "Db", "version": "v1"}]},
        },
    });
    let found = Existing::of_manifest(&manifest, ["db"]).unwrap();
    let kinds: Vec<_> = found.properties.iter().map(|(kind, value)| format!("{kind} {value}")).collect();
    insta::assert_snapshot!(kinds.join("\n"), @r#"
    olm.gvk {"group":"db.io","kind":"Db","version":"v1"}
    olm.package {"packageName":"db","version":"1.2.3"}
    "#);
    let mut copy = manifest.clone();
    copy["metadata"]["labels"] = json!({ "olm.copiedFrom": "elsewhere" });
    assert_eq!(Existing::of_manifest(&copy, []), None);
    assert_eq!(Existing::of_name("db.v1.2.3-rc.1").version.to_string(), "1.2.3-rc.1");
}

/// Both requirements are shown as `K` (g/v/1), and one of them is met.
#[test]
fn a_requirement_that_reads_like_another_is_not_met_by_it() {
    const LINES: &str = r#"
        a stable a.v1 1.0.0 olm.gvk.required {"group":"g/v","version":"1","kind":"K"}
        b stable b.v1 1.0.0 olm.gvk.required {"group":"g","version":"v/1","kind":"K"}
        c stable c.v1 1.0.0 olm.gvk {"group":"g/v","version":"1","kind":"K"}"#;
    assert!(answer(&[LINES], "a").contains("a.v1"), "{}", answer(&[LINES], "a"));
    for both in ["a b", "b a"] {
        let answer = answer(&[LINES], both);
        assert!(answer.contains("which no catalog has"), "{both}: {answer}");
    }
}
