//! Reset, capability lists, ports, the microframe counter: what a driver sees before it does
//! anything.

use crate::support::{Driver, Ram, Shared, op, portsc};
use diapason_abi::Nanos;
use diapason_usb::Speed;
use diapason_usb::register::port::{self, link};
use diapason_usb::register::{capability, command, extended, operational, status};
use diapason_usb::trb::Kind;
use diapason_xhc::{Config, Protocol, Xhc};

const STATUS: u64 = 0x80 + operational::STATUS;
const COMMAND: u64 = 0x80 + operational::COMMAND;

fn link_of(driver: &Driver, number: u8) -> u32 {
    driver.read(portsc(number)) >> port::LINK_SHIFT & 0xf
}

#[test]
fn nothing_is_taken_before_it_is_ready() {
    let (mut xhc, mut ram) = (Xhc::new(Config::default()), Ram::new());
    let almost = Nanos(999_999);
    assert_eq!(xhc.read(STATUS, Nanos::ZERO), status::NOT_READY | status::HALTED);
    xhc.write(op(operational::CONFIGURE), 8, almost, &mut ram);
    assert_eq!(xhc.read(op(operational::CONFIGURE), almost), 0);
    assert_eq!(xhc.counts().not_ready_writes, 1);
    assert_eq!(xhc.next_event(), Nanos::from_millis(1));
    xhc.advance(Nanos::from_millis(1), &mut ram);
    assert_eq!(xhc.read(STATUS, Nanos::from_millis(1)), status::HALTED);
    xhc.write(op(operational::CONFIGURE), 8, Nanos::from_millis(1), &mut ram);
    assert_eq!(xhc.read(op(operational::CONFIGURE), Nanos::from_millis(1)), 8);
}

#[test]
fn a_reset_forgets_and_takes_its_time() {
    let mut driver = Driver::running(Config::default());
    driver.write(COMMAND, command::RESET);
    assert_ne!(driver.read(COMMAND) & command::RESET, 0);
    assert_eq!(driver.read(STATUS), status::NOT_READY | status::HALTED);
    driver.run_for(Nanos::from_millis(1));
    assert_eq!((driver.read(COMMAND), driver.read(STATUS)), (0, status::HALTED));
    assert_eq!(driver.read(op(operational::CONTEXTS)), 0);
}

#[test]
fn stopping_takes_a_microframe() {
    let mut driver = Driver::running(Config::default());
    driver.write(COMMAND, 0);
    assert_eq!(driver.read(STATUS) & status::HALTED, 0);
    driver.run_for(Nanos::from_micros(125));
    assert_eq!(driver.read(STATUS) & status::HALTED, 1);
    let before = driver.read(diapason_xhc::RUNTIME);
    driver.run_for(Nanos::from_millis(3));
    assert_eq!(driver.read(diapason_xhc::RUNTIME), before, "the counter stands still");
    driver.write(diapason_xhc::DOORBELLS, 0);
    assert_eq!(driver.xhc.counts().idle_doorbells, 1);
}

#[test]
fn capabilities_name_the_parts() {
    let config = Config { scratchpads: 37, large_contexts: true, ..Config::default() };
    let driver = Driver::cold(config);
    assert_eq!(driver.read(capability::LENGTH), 0x0110_0080);
    assert_eq!(driver.read(capability::PARAMETERS_1), 8 << 24 | 8 << 8 | 32);
    let second = driver.read(capability::PARAMETERS_2);
    assert_eq!((second >> 21 & 0x1f) << 5 | second >> 27, 37);
    assert_ne!(driver.read(capability::CAPABILITIES_1) & capability::LARGE_CONTEXTS, 0);
    let mut at = u64::from(driver.read(capability::CAPABILITIES_1) >> 16) * 4;
    let mut list = Vec::new();
    loop {
        let head = driver.read(at);
        list.push((head as u8, head >> 24, driver.read(at + 8) & 0xffff));
        match head >> 8 & 0xff {
            0 => break,
            next => at += u64::from(next) * 4,
        }
    }
    let protocol = extended::PROTOCOL;
    assert_eq!(
        list,
        [(extended::LEGACY, 0, 0), (protocol, 2, 4 << 8 | 1), (protocol, 3, 4 << 8 | 5)]
    );
}

#[test]
fn the_firmware_lets_go_in_its_time() {
    let mut driver = Driver::cold(Config { firmware: true, ..Config::default() });
    let own = 1 << 24;
    assert_eq!(driver.read(diapason_xhc::EXTENDED) >> 16 & 1, 1);
    driver.write(diapason_xhc::EXTENDED, driver.read(diapason_xhc::EXTENDED) | own);
    driver.run_for(Nanos(4_999_999));
    assert_eq!(driver.read(diapason_xhc::EXTENDED) >> 16, 0x101);
    driver.run_for(Nanos(1));
    assert_eq!(driver.read(diapason_xhc::EXTENDED) >> 16, 0x100);
}

