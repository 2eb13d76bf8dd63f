//! Makes the blob of a package, before it has channels and bundles, or changes what it shows.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use olmkit_bundle::names::ChannelName;

use super::deprecate::nothing;
use super::draft::Draft;
use super::{Change, EditError};
use crate::fbc::write::Format;
use crate::fbc::{self, Package};
use crate::index::Index;
use crate::texts::Texts;

/// A package.
#[derive(Clone, Debug)]
pub struct Init {
    /// Its name.
    pub package: String,
    /// The channel that a Subscription without one gets.
    pub default_channel: ChannelName,
    /// Markdown that consoles show; what the package has stays when none is given.
    pub description: Option<String>,
    /// The icon that consoles show; what the package has stays when none is given.
    pub icon: Option<Icon>,
    /// The format of a new file.
    pub format: Format,
}

/// A picture that consoles can show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Icon {
    data: Vec<u8>,
    media_type: &'static str,
}

impl Icon {
    /// A picture, if it is in a format that consoles show: PNG, JPEG, GIF or SVG.
    ///
    /// ```
    /// use olmkit_catalog::edit::Icon;
    /// assert!(Icon::new(b"<svg xmlns=\"http://www.w3.org/2000/svg\"/>".to_vec()).is_some());
    /// assert!(Icon::new(b"BM".to_vec()).is_none());
    /// ```
    pub fn new(data: Vec<u8>) -> Option<Self> {
        let media_type = match &data[..] {
            [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => "image/png",
            [0xff, 0xd8, 0xff, ..] => "image/jpeg",
            [b'G', b'I', b'F', b'8', ..] => "image/gif",
            text if is_svg(text) => "image/svg+xml",
            _ => return None,
        };
        Some(Self { data, media_type })
    }

    fn blob(&self) -> fbc::Icon<'static> {
        fbc::Icon {
            data: STANDARD.encode(&self.data).into(),
            media_type: self.media_type.into(),
            unknown: Vec::new(),
        }
    }
}

/// Whether XML has `svg` as its first element.
fn is_svg(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    let mut rest = text.trim_start_matches('\u{feff}').trim_start();
    while let Some(end) = ["<?", "<!"].iter().any(|start| rest.starts_with(start)).then(|| {
        let close = if rest.starts_with("<!--") { "-->" } else { ">" };
        rest.find(close).map(|at| at + close.len())
    }) {
        let Some(end) = end else { return false };
        rest = rest[end..].trim_start();
    }
    rest.starts_with("<svg") || rest.starts_with("<svg:svg")
}

/// Makes or changes the blob of a package.
pub(super) fn init(index: &Index<'_, '_>, init: &Init) -> Result<Change, EditError> {
    let Init { package, default_channel, description, icon, format } = init;
    let icon = icon.as_ref().map(Icon::blob);
    let is_known = index.packages.get(package.as_str()).is_some_and(|known| !known.blobs.is_empty());
    if !is_known {
        let blob = Package {
            name: package.clone().into(),
            default_channel: default_channel.to_string().into(),
            description: description.clone().unwrap_or_default().into(),
            icon,
            ..Package::default()
        };
        let mut texts = Texts::new(index.catalog, *format);
        let home = texts.home(package, None);
        texts.append(&home, blob.tree());
        let summary = vec![
            format!("the package `{package}` is in the catalog, with the default channel `{default_channel}`"),
            "add its first bundle with `olmkit catalog add`: a catalog is invalid while a package has no channels".into(),
        ];
        return Ok(Change { files: texts.finish()?, summary });
    }
    let mut draft = Draft::of(index, package)?;
    let mut summary = Vec::new();
    if let Some(blob) = draft.packages.first_mut().and_then(|slot| slot.edit()) {
        if *blob.default_channel != *default_channel.as_str() {
            summary.push(format!(
                "the default channel of `{package}` is `{default_channel}`; it was `{}`",
                blob.default_channel
            ));
            blob.default_channel.value = default_channel.to_string().into();
        }
        if let Some(new) = description.as_ref().filter(|new| *blob.description != ***new) {
            blob.description.value = new.clone().into();
            summary.push(format!("`{package}` has a new description"));
        }
        if let Some(new) = icon {
            let same = blob.icon.as_ref().is_some_and(|old| {
                old.media_type == new.media_type
                    && crate::base64::decode(&old.data) == crate::base64::decode(&new.data)
            });
            if !same {
                let unknown = blob.icon.take().map(|old| old.unknown).unwrap_or_default();
                blob.icon = Some(fbc::Icon { unknown, ..new });
                summary.push(format!("`{package}` has a new icon"));
            }
        }
    }
    if summary.is_empty() {
        return Ok(nothing(format!("`{package}` is already in the catalog: nothing to change")));
    }
    draft.finish(summary)
}
