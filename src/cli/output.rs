//! Standard output and the marks of waiting.

use std::io::{ErrorKind, IsTerminal as _, Write as _};
use std::process::ExitCode;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use crate::diagnostic::{visible_json, visible_lines};

/// What every help text says about exit codes.
pub(super) const EXIT_CODES: &str = "Exit codes:\n  0  done, nothing to complain about\n  1  done, and errors were \
    found\n  2  could not be done, e.g. wrong arguments or an unreadable directory";

/// Everything went well.
pub(super) const DONE: ExitCode = ExitCode::SUCCESS;

/// It was done, and errors were found.
pub(super) fn errors_found() -> ExitCode {
    ExitCode::from(1)
}

/// It could not be done.
pub(super) fn could_not() -> ExitCode {
    ExitCode::from(2)
}

/// Writes text for people to standard output, with what would steer their terminal written out: names and
/// messages come from AWS and from commits. A reader that has gone away, such as `head`, is no error.
pub(super) fn print(text: &str) -> anyhow::Result<()> {
    print_exact(&visible_lines(text))
}

/// Writes a value as JSON, which says the same and steers nothing.
pub(super) fn print_json(value: &impl serde::Serialize) -> anyhow::Result<()> {
    print_exact(&(visible_json(&serde_json::to_string_pretty(value)?).into_owned() + "\n"))
}

/// Writes YAML and what draws frames to standard output, as it is.
pub(super) fn print_exact(text: &str) -> anyhow::Result<()> {
    ignore_broken_pipe(std::io::stdout().lock().write_all(text.as_bytes()))
}

/// Writes text for people to standard error.
pub(super) fn print_error(text: &str) -> anyhow::Result<()> {
    ignore_broken_pipe(std::io::stderr().lock().write_all(visible_lines(text).as_bytes()))
}

fn ignore_broken_pipe(outcome: std::io::Result<()>) -> anyhow::Result<()> {
    match outcome {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

/// Whether a person reads standard output, and wants colours and frames.
pub(super) fn is_rich() -> bool {
    std::io::stdout().is_terminal()
        && std::env::var_os("NO_COLOR").is_none()
        && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// A spinner on standard error while a person waits; it shows nothing when nobody watches.
pub(super) fn spinner(what: &'static str) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new_spinner().with_message(what);
    bar.set_style(ProgressStyle::default_spinner());
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}

/// `1 cluster`, `2 clusters`.
pub(super) fn count(number: usize, one: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{number} {one}s") }
}
