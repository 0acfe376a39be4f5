//! From requests and grants to what a plugin runs as: effective capabilities, the folders they open, what is missing.

use super::load::merge_config;
use super::registry::{GrantRule, Settings};
use super::snapshot::{Plugin, Snapshot};
use crate::capability::process::Native;
use crate::grant::{Capabilities, FsMode, Root};
use crate::manifest::Manifest;
use crate::runtime::{Exports, GuestEnv, Loaded, Preopen};
use std::path::{Path, PathBuf};

/// What a build of a plugin may do, and what it asked for in vain.
pub fn effective(settings: &Settings, manifest: &Manifest, digest: &str) -> (Capabilities, Capabilities) {
    let all = |rules: &[GrantRule]| {
        let fitting = rules.iter().filter(|rule| rule.is_for(manifest, digest));
        fitting.fold(Capabilities::default(), |all, rule| all.join(&rule.capabilities))
    };
    let granted = all(&settings.grants);
    let mut effective = manifest.requests.meet(&granted).less(&all(&settings.revoked));
    effective.fs.retain(|rule| match &rule.path {
        Root::Folder(path) => real_folder(settings, &granted, path, rule.mode).is_some(),
        Root::Workspace | Root::Library | Root::Session | Root::Skills => true,
    });
    for (rule, fs) in effective.process.iter_mut().map(|rule| (rule.program.clone(), &mut rule.fs)) {
        let granted = granted.process.iter().filter(|grant| grant.program == rule).flat_map(|grant| &grant.fs);
        let granted = Capabilities { fs: granted.cloned().collect(), ..Capabilities::default() };
        fs.retain(|rule| match &rule.path {
            Root::Folder(path) => real_folder(settings, &granted, path, rule.mode).is_some(),
            Root::Workspace | Root::Library | Root::Skills => true,
            Root::Session => false,
        });
    }
    effective.process.retain(|rule| !rule.fs.is_empty());
    let missing = manifest.requests.missing(&effective);
    (effective, missing)
}

/// Who the plugin runs as, and what it asked for in vain.
pub(super) fn environment(settings: &Settings, manifest: &Manifest, digest: &str) -> (GuestEnv, Capabilities) {
    let name = &manifest.name;
    let (effective, missing) = effective(settings, manifest, digest);
    let real = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
    let preopens = effective.fs.iter().flat_map(|rule| {
        let writable = rule.mode == FsMode::Rw;
        let by_path = |path: &PathBuf, writable| Preopen {
            host: real(path),
            guest: path.to_string_lossy().into_owned(),
            writable,
        };
        let named = |host: &PathBuf, guest: &str| Preopen { host: real(host), guest: guest.into(), writable };
        match &rule.path {
            Root::Workspace => vec![named(&settings.workspace, "/workspace")],
            // Another folder for each call.
            Root::Session => Vec::new(),
            Root::Library => vec![named(&settings.library, "/library")],
            Root::Folder(path) => vec![by_path(path, writable)],
            // What instructs a model is no guest's to write, whatever is granted. A root that is absent cannot be opened.
            Root::Skills => skill_folders(settings).iter().map(|folder| by_path(folder, false)).collect(),
        }
    });
    let preopens: Vec<Preopen> = preopens.collect();
    let covered = |place: &&PathBuf| {
        preopens.iter().any(|folder| place.starts_with(folder.host.canonicalize().as_ref().unwrap_or(&folder.host)))
    };
    let injected = effective.http.iter().flat_map(|rule| rule.inject.values()).map(|template| &template.secret);
    let secrets = injected.filter_map(|name| Some((name.clone(), settings.secrets.get(name)?.clone()))).collect();
    let of_programs = effective.process.iter().flat_map(|rule| &rule.fs).filter_map(|rule| match &rule.path {
        Root::Folder(path) => Some((path.clone(), real(path))),
        Root::Workspace | Root::Library | Root::Session | Root::Skills => None,
    });
    let native = Native {
        workspace: real(&settings.workspace),
        library: real(&settings.library),
        skills: skill_folders(settings).iter().map(real).collect(),
        folders: of_programs.collect(),
        kept_out: settings.kept_out.clone(),
        without_landlock: settings.without_landlock,
    };
    let env = GuestEnv {
        secrets,
        native,
        plugin: name.clone(),
        digest: digest.to_owned(),
        kept_out: settings.kept_out.iter().filter(covered).cloned().collect(),
        preopens,
        session: effective.fs.iter().any(|rule| rule.path == Root::Session),
        config: merge_config(&manifest.config, settings.configs.get(name)),
        effective,
    };
    (env, missing)
}

