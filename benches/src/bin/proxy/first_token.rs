//! Measures how much later the first token of a stream reaches a client through the proxy.

use std::time::Duration;

use toolcrib_bench::BenchError;
use toolcrib_testkit::provider::BodyPart;

use crate::client::{APIS, name, tools};
use crate::compare::{Times, head};
use crate::overhead::TOOLS;
use crate::recorded_exchange::RecordedExchange;
use crate::upstream::UpstreamAndProxy;

/// The first text of the scripted model.
const WORD: &str = "Hello.";
/// Pause after the first text, so that it is not sent in one packet with the next text.
const PAUSE_AFTER_FIRST: Duration = Duration::from_millis(2);

pub(crate) fn measure() -> Result<(), BenchError> {
    let (record, play) = (UpstreamAndProxy::record(None)?, UpstreamAndProxy::play()?);
    let tools = tools(0, TOOLS)?;
    head();
    for api in APIS {
        let exchange = RecordedExchange::record(&record, api, &tools, "Hi.", true)?
            .with_parts(pause_after_first_text);
        Times::measure(&play, &exchange, Some(WORD))?.print(name(api));
    }
    Ok(())
}

fn pause_after_first_text(parts: Vec<BodyPart>) -> Vec<BodyPart> {
    let mut said = false;
    let mut out = Vec::new();
    for part in parts {
        let says = matches!(&part, BodyPart::Bytes(bytes) if String::from_utf8_lossy(bytes).contains(WORD));
        out.push(part);
        if says && !said {
            out.push(BodyPart::Pause(PAUSE_AFTER_FIRST));
            said = true;
        }
    }
    out
}
