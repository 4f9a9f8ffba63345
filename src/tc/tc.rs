// SPDX-License-Identifier: GPL-2.0

//! The wall to tc's C interface: what tc calls, and what it lends.
//!
//! tc loads this library into itself and finds its own functions for it. Its interface is
//! `tc/tc_util.h`, `include/utils.h` and `include/json_print.h` of iproute2; what is used here has
//! been the same since iproute2 6.0. tc runs on one thread.

use crate::{
    mode::Request,
    request, show, stats,
    uapi::{NLM_F_EXCL, TCA_OPTIONS},
    words::{self, Refusal},
};
use std::{
    cell::UnsafeCell,
    ffi::{c_char, c_int, c_uint, c_ulonglong, c_void, CStr, CString},
    ptr::null,
    slice,
};

/// `struct nlmsghdr` and the `struct tcmsg` that follows it in a request.
#[repr(C)]
struct TcRequest {
    len: u32,
    kind: u16,
    flags: u16,
    sequence: u32,
    port: u32,
    family: u8,
    padding: [u8; 3],
    ifindex: c_int,
    handle: u32,
    parent: u32,
    info: u32,
}

/// `struct rtattr`.
#[repr(C)]
struct RtAttr {
    len: u16,
    kind: u16,
}

type Parse = unsafe extern "C" fn(
    *const QdiscUtil,
    c_int,
    *const *const c_char,
    *mut TcRequest,
    *const c_char,
) -> c_int;
type Print = unsafe extern "C" fn(*const QdiscUtil, *mut c_void, *const RtAttr) -> c_int;

/// `struct qdisc_util`.
#[repr(C)]
pub struct QdiscUtil {
    /// tc links what it has loaded.
    next: UnsafeCell<*mut QdiscUtil>,
    id: *const c_char,
    parse_qopt: Parse,
    print_qopt: Print,
    print_xstats: Print,
    parse_copt: Option<Parse>,
    print_copt: Option<Print>,
    has_block: *const c_void,
}

// SAFETY: tc runs on one thread; nothing here writes to it.
unsafe impl Sync for QdiscUtil {}

const fn util(id: &'static CStr) -> QdiscUtil {
    QdiscUtil {
        next: UnsafeCell::new(std::ptr::null_mut()),
        id: id.as_ptr(),
        parse_qopt,
        print_qopt,
        print_xstats,
        parse_copt: None,
        print_copt: None,
        has_block: null(),
    }
}

/// What tc looks for in `q_cake.so`.
#[no_mangle]
#[allow(non_upper_case_globals)]
pub static cake_qdisc_util: QdiscUtil = util(c"cake");

/// What tc looks for in `q_cake_mq.so`.
#[no_mangle]
#[allow(non_upper_case_globals)]
pub static cake_mq_qdisc_util: QdiscUtil = util(c"cake_mq");

const PRINT_FP: c_uint = 1;
const PRINT_JSON: c_uint = 2;
/// `COLOR_NONE` of `enum color_attr`.
const COLOR_NONE: c_uint = 6;
/// `SPRINT_BSIZE`.
const BUFFER: usize = 64;
/// Options fit into this many bytes, and tc's own buffer is larger.
const MAX_REQUEST: c_int = 4096;

// SAFETY: As tc's headers declare them.
unsafe extern "C" {
    static batch_mode: c_int;
    static use_iec: c_int;
    static _SL_: *const c_char;

    fn addattr_l(
        n: *mut TcRequest,
        max: c_int,
        kind: c_int,
        data: *const c_void,
        len: c_int,
    ) -> c_int;
    fn get_rate64(rate: *mut u64, text: *const c_char) -> c_int;
    fn get_time(us: *mut c_uint, text: *const c_char) -> c_int;
    fn get_size(bytes: *mut c_uint, text: *const c_char) -> c_int;
    fn sprint_time(us: u32, buffer: *mut c_char) -> *mut c_char;
    fn sprint_size(bytes: u64, buffer: *mut c_char) -> *mut c_char;
    fn tc_print_rate(to: c_uint, key: *const c_char, format: *const c_char, rate: c_ulonglong);
    fn is_json_context() -> bool;
    fn open_json_object(key: *const c_char);
    fn close_json_object();
    fn open_json_array(to: c_uint, key: *const c_char);
    fn close_json_array(to: c_uint, delimiter: *const c_char);
    fn print_color_string(
        to: c_uint,
        color: c_uint,
        key: *const c_char,
        format: *const c_char,
        value: *const c_char,
    ) -> c_int;
    fn print_color_int(
        to: c_uint,
        color: c_uint,
        key: *const c_char,
        format: *const c_char,
        value: c_int,
    ) -> c_int;
    fn print_color_u64(
        to: c_uint,
        color: c_uint,
        key: *const c_char,
        format: *const c_char,
        value: u64,
    ) -> c_int;
    fn print_color_bool(
        to: c_uint,
        color: c_uint,
        key: *const c_char,
        format: *const c_char,
        value: bool,
    ) -> c_int;
    fn print_color_0xhex(
        to: c_uint,
        color: c_uint,
        key: *const c_char,
        format: *const c_char,
        value: c_ulonglong,
    ) -> c_int;
}

