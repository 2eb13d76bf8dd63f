//! An image that was written.

use std::io::{self, Write};

use super::{Answer, json, pretty, printable};
use crate::image::{Stored, StoredLayer};

/// Where an image was written and what it consists of.
#[derive(Debug)]
pub struct ImageAnswer {
    /// The image.
    pub stored: Stored,
}

impl Answer for ImageAnswer {
    fn json(&self) -> String {
        let Stored { reference, digest, layers } = &self.stored;
        let layer = |layer: &StoredLayer| json::Layer {
            digest: layer.digest.to_string(),
            diff_id: layer.diff_id.to_string(),
            size: layer.size,
        };
        pretty(&json::Image {
            schema: "olmkit.image/v1",
            reference: reference.clone(),
            digest: digest.to_string(),
            layers: layers.iter().map(layer).collect(),
        })
    }

    fn text(&self, out: &mut dyn Write, _: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{} {}", printable(&self.stored.reference), self.stored.digest)
    }
}
