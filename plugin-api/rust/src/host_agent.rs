//! The host's functions for one agent, with Rust's types: lent bytes are copied, and a negative
//! status is an [`Error`] with the host's text.
//!
//! Threads: inside a call of the host for this agent. Elsewhere the host answers `WRONG_THREAD` and
//! does nothing.

use crate::error::{Error, Result, Status};
use crate::ffi::{self, Bytes, FiberHandle};
use crate::host::Tables;
use std::mem::size_of;
use std::ptr::addr_of;

/// The first two arguments of the host's functions.
#[derive(Clone, Copy)]
pub(crate) struct HostAgent {
    pub tables: &'static Tables,
    pub id: u64,
}

// Below, every argument is lent only for the call, as the host requires.

impl HostAgent {
    fn check(&self, status: i32) -> Result<()> {
        if status >= 0 {
            return Ok(());
        }
        let mut text = Bytes::EMPTY;
        // SAFETY: see above. `text` is good until the next call to the host.
        let words = unsafe {
            match (self.tables.last_error)(self.tables.host, self.id, &mut text) {
                0.. => String::from_utf8_lossy(text.as_slice()).into_owned(),
                _ => String::new(),
            }
        };
        let words = if words.is_empty() { "the host refused it".to_owned() } else { words };
        Err(Error::new(Status(status), words))
    }

    /// Copies the bytes that a function of the host lends through its last argument.
    fn lent(&self, call: impl FnOnce(&mut Bytes) -> i32) -> Result<String> {
        let mut text = Bytes::EMPTY;
        self.check(call(&mut text))?;
        // SAFETY: the host has succeeded, so `text` is good until the next call to it.
        let text = unsafe { text.as_slice() };
        Ok(String::from_utf8_lossy(text).into_owned())
    }

    // ---- events and operations -----------------------------------------------------------------

    /// Completes an event; with `call` 0, sets the text of the error that is about to be returned.
    /// The host's status is ignored: `GONE` is normal.
    pub fn complete(&self, call: u64, status: i32, body: &str) {
        let body = text(body);
        // SAFETY: see above.
        unsafe { (self.tables.complete)(self.tables.host, self.id, call, status, body) };
    }

    /// A result with this token comes after this time.
    pub fn sleep(&self, milliseconds: u64, token: u64) -> Result<()> {
        let request = ffi::SleepRequest { milliseconds };
        let bytes = Bytes { ptr: addr_of!(request).cast(), len: size_of::<ffi::SleepRequest>() };
        let (submit, host) = (self.tables.submit, self.tables.host);
        let mut operation = 0;
        // SAFETY: see above.
        let status =
            unsafe { submit(host, self.id, ffi::HEARTH_OP_SLEEP, bytes, token, &mut operation) };
        self.check(status)
    }

    /// Asks for eviction. If the host refuses, it is evicting the agent already.
    pub fn evict(&self) {
        // SAFETY: see above.
        unsafe { (self.tables.agent.evict)(self.tables.host, self.id) };
    }

    pub fn destroy(&self) -> Result<()> {
        // SAFETY: see above.
        self.check(unsafe { (self.tables.agent.destroy)(self.tables.host, self.id) })
    }

    pub fn now_ms(&self) -> i64 {
        // SAFETY: see above.
        unsafe { (self.tables.clock.wall_ms)(self.tables.host) }
    }

    // ---- requests ------------------------------------------------------------------------------

    pub fn request_target(&self, call: u64) -> Result<String> {
        let target = self.tables.http.target;
        // SAFETY: see above.
        self.lent(|out| unsafe { target(self.tables.host, self.id, call, out) })
    }

    pub fn add_header(&self, call: u64, name: &str, value: &str) -> Result<()> {
        let add = self.tables.http.add_header;
        // SAFETY: see above.
        self.check(unsafe { add(self.tables.host, self.id, call, text(name), text(value)) })
    }

    // ---- state ---------------------------------------------------------------------------------

    /// `NOT_FOUND`: there is none.
    pub fn state(&self) -> Result<String> {
        let get = self.tables.state.get;
        // SAFETY: see above.
        self.lent(|out| unsafe { get(self.tables.host, self.id, out) })
    }

    pub fn set_state(&self, on_behalf: u64, json: &str) -> Result<()> {
        let set = self.tables.state.set;
        // SAFETY: see above.
        self.check(unsafe { set(self.tables.host, self.id, on_behalf, text(json)) })
    }

    pub fn set_default_state(&self, json: &str) -> Result<()> {
        let set_default = self.tables.state.set_default;
        // SAFETY: see above.
        self.check(unsafe { set_default(self.tables.host, self.id, text(json)) })
    }

    // ---- other agents --------------------------------------------------------------------------

    /// Gives the id of the notification. `call`: the event that it is made in; 0: none.
    pub fn notify(&self, to: &Callee<'_>, arguments: &str, call: u64) -> Result<String> {
        let table = self.calls()?;
        let request = ffi::CallRequest {
            struct_size: size_of::<ffi::CallRequest>() as u32,
            flags: 0,
            agent_class: text(to.class),
            name: text(to.name),
            method: text(to.method),
            arguments: text(arguments),
            call,
            timeout_ms: 0,
            window: 0,
        };
        // SAFETY: see above.
        self.lent(|out| unsafe { (table.notify)(self.tables.host, self.id, &request, out) })
    }

