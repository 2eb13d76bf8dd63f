//! An image that was written.

use std::io::{self, Write};

use serde_json::{Value, json};

use super::{Answer, printable};
use crate::image::Stored;

/// Where an image was written and what it consists of.
#[derive(Debug)]
pub struct ImageAnswer {
    /// The image.
    pub stored: Stored,
}

impl Answer for ImageAnswer {
    fn json(&self) -> Value {
        let Stored { reference, digest, layers } = &self.stored;
        json!({
            "schema": "olmkit.image/v1",
            "reference": reference,
            "digest": digest,
            "layers": layers,
        })
    }

    fn text(&self, out: &mut dyn Write, _: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{} {}", printable(&self.stored.reference), self.stored.digest)
    }
}
