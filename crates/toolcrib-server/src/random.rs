//! Random names and tokens.

use std::io;

/// Returns `N` random bytes from the operating system, as lower-case hex.
pub fn hex<const N: usize>() -> io::Result<String> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]).map(hex_digit).collect())
}

fn hex_digit(half: u8) -> char {
    char::from_digit(u32::from(half), 16).unwrap_or('0')
}
