//! The immutable, ordered set of tools that everything else works on.
//!
//! A catalog never changes; another one takes its place, with the next generation. Building settles
//! what a name means: one name, one tool, whatever order the servers connected in.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHasher};

use crate::error::Error;
use crate::ingest::{Finding, IngestedTools, Problem, ingest};
use crate::limits::Limits;
use crate::tool::Tool;
use crate::wire_name;

/// A tool of one catalog, by position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ToolId(u32);

impl ToolId {
    pub(crate) fn at(index: usize) -> Self {
        Self(index as u32)
    }

    /// The position in the catalog.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Tools, their servers, and what was noticed when they came in.
#[derive(Debug, Clone, Default)]
pub struct Catalog {
    tools: Vec<Tool>,
    by_name: FxHashMap<Box<str>, ToolId>,
    instructions: FxHashMap<Arc<str>, Box<str>>,
    servers: Vec<(Arc<str>, Vec<ToolId>)>,
    findings: Vec<Finding>,
    generation: u64,
    /// A hash of the generation and all names, to tell one catalog's scopes from another's.
    identity: u64,
}

impl Catalog {
    /// Starts an empty catalog of generation 0.
    pub fn builder() -> CatalogBuilder {
        CatalogBuilder { generation: 0, ..CatalogBuilder::default() }
    }

    /// Starts the catalog that takes this one's place.
    pub fn next(&self) -> CatalogBuilder {
        CatalogBuilder { generation: self.generation + 1, ..CatalogBuilder::default() }
    }

    /// A catalog of one document, with the default limits.
    pub fn from_json(bytes: &[u8]) -> Result<Self, Error> {
        let mut builder = Self::builder();
        builder.add(ingest(bytes, None, &Limits::default())?);
        Ok(builder.build())
    }

    /// How many tools there are.
    pub fn len(&self) -> usize {
        self.tools.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    /// Counts up each time a catalog takes another's place.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    pub(crate) fn identity(&self) -> u64 {
        self.identity
    }

    /// Every tool's id, in order.
    pub fn ids(&self) -> impl Iterator<Item = ToolId> + use<> {
        (0..self.tools.len()).map(ToolId::at)
    }

    /// The tool with this id. Ids come from this catalog, so there is one.
    pub fn tool(&self, id: ToolId) -> &Tool {
        &self.tools[id.index()]
    }

    /// All tools, in order.
    pub fn tools(&self) -> &[Tool] {
        &self.tools
    }

    /// The tool of exactly this name.
    pub fn find(&self, name: &str) -> Option<ToolId> {
        self.by_name.get(name).copied()
    }

    /// The servers in order of their names, each with its tools.
    pub fn servers(&self) -> &[(Arc<str>, Vec<ToolId>)] {
        &self.servers
    }

    /// What a server says about itself.
    pub fn instructions(&self, server: &str) -> Option<&str> {
        self.instructions.get(server).map(AsRef::as_ref)
    }

    /// What was held, renamed or cleaned.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }
}

/// Collects tools until the catalog is built.
#[derive(Debug, Default)]
pub struct CatalogBuilder {
    generation: u64,
    came: IngestedTools,
}

impl CatalogBuilder {
    /// Takes in everything of one document.
    pub fn add(&mut self, came: IngestedTools) -> &mut Self {
        self.came.tools.extend(came.tools);
        self.came.findings.extend(came.findings);
        self.came.instructions.extend(came.instructions);
        self
    }

    /// Settles names and closes the set.
    ///
    /// Two servers with the same name: both get their wire names. One server that declares a name
    /// twice: the same definition counts once, different ones are all held, since neither the order
    /// nor the luck of a hash may decide which tool a call runs.
    pub fn build(self) -> Catalog {
        let IngestedTools { tools, mut findings, instructions } = self.came;
        let mut fates = Fates::of(&tools);
        let mut by_name = FxHashMap::default();
        let mut kept: Vec<Tool> = Vec::with_capacity(tools.len());
        for (i, mut tool) in tools.into_iter().enumerate() {
            let fate = fates.take(i);
            if let Some(problem) = fate {
                let held = !matches!(problem, Problem::Renamed { .. });
                let name = Some(tool.name.to_string());
                if let Problem::Renamed { to } = &problem {
                    tool.name = to.as_str().into();
                    tool.differs = true;
                }
                findings.push(Finding { place: "catalog".into(), tool: name, problem });
                if held {
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

/// What becomes of each tool that shares its name with another; the others have no entry.
struct Fates(FxHashMap<usize, Problem>);

impl Fates {
    fn of(tools: &[Tool]) -> Self {
        let mut first: FxHashMap<&str, usize> = FxHashMap::default();
        let mut shared: FxHashMap<&str, Vec<usize>> = FxHashMap::default();
        for (i, tool) in tools.iter().enumerate() {
            if let Some(before) = first.insert(&tool.name, i) {
                shared.entry(&tool.name).or_insert_with(|| vec![before]).push(i);
            }
        }
        let mut fates = FxHashMap::default();
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
                    fates.insert(i, Problem::Collision);
                } else if repeats {
                    fates.insert(i, Problem::Duplicate);
                } else if several && let Some(server) = tools[i].server() {
                    let to = wire_name::of(server, name);
                    // Whoever calls itself by another's wire name does not get it held by that.
                    let taken = first.contains_key(to.as_str());
                    let to = if taken { wire_name::distinct(server, name) } else { to };
                    fates.insert(i, Problem::Renamed { to });
                }
            }
        }
        Self(fates)
    }

    fn take(&mut self, i: usize) -> Option<Problem> {
        self.0.remove(&i)
    }
}