/// # Safety
///
/// `text` must be a string of C that lives as long as the result.
unsafe fn string<'a>(text: *const c_char) -> std::borrow::Cow<'a, str> {
    // SAFETY: By the safety requirements.
    unsafe { CStr::from_ptr(text) }.to_string_lossy()
}

/// # Safety
///
/// tc calls it with a command line, and with a request that has room for options.
unsafe extern "C" fn parse_qopt(
    util: *const QdiscUtil,
    count: c_int,
    words: *const *const c_char,
    message: *mut TcRequest,
    device: *const c_char,
) -> c_int {
    // SAFETY: By the safety requirements.
    let (line, request) = unsafe {
        let words = if count > 0 {
            slice::from_raw_parts(words, count as usize)
        } else {
            &[]
        };
        let line: Vec<String> = words
            .iter()
            .map(|word| string(*word).into_owned())
            .collect();
        let kind = string((*util).id).into_owned();
        let device = (!device.is_null()).then(|| string(device).into_owned());
        (line, (kind, device, &*message))
    };
    let (kind, device, header) = request;
    let request = Request {
        device: device.as_deref().filter(|name| !name.is_empty()),
        kind: &kind,
        is_new: u32::from(header.flags) & NLM_F_EXCL != 0,
        parent: header.parent,
        handle: header.handle,
    };
    match request::options(&line, &request) {
        Ok(options) => {
            let bytes = options.bytes();
            // SAFETY: The message has room by the safety requirements; tc checks it once more.
            unsafe {
                addattr_l(
                    message,
                    MAX_REQUEST,
                    TCA_OPTIONS as c_int,
                    bytes.as_ptr().cast(),
                    bytes.len() as c_int,
                )
            }
        }
        Err(Refusal::Help) => {
            eprint!("{}", words::USAGE);
            -1
        }
        Err(Refusal::Word(reason)) => {
            eprintln!("{reason}");
            -1
        }
        Err(Refusal::Tin(reason)) => {
            eprintln!("{reason}");
            // tc would end with 1, which stands for bad syntax that the kernel knows nothing of.
            // SAFETY: A variable of tc, which runs on one thread.
            if unsafe { batch_mode } == 0 {
                std::process::exit(2);
            }
            -1
        }
    }
}

/// The payload of an attribute that tc passes.
///
/// # Safety
///
/// `attribute` must be null or valid for `'a`, payload included.
unsafe fn payload<'a>(attribute: *const RtAttr) -> Option<&'a [u8]> {
    // SAFETY: By the safety requirements.
    unsafe {
        let header = attribute.as_ref()?;
        let len = usize::from(header.len).checked_sub(size_of::<RtAttr>())?;
        Some(slice::from_raw_parts(attribute.add(1).cast(), len))
    }
}

/// # Safety
///
/// tc calls it with the options of a dump, or null.
unsafe extern "C" fn print_qopt(
    _: *const QdiscUtil,
    _: *mut c_void,
    options: *const RtAttr,
) -> c_int {
    // SAFETY: By the safety requirements.
    if let Some(options) = unsafe { payload(options) } {
        show::options(options);
    }
    0
}

/// # Safety
///
/// tc calls it with the statistics of a dump, or null.
unsafe extern "C" fn print_xstats(
    _: *const QdiscUtil,
    _: *mut c_void,
    statistics: *const RtAttr,
) -> c_int {
    // SAFETY: By the safety requirements.
    if let Some(statistics) = unsafe { payload(statistics) } {
        stats::print(statistics);
    }
    0
}

/// Reads a number by one of tc's functions.
fn parse<T: Default>(
    text: &str,
    read: unsafe extern "C" fn(*mut T, *const c_char) -> c_int,
) -> Option<T> {
    let text = CString::new(text).ok()?;
    let mut value = T::default();
    // SAFETY: Both are valid, and tc's functions only read the text.
    (unsafe { read(&mut value, text.as_ptr()) } == 0).then_some(value)
}

/// A rate in bytes per second.
pub fn parse_rate(text: &str) -> Option<u64> {
    parse(text, get_rate64)
}

/// A time in microseconds.
pub fn parse_time(text: &str) -> Option<u32> {
    parse(text, get_time)
}

/// A size in bytes.
pub fn parse_size(text: &str) -> Option<u32> {
    parse(text, get_size)
}

/// A time in microseconds as tc writes it.
pub fn time(us: u32) -> String {
    let mut buffer = [0 as c_char; BUFFER];
    // SAFETY: tc writes a string that fits.
    unsafe { string(sprint_time(us, buffer.as_mut_ptr())).into_owned() }
}

