//! The systems that `papers/apps/protocol` measures in, and what it says.
//!
//! Two adapters on one wire: `sender` drives the second, and `driver` the first. The threads have
//! no VCPUs, so nothing but the way of a frame is in the counts.

use crate::boot::{Bench, numbers};
use diapason::Failure;
use diapason::qemu::Onlooker;
use diapason_abi::layout::segment_offset;
use diapason_redir::plugin::{INTERFACE, PluginSource};
use std::fmt::Write;

/// The way of a received frame, as the programs number it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Way {
    Conventional = 0,
    Lazy = 1,
    Bypass = 2,
    TwoCopies = 3,
}

impl Way {
    /// All ways, in the order of their numbers.
    pub const ALL: [Way; 4] = [Way::Conventional, Way::Lazy, Way::Bypass, Way::TwoCopies];

    /// Returns the name of the way in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Way::Conventional => "conventional",
            Way::Lazy => "lazy",
            Way::Bypass => "bypass",
            Way::TwoCopies => "two copies",
        }
    }
}

/// The cost of receiving a message, in instructions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Cost {
    /// The bytes of the message; 0: a frame that nobody wants.
    pub bytes: u64,
    /// The frames that carry it.
    pub frames: u64,
    /// From the interrupt to the return to the interrupted loop.
    pub instructions: u64,
    /// Switches of address spaces.
    pub switches: u64,
    /// Misses of the instruction cache, over the same.
    pub misses: u64,
}

/// The cost of receiving a datagram without adapter and kernel, in instructions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Plain {
    pub bytes: u64,
    /// The decision of the filter, without copy.
    pub filter: u64,
    /// Filter, bypass and copy.
    pub bypass: u64,
    /// Filter, full stack and copy.
    pub full: u64,
    /// Full stack and both copies of the conventional way.
    pub conventional: u64,
}

/// The programs need less than this.
const HORIZON_NS: u64 = 3_000_000_000;
/// The place among the segments of the one that begins with the marks.
const SHARED: u16 = 0;
/// The plugin that counts misses of a cache.
const CACHE: PluginSource =
    PluginSource { name: "misses", files: &[INTERFACE, ("misses.c", include_str!("misses.c"))] };
/// Frames to a port that nobody has: the sender sends so many on purpose.
const UNKNOWN: u64 = 12;

/// Returns the cost of each length of messages, and that of a frame that nobody wants.
pub fn costs(bench: &Bench, way: Way) -> Result<Vec<Cost>, Failure> {
    let text = description(way, 0);
    let [begins, ends] = [0, 8].map(|word| segment_offset(SHARED) + word);
    let arguments = format!("begins={begins},ends={ends}");
    let onlooker = Onlooker { plugin: CACHE, arguments };
    let (lines, seen) = bench.watched_lines(way.name(), &text, HORIZON_NS, onlooker)?;
    let wrong = || Failure::Ours(format!("{}: {}; {seen}", way.name(), lines.join("; ")));
    let mut costs = read_costs(&lines, UNKNOWN).ok_or_else(wrong)?;
    add_misses(&mut costs, &seen).ok_or_else(wrong)?;
    Ok(costs)
}

/// Gives each cost its misses. The plugin wrote a number for each frame that was sent: frames that
/// pass the receiver, which cost nothing, and then those of the costs in their order. Each is sent
/// equally often, and the number in the middle counts.
fn add_misses(costs: &mut [Cost], seen: &str) -> Option<()> {
    let numbers: Vec<u64> = seen.lines().map(|line| line.parse().ok()).collect::<Option<_>>()?;
    let frames = 1 + costs.iter().map(|cost| cost.frames as usize).sum::<usize>();
    let (runs, rest) = (numbers.len() / frames, numbers.len() % frames);
    if runs == 0 || rest > 0 {
        return None;
    }
    let middle = |mut values: Vec<u64>| {
        values.sort_unstable();
        values[values.len() / 2]
    };
    let (idle, mut numbers) = numbers.split_at(runs);
    let idle = middle(idle.to_vec());
    for cost in costs {
        let frames = cost.frames as usize;
        let (own, others) = numbers.split_at(runs * frames);
        let of_message = |frames: &[u64]| frames.iter().map(|it| it.saturating_sub(idle)).sum();
        cost.misses = middle(own.chunks(frames).map(of_message).collect());
        numbers = others;
    }
    Some(())
}

