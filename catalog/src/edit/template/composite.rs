//! Edits of `olm.composite` templates: which packages they bring together. What is in a package stands in the files that they name.

use std::collections::BTreeSet;

use serde_json::Value as Json;

use super::Refused;
use crate::edit::{Change, Keep, Request, backticked, deprecate::nothing};

/// The template after an edit, and what was done.
pub(super) fn edit(old: &Json, request: &Request) -> Result<(Json, Change), Refused> {
    let components = old["components"].as_array().ok_or(Refused::Schema)?;
    let is_kept: Box<dyn Fn(&str) -> bool> = match request {
        Request::Remove { package, channel: None, version: None, .. } => Box::new(move |own| own != package),
        Request::Prune(keep) => {
            let Keep { packages, channels, min_version, heads_only, with_dependencies } = keep;
            if !channels.is_empty() || min_version.is_some() || *heads_only || *with_dependencies {
                return Err(Refused::Schema);
            }
            if let Some(missing) =
                packages.iter().find(|name| components.iter().all(|own| package(own) != **name))
            {
                let known = components.iter().map(|own| package(own).to_owned()).collect();
                return Err(Refused::NoPackage { package: missing.clone(), known });
            }
            Box::new(move |own| packages.iter().any(|name| name == own))
        }
        _ => return Err(Refused::Schema),
    };
    let (kept, gone): (Vec<&Json>, Vec<&Json>) = components.iter().partition(|own| is_kept(package(own)));
    if gone.is_empty() {
        return Ok((old.clone(), nothing("the template has nothing else: nothing to remove".into())));
    }
    if kept.is_empty() {
        return Err(Refused::Empty);
    }
    let packages: BTreeSet<&str> = gone.iter().map(|own| package(own)).collect();
    let packages: Vec<String> = packages.into_iter().map(str::to_owned).collect();
    let mut new = old.clone();
    new["components"] = kept.into_iter().cloned().collect();
    let components = if gone.len() == 1 { "component" } else { "components" };
    let summary = vec![format!("removed {} {components} of {}", gone.len(), backticked(&packages))];
    Ok((new, Change { files: Vec::new(), summary }))
}

/// The package of a component: the directory that its catalog goes to.
fn package(component: &Json) -> &str {
    let path = component["destination"]["path"].as_str().unwrap_or_default().trim_end_matches('/');
    path.rsplit('/').next().unwrap_or_default()
}
