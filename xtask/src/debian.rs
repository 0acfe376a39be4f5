//! Debian's Rust as a compiler for guests, for machines that reach Debian's archive and not rustup's server.
//!
//! The packages are downloaded by apt's own client and unpacked under the target folder; nothing is installed, and no
//! package list of the system is touched. Debian has no standard library for wasm32-wasip2, so cargo builds it from
//! `rust-web-src`, on the libc of sid's `wasi-libc`. The cargo and the linker are those of the pinned toolchain.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::toolchain::WASM;
use crate::tree::Tree;
use crate::{Outcome, files, fingerprint, say, shell, sources};

/// Raised when what is unpacked changes; a tree of another layout is made anew.
const LAYOUT: &str = "1";

/// The unpacked packages.
pub struct Debian {
    unpacked: PathBuf,
    linker: PathBuf,
    linker_helpers: PathBuf,
}

impl Debian {
    /// The pinned toolchain's cargo with Debian's compiler.
    pub fn cargo(&self, tree: &Tree) -> Outcome<Command> {
        let mut cargo = shell::cargo(tree);
        cargo
            .env("RUSTC", self.unpacked.join("usr/bin/rustc"))
            .env("LD_LIBRARY_PATH", library_folders(&self.unpacked)?)
            // `-Zbuild-std` is offered by nightly compilers only; this is the compiler's own switch for distributions.
            .env("RUSTC_BOOTSTRAP", "1")
            .env("CARGO_TARGET_WASM32_WASIP2_LINKER", &self.linker)
            .env("PATH", shell::path_with(&self.linker_helpers)?);
        Ok(cargo)
    }
}

/// What an earlier run has set up.
pub fn ready(tree: &Tree, sysroot: &Path) -> Option<Debian> {
    let debian = locate(tree, sysroot);
    fingerprint::is_fresh(&stamp(tree), LAYOUT).then_some(debian)
}

/// Downloads and unpacks the packages, about 150 MB.
pub fn prepare(tree: &Tree, sysroot: &Path) -> Outcome<Debian> {
    for program in ["apt-get", "apt-cache", "dpkg"] {
        if shell::which(program).is_none() {
            return Err(format!("`{program}` is not installed: this is no Debian"));
        }
    }
    let debian = locate(tree, sysroot);
    for tool in [&debian.linker, &debian.linker_helpers] {
        if !tool.exists() {
            return Err(format!("the toolchain lacks {}: install Rust by rustup", tool.display()));
        }
    }
    fingerprint::once(&stamp(tree), LAYOUT, || unpack(tree, &debian))?;
    Ok(debian)
}

fn home(tree: &Tree) -> PathBuf {
    tree.target.join("debian-rust")
}

fn stamp(tree: &Tree) -> PathBuf {
    home(tree).join("complete")
}

fn locate(tree: &Tree, sysroot: &Path) -> Debian {
    // The linker is a program of the machine it runs on: its folder is the only target that holds `bin`.
    let host = sysroot.join("lib/rustlib").join(format!("{}-unknown-linux-gnu", std::env::consts::ARCH)).join("bin");
    Debian {
        unpacked: home(tree).join("unpacked"),
        linker: host.join("wasm-component-ld"),
        linker_helpers: host.join("gcc-ld"),
    }
}