/// `RECEIVE bytes frames instructions switches`, then how many frames were discarded.
fn read_costs(lines: &[String], unknown: u64) -> Option<Vec<Cost>> {
    let (last, lines) = lines.split_last()?;
    if numbers(last, "DISCARDED")? != [unknown] {
        return None;
    }
    let cost = |line: &String| match numbers(line, "RECEIVE")?[..] {
        [bytes, frames, instructions, switches] => {
            Some(Cost { bytes, frames, instructions, switches, misses: 0 })
        }
        _ => None,
    };
    lines.iter().map(cost).collect()
}

/// Returns the times between receptions of the more urgent flow, in ns.
pub fn turns(bench: &Bench, way: Way) -> Result<Vec<u64>, Failure> {
    let lines = bench.lines(way.name(), &description(way, 1), HORIZON_NS)?;
    let damaged = || Failure::Ours(format!("{}: {}", way.name(), lines.join("; ")));
    let (last, rest) = lines.split_last().ok_or_else(damaged)?;
    if numbers(last, "DISCARDED") != Some(vec![0]) {
        return Err(damaged());
    }
    let turn = |line: &String| numbers(line, "TURN").and_then(|turn| turn.first().copied());
    rest.iter().map(turn).collect::<Option<Vec<u64>>>().ok_or_else(damaged)
}

/// The outcome of a flow beside a flood of frames for a less urgent program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Flooded {
    /// Frames of the flood in a second, as asked for.
    pub rate: u64,
    /// Frames of the flood that were sent within that of the flow.
    pub flooded: u64,
    /// Datagrams of the flow that never reached their program.
    pub missed: u64,
}

/// An instruction of the flooded host takes 2 to the power of this, in ns. That makes 31 million a
/// second, and the dissertation's processor has 25 MHz.
const FLOODED_SHIFT: u8 = 5;

/// Returns what becomes of the flow to the more urgent program, beside a flood of `rate` frames a
/// second. The sender has a core of its own.
pub fn flooded(bench: &Bench, way: Way, rate: u64) -> Result<Flooded, Failure> {
    let text = description(way, 2).replace("arguments = [2]", &format!("arguments = [2, {rate}]"));
    let lines = bench.lines_of_cores(way.name(), &text, HORIZON_NS, FLOODED_SHIFT)?;
    let found = lines.iter().find_map(|line| numbers(line, "FLOOD"));
    match found.as_deref() {
        Some([sent, received, flooded]) if received <= sent => {
            Ok(Flooded { rate, flooded: *flooded, missed: sent - received })
        }
        _ => Err(Failure::Ours(format!("{}: {}", way.name(), lines.join("; ")))),
    }
}

/// Returns the costs without adapter and kernel.
pub fn plain(bench: &Bench) -> Result<Vec<Plain>, Failure> {
    let text = "[system]\nname = \"plain\"\n[[process]]\nname = \"plain\"\n\
                program = \"protocol-plain\"\npriority = 10\nstack = \"64K\"\n";
    let lines = bench.lines("plain", text, HORIZON_NS)?;
    let plain = |line: &String| match numbers(line, "PLAIN")?[..] {
        [bytes, filter, bypass, full, conventional] => {
            Some(Plain { bytes, filter, bypass, full, conventional })
        }
        _ => None,
    };
    let read: Option<Vec<Plain>> = lines.iter().map(plain).collect();
    read.ok_or_else(|| Failure::Ours(format!("plain: {}", lines.join("; "))))
}

