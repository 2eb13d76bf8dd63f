//! Images that were written, unpacked or looked at.

use std::io::{self, Write};

use super::plural;
use super::{Answer, json, pretty, printable};
use crate::actions::image::{ImageDigest, Inspected, InspectedImage, InspectedLayer};
use crate::actions::results::StoredImage;
use crate::actions::unpack::Unpacked;
use crate::image::{Digest, Stored, StoredLayer};
use crate::progress::bytes;

impl Answer for StoredImage {
    fn json(&self) -> String {
        let Stored { reference, digest, layers, .. } = &self.stored;
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

    fn text(&self, out: &mut dyn Write, talk: &mut dyn Write) -> io::Result<()> {
        if self.dry_run {
            writeln!(talk, "nothing was written: --dry-run")?;
        }
        match &self.stored.pinned {
            Some(pinned) => writeln!(out, "{}", printable(pinned)),
            None => writeln!(out, "{} {}", printable(&self.stored.reference), self.stored.digest),
        }
    }

    fn notes(&self) -> &[String] {
        self.note.as_slice()
    }
}

impl Answer for Unpacked {
    fn json(&self) -> String {
        pretty(&json::Unpacked {
            schema: "olmkit.unpacked/v1",
            reference: self.input.clone(),
            output_dir: self.output_dir.display().to_string(),
            files: self.files.clone(),
        })
    }

    fn text(&self, out: &mut dyn Write, _: &mut dyn Write) -> io::Result<()> {
        let (input, dir) = (printable(&self.input), self.output_dir.display().to_string());
        writeln!(out, "{input} in {} ({})", printable(&dir), plural(self.files.len(), "file"))
    }
}

impl Answer for ImageDigest {
    fn json(&self) -> String {
        let platform = |(platform, digest): &(String, Digest)| json::PlatformDigest {
            platform: platform.clone(),
            digest: digest.to_string(),
        };
        pretty(&json::ImageDigest {
            schema: "olmkit.digest/v1",
            digest: self.digest.to_string(),
            platforms: self.platforms.iter().map(platform).collect(),
        })
    }

    fn text(&self, out: &mut dyn Write, _: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{}", self.digest)
    }
}

impl Answer for Inspected {
    fn json(&self) -> String {
        let layer = |layer: &InspectedLayer| json::InspectedLayer {
            digest: layer.digest.to_string(),
            diff_id: layer.diff_id.map(|digest| digest.to_string()),
            size: layer.size,
            media_type: layer.media_type.clone(),
        };
        let image = |image: &InspectedImage| json::InspectedImage {
            digest: image.digest.to_string(),
            platform: image.platform.clone(),
            labels: image.run.labels.clone(),
            entrypoint: image.run.entrypoint.clone(),
            cmd: image.run.cmd.clone(),
            env: image.run.env.clone(),
            user: image.run.user.clone(),
            ports: image.run.ports.clone(),
            layers: image.layers.iter().map(layer).collect(),
        };
        pretty(&json::Inspected {
            schema: "olmkit.inspected/v1",
            reference: self.reference.clone(),
            digest: self.digest.to_string(),
            media_type: self.media_type.clone(),
            images: self.images.iter().map(image).collect(),
        })
    }

    fn text(&self, out: &mut dyn Write, _: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{}\n{} {}", printable(&self.reference), self.digest, printable(&self.media_type))?;
        for image in &self.images {
            let platform = image.platform.as_deref().unwrap_or("no platform");
            writeln!(out, "\n{} {}", printable(platform), image.digest)?;
            let words = |name: &str, words: &[String], out: &mut dyn Write| {
                if words.is_empty() {
                    Ok(())
                } else {
                    writeln!(out, "  {name}: {}", printable(&words.join(" ")))
                }
            };
            words("entrypoint", &image.run.entrypoint, out)?;
            words("cmd", &image.run.cmd, out)?;
            words("user", image.run.user.as_slice(), out)?;
            for (name, value) in &image.run.env {
                writeln!(out, "  env: {}={}", printable(name), printable(value))?;
            }
            for port in &image.run.ports {
                writeln!(out, "  port: {port}")?;
            }
            for (key, value) in &image.run.labels {
                writeln!(out, "  label: {}={}", printable(key), printable(value))?;
            }
            for layer in &image.layers {
                let kind = layer.media_type.rsplit('.').next().unwrap_or_default();
                writeln!(out, "  layer: {} {} {}", layer.digest, bytes(layer.size), printable(kind))?;
            }
        }
        Ok(())
    }
}
