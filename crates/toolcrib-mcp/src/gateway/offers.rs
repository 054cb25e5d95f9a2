//! Prompts, resources and completions: aggregated, and passed on to the server whose they are.

use std::sync::Arc;

use rmcp::model::{
    CompleteRequestParams, ErrorData, GetPromptRequestParams, ReadResourceRequestParams, Reference,
};
use serde_json::{Value, json};

use super::client::Client;
use super::result;
use super::what::{Inputs, What};
use super::{Gateway, Sight};
use crate::shelf::{Owner, own_address};
use crate::upstream::Upstream;

/// A resource, as its server knows it.
pub(super) struct Located {
    pub(super) upstream: Arc<Upstream>,
    pub(super) uri: String,
}

impl Gateway {
    /// Answers `prompts/list`.
    pub(super) fn list_prompts(&self, profile: Option<&str>) -> Result<Value, ErrorData> {
        let Sight { shelf, view } = self.sight(profile)?;
        Ok(json!({"prompts": shelf.prompts.list(|server| view.knows(server))}))
    }

    /// Answers `resources/list`.
    pub(super) fn list_resources(&self, profile: Option<&str>) -> Result<Value, ErrorData> {
        let Sight { shelf, view } = self.sight(profile)?;
        Ok(json!({"resources": shelf.resources.list(|server| view.knows(server))}))
    }

    /// Answers `resources/templates/list`.
    pub(super) fn list_templates(&self, profile: Option<&str>) -> Result<Value, ErrorData> {
        let Sight { shelf, view } = self.sight(profile)?;
        Ok(json!({"resourceTemplates": shelf.templates.list(|server| view.knows(server))}))
    }

    /// Answers `prompts/get`.
    pub(super) async fn get_prompt(
        &self,
        params: GetPromptRequestParams,
        client: &Client,
        profile: Option<&str>,
    ) -> Result<Value, ErrorData> {
        let sight = self.sight(profile)?;
        let missing =
            || ErrorData::invalid_params(format!("there is no prompt `{}`", params.name), None);
        let offer = sight
            .shelf
            .prompts
            .find(&params.name, |server| sight.view.knows(server))
            .ok_or_else(missing)?;
        let upstream = self.upstream(&sight, &offer.server).ok_or_else(missing)?;
        let what = What::Prompt { name: offer.own.clone(), arguments: params.arguments };
        let inputs = Inputs { responses: params.input_responses, state: params.request_state };
        let answer = self.exchange(upstream, what, client, inputs, profile).await;
        answer.map_err(|why| result::error(why, client.modern))
    }

    /// Answers `resources/read`. What comes back names the resource as the client did.
    pub(super) async fn read_resource(
        &self,
        params: ReadResourceRequestParams,
        client: &Client,
        profile: Option<&str>,
    ) -> Result<Value, ErrorData> {
        let sight = self.sight(profile)?;
        let located = self
            .locate(&sight, &params.uri)
            .map_err(|error| result::in_era(error, client.modern))?;
        let Located { upstream, uri } = located;
        let what = What::Resource { uri: uri.clone() };
        let inputs = Inputs { responses: params.input_responses, state: params.request_state };
        let answer = self.exchange(upstream, what, client, inputs, profile).await;
        let mut answer = answer.map_err(|why| result::error(why, client.modern))?;
        if uri != params.uri {
            rename(&mut answer, &uri, &params.uri);
        }
        Ok(answer)
    }

    /// The server that a resource is on: by the address clients use, else by its own address.
    pub(super) fn locate(&self, sight: &Sight, uri: &str) -> Result<Located, ErrorData> {
        let shelf = &sight.shelf;
        let knows = |server: &str| sight.view.knows(server);
        let located = |server: &str, own: &str| {
            let upstream = self.upstream(sight, server).ok_or_else(|| result::no_resource(uri))?;
            Ok(Located { upstream, uri: own.to_owned() })
        };
        if let Some(offer) = shelf.resources.named(uri, knows) {
            return located(&offer.server, &offer.own);
        }
        let own = |upstream: &Upstream| {
            let prefix =
                upstream.config().prefix.clone().unwrap_or_else(|| upstream.name.to_string());
            own_address(&prefix, uri).map(str::to_owned)
        };
        for upstream in self.hub().all().iter().filter(|upstream| knows(&upstream.name)) {
            if let Some(own) = own(upstream) {
                return located(&upstream.name, &own);
            }
        }
        match shelf.owner(uri, knows) {
            Owner::One(server) => located(&server, uri),
            Owner::Several(servers) => Err(result::several_resources(uri, &servers)),
            Owner::Nobody => Err(result::no_resource(uri)),
        }
    }

    /// Answers `completion/complete`.
    pub(super) async fn complete(
        &self,
        mut params: CompleteRequestParams,
        client: &Client,
        profile: Option<&str>,
    ) -> Result<Value, ErrorData> {
        let sight = self.sight(profile)?;
        let knows = |server: &str| sight.view.knows(server);
        let missing =
            || ErrorData::invalid_params("there is nothing of that name to complete", None);
        let offer = match &params.r#ref {
            Reference::Prompt(prompt) => sight.shelf.prompts.find(&prompt.name, knows),
            Reference::Resource(resource) => sight.shelf.templates.find(&resource.uri, knows),
            _ => None,
        };
        let offer = offer.ok_or_else(missing)?;
        match &mut params.r#ref {
            Reference::Prompt(prompt) => prompt.name.clone_from(&offer.own),
            Reference::Resource(resource) => resource.uri.clone_from(&offer.own),
            _ => {}
        }
        let upstream = self.upstream(&sight, &offer.server).ok_or_else(missing)?;
        params.meta = None;
        let what = What::Completion(Arc::new(params));
        let answer = self.exchange(upstream, what, client, Inputs::default(), profile).await;
        answer.map_err(|why| result::error(why, client.modern))
    }
}

/// Calls a resource by the name the client knows it by.
fn rename(answer: &mut Value, own: &str, known_as: &str) {
    let contents = answer.get_mut("contents").and_then(Value::as_array_mut);
    for part in contents.into_iter().flatten() {
        if part.get("uri").and_then(Value::as_str) == Some(own) {
            part["uri"] = known_as.into();
        }
    }
}
