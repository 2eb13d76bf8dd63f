//! Names, labels and annotations, which Kubernetes checks in the same way for every kind.

use std::collections::BTreeSet;

use crate::csv;
use crate::names::{check_path_segment, check_subdomain};
use crate::parse::Object;
use crate::refused::{Check, plain};
use crate::yaml::{Node, Step, steps};

/// Checks the name, and that labels and annotations are strings, where nothing was said of them yet.
pub(super) fn check<'n>(check: &mut Check<'n>, object: Object<'n, '_>) {
    if let Err(why) = check_name(object.kind(), object.name()) {
        let message = format!("`{}` cannot name a {}: {why}", plain(object.name()), plain(object.kind()));
        check.push(steps!("metadata", "name"), message, "use a name such as `redis-operator-metrics`");
    }
    for key in ["labels", "annotations"] {
        let map = object.root.at(steps!("metadata", key)).and_then(Node::as_mapping);
        let said = check.refused.iter().filter_map(|own| match own.path[..] {
            [Step::Key("metadata"), Step::Key(map), Step::Key(entry)] if map == key => Some(entry),
            _ => None,
        });
        let said: BTreeSet<&str> = said.collect();
        for entry in map.into_iter().flatten() {
            let path = [Step::Key("metadata"), Step::Key(key), Step::Key(&entry.key)];
            if !said.contains(&*entry.key) && !entry.value.is_null() && entry.value.as_str().is_none() {
                check.below(&path, |check| check.not_text(&entry.value));
            }
        }
    }
}

/// Checks the name of an object of a kind. ClusterServiceVersions, CRDs and Services have rules of their own; that an object has
/// no name is said elsewhere.
fn check_name(kind: &str, name: &str) -> Result<(), &'static str> {
    match kind {
        _ if name.is_empty() => Ok(()),
        csv::KIND | "CustomResourceDefinition" | "Service" => Ok(()),
        "Role" | "ClusterRole" | "RoleBinding" | "ClusterRoleBinding" => check_path_segment(name),
        _ => check_subdomain(name),
    }
}
