//! A line on the terminal that shows how much of a long piece of work is done.

use std::io::{self, IsTerminal as _, Write};

use toolcrib_core::clean::clean;

/// Cells of the bar. The line is written again when one more is filled, so a large set does not cost more than a small one.
const CELLS: usize = 40;

/// Writes `name ####---- 12/40` over and over on one line. Whether it can be written is not of interest: it is only for
/// people who watch.
pub(crate) struct Progress<W: Write> {
    /// `None` where nobody watches.
    terminal: Option<W>,
    name: String,
    total: usize,
    done: usize,
}

impl Progress<io::Stderr> {
    /// On standard error if that is a terminal, else nowhere.
    pub(crate) fn on_stderr(name: &str, total: usize) -> Self {
        let stderr = io::stderr();
        Self::new(stderr.is_terminal().then_some(stderr), name, total)
    }
}

impl<W: Write> Progress<W> {
    fn new(terminal: Option<W>, name: &str, total: usize) -> Self {
        Self { terminal, name: clean(name).0.into_owned(), total, done: 0 }
    }

    /// One more piece is done.
    pub(crate) fn advance(&mut self) {
        let before = self.filled();
        self.done += 1;
        let filled = self.filled();
        let Some(terminal) = self.terminal.as_mut().filter(|_| filled != before) else { return };
        let (done, rest) = ("#".repeat(filled), "-".repeat(CELLS - filled));
        let _ = write!(terminal, "\r{:24} {done}{rest} {}/{}", self.name, self.done, self.total);
        let _ = terminal.flush();
    }

    /// Takes the line away.
    pub(crate) fn clear(mut self) {
        if let Some(terminal) = &mut self.terminal {
            let _ = write!(terminal, "\r\x1b[K");
            let _ = terminal.flush();
        }
    }

    fn filled(&self) -> usize {
        (self.done * CELLS).checked_div(self.total).unwrap_or(CELLS).min(CELLS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_written_for_each_cell_and_then_taken_away() {
        let mut screen = Vec::new();
        let mut progress = Progress::new(Some(&mut screen), "a set\x1b[2J", 80);
        for _ in 0..3 {
            progress.advance();
        }
        progress.clear();
        let rest = "-".repeat(39);
        let line = format!("\r{:24} #{rest} 2/80", "a set");
        assert_eq!(String::from_utf8_lossy(&screen), format!("{line}\r\x1b[K"));
    }

    #[test]
    fn the_bar_is_full_at_the_end_and_not_longer() {
        let mut screen = Vec::new();
        let mut progress = Progress::new(Some(&mut screen), "one", 1);
        progress.advance();
        progress.advance();
        let line = format!("\r{:24} {} 1/1", "one", "#".repeat(40));
        assert_eq!(String::from_utf8_lossy(&screen), line);
    }
}
