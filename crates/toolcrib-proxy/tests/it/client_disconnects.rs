//! Clients that disconnect: the proxy cancels their requests to the upstream.

use toolcrib_testkit::provider::{Action, CannedResponse, Options, Step, StreamFault};

use crate::client_requests::{ClientCase, GOAL, cases, streams, tools};
use crate::setup::{TestSetup, begin, more};

/// Returns the requests of a client that disconnects: one with tools that are deferred, and one without tools.
fn asks(case: ClientCase) -> [serde_json::Value; 2] {
    [case.ask(GOAL, &tools(60)), case.ask("Hi", &[])]
}

#[tokio::test]
async fn a_client_that_disconnects_before_the_first_byte_cancels_the_request() {
    for case in cases() {
        for body in asks(case) {
            let setup = TestSetup::new(Options::responses([CannedResponse::Faulty(
                StreamFault::StallFirst,
            )]))
            .await;
            let request = tokio::spawn(setup.post(case, &body).send());
            setup.wait_for_requests(1).await;
            assert_eq!(setup.provider.open_responses(), 1);
            request.abort();
            setup.wait_until_upstream_idle(&format!("{case:?}")).await;
        }
    }
}

#[tokio::test]
async fn a_client_that_disconnects_during_a_stream_cancels_the_request() {
    for case in streams() {
        for body in asks(case) {
            let text = "Some text that is long enough to be told in a number of events.";
            let mut options = Options::steps([Step::new([Action::text(text)])]);
            options.responses = vec![CannedResponse::Faulty(StreamFault::StallAfter(4))];
            let setup = TestSetup::new(options).await;
            let mut answer = begin(setup.post(case, &body)).await;
            more(&mut answer).await;
            assert_eq!(setup.provider.open_responses(), 1);
            drop(answer);
            setup.wait_until_upstream_idle(&format!("{case:?}")).await;
        }
    }
}

#[tokio::test]
async fn a_client_that_disconnects_during_a_hidden_round_cancels_the_request() {
    for case in cases() {
        for fault in [StreamFault::StallFirst, StreamFault::StallAfter(1)] {
            let setup = TestSetup::new(Options::responses([
                CannedResponse::Scripted,
                CannedResponse::Faulty(fault),
            ]))
            .await;
            let request = setup.post(case, &case.ask(GOAL, &tools(60)));
            let reading = tokio::spawn(async move {
                let answer = request.send().await.unwrap();
                answer.bytes().await
            });
            setup.wait_for_requests(2).await;
            assert_eq!(setup.provider.open_responses(), 1);
            reading.abort();
            setup.wait_until_upstream_idle(&format!("{case:?} {fault:?}")).await;
            assert_eq!(setup.provider.requests().len(), 2, "no further request is sent");
        }
    }
}
