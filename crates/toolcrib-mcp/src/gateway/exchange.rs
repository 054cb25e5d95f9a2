//! One request, carried between one client and one server.
//!
//! The answer passes as it came. On the way, progress goes to the client, cancelling goes to the server,
//! and what the server needs to ask goes to the client in whichever way that client's era has for it:
//!
//! | server | client | how it is asked |
//! |---|---|---|
//! | older | older | the question is passed on, and its answer back |
//! | newer | newer | `input_required` and the retry pass as they are |
//! | newer | older | we ask, and retry with the answers |
//! | older | newer | we answer `input_required` and keep the call; the retry brings the answer |

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use rmcp::model::ErrorData;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::client::{Client, HeldBody};
use super::question;
use super::what::{Inputs, What};
use crate::metrics;
use crate::upstream::{
    Asked, Caller, Failed, Leave, Listed, Pending, QUESTIONS, Said, Step, Unavailable, Upstream,
};

/// Rounds of questions in one request.
const ROUNDS: usize = 8;
/// How many times its limit a call may take that shows progress.
const LONGEST: u32 = 30;
/// How long a client may take to be told of progress or of a line of a log.
const TOLD_WITHIN: Duration = Duration::from_secs(5);
/// How long a person may take to answer.
const ANSWER_WITHIN: Duration = Duration::from_mins(10);
/// The key of a question that we turned into `input_required`.
pub(super) const KEY: &str = "question";

/// Why there is no answer.
#[derive(Debug)]
pub(crate) enum NoAnswer {
    /// The server refused, and its error goes to the client.
    Refused(ErrorData),
    /// The server cannot be asked, or went away, or took too long: in words.
    Server(String),
}

/// What becomes of a request for now.
pub(crate) enum Outcome {
    /// The server's answer.
    Answer(Value),
    /// The server asks something, and this client can only be asked by way of an answer.
    Asks(Box<Question>),
}

/// A question of a server, and the call it holds up.
pub(crate) struct Question {
    pub(crate) exchange: Exchange,
    pub(crate) request: Asked,
    pub(crate) answer: oneshot::Sender<Result<Value, ErrorData>>,
}

/// A request under way.
pub(crate) struct Exchange {
    upstream: Arc<Upstream>,
    what: What,
    pending: Pending,
    said: mpsc::Receiver<Said>,
    listed: Listed,
    within: Duration,
    counted: Option<metrics::Call>,
    leave: Leave,
    /// Whether a question of its server was refused before.
    has_refused: bool,
    /// The arguments come from the request body, so the body counts for as long as the exchange lasts.
    _body: Option<HeldBody>,
}

impl Exchange {
    /// Sends a request to a server on a client's behalf.
    pub(crate) async fn begin(
        upstream: Arc<Upstream>,
        what: What,
        client: &Client,
        inputs: Inputs,
        allowed: impl Fn() -> bool,
    ) -> Result<Self, NoAnswer> {
        let unavailable = |why: Unavailable| {
            let name = &upstream.name;
            NoAnswer::Server(match why {
                Unavailable::Down(why) => format!("`{name}` is not available: {why}"),
                Unavailable::Busy(why) => why.to_string(),
            })
        };
        let within = what.within(&upstream);
        let leave = tokio::select! {
            leave = upstream.leave() => leave.map_err(unavailable)?,
            () = client.gone.cancelled() => return Err(NoAnswer::Server("cancelled".into())),
            () = tokio::time::sleep(within) => {
                let name = &upstream.name;
                let waited = within.as_secs_f64();
                return Err(NoAnswer::Server(format!("`{name}` had no time for this within {waited:.0} s")));
            }
        };
        // Servers of the older era give out no state, so it can only be one of ours, and is not there: to
        // begin again would run twice what was asked for once.
        if inputs.state.is_some() && !leave.link.is_modern() {
            let problem = "`requestState` is not known: it was used, is too old, or is another's";
            return Err(NoAnswer::Refused(ErrorData::invalid_params(problem, None)));
        }
        // A reload may have taken it out of this client's sight while it waited.
        if !allowed() {
            return Err(NoAnswer::Server(format!("`{}` is not available any more", upstream.name)));
        }
        let counted =
            matches!(what, What::Tool { .. }).then(|| upstream.metrics().call(&upstream.name));
        let (questions, said) = mpsc::channel(QUESTIONS);
        let caller = Caller { client: client.id, kin: client.kin, questions };
        let meta = client.meta_for(leave.link.is_modern());
        let mut listed = upstream.callers.list(caller);
        let pending = match leave.link.send(what.request(inputs), Some(meta)).await {
            Ok(pending) => pending,
            Err(failed) => {
                listed.over();
                return Err(no_answer(&upstream, &failed));
            }
        };
        listed.sent(pending.id().clone());
        Ok(Self {
            upstream,
            what,
            pending,
            said,
            listed,
            within,
            counted,
            leave,
            has_refused: false,
            _body: client.body.clone(),
        })
    }

