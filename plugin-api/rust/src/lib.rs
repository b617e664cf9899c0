//! Agents for the server Hearth, in Rust.
//!
//! An agent is a type that implements [`Agent`]; [`hearth_plugin!`] makes a library of it. The
//! crate speaks the C interface of `hearth/abi.h` and has no dependencies.
//!
#![doc = include_str!("../README.md")]
#![warn(unsafe_op_in_unsafe_fn)]

// A panic must unwind to be caught: an abort would end the server.
#[cfg(not(panic = "unwind"))]
compile_error!("hearth catches panics, so it cannot be built with panic = \"abort\"");

mod agent;
mod context;
mod error;
pub mod ffi;
mod fibers;
mod host;
mod host_agent;
mod instance;
pub mod json;
mod json_reader;
mod panics;
#[doc(hidden)]
pub mod plugin;

#[cfg(test)]
mod layout_test;

pub use agent::{Agent, Args, Fiber, Request, Run, Step};
pub use context::{AgentCaller, Context, FiberOptions, Level, When};
pub use error::{Error, Result, Status};
pub use json::Value;

/// Makes a library of agent classes: `hearth_plugin!("greeter", "1.0.0", Greeter);`
///
/// Once in a library, at its top level. The name and the version are the library's; a class has the
/// name of its type. Emits the symbol `hearth_plugin_v1` and the ELF note.
#[macro_export]
macro_rules! hearth_plugin {
    ($name:literal, $version:literal, $first:ident $(, $more:ident)* $(,)?) => {
        const _: () = {
            const MANIFEST: &str = concat!(
                "{\"plugin\":\"", $name, "\",\"version\":\"", $version, "\",\"classes\":[\"",
                stringify!($first), "\"", $(",\"", stringify!($more), "\"",)*
                "],\"extensions\":", $crate::__hearth_extensions!(), "}"
            );

            #[used]
            #[link_section = ".note.hearth"]
            static NOTE: $crate::plugin::FullNote<{ $crate::plugin::note_room(MANIFEST.len()) }> =
                $crate::plugin::note(MANIFEST);

            const COUNT: usize = [stringify!($first) $(, stringify!($more))*].len();

            static CLASSES: $crate::plugin::Classes<COUNT> = $crate::plugin::Classes([
                $crate::plugin::class::<$first>(
                    concat!(stringify!($first), "\0"),
                    concat!($version, "\0"),
                ),
                $($crate::plugin::class::<$more>(
                    concat!(stringify!($more), "\0"),
                    concat!($version, "\0"),
                ),)*
            ]);

            unsafe extern "C" fn get_class(index: u32) -> *const $crate::ffi::Class {
                match CLASSES.0.get(index as usize) {
                    Some(class) => class,
                    None => ::std::ptr::null(),
                }
            }

            #[no_mangle]
            #[allow(non_upper_case_globals)]
            pub static hearth_plugin_v1: $crate::ffi::Plugin =
                $crate::plugin::plugin($name, $version, COUNT, get_class);
        };
    };
}
