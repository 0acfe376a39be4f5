//! `plugin install`, `remove`, `rollback` and `check`: versions of plugins in the home.
//!
//! The only download of the program is here, by the operator's command: bounded in size, time and redirects, and never by
//! plain HTTP from another machine, but for a bare component of which a digest says what it must be.

use super::check_name;
use super::grant::tell_what_is_missing;
use crate::cli::show::{NAME, note_line, notice, print_line};
use crate::cli::{Exit, audit, usage};
use crate::host::{Host, Options};
use crate::manifest::{self, is_plugin_name};
use crate::plain::one_line;
use crate::plugin::{Checked, Found, Package, Versions, check as checked, read_bounded};
use anyhow::{Context as _, Result, anyhow, bail};
use futures::StreamExt as _;
use reqwest::Url;
use std::path::Path;
use std::time::Duration;

/// Time of a whole download; a component of 64 MiB over a slow line takes minutes, a server that stalls must not take for ever.
const TIME: Duration = Duration::from_secs(600);

/// Redirects that are followed: one to a store of releases, one to its mirror, and some to spare.
const REDIRECTS: usize = 5;

/// Fetches or reads a plugin, checks all of it, keeps it by digest and puts it in force.
pub(in crate::cli) async fn install(host: &Host, source: &str, digest: Option<&str>) -> Result<Exit> {
    let limit = host.config().limits.component_bytes;
    let package = match remote(source) {
        Some(url) => fetch(&url, digest.is_some(), limit).await?,
        None => local(Path::new(source), limit)?,
    };
    if let Some(wanted) = digest {
        let wanted = wanted.strip_prefix("sha256:").unwrap_or(wanted).to_ascii_lowercase();
        if wanted != package.digest() {
            bail!(
                "the component's digest is sha256:{}, and --digest says sha256:{wanted}; nothing is installed",
                package.digest()
            );
        }
    }
    let name = package.manifest.name.clone();
    let folder = host.options.home.join("plugins").join(&name);
    let found = checked(&host.registry, package.clone(), &folder).await;
    show(&found);
    if !found.problems.is_empty() {
        bail!("nothing is installed: {}", found.problems.join("; "));
    }
    let (kept, before) = Versions::new(&host.options.home).install(&package)?;
    audit::operator(&host.options, audit::command("install", &name, source).by(&name, &kept.digest));
    note_line(&match before {
        Some(before) if before.fingerprint != kept.fingerprint => format!(
            "{name} {} is installed in place of {}; `astrarium plugin rollback {name}` goes back",
            kept.version, before.version
        ),
        _ => format!("{name} {} is installed", kept.version),
    });
    let shadowed = host.options.roots().into_iter().rev().skip_while(|root| !folder.starts_with(&root.path)).skip(1);
    for root in shadowed.filter(|root| root.path.join(&name).is_dir()) {
        note_line(&notice(&format!("it takes the place of {}", root.path.join(&name).display())));
    }
    if crate::config::disabled(&host.options.home)?.contains(&name) {
        note_line(&notice(&format!("it is disabled; `astrarium plugin enable {name}` switches it on")));
    }
    let found = Found { folder, digest: package.digest(), manifest: package.manifest };
    tell_what_is_missing(&host.options, &found);
    Ok(Exit::Done)
}

/// Takes an installed plugin out of force.
pub(in crate::cli) fn remove(options: &Options, name: &str) -> Result<Exit> {
    check_name(name)?;
    Versions::new(&options.home).remove(name)?;
    audit::operator(options, audit::command("remove", name, ""));
    note_line(&format!("{name} is removed; its versions stay for `astrarium plugin rollback {name} VERSION`"));
    note_line(&format!(
        "note: where calls relied on it as a gate, they are refused until `astrarium plugin disable {name}`"
    ));
    Ok(Exit::Done)
}

/// Puts an earlier installed version in force.
pub(in crate::cli) fn rollback(options: &Options, name: &str, version: Option<&str>) -> Result<Exit> {
    check_name(name)?;
    let kept = Versions::new(&options.home).rollback(name, version)?;
    audit::operator(options, audit::command("rollback", name, &kept.version).by(name, &kept.digest));
    note_line(&format!("{name} {} is in force, sha256:{}", kept.version, kept.digest));
    Ok(Exit::Done)
}

/// Looks at a plugin as `install` would, and publishes nothing.
pub(in crate::cli) async fn check(host: &Host, path: &Path, json: bool) -> Result<Exit> {
    let found = match local(path, host.config().limits.component_bytes) {
        Ok(package) => checked(&host.registry, package, path).await,
        Err(error) => Checked { problems: vec![format!("{error:#}")], ..Checked::default() },
    };
    if json {
        print_line(&serde_json::to_string_pretty(&found)?);
    } else {
        show(&found);
        for problem in &found.problems {
            note_line(&format!("error: {}", one_line(problem, usize::MAX)));
        }
    }
    Ok(if found.problems.is_empty() { Exit::Done } else { Exit::Failed })
}

