//! The server's end of a pipe of packets: each is judged by the contract of its pipe and put into
//! it as it came.

use super::clients::Clients;
use super::judged::{Judge, Judged};
use crate::platform::Platform;
use diapason_abi::{Errno, Nanos};
use diapason_contract::sensor::{LOST_BEFORE, OUTSIDE, PACKET, Packet, RECORDS};
use diapason_pipe::Writer;

/// The pipe of a service whose devices send packets.
pub(super) struct PacketOutlet<P: Platform> {
    packets: Writer<'static, Packet, RECORDS>,
    session: u32,
    judge: Judge,
    lost_before: bool,
    pub clients: Clients<P::Memory>,
}

impl<P: Platform> PacketOutlet<P> {
    /// Opens the pipe with this name for devices whose messages this judge judges.
    ///
    /// # Errors
    /// The pipe is not there.
    pub fn new(platform: &P, name: &str, judge: Judge) -> Result<PacketOutlet<P>, Errno> {
        let packets = platform.writer(name)?;
        Ok(PacketOutlet { packets, session: 0, judge, lost_before: false, clients: Clients::new() })
    }

    /// Notes that the device was opened: its clock may have restarted. If a device was open before,
    /// what this one or that one sent meanwhile is lost.
    pub fn restart(&mut self) {
        self.lost_before |= self.session > 0;
        self.session = self.session.wrapping_add(1);
        self.judge.restart();
    }

    /// Notes that the device lost something.
    pub const fn lost(&mut self) {
        self.lost_before = true;
    }

    /// Puts a packet that came now into the pipe. A full pipe counts what it drops, and its client
    /// sees that.
    pub fn push(&mut self, bytes: &[u8], now: Nanos) {
        let length = bytes.len().min(PACKET);
        let mut data = [0; PACKET];
        data[..length].copy_from_slice(&bytes[..length]);
        let Judged { time, moved, outside } = self.judge.judge(bytes, now);
        let narrow = |time: Nanos| u32::try_from(time.0).unwrap_or(u32::MAX);
        let outside = if outside { OUTSIDE } else { 0 };
        let lost = if core::mem::take(&mut self.lost_before) { LOST_BEFORE } else { 0 };
        let _ = self.packets.push(&Packet {
            taken: now.0,
            time: time.0,
            length: length as u32,
            session: self.session,
            moved: narrow(moved.beyond),
            inexact: narrow(moved.inexact),
            flags: outside | lost,
            spare: 0,
            data,
        });
        self.clients.ring(1);
    }
}
