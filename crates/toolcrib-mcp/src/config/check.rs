//! What must hold for a config, whoever wrote it.
//!
//! Each check names the key it is about, so that the reader of a file can say where it stands. None
//! of them repeats a value.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use super::{Config, Limits, Profile, Server, Transport, url};
use crate::Secret;

/// Seconds a server may be given to start.
pub(super) const START: RangeInclusive<f64> = 0.1..=1_800.0;
/// Seconds a call may be given.
pub(super) const CALL: RangeInclusive<f64> = 0.1..=86_400.0;
/// Seconds a search may wait for servers.
const WAIT: RangeInclusive<f64> = 0.0..=600.0;
/// Characters of a name or a prefix.
const NAME: usize = 128;
/// Characters of a pattern: the longest tool name that is let in has 256 bytes.
const PATTERN: usize = 256;

/// What is wrong with a key, and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fault {
    /// The keys that lead there.
    pub(super) path: Vec<String>,
    /// What is wrong with it, in words that follow its name.
    pub(super) problem: String,
    pub(super) hint: String,
}

type Checked = Result<(), Fault>;

fn fault(path: &[&str], problem: impl Into<String>, hint: impl Into<String>) -> Fault {
    let path = path.iter().map(|key| (*key).to_owned()).collect();
    Fault { path, problem: problem.into(), hint: hint.into() }
}

fn ensure(holds: bool, fault: impl FnOnce() -> Fault) -> Checked {
    if holds { Ok(()) } else { Err(fault()) }
}

/// A whole config, the engine's settings apart.
pub(super) fn config(config: &Config) -> Checked {
    for (name, one) in &config.servers {
        let under = |fault| within(&["servers", name], fault);
        name_of("server", name).and_then(|()| server(one)).map_err(under)?;
    }
    let mut prefixes = BTreeMap::new();
    for (name, one) in &config.servers {
        let prefix = one.prefix.as_deref().unwrap_or(name);
        let before = prefixes.insert(prefix, name).filter(|_| !prefix.is_empty());
        ensure(before.is_none(), || {
            let hint =
                "give each server a prefix of its own, or leave it out: its name serves as one";
            fault(&["servers", name, "prefix"], "is another server's prefix or name too", hint)
        })?;
    }
    for (name, one) in &config.profiles {
        let under = |fault| within(&["profiles", name], fault);
        name_of("profile", name).and_then(|()| profile(one)).map_err(under)?;
    }
    let gateway = &config.gateway;
    if let Some(name) = &gateway.profile {
        ensure(config.profiles.contains_key(name), || {
            let hint = "name one of the tables under `[profiles]`, or add it there";
            fault(&["gateway", "profile"], "names no profile", hint)
        })?;
    }
    within_range(&["gateway", "wait"], gateway.wait, &WAIT)?;
    positive(&["gateway", "description_chars"], gateway.description_chars as u64)?;
    limits(&gateway.limits)?;
    let token = config.http.token.as_ref();
    ensure(token.is_none_or(|token| !token.expose().trim().is_empty()), || {
        fault(&["http", "token"], "is empty", "leave it out, or set at least one character")
    })?;
    for (key, list) in [
        ("allowed_hosts", &config.http.allowed_hosts),
        ("allowed_origins", &config.http.allowed_origins),
    ] {
        ensure(list.iter().all(|one| !one.trim().is_empty()), || {
            fault(&["http", key], "has an empty entry", "leave it out")
        })?;
    }
    Ok(())
}

fn within(table: &[&str], fault: Fault) -> Fault {
    let path = table.iter().map(|key| (*key).to_owned()).chain(fault.path).collect();
    Fault { path, ..fault }
}

/// The name of a server or a profile.
pub(super) fn name_of(what: &str, name: &str) -> Checked {
    let fits = !name.trim().is_empty() && name.chars().nth(NAME).is_none();
    // Two blanks in a row, or a sign that cannot be seen, would make it another name elsewhere.
    let plain = toolcrib_core::clean::one_line(name) == name;
    ensure(fits && plain && !name.contains(char::is_control), || {
        let hint = format!("a name has 1 to {NAME} characters, and no control characters");
        fault(&[], format!("is no name for a {what}"), hint)
    })
}

