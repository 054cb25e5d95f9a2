//! Masks the secrets of a server: all that look like secrets, or, for a preview, everything that is not known to be
//! harmless.

use std::collections::BTreeMap;

use toolcrib_server::mask::{arguments, url, value};

use super::{OAuth, Server, Transport};
use crate::Secret;

/// The replacement for a part that is not shown.
const MASK: &str = "***";
/// Programs whose first argument that is not an option names the server: a package, a script or an image.
const RUNNERS: [&str; 16] = [
    "bun", "bunx", "deno", "docker", "go", "node", "npm", "npx", "pipx", "pnpm", "pnpx", "podman",
    "python", "uv", "uvx", "yarn",
];
/// Commands of these programs, which come before the name of the server.
const RUNNER_COMMANDS: [&str; 5] = ["dlx", "exec", "run", "tool", "x"];
/// Options of these programs that have no value, or whose value is the server.
const FLAGS: [&str; 16] = [
    "--",
    "--init",
    "--interactive",
    "--no-warnings",
    "--offline",
    "--quiet",
    "--rm",
    "--silent",
    "--yes",
    "-A",
    "-i",
    "-it",
    "-m",
    "-q",
    "-u",
    "-y",
];

/// Returns the server with `***` in place of every value that could be a secret.
pub fn masked(server: &Server) -> Server {
    let values = |values: &BTreeMap<String, Secret>| {
        values.iter().map(|(name, secret)| (name.clone(), value(secret))).collect()
    };
    let transport = match &server.transport {
        Transport::Stdio { command, args, env, cwd } => Transport::Stdio {
            command: command.clone(),
            args: arguments(args),
            env: values(env),
            cwd: cwd.clone(),
        },
        Transport::Http { url: address, variant, headers, oauth } => Transport::Http {
            url: url(address),
            variant: *variant,
            headers: values(headers),
            oauth: OAuth {
                client_secret: oauth.client_secret.as_ref().map(value),
                ..oauth.clone()
            },
        },
    };
    let mut server = Server { transport, ..server.clone() };
    for tool in server.tools.values_mut() {
        for (_, value) in &mut tool.defaults {
            *value = value.masked();
        }
    }
    server
}

/// Returns the server with `***` in place of everything that is not known to be harmless. Of arguments, only the names of
/// options and the name of the server are shown, because a secret may have any form and follow any option. Of a URL,
/// only the scheme and the host are shown.
pub fn masked_for_preview(server: &Server) -> Server {
    let mut server = masked(server);
    match &mut server.transport {
        Transport::Stdio { command, args, cwd, .. } => {
            *args = preview_arguments(command, args);
            if !is_plain(command) && value(&command.as_str().into()).expose() != command {
                MASK.clone_into(command);
            }
            if let Some(path) = cwd.as_mut().filter(|path| !is_plain(&path.to_string_lossy())) {
                *path = MASK.into();
            }
        }
        Transport::Http { url, .. } => *url = origin(url),
    }
    server
}

/// Returns the scheme and the host of a URL, and `***` in place of the rest. A URL that is a single reference is kept.
fn origin(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        return if url.contains("${") { url.to_owned() } else { MASK.to_owned() };
    };
    let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let host = authority.rsplit('@').next().unwrap_or_default();
    let rest = if path.trim_matches('/').is_empty() { path } else { "/***" };
    format!("{scheme}://{host}{rest}")
}

