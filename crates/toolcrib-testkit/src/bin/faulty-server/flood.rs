//! Floods the client with messages.

use serde_json::{Value, json};

use crate::faults::Faults;
use crate::wire::Output;

/// Returns the number of requests in a flood, each of which the client must answer. This is 0 for a flood of
/// notifications.
pub(crate) fn requests(faults: &Faults) -> u64 {
    let notifies =
        faults.flood.as_deref().is_some_and(|method| method.starts_with("notifications/"));
    if notifies { 0 } else { faults.flood_count }
}

/// Writes `--flood-count` messages of the method `--flood`, or fewer if the client closes the pipe. Progress
/// notifications contain the progress token `token`.
pub(crate) fn flood(faults: &Faults, output: &Output, token: &Value) {
    let method = faults.flood.as_deref().unwrap_or("ping");
    let text = "x".repeat(faults.flood_bytes);
    for number in 0..faults.flood_count {
        let params = match method {
            "notifications/progress" => {
                json!({"progressToken": token, "progress": number, "message": text})
            }
            "notifications/message" => json!({"level": "error", "data": text}),
            "notifications/resources/updated" => json!({"uri": format!("flood://{number}{text}")}),
            "notifications/cancelled" => json!({"requestId": format!("none-{number}{text}")}),
            _ => json!({"text": text}),
        };
        let mut message = json!({"jsonrpc": "2.0", "method": method, "params": params});
        if !method.starts_with("notifications/") {
            message["id"] = format!("flood-{number}").into();
        }
        if !output.send(&message, 1) {
            return;
        }
    }
}
