//! Each version's way to the head of its channel.

use std::io::{self, Write};

use olmkit_catalog::path::{Path, Paths};

use super::{Answer, pretty, printable};
use crate::exit::Exit;

/// The ways that were asked for.
#[derive(Debug)]
pub struct PathsAnswer {
    /// The ways.
    pub paths: Paths,
}

impl Answer for PathsAnswer {
    fn json(&self) -> String {
        pretty(&self.paths)
    }

    fn text(&self, out: &mut dyn Write, _: &mut dyn Write) -> io::Result<()> {
        let mut group = ("", "");
        for path in self.paths.iter() {
            if (path.package, path.channel) != group {
                group = (path.package, path.channel);
                let head = match path.head {
                    "" => "gone".into(),
                    head => format!("head {}", printable(short(head, path.package))),
                };
                writeln!(out, "{} in {}, {head}", printable(path.package), printable(path.channel))?;
            }
            writeln!(out, "  {}", way(&path))?;
        }
        Ok(())
    }

    fn exit(&self) -> Exit {
        if self.paths.all_reach_the_head() { Exit::Yes } else { Exit::No }
    }
}

fn way(path: &Path<'_>) -> String {
    let mut way = printable(short(path.from, path.package)).into_owned();
    for hop in &path.hops {
        way += &format!(" → {}", printable(short(hop, path.package)));
    }
    if !path.reaches_head {
        way += "   does not reach the head";
    }
    way
}

/// `redis-operator.v0.1.0` as `0.1.0`: the package stands above.
pub(super) fn short<'n>(name: &'n str, package: &str) -> &'n str {
    let version = name.strip_prefix(package).and_then(|rest| rest.strip_prefix(".v"));
    version.filter(|version| !version.is_empty()).unwrap_or(name)
}
