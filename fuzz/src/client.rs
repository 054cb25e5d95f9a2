//! A client of each API with forty tools, and the modes in which these tools can be deferred.
//!
//! One of the forty tools is never deferred, so that responses can mix calls that pass through with calls that are
//! withheld from the client. The first line of an input says how to run it, as described at [`Head`].

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex};

use serde_json::{Value, json};
use toolcrib_core::policy::ActivationMode as Activation;
use toolcrib_core::{FourCharsPerToken, Settings};
use toolcrib_dialect::exchange::action::ExchangeConfig;
use toolcrib_dialect::mode::{HostedSearch, ReferenceKind};
use toolcrib_dialect::{Api, Exchange, Mode, Request, Toolset, ToolsetPlan};

use crate::driven_turn::{DrivenTurn, settings_for_mode};

/// How an input is run. For example, `2s7` means the third mode, a stream, and pieces of seven bytes.
pub struct Head {
    pub mode: Mode,
    /// A letter that says what the rest of the input contains. Each target documents the letters that it accepts.
    pub kind: u8,
    /// Number of bytes in a piece of the stream.
    pub cut: usize,
}

/// Parses the first line of an input. Returns the parsed line and the rest of the input.
pub fn head(api: Api, data: &[u8]) -> (Head, &[u8]) {
    let end = data.iter().position(|byte| *byte == b'\n').unwrap_or(data.len());
    let (line, rest) = data.split_at(end);
    let at = |at: usize| line.get(at).copied().unwrap_or(b'0');
    let modes = modes(api);
    let mode = modes[usize::from(at(0).wrapping_sub(b'0')) % modes.len()];
    let cut = usize::from(at(2).wrapping_sub(b'0')).max(1);
    (Head { mode, kind: at(1), cut }, rest.get(1..).unwrap_or_default())
}

/// Returns the modes in which tools can be deferred with this API.
pub fn modes(api: Api) -> &'static [Mode] {
    match api {
        Api::Chat | Api::Gemini => &[Mode::Bridge, Mode::Append, Mode::Reveal, Mode::Terse],
        Api::Responses => &[
            Mode::Bridge,
            Mode::Append,
            Mode::Reveal,
            Mode::Terse,
            Mode::Reference(ReferenceKind::SearchOutput),
            Mode::Reference(ReferenceKind::AdditionalTools),
            Mode::Hosted(HostedSearch::Namespaces),
        ],
        Api::Messages => &[
            Mode::Bridge,
            Mode::Append,
            Mode::Reveal,
            Mode::Terse,
            Mode::Reference(ReferenceKind::ToolReference),
            Mode::Hosted(HostedSearch::Regex),
            Mode::Hosted(HostedSearch::Bm25),
        ],
    }
}

/// Returns the path and query of a request.
pub fn target(api: Api, stream: bool) -> &'static str {
    match api {
        Api::Chat => "/v1/chat/completions",
        Api::Responses => "/v1/responses",
        Api::Messages => "/v1/messages",
        Api::Gemini if stream => "/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse",
        Api::Gemini => "/v1beta/models/gemini-2.5-flash:generateContent",
    }
}

/// Returns the key of the conversation history in a request.
pub fn history_key(api: Api) -> &'static str {
    match api {
        Api::Chat | Api::Messages => "messages",
        Api::Responses => "input",
        Api::Gemini => "contents",
    }
}

/// Returns the value of `tools`: forty tools of a fictional company, in the format of the API.
pub fn tools(api: Api) -> &'static str {
    static TOOLS: LazyLock<HashMap<Api, String>> =
        LazyLock::new(|| Api::ALL.into_iter().map(|api| (api, forty(api).to_string())).collect());
    &TOOLS[&api]
}

