//! The way of each packet from the sensor to the program of the other computer, over USB alone or
//! over Ethernet.

use super::hosts::{CABLE_NS, LOOK_US, MODERATION_NS, PAIR, PERIOD_NS};
use super::machine::{numbers, run};
use super::wires::{HEADS, PACKET, SWITCH_NS, pair};
use crate::Effort;
use diapason::Failure;
use diapason::metal::Built;

/// The time from one packet of the sensor to the next.
pub const SENSOR_NS: u64 = 2_500_000;
/// Time until the sensor and the link are there.
const START_NS: u64 = 2_000_000_000;
/// After the first packet has come, this long no packet is counted: those that waited for the link
/// are still being worked off.
const SETTLING_NS: u64 = 10 * SENSOR_NS;

/// When a packet passed its stages, in ns since the start of all hosts.
#[derive(Clone, Copy, Debug)]
pub struct PacketWay {
    pub made: u64,
    /// The relay gives it to the link.
    pub sent: u64,
    /// The server of the other host has it.
    pub came: u64,
    /// The program of the other host has it.
    pub here: u64,
}

/// All packets of a run.
#[derive(Default, Debug)]
pub struct Ways {
    pub all: Vec<PacketWay>,
    /// Packets that were lost or damaged, and those of which a line is missing or absurd.
    pub wrong: u64,
}

impl Ways {
    /// Returns how many packets a run is to have: the paper has 5,000.
    pub const fn wanted(effort: Effort) -> u64 {
        match effort {
            Effort::Quick => 1_200,
            Effort::Full => 5_000,
            Effort::Long => 30_000,
        }
    }

    /// Simulates the packets over USB alone.
    ///
    /// # Errors
    /// If a host breaks a promise, or hardly any packet comes.
    pub fn over_usb(effort: Effort, built: &Built) -> Result<Ways, Failure> {
        Ways::simulated(PAIR, effort, built)
    }

    /// Simulates the packets over a switch that passes them in a window of so many ns of each
    /// microframe.
    ///
    /// # Errors
    /// If a host breaks a promise, or hardly any packet comes.
    pub fn over_ethernet(window_ns: u64, effort: Effort, built: &Built) -> Result<Ways, Failure> {
        Ways::simulated(&pair(window_ns, PERIOD_NS), effort, built)
    }

    fn simulated(list: &str, effort: Effort, built: &Built) -> Result<Ways, Failure> {
        let packets = Ways::wanted(effort);
        let mut ways = Ways::default();
        let (mut next, mut failed) = (0, 0);
        let horizon = START_NS + packets * SENSOR_NS;
        run(list, built, horizon, |_, words| {
            if let Some([_, lost, damaged]) = numbers(words, "SUNK").as_deref() {
                failed = lost + damaged;
            }
            let way = numbers(words, "WAY");
            let Some([number, made, taken, read, sent, came, here]) = way.as_deref() else {
                return;
            };
            let in_order = [made, taken, read, sent, came, here].is_sorted();
            ways.wrong += u64::from(*number != next || !in_order);
            next = number + 1;
            ways.all.push(PacketWay { made: *made, sent: *sent, came: *came, here: *here });
        })?;
        ways.wrong += failed;
        let begun = ways.all.first().map_or(0, |way| way.came + SETTLING_NS);
        ways.all.retain(|way| way.made > begun);
        ways.all.truncate(usize::try_from(packets).unwrap_or(usize::MAX));
        if ways.all.len() < 100 {
            return Err(Failure::Ours(format!("only {} packets came", ways.all.len())));
        }
        Ok(ways)
    }
}

/// The bound of the whole way: each stage on a processor ends within the period of its VCPU, as in
/// `usb-latency`: the stage, its time in ns, and how often it counts.
pub const TERMS: [(&str, u64, u64); 7] = [
    (
        "sensor's bus: the transfer, and the next look of the controller (eq. 3, a microframe)",
        135_896,
        1,
    ),
    ("bottom half of the sensor", PERIOD_NS, 1),
    ("relay", PERIOD_NS, 1),
    ("debug server: sends", LOOK_US * 1_000, 1),
    ("link: transfer (eq. 4) and cable", 901 + CABLE_NS, 1),
    ("moderation of the link's interrupt, and its bottom half", MODERATION_NS + PERIOD_NS, 1),
    ("program of the other computer", PERIOD_NS, 1),
];

/// The time of a packet on a wire of 1 Gbit/s, with 42 bytes that Ethernet and its tag add.
const FRAME_NS: u64 = (PACKET + HEADS + 42) * 8;
/// The parts of the way over Ethernet before the port of the switch, and behind it.
pub const BEFORE_PORT: [(&str, u64, u64); 6] = [
    TERMS[0],
    TERMS[1],
    TERMS[2],
    ("adapter's server: sends", PERIOD_NS, 1),
    ("adapter: fetches the frame", 5_000, 1),
    ("wire, and the switch's latency", FRAME_NS + CABLE_NS + SWITCH_NS, 1),
];
pub const BEHIND_PORT: [(&str, u64, u64); 3] = [
    ("wire: from end to end", CABLE_NS, 1),
    ("moderation of the adapter's interrupt, and its bottom half", MODERATION_NS + PERIOD_NS, 1),
    TERMS[6],
];

/// Returns the sum of the first terms, in ns.
pub fn sum(terms: &[(&str, u64, u64)]) -> u64 {
    terms.iter().map(|(_, ns, times)| ns * times).sum()
}
