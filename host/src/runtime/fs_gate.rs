//! The gate before WASI's file functions: what is refused before the operating system is asked.
//!
//! Opening a FIFO or a device blocks in a system call that no epoch reaches, so special files are refused by their type
//! first. A `:` in a path is a drive prefix or an alternate stream on some systems, so it is refused on all (an open
//! advisory of wasmtime 48.0.8 is about these). Hard links are not offered: one made into a writable folder would open
//! a file that was granted to be read only. Kept-out places are refused, and no link can be made that leads to one.

use super::guest::Folder;
use super::{GuestState, kept_out};
use std::path::{Path, PathBuf};
use wasmtime::StoreContextMut;
use wasmtime::component::{Linker, Resource};
use wasmtime_wasi::filesystem::WasiFilesystemView as _;
use wasmtime_wasi::p2::FsError;
use wasmtime_wasi::p2::bindings::filesystem::preopens::Host as _;
use wasmtime_wasi::p2::bindings::filesystem::types::{
    Descriptor, DescriptorFlags, DescriptorStat, DescriptorType, ErrorCode, HostDescriptor, MetadataHashValue,
    NewTimestamp, OpenFlags, PathFlags,
};

type Answer<T> = wasmtime::Result<(Result<T, ErrorCode>,)>;
type Fd = Resource<Descriptor>;
type Caller<'a> = StoreContextMut<'a, GuestState>;

/// Replaces the functions of `wasi:filesystem` that take a path.
pub(super) fn link(linker: &mut Linker<GuestState>) -> wasmtime::Result<()> {
    linker.allow_shadowing(true);
    linker.instance("wasi:filesystem/preopens@0.2.12")?.func_wrap(
        "get-directories",
        |mut store: Caller<'_>, (): ()| {
            let folders = store.data_mut().filesystem().get_directories()?;
            store.data_mut().note_preopens(&folders);
            Ok((folders,))
        },
    )?;
    let mut types = linker.instance("wasi:filesystem/types@0.2.12")?;
    types.func_wrap_async(
        "[method]descriptor.open-at",
        |store: Caller<'_>, args: (Fd, PathFlags, String, OpenFlags, DescriptorFlags)| Box::new(open_at(store, args)),
    )?;
    types.func_wrap_async(
        "[method]descriptor.stat-at",
        |mut store: Caller<'_>, (fd, flags, path): (Fd, PathFlags, String)| {
            Box::new(async move {
                if let Err(code) = check_path(&path) {
                    return Ok((Err(code),)) as Answer<DescriptorStat>;
                }
                answer(store.data_mut().filesystem().stat_at(fd, flags, path).await)
            })
        },
    )?;
    types.func_wrap_async(
        "[method]descriptor.set-times-at",
        |mut store: Caller<'_>,
         (fd, flags, path, accessed, modified): (Fd, PathFlags, String, NewTimestamp, NewTimestamp)| {
            Box::new(async move {
                if let Err(code) = store.data().may_reach(&fd, &path) {
                    return Ok((Err(code),)) as Answer<()>;
                }
                let at = fd.rep();
                let set = store.data_mut().filesystem().set_times_at(fd, flags, path.clone(), accessed, modified).await;
                store.data().note(at, &path, true, answer(set))
            })
        },
    )?;
    types.func_wrap_async("[method]descriptor.readlink-at", |mut store: Caller<'_>, (fd, path): (Fd, String)| {
        Box::new(async move {
            if let Err(code) = check_path(&path) {
                return Ok((Err(code),)) as Answer<String>;
            }
            answer(store.data_mut().filesystem().readlink_at(fd, path).await)
        })
    })?;
    types.func_wrap_async(
        "[method]descriptor.metadata-hash-at",
        |mut store: Caller<'_>, (fd, flags, path): (Fd, PathFlags, String)| {
            Box::new(async move {
                if let Err(code) = check_path(&path) {
                    return Ok((Err(code),)) as Answer<MetadataHashValue>;
                }
                answer(store.data_mut().filesystem().metadata_hash_at(fd, flags, path).await)
            })
        },
    )?;
    types.func_wrap_async(
        "[method]descriptor.create-directory-at",
        |mut store: Caller<'_>, (fd, path): (Fd, String)| {
            Box::new(async move {
                if let Err(code) = store.data().may_reach(&fd, &path) {
                    return Ok((Err(code),)) as Answer<()>;
                }
                let at = fd.rep();
                let made = answer(store.data_mut().filesystem().create_directory_at(fd, path.clone()).await);
                store.data().note(at, &path, true, made)
            })
        },
    )?;
    types.func_wrap_async(
        "[method]descriptor.rename-at",
        |mut store: Caller<'_>, (fd, old, new_fd, new): (Fd, String, Fd, String)| {
            Box::new(async move {
                let state = store.data();
                let allowed = state
                    .may_move(&fd, &old)
                    .and_then(|()| state.may_move(&new_fd, &new))
                    .and_then(|()| state.keep_mode(&fd, &old, &new_fd, &new));
                if let Err(code) = allowed {
                    return Ok((Err(code),)) as Answer<()>;
                }
                let at = new_fd.rep();
                let moved = answer(store.data_mut().filesystem().rename_at(fd, old, new_fd, new.clone()).await);
                store.data().note(at, &new, true, moved)
            })
        },
    )?;
    for (name, remove_folder) in
        [("[method]descriptor.unlink-file-at", false), ("[method]descriptor.remove-directory-at", true)]
    {
        types.func_wrap_async(name, move |mut store: Caller<'_>, (fd, path): (Fd, String)| {
            Box::new(async move {
                if let Err(code) = store.data().may_move(&fd, &path) {
                    return Ok((Err(code),)) as Answer<()>;
                }
                let at = fd.rep();
                let mut view = store.data_mut().filesystem();
                let removed = match remove_folder {
                    true => answer(view.remove_directory_at(fd, path.clone()).await),
                    false => answer(view.unlink_file_at(fd, path.clone()).await),
                };
                store.data().note(at, &path, true, removed)
            })
        })?;
    }
    types.func_wrap_async(
        "[method]descriptor.symlink-at",
        |mut store: Caller<'_>, (fd, target, path): (Fd, String, String)| {
            Box::new(async move {
                if check_path(&target).and_then(|()| check_path(&path)).is_err()
                    || !store.data().env.kept_out.is_empty()
                {
                    return Ok((Err(ErrorCode::NotPermitted),)) as Answer<()>;
                }
                answer(store.data_mut().filesystem().symlink_at(fd, target, path).await)
            })
        },
    )?;
    types.func_wrap_async("[method]descriptor.link-at", |_: Caller<'_>, _: (Fd, PathFlags, String, Fd, String)| {
        Box::new(async move { Ok((Err(ErrorCode::NotPermitted),)) as Answer<()> })
    })?;
    linker.allow_shadowing(false);
    Ok(())
}

