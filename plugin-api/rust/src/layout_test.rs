//! The structs and numbers of `ffi` are those of the C headers.
//!
//! Read from the text of the headers: sizes and offsets from their static assertions, the order of
//! members from the structs, values from the enumerations.

use crate::ffi::{layouts, NUMBERS};

const HEADERS: &[&str] = &[
    include_str!("../../include/hearth/abi.h"),
    include_str!("../../include/hearth/ext/agent.h"),
    include_str!("../../include/hearth/ext/call.h"),
    include_str!("../../include/hearth/ext/clock.h"),
    include_str!("../../include/hearth/ext/fibers.h"),
    include_str!("../../include/hearth/ext/http.h"),
    include_str!("../../include/hearth/ext/log.h"),
    include_str!("../../include/hearth/ext/schedule.h"),
    include_str!("../../include/hearth/ext/sleep.h"),
    include_str!("../../include/hearth/ext/state.h"),
];

/// All headers without comments, as one text.
fn headers() -> String {
    let mut out = String::new();
    for header in HEADERS {
        let mut rest = *header;
        while let Some(begin) = rest.find("/*") {
            out.push_str(&rest[..begin]);
            out.push(' ');
            rest = rest[begin..].split_once("*/").expect("comments have an end").1;
        }
        out.push_str(rest);
    }
    out
}

/// The text between the first `begin` and the next `end` after it.
fn between<'a>(text: &'a str, begin: &str, end: &str) -> Option<&'a str> {
    let after = &text[text.find(begin)? + begin.len()..];
    Some(&after[..after.find(end)?])
}

/// The value of a constant expression of the headers: a sum or product of numbers.
fn number(text: &str) -> Option<i64> {
    if let Some((left, right)) = text.split_once('*') {
        return Some(number(left)? * number(right)?);
    }
    text.trim().parse().ok()
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// The names of a struct's members, in order.
fn members(body: &str) -> Vec<String> {
    let mut names = Vec::new();
    for declaration in body.split(';').filter(|each| !each.trim().is_empty()) {
        if let Some(name) = between(declaration, "(*", ")") {
            names.push(name.to_owned()); // a pointer to a function
            continue;
        }
        // "uint64_t a, b" and "char owner[8]"
        for part in declaration.split(',') {
            let part = part.split('[').next().unwrap_or(part).trim();
            let name = part.rsplit(|c| !is_word(c)).next().unwrap_or_default();
            names.push(name.to_owned());
        }
    }
    names
}

#[test]
fn sizes_and_members_are_those_of_the_headers() {
    let headers = headers();
    for (name, size, fields) in layouts() {
        let body = between(&headers, &format!("typedef struct {name} {{"), &format!("}} {name};"))
            .unwrap_or_else(|| panic!("{name} is in no header"));
        let own: Vec<&str> = fields.iter().map(|(field, _)| *field).collect();
        assert_eq!(own, members(body), "{name}");

        let asserted = between(&headers, &format!("(sizeof({name}) == "), ",")
            .unwrap_or_else(|| panic!("no header asserts the size of {name}"));
        assert_eq!(number(asserted), Some(size as i64), "{name}");
    }
}

#[test]
fn offsets_are_those_that_the_headers_assert() {
    let headers = headers();
    let mut compared = 0;
    for (name, _, fields) in layouts() {
        for (field, offset) in fields {
            let begin = format!("(offsetof({name}, {field}) == ");
            if let Some(asserted) = between(&headers, &begin, ",") {
                assert_eq!(number(asserted), Some(offset as i64), "{name}.{field}");
                compared += 1;
            }
        }
    }
    assert!(compared >= 31, "only {compared} offsets were found in the headers");
}

#[test]
fn numbers_are_those_of_the_headers() {
    let headers = headers();
    for (name, value) in NUMBERS {
        let after = headers
            .match_indices(name)
            .map(|(at, _)| &headers[at + name.len()..])
            .find_map(|rest| rest.trim_start().strip_prefix('='))
            .unwrap_or_else(|| panic!("{name} is in no header"));
        let asserted = after.split([',', '}']).next().unwrap_or_default();
        assert_eq!(number(asserted), Some(*value), "{name}");
    }
}

#[test]
fn the_magic_number_is_that_of_the_header() {
    let digits = format!("UINT64_C(0x{:016x})", crate::ffi::HEARTH_MAGIC);
    assert!(headers().contains(&digits), "{digits}");
    assert!(headers().contains(&format!("HEARTH_ABI_MAJOR {}", crate::ffi::HEARTH_ABI_MAJOR)));
    assert!(headers().contains(&format!("HEARTH_ABI_MINOR {}", crate::ffi::HEARTH_ABI_MINOR)));
}

#[test]
fn the_depth_of_json_is_that_of_the_host() {
    let rules = include_str!("../../include/hearth/json_rules.h");
    assert!(rules.contains(&format!("HEARTH_MAX_JSON_DEPTH {}\n", crate::json::MAX_DEPTH)));
}
