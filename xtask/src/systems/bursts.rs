//! The messages of a bus as its pipe declares them at worst: as many at once as the contract lets
//! in, others before and behind as close as it lets them, and a pause after which as many may come
//! at once again.
//!
//! Some of these bursts find whole budgets behind the pause. The others find budgets in parts and
//! full lists of replenishments, because messages came before them. The bursts of all buses of a
//! system are at the same instants, so that the messages of all pipes meet. The planner reads these
//! logs, and refuses one that its pipe does not declare.

use diapason_abi::Nanos;
use diapason_can::frame::{extended, standard};
use diapason_can::{BitRate, CanFrame, wire};
use diapason_system::{CanTraffic, PipeDirection, PipeSpec, System};
use std::fmt::Write;

const SECOND_US: u64 = 1_000_000;
/// From the first instant at which the buses begin to the second, in microseconds, and how much
/// longer each next time is: the phases of periods in it are all different ones.
const EVERY_US: u64 = 50_370;
const LONGER_US: u64 = 7;
/// From the beginning of a time of messages to its burst, in microseconds: the times take these in
/// turn.
const INTO_US: [u64; 4] = [0, 11_310, 3_770, 23_210];

/// Writes the logs that the buses of `system` replay, as long as `length`, at least one instant.
pub fn fill(system: &mut System, length: Nanos) {
    let pipes = &system.pipes;
    for (usb, plug) in system.usb.iter_mut().enumerate() {
        for bus in &mut plug.buses {
            let CanTraffic::Replay { log, .. } = &mut bus.traffic else { continue };
            let rate = plug.bit_rates.get(bus.channel).and_then(|rate| BitRate::new(*rate).ok());
            let is_it = |pipe: &&PipeSpec| {
                (pipe.usb, usize::from(pipe.channel)) == (usb, bus.channel)
                    && pipe.way == PipeDirection::FromDevice
            };
            if let Some((pipe, rate)) = pipes.iter().find(is_it).zip(rate) {
                *log = of(pipe, rate, length.0 / 1_000);
            }
        }
    }
}

/// Returns the logs of `system`, each with the name of its file.
pub fn logs(system: &System) -> impl Iterator<Item = (&str, &str)> {
    let buses = system.usb.iter().flat_map(|plug| &plug.buses);
    buses.filter_map(|bus| match &bus.traffic {
        CanTraffic::Replay { file, log } => Some((&**file, &**log)),
        _ => None,
    })
}

/// Returns the log of a pipe's bus of this rate, so many microseconds long.
fn of(pipe: &PipeSpec, rate: BitRate, length: u64) -> String {
    let number = pipe.number;
    let gap = SECOND_US.div_ceil(pipe.rate.max(1));
    let at_once = pipe.burst + pipe.jitter_ns / 1_000 / gap;
    // After this time without a message as many may come at once again.
    let pause = at_once * gap + pipe.jitter_ns.div_ceil(1_000);
    let (mut log, mut sent) = (String::new(), 0);
    let mut line = |at: u64| {
        let Some((frame, id)) = frame(number, sent) else { return };
        sent += 1;
        // A frame counts when it is through, so one with fewer stuff bits begins later.
        let shorter = wire::worst(id.len() > 3, 8) - wire::length(&frame);
        let at = at + rate.time(shorter.into()).0 / 1_000;
        let data: String = frame.bytes().iter().map(|byte| format!("{byte:02X}")).collect();
        let (seconds, micros) = (at / SECOND_US, at % SECOND_US);
        let _ = writeln!(log, "({seconds}.{micros:06}) can{number} {id}#{data}");
    };
    let (mut begin, mut every) = (0, EVERY_US);
    for into in INTO_US.into_iter().cycle() {
        let burst = begin + into;
        let before = (1..=into / gap).rev().map(|message| burst - message * gap);
        before.for_each(&mut line);
        (0..at_once).for_each(|_| line(burst));
        let behind = (1..).map(|message| burst + message * gap);
        behind.take_while(|at| at + pause < begin + every).for_each(&mut line);
        begin += every.max(into + pause);
        every += LONGER_US;
        if begin >= length {
            break;
        }
    }
    log
}

/// Returns the numbered message of a channel, and its identifier as logs have it.
fn frame(channel: u8, sent: u64) -> Option<(CanFrame, String)> {
    let (id, text) = match u32::from(channel) {
        even if even % 2 == 0 => (standard(0x100 + even), format!("{:03X}", 0x100 + even)),
        odd => (extended(0x0100_0000 + odd), format!("{:08X}", 0x0100_0000 + odd)),
    };
    Some((CanFrame::data(id.ok()?, &sent.to_le_bytes()).ok()?, text))
}

#[cfg(test)]
mod tests {
    use super::super::draw::system;
    use super::super::judge;
    use super::*;

    /// A log that its pipe does not declare would be refused, and nothing would be seen of it.
    #[test]
    fn pipes_declare_their_logs_and_no_more_fits_in() {
        let (mut all, mut refused) = (0, Vec::new());
        for drawn in (0..40).map(|number| system(12, number, &judge::refuses)) {
            let length = Nanos::from_millis(2_500);
            let cores = judge::read(&drawn, length).unwrap_or_default();
            all += cores.iter().flat_map(logs).count();
            assert!(cores.iter().flat_map(logs).all(|(_, log)| !log.is_empty()));
            refused
                .extend(judge::refuses_with(&drawn, length).filter(|why| why.contains("the log")));
        }
        assert!(all > 20, "{all}");
        assert!(refused.is_empty(), "{}: {}", refused.len(), refused.join("\n"));
    }
}
