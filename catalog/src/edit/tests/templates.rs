//! Edits of templates.

use super::*;

const SEMVER: &str = "\
schema: olm.semver
generateMajorChannels: true
Candidate: # everything
  Bundles:
  - Image: quay.io/x/p:v0.9.0
  - Image: quay.io/x/p:v1.0.0
  # withdrawn
  - Image: quay.io/x/p:v1.0.1
  - Image: quay.io/x/p:v1.1.0 # new
stable:
  bundles:
  - image: quay.io/x/p:v1.0.0
";

const BASIC: &str = "\
schema: olm.template.basic
entries:
- schema: olm.package
  name: p
  defaultChannel: stable
- schema: olm.channel # slow
  package: p
  name: stable
  entries:
  - name: p.v1.0.0
- schema: olm.channel
  package: p
  name: fast
  entries:
  - name: p.v1.0.0
  - name: p.v1.1.0
    replaces: p.v1.0.0
- schema: olm.bundle
  image: quay.io/x/p:v1.0.0
- schema: olm.bundle
  image: quay.io/x/p:v1.1.0
";

fn composite() -> String {
    let component = |name: &str, path: &str| {
        format!(
            "- name: {name}\n  destination: {{path: {path}}}\n  strategy: {{name: basic, template: {{schema: olm.builder.basic, config: {{input: {path}.yaml, output: catalog.yaml}}}}}}\n"
        )
    };
    ["p", "q", "p"]
        .iter()
        .zip(["v1", "v1", "v2"])
        .fold("schema: olm.composite\ncomponents:\n".to_owned(), |text, (path, name)| {
            text + &component(name, path)
        })
}

fn keep(packages: &[&str]) -> Keep {
    Keep { packages: packages.iter().map(|name| (*name).to_owned()).collect(), ..Keep::default() }
}

fn promotion(version: &str, to: &str) -> Request {
    Request::Promote { package: "p".into(), version: version.into(), to: to.parse().unwrap(), policy: None }
}

fn removal(channel: Option<&str>, version: Option<&str>) -> Request {
    Request::Remove {
        package: "p".into(),
        channel: channel.map(str::to_owned),
        version: version.map(str::to_owned),
        keep_path: false,
        strand: true,
    }
}

#[track_caller]
fn change(text: &str, request: &Request) -> String {
    diff(text, &edited(text, request))
}

