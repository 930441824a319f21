//! Parts that the programs over USB and those over Ethernet share: when the origin of a ring takes
//! a message for lost, and what origins and sinks say.

#![no_std]
#![forbid(unsafe_code)]

use diapason_rt::{Nanos, log};

/// Time between two reports.
pub const REPORT: Nanos = Nanos::from_secs(1);
/// Until the ring is closed.
pub const START: Nanos = Nanos::from_millis(1_500);
/// Most messages of the origin under way at once: as many frames as wait in the pipe of a socket.
pub const MOST: u32 = 8;
/// A lap after which the message is taken for lost.
pub const PATIENCE: Nanos = Nanos::from_millis(200);

/// The messages that went round.
#[derive(Default)]
pub struct Laps {
    last: [u64; 4],
    came: u64,
    longest: u64,
}

impl Laps {
    /// Counts a lap that began at `begun` and is over now. Every four laps it says `LAPS` and how
    /// long they took, in ns, if messages go `one_by_one`.
    pub fn count(&mut self, begun: u64, now: Nanos, one_by_one: bool) {
        let lap = now.0.saturating_sub(begun);
        let number = (self.came % 4) as usize;
        self.last[number] = lap;
        self.longest = self.longest.max(lap);
        self.came += 1;
        if number == 3 && one_by_one {
            let [a, b, c, d] = self.last;
            log!("LAPS {a} {b} {c} {d}");
        }
    }

    /// Says `RING`, how many messages went round, and the longest lap in ns.
    pub fn tell(&self) {
        log!("RING {} {}", self.came, self.longest);
    }
}

/// The packets of a sensor that came to a sink.
#[derive(Default)]
pub struct PacketTally {
    pub packets: u64,
    pub lost: u64,
    pub damaged: u64,
}

/// Times that a packet carries: made, taken, read, sent.
pub const TIMES: usize = 4;
/// The time at which the sensor made its packet, in that packet.
pub const MADE: usize = 16;
/// Bytes of a number, and where the sensor's own data begins in a datagram.
pub const NUMBER: usize = 8;
pub const DATA: usize = NUMBER * (1 + TIMES);

impl PacketTally {
    /// Says `WAY`, the number of a packet, and when it passed its stages: its own times, and when
    /// it came to the host and was checked.
    pub fn counts(&mut self, [made, taken, read, sent]: [u64; TIMES], came: u64, here: Nanos) {
        log!("WAY {} {made} {taken} {read} {sent} {came} {}", self.packets, here.0);
        self.packets += 1;
    }

    /// Says `SUNK` and the counts.
    pub fn tell(&self) {
        let PacketTally { packets, lost, damaged } = self;
        log!("SUNK {packets} {lost} {damaged}");
    }
}
