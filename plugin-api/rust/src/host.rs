//! The host's tables, from `init` to `deinit`.
//!
//! Threads: the tables are constant from the end of `init` to `deinit`, and every thread may read
//! them.

use crate::ffi::{self, Bytes};
use std::ffi::{c_void, CStr};
use std::mem::size_of;
use std::os::raw::c_char;
use std::ptr::{addr_of, null_mut};
use std::sync::atomic::{AtomicPtr, Ordering};

/// The extensions that the crate cannot work without, as the note lists them.
#[macro_export]
#[doc(hidden)]
macro_rules! __hearth_extensions {
    () => {
        "[\"hearth.agent/1\",\"hearth.clock/1\",\"hearth.fibers/1\",\"hearth.http/1\",\
         \"hearth.log/1\",\"hearth.schedule/1\",\"hearth.state/1\"]"
    };
}

pub(crate) struct Tables {
    pub host: *const ffi::Host,
    pub complete: unsafe extern "C" fn(*const ffi::Host, u64, u64, i32, Bytes) -> i32,
    pub submit: unsafe extern "C" fn(*const ffi::Host, u64, u32, Bytes, u64, *mut u64) -> i32,
    pub last_error: unsafe extern "C" fn(*const ffi::Host, u64, *mut Bytes) -> i32,
    pub agent: &'static ffi::AgentV1,
    /// Absent: this host has no other agents.
    pub call: Option<&'static ffi::CallV1>,
    pub clock: &'static ffi::ClockV1,
    pub fibers: &'static ffi::FibersV1,
    pub http: &'static ffi::HttpV1,
    pub log: &'static ffi::LogV1,
    pub schedule: &'static ffi::ScheduleV1,
    pub state: &'static ffi::StateV1,
}

// SAFETY: the host's tables never change, and the host says which functions work on which thread.
unsafe impl Send for Tables {}
unsafe impl Sync for Tables {}

/// Null outside of `init` to `deinit`. Each library has its own, since each has its own copy of
/// this crate.
static TABLES: AtomicPtr<Tables> = AtomicPtr::new(null_mut());

/// The tables. They live until `deinit`; no instance is left then.
pub(crate) fn tables() -> Option<&'static Tables> {
    // SAFETY: null or made by `start`, and freed when no code of an agent runs any more.
    unsafe { TABLES.load(Ordering::Acquire).as_ref() }
}

/// Looks the tables up. `UNSUPPORTED` if the host lacks something.
///
/// # Safety
/// `host` is the argument of `init`.
pub(crate) unsafe fn start(host: *const ffi::Host) -> i32 {
    // SAFETY: as above.
    match unsafe { read_tables(host) } {
        Some(tables) => {
            stop();
            TABLES.store(Box::into_raw(Box::new(tables)), Ordering::Release);
            ffi::HEARTH_OK
        }
        None => ffi::HEARTH_E_UNSUPPORTED,
    }
}

/// Frees the tables. No instance is left.
pub(crate) fn stop() {
    let tables = TABLES.swap(null_mut(), Ordering::AcqRel);
    if !tables.is_null() {
        // SAFETY: made by `start`, and taken out by this thread alone.
        drop(unsafe { Box::from_raw(tables) });
    }
}

/// # Safety
/// `host` is the argument of `init`.
unsafe fn read_tables(host: *const ffi::Host) -> Option<Tables> {
    // SAFETY: this member always exists. The table of another server may end after it, so nothing
    // else is read before the size is known.
    let size = unsafe { addr_of!((*host).struct_size).read() } as usize;
    if size < size_of::<ffi::Host>() {
        return None;
    }
    // SAFETY: the host's table is constant and as long as it says.
    let table = unsafe { &*host };
    if table.abi_major != ffi::HEARTH_ABI_MAJOR {
        return None;
    }
    let get = table.get_extension?;
    // SAFETY: each type is the struct of its extension; the host's tables live until `deinit`.
    unsafe {
        Some(Tables {
            host,
            complete: table.complete?,
            submit: table.submit?,
            last_error: table.last_error?,
            agent: find(host, get, b"hearth.agent/1\0")?,
            call: find(host, get, b"hearth.call/1\0"),
            clock: find(host, get, b"hearth.clock/1\0")?,
            fibers: find(host, get, b"hearth.fibers/1\0")?,
            http: find(host, get, b"hearth.http/1\0")?,
            log: find(host, get, b"hearth.log/1\0")?,
            schedule: find(host, get, b"hearth.schedule/1\0")?,
            state: find(host, get, b"hearth.state/1\0")?,
        })
    }
}

/// # Safety
/// `T` is the struct of the extension `id`.
unsafe fn find<T>(
    host: *const ffi::Host,
    get: unsafe extern "C" fn(*const ffi::Host, *const c_char) -> *const c_void,
    id: &'static [u8],
) -> Option<&'static T> {
    let id = CStr::from_bytes_with_nul(id).ok()?;
    // SAFETY: the host gives null or a table that lives until `deinit`.
    unsafe { get(host, id.as_ptr()).cast::<T>().as_ref() }
}

/// One line of the server's log. `agent` 0: the line names the library. Any thread.
pub(crate) fn log(agent: u64, level: i32, text: &str) {
    if let Some(tables) = tables() {
        // SAFETY: `text` is lent for the call.
        unsafe { (tables.log.write)(tables.host, agent, level, Bytes::of(text.as_bytes())) }
    }
}
