//! The immutable, ordered set of tools that everything else works on.
//!
//! A catalog never changes; a new catalog with the next generation number replaces it. Building a catalog makes the
//! names unique, and the result does not depend on the order in which servers connected.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHasher};

use crate::error::Error;
use crate::ingest::{Finding, IngestedTools, Problem, ingest};
use crate::limits::Limits;
use crate::tool::Tool;
use crate::wire_name;

/// Identifies a tool by its position in a catalog.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ToolId(u32);

impl ToolId {
    pub(crate) fn at(index: usize) -> Self {
        Self(index as u32)
    }

    /// The tool's position in the catalog.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The tools, their servers, and the findings about them.
#[derive(Debug, Clone, Default)]
pub struct Catalog {
    tools: Vec<Tool>,
    by_name: FxHashMap<Box<str>, ToolId>,
    instructions: FxHashMap<Arc<str>, Box<str>>,
    servers: Vec<(Arc<str>, Vec<ToolId>)>,
    findings: Vec<Finding>,
    generation: u64,
    /// A hash of the generation and all names, used to check whether a scope belongs to this catalog.
    identity: u64,
}

impl Catalog {
    /// A builder for a catalog of generation 0.
    pub fn builder() -> CatalogBuilder {
        CatalogBuilder { generation: 0, ..CatalogBuilder::default() }
    }

    /// A builder for the catalog that replaces this one.
    pub fn next(&self) -> CatalogBuilder {
        CatalogBuilder { generation: self.generation + 1, ..CatalogBuilder::default() }
    }

    /// Reads a catalog from one JSON document, with the default limits.
    pub fn from_json(bytes: &[u8]) -> Result<Self, Error> {
        let mut builder = Self::builder();
        builder.add(ingest(bytes, None, &Limits::default())?);
        Ok(builder.build())
    }

    /// The number of tools.
    pub fn len(&self) -> usize {
        self.tools.len()
    }

    /// Whether there are no tools.
    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    /// The generation number, which increases each time a catalog is replaced.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    pub(crate) fn identity(&self) -> u64 {
        self.identity
    }

    /// The ids of all tools, in catalog order.
    pub fn ids(&self) -> impl Iterator<Item = ToolId> + use<> {
        (0..self.tools.len()).map(ToolId::at)
    }

    /// The tool with this id, which must come from this catalog.
    pub fn tool(&self, id: ToolId) -> &Tool {
        &self.tools[id.index()]
    }

    /// All tools, in catalog order.
    pub fn tools(&self) -> &[Tool] {
        &self.tools
    }

    /// The tool with exactly this name.
    pub fn find(&self, name: &str) -> Option<ToolId> {
        self.by_name.get(name).copied()
    }

    /// The servers, sorted by name, each with its tools.
    pub fn servers(&self) -> &[(Arc<str>, Vec<ToolId>)] {
        &self.servers
    }

    /// The instructions that a server gave for using its tools.
    pub fn instructions(&self, server: &str) -> Option<&str> {
        self.instructions.get(server).map(AsRef::as_ref)
    }

    /// Which tools were withheld, renamed or changed, and why.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }
}

/// Collects tools for a catalog.
#[derive(Debug, Default)]
pub struct CatalogBuilder {
    generation: u64,
    ingested: IngestedTools,
}

impl CatalogBuilder {
    /// Adds the tools, findings and instructions of one document.
    pub fn add(&mut self, ingested: IngestedTools) -> &mut Self {
        self.ingested.tools.extend(ingested.tools);
        self.ingested.findings.extend(ingested.findings);
        self.ingested.instructions.extend(ingested.instructions);
        self
    }