    /// The record of the agent that the event comes from. `NOT_FOUND`: it comes from no agent.
    pub fn calling_agent(&self, call: u64) -> Result<String> {
        let table = self.calls()?;
        // SAFETY: see above.
        self.lent(|out| unsafe { (table.caller)(self.tables.host, self.id, call, out) })
    }

    fn calls(&self) -> Result<&'static ffi::CallV1> {
        let absent = || Error::new(Status(ffi::HEARTH_E_UNSUPPORTED), "no hearth.call/1");
        self.tables.call.ok_or_else(absent)
    }

    // ---- schedules -----------------------------------------------------------------------------

    /// Gives the record.
    pub fn create_schedule(&self, request: &Schedule<'_>) -> Result<String> {
        let request = ffi::ScheduleRequest {
            struct_size: size_of::<ffi::ScheduleRequest>() as u32,
            r#type: request.kind,
            callback: text(request.callback),
            payload: text(request.payload),
            when_ms: request.when_ms,
            cron: text(request.cron),
            time_zone: text(request.time_zone),
            // 0: the host's defaults.
            idempotent: 0,
            misfire: 0,
            misfire_limit: 0,
            overlap: 0,
            flags: 0,
            max_attempts: 0,
            retry_base_ms: 0,
            retry_max_ms: 0,
        };
        let create = self.tables.schedule.create;
        let mut created = 0;
        // SAFETY: see above.
        self.lent(|out| unsafe { create(self.tables.host, self.id, &request, out, &mut created) })
    }

    pub fn cancel_schedule(&self, id: &str) -> Result<()> {
        let cancel = self.tables.schedule.cancel;
        // SAFETY: see above.
        self.check(unsafe { cancel(self.tables.host, self.id, text(id)) })
    }

    // ---- fibers --------------------------------------------------------------------------------

    /// Returns the handle (0: the fiber existed, and its work is not this call's) and the record.
    pub fn start_fiber(&self, request: &FiberRequest<'_>) -> Result<(FiberHandle, String)> {
        let request = ffi::FiberStart {
            struct_size: size_of::<ffi::FiberStart>() as u32,
            policy: 0,
            flags: if request.keep_record { ffi::HEARTH_FIBER_KEEP_RECORD } else { 0 },
            max_retries: request.max_retries,
            name: text(request.name),
            id: Bytes::EMPTY,
            key: text(request.key),
            parent: Bytes::EMPTY,
            input: text(request.input),
            metadata: Bytes::EMPTY,
            retry_base_ms: 0,
            retry_max_ms: 0,
            lane: Bytes::EMPTY,
        };
        let start = self.tables.fibers.start;
        let mut handle = 0;
        // SAFETY: see above.
        let record = self
            .lent(|out| unsafe { start(self.tables.host, self.id, &request, &mut handle, out) })?;
        Ok((handle, record))
    }

    pub fn resume_fiber(&self, id: &str) -> Result<FiberHandle> {
        let resume = self.tables.fibers.resume;
        let mut handle = 0;
        // SAFETY: see above.
        self.check(unsafe { resume(self.tables.host, self.id, text(id), &mut handle) })?;
        Ok(handle)
    }

    pub fn stash(&self, handle: FiberHandle, json: &str) -> Result<()> {
        let stash = self.tables.fibers.stash;
        // SAFETY: see above.
        self.check(unsafe { stash(self.tables.host, self.id, handle, text(json)) })
    }

    /// From now on this call does the work of this fiber (0: of no fiber): a crash of the server
    /// counts for this fiber alone. After the first use, each further call begins as the work of no
    /// fiber.
    pub fn works_for(&self, handle: FiberHandle) {
        let works_for = self.tables.fibers.works_for;
        // SAFETY: see above. A failure of an agent that is being destroyed does not matter.
        let _ = unsafe { works_for(self.tables.host, self.id, handle, 0) };
    }

    /// `status`: `HEARTH_FIBER_COMPLETED`, `_ERROR`, `_FINAL_ERROR` or `_NEEDS_CODE`.
    pub fn settle(&self, handle: FiberHandle, status: u32, body: &str) -> Result<()> {
        let settle = self.tables.fibers.settle;
        let mut record = Bytes::EMPTY;
        // SAFETY: see above.
        self.check(unsafe {
            settle(self.tables.host, self.id, handle, status, text(body), &mut record)
        })
    }

    pub fn cancel_fiber(&self, id: &str, reason: &str) -> Result<()> {
        let cancel = self.tables.fibers.cancel;
        let (host, id, no_key, why) = (self.tables.host, text(id), Bytes::EMPTY, text(reason));
        let mut record = Bytes::EMPTY;
        // SAFETY: see above.
        self.check(unsafe { cancel(host, self.id, id, no_key, why, &mut record) })
    }
}

/// A method of an agent.
pub(crate) struct Callee<'a> {
    pub class: &'a str,
    pub name: &'a str,
    pub method: &'a str,
}

/// The request of `create_schedule`; `kind` is a `HEARTH_SCHEDULE_*`.
pub(crate) struct Schedule<'a> {
    pub kind: u32,
    pub when_ms: i64,
    pub cron: &'a str,
    pub time_zone: &'a str,
    pub callback: &'a str,
    pub payload: &'a str,
}

/// The request of `start_fiber`; "" is none.
pub(crate) struct FiberRequest<'a> {
    pub name: &'a str,
    pub key: &'a str,
    pub input: &'a str,
    pub keep_record: bool,
    pub max_retries: u32,
}

fn text(text: &str) -> Bytes {
    Bytes::of(text.as_bytes())
}
