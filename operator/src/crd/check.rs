//! Values that the schema accepts and nothing can work with.
//!
//! `v1` is released, so its schema gets no new rules: OLM refuses a CRD that has any. The webhook refuses these values when they
//! are new, and the controller reports them as InvalidSpec.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    user::User,
    v1::{Auth, RedisClusterSpec, Resources},
};
use crate::quantity::amount;

/// What is said to a spec that adds TLS to a cluster, or takes it away. New pods would have to take the place of all old ones at
/// once, data included.
pub const TLS_FIXED: &str = "spec.tls can be neither added to a cluster nor taken away: create another RedisCluster and move the data";

/// One sentence for each change that is not possible.
pub fn wrong_changes(old: &RedisClusterSpec, new: &RedisClusterSpec) -> Vec<String> {
    if old.tls.is_some() == new.tls.is_some() { vec![] } else { vec![TLS_FIXED.into()] }
}

/// One sentence for each wrong value, beginning with its field.
pub fn wrong_values(spec: &RedisClusterSpec) -> Vec<String> {
    let mut wrong = vec![];
    let images = [
        ("spec.image", "docker.io/library/redis:7.2.5", Some(&spec.image)),
        (
            "spec.exporter.image",
            "docker.io/oliver006/redis_exporter:v1.88.0",
            spec.exporter.as_ref().map(|exporter| &exporter.image),
        ),
    ];
    for (field, example, image) in images {
        if let Some(image) = image.filter(|image| !is_image(image)) {
            wrong.push(format!("{field} must be an image reference such as `{example}`, found `{image}`"));
        }
    }
    for (directive, value) in &spec.config {
        if let Err(expected) = directive_value(directive, value) {
            wrong.push(format!(
                "spec.config.{directive} must be {expected}, found `{}`",
                value.escape_debug()
            ));
        }
    }
    for directive in ["min-replicas-to-write", "min-slaves-to-write"] {
        let wanted = spec.config.get(directive).and_then(|value| value.parse::<i64>().ok());
        if let Some(wanted) = wanted.filter(|wanted| *wanted > i64::from(spec.replicas_per_shard)) {
            wrong.push(format!(
                "spec.config.{directive} must be at most spec.replicasPerShard, which is {}, found `{wanted}`: Redis would refuse every write",
                spec.replicas_per_shard
            ));
        }
    }
    let exporter = spec.exporter.as_ref().and_then(|exporter| exporter.resources.as_ref());
    for (field, resources) in
        [("spec.resources", spec.resources.as_ref()), ("spec.exporter.resources", exporter)]
    {
        wrong.extend(resources.into_iter().flat_map(|resources| wrong_resources(field, resources)));
    }
    if let Some(class) = spec.storage.as_ref().and_then(|storage| storage.storage_class_name.as_ref())
        && !is_name(class)
    {
        wrong.push(format!(
            "spec.storage.storageClassName must be a name in lower case letters, digits, `-` and `.`, found `{class}`"
        ));
    }
    if spec.hibernated && spec.storage.is_none() {
        wrong.push(
            "spec.hibernated must be false without spec.storage: the keys are in memory and would be lost with the pods"
                .into(),
        );
    }
    if let Some(pods) = &spec.pods {
        let secrets = pods.image_pull_secrets.iter().map(|secret| &secret.name);
        if let Some(name) = repeated(secrets) {
            wrong
                .push(format!("spec.pods.imagePullSecrets must name each Secret once, found `{name}` twice"));
        }
        let spreads = pods.topology_spread_constraints.iter();
        let spreads = spreads.map(|spread| (&spread.topology_key, spread.when_unsatisfiable));
        if let Some((key, when)) = repeated(spreads) {
            wrong.push(format!(
                "spec.pods.topologySpreadConstraints must have each topologyKey once for each whenUnsatisfiable, found `{key}` twice for {when:?}"
            ));
        }
    }
    wrong.extend(spec.auth.as_ref().map(wrong_auth).unwrap_or_default());
    if let Some(tls) = spec.tls.as_ref().filter(|tls| !is_name(&tls.secret_name)) {
        wrong.push(format!(
            "spec.tls.secretName must be a name in lower case letters, digits, `-` and `.`, found `{}`",
            tls.secret_name
        ));
    }
    wrong
}

