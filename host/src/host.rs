//! The host, put together: folders, config, store, runtime, registry and model. The one place that knows all of them.

use crate::agent;
use crate::capability::http::Web;
use crate::catalogue::Reach;
use crate::config::{self, Config, WithoutLandlock};
use crate::consent::Asker;
use crate::context::AgentKind;
use crate::epoch::Setup;
use crate::event::{Event, Sink};
use crate::model::Model;
use crate::permission::Rules;
use crate::persona;
use crate::plain;
use crate::plugin::{Registry, Settings};
use crate::prompt::effective::Wishes;
use crate::prompt::{Language, Texts};
use crate::roster::Roster;
use crate::runtime::{Runtime, Services};
use crate::session::{Parts, Post, Session};
use crate::shelf::Shelf;
use crate::skills::{self, SkillSession};
use crate::store::{Audit, NewSession, Store};
use crate::tokens::Tokenizer;
use crate::tool_call::Consent;
use anyhow::{Context as _, Result, bail};
use std::fs;
use std::io::Write as _;
use std::mem;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

mod models;
mod options;
mod staff;

pub use options::Options;
pub(crate) use options::make_home;
use options::{check_workspace, kept_out};
use staff::Hired;

/// The host of one process.
pub struct Host {
    /// Where things are.
    pub options: Options,
    /// What the operator's file says; the last good one.
    config: Arc<RwLock<Arc<Config>>>,
    /// Where sessions are recorded.
    pub store: Arc<Store>,
    /// Where plugins are.
    pub registry: Arc<Registry>,
    /// Where skills are.
    pub skills: Arc<skills::Registry>,
    /// What the first look at the folders of plugins and skills found, a line each.
    pub problems: Vec<String>,
    relay: Arc<Relay>,
    asker: RwLock<Option<Arc<dyn Asker>>>,
}

