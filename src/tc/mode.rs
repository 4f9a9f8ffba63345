// SPDX-License-Identifier: GPL-2.0

//! Which DiffServ mode is in force, for a command line that names tins but no mode.

use crate::{attributes::Attributes, uapi::*};
use netlink_packet_core::{
    NetlinkDeserializable, NetlinkHeader, NetlinkMessage, NetlinkPayload, NetlinkSerializable,
};
use netlink_sys::{protocols::NETLINK_ROUTE, Socket};
use std::convert::Infallible;

/// What tc has made of the command line before `cake`.
pub struct Request<'a> {
    pub device: Option<&'a str>,
    /// `cake` or `cake_mq`.
    pub kind: &'a str,
    /// Whether a new instance is asked for.
    pub is_new: bool,
    pub parent: u32,
    pub handle: u32,
}

/// The length of `struct tcmsg`.
const TCMSG: usize = 20;

/// A message about a queueing discipline.
struct Message {
    kind: u16,
    bytes: Vec<u8>,
}

impl Message {
    /// The field of `struct tcmsg` at an offset.
    fn field(&self, at: usize) -> Option<u32> {
        let bytes = self.bytes.get(at..)?.first_chunk().copied();
        bytes.map(u32::from_ne_bytes)
    }

    /// The mode, if this is the discipline that `request` is about.
    fn mode(&self, request: &Request<'_>, index: u32) -> Option<u32> {
        let is_it = u32::from(self.kind) == RTM_NEWQDISC
            && self.field(4) == Some(index)
            && (request.handle == 0 || self.field(8) == Some(request.handle))
            && (request.parent == 0 || self.field(12) == Some(request.parent));
        let attributes = Attributes::of(self.bytes.get(TCMSG..).filter(|_| is_it)?);
        let kind = attributes.bytes(TCA_KIND)?.strip_suffix(&[0])?;
        let options = attributes.bytes(TCA_OPTIONS)?;
        (kind == request.kind.as_bytes())
            .then(|| Attributes::of(options).u32(TCA_CAKE_DIFFSERV_MODE))?
    }
}

impl NetlinkSerializable for Message {
    fn message_type(&self) -> u16 {
        self.kind
    }

    fn buffer_len(&self) -> usize {
        self.bytes.len()
    }

    fn serialize(&self, buffer: &mut [u8]) {
        buffer.copy_from_slice(&self.bytes);
    }
}

impl NetlinkDeserializable for Message {
    type Error = Infallible;

    fn deserialize(header: &NetlinkHeader, payload: &[u8]) -> Result<Self, Infallible> {
        Ok(Self {
            kind: header.message_type,
            bytes: payload.to_vec(),
        })
    }
}

/// The number of the mode that the discipline has, or a new one would have.
pub fn in_force(request: &Request<'_>) -> Result<u32, String> {
    let device = match request.device {
        Some(device) if !request.is_new => device,
        _ => return Ok(CAKE_DIFFSERV_DIFFSERV3),
    };
    let index = nix::net::if_::if_nametoindex(device)
        .map_err(|_| format!("Cannot find device \"{device}\""))?;
    let found = ask(request, index)
        .map_err(|error| format!("cannot ask the kernel for the DiffServ mode: {error}"))?;
    Ok(found.unwrap_or(CAKE_DIFFSERV_DIFFSERV3))
}

fn ask(request: &Request<'_>, index: u32) -> std::io::Result<Option<u32>> {
    let mut bytes = vec![0; TCMSG];
    bytes[4..8].copy_from_slice(&index.to_ne_bytes());
    let dump = Message {
        kind: RTM_GETQDISC as u16,
        bytes,
    };
    let mut message =
        NetlinkMessage::new(NetlinkHeader::default(), NetlinkPayload::InnerMessage(dump));
    message.header.flags = (NLM_F_REQUEST | NLM_F_DUMP) as u16;
    message.finalize();
    let mut buffer = vec![0; message.buffer_len()];
    message.serialize(&mut buffer);

    let mut socket = Socket::new(NETLINK_ROUTE)?;
    socket.bind_auto()?;
    socket.send(&buffer, 0)?;
    let mut found = None;
    loop {
        let (datagram, _) = socket.recv_from_full()?;
        let mut rest = datagram.as_slice();
        while !rest.is_empty() {
            let reply: NetlinkMessage<Message> =
                NetlinkMessage::deserialize(rest).map_err(std::io::Error::other)?;
            match &reply.payload {
                NetlinkPayload::InnerMessage(message) => {
                    found = found.or(message.mode(request, index));
                }
                NetlinkPayload::Error(error) => return Err(error.to_io()),
                NetlinkPayload::Done(_) => return Ok(found),
                _ => {}
            }
            let len = (reply.header.length as usize).next_multiple_of(4);
            rest = rest.get(len..).unwrap_or_default();
        }
    }
}
