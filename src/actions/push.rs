//! `bundle push` and `catalog push`: what is on disk is built and sent, what is an image is sent as it is.

use olmkit_bundle::parse::Bundle;

use super::build::{self, ImageBase, Output};
use super::{image, shipped};
use crate::actions::results::StoredImage;
use crate::exit::Failure;
use crate::image::{Access, Compression, Place};
use crate::input::{Input, Kind};
use crate::shell::argument;

/// What to send, and where to.
#[derive(Debug)]
pub struct Request {
    /// The bundle or the catalog.
    pub input: Input,
    /// The registry's reference; the image's own when none is given.
    pub reference: Option<Place>,
    /// Other tags that it gets there.
    pub also_tag: Vec<String>,
}

/// Pushes a bundle.
///
/// # Errors
/// It cannot be read, or the registry does not take it.
pub fn bundle(request: Request, access: &Access) -> Result<StoredImage, Failure> {
    push(request, access, Kind::Bundle, build::BUNDLE_COMPRESSION, build::bundle)
}

/// Pushes a catalog.
///
/// # Errors
/// It cannot be read, or the registry does not take it.
pub fn catalog(request: Request, access: &Access) -> Result<StoredImage, Failure> {
    push(request, access, Kind::Catalog, build::CATALOG_COMPRESSION, |request, access| {
        build::catalog(request, &ImageBase::default(), access)
    })
}

fn push(
    Request { input, reference, also_tag }: Request,
    access: &Access,
    kind: Kind,
    compression: Compression,
    build: impl Fn(&build::Request, &Access) -> Result<StoredImage, Failure>,
) -> Result<StoredImage, Failure> {
    let to = match reference {
        Some(reference) => reference,
        None => {
            let (noun, named) = (kind.name(), argument(&input));
            let help = format!("name the destination: `olmkit {noun} push {named} HOST/NAME:TAG`");
            build::reference_of(&input, &help)?
        }
    };
    match input {
        Input::Image(place) => {
            let root = place.load(access)?;
            kind.check(&place, &root)?;
            let wrong = match kind {
                Kind::Bundle => {
                    let input = Input::Image(place);
                    let files = input.bundle(access)?;
                    shipped::check_bundle(&Bundle::parse(&files), &input)?
                }
                _ => None,
            };
            let stored = image::store(&root, &to, &also_tag, access)?;
            Ok(StoredImage { note: shipped::joined([stored.note, wrong]), ..stored })
        }
        Input::Disk(_) => {
            let output = Output { to, also_tag, push: false, compression };
            build(&build::Request { input, output }, access)
        }
    }
}
