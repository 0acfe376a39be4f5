//! `log` and `progress`: bounded lines, into the host's log and to the user's eyes.

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

/// Cuts at a character's edge and takes the power out of control and bidirectional characters: a log line must not
/// forge another, nor move the terminal's cursor.
fn one_line(message: &str, bytes: usize) -> String {
    let cut = if message.len() > bytes { message.floor_char_boundary(bytes) } else { message.len() };
    let safe = message[..cut].chars().map(|c| match c {
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' => '\u{fffd}',
        c if c.is_control() => ' ',
        c => c,
    });
    let mut line: String = safe.collect();
    if cut < message.len() {
        line.push('…');
    }
    line
}

#[cfg(test)]
mod tests {
    use super::one_line;

    #[test]
    fn a_log_line_cannot_forge_another_or_move_the_cursor() {
        assert_eq!(one_line("a\nERROR b\u{1b}[2J\u{202e}c", 100), "a ERROR b [2J\u{fffd}c");
    }

    #[test]
    fn a_long_line_is_cut_between_characters() {
        assert_eq!(one_line("星系星系", 7), "星系…");
    }
}
