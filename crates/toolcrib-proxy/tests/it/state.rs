//! What outlives a request, and what becomes of a conversation when it does not.

use serde_json::{Value, json};
use toolcrib_proxy::Secret;
use toolcrib_testkit::provider::Options;
use toolcrib_testkit::redis::Server;

use crate::dialects::{Case, GOAL, cases, tools};
use crate::support::{PATIENCE, Stage};

/// A conversation, as its client keeps it.
struct Talk {
    case: Case,
    history: Vec<Value>,
}

impl Talk {
    fn new(case: Case) -> Self {
        Self { case, history: Vec::new() }
    }

    /// A goal, the call, its result, and what is said of it.
    async fn goal(&mut self, stage: &Stage) {
        self.history.push(self.case.user(GOAL));
        let seen = stage.see(self.case, &self.case.body(&self.history, &tools(60))).await;
        assert_eq!(seen.called(), [("crm__find_customer", &json!({"q": "Ada"}))]);
        self.history.extend(seen.entries.clone());
        self.history.push(self.case.result(&seen.calls[0], "Ada Lovelace"));
        let seen = stage.see(self.case, &self.case.body(&self.history, &tools(60))).await;
        assert_eq!(seen.text, "Done: Ada Lovelace", "{:?}", self.case);
        self.history.extend(seen.entries);
    }
}

/// Whether each body begins with the history of the one before.
fn extends(case: Case, bodies: &[Value]) -> bool {
    let histories: Vec<Vec<Value>> = bodies.iter().map(|body| case.history(body)).collect();
    histories.windows(2).all(|pair| pair[1].starts_with(&pair[0]))
}

#[tokio::test]
async fn hidden_rounds_are_there_again_in_the_next_request() {
    for case in cases() {
        let stage = Stage::new(Options::default()).await;
        let mut talk = Talk::new(case);
        talk.goal(&stage).await;
        talk.goal(&stage).await;
        assert!(extends(case, &stage.bodies()), "{case:?}: {:#?}", stage.bodies());
        let tools: Vec<Value> = stage.bodies().iter().map(|body| body["tools"].clone()).collect();
        assert!(tools.windows(2).all(|pair| pair[0] == pair[1]), "{case:?}");
    }
}

#[tokio::test]
async fn a_redis_that_is_killed_ends_no_conversation() {
    for case in cases() {
        let redis = Server::start();
        let url = redis.url();
        let stage = Stage::with(Options::default(), |config| {
            config.state.redis = Some(Secret::from(url));
        })
        .await;
        let mut talk = Talk::new(case);
        talk.goal(&stage).await;
        assert!(extends(case, &stage.bodies()), "{case:?}");
        assert_ne!(redis.ask(&["DBSIZE"]), "0");
        drop(redis);
        talk.goal(&stage).await;
        talk.goal(&stage).await;
        let lost = lost(&stage);
        assert!(lost > 0, "{case:?}");
    }
}

#[tokio::test]
async fn a_redis_that_does_not_answer_holds_nobody_up() {
    let case = cases().next().unwrap();
    let redis = Server::start();
    let url = redis.url();
    let stage =
        Stage::with(Options::default(), |config| config.state.redis = Some(Secret::from(url)))
            .await;
    let mut talk = Talk::new(case);
    talk.goal(&stage).await;
    redis.freeze();
    // A Redis that is waited for would take for ever.
    let went = tokio::time::timeout(PATIENCE, talk.goal(&stage)).await;
    redis.thaw();
    assert!(went.is_ok());
    assert!(lost(&stage) > 0);
    talk.goal(&stage).await;
}

fn lost(stage: &Stage) -> u64 {
    let metrics = stage.metrics();
    let line = metrics.lines().find(|line| line.starts_with("toolcrib_proxy_state_lost_total"));
    line.unwrap().rsplit(' ').next().unwrap().parse().unwrap()
}