    /// It waits for its client now: others may have its place among all calls.
    pub(super) fn rest(&mut self) {
        self.leave.rest();
    }

    /// How many calls of its server may wait for their clients: half of those that may be under way.
    pub(super) fn room(&self) -> usize {
        (self.upstream.at_once() / 2).max(1)
    }

    /// The server it is with.
    pub(super) fn server(&self) -> &str {
        &self.upstream.name
    }

    /// Whether it is this request, made earlier.
    pub(crate) fn is_of(&self, upstream: &Upstream, what: &What) -> bool {
        self.upstream.name == upstream.name && self.what.is_like(what)
    }

    /// Carries it on until there is an answer, or a question that can only be put as one.
    pub(crate) async fn carry(mut self, client: &Client) -> Result<Outcome, NoAnswer> {
        let mut rounds = 0;
        let mut open = tokio::task::JoinSet::new();
        let mut deadline = Instant::now() + self.within;
        let mut last = Instant::now() + self.within * LONGEST;
        let mut asked = Instant::now();
        let mut telling = Telling::default();
        loop {
            let step = tokio::select! {
                biased;
                () = client.gone.cancelled() => {
                    self.count(metrics::Outcome::Cancelled);
                    return Err(NoAnswer::Server("cancelled".into()));
                }
                () = tokio::time::sleep_until(deadline) => {
                    self.count(metrics::Outcome::Timeout);
                    let failed = Failed::Timeout(self.within.as_secs_f64());
                    return Err(no_answer(&self.upstream, &failed));
                }
                Some(said) = self.said.recv() => match said {
                    Said::Log(mut line, charge) => {
                        question::present_log(self.server(), &mut line);
                        let client = client.clone();
                        telling.tell(async move { client.log(line).await }, charge).await;
                        continue;
                    }
                    Said::Question(mut request, answer) => {
                        let limits = self.upstream.limits();
                        let (method, params) = (&request.method, request.params.as_mut());
                        if let Err(why) = question::present(self.server(), method, params, limits) {
                            self.log_refused(&why);
                            let _ = answer.send(Err(not_shown(&why)));
                            continue;
                        }
                        if self.asks_with_answer(client, &request) {
                            let question = Question { exchange: self, request, answer };
                            return Ok(Outcome::Asks(Box::new(question)));
                        }
                        let client = client.clone();
                        open.spawn(async move { client.answer(request, answer).await });
                        // The clock stands while a person thinks.
                        if open.len() == 1 {
                            asked = Instant::now();
                        }
                        deadline = Instant::now() + ANSWER_WITHIN;
                        continue;
                    }
                },
                Some(_) = open.join_next() => {
                    if open.is_empty() {
                        last += asked.elapsed();
                        deadline = Instant::now() + self.within;
                    }
                    continue;
                }
                step = self.pending.next() => step,
            };
            let mut answer = match step {
                Step::Progress((params, charge)) => {
                    // A server that shows that it works has not gone silent.
                    if open.is_empty() {
                        deadline = deadline.max(Instant::now() + self.within).min(last);
                    }
                    let client = client.clone();
                    telling.tell(async move { client.progress(params).await }, charge).await;
                    continue;
                }
                Step::Over(Ok(answer)) => {
                    self.listed.over();
                    answer
                }
                Step::Over(Err(failed)) => {
                    self.listed.over();
                    self.count(metrics::Outcome::Error);
                    return Err(no_answer(&self.upstream, &failed));
                }
            };
            if asks(&answer)
                && let Err(why) =
                    question::present_all(self.server(), &mut answer, self.upstream.limits())
            {
                self.count(metrics::Outcome::Error);
                self.log_refused(&why);
                return Err(NoAnswer::Refused(not_shown(&why)));
            }
            if client.modern || !asks(&answer) {
                let failed = answer.get("isError") == Some(&Value::Bool(true));
                self.count(if failed { metrics::Outcome::ToolError } else { metrics::Outcome::Ok });
                return Ok(Outcome::Answer(answer));
            }
            rounds += 1;
            if rounds > ROUNDS {
                self.count(metrics::Outcome::Error);
                return Err(NoAnswer::Server(format!(
                    "`{}` asks for input again and again",
                    self.upstream.name
                )));
            }
            self.again(client, &answer).await?;
            deadline = Instant::now() + self.within;
        }
    }

