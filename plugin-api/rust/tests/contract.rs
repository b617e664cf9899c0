//! The crate's promises to a host and to an author, on a host that records every call.

#![warn(unsafe_op_in_unsafe_fn)]

mod fake_host;

use fake_host::{host, plugin, with_notes, TestAgent};
use hearth::ffi::*;
use hearth::{hearth_plugin, Agent, Args, Context, Error, Fiber, FiberOptions, Level, Request};
use hearth::{Result, Run, Status, Step, Value, When};
use std::mem::size_of;
use std::time::Duration;

/// Does what its caller says.
struct Probe {
    calls: i64,
    panics_when_dropped: bool,
}

/// A panic's payload with a destructor that panics as well.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("the bomb");
    }
}

impl Agent for Probe {
    const FIBERS: &'static [&'static str] = &["work"];

    fn create(cx: &Context, options: &Value) -> Result<Self> {
        match options["create"].as_text() {
            Some("panic") => panic!("secret: create"),
            Some("error") => return Err(Error::new(Status::LIMIT, "too many of us")),
            Some("fiber") => drop(cx.start_fiber("work", &Value::Null)?),
            _ => cx.set_default_state(&Value::object([("calls", 0.into())]))?,
        }
        Ok(Probe { calls: 0, panics_when_dropped: options["drop"].as_bool() == Some(true) })
    }

    fn on_start(&mut self, cx: &Context) -> Result<()> {
        cx.log(Level::Debug, &format!("{} at {}", cx.name(), cx.now_ms()));
        Ok(())
    }

    fn on_call(&mut self, cx: &Context, method: &str, args: &Args) -> Result<Value> {
        self.calls += 1;
        match method {
            "calls" => Ok(self.calls.into()),
            "panic" => panic!("secret: {}", args.value(0)),
            "bomb" => std::panic::panic_any(Bomb),
            "overflow" => Ok([1, 2][args.integer(0)? as usize].into()),
            "add" => Ok((args.integer_in(0, 0, 10)? + args.integer(1)?).into()),
            "text" => Ok(format!("{}/{}", args.text(0)?, args.len()).into()),
            "set" => cx.set_state(args.value(0)).map(Value::from),
            "get" => cx.state(),
            "fail" => Err("the gate is shut".into()),
            "after" => {
                let wait = Duration::from_millis(250);
                Ok(cx.schedule(When::After(wait), "tick", &5.into())?.into())
            }
            "cron" => {
                let when = When::Cron { expression: "0 9 * * *", time_zone: "Europe/Berlin" };
                Ok(cx.schedule(when, "tick", &Value::Null)?.into())
            }
            "unschedule" => cx.cancel_schedule(args.text(0)?).map(Value::from),
            "notify" => Ok(cx.notify(args.text(0)?, args.text(1)?, "post", args.value(2))?.into()),
            "who" => Ok(match cx.caller_agent()? {
                Some(it) => {
                    format!("{} {} {}", it.class, it.name, it.notification.unwrap_or_default())
                        .into()
                }
                None => Value::Null,
            }),
            "start" => Ok(cx.start_fiber(args.text(0)?, args.value(1))?.into()),
            "keyed" => {
                let options =
                    FiberOptions { key: args.text(0)?, keep_record: true, max_retries: 2 };
                Ok(cx.start_fiber_with("work", &Value::Null, &options)?.into())
            }
            "cancel" => cx.cancel_fiber(args.text(0)?, "no longer").map(Value::from),
            "leave" => {
                cx.request_eviction();
                Ok(().into())
            }
            "end" => cx.destroy().map(Value::from),
            _ => Err(Error::no_method(method)),
        }
    }

    fn on_request(&mut self, _cx: &Context, request: &Request) -> Result<Value> {
        let body = String::from_utf8_lossy(&request.body).into_owned();
        Ok(vec![request.method.clone(), request.target.clone(), body].into())
    }

    fn on_callback(&mut self, cx: &Context, callback: &str, run: &Run) -> Result<()> {
        match callback {
            "tick" => cx.set_state(&vec![run.payload.clone(), run.attempt.into()].into()),
            "panic" => panic!("secret: callback"),
            _ => Err(Error::no_callback(callback)),
        }
    }

    fn on_fiber(&mut self, cx: &Context, fiber: &Fiber) -> Result<Step> {
        let step = fiber.checkpoint.as_i64().unwrap_or(0) + 1;
        cx.set_state(&step.into())?;
        match fiber.input.as_text() {
            Some("panic") => panic!("secret: fiber"),
            Some("fail") => Err("the bridge is out".into()),
            Some("closing") => Err(Error::new(Status::CLOSING, "closing")),
            Some("final") => Err(Error::new(Status::FINAL, "the card was refused")),
            Some("unreadable") => Err(Error::new(Status::UNREADABLE, "no shop")),
            Some("start another") => {
                cx.start_fiber("work", &"fail".into())?;
                Ok(Step::next(step))
            }
            Some("for ever") => Ok(Step::next_after(step, Duration::MAX)),
            _ if step == 3 => Ok(Step::done("far")),
            _ => Ok(Step::next_after(step, Duration::from_millis(40))),
        }
    }

    fn check_state(&mut self, _cx: &Context, next: &Value) -> Result<()> {
        match next.as_i64() {
            Some(0) => panic!("secret: state"),
            Some(1..) => Ok(()),
            _ => Err(Error::new(Status::FORBIDDEN, "not that")),
        }
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        assert!(!self.panics_when_dropped, "secret: drop");
    }
}

