//! Links to other computers, and the server's reports on them.

use crate::ground::{attach, detach, take_reports};
use crate::machine::Machine;
use diapason_abi::Nanos;
use diapason_contract::link::{self, Ask, RECORDS, UNIT};
use diapason_devices::bridge::slow_bridge;
use diapason_pipe::measured::{LinkReport, Measurement};
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
