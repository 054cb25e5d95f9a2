//! A progress bar on the terminal.

use std::io::{self, IsTerminal as _, Write};

use toolcrib_text::clean::clean;

/// Width of the bar, in characters. The line is redrawn only when the bar grows, so a large dataset needs no more
/// redraws than a small one.
const BAR_WIDTH: usize = 40;
/// Width of the name, in characters. With this width the line fits on a terminal with 80 columns.
const NAME_WIDTH: usize = 24;

/// A line like `name ####---- 12/40`, which is redrawn as items are finished. Write errors are ignored, because the
/// line is only informative.
pub(crate) struct ProgressBar<W: Write> {
    /// `None` if nothing is drawn, because standard error is not a suitable terminal.
    terminal: Option<W>,
    name: String,
    total: usize,
    done: usize,
}

impl ProgressBar<io::Stderr> {
    /// Draws on standard error if it is a terminal that can erase a line. Otherwise nothing is drawn.
    pub(crate) fn on_stderr(name: &str, total: usize) -> Self {
        let stderr = io::stderr();
        let is_dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        Self::new(Some(stderr).filter(|stderr| stderr.is_terminal() && !is_dumb), name, total)
    }
}

impl<W: Write> ProgressBar<W> {
    fn new(terminal: Option<W>, name: &str, total: usize) -> Self {
        let name = clean(name).0.replace(char::is_whitespace, " ");
        let mut progress = Self { terminal, name, total, done: 0 };
        progress.draw();
        progress
    }

    /// Counts one finished item.
    pub(crate) fn advance(&mut self) {
        self.advance_to(self.done + 1);
    }

    /// Sets the number of finished items.
    pub(crate) fn advance_to(&mut self, done: usize) {
        let before = self.filled();
        self.done = done;
        if self.filled() != before {
            self.draw();
        }
    }

    fn draw(&mut self) {
        let filled = self.filled();
        let (full, empty) = ("#".repeat(filled), "-".repeat(BAR_WIDTH - filled));
        let Some(terminal) = &mut self.terminal else { return };
        let (name, done, total) = (&self.name, self.done, self.total);
        let _ = write!(terminal, "\r{name:NAME_WIDTH$.NAME_WIDTH$} {full}{empty} {done}/{total}");
        let _ = terminal.flush();
    }

    /// Erases the line of the progress bar.
    pub(crate) fn clear(mut self) {
        if let Some(terminal) = &mut self.terminal {
            let _ = write!(terminal, "\r\x1b[K");
            let _ = terminal.flush();
        }
    }

    fn filled(&self) -> usize {
        (self.done * BAR_WIDTH).checked_div(self.total).unwrap_or(BAR_WIDTH).min(BAR_WIDTH)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(name: &str, filled: usize, count: &str) -> String {
        let bar = format!("{}{}", "#".repeat(filled), "-".repeat(BAR_WIDTH - filled));
        format!("\r{name:24} {bar} {count}")
    }

    #[test]
    fn a_line_is_drawn_at_once_and_when_the_bar_grows_and_then_erased() {
        let mut screen = Vec::new();
        let mut progress = ProgressBar::new(Some(&mut screen), "a\x1b[2J\nset", 80);
        for _ in 0..3 {
            progress.advance();
        }
        progress.clear();
        let lines = [line("a set", 0, "0/80"), line("a set", 1, "2/80"), "\r\x1b[K".into()];
        assert_eq!(String::from_utf8_lossy(&screen), lines.concat());
    }

    #[test]
    fn the_bar_is_full_at_the_end_and_the_name_not_too_long() {
        let mut screen = Vec::new();
        let mut progress = ProgressBar::new(Some(&mut screen), &"x".repeat(40), 1);
        progress.advance();
        progress.advance();
        let name = "x".repeat(24);
        let lines = [line(&name, 0, "0/1"), line(&name, 40, "1/1")];
        assert_eq!(String::from_utf8_lossy(&screen), lines.concat());
    }
}
