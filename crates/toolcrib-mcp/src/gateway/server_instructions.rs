//! The servers' own instructions in the replies to searches and descriptions.
//!
//! Clients without a gateway show a server's instructions to the model in every conversation. Here the model gets them
//! together with the first tool of that server that it finds, so servers that it does not use cost nothing. They are
//! data from that server: the reply quotes them under the server's name, cleaned and cut. They are never part of the
//! gateway's own instructions.

use toolcrib_core::Reply;
use toolcrib_core::reply::{ReplyFormat, ServerDetails};
use toolcrib_text::shorten;

use super::Gateway;
use super::client::Client;
use crate::upstream::ServerLists;

/// Maximum number of servers whose instructions are in one reply, which is the default number of hits. The
/// instructions of further servers are in a later reply.
const MAX_SERVERS: usize = 5;

impl Gateway {
    /// Adds the instructions of the servers of a reply's hits. A client with a session gets the instructions of each
    /// server once. A client without a session gets them with every reply, because the gateway cannot know what its
    /// model has seen.
    pub(super) fn add_instructions(&self, reply: &mut Reply, client: &Client) {
        let max = self.hub().config().gateway.server_instructions_chars;
        // The formats of other systems have no place for instructions.
        if reply.format != ReplyFormat::Json || max == 0 {
            return;
        }
        for server in reply.hits.iter().filter_map(|hit| hit.server.as_deref()) {
            if reply.servers.len() == MAX_SERVERS {
                return;
            }
            if reply.servers.contains_key(server) {
                continue;
            }
            let lists = self.hub().upstream(server).and_then(|upstream| upstream.lists());
            let Some(text) = lists.as_deref().and_then(ServerLists::instructions) else { continue };
            let text = shorten(text, max).into_owned();
            if client.shown_instructions.as_ref().is_none_or(|shown| shown.record(server, &text)) {
                reply.servers.insert(server.to_owned(), ServerDetails::new(text));
            }
        }
    }
}