    /// Whether a client is asked by way of an answer to its request.
    fn asks_with_answer(&self, client: &Client, request: &Asked) -> bool {
        client.modern && self.what.can_be_repeated() && client.can_answer(request)
    }

    /// Asks a client of the older era what a server of the newer one needs, and asks the server again.
    async fn again(&mut self, client: &Client, answer: &Value) -> Result<(), NoAnswer> {
        let asked = client.ask_all(&answer["inputRequests"]);
        let responses = tokio::select! {
            responses = asked => responses.map_err(NoAnswer::Refused)?,
            () = client.gone.cancelled() => return Err(NoAnswer::Server("cancelled".into())),
            () = tokio::time::sleep(ANSWER_WITHIN) => {
                return Err(NoAnswer::Server("nobody answered what the server asked".into()));
            }
        };
        let state = answer.get("requestState").and_then(Value::as_str).map(str::to_owned);
        let inputs = Inputs { responses: Some(responses), state };
        let meta = client.meta_for(self.leave.link.is_modern());
        let sent = self.leave.link.send(self.what.request(inputs), Some(meta)).await;
        self.pending = sent.map_err(|failed| no_answer(&self.upstream, &failed))?;
        self.listed.sent(self.pending.id().clone());
        Ok(())
    }

    /// Logs a question that was refused. One warning for each exchange: a server may ask without end.
    fn log_refused(&mut self, why: &question::Unfit) {
        if std::mem::replace(&mut self.has_refused, true) {
            tracing::debug!(server = self.server(), "question refused: {why}");
        } else {
            self.upstream.warn(format_args!("question refused: {why}"));
        }
    }

    fn count(&mut self, outcome: metrics::Outcome) {
        if let Some(counted) = self.counted.take() {
            counted.end(outcome);
        }
    }
}

/// Sends a client its progress and log messages. A client that does not read them delays nobody: at most one message
/// waits, and later ones are dropped until it is written.
#[derive(Default)]
struct Telling(Option<BoxFuture<'static, ()>>);

impl Telling {
    /// Tells it something, and keeps the memory that it takes charged until it is written.
    async fn tell(
        &mut self,
        telling: impl Future<Output = ()> + Send + 'static,
        charge: crate::upstream::Charge,
    ) {
        if self.0.as_mut().is_some_and(|last| last.now_or_never().is_none()) {
            return;
        }
        let mut telling = Box::pin(async move {
            telling.await;
            drop(charge);
        });
        let written = tokio::time::timeout(TOLD_WITHIN, &mut telling).await;
        self.0 = if written.is_ok() { None } else { Some(telling) };
    }
}

/// Whether an answer is a question.
fn asks(answer: &Value) -> bool {
    answer.get("resultType").and_then(Value::as_str) == Some("input_required")
}

/// The error for a server whose question was not put to the client.
fn not_shown(why: &question::Unfit) -> ErrorData {
    ErrorData::invalid_params(format!("the question was not passed on: {why}"), None)
}

/// A question, as a client of the newer era is asked.
pub(super) fn input_required(request: &Asked, state: &str) -> Value {
    json!({
        "resultType": "input_required",
        "inputRequests": { KEY: request },
        "requestState": state,
    })
}

fn no_answer(upstream: &Upstream, failed: &Failed) -> NoAnswer {
    let name = &upstream.name;
    match failed {
        Failed::Refused(error) => {
            let shown = question::present_error(name, error.clone(), upstream.limits());
            NoAnswer::Refused(shown.unwrap_or_else(|why| not_shown(&why)))
        }
        Failed::Closed(why) => {
            upstream.suspect();
            NoAnswer::Server(format!(
                "`{name}` went away before it answered ({why}); whether it did what was asked is not known"
            ))
        }
        Failed::Timeout(_) => {
            upstream.suspect();
            NoAnswer::Server(format!("`{name}` gave {failed}; it was told to stop"))
        }
        Failed::Cancelled | Failed::Odd(_) => NoAnswer::Server(format!("`{name}`: {failed}")),
    }
}
