//! The C interface, by hand: `hearth/abi.h` and the extensions that this crate uses.
//!
//! The headers are the specification of names and meanings. `layout_test.rs` compares sizes,
//! offsets, the order of the members and the numbers with the headers.
//!
//! For functions that the crate does not wrap: [`crate::Context::host`] and
//! [`crate::Context::agent`] are the first two arguments of nearly every function of the host.

use std::ffi::c_void;
use std::mem::size_of;
use std::os::raw::c_char;

// ---- words -------------------------------------------------------------------------------------

pub const HEARTH_MAGIC: u64 = 0x0100_4854_5241_4548;
pub const HEARTH_ABI_MAJOR: u16 = 1;
pub const HEARTH_ABI_MINOR: u16 = 0;

pub type Status = i32;
pub type Agent = u64;
/// A fiber that runs in this instance.
pub type FiberHandle = u64;

/// Emits the constants and, for `layout_test.rs`, a list of them.
macro_rules! numbers {
    ($($name:ident: $type:ty = $value:literal;)*) => {
        $(pub const $name: $type = $value;)*
        #[cfg(test)]
        pub(crate) const NUMBERS: &[(&str, i64)] = &[$((stringify!($name), $value)),*];
    };
}

numbers! {
    HEARTH_OK: i32 = 0;
    HEARTH_E_INVALID: i32 = -1;
    HEARTH_E_NOMEM: i32 = -2;
    HEARTH_E_UNSUPPORTED: i32 = -3;
    HEARTH_E_CANCELLED: i32 = -4;
    HEARTH_E_TIMEOUT: i32 = -5;
    HEARTH_E_CLOSING: i32 = -6;
    HEARTH_E_GONE: i32 = -7;
    HEARTH_E_WRONG_THREAD: i32 = -8;
    HEARTH_E_PLUGIN: i32 = -9;
    HEARTH_E_LIMIT: i32 = -10;
    HEARTH_E_BUSY: i32 = -11;
    HEARTH_E_IO: i32 = -12;
    HEARTH_E_NOT_FOUND: i32 = -13;
    HEARTH_E_CONFLICT: i32 = -14;
    HEARTH_E_FORBIDDEN: i32 = -15;
    HEARTH_E_FINAL: i32 = -16;
    HEARTH_E_UNREADABLE: i32 = -17;

    HEARTH_EVENT_START: u32 = 1;
    HEARTH_EVENT_CALL: u32 = 6;
    HEARTH_EVENT_REQUEST: u32 = 7;
    HEARTH_EVENT_STATE_CHECK: u32 = 8;
    HEARTH_EVENT_FIBER_RECOVERED: u32 = 11;
    HEARTH_EVENT_SCHEDULE: u32 = 12;

    HEARTH_RESULT_FINAL: u32 = 1;
    HEARTH_OP_SLEEP: u32 = 1;
    HEARTH_CLASS_CHECKS_STATE: u32 = 1;

    HEARTH_LOG_DEBUG: i32 = 1;
    HEARTH_LOG_INFO: i32 = 2;
    HEARTH_LOG_WARN: i32 = 3;
    HEARTH_LOG_ERROR: i32 = 4;

    HEARTH_SCHEDULE_DELAY: u32 = 1;
    HEARTH_SCHEDULE_AT: u32 = 2;
    HEARTH_SCHEDULE_CRON: u32 = 3;
    HEARTH_SCHEDULE_INTERVAL: u32 = 4;

    HEARTH_FIBER_KEEP_RECORD: u32 = 1;
    HEARTH_FIBER_COMPLETED: u32 = 16;
    HEARTH_FIBER_ERROR: u32 = 32;
    HEARTH_FIBER_ABORTED: u32 = 64;
    HEARTH_FIBER_FINAL_ERROR: u32 = 128;
    HEARTH_FIBER_NEEDS_CODE: u32 = 256;
}

// ---- structs -----------------------------------------------------------------------------------

