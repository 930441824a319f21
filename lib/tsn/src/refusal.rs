//! The reasons for which a gate list, a frame or a load of a port is refused.

use core::fmt;

/// A fault of a gate list or of the traffic that it is to carry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GateRefusal {
    /// The list has no entry.
    Empty,
    /// The entry with this number lasts no time.
    EmptyEntry { entry: usize },
    /// The entries last another time than the cycle.
    Cycle { cycle_ns: u64, filled_ns: u64 },
    /// No window of the class is as long as one of its frames.
    ShortWindow { class: usize, longest_ns: u64, needed_ns: u64 },
    /// The class brings more than its windows, or its credit, can carry.
    Rate { class: usize, asked_ppm: u64, offered_ppm: u64 },
    /// The port has no class with this number.
    Class { class: usize },
    /// A payload is longer than an Ethernet frame takes.
    Payload { bytes: u64 },
    /// A class with credit has a gate that closes.
    GatedCredit { class: usize },
    /// A class with credit is below one without credit that has traffic.
    LowCredit { class: usize },
    /// The credits reserve more than three quarters of the link.
    Credits { ppm: u64 },
    /// A flow is aligned, and its period is no multiple of the cycle.
    Phase { period_ns: u64, cycle_ns: u64 },
    /// A flow has no period.
    Period { class: usize },
    /// A route names a port that does not exist.
    Port { port: usize },
}

impl fmt::Display for GateRefusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            GateRefusal::Empty => write!(out, "the gate list is empty: add a `sched-entry`"),
            GateRefusal::EmptyEntry { entry } => {
                write!(out, "entry {entry} of the gate list lasts 0 ns: give it a time, or drop it")
            }
            GateRefusal::Cycle { cycle_ns, filled_ns } => write!(
                out,
                "the entries of the gate list last {filled_ns} ns and the cycle {cycle_ns} ns: \
                 make the entries fill the cycle"
            ),
            GateRefusal::ShortWindow { class, longest_ns, needed_ns } => write!(
                out,
                "the longest window of class {class} lasts {longest_ns} ns, and a frame with what \
                 may delay it there {needed_ns} ns: lengthen the window, or close the gates of \
                 lower classes before it opens"
            ),
            GateRefusal::Rate { class, asked_ppm, offered_ppm } => write!(
                out,
                "class {class} asks for {asked_ppm} ppm of the link and can have {offered_ppm} \
                 ppm: lengthen its windows or periods, or raise its idle slope"
            ),
            GateRefusal::Class { class } => {
                write!(out, "there is no class {class}: use 0 to 7")
            }
            GateRefusal::Payload { bytes } => {
                write!(out, "a payload of {bytes} bytes: a frame takes 1,500; split it")
            }
            GateRefusal::GatedCredit { class } => write!(
                out,
                "class {class} has an idle slope and a gate that closes: leave its gate open in \
                 every entry, or take the slope away"
            ),
            GateRefusal::LowCredit { class } => write!(
                out,
                "class {class} has an idle slope, and a class above it has traffic and none: give \
                 idle slopes to the highest classes only"
            ),
            GateRefusal::Credits { ppm } => {
                write!(out, "the idle slopes reserve {ppm} ppm of the link: 750,000 are the most")
            }
            GateRefusal::Phase { period_ns, cycle_ns } => write!(
                out,
                "a flow every {period_ns} ns cannot be aligned to a cycle of {cycle_ns} ns: make \
                 its period a multiple of the cycle, or leave its phase out"
            ),
            GateRefusal::Period { class } => {
                write!(out, "a flow of class {class} has a period of 0 ns: give it a period")
            }
            GateRefusal::Port { port } => {
                write!(out, "a route passes port {port}, which does not exist: add the port")
            }
        }
    }
}

impl core::error::Error for GateRefusal {}
