//! When messages are through the bus beside two cameras, and how long a whole trip takes at the
//! worst phase of it.
//!
//! A message that begins to cross later is never through earlier. So each stage between two
//! crossings takes its longest, and only the phase of the first crossing is free.

use super::bound::PACKET;

/// A microframe, and the packets of cameras in it: one sends in each, the other in every second.
const SLOT_PS: u64 = 125_000_000;
const CAMERA_PS: u64 = 33 * 1_720_800;
/// The time of a packet, and of a question to an endpoint that has none.
const PACKET_PS: u64 = 1_778_400;
const QUESTION_PS: u64 = 134_400;
/// Questions that no packet brings: when memory is lent to either link, and when data comes.
const QUESTIONS: u64 = 8;
/// The step from one phase to the next, and from one division of a time among two stays.
const PHASE_PS: u64 = 50_000;
const DIVISION_PS: u64 = 2_000_000;

/// Returns when all is through that takes so long and is there at `from`, if each packet of it
/// takes no more than [`PACKET_PS`].
///
/// Nobody overtakes the first packet, and a packet begins only if it ends in its microframe. So a
/// microframe that does not end it all has less room left than that of a packet.
fn through(from: u64, mut time: u64) -> u64 {
    let mut slot = from / SLOT_PS;
    loop {
        let cameras = if slot.is_multiple_of(2) { 2 * CAMERA_PS } else { CAMERA_PS };
        let (begin, end) = ((slot * SLOT_PS + cameras).max(from), (slot + 1) * SLOT_PS);
        let room = end.saturating_sub(begin);
        if time <= room {
            return begin + time;
        }
        time -= room.saturating_sub(PACKET_PS);
        slot += 1;
    }
}

/// Returns how long two messages of so many bytes take on the bus, without cameras. Each packet may
/// let an endpoint ask once in vain.
fn taken(bytes: u32) -> u64 {
    let packets = 2 * u64::from(bytes.div_ceil(PACKET));
    packets * PACKET_PS + (packets + QUESTIONS) * QUESTION_PS
}

/// The longest times of the stages between the crossings of a round trip, in ns.
pub struct Between {
    /// Until the router hears of a message that came: moderation.
    pub heard: u64,
    /// Both stays of the router, and one of them at most.
    pub router: [u64; 2],
    /// From the second crossing to the third: both cables, a look, and the board that answers.
    pub answer: u64,
}

