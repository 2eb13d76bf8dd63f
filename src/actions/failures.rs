//! What the faults of images mean for the command: how it ends, and the way out.

use std::error::Error;
use std::io;

use crate::exit::{Exit, Failure};
use crate::image::{
    ArchiveError, BlobError, Held, ImageError, LayerError, LoadError, RegistryError, StoreError, TreeError,
};
use crate::input::InputError;

/// Interruptions, timeouts and a wrong cache directory lie below whatever was going on.
fn exit_of(error: &(dyn Error + 'static)) -> Exit {
    let mut next = Some(error);
    while let Some(error) = next {
        if error
            .downcast_ref::<io::Error>()
            .and_then(io::Error::get_ref)
            .is_some_and(|inner| inner.is::<Held>())
        {
            return Exit::TimedOut;
        }
        match error
            .downcast_ref::<RegistryError>()
            .or_else(|| Some(error.downcast_ref::<Box<RegistryError>>()?))
        {
            Some(RegistryError::Interrupted) => return Exit::Interrupted,
            Some(RegistryError::TimedOut { .. }) => return Exit::TimedOut,
            Some(RegistryError::NotACache { .. }) => return Exit::Usage,
            _ => next = error.source(),
        }
    }
    Exit::Incomplete
}

macro_rules! failures {
    ($($error:ty),*) => {$(
        impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                Self { exit: exit_of(&error), help: error.help().into(), ..Self::incomplete(error) }
            }
        }
    )*};
}

failures!(ArchiveError, BlobError, ImageError, InputError, LayerError, LoadError, RegistryError, TreeError);

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let exit = if error.is_misuse() { Exit::Usage } else { exit_of(&error) };
        Self { exit, help: error.help().into(), ..Self::incomplete(error) }
    }
}
