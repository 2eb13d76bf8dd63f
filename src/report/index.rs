//! What `catalog build-index` has made.

use std::io::{self, Write};

use super::plural;
use super::{Answer, json, pretty, printable};
use crate::actions::build_index::Index;
use crate::progress::bytes;

impl Answer for Index {
    fn json(&self) -> String {
        pretty(&json::Index {
            schema: "olmkit.index/v1",
            path: self.path.display().to_string(),
            catalog_digest: format!("sha256:{}", self.built.fingerprint.to_hex()),
            size: self.size,
            packages: self.built.packages,
            bundles: self.built.bundles,
        })
    }

    fn text(&self, out: &mut dyn Write, _: &mut dyn Write) -> io::Result<()> {
        let (path, built) = (self.path.display().to_string(), &self.built);
        let (packages, bundles) = (plural(built.packages, "package"), plural(built.bundles, "bundle"));
        writeln!(out, "{} with {packages}, {bundles} ({})", printable(&path), bytes(self.size))
    }
}
