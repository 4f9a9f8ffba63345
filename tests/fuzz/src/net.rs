// SPDX-License-Identifier: GPL-2.0

//! The rest of `src/net`, as far as attributes are read and written.

pub(crate) use crate::netlink;

pub(crate) mod conntrack {
    pub(crate) const IS_AVAILABLE: bool = true;
}

pub(crate) mod gen_stats {
    use crate::netlink::Message;
    use crate::prelude::*;

    #[derive(Default)]
    pub(crate) struct QueueStats {
        pub(crate) qlen: u32,
        pub(crate) backlog: u32,
        pub(crate) drops: u32,
    }

    #[derive(Default)]
    pub(crate) struct StatsDump<'a>(Message<'a>);

    impl<'a> StatsDump<'a> {
        pub(crate) fn put_queue(&mut self, _: &QueueStats) -> Result {
            Ok(())
        }

        pub(crate) fn put_app(&mut self, fill: impl FnOnce(&mut Message<'a>) -> Result) -> Result {
            fill(&mut self.0)
        }
    }
}

#[allow(missing_docs, non_camel_case_types, non_upper_case_globals)]
pub(crate) mod pkt_sched {
    include!(concat!(env!("OUT_DIR"), "/uapi.rs"));
}
