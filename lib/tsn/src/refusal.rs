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
    /// The class brings more than its windows can carry.
    Rate { class: usize, asked_ppm: u64, offered_ppm: u64 },
    /// The port has no class with this number.
    Class { class: usize },
    /// A payload is longer than an Ethernet frame takes.
    Payload { bytes: u64 },
    /// A class with credit has a gate that closes.
    GatedCredit { class: usize },
    /// A class with credit is below one with traffic and a gate that closes.
    GatedAbove { class: usize },
    /// Classes above one with credit leave less of the link than its idle slope.
    AboveCredit { class: usize, ppm: u64 },
    /// The flows of a class bring more than its idle slope.
    Slope { class: usize, needed_kbit: u64, slope_kbit: u64 },
    /// An idle slope is zero.
    NoSlope { class: usize },
    /// The idle slopes reserve more than the link.
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
                 ppm: lengthen its windows or periods"
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
            GateRefusal::GatedAbove { class } => write!(
                out,
                "class {class} has an idle slope, and the gate of a class above it closes: leave \
                 that gate open in every entry, or take the slope away"
            ),
            GateRefusal::AboveCredit { class, ppm } => write!(
                out,
                "the idle slope of class {class} and what classes above it ask for come to {ppm} \
                 ppm of the link: lower the slope, or send less above it"
            ),
            GateRefusal::Slope { class, needed_kbit, slope_kbit } => write!(
                out,
                "class {class} asks for {needed_kbit} kbit/s, and its idle slope is {slope_kbit}: \
                 write at least `idle_slope = {needed_kbit}`, or send fewer messages"
            ),
            GateRefusal::NoSlope { class } => {
                write!(out, "the idle slope of class {class} is 0: raise it, or take it away")
            }
            GateRefusal::Credits { ppm } => write!(
                out,
                "the idle slopes reserve {ppm} ppm of the link: make them add up to 1,000,000 at \
                 most"
            ),
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