/// What nothing can work with in `spec.auth`.
fn wrong_auth(auth: &Auth) -> Vec<String> {
    let mut wrong = vec![];
    if !is_name(&auth.secret_name) {
        wrong.push(format!(
            "spec.auth.secretName must be a name in lower case letters, digits, `-` and `.`, found `{}`",
            auth.secret_name
        ));
    }
    let is_key = |key: &str| key != "." && !key.starts_with("..");
    if !is_key(&auth.key) {
        wrong.push(format!("spec.auth.key must be a key that a Secret can have, found `{}`", auth.key));
    }
    if let Some(name) = repeated(auth.users.iter().map(|user| &user.name)) {
        wrong.push(format!("spec.auth.users must name each user once, found `{name}` twice"));
    }
    let mut keys = BTreeMap::from([(&auth.secret_name, &auth.key)]);
    for User { name, secret_name, key, rules } in &auth.users {
        // `previousPassword` would be that of both.
        if keys.insert(secret_name, key).is_some_and(|other| other != key) {
            wrong.push(format!(
                "spec.auth.users, `{name}`: Secret `{secret_name}` is named with another key as well: put each password into a Secret of its own"
            ));
        }
        if name.eq_ignore_ascii_case("default") {
            wrong.push(
                "spec.auth.users must not name `default`: spec.auth.secretName has its password".into(),
            );
        }
        if !is_name(secret_name) || !is_key(key) {
            wrong.push(format!(
                "spec.auth.users, `{name}`: secretName must be the name of a Secret, and key a key that it can have, found `{secret_name}` and `{key}`"
            ));
        }
        if rules.split_whitespace().any(sets_password) {
            wrong.push(format!(
                "spec.auth.users, `{name}`: rules must not have `nopass`, `resetpass`, `reset`, or words that begin with `>`, `<`, `#` or `!`: the Secret has the password"
            ));
        }
    }
    wrong
}

/// Whether a rule of `ACL SETUSER` is about passwords.
fn sets_password(rule: &str) -> bool {
    let words = ["nopass", "resetpass", "reset"];
    rule.starts_with(['>', '<', '#', '!']) || words.iter().any(|word| rule.eq_ignore_ascii_case(word))
}

/// The first that was there before.
fn repeated<T: Ord + Clone>(mut all: impl Iterator<Item = T>) -> Option<T> {
    let mut seen = BTreeSet::new();
    all.find(|one| !seen.insert(one.clone()))
}

/// `[HOST[:PORT]/]PATH[:TAG][@ALGORITHM:DIGEST]`
fn is_image(image: &str) -> bool {
    let (rest, digest) = image.split_once('@').map_or((image, None), |(rest, digest)| (rest, Some(digest)));
    let is_digest = |digest: &str| {
        digest.split_once(':').is_some_and(|(algorithm, hex)| {
            !algorithm.is_empty()
                && algorithm.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
                && hex.len() >= 32
                && hex.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
        })
    };
    let (host, path) = match rest.split_once('/') {
        Some((first, path)) if first == "localhost" || first.contains(['.', ':', '[']) => (Some(first), path),
        _ => (None, rest),
    };
    let (path, tag) = path.split_once(':').map_or((path, None), |(path, tag)| (path, Some(tag)));
    let is_word = |word: &str, others: &[u8]| {
        word.bytes().all(|byte| byte.is_ascii_alphanumeric() || others.contains(&byte))
    };
    let is_tag =
        |tag: &str| (1..=128).contains(&tag.len()) && is_word(tag, b"_.-") && !tag.starts_with(['.', '-']);
    let is_component = |part: &str| {
        let ends =
            |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
        ends(part.bytes().next())
            && ends(part.bytes().last())
            && is_word(part, b"_.-")
            && !part.bytes().any(|byte| byte.is_ascii_uppercase())
    };
    digest.is_none_or(is_digest)
        && tag.is_none_or(is_tag)
        && host.is_none_or(|host| is_word(host, b".-:[]"))
        && path.split('/').all(is_component)
}

