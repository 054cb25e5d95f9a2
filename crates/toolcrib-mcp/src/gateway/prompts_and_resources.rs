//! Prompts, resources and completions. Lists contain the entries of all servers, and other requests are forwarded to
//! the server that has the prompt or resource.

use std::collections::BTreeSet;
use std::sync::Arc;

use rmcp::model::{
    CompleteRequestParams, ErrorData, GetPromptRequestParams, ReadResourceRequestParams, Reference,
};
use serde_json::{Value, json};
use toolcrib_core::is_app_uri;

use super::client::Client;
use super::forward_error::adapt_error;
use super::operation::{Operation, RetryInputs};
use super::protocol_result;
use super::{Gateway, Viewer, VisibleSnapshot};
use crate::snapshot::{ResourceOwner, strip_uri_prefix};
use crate::unshared_servers::{IdentifiedClient, TooManyUnsharedServers};
use crate::upstream::Upstream;

/// The server that has a resource, and the resource's URI on that server.
pub(super) struct ResourceLocation {
    pub(super) upstream: Arc<Upstream>,
    pub(super) uri: String,
}

impl Gateway {
    /// Answers `prompts/list`.
    pub(super) fn list_prompts(&self, viewer: Viewer<'_>) -> Result<Value, ErrorData> {
        let VisibleSnapshot { snapshot, view } = self.visible_in_session(viewer)?;
        Ok(json!({"prompts": snapshot.prompts.list(|server| view.can_see_server(server))}))
    }

    /// Answers `resources/list`.
    pub(super) fn list_resources(&self, viewer: Viewer<'_>) -> Result<Value, ErrorData> {
        let VisibleSnapshot { snapshot, view } = self.visible_in_session(viewer)?;
        Ok(json!({"resources": snapshot.resources.list(|server| view.can_see_server(server))}))
    }

    /// Answers `resources/templates/list`.
    pub(super) fn list_templates(&self, viewer: Viewer<'_>) -> Result<Value, ErrorData> {
        let VisibleSnapshot { snapshot, view } = self.visible_in_session(viewer)?;
        Ok(
            json!({"resourceTemplates": snapshot.templates.list(|server| view.can_see_server(server))}),
        )
    }

    /// Answers `prompts/get`.
    pub(super) async fn get_prompt(
        &self,
        params: GetPromptRequestParams,
        client: &Client,
        profile: Option<&str>,
    ) -> Result<Value, ErrorData> {
        let visible = self.visible_in_session(client.viewer(profile))?;
        let missing =
            || ErrorData::invalid_params(format!("there is no prompt `{}`", params.name), None);
        let entry = visible
            .snapshot
            .prompts
            .find(&params.name, |server| visible.view.can_see_server(server))
            .ok_or_else(missing)?;
        let upstream = self
            .visible_upstream(&visible, &entry.server, client.identified())
            .ok_or_else(missing)?;
        let upstream = upstream.map_err(|full| unshared_servers_error(&full))?;
        let operation =
            Operation::Prompt { name: entry.own_name.clone(), arguments: params.arguments };
        let inputs = RetryInputs { responses: params.input_responses, state: params.request_state };
        let answer = self.forward(upstream, operation, client, inputs, profile).await;
        answer.map_err(|error| error.into_error_data(client.uses_newer_protocol))
    }

    /// Answers `resources/read`. The contents are returned under the URI that the client used.
    pub(super) async fn read_resource(
        &self,
        params: ReadResourceRequestParams,
        client: &Client,
        profile: Option<&str>,
    ) -> Result<Value, ErrorData> {
        let visible = self.visible_in_session(client.viewer(profile))?;
        let located = self
            .locate_resource(&visible, &params.uri, client.identified())
            .map_err(|error| adapt_error(error, client.uses_newer_protocol))?;
        let ResourceLocation { upstream, uri } = located;
        let operation = Operation::Resource { uri: uri.clone() };
        let inputs = RetryInputs { responses: params.input_responses, state: params.request_state };
        let answer = self.forward(upstream, operation, client, inputs, profile).await;
        let mut result =
            answer.map_err(|error| error.into_error_data(client.uses_newer_protocol))?;
        if uri != params.uri {
            replace_uri(&mut result, &uri, &params.uri);
        }
        Ok(result)
    }