/// Returns the description. The sender is told to do `what`: 0, it is the loop that everything
/// interrupts; 1, a peer that nothing delays, and sends two periodic flows; 2, a peer with a core
/// of its own.
fn description(way: Way, what: u8) -> String {
    let number = way as u8;
    let cores = if what == 2 { "cores = 2\n" } else { "" };
    let mut text = format!("[system]\nname = \"protocol\"\n{cores}");
    let mut process = |name: &str, program: &str, priority: u8, rest: &str| {
        let _ = write!(
            text,
            "[[process]]\nname = \"{name}\"\nprogram = \"protocol-{program}\"\n\
             priority = {priority}\nstack = \"32K\"\n{rest}"
        );
    };
    let driver = format!(
        "events = 1\nuses = [\"nic0\", \"rings0\", \"frames\", \"shared\", \"read-0\", \"read-1\", \
         \"network\"]\narguments = [{number}]\n"
    );
    process("driver", "driver", 50, &driver);
    for (reader, priority) in [(0, 40), (1, 20)] {
        let rest = format!(
            "uses = [\"frames\", \"payloads\", \"shared\", \"read-{reader}\"]\n\
             arguments = [{number}, {reader}]\n"
        );
        process(&format!("reader-{reader}"), "reader", priority, &rest);
    }
    if way == Way::Conventional {
        let rest = "uses = [\"frames\", \"payloads\", \"shared\", \"read-0\", \"read-1\", \
                    \"network\"]\n";
        process("stack", "network", 30, rest);
    }
    let core = if what == 2 { "core = 1\n" } else { "" };
    let sender = format!(
        "{core}counters = true\nuses = [\"nic1\", \"rings1\", \"sends\", \"shared\"]\n\
         arguments = [{what}]\n"
    );
    process("sender", "sender", if what == 1 { 60 } else { 10 }, &sender);
    // Nothing holds interrupts of a flood apart.
    let interval = if what == 2 { "1us" } else { "100us" };
    let first = format!("irqs = 1\ninterval = \"{interval}\"\n");
    for (name, rest) in [("nic0", &*first), ("nic1", "instance = 1\n")] {
        let _ = write!(
            text,
            "[[device]]\nname = \"{name}\"\npci = \"020000\"\nvendor = \"8086:10d3\"\n\
             size = \"128K\"\n{rest}"
        );
    }
    for (name, size, dma) in [
        ("shared", 8, false),
        ("rings0", 4, true),
        ("rings1", 4, true),
        ("sends", 4, true),
        ("frames", 256, true),
        ("payloads", 256, false),
    ] {
        let _ = write!(text, "[[segment]]\nname = \"{name}\"\nsize = \"{size}K\"\ndma = {dma}\n");
    }
    for name in ["read-0", "read-1", "network"] {
        let _ = write!(text, "[[semaphore]]\nname = \"{name}\"\nkind = \"counting\"\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_description_makes_sense() {
        for way in Way::ALL {
            for flows in [0, 1] {
                let text = description(way, flows);
                let system = diapason_system::parse("protocol", &text);
                let system = system.unwrap_or_else(|wrong| panic!("{way:?}: {wrong}"));
                assert_eq!(diapason::qemu::adapters(&system), 2);
                assert_eq!(system.segments[usize::from(SHARED)].name, "shared");
            }
        }
    }

    #[test]
    fn misses_belong_to_messages_in_the_order_in_which_they_were_sent() {
        let cost = |bytes, frames| Cost { bytes, frames, instructions: 1, switches: 1, misses: 0 };
        let mut costs = [cost(0, 1), cost(1_400, 1), cost(2_000, 2)];
        // Three runs of each.
        let seen = "2\n1\n1\n31\n90\n41\n61\n51\n71\n61\n21\n71\n21\n0\n91\n";
        add_misses(&mut costs, seen).unwrap();
        assert_eq!(costs.map(|cost| cost.misses), [40, 60, 90]);
        for bad in ["", "1\n2\nx\n4\n5\n", "1\n2\n3\n4\n5\n6\n"] {
            assert_eq!(add_misses(&mut costs, bad), None, "{bad}");
        }
    }

    #[test]
    fn lines_become_costs_and_a_lost_frame_is_noticed() {
        let lines = |text: &str| text.lines().map(String::from).collect::<Vec<String>>();
        let good = lines("RECEIVE 32 1 1869 3\nDISCARDED 20");
        let cost = Cost { bytes: 32, frames: 1, instructions: 1_869, switches: 3, misses: 0 };
        assert_eq!(read_costs(&good, 20), Some(vec![cost]));
        assert_eq!(read_costs(&good, 0), None);
        for bad in ["RECEIVE 32 1 1869 3", "RECEIVE 32 1 1869\nDISCARDED 20", ""] {
            assert_eq!(read_costs(&lines(bad), 20), None);
        }
        assert_eq!(read_costs(&lines("LOST 32 1\nDISCARDED 20"), 20), None);
    }
}
