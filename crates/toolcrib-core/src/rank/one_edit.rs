//! Recognises typos: words that differ by one edit.

/// Whether one insertion, deletion, substitution or swap of adjacent letters turns `a` into `b`.
pub(super) fn is_one_edit(a: &[u8], b: &[u8]) -> bool {
    let same = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let (a, b) = (&a[same..], &b[same..]);
    match (a, b) {
        ([], []) => false,
        _ if a.len() == b.len() => {
            a[1..] == b[1..] || (a.len() > 1 && a[0] == b[1] && a[1] == b[0] && a[2..] == b[2..])
        }
        _ if a.len() + 1 == b.len() => *a == b[1..],
        _ if a.len() == b.len() + 1 => a[1..] == *b,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_one_edit_is_recognised() {
        for (a, b, near) in [
            ("issue", "isue", true),
            ("isue", "issue", true),
            ("issue", "isseu", true),
            ("issue", "issux", true),
            ("issue", "issue", false),
            ("issue", "isxux", false),
            ("a", "abc", false),
        ] {
            assert_eq!(is_one_edit(a.as_bytes(), b.as_bytes()), near, "{a} {b}");
        }
    }
}
