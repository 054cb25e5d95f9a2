//! Tests of the sections of a config file, and of errors in them.

use serde::Deserialize;
use toolcrib_server::{ConfigFile, HttpSettings};

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Window {
    width: u32,
    title: String,
}

fn window(text: &str) -> Result<Window, String> {
    let file = ConfigFile::parse(text).map_err(|error| error.to_string())?;
    file.section("window", "window").map_err(|error| {
        let hint = "`toolcrib docs window` lists the keys and their defaults";
        assert!(error.hint.ends_with(hint), "{}", error.hint);
        error.to_string()
    })
}

#[test]
fn a_section_is_read_without_the_others() {
    assert_eq!(window("").unwrap(), Window::default());
    assert_eq!(window("[http]\nnope = 1").unwrap(), Window::default());
    let text = "other = 1\n[window]\nwidth = 3\n[http]\ntoken = 't'";
    assert_eq!(window(text).unwrap(), Window { width: 3, title: String::new() });
    let http = HttpSettings::read(&ConfigFile::parse(text).unwrap()).unwrap();
    assert_eq!(http, HttpSettings { token: Some("t".into()), ..HttpSettings::default() });
}

/// The position in an error refers to the complete file, not to the section, and no message contains a value.
#[test]
fn errors_have_the_position_in_the_file() {
    for (text, expected) in [
        (
            "a = 1\n\n[window]\nwith = 5",
            "unknown field `with`, expected `width` or `title` at line 4, column 1",
        ),
        (
            "[window]\ntitle = 'x'\nwidth = 's3cret'",
            "invalid type: string, expected u32 at line 3, column 9",
        ),
        (
            "a = 1\nwindow = 's3cret'",
            "invalid type: string, expected struct Window at line 2, column 10",
        ),
        ("window.width = -1", "invalid value: integer, expected u32 at line 1, column 16"),
        ("[window]\nwidth = 1\nwidth = 2", "duplicate key at line 3, column 1"),
    ] {
        assert_eq!(window(text).unwrap_err(), expected, "{text}");
    }
}

#[test]
fn invalid_http_settings_are_errors() {
    for (text, expected) in [
        (
            "[http]\n\nlisten = 'here'",
            "not an address with a port: write it as in 127.0.0.1:4180 at line 3, column 10",
        ),
        ("[http]\ntoken = ' '", "`http.token` is empty at line 2, column 1"),
        ("[http]\nconnections = 0", "`http.connections` is 0 at line 2, column 1"),
        (
            "[http]\nconnections_per_address = 0",
            "`http.connections_per_address` is 0 at line 2, column 1",
        ),
        ("[http]\nbody_bytes = 0", "`http.body_bytes` is 0 at line 2, column 1"),
        ("[http]\nheader_timeout = 0", "`http.header_timeout` is out of range at line 2, column 1"),
        ("[http]\nidle_timeout = 86401", "`http.idle_timeout` is out of range at line 2, column 1"),
        ("[http]\nbody_timeout = 0", "`http.body_timeout` is out of range at line 2, column 1"),
        ("[http]\ntls = { key = 'k' }", "missing field `certificate` at line 2, column 7"),
        (
            "[http]\ntls = { certificate = '/c.pem', key = 'k.pem' }",
            "`http.tls.key` is a relative path at line 2, column 33",
        ),
        (
            "[http]\nallowed_hosts = ['a', '']",
            "`http.allowed_hosts` has an empty entry at line 2, column 1",
        ),
        (
            "http = { allowed_origins = [''] }",
            "`http.allowed_origins` has an empty entry at line 1, column 10",
        ),
    ] {
        let file = ConfigFile::parse(text).unwrap();
        assert_eq!(HttpSettings::read(&file).unwrap_err().to_string(), expected, "{text}");
    }
}

#[test]
fn debug_output_does_not_contain_the_text() {
    let text = "[http]\ntoken = 's3cret'";
    assert!(!format!("{:?}", ConfigFile::parse(text).unwrap()).contains("s3cret"));
}

#[test]
fn a_misspelled_key_gets_a_suggestion_in_every_table() {
    for (text, expected) in [
        ("[http]\nlistn = ':80'", "did you mean `listen`? "),
        ("[http]\ntls = { certficate = '/c' }", "did you mean `certificate`? "),
        ("[http]\nweather = 1", ""),
    ] {
        let file = ConfigFile::parse(text).unwrap();
        let error = HttpSettings::read(&file).unwrap_err();
        let hint = "`toolcrib docs gateway-config` lists the keys and their defaults";
        assert_eq!(error.hint, format!("{expected}{hint}"), "{text}");
    }
}

#[test]
fn durations_have_units_or_are_numbers_of_seconds() {
    let read = |value: &str| {
        let text = format!("[http]\nidle_timeout = {value}");
        HttpSettings::read(&ConfigFile::parse(&text).unwrap()).map(|http| http.idle_timeout)
    };
    for (value, expected) in
        [("90", 90), ("90.0", 90), ("'1m30s'", 90), ("'2h'", 7_200), ("'60000ms'", 60)]
    {
        assert_eq!(read(value).unwrap(), expected, "{value}");
    }
    for value in ["1.5", "'1500ms'", "-1", "'s3cret'", "''", "true", "'2d'", "inf", "nan"] {
        let error = read(value).unwrap_err().to_string();
        let expected = "expected a whole number of seconds, or a duration such as \"30s\", \"15m\" or \"1h30m\"";
        assert!(error.contains(expected), "{value}: {error}");
        assert!(error.ends_with("at line 2, column 16") && !error.contains("s3cret"), "{error}");
    }
}

#[test]
fn the_address_may_leave_out_the_host_or_be_only_a_port() {
    for (value, expected) in [
        ("'0.0.0.0:4180'", "0.0.0.0:4180"),
        ("'localhost:4180'", "127.0.0.1:4180"),
        ("':4180'", "127.0.0.1:4180"),
        ("4180", "127.0.0.1:4180"),
    ] {
        let text = format!("http.listen = {value}");
        let http = HttpSettings::read(&ConfigFile::parse(&text).unwrap()).unwrap();
        assert_eq!(http.listen.to_string(), expected);
    }
    for value in ["'example.com:4180'", "65536", "-1", "true"] {
        let text = format!("http.listen = {value}");
        let error = HttpSettings::read(&ConfigFile::parse(&text).unwrap()).unwrap_err();
        assert!(error.to_string().ends_with("at line 1, column 15"), "{error}");
    }
}
