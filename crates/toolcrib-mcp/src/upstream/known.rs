//! What is known of a server: its lists as it gave them.

use std::collections::BTreeMap;
use std::time::Duration;

use rmcp::model::{
    ClientRequest, ListPromptsRequest, ListResourceTemplatesRequest, ListResourcesRequest,
    ListToolsRequest, PaginatedRequestParams, RequestOptionalParam,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolcrib_text::clean::one_line;
use toolcrib_text::shorten;

use super::budget::memory_of;
use super::definitions::{Definitions, Writer};
use super::entry_limits::{cut_description, withheld};
use super::failed::Failed;
use super::link::Link;
use crate::config::Limits;

/// What is known of a server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Known {
    /// Its tools, as it lists them.
    pub(crate) tools: Definitions,
    /// Its prompts.
    pub(crate) prompts: Definitions,
    /// Its resources.
    pub(crate) resources: Definitions,
    /// Its templates of resources.
    pub(crate) templates: Definitions,
    /// What of its lists was left out, and why.
    #[serde(default)]
    pub(crate) notes: Vec<String>,
}

/// Maximum size of all lists of one server together, in bytes of memory. They are kept as text, and a thousand tools
/// take a few megabytes. Lists other than tools also exist as values, and count as both. While lists change, the old
/// and the new ones exist at the same time, and tools are also in the catalog, so the cost is several times this.
const LISTS_BYTES: usize = 16 << 20;

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
            reader.pages(List::Tools).await?
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
        Ok(Self { tools, prompts, resources, templates, notes })
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
    async fn extra(&mut self, list: List) -> Result<Definitions, Failed> {
        match self.pages(list).await {
            Err(Failed::Refused(error)) => {
                let said = shorten(&one_line(&error.message), 200).into_owned();
                self.notes.push(format!("its {} cannot be listed: {said}", list.key()));
                Ok(Definitions::default())
            }
            other => other,
        }
    }

    /// Every page of a list, within bounds.
    async fn pages(&mut self, list: List) -> Result<Definitions, Failed> {
        let (link, limits, within) = (self.link, self.limits, self.within);
        let mut entries = Writer::default();
        let mut left_out = BTreeMap::new();
        let mut cursor = None;
        let mut cut = None;
        for _ in 0..limits.pages {
            let mut page = link.ask(list.request(cursor.take()), within).await?;
            let next = page.get("nextCursor").and_then(Value::as_str).map(str::to_owned);
            if let Some(Value::Array(page)) = page.get_mut(list.key()).map(Value::take) {
                cut = self.add(list, page, &mut entries, &mut left_out);
            }
            // An empty text is a cursor too, but some servers mean by it that this was the last page.
            cursor = next.filter(|next| !next.is_empty() && cut.is_none());
            if cursor.is_none() {
                break;
            }
        }
        for (why, count) in left_out {
            self.notes.push(format!("{count} of its {} are withheld: {why}", list.key()));
        }
        if cursor.is_some() {
            cut = Some(format!("its {} have more than {} pages", list.key(), limits.pages));
        }
        if let Some(cut) = cut {
            self.notes.push(format!("{cut}; the first {} are used", entries.len()));
        }
        Ok(entries.finish())
    }

    /// Adds the entries of a page, and returns why no more pages are read.
    fn add(
        &mut self,
        list: List,
        page: Vec<Value>,
        entries: &mut Writer,
        left_out: &mut BTreeMap<String, usize>,
    ) -> Option<String> {
        let all = entries.len() + page.len();
        let is_tool = matches!(list, List::Tools);
        for mut entry in page {
            if entries.len() >= self.limits.server_tools {
                return Some(format!("it lists {all} or more {}", list.key()));
            }
            if !is_tool {
                cut_description(&mut entry);
                if let Some(why) = withheld(&entry) {
                    *left_out.entry(why).or_default() += 1;
                    continue;
                }
            }
            let text = entry.to_string();
            let bytes = text.len() + if is_tool { 0 } else { memory_of(&entry) };
            let Some(left) = self.left.checked_sub(bytes) else {
                let key = list.key();
                return Some(format!(
                    "its {key} exceed the {LISTS_BYTES} bytes that all its lists may take"
                ));
            };
            self.left = left;
            entries.push(&text);
        }
        None
    }
}
