//! The reader of a `[[pipe]]` from a sensor, for C. It measures as the one in Rust does.

use crate::inlet::PacketInlet;
use crate::words::Place;
use diapason_contract::sensor::Packet;
use diapason_usblib::Packets;

static SENSOR: PacketInlet = PacketInlet::new();

/// Opens the pipe. Without a grant of it the process ends.
#[unsafe(no_mangle)]
extern "C" fn dia_sensor_open() -> i32 {
    SENSOR.open(Packets::of_sensor)
}

/// Reads the oldest packet that came, or waits for one until the deadline.
#[unsafe(no_mangle)]
extern "C" fn dia_sensor_read(packet: Place<'_, Packet>, deadline: u64) -> i32 {
    SENSOR.read(packet, deadline)
}

/// Counts packets that the program found missing by their contents.
#[unsafe(no_mangle)]
extern "C" fn dia_sensor_missed(packets: u64) -> i32 {
    SENSOR.missed(packets)
}

/// Writes how many packets found no room, because this program was too slow.
#[unsafe(no_mangle)]
extern "C" fn dia_sensor_lost(packets: Place<'_, u64>) -> i32 {
    SENSOR.lost(packets)
}
