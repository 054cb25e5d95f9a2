//! Tests of the expansion of references in a config.

use toolcrib_server::Secret;
use toolcrib_server::expand::{Reference, ReferenceError, expand_secret, from_system};

fn lookup(source: Reference<'_>) -> Option<String> {
    let found = match source {
        Reference::Variable("TOKEN") => "t0ken",
        Reference::Variable("EMPTY") => "",
        Reference::Variable("NESTED") => "${TOKEN}",
        Reference::File("/run/secret") => "from file\n",
        Reference::File("/run/dos") => "from file\r\n",
        Reference::Home => "/home/me",
        Reference::Folder => "/work",
        Reference::Variable(_) | Reference::File(_) => return None,
    };
    Some(found.to_owned())
}

#[test]
fn every_form_of_reference_is_expanded() {
    let variable = |name: &str| Err(ReferenceError::UnsetVariable(name.into()));
    for (text, expected) in [
        ("plain $TOKEN {TOKEN}", Ok("plain $TOKEN {TOKEN}")),
        ("${TOKEN}", Ok("t0ken")),
        ("a${TOKEN}b${env:TOKEN}c", Ok("at0kenbt0kenc")),
        ("${NOPE:-x}${TOKEN:-x}", Ok("xt0ken")),
        ("${EMPTY:-x}", Ok("")),
        ("${NOPE:-}", Ok("")),
        ("${NOPE:-$NOPE}", Ok("$NOPE")),
        ("${NOPE:-${TOKEN}}!", Ok("t0ken!")),
        ("${NOPE:-${NOR:-a}b}c", Ok("abc")),
        ("${env:NOPE:-x}", Ok("x")),
        // A reference inside the value of a variable is not expanded.
        ("${NESTED}", Ok("${TOKEN}")),
        ("${file:/run/secret}|${file:/run/dos}", Ok("from file|from file")),
        ("${userHome}/x:${workspaceFolder}", Ok("/home/me/x:/work")),
        ("$${TOKEN}", Ok("${TOKEN}")),
        ("$$${TOKEN}", Ok("$${TOKEN}")),
        ("${NOPE}", variable("NOPE")),
        ("${env:NOPE}", variable("NOPE")),
        ("${NOPE:-${NOR}}", variable("NOR")),
        ("${file:/nowhere}", Err(ReferenceError::UnreadableFile("/nowhere".into()))),
        ("${file:key}", Err(ReferenceError::RelativeFile("key".into()))),
        ("${file:./key}", Err(ReferenceError::RelativeFile("./key".into()))),
        ("${file:~key}", Err(ReferenceError::RelativeFile("~key".into()))),
        ("${file:}", Err(ReferenceError::RelativeFile(String::new()))),
        ("${input:key}", Err(ReferenceError::Input("key".into()))),
        ("${TOKEN", Err(ReferenceError::Malformed)),
        ("${}", Err(ReferenceError::Malformed)),
        ("${a b}", Err(ReferenceError::Malformed)),
        ("${#x}", Err(ReferenceError::Malformed)),
    ] {
        let got = expand_secret(&text.into(), &lookup);
        assert_eq!(got.as_ref().map(Secret::expose), expected.as_deref(), "{text}");
    }
}

#[test]
fn deeply_nested_defaults_are_an_error() {
    let depth = 100_000;
    let text = format!("{}x{}", "${A:-".repeat(depth), "}".repeat(depth));
    assert_eq!(expand_secret(&text.as_str().into(), &lookup), Err(ReferenceError::Malformed));
}

#[test]
fn references_are_looked_up_on_this_machine() {
    let file = std::env::temp_dir().join(format!("toolcrib-expand-{}", std::process::id()));
    std::fs::write(&file, "content\n").unwrap();
    assert_eq!(from_system(Reference::File(file.to_str().unwrap())).unwrap(), "content\n");
    std::fs::write(&file, "x".repeat((64 << 10) + 1)).unwrap();
    assert_eq!(from_system(Reference::File(file.to_str().unwrap())), None);
    std::fs::remove_file(&file).unwrap();
    assert_eq!(from_system(Reference::File(file.to_str().unwrap())), None);
    assert_eq!(from_system(Reference::Variable("PATH")), std::env::var("PATH").ok());
    let folder = std::env::current_dir().unwrap();
    assert_eq!(from_system(Reference::Folder), folder.to_str().map(str::to_owned));
}
