//! Durations in the config: a number in the unit of the key, or a text with units, such as `"30s"` or `"1m30s"`.
//!
//! All sections read durations with these types and functions, so that every setting accepts the same forms.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, Unexpected, Visitor};

/// The units of a duration in a text, longest first, with their length in seconds.
const UNITS: [(&str, f64); 4] = [("h", 3_600.0), ("m", 60.0), ("s", 1.0), ("ms", 0.001)];

/// A duration in seconds, as it is written in the config.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Seconds(pub f64);

impl<'de> Deserialize<'de> for Seconds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(DurationVisitor { unit: 1.0, is_whole: false }).map(Self)
    }
}

/// Matches the texts that [`parse_duration`] accepts.
#[cfg(feature = "schema")]
pub const DURATION_PATTERN: &str =
    r"^(?=.)(\d+(\.\d*)?h)?(\d+(\.\d*)?m)?(\d+(\.\d*)?s)?(\d+(\.\d*)?ms)?$";

/// The schema of a number or a duration with units.
#[cfg(feature = "schema")]
impl schemars::JsonSchema for Seconds {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Duration".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "anyOf": [
                { "type": "number", "minimum": 0 },
                { "type": "string", "pattern": DURATION_PATTERN }
            ]
        })
    }
}

/// Reads a duration in seconds, for serde's attribute `deserialize_with`.
pub fn seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Seconds::deserialize(deserializer).map(|Seconds(seconds)| seconds)
}

/// Reads a duration that must be a whole number of seconds.
pub fn whole_seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    whole(deserializer, 1.0)
}

/// Reads a duration that must be a whole number of hours. A number without a unit is in hours.
pub fn whole_hours<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    whole(deserializer, 3_600.0)
}

/// Reads a duration that must be a whole number of milliseconds. A number without a unit is in milliseconds.
pub fn whole_milliseconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    whole(deserializer, 0.001)
}

/// Parses a duration such as `30s`, `500ms` or `1m30s`. Returns seconds. Each unit may occur at most once, and longer
/// units come first.
pub fn parse_duration(text: &str) -> Option<f64> {
    let mut rest = text.trim();
    let mut units = &UNITS[..];
    let mut total = 0.0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let letters = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
        let at = units.iter().position(|(unit, _)| *unit == &rest[..letters])?;
        total += number * units[at].1;
        units = &units[at + 1..];
        rest = &rest[letters..];
    }
    let is_empty = units.len() == UNITS.len();
    (!is_empty && total.is_finite()).then_some(total)
}

fn whole<'de, D: Deserializer<'de>>(deserializer: D, unit: f64) -> Result<u64, D::Error> {
    let value = deserializer.deserialize_any(DurationVisitor { unit, is_whole: true })?;
    Ok(value as u64)
}

/// Reads a duration as a number in a unit.
struct DurationVisitor {
    /// The length of the unit, in seconds.
    unit: f64,
    /// Whether the duration must be a whole number of units.
    is_whole: bool,
}

impl DurationVisitor {
    fn check<E: Error>(&self, value: f64, unexpected: Unexpected<'_>) -> Result<f64, E> {
        // A text such as `100ms` is exact in its own unit, but its number of seconds is rounded.
        let rounded = value.round();
        let value = if (value - rounded).abs() < 1e-6 { rounded } else { value };
        let is_integer = value >= 0.0 && value.fract() == 0.0 && value < u64::MAX as f64;
        if self.is_whole && !is_integer {
            return Err(E::invalid_value(unexpected, self));
        }
        Ok(value)
    }
}

impl Visitor<'_> for DurationVisitor {
    type Value = f64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = match self.unit {
            unit if unit < 1.0 => "milliseconds",
            unit if unit > 1.0 => "hours",
            _ => "seconds",
        };
        let whole = if self.is_whole { "whole " } else { "" };
        write!(f, "a {whole}number of {unit}, or a duration such as \"30s\", \"15m\" or \"1h30m\"")
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<f64, E> {
        self.check(value as f64, Unexpected::Signed(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<f64, E> {
        self.check(value as f64, Unexpected::Unsigned(value))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<f64, E> {
        self.check(value, Unexpected::Float(value))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<f64, E> {
        let invalid = || E::invalid_value(Unexpected::Str(text), &self);
        let seconds = parse_duration(text).ok_or_else(invalid)?;
        self.check(seconds / self.unit, Unexpected::Str(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_add_up_in_their_order() {
        for (text, expected) in [
            ("30s", Some(30.0)),
            ("500ms", Some(0.5)),
            ("2m", Some(120.0)),
            ("1h", Some(3_600.0)),
            ("1m30s", Some(90.0)),
            ("1h2m3s4ms", Some(3_723.004)),
            ("1.5h", Some(5_400.0)),
            ("0s", Some(0.0)),
            (" 30s ", Some(30.0)),
            ("", None),
            ("30", None),
            ("s", None),
            ("30 s", None),
            ("1d", None),
            ("30s1m", None),
            ("1m1m", None),
            ("-1s", None),
            ("1e3s", None),
            ("1.2.3s", None),
            ("30S", None),
            ("15ü", None),
            ("1m 30s", None),
        ] {
            assert_eq!(parse_duration(text), expected, "{text}");
        }
        assert_eq!(parse_duration(&format!("{}s", "9".repeat(400))), None);
    }
}
