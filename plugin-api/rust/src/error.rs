//! Failures of a handler, as the caller reads them.

use crate::ffi;
use std::fmt;

/// Why something failed: one of the `HEARTH_E_*` codes of `hearth/abi.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status(pub(crate) i32);

impl Status {
    /// An argument is wrong. HTTP: 400.
    pub const INVALID: Status = Status(ffi::HEARTH_E_INVALID);
    /// The host or the agent does not know the operation.
    pub const UNSUPPORTED: Status = Status(ffi::HEARTH_E_UNSUPPORTED);
    /// The host evicts the agent and takes no new work.
    pub const CLOSING: Status = Status(ffi::HEARTH_E_CLOSING);
    /// The call, the fiber or the agent does not exist any more. Often normal.
    pub const GONE: Status = Status(ffi::HEARTH_E_GONE);
    /// The agent's code failed. The text is for the log and other agents: clients read "the method
    /// failed" and the trace. HTTP: 500.
    pub const PLUGIN: Status = Status(ffi::HEARTH_E_PLUGIN);
    /// A limit of the class or the server was reached.
    pub const LIMIT: Status = Status(ffi::HEARTH_E_LIMIT);
    /// Not now; a later try may succeed.
    pub const BUSY: Status = Status(ffi::HEARTH_E_BUSY);
    /// Storage failed. The host evicts the agent.
    pub const IO: Status = Status(ffi::HEARTH_E_IO);
    /// No such method, row or callback. HTTP: 404.
    pub const NOT_FOUND: Status = Status(ffi::HEARTH_E_NOT_FOUND);
    /// A different object with this key exists.
    pub const CONFLICT: Status = Status(ffi::HEARTH_E_CONFLICT);
    /// The caller may not do this. HTTP: 403.
    pub const FORBIDDEN: Status = Status(ffi::HEARTH_E_FORBIDDEN);
    /// The agent's code failed, and no retry mends it: fibers, schedules and alarms make none.
    /// HTTP: 500.
    pub const FINAL: Status = Status(ffi::HEARTH_E_FINAL);
    /// This version of the code cannot read what an earlier one has stored: a fiber or a schedule
    /// waits for another version.
    pub const UNREADABLE: Status = Status(ffi::HEARTH_E_UNREADABLE);

    /// The number that `hearth/abi.h` gives this status; negative.
    pub fn code(self) -> i32 {
        self.0
    }
}

/// A failure. Its text reaches the caller, so it must not contain internals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    status: Status,
    text: String,
}

pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub fn new(status: Status, text: impl Into<String>) -> Error {
        Error { status, text: text.into() }
    }

    /// The arguments are wrong.
    pub fn invalid(text: impl Into<String>) -> Error {
        Error::new(Status::INVALID, text)
    }

    /// The answer to a call of a method that the class does not have.
    pub fn no_method(method: &str) -> Error {
        Error::new(Status::NOT_FOUND, format!("Method {method} does not exist"))
    }

    /// The answer to a schedule whose callback the class does not have. The host keeps the schedule
    /// and tries it again later.
    pub fn no_callback(callback: &str) -> Error {
        Error::new(Status::NOT_FOUND, format!("Callback {callback} does not exist"))
    }

    pub fn status(&self) -> Status {
        self.status
    }

    pub fn text(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Error {}

/// A failure of the agent's own code: `Err("the gate is shut".into())`.
impl From<&str> for Error {
    fn from(text: &str) -> Error {
        Error::new(Status::PLUGIN, text)
    }
}

impl From<String> for Error {
    fn from(text: String) -> Error {
        Error::new(Status::PLUGIN, text)
    }
}
