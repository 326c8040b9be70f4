//! Log lines: for people on a terminal, JSON otherwise.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

use crate::config::{Log, LogFormat};

/// Starts logging to standard error.
///
/// # Errors
/// When the level is not one, or logging was started before.
pub(super) fn start(log: &Log) -> anyhow::Result<()> {
    start_to(log, std::io::stderr, std::io::stderr().is_terminal())
}

/// Starts logging to any writer.
pub(super) fn start_to<W>(log: &Log, writer: W, terminal: bool) -> anyhow::Result<()>
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
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(writer);
    let started = if human {
        lines.with_ansi(terminal).with_target(false).try_init()
    } else {
        lines.json().flatten_event(true).try_init()
    };
    started.map_err(|error| anyhow::anyhow!("cannot start logging: {error}"))
}