/// Emits `#[repr(C)]` structs with a checked size, and for `layout_test.rs` each member's place.
macro_rules! structs {
    ($($(#[$meta:meta])* $c_name:ident $size:literal => $name:ident {
        $($field:ident: $type:ty,)*
    })*) => {
        $(
            $(#[$meta])*
            #[repr(C)]
            pub struct $name {
                $(pub $field: $type,)*
            }
            const _: () = assert!(size_of::<$name>() == $size);
        )*
        /// Of each struct: its name in C, its size, and its members with their offsets.
        #[cfg(test)]
        #[allow(clippy::type_complexity)]
        pub(crate) fn layouts() -> Vec<(&'static str, usize, Vec<(&'static str, usize)>)> {
            vec![$({
                let place = std::mem::MaybeUninit::<$name>::uninit();
                let base = place.as_ptr();
                let offsets = vec![$((
                    stringify!($field).trim_start_matches("r#"),
                    // SAFETY: the address of a member inside `place`; nothing is read.
                    unsafe { std::ptr::addr_of!((*base).$field) as usize } - base as usize,
                )),*];
                (stringify!($c_name), $size, offsets)
            }),*]
        }
    };
}

structs! {
    /// Bytes that are lent for the duration of a call.
    #[derive(Clone, Copy)]
    hearth_bytes 16 => Bytes {
        ptr: *const c_void,
        len: usize,
    }

    hearth_event 72 => Event {
        struct_size: u32,
        kind: u32,
        call: u64,
        connection: u64,
        name: Bytes,
        body: Bytes,
        deadline_ms: u64,
        flags: u32,
        reserved: u32,
    }

    hearth_result 40 => OperationResult {
        struct_size: u32,
        flags: u32,
        status: Status,
        operation: u32,
        token: u64,
        body: Bytes,
    }

    /// A member exists if it lies within `struct_size` and is not `None`.
    hearth_host 80 => Host {
        struct_size: u32,
        abi_major: u16,
        abi_minor: u16,
        flags: u32,
        reserved: u32,
        get_extension: Option<unsafe extern "C" fn(*const Host, *const c_char) -> *const c_void>,
        complete: Option<unsafe extern "C" fn(*const Host, Agent, u64, Status, Bytes) -> Status>,
        emit: Option<unsafe extern "C" fn(*const Host, Agent, u64, Bytes) -> Status>,
        submit: Option<
            unsafe extern "C" fn(*const Host, Agent, u32, Bytes, u64, *mut u64) -> Status,
        >,
        cancel: Option<unsafe extern "C" fn(*const Host, Agent, u64) -> Status>,
        last_error: Option<unsafe extern "C" fn(*const Host, Agent, *mut Bytes) -> Status>,
        post: Option<unsafe extern "C" fn(*const Host, Agent, u64) -> Status>,
        credit: Option<unsafe extern "C" fn(*const Host, Agent, u64, u64) -> Status>,
    }

    hearth_class 72 => Class {
        struct_size: u32,
        flags: u32,
        name: *const c_char,
        version: *const c_char,
        create: unsafe extern "C" fn(
            *const Class, *const Host, Agent, Bytes, Bytes, *mut *mut c_void,
        ) -> Status,
        destroy: unsafe extern "C" fn(*mut c_void),
        on_event: unsafe extern "C" fn(*mut c_void, *const Event) -> Status,
        on_cancel: unsafe extern "C" fn(*mut c_void, u64),
        on_result: unsafe extern "C" fn(*mut c_void, *const OperationResult),
        get_extension: Option<unsafe extern "C" fn(*const Class, *const c_char) -> *const c_void>,
    }

    hearth_plugin 48 => Plugin {
        magic: u64,
        struct_size: u32,
        abi_major: u16,
        abi_minor: u16,
        flags: u32,
        class_count: u32,
        init: unsafe extern "C" fn(*const Host, Bytes) -> Status,
        deinit: unsafe extern "C" fn() -> Status,
        get_class: unsafe extern "C" fn(u32) -> *const Class,
    }

    hearth_note 44 => Note {
        owner_size: u32,
        description_size: u32,
        r#type: u32,
        owner: [u8; 8],
        magic: [u32; 2],
        abi_major: u16,
        abi_minor: u16,
        min_host_minor: u16,
        reserved: u16,
        plugin_struct_size: u32,
        manifest_size: u32,
    }

    hearth_sleep_request 8 => SleepRequest {
        milliseconds: u64,
    }

    // ---- extensions: every member of a table is there -------------------------------------------

    hearth_agent_v1 24 => AgentV1 {
        evict: unsafe extern "C" fn(*const Host, Agent) -> Status,
        destroy: unsafe extern "C" fn(*const Host, Agent) -> Status,
        waits_for_person: unsafe extern "C" fn(*const Host, Agent, Bytes, Bytes) -> Status,
    }

    hearth_clock_v1 16 => ClockV1 {
        wall_ms: unsafe extern "C" fn(*const Host) -> i64,
        steady_ns: unsafe extern "C" fn(*const Host) -> u64,
    }

    hearth_log_v1 8 => LogV1 {
        write: unsafe extern "C" fn(*const Host, Agent, i32, Bytes),
    }

    hearth_state_v1 32 => StateV1 {
        get: unsafe extern "C" fn(*const Host, Agent, *mut Bytes) -> Status,
        set: unsafe extern "C" fn(*const Host, Agent, u64, Bytes) -> Status,
        set_default: unsafe extern "C" fn(*const Host, Agent, Bytes) -> Status,
        unset: unsafe extern "C" fn(*const Host, Agent, u64) -> Status,
    }

    hearth_http_v1 48 => HttpV1 {
        target: unsafe extern "C" fn(*const Host, Agent, u64, *mut Bytes) -> Status,
        header: unsafe extern "C" fn(*const Host, Agent, u64, Bytes, *mut Bytes) -> Status,
        header_at: unsafe extern "C" fn(
            *const Host, Agent, u64, u32, *mut Bytes, *mut Bytes,
        ) -> Status,
        set_status: unsafe extern "C" fn(*const Host, Agent, u64, u32) -> Status,
        add_header: unsafe extern "C" fn(*const Host, Agent, u64, Bytes, Bytes) -> Status,
        read_body: unsafe extern "C" fn(*const Host, Agent, u64, u64, u64, *mut u64) -> Status,
    }

    hearth_schedule_request 120 => ScheduleRequest {
        struct_size: u32,
        r#type: u32,
        callback: Bytes,
        payload: Bytes,
        when_ms: i64,
        cron: Bytes,
        time_zone: Bytes,
        idempotent: u32,
        misfire: u32,
        misfire_limit: u32,
        overlap: u32,
        flags: u32,
        max_attempts: u32,
        retry_base_ms: u64,
        retry_max_ms: u64,
    }

    hearth_schedule_filter 80 => ScheduleFilter {
        struct_size: u32,
        r#type: u32,
        callback: Bytes,
        state: Bytes,
        from_ms: i64,
        until_ms: i64,
        after: Bytes,
        limit: u32,
        reserved: u32,
    }

    hearth_schedule_v1 48 => ScheduleV1 {
        create: unsafe extern "C" fn(
            *const Host, Agent, *const ScheduleRequest, *mut Bytes, *mut u32,
        ) -> Status,
        get: unsafe extern "C" fn(*const Host, Agent, Bytes, *mut Bytes) -> Status,
        list: unsafe extern "C" fn(
            *const Host, Agent, *const ScheduleFilter, *mut Bytes,
        ) -> Status,
        cancel: unsafe extern "C" fn(*const Host, Agent, Bytes) -> Status,
        pause: unsafe extern "C" fn(*const Host, Agent, Bytes, u32) -> Status,
        retry: unsafe extern "C" fn(*const Host, Agent, Bytes) -> Status,
    }

    hearth_call_request 96 => CallRequest {
        struct_size: u32,
        flags: u32,
        agent_class: Bytes,
        name: Bytes,
        method: Bytes,
        arguments: Bytes,
        call: u64,
        timeout_ms: u64,
        window: u64,
    }

    hearth_call_v1 40 => CallV1 {
        start: unsafe extern "C" fn(
            *const Host, Agent, *const CallRequest, u64, *mut u64,
        ) -> Status,
        notify: unsafe extern "C" fn(
            *const Host, Agent, *const CallRequest, *mut Bytes,
        ) -> Status,
        caller: unsafe extern "C" fn(*const Host, Agent, u64, *mut Bytes) -> Status,
        list: unsafe extern "C" fn(*const Host, Agent, Bytes, u32, *mut Bytes) -> Status,
        remove: unsafe extern "C" fn(*const Host, Agent, Bytes) -> Status,
    }

    hearth_fiber_start 144 => FiberStart {
        struct_size: u32,
        policy: u32,
        flags: u32,
        max_retries: u32,
        name: Bytes,
        id: Bytes,
        key: Bytes,
        parent: Bytes,
        input: Bytes,
        metadata: Bytes,
        retry_base_ms: u64,
        retry_max_ms: u64,
        lane: Bytes,
    }

    hearth_fiber_filter 56 => FiberFilter {
        struct_size: u32,
        statuses: u32,
        name: Bytes,
        before_ms: i64,
        after: Bytes,
        limit: u32,
        dead: u32,
    }

    hearth_fibers_v1 96 => FibersV1 {
        start: unsafe extern "C" fn(
            *const Host, Agent, *const FiberStart, *mut FiberHandle, *mut Bytes,
        ) -> Status,
        resume: unsafe extern "C" fn(*const Host, Agent, Bytes, *mut FiberHandle) -> Status,
        stash: unsafe extern "C" fn(*const Host, Agent, FiberHandle, Bytes) -> Status,
        settle: unsafe extern "C" fn(
            *const Host, Agent, FiberHandle, u32, Bytes, *mut Bytes,
        ) -> Status,
        inspect: unsafe extern "C" fn(*const Host, Agent, Bytes, Bytes, *mut Bytes) -> Status,
        list: unsafe extern "C" fn(*const Host, Agent, *const FiberFilter, *mut Bytes) -> Status,
        cancel: unsafe extern "C" fn(
            *const Host, Agent, Bytes, Bytes, Bytes, *mut Bytes,
        ) -> Status,
        resolve: unsafe extern "C" fn(*const Host, Agent, Bytes, Bytes) -> Status,
        revive: unsafe extern "C" fn(*const Host, Agent, Bytes) -> Status,
        remove: unsafe extern "C" fn(*const Host, Agent, *const FiberFilter, *mut u64) -> Status,
        once: unsafe extern "C" fn(*const Host, Agent, FiberHandle, Bytes, *mut u32) -> Status,
        works_for: unsafe extern "C" fn(*const Host, Agent, FiberHandle, u64) -> Status,
    }
}

impl Bytes {
    pub const EMPTY: Bytes = Bytes { ptr: std::ptr::null(), len: 0 };

    /// Lends these bytes to the host. Valid as long as they are.
    pub fn of(bytes: &[u8]) -> Bytes {
        Bytes { ptr: bytes.as_ptr().cast(), len: bytes.len() }
    }

    /// The lent bytes.
    ///
    /// # Safety
    /// The bytes are read later, so they must still be lent then: copy them before the next call to
    /// the host.
    pub unsafe fn as_slice<'a>(self) -> &'a [u8] {
        if self.len == 0 {
            return &[]; // the pointer may be null
        }
        // SAFETY: the caller guarantees that they are lent.
        unsafe { std::slice::from_raw_parts(self.ptr.cast(), self.len) }
    }
}