hearth_plugin!("contract", "1.0.0", Probe);

const PANICKED: &str = "the agent's code panicked; the server's log says where";

fn probe(id: u64) -> TestAgent {
    TestAgent::create(id, "{}").expect("it can be created")
}

/// The lines that do not belong to the log.
fn without_log(lines: Vec<String>) -> Vec<String> {
    lines.into_iter().filter(|line| !line.starts_with("log ")).collect()
}

/// The lines of the log, without source places.
fn log_of(agent: u64) -> Vec<String> {
    with_notes(agent, |notes| {
        notes.done.iter().filter(|line| line.starts_with("log ")).cloned().collect()
    })
}

// ---- the library -------------------------------------------------------------------------------

#[test]
fn the_entry_is_what_a_host_expects() {
    let entry = plugin();
    assert_eq!(entry.magic, HEARTH_MAGIC);
    assert_eq!((entry.struct_size, entry.class_count), (48, 1));
    let class = unsafe { &*(entry.get_class)(0) };
    let name = unsafe { std::ffi::CStr::from_ptr(class.name) };
    let version = unsafe { std::ffi::CStr::from_ptr(class.version) };
    assert_eq!((name.to_bytes(), version.to_bytes()), (&b"Probe"[..], &b"1.0.0"[..]));
    assert!(unsafe { (entry.get_class)(1) }.is_null());
}

#[test]
fn a_host_that_lacks_something_is_refused() {
    let init =
        |size: usize, major| unsafe { (plugin().init)(host(size as u32, major), Bytes::EMPTY) };
    for size in [24, 64, size_of::<Host>() - 1] {
        assert_eq!(init(size, HEARTH_ABI_MAJOR), HEARTH_E_UNSUPPORTED, "{size}");
    }
    assert_eq!(init(size_of::<Host>(), 2), HEARTH_E_UNSUPPORTED);
}

// ---- events ------------------------------------------------------------------------------------