    /// Finds the server of a resource, first by the URI that clients use, then by the server's own URI.
    pub(super) fn locate_resource(
        &self,
        visible: &VisibleSnapshot,
        uri: &str,
        client: Option<IdentifiedClient>,
    ) -> Result<ResourceLocation, ErrorData> {
        let snapshot = &visible.snapshot;
        let can_see = |server: &str| visible.view.can_see_server(server);
        let location = |server: &str, own_uri: &str| {
            let upstream = self
                .visible_upstream(visible, server, client)
                .ok_or_else(|| protocol_result::resource_not_found(uri))?;
            let upstream = upstream.map_err(|full| unshared_servers_error(&full))?;
            Ok(ResourceLocation { upstream, uri: own_uri.to_owned() })
        };
        // The address of a user interface names no server, so the claims decide, even if a server lists it.
        if !is_app_uri(uri)
            && let Some(entry) = snapshot.resources.find_by_client_name(uri, can_see)
        {
            return location(&entry.server, &entry.own_name);
        }
        let own_uri = |upstream: &Upstream| {
            let prefix =
                upstream.config().prefix.clone().unwrap_or_else(|| upstream.name.to_string());
            strip_uri_prefix(&prefix, uri).map(str::to_owned)
        };
        for upstream in self.hub().upstreams().iter().filter(|upstream| can_see(&upstream.name)) {
            if let Some(own_uri) = own_uri(upstream) {
                return location(&upstream.name, &own_uri);
            }
        }
        match snapshot.resource_owner(uri, &visible.view) {
            ResourceOwner::Server(server) => location(&server, uri),
            ResourceOwner::Ambiguous(servers) => {
                Err(protocol_result::ambiguous_resource(uri, &servers))
            }
            ResourceOwner::Unknown => Err(protocol_result::resource_not_found(uri)),
        }
    }

    /// Answers `completion/complete`.
    pub(super) async fn complete(
        &self,
        mut params: CompleteRequestParams,
        client: &Client,
        profile: Option<&str>,
    ) -> Result<Value, ErrorData> {
        let visible = self.visible_in_session(client.viewer(profile))?;
        let can_see = |server: &str| visible.view.can_see_server(server);
        let missing = || {
            ErrorData::invalid_params("there is no prompt or resource template of that name", None)
        };
        let entry = match &params.r#ref {
            Reference::Prompt(prompt) => visible.snapshot.prompts.find(&prompt.name, can_see),
            Reference::Resource(resource) => {
                let templates = &visible.snapshot.templates;
                let of_uri = templates.iter().filter(|entry| entry.own_name == resource.uri);
                let servers = of_uri.map(|entry| &entry.server).filter(|server| can_see(server));
                // Templates of user interfaces have no prefix, so several servers may have the same.
                let servers: BTreeSet<_> = servers.cloned().collect();
                if is_app_uri(&resource.uri) && servers.len() > 1 {
                    let servers: Vec<_> = servers.into_iter().collect();
                    return Err(protocol_result::ambiguous_resource(&resource.uri, &servers));
                }
                templates.find(&resource.uri, can_see)
            }
            _ => None,
        };
        let entry = entry.ok_or_else(missing)?;
        match &mut params.r#ref {
            Reference::Prompt(prompt) => prompt.name.clone_from(&entry.own_name),
            Reference::Resource(resource) => resource.uri.clone_from(&entry.own_name),
            _ => {}
        }
        let upstream = self
            .visible_upstream(&visible, &entry.server, client.identified())
            .ok_or_else(missing)?;
        let upstream = upstream.map_err(|full| unshared_servers_error(&full))?;
        params.meta = None;
        let operation = Operation::Completion(Arc::new(params));
        let answer =
            self.forward(upstream, operation, client, RetryInputs::default(), profile).await;
        answer.map_err(|error| error.into_error_data(client.uses_newer_protocol))
    }
}

/// Returns the error for a client that cannot get its own process of a server.
fn unshared_servers_error(full: &TooManyUnsharedServers) -> ErrorData {
    ErrorData::internal_error(full.to_string(), None)
}

/// Replaces the server's own URI in a result with the URI that the client used.
fn replace_uri(result: &mut Value, own_uri: &str, client_uri: &str) {
    let contents = result.get_mut("contents").and_then(Value::as_array_mut);
    for part in contents.into_iter().flatten() {
        if part.get("uri").and_then(Value::as_str) == Some(own_uri) {
            part["uri"] = client_uri.into();
        }
    }
}
