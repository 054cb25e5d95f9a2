//! What a scalar stands for: null, a boolean, a number or text.
//!
//! As `PyYAML` decides it, by the rules of YAML 1.1, with a few differences. `1e3` and `0o17` are numbers, as in YAML 1.2. And
//! `1:30` stays text: in YAML 1.1 it is ninety, which nobody who writes it means. Numbers that JSON cannot write (`.inf`,
//! `.nan`) stay text too.

use granit_parser::{ScalarStyle, Tag};
use serde_json::{Number, Value};

/// The value of a scalar with its style and tag.
pub(super) fn value(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> Value {
    let is_plain = match tag {
        Some(tag) => matches!(tag.core_suffix(), Some("null" | "bool" | "int" | "float")),
        None => style == ScalarStyle::Plain,
    };
    let known = if is_plain { plain(text) } else { None };
    known.unwrap_or_else(|| Value::String(text.to_owned()))
}

fn plain(text: &str) -> Option<Value> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Some(Value::Null),
        "true" | "True" | "TRUE" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" => Some(true.into()),
        "false" | "False" | "FALSE" | "no" | "No" | "NO" | "off" | "Off" | "OFF" => {
            Some(false.into())
        }
        _ => number(text).map(Value::Number),
    }
}

fn number(text: &str) -> Option<Number> {
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if !digits.starts_with(|first: char| first.is_ascii_digit() || first == '.') {
        return None;
    }
    let digits = digits.replace('_', "");
    if let Some(magnitude) = integer(&digits) {
        let signed = if is_negative { -magnitude } else { magnitude };
        return Number::from_i128(signed).or_else(|| Number::from_f64(signed as f64));
    }
    let is_decimal = digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-'))
        // A leading zero without a point is an octal number, and this is none.
        && (!digits.starts_with('0') || digits.contains('.') || digits == "0");
    let magnitude: f64 = digits.parse().ok().filter(|_| is_decimal)?;
    Number::from_f64(if is_negative { -magnitude } else { magnitude })
}

/// Digits without a sign: binary, octal, hexadecimal or decimal.
fn integer(digits: &str) -> Option<i128> {
    let (radix, digits) = match digits.as_bytes() {
        [b'0', b'b', ..] => (2, &digits[2..]),
        [b'0', b'o', ..] => (8, &digits[2..]),
        [b'0', b'x', ..] => (16, &digits[2..]),
        [b'0', _, ..] => (8, &digits[1..]),
        _ => (10, digits),
    };
    // `from_str_radix` takes a sign here, too.
    if digits.starts_with(['+', '-']) {
        return None;
    }
    i128::from_str_radix(digits, radix).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(text: &str) -> Value {
        value(text, ScalarStyle::Plain, None)
    }

    #[test]
    fn plain_texts_are_what_pyyaml_makes_of_them() {
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
            ("017", json!(15)),
            ("08", json!("08")),
            ("1.5", json!(1.5)),
            ("-.5", json!(-0.5)),
            ("1.", json!(1.0)),
            ("01.5", json!(1.5)),
            ("1_0.2_5", json!(10.25)),
            ("6.02e+23", json!(6.02e23)),
            (".", json!(".")),
            ("-", json!("-")),
            ("+-1", json!("+-1")),
            ("0x-1", json!("0x-1")),
            ("1.2.3", json!("1.2.3")),
            ("18446744073709551615", json!(u64::MAX)),
            ("18446744073709551616", json!(18_446_744_073_709_551_616.0)),
            ("2026-11-16", json!("2026-11-16")),
        ] {
            assert_eq!(read(text), expected, "{text}");
        }
    }

    #[test]
    fn where_it_differs() {
        for (text, expected) in [
            ("1e3", json!(1000.0)),
            ("0o17", json!(15)),
            ("1:30", json!("1:30")),
            (".inf", json!(".inf")),
            ("-.INF", json!("-.INF")),
            (".nan", json!(".nan")),
            ("1.0e999", json!("1.0e999")),
        ] {
            assert_eq!(read(text), expected, "{text}");
        }
    }

    #[test]
    fn a_quote_or_a_tag_decides_before_the_text_does() {
        let tag = |name: &str| Tag::new("tag:yaml.org,2002:", name);
        let quoted = |text: &str, tag: Option<&Tag>| value(text, ScalarStyle::DoubleQuoted, tag);
        assert_eq!(quoted("on", None), "on");
        assert_eq!(quoted("5", Some(&tag("int"))), 5);
        assert_eq!(value("5", ScalarStyle::Plain, Some(&tag("str"))), "5");
        assert_eq!(value("5", ScalarStyle::Plain, Some(&Tag::new("!", "env"))), "5");
    }
}
