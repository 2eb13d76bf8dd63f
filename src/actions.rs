//! What the verbs do: a typed request in, an answer out. This is where files are read and written; answers are
//! printed elsewhere.

mod absent;
pub mod browse;
pub mod build;
pub mod build_index;
pub mod catalog;
pub mod catalog_add;
pub mod catalog_diff;
mod catalog_files;
pub mod convert;
pub mod diff;
pub mod doctor;
pub mod edit;
mod failures;
pub mod findings;
pub mod generate;
pub mod image;
pub mod init;
mod inside;
mod layout;
mod left_out;
pub mod manifests;
pub mod names;
pub mod olm;
pub mod operator;
mod output;
mod parallel;
pub mod push;
mod readable;
pub mod render;
pub mod resolve;
pub mod results;
pub mod serve;
pub mod server;
mod split;
pub mod unpack;
pub mod validate;