async fn open_at(
    mut store: Caller<'_>,
    (fd, path_flags, path, open_flags, flags): (Fd, PathFlags, String, OpenFlags, DescriptorFlags),
) -> Answer<Fd> {
    let state = store.data_mut();
    if let Err(code) = state.may_reach(&fd, &path) {
        return Ok((Err(code),));
    }
    let parent = fd.rep();
    let mut view = state.filesystem();
    let stat = view.stat_at(Resource::new_borrow(parent), path_flags, path.clone()).await;
    if let Ok(stat) = &stat {
        let plain = [DescriptorType::RegularFile, DescriptorType::Directory, DescriptorType::SymbolicLink];
        if !plain.contains(&stat.type_) {
            state.refuse("special files are not opened", parent, &path);
            return Ok((Err(ErrorCode::NotPermitted),));
        }
    }
    let write =
        flags.contains(DescriptorFlags::WRITE) || open_flags.intersects(OpenFlags::CREATE | OpenFlags::TRUNCATE);
    let opened = view.open_at(fd, path_flags, path.clone(), open_flags, flags).await;
    if let Ok(opened) = &opened {
        let is_folder = stat.is_ok_and(|stat| stat.type_ == DescriptorType::Directory);
        state.note_opened(parent, &path, opened.rep(), is_folder);
    }
    state.note(parent, &path, write, answer(opened))
}

impl GuestState {
    /// Remembers where the preopened folders are.
    fn note_preopens(&mut self, folders: &[(Fd, String)]) {
        for (fd, name) in folders {
            if let Some(preopen) = self.preopens.iter().find(|preopen| preopen.guest == *name) {
                let writable = preopen.writable && !self.read_only;
                self.folders.insert(fd.rep(), Folder { path: preopen.host.clone(), writable });
            }
        }
    }

    /// Remembers where an opened folder is. Numbers are used again, so what is no folder is forgotten under its number.
    fn note_opened(&mut self, parent: u32, path: &str, opened: u32, is_folder: bool) {
        let base = self.folders.get(&parent).filter(|_| is_folder);
        let folder = base
            .and_then(|base| Some(Folder { path: base.path.join(path).canonicalize().ok()?, writable: base.writable }));
        match folder {
            Some(folder) => self.folders.insert(opened, folder),
            None => self.folders.remove(&opened),
        };
    }

