//! The parts that [`crate::hearth_plugin`] puts into a library at compile time: the exported symbol
//! and the ELF note. Not for authors.

use crate::agent::Agent;
use crate::ffi::{self, Class, Note, Plugin};
use crate::{host, instance, panics};
use std::mem::size_of;

/// The classes of a library. Constant data, so every thread may read it.
#[repr(transparent)]
pub struct Classes<const N: usize>(pub [Class; N]);

// SAFETY: it never changes, nor does what its pointers point to.
unsafe impl<const N: usize> Sync for Classes<N> {}

/// The table of a class. Both texts end with a NUL.
pub const fn class<T: Agent>(name: &'static str, version: &'static str) -> Class {
    assert!(ends_with_nul(name) && ends_with_nul(version));
    assert!(is_class_name(name.as_bytes()), "a class's name is at most 64 ASCII characters");
    Class {
        struct_size: size_of::<Class>() as u32,
        flags: ffi::HEARTH_CLASS_CHECKS_STATE,
        name: name.as_ptr().cast(),
        version: version.as_ptr().cast(),
        create: instance::create::<T>,
        destroy: instance::destroy::<T>,
        on_event: instance::on_event::<T>,
        on_cancel: instance::on_cancel,
        on_result: instance::on_result::<T>,
        get_extension: None,
    }
}

/// The value of the exported `hearth_plugin_v1`. The name and the version are in the note.
pub const fn plugin(
    name: &str,
    version: &str,
    class_count: usize,
    get_class: unsafe extern "C" fn(u32) -> *const Class,
) -> Plugin {
    assert!(
        is_plain(name) && is_plain(version),
        "a name or version with a character like \" or \\"
    );
    Plugin {
        magic: ffi::HEARTH_MAGIC,
        struct_size: size_of::<Plugin>() as u32,
        abi_major: ffi::HEARTH_ABI_MAJOR,
        abi_minor: ffi::HEARTH_ABI_MINOR,
        flags: 0,
        class_count: class_count as u32,
        init,
        deinit,
        get_class,
    }
}

unsafe extern "C" fn init(host: *const ffi::Host, _config: ffi::Bytes) -> ffi::Status {
    // SAFETY: what the host gives to init.
    let status = panics::guard(0, || unsafe { host::start(host) }).unwrap_or(ffi::HEARTH_E_PLUGIN);
    if status == ffi::HEARTH_OK {
        panics::install_hook();
    }
    status
}

unsafe extern "C" fn deinit() -> ffi::Status {
    panics::remove_hook();
    host::stop();
    ffi::HEARTH_OK
}

// ---- the note ----------------------------------------------------------------------------------

/// The note with its manifest, filled up with zeros.
#[repr(C, align(4))]
pub struct FullNote<const N: usize> {
    head: Note,
    manifest: [u8; N],
}

/// The room for a manifest of this size: with its NUL, a multiple of four.
pub const fn note_room(manifest_size: usize) -> usize {
    (manifest_size + 1 + 3) / 4 * 4
}

/// The description of a note begins after its owner: 24 bytes of numbers, then the manifest.
const DESCRIPTION_HEAD: usize = 24;

pub const fn note<const N: usize>(manifest: &str) -> FullNote<N> {
    let text = manifest.as_bytes();
    assert!(N == note_room(text.len()));
    let mut filled = [0; N];
    let mut at = 0;
    while at < text.len() {
        filled[at] = text[at];
        at += 1;
    }
    FullNote {
        head: Note {
            owner_size: 7,
            description_size: (DESCRIPTION_HEAD + text.len() + 1) as u32,
            r#type: 1,
            owner: *b"HEARTH\0\0",
            magic: [ffi::HEARTH_MAGIC as u32, (ffi::HEARTH_MAGIC >> 32) as u32],
            abi_major: ffi::HEARTH_ABI_MAJOR,
            abi_minor: ffi::HEARTH_ABI_MINOR,
            min_host_minor: 0,
            reserved: 0,
            plugin_struct_size: size_of::<Plugin>() as u32,
            manifest_size: text.len() as u32,
        },
        manifest: filled,
    }
}

/// Whether a JSON string can hold it without escapes.
const fn is_plain(text: &str) -> bool {
    let text = text.as_bytes();
    let mut at = 0;
    while at < text.len() {
        if text[at] < b' ' || text[at] == b'"' || text[at] == b'\\' {
            return false;
        }
        at += 1;
    }
    true
}

const fn ends_with_nul(text: &str) -> bool {
    let text = text.as_bytes();
    !text.is_empty() && text[text.len() - 1] == 0
}

/// Rust's identifiers may have letters that URLs do not allow.
const fn is_class_name(name: &[u8]) -> bool {
    let mut at = 0;
    while at + 1 < name.len() {
        if !name[at].is_ascii() {
            return false;
        }
        at += 1;
    }
    at >= 1 && at <= 64
}
