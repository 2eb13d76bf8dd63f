use serde_json::json;

use super::*;
use crate::fbc::write;

/// Bundles `example.com/NAME:VERSION` of a package of that name, or of another one behind `@`.
struct Made;

impl BundleSource for Made {
    fn bundles(&self, references: &[&str]) -> Result<Vec<Rendered>, Box<dyn Error + Send + Sync>> {
        let made = |reference: &&str| {
            let (name, version) =
                reference.trim_start_matches("example.com/").split_once(':').ok_or("no version")?;
            let value = json!({ "packageName": name, "version": version });
            let property =
                fbc::Property { kind: "olm.package".into(), value: Some(value.into()), ..Default::default() };
            let blob = fbc::Bundle {
                name: format!("{name}.v{version}").into(),
                package: name.to_owned().into(),
                image: (*reference).to_owned().into(),
                properties: vec![property],
                ..Default::default()
            };
            Ok(Rendered { blob, csv: Default::default() })
        };
        references.iter().map(made).collect()
    }
}

/// The channels that a template makes, or why it makes none, with the place.
fn channels(text: &str) -> String {
    let made = Template::parse("t.yaml", text).and_then(|template| template.render(&Made));
    match made {
        Ok(catalog) => {
            let entry = |entry: &fbc::Entry<'_>| {
                let skips: Vec<_> = entry.skips.iter().map(|skip| skip.as_str()).collect();
                format!("  {} {} {}", entry.name, entry.replaces, skips.join(","))
            };
            let channel = |channel: &fbc::Channel<'_>| {
                let entries: Vec<_> =
                    channel.entries.iter().map(|found| entry(found).trim_end().to_owned()).collect();
                format!("{}\n{}", channel.name, entries.join("\n"))
            };
            let channels: Vec<_> = catalog.channels.iter().map(channel).collect();
            format!("default {}\n{}", catalog.packages[0].default_channel, channels.join("\n"))
        }
        Err(error) => {
            let line = error.place().and_then(|place| place.position).map_or(0, |position| position.line);
            format!("{line}: {error}")
        }
    }
}

fn semver(stable: &[&str], more: &str) -> String {
    let images: String = stable.iter().map(|image| format!("  - image: example.com/{image}\n")).collect();
    channels(&format!("schema: olm.semver\n{more}stable:\n  bundles:\n{images}"))
}

