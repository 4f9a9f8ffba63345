// SPDX-License-Identifier: GPL-2.0

//! As much of the crate `kernel` as the parsers of netlink attributes need, so that their files
//! compile here as they are.

/// `kernel::prelude`.
pub mod prelude {
    pub use crate::fmt;
    pub use core::ffi::CStr;

    /// An error's number.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Error(pub i32);

    /// `kernel::error::Result`.
    pub type Result<T = (), E = Error> = core::result::Result<T, E>;

    macro_rules! errors {
        ($($name:ident = $number:expr;)*) => {
            $(#[allow(missing_docs)] pub const $name: Error = Error($number);)*
        };
    }
    errors! {
        EINVAL = 22;
        ERANGE = 34;
        EMSGSIZE = 90;
        EOPNOTSUPP = 95;
    }
}

/// `kernel::fmt`.
pub mod fmt {
    pub use core::fmt::Arguments;
}
