//! The terminal: whether output for people may have colours.

/// Whether output may have colours. Any value of `NO_COLOR` switches them off, and `CLICOLOR_FORCE` switches them on
/// even if the output is not a terminal.
pub(crate) fn has_colours(is_terminal: bool) -> bool {
    let value = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let is_forced = value("CLICOLOR_FORCE").is_some_and(|value| value != "0");
    value("NO_COLOR").is_none() && (is_terminal || is_forced)
}
