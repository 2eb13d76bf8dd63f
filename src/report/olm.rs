//! OLM itself: what it consists of, and how it is.

use std::io::{self, Write};

use super::operator::{planned_json, planned_text, removal, removed_json};
use super::table::{Table, dash};
use super::{Answer, json, pretty, printable};
use crate::actions::olm::Outcome;
use crate::exit::Exit;
use crate::lifecycle::olm::status::OlmStatus;

impl Answer for Outcome {
    fn json(&self) -> String {
        match self {
            Outcome::Installed(olm) | Outcome::Status(olm) => {
                pretty(&json::OlmReport { schema: "olmkit.olm/v1", olm })
            }
            Outcome::Removed(removed) => removed_json(removed),
            Outcome::Planned(planned) => planned_json(planned),
        }
    }

    fn text(&self, out: &mut dyn Write, _: &mut dyn Write) -> io::Result<()> {
        match self {
            Outcome::Installed(olm) | Outcome::Status(olm) => status(olm, out),
            Outcome::Removed(removed) => removal(removed, out),
            Outcome::Planned(planned) => planned_text(planned, out),
        }
    }

    fn exit(&self) -> Exit {
        match self {
            Outcome::Status(olm) if !olm.problems.is_empty() => Exit::Failed,
            _ => Exit::Success,
        }
    }
}

fn status(olm: &OlmStatus, out: &mut dyn Write) -> io::Result<()> {
    if !olm.installed {
        return writeln!(out, "OLM is not installed");
    }
    let version = if olm.version.is_empty() { "of unknown version" } else { &olm.version };
    let namespace =
        if olm.namespace.is_empty() { String::new() } else { format!(" in the namespace {}", olm.namespace) };
    let by = if olm.installed_by_olmkit { ", installed by olmkit" } else { "" };
    writeln!(out, "{}", printable(&format!("OLM {version}{namespace}{by}")))?;
    let mut components = Table::titled(&["COMPONENT", "PODS", "IMAGE"]);
    for found in &olm.components {
        let pods = format!("{}/{}", found.available, found.wanted);
        components.row([&found.name, &pods, &found.image]);
    }
    components.print_any(out)?;
    let mut crds = Table::titled(&["CRD", "VERSIONS", "ESTABLISHED"]);
    for found in &olm.crds {
        let established = if found.established { "True" } else { "False" };
        crds.row([&*found.name, &found.versions.join(","), established]);
    }
    crds.print_any(out)?;
    let mut catalogs = Table::titled(&["CATALOG", "NAMESPACE", "STATE", "SOURCE"]);
    for found in &olm.catalogs {
        catalogs.row([&*found.name, &found.namespace, dash(&found.state), dash(&found.source)]);
    }
    catalogs.print_any(out)?;
    let packages = if olm.packages_served { "answers" } else { "does not answer" };
    writeln!(out, "operators: {}; the API of packages {packages}", olm.operators)?;
    olm.problems.iter().try_for_each(|problem| writeln!(out, "problem: {}", printable(problem)))
}
