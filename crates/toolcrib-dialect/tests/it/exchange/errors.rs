//! Tests of error responses and of unreachable upstreams.

use super::*;

#[test]
fn the_upstream_becomes_unreachable() {
    let ending = |answers: Vec<UpstreamAnswer>, stream: bool| {
        let played = play(&first_request(stream), setup(), &mut HashMap::new(), answers);
        (played.done.unwrap().ending, played.status, played.text())
    };
    let none = String::new;
    assert_eq!(
        ending(vec![UpstreamAnswer::Unreachable], true),
        (Ending::Unreachable, None, none())
    );
    let half =
        || UpstreamAnswer::CutOff("event: ping\ndata: {\"type\": \"ping\"}\n\nevent: mess".into());
    let (cut, status, text) = ending(vec![half()], true);
    assert_eq!((cut, status), (Ending::CutOff, Some(200)));
    assert!(text.starts_with("event: ping"));
    assert_eq!(ending(vec![half()], false), (Ending::CutOff, None, none()));
    // If a hidden round of a stream fails, the client has already received a part of the stream. So the stream ends
    // with an error event of the API.
    let (failed, status, text) = ending(vec![searches(true), UpstreamAnswer::Unreachable], true);
    assert_eq!((failed, status), (Ending::Failed, Some(200)));
    assert!(text.ends_with("\n\n") && text.contains("event: error"), "{text}");
    let whole = ending(vec![searches(false), UpstreamAnswer::Unreachable], false);
    assert_eq!(whole, (Ending::Unreachable, None, none()));
}

#[test]
fn an_error_sent_as_events_is_only_translated() {
    for stream in [false, true] {
        let mut setup = setup();
        setup.upstream.other_api = Some(Api::Chat);
        let body = first_request(stream).to_string().into_bytes();
        let request = Request::read(Api::Messages, TARGET, body);
        let mut exchange = Exchange::new(Api::Messages, TARGET, request, setup);
        assert_eq!(sent(&mut exchange).path, Some("/v1/chat/completions"));
        exchange.response_started(429, true);
        exchange.response_bytes("data: {\"error\": {\"message\": \"slow down\"}}\n\n".into());
        exchange.response_ended();
        let (mut text, mut done, mut begun) = (Vec::new(), None, 0);
        while let Some(action) = exchange.next_action() {
            match action {
                Action::StartResponse(start) => {
                    begun += 1;
                    assert_eq!((start.status, start.is_translated), (429, true));
                }
                Action::Forward(bytes) => text.extend(bytes),
                Action::Done(end) => assert_eq!(done.replace(end), None),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(
            (begun, done.map(|done| (done.ending, done.status))),
            (1, Some((Ending::Complete, 429)))
        );
        assert!(String::from_utf8(text).unwrap().contains("slow down"));
        // After the exchange has ended, further events are ignored.
        exchange.response_started(200, true);
        exchange.upstream_unreachable();
        exchange.response_bytes("x".into());
        exchange.response_cut_off();
        assert!(exchange.next_action().is_none() && exchange.is_over());
    }
}
