//! A tool with fields that are in no protocol version, in an unusual order.
//!
//! The definition and the result are written as text, because the order of keys and the spelling of numbers matter. A
//! gateway must pass the definition and the result on unchanged.

/// The definition of `cargo` in `tools/list`.
pub(crate) const DEFINITION: &str = concat!(
    r#"{"zone":"unknown field before the name","name":"cargo","#,
    r#""x-vendor":{"b":1,"a":[3,1,2]},"title":"Cargo","#,
    r#""description":"Answers with fields that are not in any revision of the protocol.","#,
    r#""inputSchema":{"type":"object","x-order":["zulu","alpha"],"properties":{"#,
    r#""zulu":{"type":"string","x-unit":"m","description":"Named last, listed first."},"#,
    r#""alpha":{"type":"number","default":1.50}},"additionalProperties":true},"#,
    r#""annotations":{"readOnlyHint":true,"x-hint":"kept"},"#,
    r#""_meta":{"z.example/last":true,"a.example/first":{"deep":[null]}},"#,
    r#""future":[{"k":1e2}]}"#
);

/// The result of a call to `cargo`.
pub(crate) const RESULT: &str = concat!(
    r#"{"xResult":{"z":1,"a":2},"content":["#,
    r#"{"xBlock":"before the type","type":"text","text":"Cargo.","_meta":{"z.example/b":1,"a.example/a":2}},"#,
    r#"{"type":"hologram","depth":3.0,"frames":[{"z":1,"y":2}],"data":"AAEC"}],"#,
    r#""structuredContent":{"zulu":1.50,"alpha":12345678901234567890,"nested":{"b":null,"a":"\u00e9"}},"#,
    r#""isError":false,"_meta":{"z.example/trace":"t-1","a.example/cost":0.10},"future":true}"#
);
