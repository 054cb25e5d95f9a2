//! The definition of a server's tool, as it is listed to clients.
//!
//! It is the server's own, except for one field. Some client SDKs refuse to call a tool that runs only as a task,
//! because the gateway announces no tasks in the older protocol. But the gateway waits for such a task itself.

use serde_json::Value;

/// Returns the definition of a tool, as it is listed.
pub(super) fn listed_definition(definition: &str) -> Option<Value> {
    let mut definition: Value = serde_json::from_str(definition).ok()?;
    let execution = definition.get_mut("execution").and_then(Value::as_object_mut);
    if let Some(execution) = execution
        && execution.get("taskSupport").is_some_and(|support| support == "required")
    {
        execution.shift_remove("taskSupport");
        if execution.is_empty()
            && let Some(fields) = definition.as_object_mut()
        {
            fields.shift_remove("execution");
        }
    }
    Some(definition)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_requirement_of_a_task_is_left_out() {
        for (definition, listed) in [
            (
                r#"{"name":"a","execution":{"taskSupport":"required"},"x":1}"#,
                r#"{"name":"a","x":1}"#,
            ),
            (
                r#"{"execution":{"x":1,"taskSupport":"required","y":2},"name":"a"}"#,
                r#"{"execution":{"x":1,"y":2},"name":"a"}"#,
            ),
        ] {
            assert_eq!(listed_definition(definition).unwrap().to_string(), listed);
        }
        for same in [r#"{"execution":{"taskSupport":"optional"}}"#, r#"{"execution":{}}"#, "{}"] {
            assert_eq!(listed_definition(same).unwrap().to_string(), same);
        }
    }
}
