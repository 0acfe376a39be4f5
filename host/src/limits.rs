//! The limits of a guest: one struct, every field with its unit and its default's reason, none unlimited, zero refused.

use serde::{Deserialize, Serialize};

/// What one call may use. An operator overrides single fields under `limits:`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Wall time of a tool call, in milliseconds. Long enough for a grep over a large tree.
    pub tool_ms: u64,
    /// Wall time of a hook, in milliseconds. Hooks run at every step, and people wait for them.
    pub hook_ms: u64,
    /// Linear memory, summed over all memories of a component, in MiB. A Python guest starts at about 40.
    pub memory_mib: u64,
    /// Elements, summed over all tables. A Python guest has about 20,000.
    pub table_elements: u64,
    /// Core instances of a component. A Python guest has about 30.
    pub instances: u64,
    /// Bytes that one host call may carry out of the guest. wasmtime's own default is 128 MiB.
    pub host_call_bytes: u64,
    /// Resource handles: open files, streams, pollables.
    pub handles: u64,
    /// Random bytes a single call may ask for.
    pub random_bytes: u64,
    /// Bytes of standard output and error that are kept, each.
    pub captured_bytes: u64,
    /// Log lines and progress updates a call may make; further ones are counted and dropped.
    pub log_lines: u64,
    /// Bytes of one log line; the rest is cut.
    pub log_line_bytes: u64,
    /// Bytes of one plugin's kv store, keys and values, in all scopes.
    pub kv_bytes: u64,
    /// Wall time of an HTTP exchange with its redirects, in milliseconds; part of the call's own time.
    pub http_ms: u64,
    /// Bytes of an HTTP body sent.
    pub http_request_bytes: u64,
    /// Bytes of an HTTP body received; the rest is cut, and said.
    pub http_response_bytes: u64,
    /// Bytes of all headers of an HTTP request, and of all of its answer.
    pub http_header_bytes: u64,
    /// Bytes of a URL. Servers take 8 KiB.
    pub http_url_bytes: u64,
    /// Redirects that one request follows.
    pub http_redirects: u64,
    /// Wall time of a native program, in milliseconds. A build takes minutes; the guest's own clock stands still.
    pub process_ms: u64,
    /// Bytes of a native program's standard output and error that are kept, each.
    pub process_output_bytes: u64,
    /// Memory of a native program and all it starts, in MiB. A compiler of a large file takes two GiB.
    pub process_memory_mib: u64,
    /// Processes that a native program may have at once, itself counted.
    pub process_count: u64,
    /// Size of a file that a native program writes, in MiB.
    pub process_file_mib: u64,
    /// Bytes of a tool's result that the model sees at once; it is less where that would be more than an eighth of the window.
    pub output_bytes: u64,
    /// Bytes of all results of one session that are kept in files since they were larger; then the oldest go.
    pub kept_bytes: u64,
    /// Bytes of a component file.
    pub component_bytes: u64,
    /// Guest calls that run at once; further ones wait.
    pub parallel_calls: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            tool_ms: 60_000,
            hook_ms: 5_000,
            memory_mib: 256,
            table_elements: 200_000,
            instances: 100,
            host_call_bytes: 16 << 20,
            handles: 1_024,
            random_bytes: 1 << 20,
            captured_bytes: 64 << 10,
            log_lines: 1_000,
            log_line_bytes: 4_096,
            kv_bytes: 4 << 20,
            http_ms: 30_000,
            http_request_bytes: 4 << 20,
            http_response_bytes: 8 << 20,
            http_header_bytes: 32 << 10,
            http_url_bytes: 8 << 10,
            http_redirects: 5,
            process_ms: 600_000,
            process_output_bytes: 2 << 20,
            process_memory_mib: 4_096,
            process_count: 256,
            process_file_mib: 2_048,
            output_bytes: 256 << 10,
            kept_bytes: 256 << 20,
            component_bytes: 64 << 20,
            parallel_calls: 32,
        }
    }
}

impl Limits {
    /// These as far as an engine that was started with `started` can have them, and the fields in which it cannot.
    pub fn within(&self, started: &Limits) -> (Limits, Vec<&'static str>) {
        let mut limits = self.clone();
        let mut late = Vec::new();
        // Instances are pooled: their sizes were set aside at the start, and fewer can be used at any time.
        let pooled = [
            ("memory_mib", &mut limits.memory_mib, started.memory_mib),
            ("table_elements", &mut limits.table_elements, started.table_elements),
            ("instances", &mut limits.instances, started.instances),
        ];
        for (name, value, most) in pooled {
            if *value > most {
                late.push(name);
                *value = most;
            }
        }
        if limits.parallel_calls != started.parallel_calls {
            late.push("parallel_calls");
            limits.parallel_calls = started.parallel_calls;
        }
        (limits, late)
    }

    /// What is wrong with a field, if something is: zero would refuse everything or, in some places, nothing, and a number
    /// past the bound is more than the runtime can set aside.
    pub fn mistake(&self) -> Option<(&'static str, String)> {
        let day = 24 * 60 * 60 * 1000;
        let fields = [
            ("tool_ms", self.tool_ms, day),
            ("hook_ms", self.hook_ms, day),
            ("memory_mib", self.memory_mib, 4_096),
            ("table_elements", self.table_elements, 10_000_000),
            ("instances", self.instances, 1_000),
            ("host_call_bytes", self.host_call_bytes, 1 << 30),
            ("handles", self.handles, 100_000),
            ("random_bytes", self.random_bytes, 1 << 30),
            ("captured_bytes", self.captured_bytes, 64 << 20),
            ("log_lines", self.log_lines, 1_000_000),
            ("log_line_bytes", self.log_line_bytes, 1 << 20),
            ("kv_bytes", self.kv_bytes, 1 << 30),
            ("http_ms", self.http_ms, day),
            ("http_request_bytes", self.http_request_bytes, 1 << 30),
            ("http_response_bytes", self.http_response_bytes, 1 << 30),
            ("http_header_bytes", self.http_header_bytes, 1 << 20),
            ("http_url_bytes", self.http_url_bytes, 64 << 10),
            ("http_redirects", self.http_redirects, 20),
            ("process_ms", self.process_ms, day),
            ("process_output_bytes", self.process_output_bytes, 64 << 20),
            ("process_memory_mib", self.process_memory_mib, 1 << 20),
            ("process_count", self.process_count, 32_768),
            ("process_file_mib", self.process_file_mib, 1 << 24),
            ("output_bytes", self.output_bytes, 64 << 20),
            ("kept_bytes", self.kept_bytes, 1 << 40),
            ("component_bytes", self.component_bytes, 1 << 30),
            ("parallel_calls", self.parallel_calls, 256),
        ];
        let (name, _, most) = fields.into_iter().find(|(_, value, most)| *value == 0 || value > most)?;
        Some((name, format!("must be from 1 to {most}; leave it out for the default")))
    }
}
