//! From captured bytes to a plugin with its tools: the steps between reading and publishing.

use super::folder::Captured;
use super::snapshot::Tool;
use crate::arguments::Schema;
use crate::audit::Trail;
use crate::capability::process::Native;
use crate::context::{AgentKind, CallContext};
use crate::grant::Capabilities;
use crate::manifest::is_tool_name;
use crate::runtime::{Guest, GuestEnv, Loaded, Runtime, Services};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Characters of a description: what every request carries for every tool.
const DESCRIPTION: usize = 8_192;

/// Bytes of a schema, for the same reason.
const SCHEMA: usize = 64 << 10;

/// Tools one plugin may list.
const TOOLS: usize = 128;

/// Compiles, links and asks for the tools. Everything wrong with the plugin is found here, before it is published.
pub(super) async fn load(
    runtime: &Arc<Runtime>,
    services: &Services,
    captured: &Captured,
) -> Result<(Arc<Loaded>, Vec<Tool>), String> {
    let loaded = runtime
        .load_async(captured.wasm.clone())
        .await
        .map_err(|error| format!("{}: {error}", captured.folder.join(captured.manifest.component()).display()))?;
    let loaded = Arc::new(loaded);
    tracing::debug!(plugin = captured.manifest.name, step = "linked");
    for (capability, imports) in captured.manifest.requests.needed_imports() {
        if !loaded.imports.iter().any(|name| imports.iter().any(|import| name.starts_with(import))) {
            return Err(format!(
                "plugin.yaml asks for {capability}, and the component does not import {}*; take it out of requests:, \
                 or use it",
                imports.join("* or ")
            ));
        }
    }
    let tools = list_tools(runtime, services, captured, &loaded).await?;
    tracing::debug!(plugin = captured.manifest.name, step = "listed");
    Ok((loaded, tools))
}

/// Runs `list-tools` with no capability at all, and checks the shape of every export on the way.
async fn list_tools(
    runtime: &Arc<Runtime>,
    services: &Services,
    captured: &Captured,
    loaded: &Arc<Loaded>,
) -> Result<Vec<Tool>, String> {
    let env = Arc::new(GuestEnv {
        plugin: captured.manifest.name.clone(),
        digest: loaded.digest.clone(),
        effective: Capabilities::default(),
        preopens: Vec::new(),
        session: false,
        kept_out: Vec::new(),
        secrets: BTreeMap::new(),
        native: Native::default(),
        config: Value::Object(captured.manifest.config.clone()),
    });
    let context = CallContext {
        session: String::new(),
        call: String::new(),
        step: 0,
        agent: AgentKind::Main,
        language: "en".into(),
        workspace: PathBuf::new(),
    };
    let time = Duration::from_millis(runtime.limits().hook_ms);
    let never = CancellationToken::new();
    let trail = Arc::new(Trail::default());
    let guest =
        Guest { loaded, env: &env, context: &context, services, trail: &trail, read_only: true, cancel: &never };
    let listing = runtime.call(guest, time, |store, instance, exports| {
        Box::pin(async move {
            exports.check_shapes(store, instance)?;
            match &exports.tools {
                Some(tools) => tools.load(&mut *store, instance)?.call_list_tools(store).await,
                None => Ok(Vec::new()),
            }
        })
    });
    let (definitions, _) = listing.await.map_err(|error| format!("asked for its tools, {error}"))?;
    if loaded.exports.tools.is_some() && definitions.is_empty() {
        return Err("it exports tools and lists none; list one, or export hooks only".into());
    }
    if definitions.len() > TOOLS {
        return Err(format!("it lists {} tools; at most {TOOLS}", definitions.len()));
    }
    let mut names = HashSet::new();
    let tools = definitions.into_iter().map(|definition| {
        let name = definition.name;
        if !names.insert(name.clone()) {
            let shown: String = name.chars().take(80).collect();
            return Err(format!("it lists the tool {shown} twice; rename one"));
        }
        if !is_tool_name(&name) {
            let shown: String = name.chars().take(80).collect();
            return Err(format!(
                "{shown:?} is no tool name; use a to z, 0 to 9 and _, beginning with a letter, 64 at most"
            ));
        }
        if definition.description.trim().is_empty() {
            return Err(format!("tool {name} has no description; the model needs one to know when to use it"));
        }
        if definition.description.chars().count() > DESCRIPTION || definition.input_schema.len() > SCHEMA {
            return Err(format!(
                "tool {name}: a description has at most {DESCRIPTION} characters and a schema at most {SCHEMA} bytes"
            ));
        }
        let schema = Schema::new(&definition.input_schema).map_err(|reason| format!("tool {name}: {reason}"))?;
        Ok(Tool {
            name,
            summary: definition.summary,
            description: definition.description,
            schema,
            read_only: definition.read_only,
        })
    });
    tools.collect()
}

/// Manifest defaults under the operator's values, key by key at the top level.
pub(super) fn merge_config(defaults: &Map<String, Value>, operator: Option<&Map<String, Value>>) -> Value {
    let mut merged = defaults.clone();
    for (key, value) in operator.into_iter().flatten() {
        merged.insert(key.clone(), value.clone());
    }
    Value::Object(merged)
}
