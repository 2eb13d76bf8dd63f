//! Debian's `docker-registry` on a free port of this machine, for as long as a test needs it.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use olmkit::image::{
    Access, Config, FileTree, Image, Index, Layer, Options, Patience, Place, Progress, Root,
};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use sha2::Digest as _;
use tempfile::TempDir;

/// The user that registries with a login know, and the password, as bcrypt has it in `htpasswd`.
pub(crate) const USER: &str = "alice";
pub(crate) const PASSWORD: &str = "correct-horse-battery";
const HTPASSWD: &str = "alice:$2b$04$3SZoTh3t0wBROGzxIOMI0.bX0S1jk9RHFw/OsXNesvEBVwuwvob6W\n";

/// How a registry is to be spoken to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Plain HTTP for everybody.
    Plain,
    /// Plain HTTP, after a login.
    Basic,
    /// TLS with a certificate of its own.
    Tls,
    /// TLS, and it takes itself for one without.
    Misled,
    /// Plain HTTP, with tokens from another server, at this address.
    Token(u16),
}

/// A registry that runs. It ends with the value.
pub(crate) struct Registry {
    process: Child,
    pub(crate) host: String,
    dir: TempDir,
}

impl Registry {
    pub(crate) fn start(kind: Kind) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let port = free_port();
        let host = format!("127.0.0.1:{port}");
        let at = |name: &str| dir.path().join(name);
        let extra = match kind {
            Kind::Plain => String::new(),
            Kind::Basic => {
                fs::write(at("htpasswd"), HTPASSWD).unwrap();
                format!("auth: {{htpasswd: {{realm: test, path: {}}}}}\n", at("htpasswd").display())
            }
            Kind::Tls | Kind::Misled => {
                let CertifiedKey { cert, signing_key } = generate_simple_self_signed(
                    ["127.0.0.1", "localhost", "registry.test"].map(str::to_owned),
                )
                .unwrap();
                fs::write(at("cert.pem"), cert.pem()).unwrap();
                fs::write(at("key.pem"), signing_key.serialize_pem()).unwrap();
                String::new()
            }
            Kind::Token(port) => {
                fs::write(at("issuer.pem"), crate::tokens::certificate()).unwrap();
                format!(
                    "auth: {{token: {{realm: 'http://127.0.0.1:{port}/token', service: test, issuer: test, rootcertbundle: {}}}}}\n",
                    at("issuer.pem").display()
                )
            }
        };
        let tls = match kind {
            Kind::Tls | Kind::Misled => format!(
                ", tls: {{certificate: {}, key: {}}}{}",
                at("cert.pem").display(),
                at("key.pem").display(),
                if kind == Kind::Misled { format!(", host: 'http://{host}'") } else { String::new() }
            ),
            _ => String::new(),
        };
        let config = format!(
            "version: 0.1\nlog: {{level: error, accesslog: {{disabled: true}}}}\n\
             storage: {{filesystem: {{rootdirectory: {}}}}}\nhttp: {{addr: '{host}', secret: test{tls}}}\n{extra}",
            at("data").display()
        );
        fs::write(at("config.yml"), config).unwrap();
        let log = fs::File::create(at("log")).unwrap();
        let process = Command::new("docker-registry")
            .args(["serve", at("config.yml").to_str().unwrap()])
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        let registry = Self { process, host, dir };
        let deadline = Instant::now() + Duration::from_secs(60);
        while TcpStream::connect(&registry.host).is_err() {
            let log = fs::read_to_string(registry.dir.path().join("log")).unwrap_or_default();
            assert!(Instant::now() < deadline, "docker-registry does not listen; its log:\n{log}");
            std::thread::yield_now();
        }
        registry
    }

    /// The certificate of a registry with TLS.
    pub(crate) fn certificate(&self) -> PathBuf {
        self.dir.path().join("cert.pem")
    }

    /// A place in the registry.
    pub(crate) fn place(&self, rest: &str) -> Place {
        place(&self.host, rest)
    }

    /// Whether a blob lies on the registry's disk.
    pub(crate) fn has_blob(&self, digest: &str) -> bool {
        self.blob(digest).is_file()
    }

    /// Where a blob lies on the registry's disk.
    pub(crate) fn blob(&self, digest: &str) -> PathBuf {
        let hex = digest.strip_prefix("sha256:").unwrap();
        let blobs = "data/docker/registry/v2/blobs/sha256";
        self.dir.path().join(blobs).join(&hex[..2]).join(hex).join("data")
    }

    /// Where a repository lies on the registry's disk.
    pub(crate) fn repository(&self, name: &str) -> PathBuf {
        self.dir.path().join("data/docker/registry/v2/repositories").join(name)
    }

    /// The names of the tags of a repository, as they lie on the registry's disk.
    pub(crate) fn tags(&self, repository: &str) -> Vec<String> {
        let tags = self
            .dir
            .path()
            .join(format!("data/docker/registry/v2/repositories/{repository}/_manifests/tags"));
        let names = fs::read_dir(tags).into_iter().flatten().flatten();
        let mut names: Vec<String> = names
            .filter(|entry| entry.path().join("current/link").is_file())
            .map(|entry| entry.file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    /// The digest that a tag leads to, as it lies on the registry's disk. The file is empty while the registry writes it,
    /// as it may still do for a request that was given up.
    pub(crate) fn digest(&self, repository: &str, tag: &str) -> Option<String> {
        let link = self.dir.path().join(format!(
            "data/docker/registry/v2/repositories/{repository}/_manifests/tags/{tag}/current/link"
        ));
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let digest = fs::read_to_string(&link).ok()?;
            if !digest.is_empty() {
                return Some(digest);
            }
            assert!(Instant::now() < deadline, "{} stays empty", link.display());
            std::thread::yield_now();
        }
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A place in a registry.
pub(crate) fn place(host: &str, rest: &str) -> Place {
    format!("docker://{host}/{rest}").parse().unwrap()
}

/// A port that nobody uses just now.
pub(crate) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Options that wait for nobody, and keep nothing.
pub(crate) fn quick() -> Options {
    let ms = Duration::from_millis;
    let patience = Patience {
        attempts: 5,
        first_pause: ms(1),
        longest_pause: ms(20),
        silence: ms(2_000),
        connect: ms(2_000),
    };
    // `Options::default()` reads no credentials: the tests must not use those of the user who runs them.
    Options { patience, cache_limit: 0, plain_http: ["127.0.0.1".into()].into(), ..Options::default() }
}

/// Access with options, telling nobody.
pub(crate) fn access(options: Options) -> Access {
    Access::new(options, Arc::new(()) as Arc<dyn Progress>)
}

/// Bytes that do not compress, the same for the same seed (xorshift64).
pub(crate) fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    std::iter::repeat_with(next).flatten().take(length).collect()
}

/// An image of one file per layer, for one platform.
pub(crate) fn image(platform: &str, files: &[(&str, Vec<u8>)]) -> Image {
    let layer = |(path, content): &(&str, Vec<u8>)| {
        let mut tree = FileTree::new();
        tree.add_file(path, content.clone()).unwrap();
        Layer::build(&tree).unwrap()
    };
    let layers: Vec<Layer> = files.iter().map(layer).collect();
    let labels = [("tests".to_owned(), "yes".to_owned())].into();
    let entrypoint = vec!["/bin/opm".to_owned()];
    Image::new(&platform.parse().unwrap(), &Config { labels, entrypoint, ..Config::default() }, &layers)
}

/// An index of two platforms over the same layers.
pub(crate) fn index(files: &[(&str, Vec<u8>)]) -> Root {
    Index::new(vec![image("linux/amd64", files), image("linux/arm64", files)]).unwrap().into()
}

/// What a program prints, after it has succeeded.
pub(crate) fn output(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {error}");
    String::from_utf8(output.stdout).unwrap()
}

/// The SHA-256 digest of bytes, as registries write it.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    let digest = sha2::Sha256::digest(bytes);
    format!("sha256:{}", digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
}
