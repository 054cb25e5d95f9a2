//! Conversations whose state outlives a request, and conversations whose state is lost.

use serde_json::{Value, json};
use toolcrib_proxy::Secret;
use toolcrib_testkit::provider::Options;
use toolcrib_testkit::redis::Server;

use crate::client_requests::{ClientCase, GOAL, cases, tools};
use crate::setup::{TEST_TIMEOUT, TestSetup};

/// A conversation as its client stores it.
struct Conversation {
    case: ClientCase,
    history: Vec<Value>,
}

impl Conversation {
    fn new(case: ClientCase) -> Self {
        Self { case, history: Vec::new() }
    }

    /// Plays one turn: the user's goal, the call, its result, and the final text.
    async fn goal(&mut self, setup: &TestSetup) {
        self.history.push(self.case.user(GOAL));
        let view = setup.ask_and_read(self.case, &self.case.body(&self.history, &tools(60))).await;
        assert_eq!(view.called(), [("crm__find_customer", &json!({"q": "Ada"}))]);
        self.history.extend(view.entries.clone());
        self.history.push(self.case.result(&view.calls[0], "Ada Lovelace"));
        let view = setup.ask_and_read(self.case, &self.case.body(&self.history, &tools(60))).await;
        assert_eq!(view.text, "Done: Ada Lovelace", "{:?}", self.case);
        self.history.extend(view.entries);
    }
}

/// Whether the history of each body starts with the history of the previous body.
fn histories_extend_each_other(case: ClientCase, bodies: &[Value]) -> bool {
    let histories: Vec<Vec<Value>> = bodies.iter().map(|body| case.history(body)).collect();
    histories.windows(2).all(|pair| pair[1].starts_with(&pair[0]))
}

#[tokio::test]
async fn hidden_rounds_are_restored_in_the_next_request() {
    for case in cases() {
        let setup = TestSetup::new(Options::default()).await;
        let mut conversation = Conversation::new(case);
        conversation.goal(&setup).await;
        conversation.goal(&setup).await;
        assert!(
            histories_extend_each_other(case, &setup.bodies()),
            "{case:?}: {:#?}",
            setup.bodies()
        );
        let tools: Vec<Value> = setup.bodies().iter().map(|body| body["tools"].clone()).collect();
        assert!(tools.windows(2).all(|pair| pair[0] == pair[1]), "{case:?}");
    }
}

#[tokio::test]
async fn conversations_continue_after_redis_is_killed() {
    for case in cases() {
        let redis = Server::start();
        let url = redis.url();
        let setup = TestSetup::with(Options::default(), |config| {
            config.state.redis = Some(Secret::from(url));
        })
        .await;
        let mut conversation = Conversation::new(case);
        conversation.goal(&setup).await;
        assert!(histories_extend_each_other(case, &setup.bodies()), "{case:?}");
        assert_ne!(redis.ask(&["DBSIZE"]), "0");
        drop(redis);
        conversation.goal(&setup).await;
        conversation.goal(&setup).await;
        let lost = state_losses(&setup);
        assert!(lost > 0, "{case:?}");
    }
}

#[tokio::test]
async fn a_redis_that_does_not_respond_delays_no_request() {
    let case = cases().next().unwrap();
    let redis = Server::start();
    let url = redis.url();
    let setup =
        TestSetup::with(Options::default(), |config| config.state.redis = Some(Secret::from(url)))
            .await;
    let mut conversation = Conversation::new(case);
    conversation.goal(&setup).await;
    redis.freeze();
    // Without a timeout for the frozen Redis, the request would never end.
    let finished = tokio::time::timeout(TEST_TIMEOUT, conversation.goal(&setup)).await;
    redis.thaw();
    assert!(finished.is_ok());
    assert!(state_losses(&setup) > 0);
    conversation.goal(&setup).await;
}

fn state_losses(setup: &TestSetup) -> u64 {
    let metrics = setup.metrics();
    let line = metrics.lines().find(|line| line.starts_with("toolcrib_proxy_state_lost_total"));
    line.unwrap().rsplit(' ').next().unwrap().parse().unwrap()
}
