//! Results that several verbs have in common.

use std::path::PathBuf;

use olmkit_bundle::finding::Finding;

use crate::exit::Failure;
use crate::image::Stored;

/// Files of a directory.
#[derive(Debug)]
pub struct Written {
    /// The directory.
    pub directory: PathBuf,
    /// The files below it.
    pub files: Vec<String>,
    /// What is wrong with what they were made of.
    pub note: Option<String>,
}

/// Where an image was written and what it consists of.
#[derive(Debug)]
pub struct StoredImage {
    /// The image.
    pub stored: Stored,
    /// Whether it would have been written.
    pub dry_run: bool,
    /// What there is to say about it.
    pub note: Option<String>,
}

/// A file as it would stand on disk. What comes from input is in it as it is: it is for programs to read.
#[derive(Debug)]
pub struct FileText {
    /// The file.
    pub text: String,
}

/// What checking some inputs has found.
#[derive(Debug)]
pub struct Checked {
    /// What was checked, such as `bundle`.
    pub what: &'static str,
    /// The inputs that were checked, as the user named them.
    pub inputs: Vec<String>,
    /// All findings, in the order to print.
    pub findings: Vec<Finding>,
    /// How many findings were left out because they are known.
    pub known: usize,
    /// Inputs that could not be read, and why.
    pub unread: Vec<Failure>,
    /// The next command, where there is one.
    pub next: Option<String>,
}

impl Checked {
    /// Nothing checked yet, and nothing found.
    pub fn new(what: &'static str) -> Self {
        Self { what, inputs: Vec::new(), findings: Vec::new(), known: 0, unread: Vec::new(), next: None }
    }
}
