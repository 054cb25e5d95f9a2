//! Tests of the limits on hidden rounds.

use toolcrib_testkit::provider::{Action, Options, Step};

use crate::client_requests::{ClientCase, cases, tools};
use crate::setup::TestSetup;

/// Returns the options of a provider whose model keeps searching.
fn searching() -> Options {
    let queries = ["invoice", "order", "parcel", "meeting", "contract", "ticket", "budget", "Ada"];
    let searches = queries.map(|query| Step::new([Action::search(query)]));
    Options::steps(searches.into_iter().chain([Step::new([Action::text("That will do.")])]))
}

/// Sends a request to the model that keeps searching. Returns how many requests the provider received, including hidden
/// rounds.
async fn rounds_sent(setup: &TestSetup, case: ClientCase) -> usize {
    let received = setup.ask_and_read(case, &case.ask("Look around", &tools(60))).await;
    assert_eq!((received.calls.len(), received.text.as_str()), (0, ""), "{case:?}");
    setup.provider.requests().len()
}

#[tokio::test]
async fn hidden_rounds_stop_at_the_configured_number() {
    for case in cases() {
        for rounds in [0, 1, 2, 5] {
            let setup = TestSetup::with(searching(), |config| config.rounds = rounds).await;
            assert_eq!(rounds_sent(&setup, case).await, rounds + 1, "{case:?}");
            // Only the result of the last search tells the model that no more searches are possible in this turn.
            let last = "This was the last search of this turn";
            let announces_last: Vec<bool> =
                setup.texts().iter().map(|text| text.contains(last)).collect();
            let mut expected = vec![false; rounds];
            expected.push(rounds > 0);
            assert_eq!(announces_last, expected, "{case:?}");
        }
    }
}

#[tokio::test]
async fn hidden_rounds_stop_at_the_deadline() {
    for case in cases() {
        let setup = TestSetup::with(searching(), |config| config.deadline = 0).await;
        assert_eq!(rounds_sent(&setup, case).await, 2, "{case:?}: one round is always answered");
        assert!(setup.texts()[1].contains("This was the last search of this turn"), "{case:?}");
    }
}
