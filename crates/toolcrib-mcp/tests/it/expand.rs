//! Tests of the expansion of references, such as `${VAR}`, in a server's config.

use toolcrib_mcp::config::{OAuth, Server};
use toolcrib_server::expand::Reference;

use crate::{http_server, in_folder, stdio_server};

fn lookup(source: Reference<'_>) -> Option<String> {
    let found = match source {
        Reference::Variable("TOKEN") => "t0ken",
        Reference::Home => "/home/me",
        Reference::Folder => "/work",
        Reference::Variable(_) | Reference::File(_) => return None,
    };
    Some(found.to_owned())
}

#[test]
fn every_part_of_a_server_is_expanded() {
    let server =
        in_folder(stdio_server("~/bin/${TOKEN}", &["${TOKEN}", "~"], &[("A", "${TOKEN}")]), "~");
    let expected = in_folder(
        stdio_server("/home/me/bin/t0ken", &["t0ken", "~"], &[("A", "t0ken")]),
        "/home/me",
    );
    assert!(server.expanded("s", &lookup).unwrap() == Server { enabled: true, ..expected });
    let oauth = |secret: &str| OAuth { client_secret: Some(secret.into()), ..OAuth::default() };
    let server = http_server("https://${TOKEN}/", &[("A", "${TOKEN}")], oauth("${TOKEN}"));
    let expected = http_server("https://t0ken/", &[("A", "t0ken")], oauth("t0ken"));
    assert!(server.expanded("s", &lookup).unwrap() == expected);
}

#[test]
fn an_error_names_the_missing_variable_and_the_server() {
    let error =
        stdio_server("x", &["s3cret ${NOPE}"], &[]).expanded("github", &lookup).unwrap_err();
    assert_eq!(error.to_string(), "server `github`: the variable `NOPE` is not set");
    assert_eq!(
        error.hint,
        "set it in the environment of Toolcrib, or give a default: `${NAME:-text}`"
    );
    let error = stdio_server("x", &["${input:key}"], &[]).expanded("wiki", &lookup).unwrap_err();
    assert_eq!(
        error.to_string(),
        "server `wiki`: `${input:key}` needs an editor that asks its user, and Toolcrib cannot ask"
    );
    assert_eq!(
        error.hint,
        "put the value into an environment variable and write `${NAME}` instead"
    );
}
