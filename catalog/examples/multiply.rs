//! Makes a catalog of any size from real ones: `multiply SEED BUNDLES OUTPUT CATALOG…` copies the catalogs, in an order that the
//! seed chooses, each time under other package names, until there are so many bundles. For benchmarks and endurance tests.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use olmkit_catalog::fbc::Catalog;
use olmkit_catalog::load::CatalogFiles;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let mut next = || args.next().ok_or("usage: multiply SEED BUNDLES OUTPUT CATALOG…");
    let (mut seed, wanted, output) =
        (next()?.parse::<u64>()?, next()?.parse::<usize>()?, PathBuf::from(next()?));
    let sources: Vec<CatalogFiles> =
        args.map(|path| CatalogFiles::load(Path::new(&path))).collect::<Result<_, _>>()?;
    if sources.is_empty() {
        return Err("name at least one catalog".into());
    }
    let mut made = 0;
    for copy in 0.. {
        if made >= wanted {
            break;
        }
        // Knuth's linear congruential generator; its upper bits are as good as any.
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let source = &sources[(seed >> 33) as usize % sources.len()];
        let catalog = Catalog::parse(source);
        made += catalog.bundles.len();
        let names: Vec<String> = catalog.packages.iter().map(|package| package.name.to_string()).collect();
        for file in &source.files {
            let mut text = file.content.text().unwrap_or_default().to_owned();
            for name in &names {
                text = text.replace(name, &format!("{name}-{copy:05}"));
            }
            let name = names.first().map_or("none", String::as_str);
            let directory = output.join(format!("{name}-{copy:05}"));
            fs::create_dir_all(&directory)?;
            let path = Path::new(&file.path).file_name().ok_or("a catalog is a directory")?;
            fs::write(directory.join(path), text)?;
        }
    }
    Ok(())
}
