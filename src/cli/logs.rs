//! Log lines: for people on a terminal, JSON otherwise, and without values of Secrets.

use std::io::{self, IsTerminal as _, Write};
use std::sync::Arc;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

use crate::config::{Log, LogFormat};
use crate::diagnostic::{visible_colored, visible_json};
use crate::redact::Known;

/// Starts logging to standard error.
///
/// # Errors
/// When the level is not one, or logging was started before.
pub(super) fn start(log: &Log, known: Arc<Known>) -> anyhow::Result<()> {
    start_to(log, known, io::stderr, io::stderr().is_terminal())
}

/// Starts logging to any writer. A defect that ends a task is logged as well, since its message may hold
/// anything.
pub(super) fn start_to<W>(log: &Log, known: Arc<Known>, writer: W, terminal: bool) -> anyhow::Result<()>
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let Log { format, level } = log;
    let filter = EnvFilter::try_new(level)?;
    let human = match format {
        LogFormat::Auto => terminal,
        LogFormat::Human => true,
        LogFormat::Json => false,
    };
    let lines =
        tracing_subscriber::fmt().with_env_filter(filter).with_writer(Masking { writer, known, human });
    let started = if human {
        lines.with_ansi(terminal).with_target(false).try_init()
    } else {
        lines.json().flatten_event(true).try_init()
    };
    started.map_err(|error| anyhow::anyhow!("cannot start logging: {error}"))?;
    std::panic::set_hook(Box::new(|defect| tracing::error!("a defect of this program: {defect}")));
    Ok(())
}

/// Masks the secrets that are known by the time a line is written.
struct Masking<W> {
    writer: W,
    known: Arc<Known>,
    /// Whether people read it, and not JSON parsers.
    human: bool,
}

/// One line on its way. The formatter writes a line at once or in pieces: it goes out whole.
struct Line<W: Write> {
    writer: W,
    known: Arc<Known>,
    human: bool,
    text: Vec<u8>,
}

impl<'a, W: MakeWriter<'a>> MakeWriter<'a> for Masking<W> {
    type Writer = Line<W::Writer>;

    fn make_writer(&'a self) -> Self::Writer {
        let (known, human) = (self.known.clone(), self.human);
        Line { writer: self.writer.make_writer(), known, human, text: Vec::new() }
    }
}

impl<W: Write> Write for Line<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.text.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let text = std::mem::take(&mut self.text);
        let text = String::from_utf8_lossy(&text);
        let masked = self.known.redactor().text(&text).into_owned();
        // For people, control characters in what is logged are written out already.
        let shown = if self.human { visible_colored(&masked) } else { visible_json(&masked) };
        self.writer.write_all(shown.as_bytes())?;
        self.writer.flush()
    }
}

impl<W: Write> Drop for Line<W> {
    fn drop(&mut self) {
        // A log that cannot be written must not stop what it is about.
        self.flush().ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_json_steers_nothing_and_reads_the_same() {
        let value = serde_json::json!({"message": "another \u{202e}eman\u{1b}[31m\u{85}"});
        let mut shown = Vec::new();
        let known = Arc::default();
        let mut line = Line { writer: &mut shown, known, human: false, text: Vec::new() };
        line.write_all(format!("{value}\n").as_bytes()).unwrap();
        drop(line);
        let shown = String::from_utf8(shown).unwrap();
        assert!(shown.ends_with("}\n") && shown.contains(r"\u202e") && shown.is_ascii(), "{shown}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), value);
    }
}
