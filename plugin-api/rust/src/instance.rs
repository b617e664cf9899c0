//! One agent in memory, between the C interface and an [`Agent`].
//!
//! Promises
//!   P1  Every accepted event is completed once, also if the agent's code panics: the completion
//!       comes after the code, outside of what may panic.
//!   P2  Nothing unwinds into the host: every function that the host calls is a `guard`.
//!   P3  After a panic the host is asked to evict the agent.
//!   P4  A step's writes and its checkpoint are one commit.
//!   P5  A fiber whose next step cannot be arranged is not lost: the host is asked to evict the
//!       agent, and offers the fiber to the next instance.

use crate::agent::{Agent, Args, Request, Run};
use crate::context::{parse, Context, FiberChanges, RunningFiber};
use crate::error::{Error, Result};
use crate::ffi::{self, Bytes};
use crate::host;
use crate::host_agent::HostAgent;
use crate::json::Value;
use crate::panics::{guard, PANICKED};
use std::collections::BTreeMap;
use std::ffi::c_void;

pub(crate) struct Instance<T> {
    pub(crate) host: HostAgent,
    name: String,
    agent: T,
    /// The fibers whose steps run in this instance, by the token of the sleep before the next step.
    pub(crate) fibers: BTreeMap<u64, RunningFiber>,
    pub(crate) next_token: u64,
}

/// The outcome of an event.
pub(crate) enum Answer {
    /// It was accepted and is completed with this body.
    Done(String),
    /// It was not accepted, and is not completed.
    Refused(i32),
}

/// An event as the host lends it, for the time of the call.
pub(crate) struct Incoming<'a> {
    kind: u32,
    call: u64,
    connection: u64,
    name: &'a [u8],
    body: &'a [u8],
}

impl Incoming<'_> {
    pub(crate) fn name(&self) -> Result<&str> {
        text(self.name)
    }

    /// The body as JSON.
    pub(crate) fn json(&self) -> Result<Value> {
        parse(text(self.body)?)
    }
}

// ---- what the host calls -----------------------------------------------------------------------

pub(crate) unsafe extern "C" fn create<T: Agent>(
    _class: *const ffi::Class,
    _host: *const ffi::Host,
    agent: ffi::Agent,
    name: Bytes,
    options: Bytes,
    instance: *mut *mut c_void,
) -> ffi::Status {
    let host = match host::tables() {
        Some(tables) => HostAgent { tables, id: agent },
        None => return ffi::HEARTH_E_INVALID, // before init
    };
    // SAFETY: the host lends them for this call.
    let (name, options) = unsafe { (name.as_slice(), options.as_slice()) };
    match guard(agent, || make::<T>(host, name, options)) {
        Ok(Ok(made)) => {
            // SAFETY: the host's place for the result.
            unsafe { *instance = Box::into_raw(made).cast() };
            ffi::HEARTH_OK
        }
        Ok(Err(error)) => refuse(host, error.status().code(), error.text()),
        Err(_) => refuse(host, ffi::HEARTH_E_PLUGIN, PANICKED),
    }
}

pub(crate) unsafe extern "C" fn destroy<T: Agent>(instance: *mut c_void) {
    // SAFETY: made by `create`, and given back once.
    let instance = unsafe { Box::from_raw(instance.cast::<Instance<T>>()) };
    let agent = instance.host.id;
    // If a destructor panics, the log says so; the rest of its memory is lost.
    let _ = guard(agent, move || drop(instance));
}

pub(crate) unsafe extern "C" fn on_event<T: Agent>(
    instance: *mut c_void,
    event: *const ffi::Event,
) -> ffi::Status {
    // SAFETY: made by `create`, and the host's calls for one agent come one after the other.
    let instance = unsafe { &mut *instance.cast::<Instance<T>>() };
    // SAFETY: the host lends the event and its bytes for this call.
    let event = unsafe {
        Incoming {
            kind: (*event).kind,
            call: (*event).call,
            connection: (*event).connection,
            name: (*event).name.as_slice(),
            body: (*event).body.as_slice(),
        }
    };
    let host = instance.host;
    let outcome = guard(host.id, || instance.answer(&event));
    let (status, body) = match &outcome {
        Ok(Ok(Answer::Done(body))) => (ffi::HEARTH_OK, body.as_str()),
        Ok(Ok(Answer::Refused(status))) => return *status,
        Ok(Err(error)) => (error.status().code(), error.text()),
        Err(_) => (ffi::HEARTH_E_PLUGIN, PANICKED),
    };
    if event.call != 0 || status < 0 {
        host.complete(event.call, status, body);
    }
    if outcome.is_err() {
        host.evict();
    }
    // A synchronous event is over when this returns; for other events OK means accepted.
    if event.call == 0 {
        status
    } else {
        ffi::HEARTH_OK
    }
}