#[test]
fn the_highest_patch_of_each_minor_version_has_edges() {
    insta::assert_snapshot!(
        semver(&["r:1.0.0", "r:1.0.1", "r:1.1.0", "r:1.1.1", "r:1.2.0", "r:2.0.0"], "generateMajorChannels: true\n"),
        @r"
    default stable-v2
    stable-v1
      r.v1.0.0
      r.v1.0.1  r.v1.0.0
      r.v1.1.0
      r.v1.1.1 r.v1.0.1 r.v1.0.0,r.v1.1.0
      r.v1.2.0 r.v1.1.1 r.v1.0.0,r.v1.0.1,r.v1.1.0
    stable-v2
      r.v2.0.0
    ");
}

/// Bundles as [`Made`] has them, from several registries, each with its reference as the description.
struct Mirrored;

impl BundleSource for Mirrored {
    fn bundles(&self, references: &[&str]) -> Result<Vec<Rendered>, Box<dyn Error + Send + Sync>> {
        let names: Vec<_> = references.iter().filter_map(|reference| reference.rsplit('/').next()).collect();
        let mut bundles = Made.bundles(&names)?;
        for (bundle, reference) in bundles.iter_mut().zip(references) {
            bundle.csv.description = (*reference).into();
        }
        Ok(bundles)
    }
}

#[test]
fn two_references_to_one_name_give_the_same_package_every_time() {
    let text = "schema: olm.semver
candidate: {bundles: [{image: a/r:1.0.0}, {image: b/r:1.1.0}]}
fast: {bundles: [{image: c/r:1.1.0}, {image: d/r:1.0.0}]}
";
    // A search in a map with a seed of its own went wrong in half of the runs.
    for _ in 0..32 {
        let catalog = Template::parse("t.yaml", text).unwrap().render(&Mirrored).unwrap();
        assert_eq!(&*catalog.packages[0].default_channel, "fast-v1.1");
        assert_eq!(&*catalog.packages[0].description, "c/r:1.1.0");
    }
}

#[test]
fn templates_that_stand_for_nothing() {
    insta::assert_snapshot!(semver(&["r:1.0.0", "q:1.1.0"], ""), @"0: `example.com/q:1.1.0` is of package `q`, others are of `r`");
    insta::assert_snapshot!(semver(&["r:1.0.0", "r:1.0.0"], ""), @"0: under `stable` is `r.v1.0.0` twice: `example.com/r:1.0.0` is given twice");
    insta::assert_snapshot!(semver(&["r:1.0.0+a", "r:1.0.0+b"], ""), @"0: the versions of `r.v1.0.0+a` and `r.v1.0.0+b` differ only by build metadata, which has no precedence");
    insta::assert_snapshot!(semver(&[], ""), @"0: there are no bundles in the template");
    insta::assert_snapshot!(semver(&["r:one"], ""), @"0: the version of `r.vone`: unexpected character 'o' while parsing major version number");
    insta::assert_snapshot!(semver(&["r:1.0.0"], "stabel: {}\n"), @"2: the field `stabel` is not known: did you mean `stable`?");
    insta::assert_snapshot!(semver(&["r:1.0.0"], "Schema: olm.semver\n"), @"2: the field `Schema` is given twice");
    insta::assert_snapshot!(semver(&["r:1.0.0"], "defaultChannelTypePreference: major\n"), @"2: channels of the kind `major` are not generated");
    insta::assert_snapshot!(channels("schema: olm.package\n"), @"1: `olm.package` is not a template schema");
    insta::assert_snapshot!(channels("schema: olm.template.basic\nentries:\n- schema: olm.bundle\n"), @"3: a bundle of a basic template has no `image`");
    insta::assert_snapshot!(channels("schema: olm.template.basic\nentries: {}\n"), @"2: `entries` is not a list");
    insta::assert_snapshot!(channels("schema: olm.template.basic\nentries:\n- name: x\n"), @"3: an entry has no schema");
    let basic = |listed: &str| channels(&format!("schema: olm.template.basic\nentries:\n{listed}"));
    let listed = "- {schema: olm.bundle, image: 'example.com/r:1.0.0'}\n";
    insta::assert_snapshot!(basic(&listed.repeat(2)), @"4: `example.com/r:1.0.0` is given twice");
    insta::assert_snapshot!(basic(&format!("{listed}{}", listed.replace("example.com/", ""))), @"4: `example.com/r:1.0.0` and `r:1.0.0` are both the bundle `r.v1.0.0`");
    insta::assert_snapshot!(channels("{"), @"1: not valid YAML or JSON: unclosed bracket '{'");
}

#[test]
fn substitutions_are_checked_one_after_another() {
    let substitute = |list: &[(&str, &str)]| {
        let bundle = |version: &str| {
            format!(
                "- {{schema: olm.bundle, package: r, name: r.v{version}, image: 'example.com/r:{version}', properties: [{{type: olm.package, value: {{packageName: r, version: {version}}}}}]}}\n"
            )
        };
        let one = |(name, base): &(&str, &str)| format!("- {{name: 'example.com/{name}', base: {base}}}\n");
        channels(&format!(
            "schema: olm.template.substitutes\nentries:\n- {{schema: olm.package, name: r, defaultChannel: c}}\n- {{schema: olm.channel, package: r, name: c, \
             entries: [{{name: r.v1.0.0}}, {{name: r.v1.1.0, replaces: r.v1.0.0}}, {{name: r.v1.2.0, replaces: r.v1.1.0, skips: [r.v1.0.0]}}]}}\n{}{}{}substitutions:\n{}",
            bundle("1.0.0"),
            bundle("1.1.0"),
            bundle("1.2.0"),
            list.iter().map(one).collect::<String>()
        ))
    };
    let valid = [("r:1.0.1", "r.v1.0.0"), ("r:1.1.1", "r.v1.1.0"), ("r:1.0.2", "r.v1.0.1")];
    insta::assert_snapshot!(substitute(&valid), @"
    default c
    c
      r.v1.0.0
      r.v1.1.0
      r.v1.2.0 r.v1.1.1 r.v1.1.0,r.v1.0.2
      r.v1.0.1
      r.v1.1.1 r.v1.0.2 r.v1.0.0,r.v1.1.0,r.v1.0.1
      r.v1.0.2  r.v1.0.0,r.v1.0.1
    ");
    // The first one that makes no catalog is named, whatever comes after it.
    for broken in 0..=valid.len() {
        let mut list = valid.to_vec();
        list.insert(broken, ("q:1.9.0", "r.v1.2.0"));
        let said = substitute(&list);
        assert!(
            said.contains("with `example.com/q:1.9.0` in the place of `r.v1.2.0` the catalog is no valid"),
            "{said}"
        );
    }
    let absent = substitute(&[("r:1.0.1", "r.v1.0.0"), ("r:3.0.0", "r.v2.0.0")]);
    assert_eq!(absent, "0: there is no `r.v2.0.0` for `example.com/r:3.0.0` to take the place of");
}

/// Both grow with the square of the template.
#[test]
fn what_templates_multiply_is_bounded() {
    let names: Vec<String> = (0..1_010).map(|minor| format!("r:1.{minor}.0")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let both = "generateMajorChannels: true\ngenerateMinorChannels: true\n";
    insta::assert_snapshot!(semver(&names, both), @"0: the channels would list more than 1000000 skipped versions: generate one kind of channel, or leave old bundles out");
    assert!(semver(&names, "").starts_with("default stable-v1.1009\n"));

    let channel = |number: u32| {
        format!("- {{schema: olm.channel, package: r, name: c{number}, entries: [{{name: r.v1.0.0}}]}}\n")
    };
    let one = |patch: u32| format!("- {{name: 'example.com/r:1.0.{}', base: r.v1.0.{patch}}}\n", patch + 1);
    let text = format!(
        "schema: olm.template.substitutes\nentries:\n- {{schema: olm.package, name: r, defaultChannel: c0}}\n{}- {{schema: olm.bundle, package: r, name: r.v1.0.0, \
         image: 'example.com/r:1.0.0', properties: [{{type: olm.package, value: {{packageName: r, version: 1.0.0}}}}]}}\nsubstitutions:\n{}",
        (0..1_000).map(channel).collect::<String>(),
        (0..52).map(one).collect::<String>()
    );
    insta::assert_snapshot!(channels(&text), @"0: the substitutions would add more than 50000 entries: apply some of them in a second template");
}

#[test]
fn a_second_document_is_refused_instead_of_ignored() {
    let template = "schema: olm.semver\nstable: {bundles: [{image: 'example.com/r:1.0.0'}]}\n";
    let json = r#"{"schema": "olm.semver", "stable": {"bundles": [{"image": "example.com/r:1.0.0"}]}}"#;
    for (text, line) in [
        (format!("{template}---\n{template}"), 4),
        (format!("{template}---\n# notes\n---\nschema: olm.channel\n"), 6),
        (format!("{template}---\n}}\n"), 4),
        (format!("{template}...\n{template}"), 4),
        (format!("{json}\n{json}\n"), 2),
        (format!("{json}{json}\n"), 1),
        (format!("# a template\n{json}\n{json}\n"), 3),
    ] {
        let expected = format!("{line}: a template is a single document, and another one follows");
        assert_eq!(channels(&text), expected, "{text}");
    }
    for text in [
        format!("---\n{template}"),
        format!("# a template\n{template}---\n# the end\n---\n"),
        format!("{template}...\n# the end\n"),
        format!("{json}\n\n"),
    ] {
        assert!(channels(&text).starts_with("default stable-v1.0\n"), "{text}");
    }
    // As opm, which takes the comments for the template.
    assert_eq!(
        channels(&format!("# a licence\n---\n{template}")),
        "2: the first document of the template is empty"
    );
}

#[test]
fn a_basic_template_keeps_what_it_does_not_know() {
    let text = "schema: olm.template.basic\nentries:\n- schema: my.note\n  text: hi\n- {schema: olm.bundle, image: 'example.com/r:1.0.0'}\n";
    let catalog = Template::parse("t.yaml", text).unwrap().render(&Made).unwrap();
    insta::assert_snapshot!(write::to_text(&catalog, write::Format::Yaml).unwrap(), @r#"
    ---
    image: example.com/r:1.0.0
    name: r.v1.0.0
    package: r
    properties:
    - type: olm.package
      value:
        packageName: r
        version: "1.0.0"
    schema: olm.bundle
    ---
    schema: my.note
    text: hi
    "#);
}

#[test]
fn composites_name_templates() {
    let text = "
schema: olm.composite
components:
- name: v4.18
  destination: {path: redis}
  strategy: {name: semver, template: {schema: olm.builder.semver, config: {input: semver.yaml, output: catalog.yaml}}}
";
    let Template::Composite(composite) = Template::parse("t.yaml", text).unwrap() else { panic!() };
    let component = &composite.components[0];
    assert_eq!(
        (component.input.as_str(), component.path.as_str(), component.strategy),
        ("semver.yaml", "redis", Strategy::Template)
    );
    insta::assert_snapshot!(channels(&text.replace("olm.builder.semver", "olm.builder.custom")), @"6: `olm.builder.custom` is not `olm.builder.basic`, `olm.builder.semver` or `olm.builder.raw`");
    insta::assert_snapshot!(channels(text), @"0: a composite template expands to several catalogs");
    insta::assert_snapshot!(channels(&text.replace("schema: olm.builder.semver, ", "")), @"6: a component has no `schema` in `strategy.template`");
    insta::assert_snapshot!(channels("entries: []"), @"1: the template has no `schema`");
}

#[test]
fn a_composite_names_nothing_that_is_not_shown() {
    let composite = |name: &str, path: &str, output: &str| {
        let config = format!("{{input: semver.yaml, output: \"{output}\"}}");
        channels(&format!(
            "schema: olm.composite\ncomponents:\n- name: \"{name}\"\n  destination: {{path: \"{path}\"}}\n  strategy: {{template: {{schema: olm.builder.semver, config: {config}}}}}\n"
        ))
    };
    let several = "0: a composite template expands to several catalogs";
    assert_eq!(composite("v4.18", "redis/a b", "catalog.yaml"), several);
    insta::assert_snapshot!(composite("a\\n::add-mask::b", "redis", "catalog.yaml"), @r"3: `a\n::add-mask::b` has characters that are not shown");
    insta::assert_snapshot!(composite("v4.18", "a\\tb", "catalog.yaml"), @r"4: `a\tb` has characters that are not shown");
    insta::assert_snapshot!(composite("v4.18", "redis", "a\\e[31m.yaml"), @r"5: `a\u{1b}[31m.yaml` has characters that are not shown");
    insta::assert_snapshot!(composite("v4.18\\u202E", "redis", "catalog.yaml"), @r"3: `v4.18\u{202e}` has characters that are not shown");
}

/// A catalog that was made of a template becomes a template that makes the same catalog.
#[test]
fn a_template_comes_back_from_its_catalog() {
    let images = |list: &[&str]| -> String {
        list.iter().map(|image| format!("  - image: example.com/{image}\n")).collect()
    };
    let of = |name: &str, list: &[&str]| format!("{name}:\n  bundles:\n{}", images(list));
    let minor =
        format!("schema: olm.semver\n{}", of("stable", &["r:1.0.0", "r:1.0.1", "r:1.1.0", "r:2.0.0"]));
    let both = format!(
        "schema: olm.semver\ngenerateMajorChannels: true\ngenerateMinorChannels: true\ndefaultChannelTypePreference: major\n{}{}",
        of("candidate", &["r:1.0.0", "r:1.1.0"]),
        of("fast", &["r:1.0.0"])
    );
    for text in [minor, both] {
        let made = Template::parse("t.yaml", &text).unwrap().render(&Made).unwrap();
        let catalog = write::to_text(&made, write::Format::Yaml).unwrap();
        let files = crate::load::CatalogFiles::from_text("catalog.yaml", catalog.as_str());
        let parsed = Catalog::parse(&files);
        for target in [Target::Semver, Target::Basic, Target::Substitutes] {
            for format in [write::Format::Yaml, write::Format::Json] {
                let back = convert(&parsed, target, None, format).unwrap();
                let made = Template::parse("t.yaml", &back).unwrap().render(&Made).unwrap();
                assert_eq!(
                    write::to_text(&made, write::Format::Yaml).unwrap(),
                    catalog,
                    "{target:?}\n{back}"
                );
            }
        }
    }
}

#[test]
fn what_no_template_makes() {
    let text = "
{schema: olm.package, name: r, defaultChannel: stable-v1.0}
---
{schema: olm.channel, package: r, name: stable-v1.0, entries: [{name: r.v1.0.0}, {name: r.v1.0.1, replaces: r.v1.0.0}]}
---
{schema: olm.bundle, package: r, name: r.v1.0.0, image: 'example.com/r:1.0.0', properties: [{type: olm.package, value: {packageName: r, version: 1.0.0}}]}
---
{schema: olm.bundle, package: r, name: r.v1.0.1, image: 'example.com/r:1.0.1', properties: [{type: olm.package, value: {packageName: r, version: 1.0.1}}]}
";
    let why = |text: &str, target: Target, package: Option<&str>| {
        let files = crate::load::CatalogFiles::from_text("c.yaml", text);
        let error = convert(&Catalog::parse(&files), target, package, write::Format::Yaml).unwrap_err();
        format!("{}: {error}", error.place().map(ToString::to_string).unwrap_or_default())
    };
    let semver = |text: &str| why(text, Target::Semver, None);
    assert_eq!(
        semver(text),
        "c.yaml:4:41: no semver template produces this catalog: `r.v1.0.1` of `stable-v1.0` would have other edges"
    );
    assert_eq!(
        semver(&text.replace("stable-v1.0", "stable")),
        "c.yaml:4:41: no semver template produces this catalog: the channel `stable` is not named like `stable-v1` or `stable-v1.2`"
    );
    let two = format!("{text}---\n{{schema: olm.package, name: other, defaultChannel: x}}\n");
    assert_eq!(semver(&two), ": a semver template makes one package, and the catalog has 2");
    let inline = text.replace("'example.com/r:1.0.1'", "''");
    assert_eq!(
        why(&inline, Target::Basic, None),
        "c.yaml:8:1: `r.v1.0.1` has no image, and a template names bundles by their images"
    );
    assert_eq!(why(text, Target::Basic, Some("x")), ": the catalog has no package `x`");
}