/// One server.
pub(super) fn server(server: &Server) -> Checked {
    transport(&server.transport)?;
    let prefix = server.prefix.as_deref().unwrap_or_default();
    ensure(prefix.chars().nth(NAME).is_none() && !prefix.contains(char::is_control), || {
        fault(&["prefix"], "is too long, or has control characters", "128 characters at most")
    })?;
    for (key, list) in
        [("allow", &server.allow), ("deny", &server.deny), ("always_load", &server.always_load)]
    {
        patterns(key, list)?;
    }
    within_range(&["start_timeout"], server.start_timeout, &START)?;
    within_range(&["call_timeout"], server.call_timeout, &CALL)?;
    for (pattern, seconds) in &server.timeouts {
        patterns("timeouts", std::slice::from_ref(pattern))?;
        within_range(&["timeouts", pattern], *seconds, &CALL)?;
    }
    Ok(())
}

fn transport(transport: &Transport) -> Checked {
    match transport {
        Transport::Stdio { command, args, env, cwd } => {
            ensure(!command.trim().is_empty(), || {
                fault(&["command"], "is empty", "name the program that runs the server")
            })?;
            ensure(!command.starts_with('-'), || {
                let hint = "name the program; its options go to `args`";
                fault(&["command"], "begins with `-`", hint)
            })?;
            let whole = |key: &str, text: &str| {
                ensure(!text.contains('\0'), || {
                    fault(&[key], "has a NUL character in it", "take it out")
                })
            };
            whole("command", command)?;
            whole("cwd", &cwd.as_ref().map(|cwd| cwd.to_string_lossy()).unwrap_or_default())?;
            args.iter().try_for_each(|arg| whole("args", arg.expose()))?;
            env.iter().try_for_each(|(name, value)| {
                ensure(!name.is_empty() && !name.contains(['=', '\0']), || {
                    let hint = "a variable has a name, without `=`";
                    fault(&["env"], "has a name that no variable can have", hint)
                })?;
                whole("env", value.expose())
            })
        }
        Transport::Http { url, headers, .. } => {
            // With a variable in it an address is whole only later, and is looked at again then.
            if !url.contains("${") || url.starts_with('-') {
                let problem = url::problem(url);
                ensure(problem.is_none(), || {
                    let hint = "an address is like `https://example.com/mcp`; what the server asks \
                                for as a proof goes to `headers`";
                    fault(&["url"], problem.unwrap_or_default(), hint)
                })?;
            }
            self::headers(headers)
        }
    }
}

fn headers(headers: &BTreeMap<String, Secret>) -> Checked {
    let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    for (name, value) in headers {
        ensure(!name.is_empty() && name.chars().all(is_token), || {
            let hint = "a header's name has letters, digits and `-`";
            fault(&["headers"], "has a name that no header can have", hint)
        })?;
        ensure(!value.expose().contains(['\r', '\n', '\0']), || {
            fault(&["headers", name], "has a line break in it", "a header is one line")
        })?;
    }
    Ok(())
}

fn profile(profile: &Profile) -> Checked {
    for (key, list) in
        [("servers", &profile.servers), ("allow", &profile.allow), ("deny", &profile.deny)]
    {
        patterns(key, list)?;
    }
    Ok(())
}

fn patterns(key: &str, patterns: &[String]) -> Checked {
    let valid = |text: &String| {
        !text.trim().is_empty()
            && text.chars().nth(PATTERN).is_none()
            && !text.contains(char::is_control)
    };
    ensure(patterns.iter().all(valid), || {
        let hint = format!("a pattern has 1 to {PATTERN} characters; `*` stands for any of them");
        fault(&[key], "has a pattern that no tool can fit", hint)
    })
}

fn limits(limits: &Limits) -> Checked {
    let Limits {
        message_bytes,
        request_bytes,
        server_tools,
        pages,
        tools,
        sessions,
        session_idle,
        server_calls,
        server_queue,
        calls,
        starting,
    } = *limits;
    for (key, value) in [
        ("message_bytes", message_bytes as u64),
        ("request_bytes", request_bytes as u64),
        ("server_tools", server_tools as u64),
        ("pages", pages as u64),
        ("tools", tools as u64),
        ("sessions", sessions as u64),
        ("session_idle", session_idle),
        ("server_calls", server_calls as u64),
        ("server_queue", server_queue as u64),
        ("calls", calls as u64),
        ("starting", starting as u64),
    ] {
        positive(&["gateway", "limits", key], value)?;
    }
    Ok(())
}

fn positive(path: &[&str], value: u64) -> Checked {
    ensure(value > 0, || fault(path, "is out of range", "1 or more"))
}

fn within_range(path: &[&str], value: f64, range: &RangeInclusive<f64>) -> Checked {
    ensure(range.contains(&value), || {
        let hint = format!("{} to {} seconds", range.start(), range.end());
        fault(path, "is out of range", hint)
    })
}
