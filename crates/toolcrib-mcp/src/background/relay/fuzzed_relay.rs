//! A relay for the fuzzer.

use super::{ClientMessage, GatewayMessage, Relay};

/// A relay for the fuzzer, which sends it any lines in any order.
#[derive(Debug, Default)]
pub struct FuzzedRelay(Relay);

impl FuzzedRelay {
    /// Sends a line of the client. Returns what the gateway gets.
    pub fn client_line(&mut self, line: Vec<u8>) -> Option<Vec<u8>> {
        match self.0.client_message(line) {
            ClientMessage::Forward(line, _) => Some(line),
            ClientMessage::Drop => None,
        }
    }

    /// Sends a line of the gateway. Returns what the client gets.
    pub fn gateway_line(&mut self, line: String) -> Option<String> {
        match self.0.gateway_message(line) {
            GatewayMessage::Forward(line) => Some(line),
            GatewayMessage::Drop => None,
        }
    }

    /// Ends the gateway. Returns what the client and the next gateway get.
    pub fn lose_gateway(&mut self) -> (Vec<String>, Vec<String>) {
        (self.0.gateway_lost(), self.0.lines_for_next_gateway())
    }
}
