//! Where everything of one host is, as the command line says or as it is by default, and which places agents never reach.

use crate::capability::http::Names;
use crate::permission::Mode;
use crate::plugin::PluginRoot;
use crate::skills::{self, Owner};
use anyhow::{Context as _, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};

/// Where things are and what the command line said of them.
#[derive(Debug, Clone)]
pub struct Options {
    /// State of this user: database, config, plugins, caches.
    pub home: PathBuf,
    /// The config, when it was named.
    pub config: Option<PathBuf>,
    /// Further plugin folders.
    pub plugins: Vec<PathBuf>,
    /// What the file tools may touch.
    pub workspace: PathBuf,
    /// Papers, notes and memories, when another folder than the home's was named.
    pub library: Option<PathBuf>,
    /// What ships: plugins, policy, demo.
    pub share: PathBuf,
    /// Compiled plugins; must be writable by this user alone.
    pub cache: PathBuf,
    /// The model, when it was named.
    pub model: Option<String>,
    /// How guests' requests find addresses; the system's way but in tests.
    pub names: Names,
    /// The permission mode, when it was named.
    pub permission_mode: Option<Mode>,
}

impl Options {
    /// Makes the home folder and takes all paths for what they really are: the watcher and the kept-out places compare them.
    pub(super) fn settle(&mut self) -> Result<()> {
        make_home(&self.home)?;
        self.home = canonical(&self.home, "the home folder")?;
        self.workspace = canonical(&self.workspace, "the workspace")?;
        for folder in &mut self.plugins {
            *folder = canonical(folder, "the plugin folder")?;
            if folder.join("plugin.yaml").exists() {
                bail!("{} is a plugin itself; name the folder that it lies in with --plugins", folder.display());
            }
        }
        if let Some(library) = &mut self.library {
            *library = canonical(library, "the library")?;
        }
        if let Ok(share) = fs::canonicalize(&self.share) {
            self.share = share;
        }
        if let Some(config) = &mut self.config {
            *config = canonical(config, "the config")?;
        }
        if !self.workspace.is_dir() {
            bail!("the workspace {} is not a folder; name one with --workspace", self.workspace.display());
        }
        Ok(())
    }

    /// Where the config is, whether or not it exists.
    pub fn config_path(&self) -> PathBuf {
        self.config.clone().unwrap_or_else(|| self.home.join("astrarium.yaml"))
    }

    /// Where papers, notes and memories are.
    pub fn library(&self) -> PathBuf {
        self.library.clone().unwrap_or_else(|| self.home.join("library"))
    }

    /// Where sessions and the audit are recorded.
    pub fn database(&self) -> PathBuf {
        self.home.join("astrarium.db")
    }

    /// Where the files of sessions are, a folder each.
    pub fn sessions(&self) -> PathBuf {
        self.home.join("sessions")
    }

    /// Where the files of a session are.
    pub fn session_folder(&self, id: &str) -> PathBuf {
        self.sessions().join(id)
    }

    /// Plugin folders, later ones over earlier ones: shipped, the home's, those of the command line.
    pub(crate) fn roots(&self) -> Vec<PluginRoot> {
        let own = [self.share.join("plugins"), self.home.join("plugins")];
        own.into_iter().chain(self.plugins.iter().cloned()).map(|path| PluginRoot { path }).collect()
    }

    /// Skill folders, nearer ones over farther ones: shipped, the user's, the workspace's.
    pub(crate) fn skill_roots(&self) -> Vec<skills::Root> {
        self.near_and_far("skills")
    }

    /// Folders of prompt commands, likewise.
    pub(crate) fn command_roots(&self) -> Vec<skills::Root> {
        self.near_and_far("commands")
    }

    /// Folders of agent definitions, likewise.
    pub(crate) fn agent_roots(&self) -> Vec<skills::Root> {
        self.near_and_far("agents")
    }

    /// Folders of a kind: what ships, then the user's, then the workspace's.
    fn near_and_far(&self, kind: &str) -> Vec<skills::Root> {
        let workspace = fs::canonicalize(&self.workspace).unwrap_or_else(|_| self.workspace.clone());
        let far = [(self.share.join(kind), Owner::Shipped), (self.home.join(kind), Owner::User)];
        let near = [".claude", ".astrarium"].map(|folder| (workspace.join(folder).join(kind), Owner::Workspace));
        let root = |(path, owner)| {
            let within = (owner == Owner::Workspace).then(|| workspace.clone());
            skills::Root { path, owner, within }
        };
        far.into_iter().chain(near).map(root).collect()
    }
}

/// Makes the home folder, for this user alone.
pub(crate) fn make_home(home: &Path) -> Result<()> {
    let failed =
        || format!("cannot make the home folder {}; name a writable one with --home or ASTRARIUM_HOME", home.display());
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt as _;
        fs::DirBuilder::new().recursive(true).mode(0o700).create(home).with_context(failed)?;
    }
    #[cfg(not(unix))]
    fs::create_dir_all(home).with_context(failed)?;
    for folder in ["plugins", "skills", "commands", "library", "locks"] {
        fs::create_dir_all(home.join(folder)).with_context(failed)?;
    }
    Ok(())
}

fn canonical(path: &Path, what: &str) -> Result<PathBuf> {
    fs::canonicalize(path).with_context(|| format!("{what} {} cannot be opened", path.display()))
}

/// Agents work in a workspace; one inside a place that is kept out would let them change what they run on.
pub(super) fn check_workspace(options: &Options) -> Result<()> {
    match kept_out(options).into_iter().find(|place| options.workspace.starts_with(place)) {
        Some(place) => bail!(
            "the workspace {} lies in {}, which holds the home, what ships, or plugins; choose another with --workspace",
            options.workspace.display(),
            place.display()
        ),
        None => Ok(()),
    }
}

/// Real paths that no grant reaches. Each is kept out of the folders that lie around it; the library lies inside the home
/// and is opened by a grant of its own.
pub(super) fn kept_out(options: &Options) -> Vec<PathBuf> {
    let mut places = vec![options.home.clone(), options.config_path(), options.cache.clone(), options.share.clone()];
    places.extend(options.plugins.iter().cloned());
    // A plugin under development may be a link to where it is written, a file of the operator's to where he keeps it: that is
    // the same place by another name. The library's is not: it is opened by a grant of its own.
    let links = options
        .roots()
        .into_iter()
        .map(|root| root.path)
        .chain([options.home.clone()])
        .flat_map(|folder| links(&folder));
    places.extend(links.filter(|link| *link != options.library()));
    let mut real: Vec<PathBuf> = places.into_iter().map(|place| fs::canonicalize(&place).unwrap_or(place)).collect();
    real.sort_unstable();
    real.dedup();
    real
}

/// Links that lie in a folder.
fn links(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink())).map(|entry| entry.path()).collect()
}
