//! Panics stay inside the library: one that crossed the C interface would abort the server.
//!
//! [`guard`] is the only way from the host into code that may panic. The text of a panic goes only
//! to the server's log, by a hook; callers read a fixed text.
//!
//! A caught panic does not keep the library in memory, thanks to the hook. The standard library's
//! own hook names the current thread. That leaves a destructor for the end of that thread, and the
//! dynamic loader keeps the library until then.

use crate::host;
use std::any::Any;
use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe, Location};

/// The text for callers.
pub(crate) const PANICKED: &str = "the agent's code panicked; the server's log says where";

thread_local! {
    // The agent whose call this thread is in; 0: none. It has no destructor, and is set at the
    // beginning of each call, since the next one may come on another thread.
    static CURRENT: Cell<u64> = const { Cell::new(0) };
}

/// The code panicked, and the log says where.
#[derive(Debug)]
pub(crate) struct Panicked;

/// Runs `code` in a call for `agent`.
///
/// After a panic the caller must not rely on anything that `code` was changing. The instance of an
/// agent is then given up: the host is asked to evict it.
pub(crate) fn guard<R>(agent: u64, code: impl FnOnce() -> R) -> Result<R, Panicked> {
    let outer = CURRENT.with(|current| current.replace(agent));
    let outcome = panic::catch_unwind(AssertUnwindSafe(code));
    CURRENT.with(|current| current.set(outer));
    outcome.map_err(|payload| {
        // The agent's code made the payload, so its destructor may panic as well.
        if let Err(second) = panic::catch_unwind(AssertUnwindSafe(move || drop(payload))) {
            std::mem::forget(second);
        }
        Panicked
    })
}

/// From now on panics of this library go to the server's log. Other libraries have their own copy
/// of the standard library, and so their own hook.
pub(crate) fn install_hook() {
    panic::set_hook(Box::new(|info| report(info.payload(), info.location())));
}

pub(crate) fn remove_hook() {
    drop(panic::take_hook());
}

fn report(payload: &(dyn Any + Send), place: Option<&Location<'_>>) {
    let words = words_of(payload);
    let text = match place {
        Some(place) => format!("panicked at {place}: {words}"),
        None => format!("panicked: {words}"),
    };
    host::log(CURRENT.with(Cell::get), crate::ffi::HEARTH_LOG_ERROR, &text);
}

fn words_of(payload: &(dyn Any + Send)) -> &str {
    if let Some(text) = payload.downcast_ref::<&'static str>() {
        text
    } else if let Some(text) = payload.downcast_ref::<String>() {
        text
    } else {
        "without words"
    }
}
