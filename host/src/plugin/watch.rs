//! Watches the plugin folders and the operator's files, and refreshes when they change.
//!
//! When a change is over is decided by `watch`: an editor's save is one refresh, and steady writes do not starve it.

use super::Registry;
use crate::watch::settled;
use notify::{EventKind, RecursiveMode, Watcher as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::mpsc;

/// Watches until the returned guard is dropped. `files` are single files of the operator; `before` runs before each
/// refresh, to read them again, and answers with what is wrong with them; `told` gets a line for each change and mistake.
pub fn watch(
    registry: Arc<Registry>,
    files: Vec<PathBuf>,
    before: impl Fn(&Registry) -> Option<String> + Send + Sync + 'static,
    told: impl Fn(String) + Send + Sync + 'static,
) -> Result<Guard, String> {
    let (sender, mut events) = mpsc::unbounded_channel::<Vec<PathBuf>>();
    let roots: Vec<PathBuf> = registry.settings().roots.into_iter().map(|root| root.path).collect();
    let first = sender.clone();
    let (in_roots, of_files) = (roots.clone(), files.clone());
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        let mut paths = match event {
            // Reading a file is an event on some systems; a refresh reads, so it must not start another.
            Ok(event) if matches!(event.kind, EventKind::Access(_)) => return,
            Ok(event) if !event.need_rescan() => event.paths,
            // Nobody knows what was missed: any root may be another folder now.
            _ => in_roots.clone(),
        };
        // The database lies beside the operator's files and is written all the time.
        paths.retain(|path| of_files.contains(path) || in_roots.iter().any(|root| path.starts_with(root)));
        if !paths.is_empty() {
            let _ = sender.send(paths);
        }
    })
    .map_err(|error| format!("plugins are not watched, changes need a restart: {error}"))?;
    for root in &roots {
        follow(&mut watcher, root)?;
    }
    // A file that is replaced by a rename is another file: its folder is what must be watched.
    let mut folders: Vec<&Path> =
        files.iter().filter_map(|file| file.parent()).filter(|folder| folder.is_dir()).collect();
    folders.dedup();
    for folder in folders {
        add(&mut watcher, folder, RecursiveMode::NonRecursive)?;
    }
    // What changed since the first look and before anything was watched.
    let _ = first.send(Vec::new());
    drop(first);
    let task = tokio::spawn(async move {
        let mut told_mistake = None;
        while let Some(batch) = settled::<Vec<PathBuf>, Vec<Vec<PathBuf>>>(&mut events).await {
            // A root that came, or came back, is not watched yet.
            for root in roots.iter().filter(|root| batch.iter().flatten().any(|path| path == *root)) {
                if let Err(problem) = follow(&mut watcher, root) {
                    told(problem);
                }
            }
            // A mistake that stays is told once.
            let mistake = before(&registry);
            let news = mistake.clone().filter(|_| mistake != told_mistake);
            told_mistake = mistake;
            for line in news.into_iter().chain(registry.refresh().await) {
                told(line);
            }
        }
    });
    Ok(Guard { task })
}

/// Watches a root, and the folder in which it may come and go.
fn follow(watcher: &mut notify::RecommendedWatcher, root: &Path) -> Result<(), String> {
    if let Some(around) = root.parent().filter(|around| around.is_dir()) {
        add(watcher, around, RecursiveMode::NonRecursive)?;
    }
    if root.is_dir() { add(watcher, root, RecursiveMode::Recursive) } else { Ok(()) }
}

fn add(watcher: &mut notify::RecommendedWatcher, path: &Path, mode: RecursiveMode) -> Result<(), String> {
    watcher
        .watch(path, mode)
        .map_err(|error| format!("{} is not watched, changes there need a restart: {error}", path.display()))
}

/// Watching ends when this is dropped.
pub struct Guard {
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.task.abort();
    }
}
