//! The value of a scalar: null, a boolean, a number or text.
//!
//! Follows the rules of YAML 1.1 as `PyYAML` applies them, with these differences. The number formats of YAML 1.2
//! (`1e3`, `-.5`, `0o17`) are numbers, too. Dates stay text, and so do `1:30`, which is 90 in YAML 1.1, and numbers
//! that JSON cannot represent (`.inf`, `.nan`). An integer of more than 64 bits becomes a float.

use granit_parser::{ScalarStyle, Tag};
use serde_json::{Number, Value};

/// Returns the value of a scalar. A tag that does not match the text is ignored.
pub(super) fn value(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> Value {
    let known = match tag.map(Tag::core_suffix) {
        Some(Some("null")) => Some(Value::Null),
        Some(Some("bool")) => boolean(text),
        Some(Some("int" | "float")) => number(text).map(Value::Number),
        None if style == ScalarStyle::Plain => plain(text),
        _ => None,
    };
    known.unwrap_or_else(|| Value::String(text.to_owned()))
}

fn plain(text: &str) -> Option<Value> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Some(Value::Null),
        _ => boolean(text).or_else(|| number(text).map(Value::Number)),
    }
}

fn boolean(text: &str) -> Option<Value> {
    match text {
        "true" | "True" | "TRUE" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" => Some(true.into()),
        "false" | "False" | "FALSE" | "no" | "No" | "NO" | "off" | "Off" | "OFF" => {
            Some(false.into())
        }
        _ => None,
    }
}

fn number(text: &str) -> Option<Number> {
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if let Some(magnitude) = integer(digits) {
        let signed = if is_negative { -magnitude } else { magnitude };
        return Number::from_i128(signed).or_else(|| Number::from_f64(signed as f64));
    }
    let magnitude = decimal(digits)?;
    Number::from_f64(if is_negative { -magnitude } else { magnitude })
}

/// Parses an unsigned integer: binary, octal, hexadecimal or decimal, with `_` as a separator.
fn integer(digits: &str) -> Option<i128> {
    let (radix, digits) = match digits.as_bytes() {
        [b'0', b'b', ..] => (2, &digits[2..]),
        [b'0', b'o', ..] => (8, &digits[2..]),
        [b'0', b'x', ..] => (16, &digits[2..]),
        [b'0', _, ..] => (8, &digits[1..]),
        [b'0'..=b'9', ..] => (10, digits),
        _ => return None,
    };
    // The digits are checked first, because `from_str_radix` would accept a sign.
    let is_plain = digits.chars().all(|c| c == '_' || c.is_digit(radix));
    i128::from_str_radix(&digits.replace('_', ""), radix).ok().filter(|_| is_plain)
}

/// Parses an unsigned decimal number with a point or an exponent. `_` is allowed after the first digit and before the
/// exponent.
fn decimal(digits: &str) -> Option<f64> {
    let (mantissa, exponent) = digits.split_once(['e', 'E']).unwrap_or((digits, "0"));
    let first = mantissa.trim_start_matches('.').bytes().next()?;
    let is_valid = first.is_ascii_digit()
        && mantissa.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'_' | b'.'))
        // Without a point, a leading zero means an octal number, and octal numbers have no exponent.
        && (mantissa.contains('.') || !mantissa.starts_with('0') || mantissa == "0");
    let exponent: i32 = exponent.parse().ok().filter(|_| is_valid)?;
    format!("{}e{exponent}", mantissa.replace('_', "")).parse().ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(text: &str) -> Value {
        value(text, ScalarStyle::Plain, None)
    }

    #[test]
    fn plain_scalars_have_the_values_that_pyyaml_gives_them() {
        for (text, expected) in [
            ("", json!(null)),
            ("~", json!(null)),
            ("nUll", json!("nUll")),
            ("on", json!(true)),
            ("No", json!(false)),
            ("y", json!("y")),
            ("0", json!(0)),
            ("-12", json!(-12)),
            ("+1_000", json!(1000)),
            ("_1", json!("_1")),
            ("0b101", json!(5)),
            ("0x_ff", json!(255)),
            ("0_x1f", json!("0_x1f")),
            ("017", json!(15)),
            ("08", json!("08")),
            ("1.5", json!(1.5)),
            (".5", json!(0.5)),
            ("._5", json!("._5")),
            ("1.", json!(1.0)),
            ("01.5", json!(1.5)),
            ("1_0.2_5", json!(10.25)),
            ("6.02e+23", json!(6.02e23)),
            ("1.5e+_3", json!("1.5e+_3")),
            (".", json!(".")),
            ("-", json!("-")),
            ("0x", json!("0x")),
            ("+-1", json!("+-1")),
            ("0x-1", json!("0x-1")),
            ("1.2.3", json!("1.2.3")),
            ("18446744073709551615", json!(u64::MAX)),
        ] {
            assert_eq!(read(text), expected, "{text}");
        }
    }

    #[test]
    fn some_plain_scalars_differ_from_pyyaml() {
        for (text, expected) in [
            ("1e3", json!(1000.0)),
            ("0e3", json!(0.0)),
            ("-.5", json!(-0.5)),
            ("0o17", json!(15)),
            ("2026-11-16", json!("2026-11-16")),
            ("1:30", json!("1:30")),
            (".inf", json!(".inf")),
            ("-.INF", json!("-.INF")),
            (".nan", json!(".nan")),
            ("1.0e+999", json!("1.0e+999")),
            ("18446744073709551616", json!(18_446_744_073_709_551_616.0)),
        ] {
            assert_eq!(read(text), expected, "{text}");
        }
    }

    #[test]
    fn quotes_and_tags_take_precedence_over_the_text() {
        let tagged = |name: &str, text: &str| {
            value(text, ScalarStyle::DoubleQuoted, Some(&Tag::new("tag:yaml.org,2002:", name)))
        };
        assert_eq!(value("on", ScalarStyle::DoubleQuoted, None), "on");
        assert_eq!(tagged("int", "5"), 5);
        assert_eq!(tagged("bool", "yes"), true);
        assert_eq!(tagged("null", "x"), Value::Null);
        assert_eq!(tagged("int", "yes"), "yes");
        assert_eq!(tagged("str", "5"), "5");
        assert_eq!(value("5", ScalarStyle::Plain, Some(&Tag::new("!", "env"))), "5");
    }
}
