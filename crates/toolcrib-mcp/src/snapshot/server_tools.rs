//! Selects the tools of each server: those that its config allows, up to its share of the maximum.

use toolcrib_core::policy::Glob;
use toolcrib_core::{DeferPolicy, IngestedTools, ListSource, ingest};

use super::tool_definitions::overridden_definitions;
use super::tool_names::matches_own_or_full;
use super::{SnapshotServer, globs};
use crate::config::GatewayConfig;

/// Returns the tools of one server that its config allows.
pub(super) fn ingest_tools(server: &SnapshotServer, config: &GatewayConfig) -> IngestedTools {
    let Some(lists) = &server.lists else { return IngestedTools::default() };
    let tools = overridden_definitions(lists.tools.json(), &server.config);
    let list = format!("{{\"tools\":{tools}}}");
    let source = ListSource::Server(&server.name);
    let Ok(mut ingested) = ingest(list.as_bytes(), source, &config.settings.limits) else {
        return IngestedTools::default();
    };
    let (server, server_name) = (&server.config, &server.name);
    let (allow, deny, always_load) =
        (globs(&server.allow), globs(&server.deny), globs(&server.always_load));
    ingested.tools.retain(|tool| {
        let matches_any = |globs: &[Glob]| globs.iter().any(|glob| glob.matches(tool));
        // At this point tools have their own names. A name from the config can only deny a tool, never allow it.
        let given = server.tools.get(tool.name()).and_then(|change| change.name.as_deref());
        let denies =
            |name: &str| deny.iter().any(|glob| matches_own_or_full(glob, server_name, name));
        (allow.is_empty() || matches_any(&allow))
            && !matches_any(&deny)
            && !given.is_some_and(denies)
    });
    ingested.tools = ingested
        .tools
        .into_iter()
        .map(|tool| {
            let access = server.access_policy(tool.name());
            let tool = tool.with_access(access);
            let always = always_load.iter().any(|glob| glob.matches(&tool));
            match if always { Some(DeferPolicy::Never) } else { server.defer } {
                Some(defer) => tool.with_defer(defer),
                None => tool,
            }
        })
        .collect();
    ingested
}

/// Returns the number of tools that each server may have. If there is room, each server has all the tools that it
/// lists. Otherwise servers with few tools have all of them, and the others share the rest equally, so that no server
/// can crowd out another.
pub(super) fn fair_shares(counts: &[usize], limit: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..counts.len()).collect();
    // If the rest cannot be divided equally, the servers with the most tools get one more. Among servers with the same
    // number of tools, the first ones do.
    order.sort_by_key(|at| (counts[*at], std::cmp::Reverse(*at)));
    let (mut room, mut shares) = (limit, vec![0; counts.len()]);
    for (before, at) in order.into_iter().enumerate() {
        shares[at] = counts[at].min(room / (counts.len() - before));
        room -= shares[at];
    }
    shares
}

/// Keeps the first `share` tools. Returns a note if some are left out.
pub(super) fn truncate_tools(
    ingested: &mut IngestedTools,
    share: usize,
    limit: usize,
) -> Option<String> {
    let all = ingested.tools.len();
    ingested.tools.truncate(share);
    (all > share).then(|| {
        format!("{share} of its {all} tools are used: all servers together may have {limit}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_server_crowds_out_another() {
        assert_eq!(fair_shares(&[2, 3], 5), [2, 3]);
        assert_eq!(fair_shares(&[7, 7], 13), [7, 6]);
        assert_eq!(fair_shares(&[1_000, 3, 2_000], 10), [3, 3, 4]);
        assert_eq!(fair_shares(&[5, 1, 1], 1), [1, 0, 0]);
        assert_eq!(fair_shares(&[], 3), [0; 0]);
    }
}
