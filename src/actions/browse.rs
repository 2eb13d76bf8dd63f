//! A catalog as web pages: written to a directory, or served to this machine.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use olmkit_catalog::fbc::Catalog;
use olmkit_catalog::page::{self, MARK, Page};

use super::build::note_of_errors;
use super::inside::check_directory_outside;
use super::readable::check_readable;
use crate::actions::results::Written;
use crate::exit::Failure;
use crate::files::{self, OutputDir};
use crate::image::Access;
use crate::input::Input;

/// A request with a longer head is refused, in bytes.
const MAX_HEAD: u64 = 16 << 10;
/// How long a browser may take to ask, and to take an answer.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The port is taken, or not for everybody.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen at `{address}`")]
struct ListenError {
    address: SocketAddr,
    source: io::Error,
}

/// Writes the pages of a catalog to a directory. Pages of an earlier run are replaced, and removed when their package is gone.
///
/// # Errors
/// When the catalog cannot be read, the directory is a part of it, or has other files in their places.
pub fn write(catalog: &Input, directory: &Path, access: &Access) -> Result<Written, Failure> {
    check_directory_outside(directory, catalog)?;
    let (pages, note) = pages(catalog, access)?;
    let mut output = OutputDir::open(directory)?;
    let found = files::below(directory, |_| false).map_err(Failure::incomplete)?;
    let below = |path: &Path| path.strip_prefix(directory).unwrap_or(path).to_string_lossy().into_owned();
    let wanted: BTreeSet<&str> = pages.iter().map(|page| page.path.as_str()).collect();
    let mut stale = Vec::new();
    for path in found {
        let name = below(&path);
        match (files::is_marked(&path, MARK), wanted.contains(name.as_str())) {
            (true, false) => stale.push(name),
            (false, true) => {
                return Err(Failure::failed(format!("`{}` is not a page that olmkit wrote", path.display()))
                    .help("choose another directory"));
            }
            _ => {}
        }
    }
    let files: BTreeMap<String, Option<&str>> =
        pages.iter().map(|page| (page.path.clone(), Some(page.html.as_str()))).collect();
    output.write(&files)?;
    output.remove(&stale)?;
    Ok(Written { directory: directory.to_owned(), files: files.into_keys().collect(), note })
}

/// The pages, and what is to be said of a catalog with errors.
fn pages(catalog: &Input, access: &Access) -> Result<(Vec<Page>, Option<String>), Failure> {
    let files = catalog.catalog(access)?;
    let parsed = Catalog::parse(&files);
    check_readable(&parsed, catalog)?;
    Ok((page::pages(&parsed), note_of_errors(&parsed, catalog)))
}

/// Serves the pages of a catalog on 127.0.0.1 until the process is ended. The catalog is read once; `say` is told the
/// address.
///
/// # Errors
/// When the catalog cannot be read, or the port is taken.
pub fn serve(catalog: &Input, port: u16, access: &Access, say: impl Fn(&str)) -> Result<Written, Failure> {
    let (pages, note) = pages(catalog, access)?;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let fail = |source| {
        Failure::incomplete(ListenError { address, source })
            .help("choose another port with --port, or omit it to get a free one")
    };
    let listener = TcpListener::bind(address).map_err(fail)?;
    let address = listener.local_addr().map_err(fail)?;
    if let Some(note) = note {
        say(&format!("note: {note}"));
    }
    say(&format!("serving {catalog} on http://{address}/ (Ctrl-C to stop)"));
    let pages: Arc<BTreeMap<String, String>> =
        Arc::new(pages.into_iter().map(|page| (format!("/{}", page.path), page.html)).collect());
    for stream in listener.incoming() {
        // A browser that went away before it was answered.
        let Ok(stream) = stream else { continue };
        let pages = Arc::clone(&pages);
        // Without a thread the browser asks again.
        let _ = thread::Builder::new().spawn(move || answer(&stream, address, &pages));
    }
    Ok(Written { directory: Path::new("").to_owned(), files: Vec::new(), note: None })
}

/// Answers one request, and closes the connection.
fn answer(stream: &TcpStream, address: SocketAddr, pages: &BTreeMap<String, String>) -> io::Result<()> {
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    let mut lines = BufReader::new(stream.take(MAX_HEAD)).lines();
    let request = lines.next().transpose()?.unwrap_or_default();
    let mut host = String::new();
    for line in lines {
        let line = line?;
        match line.split_once(':') {
            _ if line.is_empty() => break,
            Some((name, value)) if name.eq_ignore_ascii_case("host") => host = value.trim().to_owned(),
            _ => {}
        }
    }
    let (status, html) = respond(&request, &host, address, pages);
    let body = if request.starts_with("HEAD ") { "" } else { html };
    let mut stream = stream;
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\nX-Content-Type-Options: nosniff\r\n\
         Referrer-Policy: no-referrer\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n{body}",
        html.len()
    )?;
    stream.flush()
}

/// The status and the page for a request line.
fn respond<'p>(
    request: &str,
    host: &str,
    address: SocketAddr,
    pages: &'p BTreeMap<String, String>,
) -> (&'static str, &'p str) {
    // A page from elsewhere that has this address under a name of its own gets nothing.
    let own = [address.to_string(), format!("localhost:{}", address.port())];
    if !own.iter().any(|own| own == host) {
        return ("421 Misdirected Request", "");
    }
    let mut words = request.split(' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    if !["GET", "HEAD"].contains(&method) {
        return ("405 Method Not Allowed", "");
    }
    let path = target.split(['?', '#']).next().unwrap_or_default();
    let path = if path == "/" { "/index.html" } else { path };
    pages.get(path).map_or(("404 Not Found", ""), |html| ("200 OK", html.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pages_are_served_and_only_to_this_machine() {
        let pages: BTreeMap<String, String> = [("/index.html".to_owned(), "page".to_owned())].into();
        let address: SocketAddr = "127.0.0.1:8080".parse().unwrap();
        for (request, host, status) in [
            ("GET / HTTP/1.1", "127.0.0.1:8080", "200 OK"),
            ("GET /index.html?x HTTP/1.1", "localhost:8080", "200 OK"),
            ("HEAD / HTTP/1.1", "localhost:8080", "200 OK"),
            ("GET /../etc/passwd HTTP/1.1", "localhost:8080", "404 Not Found"),
            ("POST / HTTP/1.1", "localhost:8080", "405 Method Not Allowed"),
            ("GET / HTTP/1.1", "rebound.example.com:8080", "421 Misdirected Request"),
            ("GET / HTTP/1.1", "", "421 Misdirected Request"),
            ("", "localhost:8080", "405 Method Not Allowed"),
        ] {
            assert_eq!(respond(request, host, address, &pages).0, status, "{request}");
        }
    }
}
