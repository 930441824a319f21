//! The reading end of a pipe of packets: what the pipes from a sensor and from the endpoint of any
//! device have in common.

use crate::claim::Claim;
use crate::words::{Place, error, offer};
use diapason_abi::{Errno, Nanos};
use diapason_contract::sensor::Packet;
use diapason_usblib::Packets;

/// A pipe that may be open.
pub struct PacketInlet(Claim<Option<Packets>>);

impl PacketInlet {
    /// Returns a pipe that is not open.
    pub const fn new() -> PacketInlet {
        PacketInlet(Claim::new(None))
    }

    /// Opens the pipe. Without a grant of it the process ends.
    pub fn open(&self, opened: fn() -> Result<Packets, Errno>) -> i32 {
        open(&self.0, opened)
    }

    /// Reads the oldest packet that came, or waits for one until the deadline.
    pub fn read(&self, packet: Place<'_, Packet>, deadline: u64) -> i32 {
        with(&self.0, |open| {
            let read = match deadline {
                0 => open.read().ok_or(Errno::WouldBlock)?,
                _ => open.read_wait(Nanos(deadline))?,
            };
            offer(packet, read);
            Ok(())
        })
    }

    /// Counts packets that the program found missing by their contents.
    pub fn missed(&self, packets: u64) -> i32 {
        with(&self.0, |open| {
            open.missed(packets);
            Ok(())
        })
    }

    /// Writes how many packets found no room, because this program was too slow.
    pub fn lost(&self, packets: Place<'_, u64>) -> i32 {
        with(&self.0, |open| {
            offer(packets, open.lost());
            Ok(())
        })
    }
}

/// Opens the end of a pipe, once. Returns C's number for how it went.
pub fn open<T>(end: &Claim<Option<T>>, opened: fn() -> Result<T, Errno>) -> i32 {
    let done = end.with(|open| {
        if open.is_some() {
            return Err(Errno::Busy);
        }
        *open = Some(opened()?);
        Ok(())
    });
    done.unwrap_or(Err(Errno::Busy)).map_or_else(error, |()| 0)
}

/// Does something with the open end of a pipe. Returns C's number for how it went.
pub fn with<T>(end: &Claim<Option<T>>, body: impl FnOnce(&mut T) -> Result<(), Errno>) -> i32 {
    let done = end.with(|open| open.as_mut().map_or(Err(Errno::Absent), body));
    done.unwrap_or(Err(Errno::Busy)).map_or_else(error, |()| 0)
}
