//! Checks a parsed config, from `toolcrib.toml` or from another client's file.
//!
//! Each error names the key at fault, so that the file's parser can add the line and column. No error contains a value,
//! because a value may be a secret.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use toolcrib_server::config::InvalidSetting;
use toolcrib_server::url;

use super::{
    GatewayConfig, GatewayLimits, IdleTimeout, Profile, Server, StartPolicy, Transport,
    tool_override,
};
use crate::Secret;

/// Range of a server's start timeout, in seconds.
pub(super) const START_TIMEOUT: RangeInclusive<f64> = 0.1..=1_800.0;
/// Range of the time after which an unused server is stopped, in seconds.
const IDLE: RangeInclusive<f64> = 0.1..=604_800.0;
/// Range of a call's timeout, in seconds.
pub(super) const CALL_TIMEOUT: RangeInclusive<f64> = 0.1..=86_400.0;
/// Range of the time, in seconds, that a search or a client's first tool list waits for servers.
const WAIT: RangeInclusive<f64> = 0.0..=600.0;
/// Range of the interval in which the background gateway is checked, in seconds.
const BACKGROUND_CHECK: RangeInclusive<f64> = 1.0..=3_600.0;
/// Maximum length of a server's instructions, in characters. No more are stored.
pub(crate) const INSTRUCTIONS_CHARS: usize = 10_000;
/// Maximum length of a name or a prefix, in characters.
const NAME_CHARS: usize = 128;
/// Maximum length of a pattern for tool names, in characters. No tool name is longer.
const PATTERN_CHARS: usize = 256;

type CheckResult = Result<(), InvalidSetting>;

/// Checks the complete config except the engine's settings.
pub(super) fn config(config: &GatewayConfig) -> CheckResult {
    for (name, one) in &config.servers {
        let under = |fault: InvalidSetting| fault.within(&["servers", name]);
        check_name("server", name).and_then(|()| server(one)).map_err(under)?;
    }
    let mut prefixes = BTreeMap::new();
    for (name, one) in &config.servers {
        let prefix = one.prefix.as_deref().unwrap_or(name);
        let before = prefixes.insert(prefix, name);
        InvalidSetting::unless(before.is_none(), || {
            let hint = "give each server its own prefix, or leave `prefix` out to use the server's name; only one can be empty";
            InvalidSetting::new(
                &["servers", name, "prefix"],
                "is also the prefix or name of another server",
                hint,
            )
        })?;
    }
    for (name, one) in &config.profiles {
        let under = |fault: InvalidSetting| fault.within(&["profiles", name]);
        check_name("profile", name).and_then(|()| profile(one)).map_err(under)?;
    }
    let gateway = &config.gateway;
    if let Some(name) = &gateway.profile {
        InvalidSetting::unless(config.profiles.contains_key(name), || {
            let hint = "name one of the tables under `[profiles]`, or add it there";
            InvalidSetting::new(&["gateway", "profile"], "names no profile", hint)
        })?;
    }
    within_range(&["gateway", "wait"], gateway.wait, &WAIT)?;
    within_range(&["gateway", "first_list_wait"], gateway.first_list_wait, &WAIT)?;
    within_range(&["gateway", "background_wait"], gateway.background_wait, &WAIT)?;
    within_range(&["gateway", "background_check"], gateway.background_check, &BACKGROUND_CHECK)?;
    if let IdleTimeout::After(seconds) = gateway.background_idle {
        within_range(&["gateway", "background_idle"], seconds, &IDLE)?;
    }
    positive(&["gateway", "description_chars"], gateway.description_chars as u64)?;
    InvalidSetting::unless(gateway.server_instructions_chars <= INSTRUCTIONS_CHARS, || {
        let path = ["gateway", "server_instructions_chars"];
        InvalidSetting::new(&path, "is out of range", format!("0 to {INSTRUCTIONS_CHARS}"))
    })?;
    limits(&gateway.limits)
}

/// Checks the name of a server or a profile.
pub(super) fn check_name(what: &str, name: &str) -> CheckResult {
    let fits = !name.trim().is_empty() && name.chars().nth(NAME_CHARS).is_none();
    // Names with repeated spaces or invisible characters are rejected. These characters are removed wherever a name is
    // shown, for example in the label of a question, so two different names could look the same.
    let plain = toolcrib_text::clean::one_line(name) == name;
    InvalidSetting::unless(fits && plain && !name.contains(char::is_control), || {
        let hint = format!("a name has 1 to {NAME_CHARS} characters, and no control characters");
        InvalidSetting::new(&[], format!("is not a valid name for a {what}"), hint)
    })
}

/// Checks one server.
pub(super) fn server(server: &Server) -> CheckResult {
    transport(&server.transport)?;
    let prefix = server.prefix.as_deref().unwrap_or_default();
    InvalidSetting::unless(
        prefix.chars().nth(NAME_CHARS).is_none() && !prefix.contains(char::is_control),
        || {
            InvalidSetting::new(
                &["prefix"],
                "is too long, or has control characters",
                "128 characters at most",
            )
        },
    )?;
    for (key, list) in
        [("allow", &server.allow), ("deny", &server.deny), ("always_load", &server.always_load)]
    {
        patterns(key, list)?;
    }
    if let Some(IdleTimeout::After(seconds)) = server.idle {
        within_range(&["idle"], seconds, &IDLE)?;
    }
    InvalidSetting::unless(
        server.start != Some(StartPolicy::Eager) || server.idle.is_none(),
        || {
            let hint = "a server with `start = \"eager\"` always runs: remove `idle`, or set `start = \"lazy\"`";
            InvalidSetting::new(&["idle"], "cannot be combined with `start = \"eager\"`", hint)
        },
    )?;
    within_range(&["start_timeout"], server.start_timeout, &START_TIMEOUT)?;
    within_range(&["call_timeout"], server.call_timeout, &CALL_TIMEOUT)?;
    for (pattern, seconds) in &server.timeouts {
        patterns("timeouts", std::slice::from_ref(pattern))?;
        within_range(&["timeouts", pattern], *seconds, &CALL_TIMEOUT)?;
    }
    tool_override::check(&server.tools)
}

