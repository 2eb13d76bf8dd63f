//! A program for images that hold nothing else: what tests run inside a cluster to see what a pod sees.
//!
//! `build-probe` makes it static. It needs nothing but the standard library.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "its output is what tests read")]

use std::env;
use std::error::Error;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

const USAGE: &str = "\
probe pause                    does nothing, for ever
probe serve PORT TEXT          answers every HTTP request with TEXT
probe ask HOST:PORT TEXT       sends TEXT, `\\r`, `\\n` and `\\0` unescaped, and prints the answer up to its end or 2 s of silence
probe tree DIR…                prints the mode, length and path of everything below, and the text of every file
probe write FILE TEXT          writes TEXT to a file
probe copy DIR TO              copies a directory
probe install FILE             copies itself";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["pause"] => loop {
            std::thread::park();
        },
        ["serve", port, text] => serve(port, text),
        ["ask", address, text] => ask(address, text),
        ["tree", dirs @ ..] => dirs.iter().try_for_each(|dir| tree(Path::new(dir))),
        ["write", file, text] => fs::write(file, text).map_err(Into::into),
        ["copy", from, to] => copy(Path::new(from), Path::new(to)),
        ["install", file] => install(file),
        _ => Err(USAGE.into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn serve(port: &str, text: &str) -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind(("0.0.0.0", port.parse()?))?;
    println!("serving on port {port}");
    for stream in listener.incoming() {
        let mut stream = stream?;
        stream.set_read_timeout(Some(Duration::from_secs(2)))?;
        let mut request = [0; 4096];
        // A client that hangs up early does not end the server.
        let answered = stream.read(&mut request).and_then(|_| {
            write!(
                stream,
                "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{text}",
                text.len()
            )
        });
        if let Err(error) = answered {
            println!("{error}");
        }
    }
    Ok(())
}

fn ask(address: &str, text: &str) -> Result<(), Box<dyn Error>> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(2)))?;
    let text = text.replace("\\r", "\r").replace("\\n", "\n").replace("\\0", "\0");
    stream.write_all(text.as_bytes())?;
    let (mut answer, mut piece) = (Vec::new(), [0; 4096]);
    loop {
        match stream.read(&mut piece) {
            Ok(0) => break,
            Ok(length) => answer.extend_from_slice(&piece[..length]),
            Err(_) if !answer.is_empty() => break,
            Err(error) => return Err(error.into()),
        }
    }
    println!("{}", String::from_utf8_lossy(&answer));
    Ok(())
}

fn tree(at: &Path) -> Result<(), Box<dyn Error>> {
    use std::os::unix::fs::PermissionsExt;
    let metadata = fs::symlink_metadata(at)?;
    let mode = metadata.permissions().mode() & 0o7777;
    if metadata.is_dir() {
        println!("{mode:04o} - {}", at.display());
        let mut below =
            fs::read_dir(at)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>()?;
        below.sort();
        return below.iter().try_for_each(|path| tree(path));
    }
    let content = fs::read(at)?;
    println!("{mode:04o} {} {}\n{}", content.len(), at.display(), String::from_utf8_lossy(&content));
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Result<(), Box<dyn Error>> {
    if !from.is_dir() {
        fs::copy(from, to)?;
        return Ok(());
    }
    fs::create_dir_all(to)?;
    fs::read_dir(from)?.try_for_each(|entry| {
        let entry = entry?;
        copy(&entry.path(), &to.join(entry.file_name()))
    })
}

fn install(file: &str) -> Result<(), Box<dyn Error>> {
    fs::copy(env::current_exe()?, file)?;
    Ok(())
}
