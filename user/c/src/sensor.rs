//! The reader of a `[[pipe]]` from a sensor, for C. It measures as the one in Rust does.

use crate::claim::Claim;
use crate::words::{Place, error, offer};
use diapason_abi::{Errno, Nanos};
use diapason_contract::sensor::Packet;
use diapason_usblib::Packets;

static SENSOR: Claim<Option<Packets>> = Claim::new(None);

/// Does something with the open pipe; returns C's number for how it went.
fn with(body: impl FnOnce(&mut Packets) -> Result<(), Errno>) -> i32 {
    let done = SENSOR.with(|open| open.as_mut().map_or(Err(Errno::Absent), body));
    done.unwrap_or(Err(Errno::Busy)).map_or_else(error, |()| 0)
}

/// Opens the pipe. Without a grant of it the process ends.
#[unsafe(no_mangle)]
extern "C" fn dia_sensor_open() -> i32 {
    let opened = SENSOR.with(|open| {
        if open.is_some() {
            return Err(Errno::Busy);
        }
        *open = Some(Packets::of_sensor()?);
        Ok(())
    });
    opened.unwrap_or(Err(Errno::Busy)).map_or_else(error, |()| 0)
}

/// Reads the oldest packet that came, or waits for one until the deadline.
#[unsafe(no_mangle)]
extern "C" fn dia_sensor_read(packet: Place<'_, Packet>, deadline: u64) -> i32 {
    with(|open| {
        let read = match deadline {
            0 => open.read().ok_or(Errno::WouldBlock)?,
            _ => open.read_wait(Nanos(deadline))?,
        };
        offer(packet, read);
        Ok(())
    })
}

/// Counts packets that the program found missing by their contents.
#[unsafe(no_mangle)]
extern "C" fn dia_sensor_missed(packets: u64) -> i32 {
    with(|open| {
        open.missed(packets);
        Ok(())
    })
}

/// Writes how many packets found no room, because this program was too slow.
#[unsafe(no_mangle)]
extern "C" fn dia_sensor_lost(packets: Place<'_, u64>) -> i32 {
    with(|open| {
        offer(packets, open.lost());
        Ok(())
    })
}
