//! Which server runs, and whose files it reads.

use std::fmt;

/// The project that the server comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Flavour {
    /// Redis.
    #[default]
    Redis,
    /// Valkey, which began as Redis 7.2.
    Valkey,
}

/// A server, as it calls itself or as its image is tagged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Version {
    /// The project that it comes from.
    pub flavour: Flavour,
    /// Its version: `9.1.2`. A tag may have fewer numbers.
    pub number: String,
}

/// The first version of RDB files that Valkey does not read: Redis 7.4 introduced it.
const FOREIGN_TO_VALKEY: u32 = 12;

impl Version {
    /// Its major version.
    pub fn major(&self) -> Option<u32> {
        self.part(0)
    }

    fn minor(&self) -> Option<u32> {
        self.part(1)
    }

    fn part(&self, index: usize) -> Option<u32> {
        let part = self.number.split('.').nth(index)?;
        let digits = part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len());
        part[..digits].parse().ok()
    }

    /// The version of its RDB files, also of those that an append-only file begins with (`RDB_VERSION` in `src/rdb.h`); `None` if
    /// that is not known here.
    fn rdb(&self) -> Option<u32> {
        match (self.flavour, self.major()?, self.minor()) {
            (Flavour::Redis, 5 | 6, _) => Some(9),
            (Flavour::Redis, 7, Some(0)) => Some(10),
            (Flavour::Redis, 7, Some(2)) | (Flavour::Valkey, 7 | 8, _) => Some(11),
            (Flavour::Redis, 7, Some(4)) | (Flavour::Redis, 8, Some(0..=2)) => Some(FOREIGN_TO_VALKEY),
            (Flavour::Valkey, 9, _) => Some(80),
            _ => None,
        }
    }

    /// Whether a node that was told to forget others tells everybody to forget them too, for the minute in which it takes none of them
    /// back: Redis does since 7.2, and so does Valkey.
    pub fn spreads_bans(&self) -> bool {
        match (self.flavour, self.major(), self.minor()) {
            (Flavour::Redis, Some(major), minor) => (major, minor.unwrap_or(u32::MAX)) >= (7, 2),
            _ => true,
        }
    }

    /// Whether it reads the files of another server. `None` if that depends on a number that is not known.
    pub fn reads(&self, other: &Self) -> Option<bool> {
        if self.flavour != other.flavour {
            // Both read what Redis had before Valkey began, up to their own version.
            let old = other.rdb().filter(|old| *old < FOREIGN_TO_VALKEY);
            return Some(old.is_some_and(|old| self.rdb().is_none_or(|own| own >= old)));
        }
        let (own, old) = (self.major()?, other.major()?);
        if own != old {
            return Some(own > old);
        }
        let (own, old) = (self.minor()?, other.minor()?);
        Some(own >= old || self.rdb().is_some() && self.rdb() == other.rdb())
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {}", self.flavour, self.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(words: &str) -> Version {
        let (flavour, number) = words.split_once(' ').unwrap();
        let flavour = if flavour == "Valkey" { Flavour::Valkey } else { Flavour::Redis };
        Version { flavour, number: number.into() }
    }

    #[track_caller]
    fn check(new: &str, old: &str, expected: Option<bool>) {
        assert_eq!(version(new).reads(&version(old)), expected, "{new} after {old}");
    }

    #[test]
    fn newer_versions_read_older_files() {
        check("Redis 7.2.5", "Redis 7.0.15", Some(true));
        check("Redis 8.2.3", "Redis 6.2.14", Some(true));
        check("Redis 9.0.0", "Redis 8.6.1", Some(true));
        check("Valkey 9.1.2", "Valkey 8.0.1", Some(true));
    }

    #[test]
    fn older_versions_read_files_of_the_same_format() {
        check("Redis 6.2.14", "Redis 7.0.15", Some(false));
        check("Redis 7.0.15", "Redis 7.2.5", Some(false));
        check("Redis 7.2.5", "Redis 7.4.1", Some(false));
        check("Redis 7.4.1", "Redis 8.0.0", Some(false));
        check("Redis 8.0.0", "Redis 8.2.3", Some(true));
        check("Redis 8.2.3", "Redis 8.6.0", Some(false));
        check("Redis 7.2.4", "Redis 7.2.5", Some(true));
        check("Valkey 9.0.0", "Valkey 9.1.2", Some(true));
        check("Valkey 8.1.0", "Valkey 9.0.0", Some(false));
    }

    #[test]
    fn the_other_flavour_reads_what_is_older_than_the_fork() {
        check("Valkey 9.1.2", "Redis 7.0.15", Some(true));
        check("Valkey 8.0.0", "Redis 7.2.5", Some(true));
        check("Valkey 9.1.2", "Redis 7.4.1", Some(false));
        check("Valkey 9.1.2", "Redis 8.2.3", Some(false));
        check("Redis 7.0.15", "Valkey 9.1.2", Some(false));
        check("Redis 8.2.3", "Valkey 9.1.2", Some(false));
        check("Redis 7.0.15", "Valkey 8.0.0", Some(false));
        check("Redis 7.2.5", "Valkey 8.0.0", Some(true));
    }

    #[test]
    fn a_tag_with_one_number_tells_majors_apart() {
        check("Redis 6", "Redis 7.0.15", Some(false));
        check("Redis 8", "Redis 7.0.15", Some(true));
        check("Redis 7", "Redis 7.2.5", None);
    }
}
