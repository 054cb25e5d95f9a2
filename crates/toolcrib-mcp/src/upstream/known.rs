//! What is known of a server: its lists as it gave them, and what it says about itself.

use std::time::Duration;

use rmcp::model::{
    ClientRequest, ListPromptsRequest, ListResourceTemplatesRequest, ListResourcesRequest,
    ListToolsRequest, PaginatedRequestParams, RequestOptionalParam,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolcrib_core::clean::one_line;
use toolcrib_core::text::shorten;

use super::budget::memory_of;
use super::definitions::Definitions;
use super::failed::Failed;
use super::link::Link;
use crate::config::Limits;

/// What is known of a server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Known {
    /// Its tools, as it lists them.
    pub(crate) tools: Definitions,
    /// Its prompts.
    pub(crate) prompts: Vec<Value>,
    /// Its resources.
    pub(crate) resources: Vec<Value>,
    /// Its templates of resources.
    pub(crate) templates: Vec<Value>,
    /// What it tells a model about itself.
    pub(crate) instructions: Option<String>,
    /// What of its lists was left out, and why.
    #[serde(default)]
    pub(crate) notes: Vec<String>,
}

/// Maximum size of all lists of one server together, in bytes of memory while they are read. A thousand tools take a
/// few megabytes.
const LISTS_BYTES: usize = 64 << 20;

/// One list of a server.
#[derive(Debug, Clone, Copy)]
enum List {
    Tools,
    Prompts,
    Resources,
    Templates,
}

impl List {
    /// Under which key the entries stand.
    fn key(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Prompts => "prompts",
            Self::Resources => "resources",
            Self::Templates => "resourceTemplates",
        }
    }

    fn request(self, cursor: Option<String>) -> ClientRequest {
        let params =
            cursor.map(|cursor| PaginatedRequestParams::default().with_cursor(Some(cursor)));
        match self {
            Self::Tools => ClientRequest::ListToolsRequest(page::<_>(params) as ListToolsRequest),
            Self::Prompts => {
                ClientRequest::ListPromptsRequest(page::<_>(params) as ListPromptsRequest)
            }
            Self::Resources => {
                ClientRequest::ListResourcesRequest(page::<_>(params) as ListResourcesRequest)
            }
            Self::Templates => ClientRequest::ListResourceTemplatesRequest(
                page::<_>(params) as ListResourceTemplatesRequest
            ),
        }
    }
}

/// A request for a page of a list, whichever list it is.
pub(crate) fn page<M: Default>(
    params: Option<PaginatedRequestParams>,
) -> RequestOptionalParam<M, PaginatedRequestParams> {
    RequestOptionalParam {
        method: M::default(),
        params,
        extensions: rmcp::model::Extensions::default(),
    }
}

impl Known {
    /// Asks a server for all its lists.
    pub(crate) async fn ask(
        link: &Link,
        limits: &Limits,
        within: Duration,
    ) -> Result<Self, Failed> {
        let has = &link.info.capabilities;
        let mut notes = Vec::new();
        let mut reader = Reader { link, limits, within, left: LISTS_BYTES, notes: &mut notes };
        // A server that declares nothing may have tools all the same; the others are optional extras.
        let tools = if has.tools.is_some() || (has.prompts.is_none() && has.resources.is_none()) {
            Definitions::of(&reader.pages(List::Tools).await?)
        } else {
            Definitions::default()
        };
        let (mut prompts, mut resources, mut templates) = Default::default();
        if has.prompts.is_some() {
            prompts = reader.extra(List::Prompts).await?;
        }
        if has.resources.is_some() {
            resources = reader.extra(List::Resources).await?;
            templates = reader.extra(List::Templates).await?;
        }
        let instructions = link.info.instructions.clone();
        Ok(Self { tools, prompts, resources, templates, instructions, notes })
    }
}

/// Asks one server for its lists.
struct Reader<'a> {
    link: &'a Link,
    limits: &'a Limits,
    /// How long one page may take.
    within: Duration,
    /// Bytes that the rest of the lists may take.
    left: usize,
    /// What was left out.
    notes: &'a mut Vec<String>,
}

impl Reader<'_> {
    /// A list whose refusal is no reason to do without the server.
    async fn extra(&mut self, list: List) -> Result<Vec<Value>, Failed> {
        match self.pages(list).await {
            Err(Failed::Refused(error)) => {
                let said = shorten(&one_line(&error.message), 200).into_owned();
                self.notes.push(format!("its {} cannot be listed: {said}", list.key()));
                Ok(Vec::new())
            }
            other => other,
        }
    }

    /// Every page of a list, within bounds.
    async fn pages(&mut self, list: List) -> Result<Vec<Value>, Failed> {
        let (link, limits, within) = (self.link, self.limits, self.within);
        let mut entries: Vec<Value> = Vec::new();
        let mut cursor = None;
        for _ in 0..limits.pages {
            let mut page = link.ask(list.request(cursor), within).await?;
            if let Some(Value::Array(more)) = page.get_mut(list.key()).map(Value::take) {
                for entry in more {
                    let Some(left) = self.left.checked_sub(memory_of(&entry)) else {
                        let kept = entries.len();
                        self.notes.push(format!(
                            "its lists take more than {LISTS_BYTES} bytes; the first {kept} {} are used",
                            list.key()
                        ));
                        return Ok(entries);
                    };
                    self.left = left;
                    entries.push(entry);
                }
            }
            if entries.len() > limits.server_tools {
                let (all, kept) = (entries.len(), limits.server_tools);
                entries.truncate(kept);
                self.notes.push(format!(
                    "it lists {all} or more {}; the first {kept} are used",
                    list.key()
                ));
                return Ok(entries);
            }
            // An empty text is a cursor too, but some servers mean by it that this was the last page.
            cursor = match page.get("nextCursor").and_then(Value::as_str) {
                Some(next) if !next.is_empty() => Some(next.to_owned()),
                _ => return Ok(entries),
            };
        }
        let (pages, kept) = (limits.pages, entries.len());
        self.notes.push(format!(
            "its {} have more than {pages} pages; the first {kept} are used",
            list.key()
        ));
        Ok(entries)
    }
}
