//! Hidden rounds come to an end.

use toolcrib_testkit::provider::{Action, Options, Step};

use crate::dialects::{Case, cases, tools};
use crate::support::Stage;

/// A model that never has enough.
fn searching() -> Options {
    let queries = ["invoice", "order", "parcel", "meeting", "contract", "ticket", "budget", "Ada"];
    let searches = queries.map(|query| Step::new([Action::search(query)]));
    Options::steps(searches.into_iter().chain([Step::new([Action::text("That will do.")])]))
}

/// Asks the model that never has enough, and says how often it was asked.
async fn asked(stage: &Stage, case: Case) -> usize {
    let seen = stage.see(case, &case.ask("Look around", &tools(60))).await;
    assert_eq!((seen.calls.len(), seen.text.as_str()), (0, ""), "{case:?}");
    stage.provider.requests().len()
}

#[tokio::test]
async fn after_as_many_as_are_configured() {
    for case in cases() {
        for rounds in [0, 1, 2, 5] {
            let stage = Stage::with(searching(), |config| config.rounds = rounds).await;
            assert_eq!(asked(&stage, case).await, rounds + 1, "{case:?}");
            // The model is told with the last answer it gets, and with no other.
            let last = "This was the last search of this turn";
            let told: Vec<bool> = stage.texts().iter().map(|text| text.contains(last)).collect();
            let mut expected = vec![false; rounds];
            expected.push(rounds > 0);
            assert_eq!(told, expected, "{case:?}");
        }
    }
}

#[tokio::test]
async fn when_the_time_is_up() {
    for case in cases() {
        let stage = Stage::with(searching(), |config| config.deadline = 0).await;
        assert_eq!(asked(&stage, case).await, 2, "{case:?}: one round is always answered");
        assert!(stage.texts()[1].contains("This was the last search of this turn"), "{case:?}");
    }
}
