//! What pages say, and what no text of a catalog can make of them.

use super::*;
use crate::load::CatalogFiles;

/// A package of which every text wants to be markup.
fn hostile() -> String {
    let evil = r#"</script><script>alert(1)</script><img src=x onerror=alert(2)>\" onload=\"alert(3)' ' `"#;
    let text = r#"
{"schema": "olm.package", "name": "EVIL", "defaultChannel": "EVIL", "description": "EVIL", "icon": {"base64data": "AA==", "mediatype": "image/png\"onerror=\"alert(4)"}}
{"schema": "olm.channel", "package": "EVIL", "name": "EVIL", "entries": [{"name": "EVIL"}, {"name": "b", "replaces": "EVIL", "skipRange": "<1.0.0"}]}
{"schema": "olm.deprecations", "package": "EVIL", "entries": [{"reference": {"schema": "olm.package"}, "message": "EVIL"}, {"reference": {"schema": "olm.bundle", "name": "EVIL"}, "message": "EVIL"}]}
{"schema": "olm.bundle", "package": "EVIL", "name": "EVIL", "image": "EVIL", "relatedImages": [{"name": "EVIL", "image": "EVIL"}], "properties": [{"type": "olm.package", "value": {"packageName": "EVIL", "version": "1.0.0"}}, {"type": "olm.csv.metadata", "value": {"displayName": "EVIL", "description": "EVIL", "crdDescriptions": {"owned": [{"kind": "EVIL", "name": "EVIL", "version": "EVIL", "description": "EVIL"}]}, "provider": {"name": "EVIL"}}}]}
"#;
    text.replace("EVIL", evil)
}

fn pages_of(text: &str) -> Vec<Page> {
    let files = CatalogFiles::from_text("<b>catalog</b>", text);
    pages(&Catalog::parse(&files))
}

#[test]
fn no_text_of_a_catalog_becomes_markup() {
    let pages = pages_of(&hostile());
    assert_eq!(pages.len(), 2);
    for page in &pages {
        // Our own elements only: two scripts on the page of a package, one of them data, and one on the list.
        let scripts = page.html.matches("<script").count();
        assert_eq!(scripts, if page.path == "index.html" { 1 } else { 2 }, "{}", page.path);
        assert_eq!(page.html.matches("</script>").count(), scripts);
        for markup in ["<img src=x", "<b>", " onload=\"", " onerror=\"", "image/png\""] {
            assert!(!page.html.contains(markup), "{markup} in {}", page.path);
        }
    }
    let safe = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '_' | '-' | '.');
    assert!(pages[1].path.chars().all(safe), "{}", pages[1].path);
    assert!(!pages[1].path.contains("..") && pages[1].path.matches('/').count() == 1);
}

/// The policy lets exactly the embedded script and style run.
#[test]
fn the_policy_names_what_is_embedded() {
    let page = pages_of("{schema: olm.package, name: redis}").remove(0).html;
    let between = |start: &str, end: &str| {
        let from = page.find(start).unwrap() + start.len();
        &page[from..from + page[from..].find(end).unwrap()]
    };
    for (directive, content) in
        [("script-src", between("<script>", "</script>")), ("style-src", between("<style>", "</style>"))]
    {
        let digest = STANDARD.encode(Sha256::digest(content));
        assert!(page.contains(&format!("{directive} 'sha256-{digest}'")), "{directive}");
    }
    assert!(page.contains("default-src 'none'") && !page.contains("unsafe"));
    for style in ["style=\"", "http://", "https://"] {
        assert!(!page.contains(style), "{style}");
    }
}