fn unpack(tree: &Tree, debian: &Debian) -> Outcome<()> {
    let home = home(tree);
    let work = home.join("work");
    for folder in [&debian.unpacked, &work] {
        files::remove(folder)?;
        files::create_folder(folder)?;
    }

    say("fetching Debian's Rust compiler and its library sources (about 150 MB) into target/debian-rust");
    let own = Apt::with_machine_sources(&work.join("own"))?;
    own.update();
    let library = own.depends_on("libstd-rust-web-dev", "libstd-rust-web-")?;
    let llvm = own.depends_on(&library, "libllvm")?;
    own.unpack(&["rustc-web", "libstd-rust-web-dev", &library, &llvm, "rust-web-src"], &debian.unpacked)?;

    say("fetching the C library for WASI from Debian sid");
    let sid = Apt::with_sources(&work.join("sid"), &sources::sid_of_this_machine()?)?;
    sid.update();
    let wasi = work.join("wasi");
    sid.unpack(&["wasi-libc"], &wasi)?;
    let objects = debian.unpacked.join("usr/lib/rustlib").join(WASM).join("lib/self-contained");
    files::mirror(&wasi.join("usr/lib").join(WASM), &objects)?;
    if !objects.join("crt1-command.o").exists() {
        return Err(format!("sid's wasi-libc holds no usr/lib/{WASM}/crt1-command.o"));
    }

    let mut rustc = Command::new(debian.unpacked.join("usr/bin/rustc"));
    rustc.arg("--version").env("LD_LIBRARY_PATH", library_folders(&debian.unpacked)?);
    let version = shell::capture(&mut rustc, "trying Debian's compiler")?;
    say(&format!("Debian's {} is ready", version.trim_end()));
    files::remove(&work)
}

/// Folders under `usr/lib` with shared libraries: one, named after the machine.
fn library_folders(unpacked: &Path) -> Outcome<std::ffi::OsString> {
    let folders = files::entries(&unpacked.join("usr/lib"))?;
    let multiarch = folders.into_iter().filter(|folder| folder.to_string_lossy().ends_with("-linux-gnu"));
    std::env::join_paths(multiarch).map_err(|error| format!("{}: {error}", unpacked.display()))
}

/// apt's client with lists and caches of its own, so that it neither needs nor changes those of the system.
struct Apt {
    folder: PathBuf,
    options: Vec<String>,
}

impl Apt {
    fn with_machine_sources(folder: &Path) -> Outcome<Self> {
        for inner in ["lists/partial", "cache/archives/partial", "packages"] {
            files::create_folder(&folder.join(inner))?;
        }
        let options = [
            format!("Dir::State::lists={}", folder.join("lists").display()),
            format!("Dir::Cache={}", folder.join("cache").display()),
            // Names and versions are all that is needed of the lists.
            "Acquire::Languages=none".to_string(),
            "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false".to_string(),
            // The user that apt downloads as may not write into a developer's target folder.
            "APT::Sandbox::User=root".to_string(),
        ];
        Ok(Self { folder: folder.to_path_buf(), options: options.into() })
    }

    fn with_sources(folder: &Path, sources: &str) -> Outcome<Self> {
        let mut apt = Self::with_machine_sources(folder)?;
        let file = folder.join("own.sources");
        files::write(&file, sources.as_bytes())?;
        apt.options.push(format!("Dir::Etc::sourcelist={}", file.display()));
        apt.options.push("Dir::Etc::sourceparts=-".to_string());
        Ok(apt)
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("LC_ALL", "C");
        for option in &self.options {
            command.args(["-o", option]);
        }
        command
    }

    /// A source that fails is no failure: another one may hold all that is needed. The download tells.
    fn update(&self) {
        let _ = shell::output(self.command("apt-get").arg("update"), "reading Debian's package lists");
    }

    /// The package that `package` depends on and whose name carries a version: `libllvm22`.
    fn depends_on(&self, package: &str, prefix: &str) -> Outcome<String> {
        let asked = format!("looking for the packages that {package} needs");
        let text = shell::capture(self.command("apt-cache").args(["depends", package]), &asked)?;
        let names = text.lines().filter_map(|line| line.trim().strip_prefix("Depends: "));
        names
            .map(str::to_string)
            .find(|name| name.starts_with(prefix))
            .ok_or_else(|| format!("{package} depends on no {prefix}*: its packaging has changed"))
    }

    fn unpack(&self, packages: &[&str], into: &Path) -> Outcome<()> {
        let folder = self.folder.join("packages");
        let mut download = self.command("apt-get");
        shell::capture(download.arg("download").args(packages).current_dir(&folder), "downloading Debian's packages")?;
        files::create_folder(into)?;
        for package in files::entries(&folder)? {
            shell::run(Command::new("dpkg").arg("-x").arg(&package).arg(into), "unpacking a Debian package")?;
        }
        Ok(())
    }
}
