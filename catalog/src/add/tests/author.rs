//! Bundles that say themselves where they belong: by the edges of their ClusterServiceVersions, a policy, or channels.

use super::*;

/// A bundle with edges of its own.
fn with_edges(version: &str, replaces: &str, skips: &[&str], range: &str) -> Rendered {
    let name = |version: &str| if version.is_empty() { String::new() } else { format!("redis.v{version}") };
    let mut bundle = rendered(version);
    bundle.csv.replaces = name(replaces);
    bundle.csv.skips = skips.iter().map(|version| name(version)).collect();
    bundle.csv.skip_range = range.to_owned();
    bundle
}

fn change_by(bundles: &[Rendered], request: &Request) -> Result<Change, AddError> {
    add(&Catalog::parse(&CatalogFiles::default()), bundles, request)
}

fn in_stable(policy: Option<Policy>) -> Request {
    Request::new(vec!["stable".parse().unwrap()], policy)
}

/// The entries of each channel, a line each.
#[track_caller]
fn entries(change: &Change) -> String {
    sound(&change.files[0].text);
    let line = |entry: &ChangedEntry| {
        let range = entry.skip_range.as_deref().unwrap_or_default();
        let replaces = entry.replaces.as_deref().unwrap_or("-");
        format!("{} {replaces} [{}] {range}", entry.name, entry.skips.join(" ")).trim_end().to_owned()
    };
    let channel = |channel: &ChangedChannel| {
        let lines: Vec<_> = channel.entries.iter().map(line).collect();
        format!("{}:\n{}", channel.name, lines.join("\n"))
    };
    change.report.channels.iter().map(channel).collect::<Vec<_>>().join("\n")
}

#[test]
fn edges_of_the_author_stay_unless_a_policy_is_named() {
    let bundles = [
        with_edges("1.0.0", "", &[], ""),
        with_edges("1.1.0", "1.0.0", &[], ""),
        with_edges("1.2.0", "1.0.0", &["1.1.0"], ">=1.0.0 <1.2.0"),
    ];
    let change = change_by(&bundles, &in_stable(None)).unwrap();
    assert_eq!(change.notes, Vec::<String>::new());
    insta::assert_snapshot!(entries(&change), @r"
    stable:
    redis.v1.0.0 - []
    redis.v1.1.0 redis.v1.0.0 []
    redis.v1.2.0 redis.v1.0.0 [redis.v1.1.0] >=1.0.0 <1.2.0
    ");
    let change = change_by(&bundles, &in_stable(Some(Policy::Replaces))).unwrap();
    insta::assert_snapshot!(change.notes.join("\n"), @"`redis.v1.2.0` replaces `redis.v1.1.0` in `stable`, which is what OLM follows; its ClusterServiceVersion replaces `redis.v1.0.0` and skips `redis.v1.1.0` and has the skipRange `>=1.0.0 <1.2.0`");
    // A late note is as good: the bundle is there already.
    let files = one_file(&change.files[0].text);
    let again = add(&Catalog::parse(&files), &bundles, &in_stable(None)).unwrap();
    assert_eq!((again.notes.len(), again.files.len()), (1, 0));
}

#[test]
fn a_range_alone_leaves_the_rest_to_the_default_policy() {
    let bundles = [with_edges("1.0.0", "", &[], ""), with_edges("2.0.0", "", &[], ">=1.0.0 <2.0.0")];
    insta::assert_snapshot!(entries(&change_by(&bundles, &in_stable(None)).unwrap()), @r"
    stable:
    redis.v1.0.0 - []
    redis.v2.0.0 redis.v1.0.0 [] >=1.0.0 <2.0.0
    ");
}

#[test]
fn edges_need_to_fit_together_only_when_all_bundles_are_there() {
    let two_heads = [
        with_edges("1.0.0", "", &[], ""),
        with_edges("1.0.1", "1.0.0", &[], ""),
        with_edges("1.0.2", "1.0.0", &[], ""),
    ];
    let last = with_edges("1.1.0", "1.0.2", &["1.0.1"], "");
    let all = [&two_heads[..], &[last]].concat();
    assert_eq!(change_by(&all, &in_stable(None)).unwrap().report.channels[0].head, "redis.v1.1.0");
    let error = change_by(&two_heads, &in_stable(None)).unwrap_err();
    assert!(matches!(&error, AddError::Breaks { bundle, .. } if bundle == "redis.v1.0.2"), "{error}");
    assert!(error.help().unwrap().contains("--policy"));
    let no_range = [with_edges("1.0.0", "", &[], ""), with_edges("1.1.0", "", &[], "<=v1.0.0")];
    let error = change_by(&no_range, &in_stable(None)).unwrap_err();
    assert!(error.help().unwrap().starts_with("write `olm.skipRange` in the ClusterServiceVersion"));
}

#[test]
fn bundles_choose_policy_and_channels_where_the_request_does_not() {
    let placement = |policy, channels: &[&str]| Placement {
        policy,
        channels: channels.iter().map(|name| name.parse().unwrap()).collect(),
    };
    let skippatch = Some(Policy::SemverSkippatch);
    let mut request = Request::new(Vec::new(), None);
    request.placements = [
        ("redis.v1.0.0".to_owned(), placement(skippatch, &["beta"])),
        ("redis.v1.0.1".to_owned(), placement(skippatch, &["stable", "beta"])),
        ("redis.v1.0.2".to_owned(), placement(skippatch, &["stable"])),
    ]
    .into();
    let bundles = ["1.0.0", "1.0.1", "1.0.2"].map(rendered);
    let change = change_by(&bundles, &request).unwrap();
    assert_eq!(change.report.default_channel, "stable", "that of the newest");
    insta::assert_snapshot!(entries(&change), @r"
    beta:
    redis.v1.0.0 - []
    redis.v1.0.1 - [redis.v1.0.0]
    stable:
    redis.v1.0.1 - []
    redis.v1.0.2 - [redis.v1.0.1]
    ");
    request.policy = Some(Policy::Replaces);
    request.channels = vec!["fast".parse().unwrap()];
    insta::assert_snapshot!(entries(&change_by(&bundles, &request).unwrap()), @r"
    fast:
    redis.v1.0.0 - []
    redis.v1.0.1 redis.v1.0.0 []
    redis.v1.0.2 redis.v1.0.1 []
    ");
}

#[test]
fn versions_that_only_build_metadata_tells_apart_are_said() {
    let build = |of: &str| {
        let mut bundle = rendered(&format!("1.0.1+{of}"));
        bundle.blob.name = format!("redis.v1.0.1-{of}").into();
        bundle.blob.image = format!("example.com/redis-bundle:v1.0.1-{of}").into();
        bundle
    };
    let change = change_by(&[build("a"), build("b")], &in_stable(None)).unwrap();
    insta::assert_snapshot!(change.notes.join("\n"), @"`redis.v1.0.1-b` follows `redis.v1.0.1-a` in `stable` by name alone: build metadata, which is all that tells 1.0.1+b from 1.0.1+a, has no precedence");
}