fn forty(api: Api) -> Value {
    let jobs = ["list", "create", "delete", "archive", "export"];
    let things =
        ["invoice", "order", "parcel", "meeting", "contract", "ticket", "report", "budget"];
    let mut all = vec![
        ("crm__find_customer".to_owned(), "Finds a customer of ours by name.".to_owned(), "q"),
        ("crm__update_customer".to_owned(), "Changes what we know of one.".to_owned(), "id"),
    ];
    let pairs = things.iter().flat_map(|thing| jobs.iter().map(move |job| (*job, *thing)));
    all.extend(pairs.take(38).map(|(job, thing)| {
        let about =
            format!("Lets you {job} one {thing} of the office, with all that belongs to it.");
        (format!("office__{job}_{thing}"), about, "key")
    }));
    let written = all.into_iter().map(|(name, about, key)| {
        let schema = json!({"type": "object", "properties": {
            key: {"type": "string", "description": format!("Which one, by its {key}.")},
            "reason": {"type": "string", "description": "Why, for the protocol of the office."},
            "quiet": {"type": "boolean", "description": "Whether nobody is to be told of it."}
        }, "required": [key]});
        match api {
            Api::Chat => json!({"type": "function",
                "function": {"name": name, "description": about, "parameters": schema}}),
            Api::Responses => json!({"type": "function", "name": name, "description": about,
                "parameters": schema}),
            Api::Messages => json!({"name": name, "description": about, "input_schema": schema}),
            Api::Gemini => json!({"name": name, "description": about,
                "parametersJsonSchema": schema}),
        }
    });
    match api {
        Api::Gemini => json!([{"functionDeclarations": written.collect::<Value>()}]),
        _ => written.collect(),
    }
}

/// Returns the body of a request with one question and the forty tools.
pub fn body(api: Api, stream: bool) -> String {
    let (key, tools) = (history_key(api), tools(api));
    let history = match api {
        Api::Gemini => r#"[{"role":"user","parts":[{"text":"Who is Ada?"}]}]"#,
        _ => r#"[{"role":"user","content":"Who is Ada?"}]"#,
    };
    format!(r#"{{"model":"m","{key}":{history},"tools":{tools},"stream":{stream}}}"#)
}

/// Starts the exchange for the request with the forty tools.
pub(crate) fn turn(api: Api, mode: Mode, stream: bool) -> DrivenTurn {
    static READ: LazyLock<HashMap<(Api, bool), Request>> = LazyLock::new(|| {
        let pairs = Api::ALL.into_iter().flat_map(|api| [(api, false), (api, true)]);
        let read = |(api, stream): (Api, bool)| {
            let body = body(api, stream).into_bytes();
            let request = Request::read(api, target(api, stream), body);
            ((api, stream), request.unwrap_or_else(|unread| panic!("{}", unread.reason)))
        };
        pairs.map(read).collect()
    });
    let turn = begin(READ[&(api, stream)].clone(), target(api, stream), mode, None);
    assert_eq!(turn.report().mode, mode.name(), "{}", turn.report());
    turn
}

/// Starts an exchange for a request. Whenever the exchange looks up a record, it gets `kept`.
pub(crate) fn begin(
    request: Request,
    target: &str,
    mode: Mode,
    kept: Option<Vec<u8>>,
) -> DrivenTurn {
    static SETTINGS: LazyLock<Arc<Settings>> = LazyLock::new(|| {
        let mut settings = Settings::default();
        settings.rules = settings.rules.never_defer(["crm__update_customer"]);
        // Defer tools even if there are only a few.
        settings.activation.mode = Activation::On;
        Arc::new(settings)
    });
    let (requested, native) = settings_for_mode(mode);
    let mut setup = ExchangeConfig::new("localhost", Arc::new(FourCharsPerToken));
    setup.settings = Arc::clone(&SETTINGS);
    (setup.requested, setup.upstream.overrides, setup.caller) =
        (requested.into(), Some(native), [7; 32]);
    let exchange = Exchange::new(request.api, target, Ok(request), setup);
    DrivenTurn::new(exchange, Box::new(move |_, _| kept.clone()), toolset)
}

fn toolset(plan: ToolsetPlan, input: &str) -> Arc<Toolset> {
    /// The toolsets built so far. They are cached, because indexing forty tools takes longer than the rest of a run.
    static KNOWN: LazyLock<Mutex<HashMap<(Api, Mode), Arc<Toolset>>>> =
        LazyLock::new(Mutex::default);
    let key = (plan.api, plan.mode);
    let usual = input == tools(plan.api)
        && plan.send_in_full.is_empty()
        && !plan.counts_tokens
        && !plan.has_deferred_before
        && !plan.uses_second_names;
    let mut known = KNOWN.lock().expect("one thread");
    if let Some(toolset) = known.get(&key).filter(|_| usual) {
        return Arc::clone(toolset);
    }
    let toolset = Arc::new(Toolset::new(plan, input));
    if usual {
        assert!(!toolset.passes_through(), "{}", toolset.deferral_reason());
        known.insert(key, Arc::clone(&toolset));
    }
    toolset
}