fn show(found: &Checked) {
    let print = |line: String| print_line(&one_line(&line, usize::MAX));
    let list = |names: &[String]| if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    let set = |capabilities: &crate::grant::Capabilities| match capabilities.is_empty() {
        true => "nothing".to_owned(),
        false => capabilities.to_string(),
    };
    if found.name.is_empty() {
        return;
    }
    print(format!("{} {}", one_line(&found.name, NAME), one_line(&found.version, NAME)));
    print(format!("digest:   sha256:{}", found.digest));
    print(format!("manifest: sha256:{}", found.manifest));
    print(format!("tools:    {}", list(&found.tools)));
    print(format!("hooks:    {}", list(&found.hooks)));
    print(format!("asks for: {}", set(&found.requested)));
    print(format!("granted:  {}", set(&found.granted)));
    print(format!("missing:  {}", set(&found.missing)));
    for note in &found.notes {
        note_line(&notice(note));
    }
}

/// The address, where the source is one.
fn remote(source: &str) -> Option<Url> {
    Url::parse(source).ok().filter(|url| matches!(url.scheme(), "http" | "https"))
}

/// A folder with a plugin, or a single component.
fn local(path: &Path, limit: u64) -> Result<Package> {
    if path.is_dir() {
        return Package::read(path, limit).map_err(|reason| anyhow!(reason));
    }
    if path.extension().is_some_and(|end| end == "wasm") {
        let wasm = read_bounded(path, limit).map_err(|reason| anyhow!(reason))?;
        return bare(path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default(), wasm);
    }
    let shown = path.display();
    Err(usage(format!("{shown} is neither a plugin's folder nor a .wasm file nor an http(s) address")))
}

/// A component alone asks for nothing: a manifest that says its name is enough.
fn bare(stem: &str, wasm: Vec<u8>) -> Result<Package> {
    let name = stem.to_lowercase().replace('_', "-");
    if !is_plugin_name(&name) {
        return Err(usage(format!("{stem:?} makes no plugin name; put the component in a folder with a plugin.yaml")));
    }
    Package::new(format!("name: {name}\nversion: 0.0.0\n"), wasm).map_err(|reason| anyhow!(reason))
}

/// `…/plugin.yaml`, or a folder's address that ends in `/`, with the component beside it; or a `.wasm`.
async fn fetch(url: &Url, pinned: bool, limit: u64) -> Result<Package> {
    let file = url.path_segments().and_then(|mut parts| parts.next_back()).unwrap_or_default().to_owned();
    if let Some(stem) = file.strip_suffix(".wasm") {
        return bare(stem, download(url, pinned, limit).await?);
    }
    let manifest_url = match file.as_str() {
        "" => url.join("plugin.yaml")?,
        name if name.ends_with(".yaml") => url.clone(),
        _ => {
            return Err(usage(format!(
                "{url} names no plugin; give the address of a plugin.yaml, of its folder with / at the end, or of a .wasm"
            )));
        }
    };
    // What a digest pins is the component; what its manifest asks for and exports could be anything.
    let text = String::from_utf8(download(&manifest_url, false, manifest::LIMIT).await?)
        .with_context(|| format!("{manifest_url} is not UTF-8 text"))?;
    let package = Package::new(text, Vec::new()).map_err(|reason| anyhow!("{manifest_url}: {reason}"))?;
    // A name without separators, as the manifest's reader has checked, so it stays in the folder.
    let wasm = download(&manifest_url.join(&package.manifest.component())?, pinned, limit).await?;
    Ok(Package { wasm, ..package })
}

async fn download(url: &Url, pinned: bool, limit: u64) -> Result<Vec<u8>> {
    check_transport(url, pinned).map_err(usage)?;
    let policy = reqwest::redirect::Policy::custom(move |attempt| match check_transport(attempt.url(), pinned) {
        _ if attempt.previous().len() > REDIRECTS => attempt.error("it redirects too often"),
        Err(reason) => attempt.error(reason),
        Ok(()) => attempt.follow(),
    });
    let mut client = reqwest::Client::builder().connect_timeout(Duration::from_secs(15)).timeout(TIME).redirect(policy);
    if is_loopback(url) {
        // A proxy that the environment names for the outside cannot reach a server on this machine.
        client = client.no_proxy();
    }
    let client = client.build().context("cannot set up TLS; check the system's certificates")?;
    let failed = || format!("cannot fetch {url}");
    let response =
        client.get(url.clone()).send().await.with_context(failed)?.error_for_status().with_context(failed)?;
    let too_large = || anyhow!("{url} is larger than {limit} bytes (limits: component_bytes); nothing is installed");
    if response.content_length().is_some_and(|length| length > limit) {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    let mut body = response.bytes_stream();
    while let Some(piece) = body.next().await {
        bytes.extend_from_slice(&piece.with_context(failed)?);
        if bytes.len() as u64 > limit {
            return Err(too_large());
        }
    }
    Ok(bytes)
}

/// Whoever sits between could hand over anything by plain HTTP, unless a digest says what it must be.
fn check_transport(url: &Url, pinned: bool) -> Result<(), String> {
    match url.scheme() {
        "https" => Ok(()),
        "http" if pinned || is_loopback(url) => Ok(()),
        "http" => {
            let pin = match url.path().ends_with(".wasm") {
                true => ", or say --digest sha256:…",
                false => "; a digest pins the component only",
            };
            Err(format!("{url} is plain HTTP, which anyone on the way can change; use https{pin}"))
        }
        other => Err(format!("{other} is no way to fetch a plugin; use https")),
    }
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(url::Host::Domain(name)) => name == "localhost",
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}
