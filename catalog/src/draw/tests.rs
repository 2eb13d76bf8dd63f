use super::*;
use crate::load::CatalogFiles;

fn draw(text: &str, format: Format) -> String {
    let files = CatalogFiles::from_text("catalog.yaml", text);
    Drawing::of(&Catalog::parse(&files), &Options::default()).unwrap().text(format)
}

const CATALOG: &str = "
{schema: olm.package, name: redis, defaultChannel: stable}
---
schema: olm.channel
package: redis
name: stable
entries:
- {name: redis.v1, replaces: redis.v0}
- {name: redis.v2, replaces: redis.v1}
- {name: redis.v3, replaces: redis.v1, skips: [redis.v2], skipRange: '<3.0.0'}
---
{schema: olm.bundle, package: redis, name: redis.v1, properties: [{type: olm.package, value: {packageName: redis, version: 1.0.0}}]}
---
{schema: olm.bundle, package: redis, name: redis.v2, properties: [{type: olm.package, value: {packageName: redis, version: 2.0.0}}]}
---
{schema: olm.bundle, package: redis, name: redis.v3, properties: [{type: olm.package, value: {packageName: redis, version: 3.0.0}}]}
---
{schema: olm.deprecations, package: redis, entries: [{reference: {schema: olm.bundle, name: redis.v1}, message: old}]}
";

#[test]
fn dot_tells_by_shapes_and_lines() {
    insta::assert_snapshot!(draw(CATALOG, Format::Dot), @r###"
    digraph catalog {
      rankdir=LR;
      node [shape=box, fontname="sans-serif"];
      edge [fontname="sans-serif", fontsize=10];
      subgraph "cluster redis" {
        label="redis";
        subgraph "cluster redis/stable" {
          label="stable";
          "redis/stable/redis.v3" [label="redis.v3\nhead", peripheries=2];
          "redis/stable/redis.v2" [label="redis.v2\nskipped", style="dashed"];
          "redis/stable/redis.v1" [label="redis.v1\ndeprecated", fillcolor="#f3c98b", style="filled"];
          "redis/stable/redis.v0" [label="redis.v0\nnot in the channel", style=dotted];
          "redis/stable/redis.v1" -> "redis/stable/redis.v3";
          "redis/stable/redis.v2" -> "redis/stable/redis.v3" [style=dashed, label="skip"];
          "redis/stable/redis.v2" -> "redis/stable/redis.v3" [style=dotted, label="<3.0.0"];
          "redis/stable/redis.v1" -> "redis/stable/redis.v3" [style=dotted, label="<3.0.0"];
          "redis/stable/redis.v1" -> "redis/stable/redis.v2";
          "redis/stable/redis.v0" -> "redis/stable/redis.v1";
        }
      }
    }
    "###);
}

#[test]
fn svg_says_in_words_what_an_entry_is() {
    let svg = draw(CATALOG, Format::Svg);
    for words in
        ["head · skipRange &lt;3.0.0", ">skipped<", "deprecated · replaces redis.v0, which is not here"]
    {
        assert!(svg.contains(words), "{svg}");
    }
    assert!(!svg.contains("href"), "it needs another file");
}

#[test]
fn names_cannot_leave_their_place() {
    let text =
        "{schema: olm.channel, package: p, name: \"<&\\\"\\x07\", entries: [{name: \"a]-->b\\n</svg>\"}]}";
    let svg = draw(text, Format::Svg);
    assert_eq!(svg.matches("</svg>").count(), 1, "{svg}");
    assert!(svg.contains("&lt;&amp;&quot;\u{fffd}"), "{svg}");
    let dot = draw(text, Format::Dot);
    assert!(dot.contains(r#"[label="a]-->b\n</svg>\nhead""#) && dot.contains(r#"label="<&\""#), "{dot}");
}

#[test]
fn long_channels_are_drawn() {
    let entries: Vec<_> = (0..2000)
        .map(|at| {
            format!(
                "{{name: r.v{at}, replaces: r.v{}, skips: [r.v{}], skipRange: '<{at}.0.0'}}",
                at - 1,
                at - 2
            )
        })
        .collect();
    let text = format!("{{schema: olm.channel, package: r, name: c, entries: [{}]}}", entries.join(", "));
    assert!(draw(&text, Format::Svg).len() > 100_000);
}

/// A channel in which each version may be reached from all before it.
fn ranges(count: usize) -> String {
    let mut text: String = (0..count)
        .map(|at| {
            let package = format!("{{type: olm.package, value: {{packageName: r, version: {at}.0.0}}}}");
            format!("{{schema: olm.bundle, package: r, name: r.v{at}, properties: [{package}]}}\n---\n")
        })
        .collect();
    let entry = |at| format!("{{name: r.v{at}, skipRange: '<{at}.0.0'}}");
    let entries: Vec<_> = (0..count).map(entry).collect();
    text += &format!("{{schema: olm.channel, package: r, name: c, entries: [{}]}}\n", entries.join(", "));
    text
}

#[test]
fn a_graph_that_nothing_shows_is_refused() {
    let text = ranges(1_600);
    let files = CatalogFiles::from_text("catalog.yaml", &text);
    let catalog = Catalog::parse(&files);
    let error = Drawing::of(&catalog, &Options::default()).map(drop).unwrap_err().to_string();
    assert_eq!(error, "the graph has 1279200 edges, which need more than 64 MiB");
    // Pages show every channel, with the ends of its ranges.
    let index = Index::new(&catalog);
    let channel = &channels(&index.packages["r"], &Options::default(), None)[0];
    assert!(svg::channel(channel, &|_| String::new()).len() < 2 << 20);
}
