//! The manifests of an OLM release, fetched from where it is published, with their checksums.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use reqwest::{Client, Url};
use sha2::{Digest as _, Sha256};

use crate::exit::{Exit, Failure};
use crate::limits::{Limits, Over};
use crate::requests;

/// Where OLM's releases are.
pub const RELEASES: &str =
    "https://github.com/operator-framework/operator-lifecycle-manager/releases/download";
/// The manifests of a release, in the order in which they are applied.
const FILES: [&str; 2] = ["crds.yaml", "olm.yaml"];
/// Where a release keeps the SHA-256 of its files, if it does.
const CHECKSUMS: &str = "checksums.txt";
/// More than this no manifest of OLM has, in bytes.
const MOST: usize = 16 << 20;
/// How long a server may say nothing.
const SILENCE: Duration = Duration::from_secs(30);

/// A release, and how it is known to be the right one.
#[derive(Clone, Debug)]
pub struct Download {
    /// The version, without a `v`.
    pub version: String,
    /// The address below which each release has a directory.
    pub address: String,
    /// The SHA-256 of files, in hexadecimal, where the user knows them.
    pub checksums: BTreeMap<String, String>,
}

/// Fetches the files of a release, named by their addresses.
///
/// # Errors
/// One cannot be fetched, or is not what its checksum says.
pub(super) fn fetch(download: &Download, timeout: Duration) -> Result<Vec<(String, String)>, Failure> {
    // A program that embeds this library may have chosen another provider; that one serves as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.map_err(Failure::incomplete)?;
    match runtime.block_on(Limits::begin(timeout).run(all(download))) {
        Ok(fetched) => fetched,
        Err(Over::Interrupted) => Err(Failure::interrupted()),
        Err(Over::TimedOut(limit)) => {
            let error = format!("timed out after {} s fetching OLM {}", limit.as_secs(), download.version);
            Err(Failure { exit: Exit::TimedOut, ..Failure::incomplete(error) }
                .help("pass a longer --timeout, or fetch the files yourself and pass --manifests"))
        }
    }
}

async fn all(download: &Download) -> Result<Vec<(String, String)>, Failure> {
    let client = Client::builder()
        .user_agent(concat!("olmkit/", env!("CARGO_PKG_VERSION")))
        .redirect(reqwest::redirect::Policy::limited(5))
        .connect_timeout(SILENCE)
        .read_timeout(SILENCE)
        .build()
        .map_err(Failure::incomplete)?;
    let address = |file: &str| {
        let text = format!("{}/v{}/{file}", download.address.trim_end_matches('/'), download.version);
        text.parse::<Url>().map_err(|error| Failure::usage(format!("`{text}` is not an address: {error}")))
    };
    let mut known = BTreeMap::new();
    let needed = FILES.iter().any(|file| !download.checksums.contains_key(*file));
    if needed && let Some(bytes) = get(&client, address(CHECKSUMS)?).await? {
        known = listed(&String::from_utf8_lossy(&bytes));
    }
    known.extend(download.checksums.clone());
    let mut files = Vec::new();
    for file in FILES {
        let address = address(file)?;
        let bytes = get(&client, address.clone()).await?.ok_or_else(|| {
            Failure::incomplete(format!("`{address}` does not exist"))
                .help("check the version: OLM's releases are at https://github.com/operator-framework/operator-lifecycle-manager/releases")
        })?;
        check(file, &address, &bytes, known.get(file))?;
        let text =
            String::from_utf8(bytes).map_err(|_| Failure::incomplete(format!("`{address}` is not UTF-8")))?;
        files.push((address.to_string(), text));
    }
    Ok(files)
}

/// What an address has; none when it has nothing.
async fn get(client: &Client, address: Url) -> Result<Option<Vec<u8>>, Failure> {
    let failed = |error: reqwest::Error| {
        Failure::incomplete(Unfetched { address: address.to_string(), source: error.without_url() })
            .help("check the network, or fetch the files elsewhere and pass --manifests")
    };
    let begun = Instant::now();
    let answer = client.get(address.clone()).send().await;
    let status = answer.as_ref().ok().map(|answer| answer.status().as_u16());
    requests::tell(&"GET", &requests::without_secrets(&address), status, begun.elapsed());
    let mut answer = answer.map_err(failed)?;
    if answer.status() == reqwest::StatusCode::NOT_FOUND {
        return Ok(None);
    }
    if !answer.status().is_success() {
        return Err(Failure::incomplete(format!("`{address}` answers {}", answer.status()))
            .help("try again later, or fetch the files elsewhere and pass --manifests"));
    }
    let mut bytes = Vec::new();
    while let Some(piece) = answer.chunk().await.map_err(failed)? {
        if bytes.len() + piece.len() > MOST {
            return Err(Failure::incomplete(format!("`{address}` is larger than {} MiB", MOST >> 20)));
        }
        bytes.extend_from_slice(&piece);
    }
    Ok(Some(bytes))
}

