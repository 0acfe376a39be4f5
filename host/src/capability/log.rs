//! `log` and `progress`: bounded lines, into the host's log and to the user's eyes.

use crate::plain::one_line;
use crate::runtime::GuestState;
use crate::runtime::contract::astrarium::host::{log, progress};

impl log::Host for GuestState {
    async fn write(&mut self, level: log::Level, message: String) {
        let Some(line) = self.take_line(&message) else { return };
        let (plugin, session) = (self.env.plugin.as_str(), self.context.session.as_str());
        match level {
            log::Level::Debug => tracing::debug!(target: "plugin", plugin, session, "{line}"),
            log::Level::Info => tracing::info!(target: "plugin", plugin, session, "{line}"),
            log::Level::Warn => tracing::warn!(target: "plugin", plugin, session, "{line}"),
            log::Level::Error => tracing::error!(target: "plugin", plugin, session, "{line}"),
        }
    }
}

impl progress::Host for GuestState {
    async fn report(&mut self, fraction: Option<f32>, message: String) {
        let Some(line) = self.take_line(&message) else { return };
        let fraction = fraction.filter(|value| (0.0..=1.0).contains(value));
        (self.services.progress)(&self.env.plugin, fraction, &line);
    }
}

impl GuestState {
    /// The line as it may be shown, or none when the call has used up its lines.
    fn take_line(&mut self, message: &str) -> Option<String> {
        self.lines += 1;
        if self.lines > self.limits.log_lines {
            if self.lines == self.limits.log_lines + 1 {
                tracing::warn!(target: "plugin", plugin = self.env.plugin, "further lines of this call are dropped (limits: log_lines)");
            }
            return None;
        }
        Some(one_line(message, self.limits.log_line_bytes as usize))
    }
}
