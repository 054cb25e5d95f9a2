//! How much later the first word of a stream reaches a client.

use std::time::Duration;

use toolcrib_bench::Failed;
use toolcrib_testkit::provider::BodyPart;

use crate::client::{APIS, name, tools};
use crate::compare::{Times, head};
use crate::overhead::TOOLS;
use crate::scene::Scene;
use crate::upstream::Pair;

/// The first word of the scripted model.
const WORD: &str = "Hello.";
/// After it nothing comes for a while, so that it travels alone.
const ALONE: Duration = Duration::from_millis(2);

pub(crate) fn measure() -> Result<(), Failed> {
    let (record, play) = (Pair::record(None)?, Pair::play()?);
    let tools = tools(0, TOOLS)?;
    head();
    for api in APIS {
        let scene = Scene::record(&record, api, &tools, "Hi.", true)?.with_parts(alone);
        Times::measure(&play, &scene, Some(WORD))?.print(name(api));
    }
    Ok(())
}

fn alone(parts: Vec<BodyPart>) -> Vec<BodyPart> {
    let mut said = false;
    let mut out = Vec::new();
    for part in parts {
        let says = matches!(&part, BodyPart::Bytes(bytes) if String::from_utf8_lossy(bytes).contains(WORD));
        out.push(part);
        if says && !said {
            out.push(BodyPart::Pause(ALONE));
            said = true;
        }
    }
    out
}
