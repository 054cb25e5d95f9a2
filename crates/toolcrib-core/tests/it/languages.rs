//! Tests of queries that are not in English.

use serde_json::{Value, json};
use toolcrib_core::{Crib, Limits, Preset, Scope, Settings, WordQuery};

use crate::support::{Chat, catalog, names, office, tool};

fn described(tools: &[(&str, &str)]) -> Vec<Value> {
    tools.iter().map(|(name, description)| tool(name, description, &json!({}))).collect()
}

fn first(crib: &Crib, query: &str) -> Option<String> {
    let reply = Chat::new(crib).search(query);
    names(&reply).first().map(ToString::to_string)
}

#[test]
fn tools_described_in_chinese_are_found_in_chinese() {
    let tools = described(&[
        ("a__tianqi", "查询指定城市的天气预报"),
        ("a__huoche", "查询火车票余票和票价"),
        ("a__luxian", "规划两地之间的驾车路线"),
        ("a__fanyi", "把一段文字翻译成另一种语言"),
    ]);
    let crib = Crib::new(catalog(&tools), Settings::default());
    for (query, expected) in [
        ("明天北京天气怎么样", "a__tianqi"),
        ("从上海到杭州的火车票", "a__huoche"),
        ("开车去机场怎么走,规划路线", "a__luxian"),
        ("翻译这段文字", "a__fanyi"),
    ] {
        assert_eq!(first(&crib, query).as_deref(), Some(expected), "{query}");
    }
}

#[test]
fn tools_described_in_japanese_are_found_in_japanese() {
    let tools = described(&[
        ("b__one", "指定した宛先にメールを送信します"),
        ("b__two", "ファイルをフォルダーから削除します"),
        ("b__three", "カレンダーに予定を追加します"),
    ]);
    let crib = Crib::new(catalog(&tools), Settings::default());
    for (query, expected) in [
        ("田中さんにメールを送信したい", "b__one"),
        ("古いファイルを削除して", "b__two"),
        ("来週の予定をカレンダーに追加", "b__three"),
    ] {
        assert_eq!(first(&crib, query).as_deref(), Some(expected), "{query}");
    }
}

/// For the word ranker, one English word in common is enough to find a tool. The vectors must not displace such hits.
/// They may even improve the order, because the vector table has a few words of other languages, such as 创建 ("to
/// create").
#[test]
fn vectors_do_not_displace_word_matches_in_english_catalogs() {
    let both = Crib::new(catalog(&office()), Settings::default());
    let words = both.with_settings(Preset::Words.settings());
    let scope = Scope::all(both.catalog());
    let position_of = |crib: &Crib, query: &str, right: &str| {
        let ranked = crib.rank(&WordQuery::plain(query, &Limits::default()), &scope, 8);
        ranked.iter().position(|hit| crib.catalog().tool(hit.id).name() == right)
    };
    for (query, right) in [
        ("创建一个 issue", "github__create_issue"),
        ("在 github 上 merge pull request", "github__merge_pull_request"),
        ("メールを send", "mail__send"),
        ("删除 message 邮件", "mail__delete_message"),
    ] {
        let by_words = position_of(&words, query, right).unwrap();
        assert!(position_of(&both, query, right).unwrap() <= by_words, "{query}");
        assert!(first(&both, query).is_some(), "{query}");
    }
    assert_eq!(first(&both, "创建一个 issue").as_deref(), Some("github__create_issue"));
}
