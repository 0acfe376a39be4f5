//! The gate before WASI's file functions: what is refused before the operating system is asked.
//!
//! Opening a FIFO or a device blocks in a system call that no epoch reaches, so special files are refused by their type
//! first. A `:` in a path is a drive prefix or an alternate stream on some systems, so it is refused on all (an open
//! advisory of wasmtime 48.0.8 is about these). Hard links are not offered: one made into a writable folder would open
//! a file that was granted to be read only.

use super::GuestState;
use wasmtime::StoreContextMut;
use wasmtime::component::{Linker, Resource};
use wasmtime_wasi::filesystem::WasiFilesystemView as _;
use wasmtime_wasi::p2::FsError;
use wasmtime_wasi::p2::bindings::filesystem::types::{
    Descriptor, DescriptorFlags, DescriptorStat, DescriptorType, ErrorCode, HostDescriptor, OpenFlags, PathFlags,
};

type Answer<T> = wasmtime::Result<(Result<T, ErrorCode>,)>;
type Fd = Resource<Descriptor>;

/// Replaces the functions of `wasi:filesystem/types` that take a path and can open or make something.
pub(super) fn link(linker: &mut Linker<GuestState>) -> wasmtime::Result<()> {
    linker.allow_shadowing(true);
    let mut types = linker.instance("wasi:filesystem/types@0.2.12")?;
    types.func_wrap_async(
        "[method]descriptor.open-at",
        |store: StoreContextMut<'_, GuestState>, args: (Fd, PathFlags, String, OpenFlags, DescriptorFlags)| {
            Box::new(open_at(store, args))
        },
    )?;
    types.func_wrap_async(
        "[method]descriptor.stat-at",
        |mut store: StoreContextMut<'_, GuestState>, (fd, flags, path): (Fd, PathFlags, String)| {
            Box::new(async move {
                if let Err(code) = check_path(&path) {
                    return Ok((Err(code),)) as Answer<DescriptorStat>;
                }
                answer(store.data_mut().filesystem().stat_at(fd, flags, path).await)
            })
        },
    )?;
    types.func_wrap_async(
        "[method]descriptor.create-directory-at",
        |mut store: StoreContextMut<'_, GuestState>, (fd, path): (Fd, String)| {
            Box::new(async move {
                if let Err(code) = check_path(&path) {
                    return Ok((Err(code),)) as Answer<()>;
                }
                answer(store.data_mut().filesystem().create_directory_at(fd, path).await)
            })
        },
    )?;
    types.func_wrap_async(
        "[method]descriptor.rename-at",
        |mut store: StoreContextMut<'_, GuestState>, (fd, old, new_fd, new): (Fd, String, Fd, String)| {
            Box::new(async move {
                if let Err(code) = check_path(&old).and_then(|()| check_path(&new)) {
                    return Ok((Err(code),)) as Answer<()>;
                }
                answer(store.data_mut().filesystem().rename_at(fd, old, new_fd, new).await)
            })
        },
    )?;
    types.func_wrap_async(
        "[method]descriptor.symlink-at",
        |mut store: StoreContextMut<'_, GuestState>, (fd, target, path): (Fd, String, String)| {
            Box::new(async move {
                if let Err(code) = check_path(&target).and_then(|()| check_path(&path)) {
                    return Ok((Err(code),)) as Answer<()>;
                }
                answer(store.data_mut().filesystem().symlink_at(fd, target, path).await)
            })
        },
    )?;
    types.func_wrap_async(
        "[method]descriptor.link-at",
        |_: StoreContextMut<'_, GuestState>, _: (Fd, PathFlags, String, Fd, String)| {
            Box::new(async move { Ok((Err(ErrorCode::NotPermitted),)) as Answer<()> })
        },
    )?;
    linker.allow_shadowing(false);
    Ok(())
}

async fn open_at(
    mut store: StoreContextMut<'_, GuestState>,
    (fd, path_flags, path, open_flags, flags): (Fd, PathFlags, String, OpenFlags, DescriptorFlags),
) -> Answer<Fd> {
    if let Err(code) = check_path(&path) {
        return Ok((Err(code),));
    }
    let mut view = store.data_mut().filesystem();
    let asked = Resource::new_borrow(fd.rep());
    if let Ok(stat) = view.stat_at(asked, path_flags, path.clone()).await {
        let plain = [DescriptorType::RegularFile, DescriptorType::Directory, DescriptorType::SymbolicLink];
        if !plain.contains(&stat.type_) {
            return Ok((Err(ErrorCode::NotPermitted),));
        }
    }
    answer(view.open_at(fd, path_flags, path, open_flags, flags).await)
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