#[test]
fn a_usb_2_port_is_reset_for_50_ms() {
    let mut driver = Driver::running(Config::default());
    let gadget = Shared::new(Speed::High);
    driver.xhc.attach(1, gadget.boxed(), driver.now, &mut driver.ram);
    let status_word = driver.read(portsc(1));
    assert_eq!(status_word & 0xffff, port::CONNECTED | port::POWER | link::POLLING << 5);
    let events = driver.take(0);
    assert_eq!((events.len(), events[0].kind()), (1, Some(Kind::PortStatusChange)));
    assert_eq!(events[0].parameter, 1 << 24);
    driver.write(portsc(1), port::RESET | port::POWER);
    driver.run_for(Nanos(49_999_999));
    let before = driver.read(portsc(1));
    assert_eq!((before & port::RESET, before & port::ENABLED), (port::RESET, 0));
    // The change bit of the connection is still set: no edge, no event.
    driver.run_for(Nanos(1));
    assert!(driver.take(0).is_empty());
    let after = driver.read(portsc(1));
    assert_eq!(after & (port::RESET | port::ENABLED), port::ENABLED);
    assert_eq!(after & port::CHANGES, port::CONNECT_CHANGE | port::RESET_CHANGE);
    assert_eq!((after >> port::SPEED_SHIFT & 0xf, gadget.0.borrow().resets), (3, 1));
}

#[test]
fn written_ones_clear_changes_and_disable() {
    let mut driver = Driver::running(Config::default());
    driver.plug(1, Shared::new(Speed::Full).boxed());
    driver.write(portsc(1), port::POWER);
    assert_ne!(driver.read(portsc(1)) & port::ENABLED, 0, "zeros do nothing");
    driver.write(portsc(1), driver.read(portsc(1)) & port::NEUTRAL);
    assert_ne!(driver.read(portsc(1)) & port::ENABLED, 0, "the neutral mask does nothing");
    driver.write(portsc(1), driver.read(portsc(1)));
    assert_eq!(driver.read(portsc(1)) & port::ENABLED, 0, "the word itself disables");
    driver.xhc.detach(1, driver.now, &mut driver.ram);
    assert_eq!(driver.read(portsc(1)) & (port::CONNECTED | port::CHANGES), port::CONNECT_CHANGE);
    assert_eq!(driver.take(0).len(), 1);
    driver.write(portsc(1), port::CHANGES | port::POWER);
    assert_eq!(driver.read(portsc(1)) & port::CHANGES, 0);
}

#[test]
fn a_usb_3_link_trains_by_itself() {
    let mut driver = Driver::running(Config::default());
    driver.xhc.attach(5, Shared::new(Speed::Super).boxed(), driver.now, &mut driver.ram);
    assert_eq!((link_of(&driver, 5), driver.read(portsc(5)) & 1), (link::POLLING, 0));
    driver.run_for(Nanos::from_millis(20));
    let trained = driver.read(portsc(5));
    assert_eq!(trained, 0x0002_1203, "as QEMU shows it");
    assert_eq!(driver.take(0).len(), 1);
    driver.write(portsc(5), port::CHANGES | port::POWER);
    driver.xhc.lose_link(driver.now, &mut driver.ram, 5);
    assert_eq!(link_of(&driver, 5), link::INACTIVE);
    assert_eq!(driver.read(portsc(5)) & port::CHANGES, port::LINK_CHANGE);
    driver.write(portsc(5), port::RESET | port::POWER);
    assert_eq!(driver.read(portsc(5)) & port::RESET, 0, "a hot reset does not help");
    driver.write(portsc(5), port::WARM_RESET | port::POWER);
    driver.run_for(Nanos::from_millis(100));
    let changes = port::RESET_CHANGE | port::WARM_RESET_CHANGE | port::LINK_CHANGE;
    assert_eq!(driver.read(portsc(5)) & port::CHANGES, changes);
    assert_eq!(link_of(&driver, 5), link::U0);
}

#[test]
fn ports_without_power_see_nothing() {
    let config = Config { port_power: true, ..Config::default() };
    let usb3 = config.groups.iter().position(|group| group.protocol == Protocol::Usb3);
    assert_eq!(usb3, Some(1));
    let mut driver = Driver::running(config);
    driver.xhc.attach(5, Shared::new(Speed::Super).boxed(), driver.now, &mut driver.ram);
    driver.run_for(Nanos::from_millis(50));
    assert_eq!((link_of(&driver, 5), driver.read(portsc(5)) & port::CHANGES), (link::DISABLED, 0));
    driver.write(portsc(5), port::POWER);
    driver.run_for(Nanos::from_millis(20));
    assert_ne!(driver.read(portsc(5)) & port::ENABLED, 0);
}

#[test]
fn the_microframe_counter_counts_and_tells_that_it_wrapped() {
    let mut driver = Driver::running(Config::default());
    driver.run_to(Nanos::from_millis(100));
    assert_eq!(driver.read(diapason_xhc::RUNTIME), 800);
    driver.write(COMMAND, command::RUN | command::WRAP_EVENTS);
    driver.run_to(Nanos(2_047_999_999));
    assert_eq!((driver.read(diapason_xhc::RUNTIME), driver.take(0).len()), (0x3fff, 0));
    driver.run_to(Nanos::from_millis(2_048));
    let events = driver.take(0);
    assert_eq!(
        (driver.read(diapason_xhc::RUNTIME), events[0].kind()),
        (0, Some(Kind::MicroframeWrap))
    );
    driver.run_to(Nanos::from_secs(21));
    assert_eq!(driver.take(0).len(), 9);
}
