//! Files on disk: reading with errors that name the path, and writing that touches nothing else ([`OutputDir`]).

mod error;
mod output;
mod pipe;
mod read;
mod report;
mod write;

pub use error::{FileError, exit_of};
pub use output::OutputDir;
pub(crate) use output::is_inside;
pub use pipe::Pipe;
pub use read::{
    Difference, below, check_plain, differences, is_marked, is_pipe, is_utf16, read, read_stdin, read_text,
    read_text_or_pipe, starts_with, text,
};
pub use report::ReportFile;
pub use write::{create, fill, target, writable, write};
