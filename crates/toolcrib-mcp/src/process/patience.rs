//! How long a server may take to end, step by step.

use std::time::Duration;

/// The time a server has to end after each step. The gateway tells its warden when it starts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// After the end of its stdin.
    pub leave: Duration,
    /// After SIGTERM.
    pub term: Duration,
    /// After SIGKILL: how long the kernel may take to carry it out.
    pub kill: Duration,
}

impl Default for Patience {
    /// 3.5 s in all: clients that wait for the gateway to end give it about 5 s.
    fn default() -> Self {
        let ms = Duration::from_millis;
        Self { leave: ms(500), term: ms(1_500), kill: ms(1_500) }
    }
}

impl Patience {
    /// All three steps.
    pub(super) fn total(self) -> Duration {
        self.leave + self.term + self.kill
    }

    /// The line that carries it to the warden, in milliseconds.
    pub(super) fn to_line(self) -> String {
        let [leave, term, kill] = [self.leave, self.term, self.kill].map(|step| step.as_millis());
        format!("{leave} {term} {kill}\n")
    }

    pub(super) fn from_line(line: &str) -> Option<Self> {
        let mut steps =
            line.split_whitespace().map(|ms| ms.parse().ok().map(Duration::from_millis));
        Some(Self { leave: steps.next()??, term: steps.next()??, kill: steps.next()?? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_reads_back_as_written() {
        for patience in
            [Patience::default(), Patience { leave: Duration::ZERO, ..Patience::default() }]
        {
            assert_eq!(Patience::from_line(&patience.to_line()), Some(patience));
        }
        assert_eq!(Patience::from_line("1 2"), None);
        assert_eq!(Patience::from_line("1 2 x"), None);
    }
}