/// A size in bytes as tc writes it.
pub fn size(bytes: u32) -> String {
    let mut buffer = [0 as c_char; BUFFER];
    // SAFETY: tc writes a string that fits.
    unsafe { string(sprint_size(bytes.into(), buffer.as_mut_ptr())).into_owned() }
}

/// A time as tc writes it, unless that would read as another one.
pub fn exact_time(us: u32) -> String {
    Some(time(us))
        .filter(|text| parse_time(text) == Some(us))
        .unwrap_or_else(|| format!("{us}us"))
}

/// A size as tc writes it, unless that would read as another one.
pub fn exact_size(bytes: u32) -> String {
    Some(size(bytes))
        .filter(|text| parse_size(text) == Some(bytes))
        .unwrap_or_else(|| format!("{bytes}b"))
}

/// A rate in bytes per second, as it reads back.
pub fn exact_rate(rate: u64) -> String {
    let bits = rate.saturating_mul(8);
    let (unit, name) = [
        (1_000_000_000, "Gbit"),
        (1_000_000, "Mbit"),
        (1_000, "Kbit"),
    ]
    .into_iter()
    .find(|(unit, _)| bits != 0 && bits % unit == 0)
    .unwrap_or((1, "bit"));
    format!("{}{name}", bits / unit)
}

/// Whether what tc writes for a rate reads back as the same rate.
pub fn rate_is_exact(rate: u64) -> bool {
    // SAFETY: A variable of tc, which runs on one thread.
    let kilo = if unsafe { use_iec } != 0 { 1024 } else { 1000 };
    let mut bits = rate.wrapping_mul(8);
    // tc goes up to four units, and drops a remainder once there are more than three digits.
    for _ in 0..4 {
        if bits < kilo || (bits % kilo != 0 && bits < 1000 * kilo) {
            return true;
        }
        if bits % kilo != 0 {
            return false;
        }
        bits /= kilo;
    }
    true
}

/// Whether JSON is being written rather than text.
pub fn is_json() -> bool {
    // SAFETY: It has no requirements.
    unsafe { is_json_context() }
}

/// What ends a line.
pub fn line_end() -> String {
    // SAFETY: A variable of tc that points to a string.
    unsafe { string(_SL_).into_owned() }
}

/// Writes text, unless JSON is being written.
pub fn text(text: &str) {
    let text = CString::new(text).unwrap_or_default();
    // SAFETY: The format takes one string.
    unsafe { print_color_string(PRINT_FP, COLOR_NONE, null(), c"%s".as_ptr(), text.as_ptr()) };
}

/// Writes a rate in bytes per second, aligned to the right of `width` columns.
pub fn text_rate(rate: u64, width: usize) {
    let format = CString::new(format!("%{width}s")).unwrap_or_default();
    // SAFETY: The format takes one string.
    unsafe { tc_print_rate(PRINT_FP, null(), format.as_ptr(), rate) };
}

/// Writes a field of a JSON object; the others likewise. Nothing happens where text is written.
pub fn json_u64(key: &CStr, value: u64) {
    // SAFETY: JSON needs no format.
    unsafe { print_color_u64(PRINT_JSON, COLOR_NONE, key.as_ptr(), null(), value) };
}

pub fn json_int(key: &CStr, value: i32) {
    // SAFETY: As above.
    unsafe { print_color_int(PRINT_JSON, COLOR_NONE, key.as_ptr(), null(), value) };
}

pub fn json_hex(key: &CStr, value: u32) {
    // SAFETY: As above.
    unsafe { print_color_0xhex(PRINT_JSON, COLOR_NONE, key.as_ptr(), null(), value.into()) };
}

pub fn json_bool(key: &CStr, value: bool) {
    // SAFETY: As above.
    unsafe { print_color_bool(PRINT_JSON, COLOR_NONE, key.as_ptr(), null(), value) };
}

/// A string; without a key an element of an array.
pub fn json_string(key: Option<&CStr>, value: &str) {
    let value = CString::new(value).unwrap_or_default();
    let key = key.map_or(null(), CStr::as_ptr);
    // SAFETY: As above.
    unsafe { print_color_string(PRINT_JSON, COLOR_NONE, key, null(), value.as_ptr()) };
}

/// An array of what `fill` writes.
pub fn json_array(key: &CStr, fill: impl FnOnce()) {
    if is_json() {
        // SAFETY: The array is closed below.
        unsafe { open_json_array(PRINT_JSON, key.as_ptr()) };
        fill();
        // SAFETY: It was opened above.
        unsafe { close_json_array(PRINT_JSON, null()) };
    }
}

/// An object, an element of an array, of what `fill` writes.
pub fn json_object(fill: impl FnOnce()) {
    if is_json() {
        // SAFETY: The object is closed below.
        unsafe { open_json_object(null()) };
        fill();
        // SAFETY: It was opened above.
        unsafe { close_json_object() };
    }
}