    /// Makes names unique and builds the catalog.
    ///
    /// If two servers have a tool of the same name, each of the two tools gets its wire name, which includes the
    /// server. If one server declares a name several times with equal definitions, one copy remains. If the definitions
    /// differ, all of them are withheld, because the choice of which one to call would be arbitrary.
    pub fn build(self) -> Catalog {
        let IngestedTools { tools, mut findings, instructions } = self.ingested;
        let mut conflicts = NameConflicts::of(&tools);
        let mut by_name = FxHashMap::default();
        let mut kept: Vec<Tool> = Vec::with_capacity(tools.len());
        for (i, mut tool) in tools.into_iter().enumerate() {
            if let Some(problem) = conflicts.take(i) {
                let is_withheld = !matches!(problem, Problem::Renamed { .. });
                let name = Some(tool.name.to_string());
                if let Problem::Renamed { to } = &problem {
                    tool.name = to.as_str().into();
                    tool.shown_differs = true;
                }
                findings.push(Finding { location: "catalog".into(), tool: name, problem });
                if is_withheld {
                    continue;
                }
            }
            by_name.insert(tool.name.clone(), ToolId::at(kept.len()));
            kept.push(tool);
        }
        let instructions = instructions
            .into_iter()
            .map(|(server, text)| (Arc::from(server), text.into_boxed_str()))
            .collect();
        let mut hasher = FxHasher::default();
        self.generation.hash(&mut hasher);
        for tool in &kept {
            tool.name.hash(&mut hasher);
        }
        let (generation, identity) = (self.generation, hasher.finish());
        let servers = by_server(&kept);
        Catalog { tools: kept, by_name, instructions, servers, findings, generation, identity }
    }
}

fn by_server(tools: &[Tool]) -> Vec<(Arc<str>, Vec<ToolId>)> {
    let mut by_name: FxHashMap<&Arc<str>, Vec<ToolId>> = FxHashMap::default();
    for (i, tool) in tools.iter().enumerate() {
        if let Some(server) = &tool.server {
            by_name.entry(server).or_default().push(ToolId::at(i));
        }
    }
    let mut servers: Vec<_> =
        by_name.into_iter().map(|(server, ids)| (Arc::clone(server), ids)).collect();
    servers.sort_unstable();
    servers
}

/// For each tool that shares its name with another tool, by the tool's index: the problem to report, which also decides
/// whether the tool is renamed or withheld. Tools without a conflict have no entry.
struct NameConflicts(FxHashMap<usize, Problem>);

impl NameConflicts {
    fn of(tools: &[Tool]) -> Self {
        let mut first: FxHashMap<&str, usize> = FxHashMap::default();
        let mut shared: FxHashMap<&str, Vec<usize>> = FxHashMap::default();
        for (i, tool) in tools.iter().enumerate() {
            if let Some(before) = first.insert(&tool.name, i) {
                shared.entry(&tool.name).or_insert_with(|| vec![before]).push(i);
            }
        }
        let mut problems = FxHashMap::default();
        for (name, mut same) in shared {
            same.sort_unstable();
            same.dedup();
            let servers = |i: &usize| tools[*i].server();
            let several = same.iter().any(|i| servers(i) != servers(&same[0]));
            for (position, &i) in same.iter().enumerate() {
                let mut others = same.iter().filter(|o| **o != i && servers(o) == servers(&i));
                let differs = others.clone().any(|&o| tools[o].definition != tools[i].definition);
                let repeats = others.any(|o| *o < same[position]);
                if differs {
                    problems.insert(i, Problem::Collision);
                } else if repeats {
                    problems.insert(i, Problem::Duplicate);
                } else if several && let Some(server) = tools[i].server() {
                    let to = wire_name::for_tool(server, name);
                    // Some other tool may already be declared under this wire name. It must not cause this tool to be
                    // withheld, so a distinct name is used instead.
                    let taken = first.contains_key(to.as_str());
                    let to = if taken { wire_name::with_hash(server, name) } else { to };
                    problems.insert(i, Problem::Renamed { to });
                }
            }
        }
        Self(problems)
    }

    fn take(&mut self, i: usize) -> Option<Problem> {
        self.0.remove(&i)
    }
}
