//! The functions of the server for an agent.

use crate::agent::Fiber;
use crate::error::{Error, Result, Status};
use crate::ffi;
use crate::host_agent::{Callee, FiberRequest, HostAgent, Schedule};
use crate::json::Value;
use std::cell::RefCell;
use std::time::Duration;

/// The server's functions for the agent, for the time of one call.
///
/// It cannot be kept and cannot go to another thread. All its results are copies.
///
/// ```compile_fail
/// fn to_a_thread<T: Send>() {}
/// to_a_thread::<hearth::Context>();
/// ```
///
/// Every function that returns a [`Result`] fails with `CLOSING` once the server evicts the agent,
/// and with `IO` if storage fails.
pub struct Context<'a> {
    pub(crate) host: HostAgent,
    pub(crate) name: &'a str,
    /// The client of this event, or 0: a change of the state counts as that client's.
    pub(crate) caller: u64,
    /// This event, or 0.
    pub(crate) call: u64,
    /// `None` in `create`, where the host accepts no operations.
    pub(crate) fibers: Option<&'a FiberChanges>,
}

/// The changes of fibers that remain to be done after a call.
pub(crate) struct FiberChanges {
    /// The names that the class lists.
    known: &'static [&'static str],
    pub begun: RefCell<Vec<RunningFiber>>,
    pub cancelled: RefCell<Vec<String>>,
}

impl FiberChanges {
    pub fn new(known: &'static [&'static str]) -> FiberChanges {
        FiberChanges { known, begun: RefCell::default(), cancelled: RefCell::default() }
    }
}

/// A fiber whose steps run in this instance.
pub(crate) struct RunningFiber {
    pub handle: ffi::FiberHandle,
    pub fiber: Fiber,
}

/// When a schedule is due. Delays go on while the server is down; what was missed runs at its next
/// start.
pub enum When<'a> {
    /// Once, after this time.
    After(Duration),
    /// Once, at this moment of Unix time in milliseconds.
    At(i64),
    /// Repeatedly, this long after the end of the last run; at least a millisecond.
    Every(Duration),
    /// By a cron expression ("0 9 * * mon-fri") in a time zone ("Europe/Berlin"; "" is UTC).
    Cron { expression: &'a str, time_zone: &'a str },
}

/// Options of a new fiber.
#[derive(Clone, Debug, Default)]
pub struct FiberOptions<'a> {
    /// "": none. A second start with a key that is in use gives the id of the fiber that has it.
    pub key: &'a str,
    /// Keeps the record with the result after the end of the fiber, so that its key stays in use.
    pub keep_record: bool,
    /// How often the fiber begins again after an `Err`, from its last checkpoint.
    pub max_retries: u32,
}

/// An agent that has called or notified this one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentCaller {
    /// The name in its code: "ChatRoom".
    pub class: String,
    pub name: String,
    /// The id of the notification, if it is one: the same in each delivery.
    pub notification: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    Debug,
    Info,
    Warn,
    Error,
}