#[test]
fn semver_templates_promote_and_remove_versions() {
    insta::assert_snapshot!(change(SEMVER, &promotion("1.1.0", "stable")), @r"
       - image: quay.io/x/p:v1.0.0
    +  - Image: quay.io/x/p:v1.1.0
    ");
    insta::assert_snapshot!(change(SEMVER, &promotion("1.0.1", "fast")), @r"
       - Image: quay.io/x/p:v1.1.0 # new
    +Fast:
    +  Bundles:
    +  - Image: quay.io/x/p:v1.0.1
     stable:
    ");
    insta::assert_snapshot!(change(SEMVER, &removal(None, Some("1.0.1"))), @r"
       - Image: quay.io/x/p:v1.0.0
    -  # withdrawn
    -  - Image: quay.io/x/p:v1.0.1
       - Image: quay.io/x/p:v1.1.0 # new
    ");
    insta::assert_snapshot!(change(SEMVER, &removal(Some("stable"), Some("v1.0.0"))), @r"
       - Image: quay.io/x/p:v1.1.0 # new
    -stable:
    -  bundles:
    -  - image: quay.io/x/p:v1.0.0
    ");
    assert_eq!(
        refused(SEMVER, &promotion("2.0.0", "stable")),
        "cannot edit the entries of the template: `p` has no version `2.0.0`"
    );
    assert_eq!(
        refused(SEMVER, &promotion("1.1.0", "slow")),
        "cannot edit the entries of the template: `p` has no channel `slow`"
    );
}

#[test]
fn semver_templates_are_pruned_by_maturity_and_version() {
    let prune = |keep: Keep| Request::Prune(keep);
    let least = Keep { min_version: Some("1.0.1".parse().unwrap()), ..keep(&["p"]) };
    insta::assert_snapshot!(change(SEMVER, &prune(least)), @r"
       Bundles:
    -  - Image: quay.io/x/p:v0.9.0
    -  - Image: quay.io/x/p:v1.0.0
       # withdrawn
       - Image: quay.io/x/p:v1.1.0 # new
    -stable:
    -  bundles:
    -  - image: quay.io/x/p:v1.0.0
    ");
    let heads = edited(SEMVER, &prune(Keep { heads_only: true, ..keep(&["p"]) }));
    assert_eq!(
        heads.matches("quay.io").count(),
        3,
        "the heads of candidate-v0, candidate-v1 and stable-v1:\n{heads}"
    );
    let stable = edited(SEMVER, &prune(Keep { channels: vec!["stable".into()], ..keep(&["p"]) }));
    assert!(!stable.contains("Candidate") && stable.contains("stable:"), "{stable}");
    assert_eq!(
        refused(SEMVER, &prune(Keep { with_dependencies: true, ..keep(&["p"]) })),
        "the template does not say what its bundles require"
    );
    let digest = SEMVER.replace("p:v1.0.1", "p@sha256:0123");
    assert_eq!(
        refused(&digest, &prune(Keep { heads_only: true, ..keep(&["p"]) })),
        "the template does not say the version of `quay.io/x/p@sha256:0123`"
    );
    let none = Keep { min_version: Some("9.0.0".parse().unwrap()), ..keep(&["p"]) };
    assert_eq!(refused(SEMVER, &prune(none)), "the template would have no version left");
}

#[test]
fn basic_templates_are_pruned_like_catalogs() {
    let stable = Keep { channels: vec!["stable".into()], ..keep(&["p"]) };
    insta::assert_snapshot!(change(BASIC, &Request::Prune(stable)), @r"
       - name: p.v1.0.0
    -- schema: olm.channel
    -  package: p
    -  name: fast
    -  entries:
    -  - name: p.v1.0.0
    -  - name: p.v1.1.0
    -    replaces: p.v1.0.0
     - schema: olm.bundle
       image: quay.io/x/p:v1.0.0
    -- schema: olm.bundle
    -  image: quay.io/x/p:v1.1.0
    ");
    assert_eq!(
        refused(BASIC, &Request::Prune(Keep { with_dependencies: true, ..keep(&["p"]) })),
        "the template does not say what its bundles require"
    );
}

#[test]
fn of_several_packages_only_images_of_the_pruned_one_go() {
    let q = "- schema: olm.bundle\n  image: quay.io/x/q:v1.1.0\n- schema: olm.package\n  name: q\n  defaultChannel: stable\n- schema: olm.channel\n  package: q\n  name: stable\n  entries: [{name: q.v1.1.0}]\n";
    let text = format!("{BASIC}{q}");
    let new = edited(&text, &removal(None, Some("1.1.0")));
    assert!(new.contains("quay.io/x/q:v1.1.0") && !new.contains("quay.io/x/p:v1.1.0"), "{new}");
    assert_eq!(edited(&text, &Request::Prune(keep(&["p"]))), BASIC);
}

#[test]
fn composite_templates_lose_packages() {
    let text = composite();
    let new = edited(&text, &Request::Prune(keep(&["p"])));
    assert!(new.contains("path: p") && !new.contains("path: q"), "{new}");
    assert_eq!(edited(&text, &removal(None, None)).matches("path: ").count(), 1);
    assert_eq!(
        refused(&text, &Request::Prune(keep(&["r"]))),
        "cannot edit the entries of the template: the catalog has no package `r`"
    );
    assert_eq!(
        refused(&text, &Request::Prune(Keep { heads_only: true, ..keep(&["p"]) })),
        "this is a template (`olm.composite`), not a catalog"
    );
}

/// Nothing reads a document behind a template.
#[test]
fn nothing_is_written_behind_a_template() {
    let init = Request::Init(Init {
        package: "p".into(),
        default_channel: "beta".parse().unwrap(),
        description: None,
        icon: None,
        format: Format::Yaml,
    });
    for text in [BASIC, SEMVER] {
        assert!(refused(text, &init).starts_with("this is a template"));
        let files = CatalogFiles::from_text("t.yaml", text);
        assert!(matches!(
            merge(&files, &[CatalogFiles::from_text("c.yaml", CATALOG)]),
            Err(EditError::Template { .. })
        ));
    }
}

/// A semver template does not say which package it makes; its images mostly do.
#[test]
fn a_semver_template_of_another_package_is_not_edited() {
    let text = SEMVER.replace("quay.io/x/p:", "quay.io/acme/redis-operator-bundle:");
    let request = |package: &str| Request::Remove {
        package: package.into(),
        channel: None,
        version: Some("1.0.1".into()),
        keep_path: false,
        strand: true,
    };
    for package in ["redis-operator", "redis", "redisoperator", "acme-cache", "operator"] {
        assert!(!edited(&text, &request(package)).contains("v1.0.1"), "{package}");
    }
    for other in ["etcd-operator", "p", "quay"] {
        assert_eq!(
            refused(&text, &request(other)),
            format!(
                "the template does not say that it makes the package `{other}`: none of its images is named like it"
            )
        );
    }
    let pruned = Request::Prune(Keep { heads_only: true, ..keep(&["etcd-operator"]) });
    assert!(refused(&text, &pruned).contains("the package `etcd-operator`"));
}
