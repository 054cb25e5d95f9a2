//! Finds configured modes that some API does not support, and says which mode is used instead. The log and `doctor`
//! show these notices. Features that an upstream rejects at run time are handled in `toolcrib-dialect`.

use toolcrib_core::disclosure::DisclosureSetting;
use toolcrib_core::{Settings, policy};
use toolcrib_dialect::Api;
use toolcrib_dialect::capability::{CapabilityReason, LearnedUnsupported, resolve_capability};
use toolcrib_dialect::mode::{ModeReason, RequestedMode, choose_mode};

use crate::config::{ProxyConfig, RouteConfig};

/// Returns one sentence for each configured mode that is replaced by another mode.
pub fn unsupported_mode_notices(config: &ProxyConfig, settings: &Settings) -> Vec<String> {
    if settings.activation.mode == policy::ActivationMode::Off {
        return Vec::new();
    }
    let default_mode = config.mode.unwrap_or_else(|| settings.disclosure.into());
    let key = if config.mode.is_some() { "proxy.mode" } else { "disclosure" };
    let mut notices: Vec<String> =
        notice_for(key, default_mode, None, settings).into_iter().collect();
    for route in &config.routes {
        let (key, requested) = match route.mode {
            Some(mode) => ("proxy.routes.mode", mode),
            None => (key, default_mode),
        };
        // A route without its own mode needs a notice only if it changes which modes are supported.
        if route.mode.is_some() || route.speaks.is_some() {
            notices.extend(notice_for(key, requested, Some(route), settings));
        }
    }
    notices
}

/// Returns a notice if a mode is not supported in the APIs that a route serves, or in all APIs if `route` is `None`.
fn notice_for(
    key: &str,
    requested: RequestedMode,
    route: Option<&RouteConfig>,
    settings: &Settings,
) -> Option<String> {
    let RequestedMode::Defer(setting @ (DisclosureSetting::Reference | DisclosureSetting::Hosted)) =
        requested
    else {
        return None;
    };
    let models = route.map(|route| route.models.join("`, `"));
    let place = models.map(|models| format!(" (route for `{models}`)")).unwrap_or_default();
    let configured = format!("`{key} = \"{}\"`{place}", setting.name());
    let decided = |api: Api| {
        let upstream = route.and_then(|route| route.speaks).unwrap_or(api);
        let capability =
            resolve_capability(upstream, "", "", None, &LearnedUnsupported::default(), 0);
        choose_mode(api, requested, &capability, settings.fallback, None)
    };
    if setting == DisclosureSetting::Reference && !settings.reveals {
        let (mode, _) = decided(Api::Chat)?;
        return Some(format!(
            "the LLM proxy cannot use {configured} with `reveals = false`, because a reference loads the tool; it uses `{mode}` instead"
        ));
    }
    let served = |api: &Api| route.and_then(|route| route.api).is_none_or(|only| only == *api);
    let mut instead = None;
    let mut apis: Vec<&str> = Vec::new();
    for api in Api::ALL.into_iter().filter(served) {
        if let Some((mode, ModeReason::NativeUnavailable(CapabilityReason::Api))) = decided(api) {
            instead = Some(mode);
            apis.push(api.name());
        }
    }
    let (mode, apis) = (instead?, apis.join("` and `"));
    let speaks = route.and_then(|route| route.speaks);
    let api =
        speaks.map_or("the API".into(), |api| format!("the upstream's API, `{}`,", api.name()));
    Some(format!(
        "the LLM proxy cannot use {configured} for clients of `{apis}`, because {api} has no such feature; it uses `{mode}` instead"
    ))
}