impl Context<'_> {
    /// The agent's name, as in `/agents/watcher/NAME`.
    pub fn name(&self) -> &str {
        self.name
    }

    // ---- state ---------------------------------------------------------------------------------

    /// The state: the last one that was set, or the default, or null.
    pub fn state(&self) -> Result<Value> {
        match self.host.state() {
            Ok(json) => parse(&json),
            Err(error) if error.status() == Status::NOT_FOUND => Ok(Value::Null),
            Err(error) => Err(error),
        }
    }

    /// Replaces the state: stored with this turn, and sent to every client.
    pub fn set_state(&self, state: &Value) -> Result<()> {
        self.host.set_state(self.caller, &state.to_string())
    }

    /// The state to show until one is set. It is not stored: call this in `create`.
    pub fn set_default_state(&self, state: &Value) -> Result<()> {
        self.host.set_default_state(&state.to_string())
    }

    // ---- other agents --------------------------------------------------------------------------

    /// Calls a method of another agent, which is created if necessary, and waits for no answer;
    /// returns the id of the notification. It is stored with this turn and delivered at least once,
    /// in order for each agent, with the same id each time. `arguments` is an array.
    pub fn notify(
        &self,
        class: &str,
        name: &str,
        method: &str,
        arguments: &Value,
    ) -> Result<String> {
        let to = Callee { class, name, method };
        self.host.notify(&to, &arguments.to_string(), self.call)
    }

    /// The agent that this event comes from; `None`: a client, an HTTP request, or the server.
    pub fn caller_agent(&self) -> Result<Option<AgentCaller>> {
        let record = match self.host.calling_agent(self.call) {
            Ok(json) => parse(&json)?,
            Err(error) if error.status() == Status::NOT_FOUND => return Ok(None),
            Err(error) => return Err(error),
        };
        let text = |member: &str| record[member].as_text().unwrap_or_default().to_owned();
        let notification = record["notification"].as_text().map(str::to_owned);
        Ok(Some(AgentCaller { class: text("class"), name: text("name"), notification }))
    }

    // ---- schedules -----------------------------------------------------------------------------

    /// Calls [`crate::Agent::on_callback`] later; returns the id. `Every` and `Cron` exist once: a
    /// second equal request returns the id of the existing schedule.
    pub fn schedule(&self, when: When<'_>, callback: &str, payload: &Value) -> Result<String> {
        let span = |time: Duration| i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
        let (kind, when_ms, cron, time_zone) = match when {
            When::After(wait) => (ffi::HEARTH_SCHEDULE_DELAY, span(wait), "", ""),
            When::At(unix_ms) => (ffi::HEARTH_SCHEDULE_AT, unix_ms, "", ""),
            When::Every(interval) => (ffi::HEARTH_SCHEDULE_INTERVAL, span(interval), "", ""),
            When::Cron { expression, time_zone } => {
                (ffi::HEARTH_SCHEDULE_CRON, 0, expression, time_zone)
            }
        };
        let payload = &payload.to_string();
        let request = Schedule { kind, when_ms, cron, time_zone, callback, payload };
        id_of(&self.host.create_schedule(&request)?)
    }

    /// `NOT_FOUND`: no schedule has this id.
    pub fn cancel_schedule(&self, id: &str) -> Result<()> {
        self.host.cancel_schedule(id)
    }

    // ---- fibers --------------------------------------------------------------------------------

    /// Starts a fiber and returns its id. It is on disk when this returns; its first step follows
    /// this call. `INVALID`: [`crate::Agent::FIBERS`] does not list the name.
    pub fn start_fiber(&self, name: &str, input: &Value) -> Result<String> {
        self.start_fiber_with(name, input, &FiberOptions::default())
    }

    /// `CONFLICT`: a fiber with another name or input has the key.
    pub fn start_fiber_with(
        &self,
        name: &str,
        input: &Value,
        options: &FiberOptions<'_>,
    ) -> Result<String> {
        let fibers = self.fibers()?;
        if !fibers.known.contains(&name) {
            return Err(Error::invalid(format!("FIBERS does not list the fiber {name}")));
        }
        let (handle, record) = self.host.start_fiber(&FiberRequest {
            name,
            key: options.key,
            input: &input.to_string(),
            keep_record: options.keep_record,
            max_retries: options.max_retries,
        })?;
        let id = id_of(&record)?;
        if handle != 0 {
            let fiber = Fiber {
                id: id.clone(),
                name: name.to_owned(),
                input: input.clone(),
                checkpoint: Value::Null,
            };
            fibers.begun.borrow_mut().push(RunningFiber { handle, fiber });
        }
        Ok(id)
    }

    /// Ends a fiber: no further step runs. `NOT_FOUND`: it has ended before.
    pub fn cancel_fiber(&self, id: &str, reason: &str) -> Result<()> {
        let fibers = self.fibers()?;
        self.host.cancel_fiber(id, reason)?;
        fibers.cancelled.borrow_mut().push(id.to_owned());
        Ok(())
    }

    fn fibers(&self) -> Result<&FiberChanges> {
        self.fibers.ok_or_else(|| {
            Error::new(Status::FORBIDDEN, "create() changes no fibers: use on_start()")
        })
    }

    // ---- the rest ------------------------------------------------------------------------------

    /// Milliseconds of Unix time. The clock may be set, either way.
    pub fn now_ms(&self) -> i64 {
        self.host.now_ms()
    }

    /// A line in the server's log, with the class and the agent.
    pub fn log(&self, level: Level, text: &str) {
        let level = match level {
            Level::Debug => ffi::HEARTH_LOG_DEBUG,
            Level::Info => ffi::HEARTH_LOG_INFO,
            Level::Warn => ffi::HEARTH_LOG_WARN,
            Level::Error => ffi::HEARTH_LOG_ERROR,
        };
        crate::host::log(self.agent(), level, text);
    }

    /// Asks the server to evict the agent after this call. Clients stay connected.
    pub fn request_eviction(&self) {
        self.host.evict();
    }

    /// Destroys the agent and everything that it has stored, after this call.
    pub fn destroy(&self) -> Result<()> {
        self.host.destroy()
    }

    // ---- for functions that are not wrapped ----------------------------------------------------

    /// The host's table.
    pub fn host(&self) -> *const ffi::Host {
        self.host.tables.host
    }

    /// The agent's number.
    pub fn agent(&self) -> ffi::Agent {
        self.host.id
    }
}

pub(crate) fn parse(json: &str) -> Result<Value> {
    Value::parse(json).map_err(Error::invalid)
}

/// The id in a record that the host gave.
fn id_of(record: &str) -> Result<String> {
    match parse(record)?["id"].as_text() {
        Some(id) => Ok(id.to_owned()),
        None => Err(Error::new(Status::IO, "the host gave a record without id")),
    }
}