    /// A file that replaces another keeps its permission bits, and one that nobody may write is not replaced: guests have
    /// no way to read or set them.
    #[cfg(unix)]
    fn keep_mode(&self, fd: &Fd, old: &str, new_fd: &Fd, new: &str) -> Result<(), ErrorCode> {
        use cap_std::fs::{Dir, PermissionsExt as _};
        let (Some(from), Some(to)) = (self.folders.get(&fd.rep()), self.folders.get(&new_fd.rep())) else {
            return Err(ErrorCode::NotPermitted);
        };
        if !from.writable || !to.writable {
            return Err(ErrorCode::ReadOnly);
        }
        // The folder that the guest holds, wherever it was moved to meanwhile: by its path another one could be meant.
        let held = |fd: &Fd| match self.table.get(fd) {
            Ok(Descriptor::Dir(dir)) => dir.dir.try_clone().map(Dir::from_std_file),
            _ => Err(std::io::ErrorKind::NotADirectory.into()),
        };
        let Ok(target) = held(new_fd).and_then(|folder| folder.symlink_metadata(new)) else { return Ok(()) };
        let Ok(source) = held(fd).and_then(|folder| folder.symlink_metadata(old)) else { return Ok(()) };
        if !target.is_file() || !source.is_file() {
            return Ok(());
        }
        if target.permissions().mode() & 0o222 == 0 {
            return Err(ErrorCode::NotPermitted);
        }
        let kept = held(fd).and_then(|folder| folder.set_permissions(old, target.permissions()));
        kept.map_err(|error| ErrorCode::from(&error))
    }

    #[cfg(not(unix))]
    fn keep_mode(&self, _: &Fd, _: &str, _: &Fd, _: &str) -> Result<(), ErrorCode> {
        Ok(())
    }

    fn may_reach(&self, fd: &Fd, path: &str) -> Result<(), ErrorCode> {
        self.judge(fd, path, kept_out::reaches)
    }

    fn may_move(&self, fd: &Fd, path: &str) -> Result<(), ErrorCode> {
        self.judge(fd, path, kept_out::carries)
    }

    fn judge(&self, fd: &Fd, path: &str, rule: impl Fn(&[PathBuf], &Path, &str) -> bool) -> Result<(), ErrorCode> {
        if let Err(code) = check_path(path) {
            self.refuse("paths have no `:`", fd.rep(), path);
            return Err(code);
        }
        if self.env.kept_out.is_empty() {
            return Ok(());
        }
        match self.folders.get(&fd.rep()) {
            // The one place of the home that is open, read-only: no path in it leads out of it.
            Some(base) if self.is_session(&base.path) => Ok(()),
            Some(base) if !rule(&self.env.kept_out, &base.path, path) => Ok(()),
            _ => {
                self.refuse("home, config, caches and plugin folders are kept out", fd.rep(), path);
                Err(ErrorCode::NotPermitted)
            }
        }
    }

    /// Whether a folder is that of the call's session.
    fn is_session(&self, path: &Path) -> bool {
        self.session.as_ref().is_some_and(|session| path.starts_with(session))
    }

    /// Puts what came of a path on the call's trail, under the rule that it needed. A file that is not there is neither
    /// allowed nor refused.
    fn note<T>(&self, parent: u32, path: &str, write: bool, answer: Answer<T>) -> Answer<T> {
        match &answer {
            Ok((Ok(_),)) => {
                let (folder, target) = self.guest_path(parent, path);
                match write {
                    true => self.trail.changed("fs", &format!("{folder} rw"), &target),
                    false => self.trail.allowed("fs", &format!("{folder} ro"), &target),
                }
            }
            Ok((Err(ErrorCode::NotPermitted | ErrorCode::ReadOnly | ErrorCode::Access),)) => {
                self.refuse("outside of what was granted", parent, path);
            }
            _ => {}
        }
        answer
    }

    fn refuse(&self, rule: &str, parent: u32, path: &str) {
        let (_, target) = self.guest_path(parent, path);
        self.trail.refused("fs", rule, &target, "");
    }

    /// The granted folder, and the path below it, as the guest knows them.
    fn guest_path(&self, parent: u32, path: &str) -> (&str, String) {
        let folder = self.folders.get(&parent);
        let found = folder.and_then(|folder| {
            let mut preopens = self.preopens.iter();
            preopens.find_map(|preopen| Some((preopen, folder.path.strip_prefix(&preopen.host).ok()?)))
        });
        match found {
            Some((preopen, below)) => {
                (&preopen.guest, Path::new(&preopen.guest).join(below).join(path).to_string_lossy().into())
            }
            None => ("", path.to_owned()),
        }
    }
}

fn check_path(path: &str) -> Result<(), ErrorCode> {
    if path.contains(':') { Err(ErrorCode::NotPermitted) } else { Ok(()) }
}

/// An error of the file system is an answer; anything else is a trap.
fn answer<T>(result: Result<T, FsError>) -> Answer<T> {
    match result {
        Ok(value) => Ok((Ok(value),)),
        Err(error) => Ok((Err(error.downcast()?),)),
    }
}
