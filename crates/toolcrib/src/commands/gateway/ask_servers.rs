//! Asks every server of a config for its tools, for commands that list, search or count them.

use std::sync::Arc;

use toolcrib_core::TokenCounter;
use toolcrib_mcp::{ConfiguredTools, GatewayConfig};

use super::checkup::{start_all_eagerly, start_and_wait};
use super::{SHUTDOWN_TIMEOUT, block_on};
use crate::output::Failure;

/// Why a server has not answered.
pub(in super::super) struct UnansweredServer {
    pub(in super::super) name: String,
    pub(in super::super) reason: String,
}

/// Starts every server, waits until each has answered or failed, and stops them again. Their lists are saved. Returns
/// the tools, which are `None` if the profile, or the default profile, is not in the config, and the servers that
/// failed.
pub(in super::super) fn ask_servers(
    mut config: GatewayConfig,
    profile: Option<&str>,
    counter: Arc<dyn TokenCounter>,
) -> Result<(Option<ConfiguredTools>, Vec<UnansweredServer>), Failure> {
    start_all_eagerly(&mut config);
    block_on(async {
        let gateway = start_and_wait(config, counter).await;
        let tools = gateway.configured_tools(profile);
        let health = gateway.server_health();
        gateway.stop(SHUTDOWN_TIMEOUT).await;
        let unanswered = health.into_iter().filter_map(|server| {
            let reason = server.status.reason.unwrap_or_else(|| "it has not answered".into());
            let is_well = matches!(server.status.phase.name(), "up" | "off");
            (!is_well).then_some(UnansweredServer { name: server.name, reason })
        });
        Ok((tools, unanswered.collect()))
    })
}
