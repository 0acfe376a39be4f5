//! What a guest's store holds: its WASI context, its limits, and what the host side of the contract needs to know.

use super::captured::Captured;
use super::clock::Clock;
use super::kept_out::still_itself;
use super::limiter::Limiter;
use super::{contract, fs_gate};
use crate::assignment::Way;
use crate::audit::Trail;
use crate::capability::http::{Caller, Hooks, Web};
use crate::capability::process::Native;
use crate::catalogue::Reach;
use crate::context::CallContext;
use crate::grant::{Capabilities, SecretSource};
use crate::limits::Limits;
use crate::memory::Seen;
use crate::outputs::{self, Outputs};
use crate::plugin::Registry;
use crate::shelf::Shelf;
use crate::skills::{self, ForkRunner, SkillSession};
use crate::store::{Audit, Store};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use wasmtime::component::{HasSelf, Linker, ResourceTable};
use wasmtime_wasi::{FsPerms, WasiCtx, WasiCtxBuilder, WasiCtxView, WasiView};
use wasmtime_wasi_http::{WasiHttpCtx, WasiHttpCtxView, WasiHttpView};

/// A folder that a guest may open.
#[derive(Debug, Clone)]
pub struct Preopen {
    /// Where it is.
    pub host: PathBuf,
    /// What the guest calls it.
    pub guest: String,
    /// Whether it may be written to.
    pub writable: bool,
}

/// Where an open descriptor is.
pub(super) struct Folder {
    pub(super) path: PathBuf,
    pub(super) writable: bool,
}

/// Who a guest is and what it may touch. One for each loaded plugin, shared by its calls.
#[derive(Debug)]
pub struct GuestEnv {
    /// Plugin name.
    pub plugin: String,
    /// SHA-256 of the component, lower-case hex.
    pub digest: String,
    /// What was asked for and granted.
    pub effective: Capabilities,
    /// Folders, from the effective capabilities.
    pub preopens: Vec<Preopen>,
    /// Whether it may read what is kept of its session's large results.
    pub session: bool,
    /// Real paths inside of those folders that are kept out all the same.
    pub kept_out: Vec<PathBuf>,
    /// Where the secrets are that its rules inject, by name. The guest never sees them.
    pub secrets: BTreeMap<String, SecretSource>,
    /// Where its native programs stand.
    pub native: Native,
    /// Manifest defaults under the operator's values; an object.
    pub config: Value,
}

/// Told of a guest's progress: plugin, fraction from 0 to 1, message.
pub type ProgressSink = dyn Fn(&str, Option<f32>, &str) + Send + Sync;

/// What the host side of the contract works with. Set by the host composition, and completed by each session with its desk.
#[derive(Clone)]
pub struct Services {
    /// The store behind `kv` and `tasks`.
    pub store: Arc<Store>,
    /// The files behind `memory`.
    pub shelf: Arc<Shelf>,
    /// Where decisions go.
    pub audit: Audit,
    /// Where progress goes.
    pub progress: Arc<ProgressSink>,
    /// How requests leave.
    pub web: Arc<Web>,
    /// Where skills are.
    pub skills: Arc<skills::Registry>,
    /// What only an open session has; empty outside one, and an import that needs it says so.
    pub desk: Arc<Desk>,
}

/// Files that one call may name as touched: past this it read everything, and every glob has had its chance.
const TOUCHED: usize = 1_000;

/// What an open session offers its guests: one field for each import that reaches into the session.
#[derive(Default)]
pub struct Desk {
    /// Where its plugins are, for `tools`.
    pub registry: Option<Arc<Registry>>,
    /// Tools that its agent may use.
    pub reach: Reach,
    /// The way to whoever runs other agents, for `agents`.
    pub agents: Arc<Way>,
    /// Where its large results are kept; nowhere outside a session.
    pub outputs: Option<Outputs>,
    /// The skills as the session sees them.
    pub skills: Option<Arc<SkillSession>>,
    /// Who runs skills that are for an agent of their own; none where nobody does.
    pub forks: Option<Arc<dyn ForkRunner>>,
    /// What the session knows of the memory files, so that its own writes are no news to it.
    memory: Mutex<Seen>,
    /// How full the conversation is, and what is wanted of it, for `context`; none where no conversation is under way.
    context: Mutex<Option<ContextDesk>>,
}

/// A conversation, as its guests may ask about it.
#[derive(Debug, Clone, Default)]
pub struct ContextDesk {
    /// Tokens of the next request.
    pub tokens: u64,
    /// The model's window.
    pub window: u64,
    /// Tokens that a compaction aims at.
    pub goal: u64,
    /// Messages in the conversation.
    pub messages: u32,
    /// A compaction that is wanted when the step is over, with its instructions.
    pub wanted: Option<String>,
}

impl Desk {
    /// For an agent that may use these tools.
    pub fn within(self, reach: Reach) -> Self {
        Self { reach, ..self }
    }

    /// For a session that keeps large results.
    pub fn keeping(self, outputs: Outputs) -> Self {
        Self { outputs: Some(outputs), ..self }
    }

    /// With the skills as the session sees them.
    pub fn with_skills(self, skills: Arc<SkillSession>) -> Self {
        Self { skills: Some(skills), ..self }
    }

    /// With skills that fork run by whoever runs other agents.
    pub fn with_forks(self) -> Self {
        Self { forks: Some(self.agents.clone()), ..self }
    }