#[test]
fn the_page_of_a_package() {
    let text = "
{schema: olm.package, name: redis, defaultChannel: stable, description: \"# Redis\\n\\nA cache.\"}
---
{schema: olm.channel, package: redis, name: stable, entries: [{name: v1}, {name: v2, replaces: v1}, {name: v3, replaces: v2, skips: [v1]}]}
---
{schema: olm.deprecations, package: redis, entries: [{reference: {schema: olm.bundle, name: v1}, message: Too old.}]}
---
{schema: olm.bundle, package: redis, name: v1, image: 'x/y:1', properties: [{type: olm.package, value: {packageName: redis, version: 1.0.0}}]}
---
{schema: olm.bundle, package: redis, name: v2, image: 'x/y:2', properties: [{type: olm.package, value: {packageName: redis, version: 2.0.0}}, {type: olm.gvk, value: {group: g.io, kind: Redis, version: v1}}]}
---
{schema: olm.bundle, package: redis, name: v3, image: 'x/y:3', properties: [{type: olm.package, value: {packageName: redis, version: 3.0.0}}]}
";
    let pages = pages_of(text);
    assert!(pages[0].html.contains("<a href=\"packages/redis.html\">"));
    assert!(pages[0].html.contains("<p>A cache.</p>"));
    let page = &pages[1].html;
    assert!(page.contains(r#"[{"default":true,"entries":[{"deprecated":false,"name":"v3","v0":-1,"v1":-1,"version":"3.0.0"},{"deprecated":false,"name":"v2","v0":0,"v1":0,"version":"2.0.0"},{"deprecated":true,"name":"v1","v0":0,"v1":0,"version":"1.0.0"}],"head":0,"name":"stable"}]"#), "{page}");
    assert!(page.contains("<a class=\"row\" data-row=\"0\" href=\"#bundle-0\">"));
    assert!(page.contains("data-rows=\"1 2\""));
    assert!(page.contains("<strong>Deprecated.</strong> Too old."));
    assert!(page.contains("<td>Redis</td><td>v1</td><td>g.io</td>"));
}

#[test]
fn the_summary_of_a_description_is_text() {
    assert_eq!(
        without_markup("The `x` is **a** part of [cost](https://a.io/b) and [c] *d* [e](f"),
        "The x is a part of cost and [c] d [e](f"
    );
}

#[test]
fn a_summary_is_a_paragraph_of_text_and_ends_with_a_word() {
    let check = |description: &str, expected: &str| assert_eq!(summary(description), expected);
    check(
        "# Title\n\nA text of\nseveral lines, with [a link](https://a.io).\n\nAnother.",
        "A text of several lines, with a link.",
    );
    check(
        "[![badge](x)](y)\n[docs](https://a.io)\n[A product](https://a.io) does\n this.\n- item",
        "A product does this.",
    );
    check("", "");
    check("# Title", "");
    check("See <a href=\"https://a.io\">the docs</a>: a < b", "See the docs: a < b");
    let long = summary(&"word, ".repeat(100));
    assert!(long.ends_with("word…") && long.chars().count() <= 161, "{long}");
    assert_eq!(summary(&"x".repeat(200)), format!("{}…", "x".repeat(160)));
}

#[test]
fn an_invalid_channel_says_so() {
    let text = "
{schema: olm.package, name: redis, defaultChannel: stable}
---
{schema: olm.channel, package: redis, name: stable, entries: [{name: v1}, {name: v2}]}
---
{schema: olm.bundle, package: redis, name: v1, image: 'x/y:1', properties: [{type: olm.package, value: {packageName: redis, version: 1.0.0}}]}
---
{schema: olm.bundle, package: redis, name: v2, image: 'x/y:2', properties: [{type: olm.package, value: {packageName: redis, version: 2.0.0}}]}
";
    let pages = pages_of(text);
    assert!(pages[0].html.contains("<span class=\"tag warn\">invalid</span>"));
    assert!(pages[1].html.contains("<strong>Invalid.</strong> No server serves this catalog: "));
    let sound = pages_of(&text.replace("{name: v2}", "{name: v2, replaces: v1}"));
    assert!(sound.iter().all(|page| !page.html.contains("invalid") && !page.html.contains("Invalid.")));
}