/// Every event is over when `on_event` returns, so there is nothing to cancel.
pub(crate) unsafe extern "C" fn on_cancel(_instance: *mut c_void, _call: u64) {}

pub(crate) unsafe extern "C" fn on_result<T: Agent>(
    instance: *mut c_void,
    result: *const ffi::OperationResult,
) {
    // SAFETY: as in `on_event`.
    let instance = unsafe { &mut *instance.cast::<Instance<T>>() };
    // SAFETY: the host lends it for this call.
    let result = unsafe { &*result };
    if result.operation != ffi::HEARTH_OP_SLEEP || result.flags & ffi::HEARTH_RESULT_FINAL == 0 {
        return;
    }
    let host = instance.host;
    if guard(host.id, || instance.go_on(result.token, result.status)).is_err() {
        host.evict();
    }
}

/// The text of the error that is about to be returned.
fn refuse(host: HostAgent, status: i32, text: &str) -> ffi::Status {
    host.complete(0, status, text);
    status
}

fn make<T: Agent>(host: HostAgent, name: &[u8], options: &[u8]) -> Result<Box<Instance<T>>> {
    let name = text(name)?.to_owned();
    let options = parse(text(options)?)?;
    let cx = Context { host, name: &name, caller: 0, call: 0, fibers: None };
    let agent = T::create(&cx, &options)?;
    Ok(Box::new(Instance { host, name, agent, fibers: BTreeMap::new(), next_token: 1 }))
}

// ---- events ------------------------------------------------------------------------------------

impl<T: Agent> Instance<T> {
    fn answer(&mut self, event: &Incoming<'_>) -> Result<Answer> {
        let done = |body: Value| Ok(Answer::Done(body.to_string()));
        let nothing = |()| Ok(Answer::Done(String::new()));
        match event.kind {
            ffi::HEARTH_EVENT_START => {
                self.host.works_for(0);
                nothing(self.run(event.connection, event.call, |agent, cx| agent.on_start(cx))?)
            }
            ffi::HEARTH_EVENT_CALL => {
                let method = event.name()?;
                let args = args_of(event.json()?)?;
                done(self.run(event.connection, event.call, |agent, cx| {
                    agent.on_call(cx, method, &args)
                })?)
            }
            ffi::HEARTH_EVENT_REQUEST => done(self.request(event)?),
            ffi::HEARTH_EVENT_STATE_CHECK => {
                let next = event.json()?;
                nothing(
                    self.run(event.connection, event.call, |agent, cx| {
                        agent.check_state(cx, &next)
                    })?,
                )
            }
            ffi::HEARTH_EVENT_SCHEDULE => {
                let callback = event.name()?;
                let run = run_of(&event.json()?);
                nothing(self.run(0, event.call, |agent, cx| agent.on_callback(cx, callback, &run))?)
            }
            ffi::HEARTH_EVENT_FIBER_RECOVERED => self.recover(event),
            // Events that the crate does not wrap, and events of later versions of the host.
            _ => Ok(Answer::Refused(ffi::HEARTH_E_UNSUPPORTED)),
        }
    }

    /// Calls the agent, and then does the remaining changes of fibers.
    pub(crate) fn run<R>(
        &mut self,
        caller: u64,
        call: u64,
        code: impl FnOnce(&mut T, &Context<'_>) -> Result<R>,
    ) -> Result<R> {
        let changes = FiberChanges::new(T::FIBERS);
        let cx =
            Context { host: self.host, name: &self.name, caller, call, fibers: Some(&changes) };
        let outcome = code(&mut self.agent, &cx);
        for running in changes.begun.into_inner() {
            self.arrange(running, 0);
        }
        for id in changes.cancelled.into_inner() {
            self.fibers.retain(|_, running| running.fiber.id != id);
        }
        outcome
    }

    fn request(&mut self, event: &Incoming<'_>) -> Result<Value> {
        let request = Request {
            method: event.name()?.to_owned(),
            target: self.host.request_target(event.call)?,
            body: event.body.to_vec(),
        };
        let answer = self.run(0, event.call, |agent, cx| agent.on_request(cx, &request))?;
        self.host.add_header(event.call, "Content-Type", "application/json")?;
        Ok(answer)
    }
}

// ---- reading -----------------------------------------------------------------------------------

fn text(bytes: &[u8]) -> Result<&str> {
    std::str::from_utf8(bytes).map_err(|_| Error::invalid("not UTF-8"))
}

fn args_of(body: Value) -> Result<Args> {
    match body {
        Value::Array(values) => Ok(Args::new(values)),
        _ => Err(Error::invalid("the arguments are no array")),
    }
}

fn run_of(body: &Value) -> Run {
    Run {
        id: body["id"].as_text().unwrap_or_default().to_owned(),
        payload: body["payload"].clone(),
        scheduled_for_ms: body["scheduled_for"].as_i64().unwrap_or_default(),
        attempt: body["attempt"].as_i64().unwrap_or(1),
    }
}
