//! Links to other computers, and the server's reports on them.

use crate::ground::{attach, detach, take_reports};
use crate::machine::Machine;
use diapason_abi::Nanos;
use diapason_contract::link::{self, Ask, Done, RECORDS, UNIT};
use diapason_contract::settings::{Awaited, FormingOrder, ORDER};
use diapason_devices::bridge::slow_bridge;
use diapason_pipe::measured::{LinkReport, Measurement, NetworkStep};
use diapason_usb::class::link::{DEPTH, PEER_TIME};
use diapason_usbd::Platform;

/// The first port for SuperSpeed.
const PORT: u8 = 5;

/// Returns the reports on links since the last call.
fn said() -> Vec<LinkReport> {
    let link = |said| match said {
        Measurement::Link(report) => Some(report),
        _ => None,
    };
    take_reports().into_iter().filter_map(link).collect()
}

/// A bottom half sets the time after which the other side is gone. The thread that manages, which
/// slept before, is there in time whenever that is.
#[test]
fn a_silent_side_is_found_in_time_however_the_managing_thread_sleeps() {
    for delay in (0..20).map(|step| Nanos::from_millis(step * 7)) {
        let mut machine = Machine::with(&[("links", &[0])]);
        machine.sleeps = true;
        let [asks, ..] = link::NAMES[0];
        let mut asks = machine.ground.writer::<Ask, RECORDS>(asks).unwrap();
        let (here, _there) = slow_bridge(UNIT, Nanos::ZERO);
        attach(PORT, Box::new(here));
        machine.run(Nanos::from_secs(1) + delay);
        take_reports();
        asks.push(&Ask { what: link::SEND, place: 0, bytes: UNIT as u32, quiet: 0 }).unwrap();
        machine.ask();
        machine.run(PEER_TIME);
        assert_eq!(said(), [], "{delay:?}: too early");
        machine.run(Nanos::from_millis(5));
        assert!(said().iter().any(|report| !report.here), "{delay:?}: not found in time");
    }
}

#[test]
fn a_link_is_told_as_it_comes_and_as_the_other_side_is_silent() {
    let mut machine = Machine::with(&[("links", &[0])]);
    let [asks, ..] = link::NAMES[0];
    let mut asks = machine.ground.writer::<Ask, RECORDS>(asks).unwrap();
    assert_eq!(said(), [], "there is no cable");
    // The other end is plugged into nothing.
    let (here, _there) = slow_bridge(UNIT, Nanos::ZERO);
    attach(PORT, Box::new(here));
    machine.run(Nanos::from_secs(1));
    let found = LinkReport { here: true, found: 1, ..LinkReport::default() };
    assert_eq!(said(), [found]);
    for place in 0..3 {
        let ask = Ask { what: link::SEND, place, bytes: UNIT as u32, quiet: 0 };
        asks.push(&ask).unwrap();
    }
    machine.ask();
    machine.run(Nanos::from_secs(1));
    assert_eq!(said(), [LinkReport { here: false, ..found }]);
    detach(PORT);
    machine.run(Nanos::from_secs(1));
    assert_eq!(said(), [], "it was not there before");
}

/// Two links of one server are joined by a cable. Each has more requests of both directions than
/// its controller keeps.
#[test]
fn each_direction_is_answered_in_its_order() {
    const EACH: u32 = DEPTH as u32 + 4;
    let mut machine = Machine::with(&[("links", &[PORT.into(), u64::from(PORT) + 1])]);
    let clients = [0, 1].map(|number| {
        let [asks, done, _] = link::NAMES[number];
        let asks = machine.ground.writer::<Ask, RECORDS>(asks).unwrap();
        (asks, machine.ground.reader::<Done, RECORDS>(done).unwrap())
    });
    let (here, there) = slow_bridge(UNIT, Nanos::ZERO);
    attach(PORT, Box::new(here));
    attach(PORT + 1, Box::new(there));
    machine.run(Nanos::from_secs(1));
    let mut dones = Vec::new();
    for (mut asks, done) in clients {
        for number in 0..EACH {
            let bytes = UNIT as u32;
            for (what, place) in [(link::FILL, number), (link::SEND, 2 * EACH - number)] {
                asks.push(&Ask { what, place, bytes, quiet: 0 }).unwrap();
            }
        }
        dones.push(done);
    }
    machine.ask();
    machine.run(Nanos::from_millis(10));
    for mut done in dones {
        let mut answers = [Vec::new(), Vec::new()];
        while let Some(Done { what, place, status, bytes, .. }) = done.pop() {
            assert_eq!((status, bytes as usize), (link::DONE, UNIT));
            answers[what as usize].push(place);
        }
        let [came, sent] = answers;
        assert!(came.into_iter().eq(0..EACH));
        assert!(sent.into_iter().eq((0..EACH).map(|number| 2 * EACH - number)));
    }
}

/// Returns the steps into a network that were told since the last call.
fn steps() -> Vec<(NetworkStep, u8)> {
    let step = |said| match said {
        Measurement::Network(report) => Some((report.step, report.port)),
        _ => None,
    };
    take_reports().into_iter().filter_map(step).collect()
}

/// Returns the settings of a host that waits at this port, with a link there.
fn waiting(port: u8, leads: bool) -> (Vec<u64>, Vec<u64>) {
    let mut order = FormingOrder { enables: true, leads, ..FormingOrder::default() };
    order.awaits[0] = Some(Awaited { port, serial: 0, waits: true });
    (vec![port.into()], order.words().to_vec())
}

#[test]
fn a_host_waits_then_enumerates_then_lets_its_capability_be_enabled() {
    let (ports, order) = waiting(PORT, false);
    let mut machine = Machine::with(&[("links", &ports), (ORDER, &order)]);
    // A device at another port is not touched while the host waits, nor at a port of no link.
    let (other, _far) = slow_bridge(UNIT, Nanos::ZERO);
    attach(PORT + 1, Box::new(other));
    machine.run(Nanos::from_secs(1));
    assert_eq!((steps(), machine.server.take_enable()), (vec![], false));
    machine.run(Nanos::from_secs(3));
    assert_eq!(steps(), [(NetworkStep::Late, PORT)], "it says once who is missing");
    let (here, _there) = slow_bridge(UNIT, Nanos::ZERO);
    attach(PORT, Box::new(here));
    machine.run(Nanos::from_secs(1));
    assert_eq!(steps(), [(NetworkStep::Enumerate, 0), (NetworkStep::Enumerated, 0)]);
    assert!(machine.server.take_enable() && !machine.server.take_enable());
}

#[test]
fn a_leader_lets_its_capability_be_enabled_before_it_waits() {
    let (ports, order) = waiting(PORT, true);
    let mut machine = Machine::with(&[("links", &ports), (ORDER, &order)]);
    assert!(machine.server.take_enable());
    machine.run(Nanos::from_secs(1));
    assert_eq!((steps(), machine.server.take_enable()), (vec![], false));
}
