//! A host for tests: it has the tables that the crate needs, records every call, and fails where a
//! test says so. One test is one agent, so tests may run side by side.

use hearth::ffi::*;
use std::collections::HashMap;
use std::ffi::{c_void, CStr};
use std::mem::size_of;
use std::os::raw::c_char;
use std::ptr::{null, null_mut};
use std::sync::{Mutex, Once};

/// What the host knows of one agent.
#[derive(Default)]
pub struct Notes {
    /// "complete 7 0 [1]", "evict", "stash 9 {...}", ... in their order.
    pub done: Vec<String>,
    /// The statuses of the functions of these names; the others succeed.
    pub failing: HashMap<&'static str, i32>,
    pub state: String,
    /// The tokens of sleeps that have not ended.
    pub sleeping: Vec<u64>,
    /// The fibers that works_for() named.
    pub worked_for: Vec<u64>,
    lent: String,
}

static NOTES: Mutex<Option<HashMap<u64, Notes>>> = Mutex::new(None);

pub fn with_notes<R>(agent: u64, look: impl FnOnce(&mut Notes) -> R) -> R {
    let mut all = NOTES.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    look(all.get_or_insert_with(HashMap::new).entry(agent).or_default())
}

fn text(bytes: Bytes) -> String {
    // SAFETY: the crate lends it for the call that this is in.
    String::from_utf8_lossy(unsafe { bytes.as_slice() }).into_owned()
}

/// Records a call of a function, and returns its status.
fn note(agent: u64, name: &'static str, what: String) -> i32 {
    with_notes(agent, |notes| {
        notes.done.push(format!("{name} {what}").trim_end().to_owned());
        notes.failing.get(name).copied().unwrap_or(HEARTH_OK)
    })
}

/// Lends a text until the next call for this agent.
fn lend(agent: u64, text: String, out: *mut Bytes) {
    with_notes(agent, |notes| {
        notes.lent = text;
        // SAFETY: the crate's place for the result.
        unsafe { *out = Bytes::of(notes.lent.as_bytes()) };
    });
}

// ---- the tables --------------------------------------------------------------------------------

unsafe extern "C" fn complete(_: *const Host, agent: u64, call: u64, status: i32, b: Bytes) -> i32 {
    note(agent, "complete", format!("{call} {status} {}", text(b)))
}

unsafe extern "C" fn submit(
    _: *const Host,
    agent: u64,
    operation: u32,
    request: Bytes,
    token: u64,
    _id: *mut u64,
) -> i32 {
    assert_eq!(operation, HEARTH_OP_SLEEP);
    let wait = unsafe { (*request.ptr.cast::<SleepRequest>()).milliseconds };
    let status = note(agent, "sleep", format!("{wait}"));
    if status == HEARTH_OK {
        with_notes(agent, |notes| notes.sleeping.push(token));
    }
    status
}

unsafe extern "C" fn last_error(_: *const Host, agent: u64, out: *mut Bytes) -> i32 {
    lend(agent, "the host's words".to_owned(), out);
    HEARTH_OK
}

unsafe extern "C" fn evict(_: *const Host, agent: u64) -> i32 {
    note(agent, "evict", String::new())
}

unsafe extern "C" fn destroy(_: *const Host, agent: u64) -> i32 {
    note(agent, "destroy", String::new())
}

unsafe extern "C" fn wall_ms(_: *const Host) -> i64 {
    1_700_000_000_000
}

unsafe extern "C" fn write(_: *const Host, agent: u64, level: i32, line: Bytes) {
    if agent == 0 {
        eprintln!("{}", text(line)); // no agent's: a test has failed
    }
    note(agent, "log", format!("{level} {}", text(line)));
}

unsafe extern "C" fn get_state(_: *const Host, agent: u64, out: *mut Bytes) -> i32 {
    let (status, state) = with_notes(agent, |notes| {
        (notes.failing.get("state").copied().unwrap_or(HEARTH_OK), notes.state.clone())
    });
    if status == HEARTH_OK && state.is_empty() {
        return HEARTH_E_NOT_FOUND;
    }
    lend(agent, state, out);
    status
}

unsafe extern "C" fn set_state(_: *const Host, agent: u64, on_behalf: u64, json: Bytes) -> i32 {
    let json = text(json);
    with_notes(agent, |notes| notes.state = json.clone());
    note(agent, "set_state", format!("{on_behalf} {json}"))
}

unsafe extern "C" fn set_default(_: *const Host, agent: u64, json: Bytes) -> i32 {
    note(agent, "set_default", text(json))
}