    /// A tool says in its `extra` which files of the workspace it read, searched, listed or wrote: they may bring out a skill.
    pub(super) fn touched(&self, extra: &str) {
        let Some(skills) = self.skills.as_ref().filter(|_| extra.contains("\"files\"")) else { return };
        let extra: Value = serde_json::from_str(extra).unwrap_or_default();
        let files = extra.get("files").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        for file in files.take(TOUCHED) {
            if let Err(error) = skills.touched(file) {
                tracing::warn!("which skills a file brings out was not recorded: {error}");
            }
        }
    }

    /// What the session knows of the memory files.
    pub fn memory(&self) -> MutexGuard<'_, Seen> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The conversation under way.
    pub fn context(&self) -> MutexGuard<'_, Option<ContextDesk>> {
        self.context.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The state of one store: made for a call, dropped after it.
pub struct GuestState {
    wasi: WasiCtx,
    http: WasiHttpCtx,
    http_door: Hooks,
    pub(super) table: ResourceTable,
    pub(super) limiter: Limiter,
    pub(super) stderr: Captured,
    /// Where open descriptors are, by their number.
    pub(super) folders: HashMap<u32, Folder>,
    /// Whether every folder is read-only, since the call says that it changes nothing.
    pub read_only: bool,
    /// Folders of this call.
    pub(super) preopens: Vec<Preopen>,
    /// The one of them that is the session's.
    pub(super) session: Option<PathBuf>,
    /// Who the guest is.
    pub env: Arc<GuestEnv>,
    /// Where in the work the call stands.
    pub context: CallContext,
    /// What host functions work with.
    pub services: Services,
    /// What the call was allowed and refused.
    pub trail: Arc<Trail>,
    /// Stands still while the guest waits for work that is not its own: an import that does such work runs it in
    /// [`Clock::outside`].
    pub clock: Arc<Clock>,
    /// The limits of this call.
    pub limits: Arc<Limits>,
    /// Log lines and progress updates so far.
    pub lines: u64,
}

/// Whose call a store is made for.
pub(super) struct Whose {
    pub(super) env: Arc<GuestEnv>,
    pub(super) context: CallContext,
    pub(super) services: Services,
    pub(super) trail: Arc<Trail>,
    pub(super) clock: Arc<Clock>,
    pub(super) read_only: bool,
}

impl GuestState {
    pub(super) fn new(whose: Whose, limits: Arc<Limits>) -> Result<Self, String> {
        let Whose { env, context, services, trail, clock, read_only } = whose;
        let keep = limits.captured_bytes as usize;
        let stderr = Captured::new(keep);
        let mut builder = WasiCtxBuilder::new();
        builder
            // Calls run on threads of their own, so file I/O may block there instead of hopping to another thread.
            .allow_blocking_current_thread(true)
            .stdout(Captured::new(keep))
            .stderr(stderr.clone())
            .max_random_size(limits.random_bytes)
            .allow_tcp(false)
            .allow_udp(false)
            .allow_ip_name_lookup(false);
        for name in &env.effective.env {
            if let Ok(value) = std::env::var(name) {
                trail.allowed("env", &format!("env: {name}"), "");
                builder.env(name, value);
            }
        }
        env.preopens.iter().try_for_each(|folder| still_itself(&folder.host))?;
        let mut preopens = env.preopens.clone();
        let session = session_folder(&env, &services);
        let own = |host: &PathBuf| Preopen { host: host.clone(), guest: outputs::GUEST.into(), writable: false };
        preopens.extend(session.as_ref().map(own));
        for folder in &preopens {
            let perms = if folder.writable && !read_only { FsPerms::ReadWrite } else { FsPerms::ReadOnly };
            builder
                .preopened_dir(&folder.host, &folder.guest, perms)
                .map_err(|error| format!("cannot open the granted folder {}: {error}", folder.host.display()))?;
        }
        let mut table = ResourceTable::new();
        table.set_max_capacity(limits.handles as usize);
        Ok(Self {
            wasi: builder.build(),
            http: WasiHttpCtx::new(),
            http_door: Hooks(Caller::new(&env, &services, &context, &trail, &limits)),
            table,
            limiter: Limiter::new(&limits, trail.clone()),
            stderr,
            folders: HashMap::new(),
            read_only,
            preopens,
            session,
            env,
            context,
            services,
            trail,
            clock,
            limits,
            lines: 0,
        })
    }

    /// The door by which its requests leave.
    pub(crate) fn web(&self) -> &Caller {
        &self.http_door.0
    }
}

/// The folder of the call's session, where the guest may read it and something lies in it. It is inside the home, which is
/// kept out, so it is opened by this way alone.
fn session_folder(env: &GuestEnv, services: &Services) -> Option<PathBuf> {
    let outputs = services.desk.outputs.as_ref().filter(|_| env.session)?;
    let taken = env.preopens.iter().any(|folder| folder.guest == outputs::GUEST);
    outputs.folder().canonicalize().ok().filter(|_| !taken)
}

impl WasiView for GuestState {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

impl WasiHttpView for GuestState {
    fn http(&mut self) -> WasiHttpCtxView<'_> {
        WasiHttpCtxView { hooks: &mut self.http_door, table: &mut self.table, ctx: &mut self.http }
    }
}

/// Links WASI 0.2, the gate before its files, wasi:http, and the host side of the contract.
pub(super) fn link(linker: &mut Linker<GuestState>) -> wasmtime::Result<()> {
    wasmtime_wasi::p2::add_to_linker_async(linker)?;
    wasmtime_wasi_http::p2::add_only_http_to_linker_async(linker)?;
    fs_gate::link(linker)?;
    contract::Everything::add_to_linker::<_, HasSelf<GuestState>>(linker, |state| state)
}
