//! How each installed version gets to the head of its channel: `cargo run --example upgrades -- CATALOG`.

#![expect(clippy::print_stdout, reason = "the answer")]

use std::error::Error;
use std::path::PathBuf;

use olmkit_catalog::fbc::Catalog;
use olmkit_catalog::load::CatalogFiles;
use olmkit_catalog::path::{Query, paths};

fn main() -> Result<(), Box<dyn Error>> {
    let catalog: PathBuf = std::env::args_os().nth(1).ok_or("usage: upgrades CATALOG")?.into();
    let files = CatalogFiles::load(&catalog)?;
    let catalog = Catalog::parse(&files);
    for path in paths(&catalog, &Query::default())?.iter() {
        let hops = [&[path.from], &path.hops[..]].concat();
        println!("{}/{}: {}", path.package, path.channel, hops.join(" → "));
    }
    Ok(())
}
