//! The lists of a server, as it sent them: tools, prompts, resources and resource templates.

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

use super::connection_handle::ConnectionHandle;
use super::definitions::{Definitions, DefinitionsWriter};
use super::entry_limits::{cut_description, withhold_reason};
use super::message_budget::memory_of;
use super::upstream_error::UpstreamError;
use crate::config::{GatewayLimits, INSTRUCTIONS_CHARS, UnattributedQuestions};

/// The lists of a server. They are saved between runs in this format.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct ServerLists {
    pub(crate) tools: Definitions,
    pub(crate) prompts: Definitions,
    pub(crate) resources: Definitions,
    pub(crate) templates: Definitions,
    /// Notes about what was left out of the lists, and why.
    #[serde(default)]
    pub(crate) notes: Vec<String>,
    /// The unattributed questions of the server so far.
    #[serde(default, rename = "asked")]
    pub(crate) questions: UnattributedQuestions,
    /// The server's instructions for the use of its tools, cleaned and cut. Empty if it has none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) instructions: String,
}

/// Maximum size of all lists of one server together, in bytes of memory. The lists are kept as text, and a thousand
/// tools take a few megabytes. All lists except the tools also exist as parsed values, and are counted in both forms.
/// While lists change, the old and the new lists exist at the same time, and tools are also in the catalog, so the
/// actual memory is several times this maximum.
const LISTS_BYTES: usize = 16 << 20;

/// The kinds of lists that a server has.
#[derive(Debug, Clone, Copy)]
enum ListKind {
    Tools,
    Prompts,
    Resources,
    Templates,
}

impl ListKind {
    /// Returns the key in the server's answer under which the entries are.
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
            Self::Tools => {
                ClientRequest::ListToolsRequest(page_request(params) as ListToolsRequest)
            }
            Self::Prompts => {
                ClientRequest::ListPromptsRequest(page_request(params) as ListPromptsRequest)
            }
            Self::Resources => {
                ClientRequest::ListResourcesRequest(page_request(params) as ListResourcesRequest)
            }
            Self::Templates => ClientRequest::ListResourceTemplatesRequest(
                page_request(params) as ListResourceTemplatesRequest
            ),
        }
    }
}

/// Builds a request for one page of any list.
pub(crate) fn page_request<M: Default>(
    params: Option<PaginatedRequestParams>,
) -> RequestOptionalParam<M, PaginatedRequestParams> {
    RequestOptionalParam {
        method: M::default(),
        params,
        extensions: rmcp::model::Extensions::default(),
    }
}

impl ServerLists {
    /// Whether clients see the same in both.
    pub(crate) fn is_seen_as(&self, other: &Self) -> bool {
        self.tools == other.tools
            && self.prompts == other.prompts
            && self.resources == other.resources
            && self.templates == other.templates
            && self.instructions == other.instructions
    }

    /// Fetches all lists of a server. `timeout` applies to each page.
    pub(crate) async fn fetch(
        connection: &ConnectionHandle,
        limits: &GatewayLimits,
        timeout: Duration,
    ) -> Result<Self, UpstreamError> {
        let capabilities = &connection.server_info.capabilities;
        let mut notes = Vec::new();
        let mut fetcher =
            ListFetcher { connection, limits, timeout, bytes_left: LISTS_BYTES, notes: &mut notes };
        // A server that declares neither prompts nor resources may have tools even if it does not declare them. An
        // error for the tools is returned, but an error for one of the other lists only makes that list empty.
        let tools = if capabilities.tools.is_some()
            || (capabilities.prompts.is_none() && capabilities.resources.is_none())
        {
            fetcher.fetch_pages(ListKind::Tools).await?
        } else {
            Definitions::default()
        };
        let (mut prompts, mut resources, mut templates) = Default::default();
        if capabilities.prompts.is_some() {
            prompts = fetcher.fetch_optional(ListKind::Prompts).await?;
        }
        if capabilities.resources.is_some() {
            resources = fetcher.fetch_optional(ListKind::Resources).await?;
            templates = fetcher.fetch_optional(ListKind::Templates).await?;
        }
        let instructions = stored_instructions(connection.server_info.instructions.as_deref());
        let questions = UnattributedQuestions::None;
        Ok(Self { tools, prompts, resources, templates, notes, questions, instructions })
    }

    /// Returns the server's instructions, if it has any.
    pub(crate) fn instructions(&self) -> Option<&str> {
        Some(&*self.instructions).filter(|text| !text.is_empty())
    }
}

