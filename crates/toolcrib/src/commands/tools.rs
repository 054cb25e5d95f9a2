//! `toolcrib tools`: lists the tools that clients see, and exports them as a catalog.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Serialize;
use serde_json::value::RawValue;
use toolcrib_core::policy::Glob;
use toolcrib_core::{FourCharsPerToken, Tool, ToolId, nearest_names};
use toolcrib_text::first_sentence;
use toolcrib_text::json::Fields;

use super::tool_source::{ToolOrigin, ToolSource};
use crate::args::ToolsArgs;
use crate::output::{Failure, Output, print_stderr};
use crate::terminal::stdout_width;

/// Maximum length of the sentence after a tool's name, in characters.
const SENTENCE_CHARS: usize = 100;

/// Minimum length of the sentence, in characters. If the terminal has less room, the sentence is left out.
const MIN_SENTENCE_CHARS: usize = 12;

/// Number of spaces before and after a tool's name.
const MARGINS: usize = 4;

/// Maximum width of the column with the names, in characters. The sentence of a tool with a longer name is not aligned.
const MAX_NAME_COLUMN: usize = 36;

#[derive(Serialize)]
struct ToolsReport<'a> {
    source: &'a ToolOrigin,
    tools: Vec<ListedTool<'a>>,
}

/// A tool, in the format of a catalog.
#[derive(Serialize)]
struct ListedTool<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: &'a RawValue,
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<&'a str>,
    /// The other fields of the definition, in their original order.
    #[serde(flatten, serialize_with = "serialize_fields")]
    rest: Vec<(String, &'a RawValue)>,
}

