//! The reader and the writer of JSON.

use hearth::json::MAX_DEPTH;
use hearth::Value;

fn parse(text: &str) -> Value {
    Value::parse(text).unwrap_or_else(|why| panic!("{text}: {why}"))
}

#[test]
fn what_is_read_is_written_again() {
    for text in [
        "null",
        "true",
        "false",
        "0",
        "-7",
        "9223372036854775807",
        "0.5",
        "-1e300",
        "1e-7",
        r#""""#,
        r#""a \"quoted\" \\ word""#,
        r#""über 🔥""#,
        r#""line\nbreak\ttab\rreturn\u0000\u001f""#,
        "[]",
        "{}",
        r#"[1,[2,{}],null]"#,
        r#"{"a":{"b":[true]},"c":""}"#,
    ] {
        assert_eq!(parse(text).to_string(), text);
    }
}

#[test]
fn spaces_and_escapes_are_read() {
    assert_eq!(parse(" \t\r\n[ 1 , 2 ] "), vec![1, 2].into());
    assert_eq!(parse(r#" { "a" : 1 , "b" : null } "#).to_string(), r#"{"a":1,"b":null}"#);
    assert_eq!(parse(r#""\/\b\f\n\r\t\u00e9\ud83d\udd25""#), "/\u{8}\u{c}\n\r\té🔥".into());
    assert_eq!(parse(r#"{"a":1,"a":2}"#)["a"], 2.into(), "the later member counts");
}

#[test]
fn numbers_keep_what_they_are() {
    assert_eq!(parse("9223372036854775807").as_i64(), Some(i64::MAX));
    assert_eq!(parse("9223372036854775808"), Value::Float(9_223_372_036_854_775_808.0));
    assert_eq!(parse("9223372036854775808").as_i64(), None, "no longer exact");
    assert_eq!(parse("2.0").as_i64(), Some(2), "JavaScript has one type of number");
    assert_eq!(parse("1e3").as_i64(), Some(1000));
    assert_eq!(parse("1.5").as_i64(), None);
    assert_eq!(parse("7").as_f64(), Some(7.0));
    assert_eq!(Value::from(f64::NAN).to_string(), "null");
    assert_eq!(Value::from(f64::INFINITY).to_string(), "null");
}

#[test]
fn what_is_no_json_is_refused() {
    for text in [
        "",
        " ",
        "nul",
        "nullx",
        "tru",
        "+1",
        "01",
        "-",
        "1.",
        ".5",
        "1e",
        "1e+",
        "0x10",
        "1 2",
        "NaN",
        "Infinity",
        "1e999",
        "-1e999",
        "'a'",
        r#"""#,
        r#""a"#,
        "\"a\nb\"",
        r#""\x""#,
        r#""\"#,
        r#""\u12""#,
        r#""\u12g4""#,
        r#""\ud800""#,
        r#""\ud800\u0041""#,
        r#""\ud800\ud800""#,
        r#""\udc00""#,
        r#""\é""#,
        "[",
        "[1",
        "[1,",
        "[1,]",
        "[,1]",
        "]",
        "{",
        r#"{"a""#,
        r#"{"a":"#,
        r#"{"a":1"#,
        r#"{"a":1,}"#,
        "{1:2}",
        "{a:1}",
        r#"{"a" 1}"#,
        "/**/1",
        "\u{feff}1",
        "é",
    ] {
        assert!(Value::parse(text).is_err(), "{text}");
    }
    let why = Value::parse("[1,x]").unwrap_err();
    assert_eq!(why, "not JSON: a value was expected at byte 3");
}

#[test]
fn every_cut_of_a_text_is_refused() {
    let text = r#"{"a":[1.5e3,"é\ud83d\udd25",true,null],"b":{"c":-2}}"#;
    parse(text);
    for at in 0..text.len() {
        if text.is_char_boundary(at) {
            assert!(Value::parse(&text[..at]).is_err(), "cut at {at}");
        }
    }
}

#[test]
fn nesting_is_bounded() {
    let nested = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
    assert!(Value::parse(&nested(MAX_DEPTH)).is_ok());
    assert!(Value::parse(&nested(MAX_DEPTH + 1)).is_err());
    assert!(Value::parse(&"[".repeat(1_000_000)).is_err());
    assert!(Value::parse(&r#"{"a":"#.repeat(1_000_000)).is_err());
    assert!(Value::parse(&format!("[{0},{0}]", nested(MAX_DEPTH - 1))).is_ok(), "depth, not count");
}

#[test]
fn members_and_elements_are_found() {
    let mut value = parse(r#"{"a":[10,{"b":"c"}],"n":null}"#);
    assert_eq!(value["a"][1]["b"].as_text(), Some("c"));
    assert!(value["a"][2].is_null() && value["x"]["y"].is_null() && value["a"]["x"].is_null());
    assert_eq!(value.get("x"), None);
    assert_eq!(value.get("n"), Some(&Value::Null));
    assert_eq!(value["a"].as_array().map(<[Value]>::len), Some(2));
    value.set("a", true);
    assert_eq!(value["a"].as_bool(), Some(true));
    let mut number = Value::from(1);
    number.set("a", "b");
    assert_eq!(number.to_string(), r#"{"a":"b"}"#);
    assert_eq!(Value::from(Some(1u32)).to_string(), "1");
    assert_eq!(Value::from(None::<i64>), Value::from(()));
    assert_eq!(Value::from(3usize), 3i64.into());
}
