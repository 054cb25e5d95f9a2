//! How long a server may take to exit after each step of its shutdown.

use std::time::Duration;

/// How long a server may take to exit after each step. The gateway sends these times to the warden when the warden
/// starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GracePeriods {
    /// The time after the server's stdin was closed.
    pub after_eof: Duration,
    /// The time after SIGTERM.
    pub after_sigterm: Duration,
    /// The time after SIGKILL, which the kernel may take a moment to carry out.
    pub after_sigkill: Duration,
}

impl Default for GracePeriods {
    /// Returns the default periods, 3.5 s in total.
    fn default() -> Self {
        let ms = Duration::from_millis;
        Self { after_eof: ms(500), after_sigterm: ms(1_500), after_sigkill: ms(1_500) }
    }
}

impl GracePeriods {
    /// Returns the sum of all periods.
    pub(super) fn total(self) -> Duration {
        self.after_eof + self.after_sigterm + self.after_sigkill
    }

    /// Formats the periods, in milliseconds, as the line that is sent to the warden.
    pub(super) fn to_line(self) -> String {
        let steps = [self.after_eof, self.after_sigterm, self.after_sigkill];
        let [eof, sigterm, sigkill] = steps.map(|step| step.as_millis());
        format!("{eof} {sigterm} {sigkill}\n")
    }

    pub(super) fn from_line(line: &str) -> Option<Self> {
        let mut steps =
            line.split_whitespace().map(|ms| ms.parse().ok().map(Duration::from_millis));
        Some(Self {
            after_eof: steps.next()??,
            after_sigterm: steps.next()??,
            after_sigkill: steps.next()??,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_survives_a_round_trip() {
        let default = GracePeriods::default();
        for grace in [default, GracePeriods { after_eof: Duration::ZERO, ..default }] {
            assert_eq!(GracePeriods::from_line(&grace.to_line()), Some(grace));
        }
        assert_eq!(GracePeriods::from_line("1 2"), None);
        assert_eq!(GracePeriods::from_line("1 2 x"), None);
    }
}