fn preview_arguments(command: &str, args: &[Secret]) -> Vec<Secret> {
    let name = command.rsplit(['/', '\\']).next().unwrap_or_default();
    let name = [".exe", ".cmd"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
    let name = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    // On Windows, `cmd /c` runs the rest of its arguments.
    if name == "cmd"
        && let [first, program, rest @ ..] = args
        && first.expose().eq_ignore_ascii_case("/c")
        && is_plain(program.expose())
    {
        let rest = preview_arguments(program.expose(), rest);
        return [first.clone(), program.clone()].into_iter().chain(rest).collect();
    }
    let mut awaits_server = RUNNERS.contains(&name);
    let mut is_value = false;
    let mut shown = Vec::with_capacity(args.len());
    for arg in args {
        let text = arg.expose();
        if text.starts_with('-') {
            is_value = !FLAGS.contains(&text) && !text.contains('=');
            shown.push(option(text));
            continue;
        }
        let follows_option = std::mem::take(&mut is_value);
        let is_command = RUNNER_COMMANDS.contains(&text);
        let is_server = awaits_server && !follows_option && is_plain(text);
        shown.push(if is_server || value(arg) == *arg { arg.clone() } else { MASK.into() });
        if !follows_option && !is_command {
            awaits_server = false;
        }
    }
    shown
}

/// Shows the name of an option without its value. After one hyphen, only one letter is a name: `-pVALUE` is an option
/// with a value.
fn option(text: &str) -> Secret {
    let name = text.split('=').next().unwrap_or_default();
    let is_long = name.starts_with("--")
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
        && is_plain(name.trim_start_matches('-'));
    let is_shown = FLAGS.contains(&text) || is_long || name.len() <= 2 && name == text;
    match (is_shown, name == text) {
        (true, true) => text.into(),
        (true, false) => format!("{name}={MASK}").into(),
        (false, _) => MASK.into(),
    }
}

/// Whether a text is a word, a path or the name of a package, none of whose parts looks like a key.
fn is_plain(text: &str) -> bool {
    let path = text
        .strip_prefix(|c: char| c.is_ascii_alphabetic())
        .and_then(|rest| rest.strip_prefix(":\\"));
    let is_word = |c: char| c.is_alphanumeric() || "/\\@._-+~ ".contains(c);
    let parts = || text.split(['/', '\\', '@']).map(Secret::from);
    let hides = |part: &Secret| arguments(std::slice::from_ref(part)) != [part.clone()];
    path.unwrap_or(text).chars().all(is_word)
        && (!text.contains(' ') || text.contains(['/', '\\']) && !text.contains(" -"))
        && !parts().any(|part| hides(&part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_preview_shows_only_options_and_the_name_of_the_server() {
        for (line, expected) in [
            ("npx -y @scope/server@1.2.3 /home/me", "npx -y @scope/server@1.2.3 ***"),
            ("npx pkg --db-pass V -p V -pV user:V@host", "npx pkg --db-pass *** -p *** *** ***"),
            ("uvx --from V server --token=V", "uvx --from *** server --token=***"),
            (
                "node /opt/server.js --header x:V --cookie V",
                "node /opt/server.js --header *** --cookie ***",
            ),
            ("python3.12 -m pkg -u admin:V --jwt V", "python3.12 -m pkg -u *** --jwt ***"),
            ("docker run -i --rm -e KEY=V image/name", "docker run -i --rm -e *** image/name"),
            ("uv run --directory /srv server.py", "uv run --directory *** server.py"),
            ("my-server V --dsn ${DSN}", "my-server *** --dsn ${DSN}"),
            ("npx sk-0123", "npx ***"),
            ("npx --0123456789abcdef0123", "npx ***"),
            ("cmd /c npx -y pkg V", "cmd /c npx -y pkg ***"),
            ("KEY=V pkg", "*** ***"),
            ("/opt/0123456789abcdef0123/run", "***"),
        ] {
            let words: Vec<&str> = line.split(' ').collect();
            let server = Server::new(Transport::Stdio {
                command: words[0].to_owned(),
                args: words[1..].iter().map(|word| (*word).into()).collect(),
                env: BTreeMap::new(),
                cwd: None,
            });
            let Transport::Stdio { command, args, .. } = masked_for_preview(&server).transport
            else {
                panic!("{line}");
            };
            let shown: Vec<&str> =
                [&*command].into_iter().chain(args.iter().map(Secret::expose)).collect();
            assert_eq!(shown.join(" "), expected);
        }
    }

    #[test]
    fn a_preview_shows_only_the_scheme_and_the_host_of_a_url() {
        for (url, expected) in [
            ("https://a.example:8443/", "https://a.example:8443/"),
            ("https://hooks.example/services/T0/B0/V", "https://hooks.example/***"),
            ("https://u:V@a.example?key=V", "https://a.example/***"),
            ("${URL}", "${URL}"),
        ] {
            assert_eq!(origin(url), expected);
        }
    }
}
