//! The documentation inside the binary, so that an installed Toolcrib can explain its own settings and messages.
//!
//! The folder `docs` of this crate is a symbolic link to the repository's `docs`. Cargo follows the link when it packages
//! the crate, so there is one copy of each page in the repository, and the package is complete.
//!
//! The pages are not compressed, because compressing them would require a build script. They make the binary half a
//! megabyte larger, which is little compared with its table of vectors.

/// One page.
pub(crate) struct Page {
    /// The name of the page: its path below `docs`, without `.md`.
    pub(crate) topic: &'static str,
    /// What the page is about, as a phrase for the list of topics.
    pub(crate) about: &'static str,
    /// Markdown, except for the topic `schema`.
    pub(crate) text: &'static str,
}

macro_rules! page {
    ($topic:literal, $about:literal) => {
        Page {
            topic: $topic,
            about: $about,
            text: include_str!(concat!("../docs/", $topic, ".md")),
        }
    };
}

/// The JSON schema of `toolcrib.toml`. A test generates it from the types and compares.
pub(crate) const SCHEMA: &str = include_str!("../docs/toolcrib.schema.json");

/// All pages, in the order in which the list shows them.
pub(crate) const PAGES: [Page; 19] = [
    page!("install", "the packages, the container, uninstalling, and which files Toolcrib writes"),
    page!("clients", "connect your client, agent or SDK"),
    page!("troubleshooting", "find out why something does not work"),
    page!("command-line", "the commands and their output"),
    page!("gateway", "how the gateway for MCP servers works"),
    page!("gateway-config", "`toolcrib.toml`: servers, profiles, the gateway, the HTTP server"),
    page!("proxy", "how the LLM proxy works, and its config"),
    page!("modes", "how tools are deferred: the modes, their cost, and when not to use them"),
    page!("settings", "every setting with its default: thresholds, listing, ranking, limits"),
    page!("ranking", "how tools are ranked, and how to measure it on your own queries"),
    page!("behaviours", "what other systems do, and what Toolcrib does"),
    page!("presets/claude-code", "the preset that makes Toolcrib work like Claude Code"),
    page!("presets/everruns", "the preset that makes Toolcrib work like everruns"),
    page!("presets/everruns-0.50", "the preset that makes Toolcrib work like everruns 0.50"),
    page!("presets/hermes", "the preset that makes Toolcrib work like Hermes"),
    page!("presets/opencode", "the preset that makes Toolcrib work like opencode-tool-search"),
    page!("harness", "the library, for authors of agent harnesses"),
    page!("security", "who is trusted with what, known attacks, limits"),
    Page {
        topic: "schema",
        about: "the JSON schema of `toolcrib.toml`, for editors",
        text: SCHEMA,
    },
];

/// Returns the page for a topic. A topic may also be written as in a link: `settings.md`.
pub(crate) fn find(topic: &str) -> Option<&'static Page> {
    let topic = topic.strip_prefix("docs/").unwrap_or(topic);
    let topic = topic.strip_suffix(".md").unwrap_or(topic);
    PAGES.iter().find(|page| page.topic == topic)
}