/// A file that cannot be fetched.
#[derive(Debug, thiserror::Error)]
#[error("cannot fetch `{address}`")]
struct Unfetched {
    address: String,
    source: reqwest::Error,
}

/// `checksums.txt`: a digest and a name on each line.
fn listed(text: &str) -> BTreeMap<String, String> {
    let pair = |line: &str| {
        let (digest, name) = line.split_once(char::is_whitespace)?;
        Some((name.trim().trim_start_matches('*').to_owned(), digest.to_ascii_lowercase()))
    };
    text.lines().filter_map(pair).collect()
}

fn check(file: &str, address: &Url, bytes: &[u8], expected: Option<&String>) -> Result<(), Failure> {
    let found: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    match expected {
        Some(expected) if *expected == found => Ok(()),
        Some(expected) => Err(Failure::failed(format!(
            "digest mismatch: `{address}` has the SHA-256 {found}, expected {expected}"
        ))
        .help("do not use it: it was modified in transit, or the checksum belongs to another release")),
        None => Err(Failure::failed(format!("the release has no checksum for `{file}`"))
            .help(format!("look at what was fetched; to trust it, pass --checksum {file}={found}"))),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;

    use super::*;

    /// A server of files; what it does not have is not found.
    fn serve(files: Vec<(&'static str, String)>) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut request = [0; 2048];
                let count = stream.read(&mut request).unwrap();
                let line = String::from_utf8_lossy(&request[..count]).into_owned();
                let path = line.split(' ').nth(1).unwrap_or_default();
                let found = files.iter().find(|(file, _)| path == format!("/v0.46.0/{file}"));
                let answer = match found {
                    Some((_, text)) => format!(
                        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{text}",
                        text.len()
                    ),
                    None => {
                        "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".to_owned()
                    }
                };
                stream.write_all(answer.as_bytes()).unwrap();
            }
        });
        format!("http://{address}/")
    }

    fn sum(text: &str) -> String {
        Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn fetched(
        files: Vec<(&'static str, String)>,
        checksums: &[(&str, String)],
    ) -> Result<Vec<String>, Failure> {
        let checksums = checksums.iter().map(|(file, sum)| ((*file).to_owned(), sum.clone())).collect();
        let download = Download { version: "0.46.0".into(), address: serve(files), checksums };
        let files = fetch(&download, Duration::from_secs(20))?;
        Ok(files.into_iter().map(|(_, text)| text).collect())
    }

    fn release() -> Vec<(&'static str, String)> {
        vec![("crds.yaml", "a: 1\n".to_owned()), ("olm.yaml", "b: 2\n".to_owned())]
    }

    #[test]
    fn files_are_those_of_their_checksums() {
        let sums = format!("{}  crds.yaml\n{} *olm.yaml\n", sum("a: 1\n"), sum("b: 2\n"));
        let mut files = release();
        files.push(("checksums.txt", sums));
        assert_eq!(fetched(files.clone(), &[]).unwrap(), ["a: 1\n", "b: 2\n"]);
        files[1].1 = "b: 3\n".to_owned();
        let failure = fetched(files, &[]).unwrap_err();
        assert_eq!(failure.exit, Exit::Failed);
        assert!(failure.to_string().starts_with("digest mismatch: `http://127.0.0.1:"), "{failure}");
    }

    #[test]
    fn a_release_without_checksums_is_refused_until_they_are_given() {
        let failure = fetched(release(), &[]).unwrap_err();
        assert_eq!(failure.to_string(), "the release has no checksum for `crds.yaml`");
        let given = [("crds.yaml", sum("a: 1\n")), ("olm.yaml", sum("b: 2\n"))];
        assert!(failure.help.to_string().ends_with(&format!("--checksum crds.yaml={}", given[0].1)));
        assert_eq!(fetched(release(), &given).unwrap().len(), 2);
        let failure = fetched(Vec::new(), &given).unwrap_err();
        assert!(failure.to_string().ends_with("/v0.46.0/crds.yaml` does not exist"), "{failure}");
    }
}