unsafe extern "C" fn target(_: *const Host, agent: u64, _call: u64, out: *mut Bytes) -> i32 {
    lend(agent, "/agents/probe/a?x=1".to_owned(), out);
    HEARTH_OK
}

unsafe extern "C" fn add_header(_: *const Host, agent: u64, _: u64, n: Bytes, v: Bytes) -> i32 {
    note(agent, "header", format!("{}: {}", text(n), text(v)))
}

unsafe extern "C" fn notify(
    _: *const Host,
    agent: u64,
    request: *const CallRequest,
    id: *mut Bytes,
) -> i32 {
    let it = unsafe { &*request };
    assert_eq!(it.struct_size as usize, size_of::<CallRequest>());
    let to = format!("{} {} {}", text(it.agent_class), text(it.name), text(it.method));
    lend(agent, "n-1".to_owned(), id);
    note(agent, "notify", format!("{to} {} in {}", text(it.arguments), it.call))
}

/// The event 1 is a notification.
unsafe extern "C" fn caller(_: *const Host, agent: u64, call: u64, out: *mut Bytes) -> i32 {
    if call != 1 {
        return HEARTH_E_NOT_FOUND;
    }
    lend(agent, r#"{"class":"ChatRoom","name":"b","notification":"n-7"}"#.to_owned(), out);
    HEARTH_OK
}

unsafe extern "C" fn create_schedule(
    _: *const Host,
    agent: u64,
    request: *const ScheduleRequest,
    out: *mut Bytes,
    _created: *mut u32,
) -> i32 {
    let it = unsafe { &*request };
    let what = format!(
        "{} {} {} {} {} {}",
        it.r#type,
        it.when_ms,
        text(it.callback),
        text(it.payload),
        text(it.cron),
        text(it.time_zone)
    );
    assert_eq!(it.struct_size as usize, size_of::<ScheduleRequest>());
    lend(agent, r#"{"id":"s-1"}"#.to_owned(), out);
    note(agent, "schedule", what)
}

unsafe extern "C" fn cancel_schedule(_: *const Host, agent: u64, id: Bytes) -> i32 {
    note(agent, "cancel_schedule", text(id))
}

unsafe extern "C" fn start_fiber(
    _: *const Host,
    agent: u64,
    request: *const FiberStart,
    fiber: *mut u64,
    record: *mut Bytes,
) -> i32 {
    let it = unsafe { &*request };
    assert_eq!(it.struct_size as usize, size_of::<FiberStart>());
    let key = text(it.key);
    let what = format!("{} {} {} {key}", text(it.name), text(it.input), it.flags);
    // A fiber with the key "taken" exists.
    unsafe { *fiber = if key == "taken" { 0 } else { 9 } };
    lend(agent, r#"{"id":"f-1"}"#.to_owned(), record);
    note(agent, "start", what)
}

unsafe extern "C" fn resume(_: *const Host, agent: u64, id: Bytes, fiber: *mut u64) -> i32 {
    unsafe { *fiber = 11 };
    note(agent, "resume", text(id))
}

unsafe extern "C" fn stash(_: *const Host, agent: u64, fiber: u64, json: Bytes) -> i32 {
    note(agent, "stash", format!("{fiber} {}", text(json)))
}

unsafe extern "C" fn works_for(_: *const Host, agent: u64, fiber: u64, call: u64) -> i32 {
    assert_eq!(call, 0);
    with_notes(agent, |notes| notes.worked_for.push(fiber));
    HEARTH_OK
}

unsafe extern "C" fn settle(
    _: *const Host,
    agent: u64,
    fiber: u64,
    status: u32,
    body: Bytes,
    _record: *mut Bytes,
) -> i32 {
    note(agent, "settle", format!("{fiber} {status} {}", text(body)))
}

unsafe extern "C" fn cancel_fiber(
    _: *const Host,
    agent: u64,
    id: Bytes,
    _key: Bytes,
    reason: Bytes,
    _record: *mut Bytes,
) -> i32 {
    note(agent, "cancel_fiber", format!("{} {}", text(id), text(reason)))
}

/// For functions that the crate does not call.
unsafe extern "C" fn never() {
    std::process::abort();
}

macro_rules! table {
    ($($function:ident),* $(,)?) => {
        // Never freed, as the host's tables are not while a library is loaded.
        Box::leak(Box::new([$($function as *const c_void),*])).as_ptr().cast::<c_void>()
    };
}

unsafe extern "C" fn get_extension(_: *const Host, id: *const c_char) -> *const c_void {
    match unsafe { CStr::from_ptr(id) }.to_bytes() {
        b"hearth.agent/1" => table![evict, destroy],
        b"hearth.call/1" => table![never, notify, caller, never, never],
        b"hearth.clock/1" => table![wall_ms, never],
        b"hearth.fibers/1" => table![
            start_fiber,
            resume,
            stash,
            settle,
            never,
            never,
            cancel_fiber,
            never,
            never,
            never,
            never,
            works_for
        ],
        b"hearth.http/1" => table![target, never, never, never, add_header, never],
        b"hearth.log/1" => table![write],
        b"hearth.schedule/1" => {
            table![create_schedule, never, never, cancel_schedule, never, never]
        }
        b"hearth.state/1" => table![get_state, set_state, set_default, never],
        _ => null(),
    }
}

/// The host's table, of this size and major version.
pub fn host(struct_size: u32, abi_major: u16) -> *const Host {
    Box::leak(Box::new(Host {
        struct_size,
        abi_major,
        abi_minor: HEARTH_ABI_MINOR,
        flags: 0,
        reserved: 0,
        get_extension: Some(get_extension),
        complete: Some(complete),
        emit: None,
        submit: Some(submit),
        cancel: None,
        last_error: Some(last_error),
        post: None,
        credit: None,
    }))
}

/// The plugin that this program exports to a host.
pub fn plugin() -> &'static Plugin {
    extern "C" {
        static hearth_plugin_v1: Plugin;
    }
    static STARTED: Once = Once::new();
    // SAFETY: a constant of this program.
    let plugin = unsafe { &hearth_plugin_v1 };
    STARTED.call_once(|| {
        let host = host(size_of::<Host>() as u32, HEARTH_ABI_MAJOR);
        assert_eq!(unsafe { (plugin.init)(host, Bytes::EMPTY) }, HEARTH_OK);
    });
    plugin
}

// ---- what a host does --------------------------------------------------------------------------

/// An agent of the first class, from `create` to `destroy`.
pub struct TestAgent {
    pub id: u64,
    instance: *mut c_void,
    class: &'static Class,
}

impl TestAgent {
    /// Creates it; `Err` is the status.
    pub fn create(id: u64, options: &str) -> Result<TestAgent, i32> {
        let class = unsafe { &*(plugin().get_class)(0) };
        let mut instance = null_mut();
        let (name, options) = (Bytes::of(b"a"), Bytes::of(options.as_bytes()));
        let status = unsafe { (class.create)(class, null(), id, name, options, &mut instance) };
        match status {
            HEARTH_OK => Ok(TestAgent { id, instance, class }),
            _ => Err(status),
        }
    }

    /// Delivers an event; returns the status of `on_event`.
    pub fn event(&self, kind: u32, call: u64, name: &str, body: &str) -> i32 {
        let event = Event {
            struct_size: size_of::<Event>() as u32,
            kind,
            call,
            connection: 3,
            name: Bytes::of(name.as_bytes()),
            body: Bytes::of(body.as_bytes()),
            deadline_ms: 0,
            flags: 0,
            reserved: 0,
        };
        unsafe { (self.class.on_event)(self.instance, &event) }
    }

    /// A call with the number 1; returns the records that it caused.
    pub fn call(&self, method: &str, args: &str) -> Vec<String> {
        self.take();
        assert_eq!(self.event(HEARTH_EVENT_CALL, 1, method, args), HEARTH_OK);
        self.take()
    }

    pub fn result(&self, operation: u32, flags: u32, token: u64, status: i32) {
        let result = OperationResult {
            struct_size: size_of::<OperationResult>() as u32,
            flags,
            status,
            operation,
            token,
            body: Bytes::EMPTY,
        };
        unsafe { (self.class.on_result)(self.instance, &result) }
    }

    /// Ends the oldest sleep; returns the records that it caused.
    pub fn wake(&self, status: i32) -> Vec<String> {
        self.take();
        let token = with_notes(self.id, |notes| notes.sleeping.remove(0));
        self.result(HEARTH_OP_SLEEP, HEARTH_RESULT_FINAL, token, status);
        self.take()
    }

    /// From now on this function fails.
    pub fn fail(&self, function: &'static str, status: i32) {
        with_notes(self.id, |notes| notes.failing.insert(function, status));
    }

    /// The records since the last call.
    pub fn take(&self) -> Vec<String> {
        with_notes(self.id, |notes| std::mem::take(&mut notes.done))
    }
}

impl Drop for TestAgent {
    fn drop(&mut self) {
        unsafe { (self.class.destroy)(self.instance) }
    }
}