/// Returns the instructions as they are stored: without hidden characters, on one line and cut. Line breaks are removed,
/// because in JSON they are escapes that cost tokens.
fn stored_instructions(sent: Option<&str>) -> String {
    shorten(&one_line(sent.unwrap_or_default()), INSTRUCTIONS_CHARS).into_owned()
}

struct ListFetcher<'a> {
    connection: &'a ConnectionHandle,
    limits: &'a GatewayLimits,
    /// The timeout for fetching one page.
    timeout: Duration,
    /// How many bytes the lists that are not fetched yet may take.
    bytes_left: usize,
    notes: &'a mut Vec<String>,
}

impl ListFetcher<'_> {
    /// Fetches a list that the server may answer with an error. In that case the list is empty, and a note reports the
    /// error.
    async fn fetch_optional(&mut self, list: ListKind) -> Result<Definitions, UpstreamError> {
        match self.fetch_pages(list).await {
            Err(UpstreamError::Rejected(error)) => {
                let message = shorten(&one_line(&error.message), 200).into_owned();
                self.notes.push(format!("its {} cannot be listed: {message}", list.key()));
                Ok(Definitions::default())
            }
            other => other,
        }
    }

    /// Fetches every page of a list, within the limits.
    async fn fetch_pages(&mut self, list: ListKind) -> Result<Definitions, UpstreamError> {
        let (connection, limits, timeout) = (self.connection, self.limits, self.timeout);
        let mut entries = DefinitionsWriter::default();
        let mut withheld = BTreeMap::new();
        let mut cursor = None;
        let mut truncated = None;
        for _ in 0..limits.pages {
            let mut page = connection.request(list.request(cursor.take()), timeout).await?;
            let next = page.get("nextCursor").and_then(Value::as_str).map(str::to_owned);
            if let Some(Value::Array(page)) = page.get_mut(list.key()).map(Value::take) {
                truncated = self.add_page(list, page, &mut entries, &mut withheld);
            }
            // According to the specification an empty string is a valid cursor, but some servers send it with the last
            // page, so it ends the list.
            cursor = next.filter(|next| !next.is_empty() && truncated.is_none());
            if cursor.is_none() {
                break;
            }
        }
        for (reason, count) in withheld {
            self.notes.push(format!("{count} of its {} are withheld: {reason}", list.key()));
        }
        if cursor.is_some() {
            truncated = Some(format!("its {} have more than {} pages", list.key(), limits.pages));
        }
        if let Some(reason) = truncated {
            self.notes.push(format!("{reason}; the first {} are used", entries.len()));
        }
        Ok(entries.finish())
    }

    /// Adds the entries of a page. If the list must be truncated, returns the reason.
    fn add_page(
        &mut self,
        list: ListKind,
        page: Vec<Value>,
        entries: &mut DefinitionsWriter,
        withheld: &mut BTreeMap<String, usize>,
    ) -> Option<String> {
        let all = entries.len() + page.len();
        let is_tool = matches!(list, ListKind::Tools);
        for mut entry in page {
            if entries.len() >= self.limits.server_tools {
                return Some(format!("it lists {all} or more {}", list.key()));
            }
            if !is_tool {
                cut_description(&mut entry);
                if let Some(reason) = withhold_reason(&entry) {
                    *withheld.entry(reason).or_default() += 1;
                    continue;
                }
            }
            let text = entry.to_string();
            let bytes = text.len() + if is_tool { 0 } else { memory_of(&entry) };
            let Some(bytes_left) = self.bytes_left.checked_sub(bytes) else {
                let key = list.key();
                return Some(format!(
                    "its {key} exceed the {LISTS_BYTES} bytes that all its lists may take"
                ));
            };
            self.bytes_left = bytes_left;
            entries.push(&text);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_instructions_are_clean_and_limited() {
        assert_eq!(stored_instructions(None), "");
        assert_eq!(stored_instructions(Some(" # Use\n\n- r\u{200b}ead\r\n")), "# Use - read");
        let longest = "x".repeat(INSTRUCTIONS_CHARS);
        assert_eq!(stored_instructions(Some(&longest)), longest);
        let cut = stored_instructions(Some(&format!("{longest}x")));
        assert_eq!(cut.chars().count(), INSTRUCTIONS_CHARS);
        assert!(cut.ends_with("x…"));
    }
}