/// Sends the guests' progress to whoever shows the run that is under way.
#[derive(Default)]
struct Relay(RwLock<Option<Arc<Sink<'static>>>>);

impl Relay {
    fn send(&self, event: Event) {
        let sink = self.0.read().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(sink) = sink {
            sink(event);
        }
    }
}

/// Limit of an answer where the config says nothing, in tokens: long enough for a file, short of every model's own.
const MAX_OUTPUT_TOKENS: u32 = 8_192;

/// Tokens that the system prompt may take where the config says nothing: a tenth of a large window.
const PROMPT_TOKENS: u64 = 20_000;

impl Host {
    /// Opens the home folder and loads the plugins.
    pub async fn open(mut options: Options) -> Result<Self> {
        options.settle()?;
        let config = Config::load(&options.config_path(), options.config.is_some())?;
        check_workspace(&options)?;
        let store = Arc::new(Store::open(&options.database())?);
        let relay = Arc::new(Relay::default());
        let progress = {
            let relay = relay.clone();
            move |plugin: &str, fraction: Option<f32>, message: &str| {
                let (plugin, message) = (plugin.to_owned(), message.to_owned());
                relay.send(Event::Progress { plugin, fraction, message });
            }
        };
        let shelf = Arc::new(Shelf::new(&options.library()));
        let skills = Arc::new(skills::Registry::new(options.skill_roots()));
        let services = Services {
            store: store.clone(),
            audit: Audit::Kept(store.clone()),
            shelf,
            progress: Arc::new(progress),
            web: Arc::new(Web::new(options.names.clone())),
            skills: skills.clone(),
            desk: Arc::default(),
        };
        let runtime = Arc::new(Runtime::new(config.limits.clone(), &options.cache)?);
        let settings = settings(&options, &config)?;
        let registry = Arc::new(Registry::new(runtime, services, settings));
        let mut problems = registry.refresh().await;
        let first_look = skills.clone();
        problems.extend(tokio::task::spawn_blocking(move || first_look.refresh()).await?);
        let config = Arc::new(RwLock::new(Arc::new(config)));
        Ok(Self { options, config, store, registry, skills, problems, relay, asker: RwLock::default() })
    }

    /// What the operator's file says; while a host watches, as it is now, and the last good one where it does not read.
    pub fn config(&self) -> Arc<Config> {
        self.config.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Shows the guests' progress in `sink` from now on.
    pub fn show_progress(&self, sink: Arc<Sink<'static>>) {
        *self.relay.0.write().unwrap_or_else(PoisonError::into_inner) = Some(sink);
    }

    /// Watches the folders of plugins and skills and the operator's files until the guard is dropped.
    pub fn watch(&self, told: impl Fn(String) + Send + Sync + 'static) -> Result<Watching> {
        let told = Arc::new(told);
        let (of_skills, of_config) = (told.clone(), told.clone());
        let config = self.config.clone();
        let options = self.options.clone();
        let files = vec![
            options.config_path(),
            options.home.join(config::PLUGIN_STATE),
            options.home.join(config::GRANTS),
            options.share.join("policy.yaml"),
        ];
        let before = move |registry: &Registry| {
            // The last good config stays in force when the new one does not read.
            let read = Config::load(&options.config_path(), options.config.is_some())
                .and_then(|config| Ok((settings(&options, &config)?, config)));
            match read {
                Ok((settings, new)) => {
                    registry.set_settings(settings);
                    let late = registry.runtime().set_limits(&new.limits);
                    let old = mem::replace(&mut *config.write().unwrap_or_else(PoisonError::into_inner), Arc::new(new));
                    let new = config.read().unwrap_or_else(PoisonError::into_inner).clone();
                    new.news(&old, &late).into_iter().for_each(|line| of_config(line));
                    None
                }
                Err(error) => {
                    // What is switched off and taken back lies in files of their own, and must always work.
                    let mut settings = registry.settings();
                    if let Ok(disabled) = config::disabled(&options.home) {
                        settings.disabled = disabled;
                    }
                    if let Ok(granted) = config::granted(&options.home) {
                        settings.revoked = granted.revokes;
                    }
                    registry.set_settings(settings);
                    Some(format!("{error:#}; what was decided before stays in force"))
                }
            }
        };
        let plugins = crate::plugin::watch(self.registry.clone(), files, before, move |line| told(line));
        let skills = skills::watch(self.skills.clone(), move |line| of_skills(line));
        Ok(Watching { _plugins: plugins.map_err(anyhow::Error::msg)?, _skills: skills.map_err(anyhow::Error::msg)? })
    }

    /// The skills outside of any session, for calls by hand.
    pub fn skills_at_hand(&self) -> Result<SkillSession> {
        let parts = skills::Parts {
            registry: self.skills.clone(),
            store: self.store.clone(),
            session: String::new(),
            workspace: self.options.workspace.clone(),
            clock: Arc::new(jiff::Timestamp::now),
            texts: Texts::built_in(self.language()),
        };
        Ok(SkillSession::open(parts)?)
    }

    /// Real paths that no guest reaches.
    pub fn kept_out(&self) -> Vec<PathBuf> {
        options::kept_out(&self.options)
    }

    /// Begins a session, or opens the one named.
    pub fn session(&self, which: Which<'_>, model: Arc<dyn Model>) -> Result<Session> {
        self.session_with(which, model, Wishes::default())
    }

    /// The same, with what the command line wants of the prompt.
    pub fn session_with(&self, which: Which<'_>, model: Arc<dyn Model>, wishes: Wishes) -> Result<Session> {
        let setup = self.setup(model.name(), wishes)?;
        let workspace = self.options.workspace.display().to_string();
        let id = match which {
            Which::Named(id) => {
                let id = self.store.session(id)?.id;
                if let Some(agent) = self.store.agent(&id)? {
                    bail!("session {id} is that of an agent that worked for {}; go on with that one", agent.parent);
                }
                id
            }
            Which::Latest => match self.store.latest_session(&workspace)? {
                Some(session) => session.id,
                None => bail!("there is no session of {workspace} to continue; leave out --continue to begin one"),
            },
            Which::New { title } => {
                self.store.create_session(&NewSession { model: model.name(), workspace: &workspace, title })?
            }
        };
        let lock = self.lock(&id)?;
        self.store.set_model(&id, model.name())?;
        let price = self.config().prices.get(model.name()).copied();
        let parts = Parts {
            price,
            summary_model: self.summary_model()?,
            store: self.store.clone(),
            registry: self.registry.clone(),
            model,
            setup,
            workspace: self.options.workspace.clone(),
            max_output_tokens: self.config().max_output_tokens.unwrap_or(MAX_OUTPUT_TOKENS),
            post: Post {
                kind: AgentKind::Main,
                agent: String::new(),
                works_for: None,
                depth: self.config().agents.depth,
            },
            staff: Arc::new(Hired {
                config: self.config(),
                endpoints: self.choice().1,
                roots: self.options.agent_roots(),
            }),
            folder: self.options.sessions(),
            lock: Some(lock),
        };
        let mut session = Session::open(parts, id)?;
        session.calls.consent = Arc::new(Consent::new(self.asker()));
        Ok(session)
    }

    /// Lets sessions that are opened from now on ask a person, who answers by `asker`.
    pub fn ask_by(&self, asker: Arc<dyn Asker>) {
        *self.asker.write().unwrap_or_else(PoisonError::into_inner) = Some(asker);
    }

    /// Who can be asked, if anyone.
    pub fn asker(&self) -> Option<Arc<dyn Asker>> {
        self.asker.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What prompts for `model` are made of; without a name, for the script that answers where there is no model.
    pub fn setup(&self, model: &str, wishes: Wishes) -> Result<Setup> {
        let roots = [self.options.home.join("personas"), self.options.share.join("personas")];
        let config = self.config();
        let name = config.persona.as_deref().unwrap_or(persona::DEFAULT);
        let window = self.window(if model.is_empty() { "scripted:no-model" } else { model })?;
        Ok(Setup {
            persona: persona::load(&roots, name, self.language())?,
            notes: config.prompt.notes(model),
            wishes,
            memory_mechanics: config.prompt.memory_mechanics,
            prompt_tokens: config.prompt.tokens.unwrap_or(PROMPT_TOKENS),
            window: window.tokens,
            window_named: window.named,
            tokenizer: Tokenizer::of(model),
            cache_life: config.cache_life,
            agents: agent::list(Roster::read(&self.options.agent_roots()).all().map(|found| &*found.definition)),
            reach: Reach { no_agents: config.agents.depth == 0, ..Reach::default() },
        })
    }

    /// The lock of a session. The system lets go of it when the process ends, however that is.
    pub(crate) fn lock(&self, id: &str) -> Result<fs::File> {
        let path = self.options.home.join("locks").join(id);
        let opened = fs::OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
        let mut file = opened.with_context(|| format!("cannot make the lock {}", path.display()))?;
        match file.try_lock() {
            Ok(()) => {
                // Who holds it, for those who come second; without this they are told less.
                let since = jiff::Timestamp::now().strftime("%Y-%m-%d %H:%M:%S UTC");
                let holder = format!("process {}, since {since}", std::process::id());
                let _ = file.set_len(0).and_then(|()| file.write_all(holder.as_bytes()));
                Ok(file)
            }
            Err(fs::TryLockError::WouldBlock) => {
                let holder = fs::read_to_string(&path).unwrap_or_default();
                let holder = match plain::one_line(&holder, 120) {
                    holder if holder.is_empty() => "another process".to_owned(),
                    holder => format!("another process ({holder})"),
                };
                bail!(
                    "session {id} is open in {holder}; wait for it to end, or go on in a branch of it: \
                     astrarium session fork {id}"
                )
            }
            Err(fs::TryLockError::Error(error)) => {
                Err(error).with_context(|| format!("cannot lock {}", path.display()))
            }
        }
    }

    /// Language of our own texts: the config's, else the locale's.
    pub fn language(&self) -> Language {
        let locale = || {
            let first = ["LC_ALL", "LC_MESSAGES", "LANG"]
                .into_iter()
                .find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()));
            first.unwrap_or_default()
        };
        let language = self.config().language.clone().unwrap_or_else(locale);
        if language.starts_with("zh") { Language::Zh } else { Language::En }
    }
}

/// What the operator's files say, for the registry.
pub(crate) fn settings(options: &Options, config: &Config) -> Result<Settings> {
    let config::Shipped { mut grants, permissions: shipped } = config::policy(&options.share)?;
    grants.extend(config.grants.iter().cloned());
    let config::Granted { grants: by_command, revokes: revoked } = config::granted(&options.home)?;
    grants.extend(by_command);
    let configs = config.plugins.iter().map(|(name, plugin)| (name.clone(), plugin.config.clone()));
    Ok(Settings {
        roots: options.roots(),
        grants,
        revoked,
        configs: configs.collect(),
        secrets: config.secrets.clone(),
        permissions: Rules {
            mode: options.permission_mode.or(config.permissions.mode).unwrap_or_default(),
            own: config.permissions.clone(),
            shipped,
        },
        without_landlock: config.process.without_landlock == WithoutLandlock::Allow,
        disabled: config::disabled(&options.home)?,
        kept_out: kept_out(options),
        workspace: options.workspace.clone(),
        library: options.library(),
        skills: options.skill_roots().into_iter().filter(|root| root.within.is_none()).map(|root| root.path).collect(),
    })
}

/// Watching ends when this is dropped.
pub struct Watching {
    _plugins: crate::plugin::WatchGuard,
    _skills: skills::WatchGuard,
}

/// Which session to open.
#[derive(Debug, Clone, Copy)]
pub enum Which<'a> {
    /// By its id, or the beginning of it.
    Named(&'a str),
    /// The one of this workspace that was written to last.
    Latest,
    /// A new one.
    New {
        /// The first question.
        title: &'a str,
    },
}
