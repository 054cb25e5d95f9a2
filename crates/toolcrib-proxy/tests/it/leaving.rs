//! Clients that go away: whatever was asked for them is given up.

use toolcrib_testkit::provider::{Action, CannedResponse, Options, Step, StreamFault};

use crate::dialects::{Case, GOAL, cases, streams, tools};
use crate::support::{Stage, begin, more};

/// What a client asks when it leaves: with tools that are deferred, and without any.
fn asks(case: Case) -> [serde_json::Value; 2] {
    [case.ask(GOAL, &tools(60)), case.ask("Hi", &[])]
}

#[tokio::test]
async fn before_the_first_byte() {
    for case in cases() {
        for body in asks(case) {
            let stage =
                Stage::new(Options::responses([CannedResponse::Faulty(StreamFault::StallFirst)]))
                    .await;
            let request = tokio::spawn(stage.post(case, &body).send());
            stage.reached(1).await;
            assert_eq!(stage.provider.open_responses(), 1);
            request.abort();
            stage.left(&format!("{case:?}")).await;
        }
    }
}

#[tokio::test]
async fn in_the_midst_of_a_stream() {
    for case in streams() {
        for body in asks(case) {
            let text = "Some text that is long enough to be told in a number of events.";
            let mut options = Options::steps([Step::new([Action::text(text)])]);
            options.responses = vec![CannedResponse::Faulty(StreamFault::StallAfter(4))];
            let stage = Stage::new(options).await;
            let mut answer = begin(stage.post(case, &body)).await;
            more(&mut answer).await;
            assert_eq!(stage.provider.open_responses(), 1);
            drop(answer);
            stage.left(&format!("{case:?}")).await;
        }
    }
}

#[tokio::test]
async fn in_a_hidden_round() {
    for case in cases() {
        for fault in [StreamFault::StallFirst, StreamFault::StallAfter(1)] {
            let stage = Stage::new(Options::responses([
                CannedResponse::Scripted,
                CannedResponse::Faulty(fault),
            ]))
            .await;
            let request = stage.post(case, &case.ask(GOAL, &tools(60)));
            let reading = tokio::spawn(async move {
                let answer = request.send().await.unwrap();
                answer.bytes().await
            });
            stage.reached(2).await;
            assert_eq!(stage.provider.open_responses(), 1);
            reading.abort();
            stage.left(&format!("{case:?} {fault:?}")).await;
            assert_eq!(stage.provider.requests().len(), 2, "nobody is asked on its behalf");
        }
    }
}