/// The skill folders that are there, and what the user's links in them lead to: a skill that is kept elsewhere has its files
/// there.
fn skill_folders(settings: &Settings) -> Vec<PathBuf> {
    let roots = settings.skills.iter().filter(|root| root.is_dir());
    let links = |root: &PathBuf| {
        let entries = std::fs::read_dir(root).into_iter().flatten().flatten();
        let links =
            entries.map(|entry| entry.path()).filter(|path| path.is_symlink() && path.join("SKILL.md").is_file());
        links.collect::<Vec<_>>()
    };
    roots.flat_map(|root| [vec![root.clone()], links(root)].concat()).collect()
}

/// The real path of a folder that was asked for, when a grant covers that too and it lies in no kept-out place. A link
/// in a granted folder must not open what it leads to.
fn real_folder(settings: &Settings, granted: &Capabilities, asked: &Path, mode: FsMode) -> Option<PathBuf> {
    let real = asked.canonicalize().ok()?;
    // Agents write in the workspace: a link there is nobody's decision.
    let led_out = asked.strip_prefix(&settings.workspace).is_ok_and(|rest| real != settings.workspace.join(rest));
    if led_out {
        return None;
    }
    let covered = granted.fs.iter().any(|grant| match &grant.path {
        Root::Folder(path) => grant.mode >= mode && path.canonicalize().is_ok_and(|path| real.starts_with(path)),
        Root::Workspace | Root::Library | Root::Session | Root::Skills => false,
    });
    let kept_out = settings.kept_out.iter().any(|place| real.starts_with(place));
    (covered && !kept_out).then_some(real)
}

/// What is odd about grants, a line each: they name a plugin or a folder that is not there. The others hold all the same.
pub(super) fn odd_grants(settings: &Settings, snapshot: &Snapshot) -> Vec<String> {
    let mut lines = Vec::new();
    for rule in settings.grants.iter().chain(&settings.revoked) {
        let GrantRule { plugin, source, .. } = rule;
        if snapshot.plugin(plugin).is_none() {
            let names = snapshot.plugins.iter().map(|plugin| plugin.name.as_str());
            let nearest =
                names.max_by(|a, b| strsim::jaro_winkler(a, plugin).total_cmp(&strsim::jaro_winkler(b, plugin)));
            let nearest = nearest.map(|name| format!("; the nearest is {name}")).unwrap_or_default();
            lines.push(format!("{source}: there is no plugin {plugin}, so this does nothing{nearest}"));
        }
        for rule in &rule.capabilities.fs {
            if let Root::Folder(path) = &rule.path
                && !path.is_dir()
            {
                let path = path.display();
                lines.push(format!("{source}: {plugin}: the folder {path} is not there; make it, or take it out"));
            }
        }
    }
    lines
}

/// The capability ratchet: why a version does not take the place of one that runs, if it asks for more than is granted or
/// lost a gate that calls rely on.
pub(super) fn held_back(
    before: &Plugin,
    manifest: &Manifest,
    loaded: &Loaded,
    missing: &Capabilities,
) -> Option<String> {
    if !missing.is_empty() && before.missing.is_empty() {
        let line = missing.grant_lines(&before.name);
        return Some(format!("version {} asks for more than is granted; grant it with {line}", manifest.version));
    }
    let lost = |judges: fn(&Exports) -> bool| {
        before.code.as_ref().is_some_and(|(before, _)| judges(&before.exports)) && !judges(&loaded.exports)
    };
    if lost(|exports| exports.pre_tool_use.is_some()) || lost(|exports| exports.post_tool_use.is_some()) {
        return Some(format!(
            "version {} no longer exports the gate that calls rely on; disable the plugin first if that is meant",
            manifest.version
        ));
    }
    None
}