/// Returns the longest time from the first crossing to the end of the fourth, in ns, for messages
/// of so many bytes.
///
/// All packets of both messages may have to cross before a message is through.
pub fn longest(bytes: u32, between: &Between) -> u64 {
    let time = taken(bytes);
    let cross = |from| through(from, time);
    let [both, one] = between.router.map(|ns| 1_000 * ns);
    let (heard, answer) = (1_000 * between.heard, 1_000 * between.answer);
    let trip = |begin: u64, first: u64, second: u64| {
        let answered = cross(cross(begin) + heard + first) + answer;
        cross(cross(answered) + heard + second) - begin
    };
    // A division between two steps is no worse than one with both of its ends.
    let divisions = (0..=both / DIVISION_PS).map(|step| {
        let first = (step + 1) * DIVISION_PS;
        (first.min(one), (both - step * DIVISION_PS).min(one))
    });
    let divisions: Vec<(u64, u64)> = divisions.collect();
    let phases = (1..=2 * SLOT_PS / PHASE_PS).map(|step| step * PHASE_PS);
    let each = phases.flat_map(|begin| divisions.iter().map(move |it| (begin, it)));
    let longest = each.map(|(begin, (first, second))| trip(begin, *first, *second)).max();
    // The trip may begin just behind the phase before.
    (longest.unwrap_or_default() + PHASE_PS).div_ceil(1_000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use diapason_bus::{
        Async, BusInstance, Criticality, Direction, EndpointId, PeriodicEndpoint, Transfer, plan,
    };

    /// Returns the bus of the article, which may be periodic all of the time.
    fn bus() -> BusInstance {
        BusInstance { periodic_percent: 100, ..BusInstance::uncoded() }
    }

    /// Returns a camera: 33 packets every `period` microframes.
    const fn camera(number: u32, period: u32) -> PeriodicEndpoint {
        PeriodicEndpoint {
            id: EndpointId(number),
            transfer: Transfer::Isochronous,
            direction: Direction::In,
            packet: PACKET,
            burst: 10,
            mult: 2,
            period,
            longest_period: period,
            criticality: Criticality::High,
        }
    }

    /// Returns a bulk endpoint of a link.
    const fn bulk(number: u32) -> Async {
        let (transfer, direction) = (Transfer::Bulk, Direction::In);
        let id = EndpointId(100 + number);
        Async { id, transfer, direction, packet: PACKET, burst: 0, guarantee: None }
    }

    /// Returns the longest time in which an endpoint of `endpoints` moves so many bytes beside two
    /// cameras, in ns.
    fn bus_ns(bytes: u32, endpoints: u32) -> u64 {
        let (bus, all) = (bus(), (1..=endpoints).map(bulk).collect::<Vec<_>>());
        let plan = plan(&bus, &[camera(1, 1), camera(2, 2)], &all).unwrap();
        let worst = plan.worst_time(&bus, &all, all[0].id, bytes).unwrap();
        worst.unwrap().nanos().0
    }

    /// The exact times of `docs/bus.md`, table 2.
    #[test]
    fn the_bus_is_that_of_table_2() {
        let exact = [8_192, 20_480, 40_960, 88_064].map(|bytes| bus_ns(bytes, 4) / 100);
        assert_eq!(exact, [2_298, 4_869, 9_726, 19_869]);
    }

    /// Returns the longest time on the bus over all phases.
    fn worst(time: u64) -> u64 {
        let phases = (0..2 * SLOT_PS / 1_000).map(|step| step * 1_000);
        phases.map(|begin| through(begin, time) - begin).max().unwrap()
    }

    /// The bus crate knows the supremum over all phases. A microframe may lose less than a packet
    /// here, which then waits for the next room.
    #[test]
    fn packets_are_through_no_sooner_than_the_bus_crate_says() {
        for packets in [1, 2, 6, 7, 8, 20, 44, 45, 86, 172] {
            let exact = 1_000 * bus_ns(packets as u32 * PACKET, 1);
            let found = worst(packets * PACKET_PS);
            assert!(found + 2_000 >= exact, "{packets}: {found} {exact}");
            assert!(found <= exact + 2 * CAMERA_PS + exact / 20, "{packets}: {found} {exact}");
        }
    }

    #[test]
    fn a_later_message_is_never_through_earlier() {
        for packets in [1, 7, 86] {
            let ends = (0..5_000).map(|step| through(step * PHASE_PS, packets * PACKET_PS));
            assert!(ends.collect::<Vec<_>>().is_sorted(), "{packets}");
        }
    }

    /// The whole is no longer than its parts, and no shorter than any trip.
    #[test]
    fn a_trip_is_shorter_than_the_sum_of_its_longest_crossings() {
        let between = Between { heard: 52_000, router: [240_000, 200_000], answer: 210_000 };
        for bytes in [512, 4_096, 44_032] {
            let cross = |from| through(from, taken(bytes));
            let others = 2 * between.heard + between.router[0] + between.answer;
            let found = longest(bytes, &between);
            assert!(found < others + 4 * worst(taken(bytes)) / 1_000 + 4_000, "{bytes}");
            let (heard, stay) = (1_000 * between.heard, 120_000_000);
            for begin in (0..2 * SLOT_PS).step_by(7_777_777) {
                let answered = cross(cross(begin) + heard + stay) + 1_000 * between.answer;
                let end = cross(cross(answered) + heard + stay);
                assert!((end - begin) / 1_000 <= found, "{bytes} at {begin}");
            }
        }
    }
}
