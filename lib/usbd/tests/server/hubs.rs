//! Hubs: one device at a time is reset and read, whatever the others do.

use crate::ground::{attach, take_lines};
use crate::machine::Machine;
use diapason_abi::Nanos;
use diapason_contract::settings::SERVES;
use diapason_contract::threads::ServiceKind::{Hubs, Keyboards};
use diapason_devices::hub::Hub;
use diapason_devices::keyboard::Keyboard;

const SETTINGS: &[(&str, &[u64])] = &[(SERVES, &[Keyboards as u64, Hubs as u64])];
const PORT: u8 = 1;

fn found(lines: &[String], words: &str) -> usize {
    lines.iter().filter(|line| line.contains(words)).count()
}

#[test]
fn devices_behind_a_hub_take_turns() {
    let mut machine = Machine::with(SETTINGS);
    let mut hub = Hub::new(false, 4);
    for port in 1..=4 {
        let keyboard = Box::new(Keyboard::new(Vec::new()));
        assert!(hub.plug(Nanos::ZERO, port, keyboard).is_ok(), "it fits");
    }
    attach(PORT, Box::new(hub));
    machine.run(Nanos::from_secs(3));
    let lines = take_lines();
    assert_eq!(found(&lines, ": a hub"), 1, "{lines:?}");
    assert_eq!(found(&lines, ": a keyboard"), 1, "{lines:?}");
    assert_eq!(found(&lines, "a device nobody serves"), 3, "{lines:?}");
}
