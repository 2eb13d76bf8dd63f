//! `olmkit image …`

use clap::{Args, Subcommand};

use super::registry::{RegistryFlags, WriteFlags, destination};
use crate::actions::image;
use crate::exit::Failure;
use crate::image::{Place, Platform};
use crate::input::Input;
use crate::report::Answer;

/// What to do with images.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Show image metadata: platforms, labels, layers
    Inspect(Box<Inspect>),
    /// Copy an image from one place to another, byte for byte
    Copy(Box<Copy>),
    /// Print the digest of an image
    Digest(Box<Digest>),
}

impl Verb {
    pub(super) fn run(self) -> Result<Box<dyn Answer>, Failure> {
        Ok(match self {
            Self::Inspect(flags) => {
                let Inspect { image, registry } = *flags;
                Box::new(image::inspect(&image, &registry.access()?)?)
            }
            Self::Digest(flags) => {
                let Digest { image, registry } = *flags;
                Box::new(image::digest(&image, &registry.access()?)?)
            }
            Self::Copy(flags) => {
                let Copy { from, to, platform, write } = *flags;
                let (access, also_tag) = write.access()?;
                Box::new(image::copy(&image::Copy { from, to, also_tag, platform }, &access)?)
            }
        })
    }
}

/// Flags of `image inspect`.
#[derive(Debug, Args)]
#[command(after_help = INSPECT_EXAMPLES)]
pub struct Inspect {
    /// Image: `HOST/NAME:TAG`, `oci:DIR[:TAG]`, `oci-archive:FILE` or `docker-archive:FILE`
    #[arg(value_name = "IMAGE")]
    image: Input,
    #[command(flatten)]
    registry: RegistryFlags,
}

const INSPECT_EXAMPLES: &str = "\
Examples:
  olmkit image inspect quay.io/example/redis-operator-bundle:v0.1.0
  olmkit image inspect oci:images/catalog --output json";

/// Flags of `image copy`.
#[derive(Debug, Args)]
#[command(after_help = COPY_EXAMPLES)]
pub struct Copy {
    /// Image: `HOST/NAME:TAG`, `oci:DIR[:TAG]`, `oci-archive:FILE` or `docker-archive:FILE`
    #[arg(value_name = "FROM")]
    from: Input,
    /// Destination, in the same form
    #[arg(value_name = "TO", value_parser = destination)]
    to: Place,
    /// Copy the image for this platform only, such as `linux/arm64`
    #[arg(long, value_name = "OS/ARCH")]
    platform: Option<Platform>,
    #[command(flatten)]
    write: WriteFlags,
}

const COPY_EXAMPLES: &str = "\
Examples:
  olmkit image copy quay.io/example/catalog:v1 registry.example.com/mirror/catalog:v1
  olmkit image copy quay.io/example/catalog:v1 oci-archive:catalog.tar";

/// Flags of `image digest`.
#[derive(Debug, Args)]
#[command(after_help = DIGEST_EXAMPLES)]
pub struct Digest {
    /// Image: `HOST/NAME:TAG`, `oci:DIR[:TAG]`, `oci-archive:FILE` or `docker-archive:FILE`
    #[arg(value_name = "IMAGE")]
    image: Input,
    #[command(flatten)]
    registry: RegistryFlags,
}

const DIGEST_EXAMPLES: &str = "\
Examples:
  olmkit image digest quay.io/example/redis-operator-bundle:v0.1.0";
