//! Watches the skill folders, also those that are not there yet, and looks at what changed.

use super::Root;
use super::registry::{Changes, Registry};
use crate::watch::settled;
use notify::{EventKind, RecursiveMode, Watcher as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::mpsc;

/// Something that happened: to these paths, or to who knows what.
type Event = Option<Vec<PathBuf>>;

/// Watches until the returned guard is dropped; `told` gets a line for each change.
pub fn watch(registry: Arc<Registry>, told: impl Fn(String) + Send + Sync + 'static) -> Result<Guard, String> {
    let (sender, mut events) = mpsc::unbounded_channel::<Event>();
    let roots = registry.roots();
    let near: Vec<PathBuf> = roots.iter().map(|root| root.path.clone()).collect();
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        let event = match event {
            // Reading is an event on some systems; a refresh reads, so it must not start another.
            Ok(event) if matches!(event.kind, EventKind::Access(_)) => return,
            Ok(event) if event.need_rescan() => None,
            Ok(event) => {
                let concerns =
                    |path: &PathBuf| near.iter().any(|root| path.starts_with(root) || root.starts_with(path));
                Some(event.paths.into_iter().filter(concerns).collect::<Vec<_>>())
            }
            Err(_) => None,
        };
        if event.as_ref().is_none_or(|paths| !paths.is_empty()) {
            let _ = sender.send(event);
        }
    })
    .map_err(|error| format!("skills are not watched, changes need a restart: {error}"))?;
    roots.iter().for_each(|root| follow(&mut watcher, root, &told));
    let task = tokio::spawn(async move {
        while let Some(batch) = settled::<Event, Vec<Event>>(&mut events).await {
            let mut changes = Changes { all: batch.iter().any(Option::is_none), ..Changes::default() };
            changes.paths = batch.into_iter().flatten().flatten().collect();
            // A root that came, or came back, is not watched yet; what is in it already is seen by looking at all of it.
            for root in
                roots.iter().filter(|root| changes.all || changes.paths.iter().any(|path| root.path.starts_with(path)))
            {
                follow(&mut watcher, root, &told);
            }
            let registry = registry.clone();
            let looked = tokio::task::spawn_blocking(move || registry.apply(&changes)).await;
            looked.unwrap_or_default().into_iter().for_each(&told);
        }
    });
    Ok(Guard { task })
}

/// Watches a root, and the folders around it in which it may come and go.
fn follow(watcher: &mut notify::RecommendedWatcher, root: &Root, told: &impl Fn(String)) {
    let outermost = root.within.as_deref().or(root.path.parent()).unwrap_or(&root.path);
    let around = root.path.ancestors().skip(1).take_while(|folder| folder.starts_with(outermost));
    let around = around.map(|folder| (folder, RecursiveMode::NonRecursive));
    for (folder, mode) in [(root.path.as_path(), RecursiveMode::Recursive)].into_iter().chain(around) {
        if let Err(error) = add(watcher, folder, mode) {
            told(format!("{} is not watched, changes there need a restart: {error}", folder.display()));
        }
    }
}

fn add(watcher: &mut notify::RecommendedWatcher, folder: &Path, mode: RecursiveMode) -> notify::Result<()> {
    if folder.is_dir() { watcher.watch(folder, mode) } else { Ok(()) }
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