fn serialize_fields<S: serde::Serializer>(
    fields: &[(String, &RawValue)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(fields.iter().map(|(key, value)| (key, value)))
}

/// The keys of definitions in all formats that [`ListedTool`] has fields for.
const OWN_KEYS: [&str; 10] = [
    "name",
    "description",
    "inputSchema",
    "input_schema",
    "parameters",
    "parametersJsonSchema",
    "parameters_json_schema",
    "server",
    "type",
    "strict",
];

impl<'a> ListedTool<'a> {
    fn new(tool: &'a Tool) -> Result<Self, Failure> {
        let unreadable = |error: serde_json::Error| {
            Failure::input(format!("`{}`", tool.name()), &error, "this is a bug; report it")
        };
        let outer: Option<Fields<'a>> = Fields::read(tool.definition());
        // A definition of Chat Completions is one level deeper.
        let inner = outer.as_ref().and_then(|outer| outer.get("function")).and_then(Fields::read);
        let fields = inner.or(outer);
        let rest = fields.iter().flat_map(Fields::iter);
        let rest = rest.filter(|(key, _)| !OWN_KEYS.contains(key));
        let rest = rest
            .map(|(key, value)| Ok((key.to_owned(), serde_json::from_str(value)?)))
            .collect::<Result<Vec<_>, _>>();
        Ok(Self {
            name: tool.name(),
            description: tool.description(),
            input_schema: serde_json::from_str(tool.schema()).map_err(unreadable)?,
            server: tool.server(),
            rest: rest.map_err(unreadable)?,
        })
    }
}

pub(crate) fn run(args: &ToolsArgs, output: &mut Output) -> Result<bool, Failure> {
    let exports_to_stdout = args.export.as_deref() == Some(Path::new("-"));
    if exports_to_stdout && output.is_json() {
        let hint = "leave out `--json`, or name a file for the catalog";
        let problem = &"both would be written to standard output";
        return Err(Failure::input("`--export -` with `--json`", problem, hint));
    }
    let source = ToolSource::load(&args.source, None, std::sync::Arc::new(FourCharsPerToken))?;
    let matching = matching_tools(&source, args.pattern.as_deref());
    let catalog = source.crib.catalog();
    let tools = matching.iter().map(|id| ListedTool::new(catalog.tool(*id)));
    let tools = tools.collect::<Result<Vec<_>, _>>()?;
    if tools.is_empty() {
        report_no_match(&source, args.pattern.as_deref());
    }
    if let Some(file) = &args.export
        && !tools.is_empty()
    {
        export(&tools, file, output)?;
        if exports_to_stdout {
            return Ok(true);
        }
    }
    if output.is_json() {
        output.document(&ToolsReport { source: &source.origin, tools })?;
    } else if args.export.is_none() {
        print(&source, &matching, args.pattern.is_none(), output)?;
    }
    Ok(!matching.is_empty())
}

/// Returns the tools in scope that a pattern matches, by server and name. A pattern with `*` or `?` is compared with the
/// whole name, any other pattern is searched for in the name. The name may also be written `SERVER/TOOL`.
fn matching_tools(source: &ToolSource, pattern: Option<&str>) -> Vec<ToolId> {
    let catalog = source.crib.catalog();
    let matches = |tool: &Tool| {
        let Some(pattern) = pattern else { return true };
        let with_server = tool
            .server()
            .map(|server| [format!("{server}/{}", tool.name_without_server()), server.to_owned()]);
        let mut names = with_server.iter().flatten().map(String::as_str).chain([tool.name()]);
        if pattern.contains(['*', '?']) {
            let glob = Glob::new(pattern);
            return names.any(|name| glob.matches_name(name));
        }
        let pattern = pattern.to_lowercase();
        names.any(|name| name.to_lowercase().contains(&pattern))
    };
    let mut ids: Vec<ToolId> = source.scope.ids().filter(|id| matches(catalog.tool(*id))).collect();
    ids.sort_by_key(|id| (catalog.tool(*id).server(), catalog.tool(*id).name()));
    ids
}

fn report_no_match(source: &ToolSource, pattern: Option<&str>) {
    let Some(pattern) = pattern else {
        print_stderr("there are no tools");
        return;
    };
    let catalog = source.crib.catalog();
    let names = source.scope.ids().map(|id| catalog.tool(id).name());
    let nearest = match &nearest_names(pattern, names)[..] {
        [] => "`toolcrib tools` lists all names".to_owned(),
        names => format!("did you mean {}?", names.join(", ")),
    };
    print_stderr(&format!("no tool matches `{pattern}`\nhint: {nearest}"));
}

/// Writes the tools as a catalog in JSON Lines, which `--catalog` reads.
fn export(tools: &[ListedTool<'_>], file: &Path, output: &mut Output) -> Result<(), Failure> {
    let mut text = String::new();
    for tool in tools {
        let line = serde_json::to_string(tool)
            .map_err(|error| Failure::input("export", &error, "this is a bug; report it"))?;
        text.push_str(&line);
        text.push('\n');
    }
    if file == Path::new("-") {
        return output.raw(&text);
    }
    let path = file.display().to_string();
    if file.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("gz")) {
        return Err(Failure::input(
            format!("`{path}`"),
            &"a catalog is exported as plain text",
            "name a file that ends with `.jsonl`, or compress the output of `--export -`",
        ));
    }
    fs::write(file, text).map_err(|source| Failure::Write { path, source })?;
    let count = count(tools.len(), "tool");
    print_stderr(&format!("wrote {count} to `{}`", file.display()));
    Ok(())
}

/// Prints the tools by server. `lists_all` also names the servers whose tools are not known.
fn print(
    source: &ToolSource,
    matching: &[ToolId],
    lists_all: bool,
    output: &mut Output,
) -> Result<(), Failure> {
    let catalog = source.crib.catalog();
    let mut by_server: BTreeMap<&str, Vec<&Tool>> = BTreeMap::new();
    for id in matching {
        let tool = catalog.tool(*id);
        by_server.entry(tool.server().unwrap_or("(no server)")).or_default().push(tool);
    }
    let servers = by_server.len();
    let width = stdout_width();
    for (at, (server, tools)) in by_server.iter().enumerate() {
        if at > 0 {
            output.line("")?;
        }
        output.line(&format!("{server} ({})", count(tools.len(), "tool")))?;
        let lengths = tools.iter().map(|tool| tool.name().chars().count());
        let column = lengths.filter(|length| *length <= MAX_NAME_COLUMN).max().unwrap_or(0);
        for tool in tools {
            let name = tool.name();
            // On a terminal each tool has one line. A sentence that does not fit is cut.
            let used = name.chars().count().max(column) + MARGINS;
            let room = width.map_or(SENTENCE_CHARS, |width| width.saturating_sub(used));
            let sentence = match room.min(SENTENCE_CHARS) {
                room if room < MIN_SENTENCE_CHARS => String::new(),
                room => first_sentence(tool.description(), room),
            };
            output.line(format!("  {name:column$}  {sentence}").trim_end())?;
        }
    }
    if let ToolOrigin::Config { unlisted_servers, .. } = &source.origin
        && lists_all
        && !unlisted_servers.is_empty()
    {
        output.line("")?;
        for server in unlisted_servers {
            output.line(&format!("{server} (not known yet)"))?;
        }
    }
    if matching.len() > 1 {
        let (tools, servers) = (count(matching.len(), "tool"), count(servers, "server"));
        output.line(&format!("\n{tools} on {servers}"))?;
    }
    Ok(())
}

/// Returns a number with a noun, such as `3 tools`.
pub(super) fn count(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}