#[test]
fn calls_are_answered() {
    let agent = probe(1);
    assert_eq!(agent.call("add", "[4,5]"), ["complete 1 0 9"]);
    assert_eq!(agent.call("text", r#"["é",2]"#), [r#"complete 1 0 "é/2""#]);
    assert_eq!(agent.call("fail", "[]"), ["complete 1 -9 the gate is shut"]);
    assert_eq!(agent.call("nothing", "[]"), ["complete 1 -13 Method nothing does not exist"]);
    assert_eq!(agent.call("add", "[]"), ["complete 1 -1 argument 1: expected integer"]);
    assert_eq!(
        agent.call("add", "[11,0]"),
        ["complete 1 -1 argument 1: expected integer from 0 to 10"]
    );
    assert_eq!(agent.call("add", r#"[1,"2"]"#), ["complete 1 -1 argument 2: expected integer"]);
    assert_eq!(agent.call("text", "[1]"), ["complete 1 -1 argument 1: expected string"]);
    assert_eq!(agent.call("add", "{}"), ["complete 1 -1 the arguments are no array"]);
    let malformed = agent.call("add", "[1,");
    assert!(malformed[0].starts_with("complete 1 -1 not JSON"), "{malformed:?}");
}

#[test]
fn the_state_is_read_and_written_for_the_caller() {
    let agent = probe(2);
    assert_eq!(agent.take(), [r#"set_default {"calls":0}"#]);
    assert_eq!(agent.call("get", "[]"), ["complete 1 0 null"]);
    assert_eq!(agent.call("set", "[[1]]"), ["set_state 3 [1]", "complete 1 0 null"]);
    assert_eq!(agent.call("get", "[]"), ["complete 1 0 [1]"]);
    agent.fail("set_state", HEARTH_E_LIMIT);
    assert_eq!(agent.call("set", "[2]"), ["set_state 3 2", "complete 1 -10 the host's words"]);
}

#[test]
fn requests_are_answered_with_json() {
    let agent = probe(3);
    agent.take();
    assert_eq!(agent.event(HEARTH_EVENT_REQUEST, 4, "PUT", "x"), HEARTH_OK);
    assert_eq!(
        agent.take(),
        [
            "header Content-Type: application/json",
            r#"complete 4 0 ["PUT","/agents/probe/a?x=1","x"]"#
        ]
    );
}

#[test]
fn other_agents_are_notified_and_known() {
    let agent = TestAgent::create(31, "{}").unwrap();
    assert_eq!(
        agent.call("notify", r#"["ChatRoom","lobby",[1,"x"]]"#),
        [r#"notify ChatRoom lobby post [1,"x"] in 1"#, r#"complete 1 0 "n-1""#]
    );
    assert_eq!(agent.call("who", "[]"), [r#"complete 1 0 "ChatRoom b n-7""#]);
    assert_eq!(agent.event(HEARTH_EVENT_CALL, 2, "who", "[]"), HEARTH_OK);
    assert_eq!(agent.take(), ["complete 2 0 null"]);
    agent.fail("notify", HEARTH_E_LIMIT);
    assert_eq!(
        agent.call("notify", r#"["ChatRoom","lobby",[]]"#)[1],
        "complete 1 -10 the host's words"
    );
}

#[test]
fn schedules_are_asked_for_and_run() {
    let agent = probe(4);
    assert_eq!(agent.call("after", "[]"), ["schedule 1 250 tick 5", r#"complete 1 0 "s-1""#]);
    assert_eq!(
        agent.call("cron", "[]"),
        ["schedule 3 0 tick null 0 9 * * * Europe/Berlin", r#"complete 1 0 "s-1""#]
    );
    assert_eq!(
        agent.call("unschedule", r#"["s-1"]"#),
        ["cancel_schedule s-1", "complete 1 0 null"]
    );
    let body = r#"{"id":"s-1","type":"delay","payload":5,"scheduled_for":7,"attempt":2}"#;
    assert_eq!(agent.event(HEARTH_EVENT_SCHEDULE, 8, "tick", body), HEARTH_OK);
    assert_eq!(agent.take(), ["set_state 0 [5,2]", "complete 8 0"]);
    assert_eq!(agent.event(HEARTH_EVENT_SCHEDULE, 9, "tock", body), HEARTH_OK);
    assert_eq!(agent.take(), ["complete 9 -13 Callback tock does not exist"]);
}

#[test]
fn a_synchronous_event_is_answered_by_its_status() {
    let agent = probe(5);
    agent.take();
    let check = |state: &str| agent.event(HEARTH_EVENT_STATE_CHECK, 0, "", state);
    assert_eq!(check("7"), HEARTH_OK);
    assert_eq!(agent.take(), Vec::<String>::new(), "nothing is completed");
    assert_eq!(check("-7"), HEARTH_E_FORBIDDEN);
    assert_eq!(agent.take(), ["complete 0 -15 not that"], "the text of what is returned");
    assert_eq!(check("{"), HEARTH_E_INVALID);
    agent.take();
    assert_eq!(check("0"), HEARTH_E_PLUGIN);
    assert_eq!(without_log(agent.take()), [format!("complete 0 -9 {PANICKED}"), "evict".into()]);
}

#[test]
fn what_the_crate_does_not_know_is_refused_and_not_completed() {
    let agent = probe(6);
    agent.take();
    for kind in [0, 2, 3, 4, 5, 9, 10, 13, 14, 15, 16, 17, 1000, u32::MAX] {
        assert_eq!(agent.event(kind, 1, "", "{}"), HEARTH_E_UNSUPPORTED, "{kind}");
    }
    agent.result(0, HEARTH_RESULT_FINAL, 1, HEARTH_OK); // a post
    agent.result(HEARTH_OP_SLEEP, HEARTH_RESULT_FINAL, 12345, HEARTH_OK); // an unknown token
    agent.result(77, HEARTH_RESULT_FINAL, 1, HEARTH_OK);
    assert_eq!(agent.take(), Vec::<String>::new());
}

#[test]
fn eviction_and_the_end_are_asked_for() {
    let agent = probe(7);
    assert_eq!(agent.call("leave", "[]"), ["evict", "complete 1 0 null"]);
    assert_eq!(agent.call("end", "[]"), ["destroy", "complete 1 0 null"]);
    agent.event(HEARTH_EVENT_START, 2, "", "");
    assert_eq!(agent.take(), ["log 1 a at 1700000000000", "complete 2 0"]);
}

// ---- panics ------------------------------------------------------------------------------------

#[test]
fn a_panic_is_an_answer_without_internals_a_line_in_the_log_and_the_end_of_the_instance() {
    let agent = probe(10);
    let done = agent.call("panic", "[42]");
    assert_eq!(done.len(), 3, "{done:?}");
    assert!(done[0].starts_with("log 4 panicked at "), "{done:?}");
    assert!(done[0].contains("contract.rs:") && done[0].ends_with(": secret: 42"), "{done:?}");
    assert_eq!(done[1..], [format!("complete 1 -9 {PANICKED}"), "evict".into()]);
    assert_eq!(agent.call("calls", "[]"), ["complete 1 0 2"], "the next call works");

    let index = agent.call("overflow", "[7]");
    assert!(index[0].contains("index out of bounds"), "{index:?}");
    let bomb = without_log(agent.call("bomb", "[]"));
    assert_eq!(bomb, [format!("complete 1 -9 {PANICKED}"), "evict".into()]);
}

#[test]
fn panics_elsewhere_are_caught_too() {
    assert_eq!(TestAgent::create(11, r#"{"create":"panic"}"#).err(), Some(HEARTH_E_PLUGIN));
    assert!(log_of(11)[0].ends_with("secret: create"));
    with_notes(11, |notes| assert_eq!(notes.done[1], format!("complete 0 -9 {PANICKED}")));

    let agent = TestAgent::create(12, r#"{"drop":true}"#).expect("it can be created");
    agent.take();
    let body = r#"{"id":"s-1","payload":null,"attempt":1}"#;
    assert_eq!(agent.event(HEARTH_EVENT_SCHEDULE, 8, "panic", body), HEARTH_OK);
    assert_eq!(without_log(agent.take()), [format!("complete 8 -9 {PANICKED}"), "evict".into()]);
    drop(agent);
    assert!(log_of(12)[0].ends_with("secret: drop"));
}

#[test]
fn create_says_why_it_fails() {
    assert_eq!(TestAgent::create(13, r#"{"create":"error"}"#).err(), Some(HEARTH_E_LIMIT));
    with_notes(13, |notes| assert_eq!(notes.done, ["complete 0 -10 too many of us"]));
    assert_eq!(TestAgent::create(14, r#"{"create":"fiber"}"#).err(), Some(HEARTH_E_FORBIDDEN));
    assert_eq!(TestAgent::create(15, "{").err(), Some(HEARTH_E_INVALID));
}

// ---- fibers ------------------------------------------------------------------------------------

#[test]
fn a_fiber_goes_step_by_step_to_its_end() {
    let agent = probe(20);
    let done = agent.call("start", r#"["work",{"a":1}]"#);
    assert_eq!(done, [r#"start work {"a":1} 0"#, "sleep 0", r#"complete 1 0 "f-1""#]);
    assert_eq!(agent.wake(HEARTH_OK), ["set_state 0 1", "stash 9 1", "sleep 40"]);
    assert_eq!(agent.wake(HEARTH_OK), ["set_state 0 2", "stash 9 2", "sleep 40"]);
    assert_eq!(agent.wake(HEARTH_OK), ["set_state 0 3", r#"settle 9 16 "far""#]);
    assert_eq!(with_notes(20, |notes| notes.worked_for.clone()), [9, 9, 9], "each step says whose");
    agent.event(HEARTH_EVENT_START, 2, "", "");
    let told = with_notes(20, |notes| notes.worked_for.clone());
    assert_eq!(told, [9, 9, 9, 0], "a start is no fiber's");
}

#[test]
fn a_fiber_that_was_interrupted_goes_on_from_its_checkpoint() {
    let agent = probe(21);
    agent.take();
    let body = r#"{"id":"f-7","snapshot":2,"attempt":1,"record":{"input":"x"}}"#;
    let recover = |name: &str| agent.event(HEARTH_EVENT_FIBER_RECOVERED, 5, name, body);
    assert_eq!(recover("unheard of"), HEARTH_E_NOT_FOUND);
    assert_eq!(agent.take(), Vec::<String>::new(), "refused, so not completed");
    assert_eq!(recover("work"), HEARTH_OK);
    assert_eq!(agent.take(), ["resume f-7", "sleep 0", "complete 5 0"]);
    assert_eq!(agent.wake(HEARTH_OK), ["set_state 0 3", r#"settle 11 16 "far""#]);
    agent.fail("resume", HEARTH_E_LIMIT);
    assert_eq!(recover("work"), HEARTH_OK);
    assert_eq!(agent.take(), ["resume f-7", "complete 5 -10 the host's words"]);
}

#[test]
fn a_fiber_that_fails_or_panics_is_settled() {
    let agent = probe(22);
    agent.call("start", r#"["work","fail"]"#);
    assert_eq!(agent.wake(HEARTH_OK), ["set_state 0 1", "settle 9 32 the bridge is out"]);
    agent.call("start", r#"["work","panic"]"#);
    let done = without_log(agent.wake(HEARTH_OK));
    assert_eq!(done, ["set_state 0 1".into(), "evict".into(), format!("settle 9 32 {PANICKED}")]);
}

#[test]
fn a_failure_that_no_retry_mends_and_a_value_that_cannot_be_read_are_settled_as_such() {
    let agent = probe(29);
    agent.call("start", r#"["work","final"]"#);
    assert_eq!(agent.wake(HEARTH_OK), ["set_state 0 1", "settle 9 128 the card was refused"]);
    agent.call("start", r#"["work","unreadable"]"#);
    assert_eq!(agent.wake(HEARTH_OK), ["set_state 0 1", "settle 9 256 no shop"]);
}

#[test]
fn a_fiber_that_cannot_go_on_is_left_to_the_next_instance() {
    let agent = probe(23);
    agent.call("start", r#"["work","closing"]"#);
    assert_eq!(agent.wake(HEARTH_OK), ["set_state 0 1", "evict"]);
    agent.call("start", r#"["work",null]"#);
    assert_eq!(agent.wake(HEARTH_E_IO), ["evict"], "its sleep has failed");

    agent.fail("sleep", HEARTH_E_LIMIT);
    let done = agent.call("start", r#"["work",null]"#);
    assert_eq!(done, ["start work null 0", "sleep 0", "evict", r#"complete 1 0 "f-1""#]);
}

#[test]
fn a_checkpoint_that_is_refused_ends_the_fiber() {
    let agent = probe(24);
    agent.fail("stash", HEARTH_E_LIMIT);
    agent.call("start", r#"["work",null]"#);
    let done = agent.wake(HEARTH_OK);
    assert_eq!(done, ["set_state 0 1", "stash 9 1", "settle 9 32 the host's words"]);
    // Cancelled meanwhile: there is nothing left to settle.
    agent.fail("stash", HEARTH_E_GONE);
    agent.fail("settle", HEARTH_E_GONE);
    agent.call("start", r#"["work",null]"#);
    let done = agent.wake(HEARTH_OK);
    assert_eq!(done, ["set_state 0 1", "stash 9 1", "settle 9 32 the host's words"]);
    // The storage has failed: another instance may do better.
    agent.fail("stash", HEARTH_E_IO);
    agent.fail("settle", HEARTH_E_IO);
    agent.call("start", r#"["work",null]"#);
    let done = agent.wake(HEARTH_OK);
    assert_eq!(done[3..], ["evict"]);
}

#[test]
fn a_wait_is_no_longer_than_the_host_takes() {
    let agent = probe(28);
    agent.call("start", r#"["work","for ever"]"#);
    assert_eq!(agent.wake(HEARTH_OK), ["set_state 0 1", "stash 9 1", "sleep 31622400000"]);
}

#[test]
fn a_cancelled_fiber_takes_no_step() {
    let agent = probe(25);
    agent.call("start", r#"["work",null]"#);
    assert_eq!(
        agent.call("cancel", r#"["f-1"]"#),
        ["cancel_fiber f-1 no longer", "complete 1 0 null"]
    );
    assert_eq!(agent.wake(HEARTH_OK), Vec::<String>::new());
}

#[test]
fn fibers_are_started_by_names_and_keys() {
    let agent = probe(26);
    let unknown = agent.call("start", r#"["play",null]"#);
    assert_eq!(unknown, ["complete 1 -1 FIBERS does not list the fiber play"]);
    let keyed = agent.call("keyed", r#"["k"]"#);
    assert_eq!(keyed, ["start work null 1 k", "sleep 0", r#"complete 1 0 "f-1""#]);
    let taken = agent.call("keyed", r#"["taken"]"#);
    assert_eq!(taken, ["start work null 1 taken", r#"complete 1 0 "f-1""#], "somebody else's");
    agent.fail("start", HEARTH_E_CONFLICT);
    assert_eq!(agent.call("keyed", r#"["k"]"#)[1..], ["complete 1 -14 the host's words"]);
}

#[test]
fn a_step_may_start_another_fiber() {
    let agent = probe(27);
    agent.call("start", r#"["work","start another"]"#);
    let done = agent.wake(HEARTH_OK);
    assert_eq!(
        done,
        ["set_state 0 1", r#"start work "fail" 0"#, "sleep 0", "stash 9 1", "sleep 0"]
    );
    assert_eq!(agent.wake(HEARTH_OK)[1..], ["settle 9 32 the bridge is out"]);
}