/// Whether Redis starts with the directive, as far as that can be known: or else what is expected.
fn directive_value(directive: &str, value: &str) -> Result<(), &'static str> {
    if value.trim().is_empty() {
        return Err("a value (write `\"\"` where Redis takes an empty one)");
    }
    if value.chars().any(|letter| letter.is_control() && letter != '\t') {
        return Err("without control characters");
    }
    if !has_closed_quotes(value) {
        return Err("a value whose quotes are closed");
    }
    let number = value.parse::<u64>().is_ok();
    let is_quoted = value.contains(['"', '\'']);
    let policies = [
        "volatile-lru",
        "allkeys-lru",
        "volatile-lfu",
        "allkeys-lfu",
        "volatile-random",
        "allkeys-random",
        "volatile-ttl",
        "noeviction",
    ];
    match directive {
        "maxmemory" if amount_of_memory(value).is_none() => Err("an amount of memory such as `512mb`"),
        "maxmemory-policy" if !policies.contains(&value.to_ascii_lowercase().as_str()) => {
            Err("a policy of Redis such as `allkeys-lru` or `noeviction`")
        }
        "appendfsync" if !["always", "everysec", "no"].contains(&value.to_ascii_lowercase().as_str()) => {
            Err("`always`, `everysec` or `no`")
        }
        directive if BYTES.contains(&directive) && amount_of_memory(value.trim()).is_none() && !is_quoted => {
            Err("an amount of memory such as `64mb`")
        }
        "databases" if !is_quoted && !value.parse::<u64>().is_ok_and(|count| count > 0) => {
            Err("a whole number of at least 1")
        }
        "maxclients" | "timeout" | "min-replicas-to-write" | "min-replicas-max-lag" if !number => {
            Err("a whole number")
        }
        _ => Ok(()),
    }
}

/// The directives, besides `maxmemory`, that take an amount of memory.
const BYTES: [&str; 11] = [
    "active-defrag-ignore-bytes",
    "auto-aof-rewrite-min-size",
    "client-query-buffer-limit",
    "hash-max-listpack-value",
    "hash-max-ziplist-value",
    "hll-sparse-max-bytes",
    "proto-max-bulk-len",
    "repl-backlog-size",
    "stream-node-max-bytes",
    "zset-max-listpack-value",
    "zset-max-ziplist-value",
];

/// A number and a unit in lower case, as Redis reads them.
fn amount_of_memory(value: &str) -> Option<(&str, String)> {
    let number = value.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = value[number.len()..].to_ascii_lowercase();
    let known = ["", "b", "k", "kb", "m", "mb", "g", "gb"].contains(&unit.as_str());
    (known && number.parse::<u64>().is_ok()).then_some((number, unit))
}

/// A sentence for each value that Redis takes, and that may mean something else to it than to its author.
pub fn surprising_values(spec: &RedisClusterSpec) -> Vec<String> {
    let config = spec.config.iter();
    let amounts = config.filter(|(directive, _)| *directive == "maxmemory" || BYTES.contains(&&***directive));
    let found = amounts.filter_map(|(directive, value)| {
        let (number, unit) = amount_of_memory(value)?;
        let factor = match unit.as_str() {
            "k" => "1000",
            "m" => "1000 * 1000",
            "g" => "1000 * 1000 * 1000",
            _ => return None,
        };
        Some(format!(
            "spec.config.{directive}: to Redis, `{value}` is {number} * {factor} bytes; write `{number}{unit}b` for powers of 1024"
        ))
    });
    found.collect()
}

/// By Redis' own rules: a quote ends where the word ends, and in double quotes a backslash takes the next character.
fn has_closed_quotes(value: &str) -> bool {
    let mut letters = value.chars().peekable();
    while let Some(letter) = letters.next() {
        if letter != '"' && letter != '\'' {
            continue;
        }
        loop {
            match letters.next() {
                None => return false,
                Some('\\') => drop(letters.next()),
                Some(end) if end == letter => break,
                Some(_) => {}
            }
        }
        if letters.peek().is_some_and(|next| !next.is_whitespace()) {
            return false;
        }
    }
    true
}

fn is_resource(name: &str) -> bool {
    ["cpu", "memory", "ephemeral-storage"].contains(&name)
        || name.starts_with("hugepages-")
        || name.contains('/')
}

/// What a container cannot have, in the resources at this place.
fn wrong_resources(place: &str, Resources { requests, limits }: &Resources) -> Vec<String> {
    let mut wrong = vec![];
    for (field, amounts) in [("requests", requests), ("limits", limits)] {
        for name in amounts.keys().filter(|name| !is_resource(name)) {
            wrong.push(format!(
                "{place}.{field}.{name} is no resource of a container: use cpu, memory, ephemeral-storage, hugepages-SIZE or DOMAIN/NAME"
            ));
        }
    }
    for (name, request) in requests {
        let Some(limit) = limits.get(name) else { continue };
        if amount(&request.0).zip(amount(&limit.0)).is_some_and(|(request, limit)| request > limit) {
            wrong.push(format!(
                "{place}.requests.{name} must be at most {place}.limits.{name}, which is {}, found `{}`",
                limit.0, request.0
            ));
        }
    }
    wrong
}

/// A DNS subdomain, as names of Kubernetes are.
fn is_name(name: &str) -> bool {
    let is_label = |label: &str| {
        !label.is_empty()
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
    };
    name.len() <= 253 && name.split('.').all(is_label)
}