fn transport(transport: &Transport) -> CheckResult {
    match transport {
        Transport::Stdio { command, args, env, cwd } => {
            InvalidSetting::unless(!command.trim().is_empty(), || {
                InvalidSetting::new(
                    &["command"],
                    "is empty",
                    "name the program that runs the server",
                )
            })?;
            InvalidSetting::unless(!command.starts_with('-'), || {
                let hint = "name the program; its options go into `args`";
                InvalidSetting::new(&["command"], "begins with `-`", hint)
            })?;
            let without_nul = |key: &str, text: &str| {
                InvalidSetting::unless(!text.contains('\0'), || {
                    InvalidSetting::new(&[key], "contains a NUL character", "remove it")
                })
            };
            without_nul("command", command)?;
            without_nul("cwd", &cwd.as_ref().map(|cwd| cwd.to_string_lossy()).unwrap_or_default())?;
            args.iter().try_for_each(|arg| without_nul("args", arg.expose()))?;
            env.iter().try_for_each(|(name, value)| {
                InvalidSetting::unless(!name.is_empty() && !name.contains(['=', '\0']), || {
                    let hint = "the name of a variable is not empty and contains no `=`";
                    InvalidSetting::new(&["env"], "has an invalid variable name", hint)
                })?;
                without_nul("env", value.expose())
            })
        }
        Transport::Http { url, headers, .. } => {
            // A URL that contains a variable is complete only after expansion, so it is checked then. A URL that begins
            // with `-` cannot become valid, so it is checked now.
            if !url.contains("${") || url.starts_with('-') {
                let problem = url::problem(url);
                InvalidSetting::unless(problem.is_none(), || {
                    let hint =
                        "a URL is like `https://example.com/mcp`; credentials go into `headers`";
                    InvalidSetting::new(&["url"], problem.unwrap_or_default(), hint)
                })?;
            }
            self::headers(headers)
        }
    }
}

fn headers(headers: &BTreeMap<String, Secret>) -> CheckResult {
    let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    for (name, value) in headers {
        InvalidSetting::unless(!name.is_empty() && name.chars().all(is_token), || {
            let hint = "a header's name has letters, digits and `-`";
            InvalidSetting::new(&["headers"], "has an invalid header name", hint)
        })?;
        InvalidSetting::unless(!value.expose().contains(['\r', '\n', '\0']), || {
            InvalidSetting::new(&["headers", name], "contains a line break", "a header is one line")
        })?;
    }
    Ok(())
}

fn profile(profile: &Profile) -> CheckResult {
    for (key, list) in
        [("servers", &profile.servers), ("allow", &profile.allow), ("deny", &profile.deny)]
    {
        patterns(key, list)?;
    }
    Ok(())
}

fn patterns(key: &str, patterns: &[String]) -> CheckResult {
    let valid = |text: &String| {
        !text.trim().is_empty()
            && text.chars().nth(PATTERN_CHARS).is_none()
            && !text.contains(char::is_control)
    };
    InvalidSetting::unless(patterns.iter().all(valid), || {
        let hint =
            format!("a pattern has 1 to {PATTERN_CHARS} characters; `*` stands for any characters");
        InvalidSetting::new(&[key], "has a pattern that cannot match any tool", hint)
    })
}

fn limits(limits: &GatewayLimits) -> CheckResult {
    let GatewayLimits {
        message_bytes,
        request_bytes,
        server_tools,
        pages,
        tools,
        sessions,
        sessions_per_client,
        session_idle,
        server_calls,
        server_queue,
        server_requests,
        server_bytes,
        server_stall,
        calls,
        starting,
        session_servers,
        tasks,
        tasks_per_client,
        question_chars,
        question_bytes,
        sampling_bytes,
    } = *limits;
    for (key, value) in [
        ("message_bytes", message_bytes as u64),
        ("request_bytes", request_bytes as u64),
        ("server_tools", server_tools as u64),
        ("pages", pages as u64),
        ("tools", tools as u64),
        ("sessions", sessions as u64),
        ("sessions_per_client", sessions_per_client as u64),
        ("session_idle", session_idle),
        ("server_calls", server_calls as u64),
        ("server_queue", server_queue as u64),
        ("server_requests", server_requests as u64),
        ("server_bytes", server_bytes as u64),
        ("server_stall", server_stall),
        ("calls", calls as u64),
        ("starting", starting as u64),
        ("session_servers", session_servers as u64),
        ("tasks", tasks as u64),
        ("tasks_per_client", tasks_per_client as u64),
        ("question_chars", question_chars as u64),
        ("question_bytes", question_bytes as u64),
        ("sampling_bytes", sampling_bytes as u64),
    ] {
        positive(&["gateway", "limits", key], value)?;
    }
    Ok(())
}

fn positive(path: &[&str], value: u64) -> CheckResult {
    InvalidSetting::unless(value > 0, || InvalidSetting::new(path, "is out of range", "1 or more"))
}

fn within_range(path: &[&str], value: f64, range: &RangeInclusive<f64>) -> CheckResult {
    InvalidSetting::unless(range.contains(&value), || {
        let hint = format!("{} to {} seconds", range.start(), range.end());
        InvalidSetting::new(path, "is out of range", hint)
    })
}
