//! The driver against the model of a controller: everything takes time, and every register does
//! what the specification says.

use crate::echo::{self, BULK_IN, BULK_OUT, Echo, NEWS, STREAM};
use crate::machine::Machine;
use diapason_abi::Nanos;
use diapason_random::Random;
use diapason_usb::Speed;
use diapason_usb::xhci::{
    ControllerState, Death, DeviceId, Limits, Notice, Request, TransferId, TransferOutcome,
};
use diapason_xhc::{Config, Disturbance};

/// Returns a port of the model's usual controller for this speed.
const fn port(speed: Speed) -> u8 {
    if matches!(speed, Speed::Super) { 6 } else { 2 }
}

/// Returns a machine with a configured echo device of this speed.
fn with_echo(config: Config, speed: Speed) -> (Machine, DeviceId) {
    let mut machine = Machine::running(config, Limits::default());
    let device = plug(&mut machine, speed);
    (machine, device)
}

fn plug(machine: &mut Machine, speed: Speed) -> DeviceId {
    machine.attach(port(speed), Echo::boxed(speed));
    machine.run(Nanos::from_millis(400));
    let device = machine.found();
    machine.driver.configure(device, 1, &echo::plans(speed)).unwrap();
    machine.run(Nanos::from_millis(10));
    assert_eq!(machine.notices.pop(), Some(Notice::Configured(device)));
    device
}

fn submit(
    machine: &mut Machine,
    device: DeviceId,
    endpoint: u8,
    at: usize,
    length: u32,
) -> TransferId {
    let memory = machine.buffer(at, length);
    machine.driver.submit(&Request::new(device, endpoint, memory)).unwrap()
}

/// Waits for a transfer: how it ended and how many bytes it had.
fn wait(machine: &mut Machine, transfer: TransferId) -> (TransferOutcome, u32) {
    let end = machine.now() + Nanos::from_secs(2);
    machine.run_until(end, |m| m.finished.iter().any(|f| f.transfer == transfer));
    let place = machine.finished.iter().position(|f| f.transfer == transfer);
    let finished = machine.finished.remove(place.expect("it never ended"));
    (finished.outcome, finished.actual)
}

#[test]
fn bytes_come_back_as_they_went_at_every_speed_and_with_every_kind_of_context() {
    let special = Config {
        large_contexts: true,
        scratchpads: 64,
        port_power: true,
        firmware: true,
        ..Config::default()
    };
    for config in [Config::default(), special] {
        for speed in [Speed::Full, Speed::High, Speed::Super] {
            let (mut machine, device) = with_echo(config.clone(), speed);
            let mut random = Random::new(7);
            // Across a boundary of 64 KiB, and across many packets.
            let (from, to, length) = (0xff00, 0x2_ff81, 40_000);
            let bytes: Vec<u8> = (0..length).map(|_| random.bits() as u8).collect();
            machine.fill(from, &bytes);
            let out = submit(&mut machine, device, BULK_OUT, from, length);
            assert_eq!(wait(&mut machine, out), (TransferOutcome::Done, length));
            let back = submit(&mut machine, device, BULK_IN, to, length);
            // 40,000 is a whole number of packets only at full speed.
            let expected = (TransferOutcome::Done, length);
            assert_eq!(wait(&mut machine, back), expected);
            assert_eq!(machine.bytes(to, length as usize), bytes);
            let counters = machine.driver.counters();
            assert_eq!((counters.spurious, counters.unknown, counters.residuals), (0, 0, 0));
            assert_eq!((machine.denials(), machine.counts().not_ready_writes), (0, 0));
        }
    }
}

#[test]
fn a_short_answer_ends_a_long_transfer_in_its_first_block() {
    let (mut machine, device) = with_echo(Config::default(), Speed::High);
    let memory = machine.buffer(0x1_0000 - 5000, 10_000);
    let short = machine.driver.submit(&Request::new(device, BULK_IN, memory)).unwrap();
    let next = submit(&mut machine, device, BULK_IN, 0x8000, 1000);
    for length in [1, 600] {
        let out = submit(&mut machine, device, BULK_OUT, 0x9000, length);
        assert_eq!(wait(&mut machine, out), (TransferOutcome::Done, length));
    }
    assert_eq!(wait(&mut machine, short), (TransferOutcome::Short, 1));
    assert_eq!(wait(&mut machine, next), (TransferOutcome::Short, 600));
    assert_eq!(machine.driver.counters().spurious, 0);
}

#[test]
fn a_stall_is_cleared_in_controller_and_device() {
    for speed in [Speed::Full, Speed::High, Speed::Super] {
        let (mut machine, device) = with_echo(Config::default(), speed);
        machine.fill(0, b"!");
        let stalled = submit(&mut machine, device, BULK_OUT, 0, 1);
        let behind = submit(&mut machine, device, BULK_OUT, 1, 9);
        assert_eq!(wait(&mut machine, stalled), (TransferOutcome::Stalled, 0));
        assert_eq!(wait(&mut machine, behind), (TransferOutcome::Done, 9));
        assert_eq!(machine.driver.counters().recovered, 1);
    }
}

#[test]
fn a_request_the_device_does_not_know_stalls_and_the_next_works() {
    let (mut machine, device) = with_echo(Config::default(), Speed::Super);
    let unknown = diapason_usb::Setup::get_descriptor(15, 0, 0, 5);
    let known = diapason_usb::Setup::get_descriptor(1, 0, 0, 40);
    for _ in 0..3 {
        let memory = machine.buffer(0, 5);
        let transfer = machine.driver.control(device, unknown, memory, 0).unwrap();
        assert_eq!(wait(&mut machine, transfer), (TransferOutcome::Stalled, 0));
        let memory = machine.buffer(0, 40);
        let transfer = machine.driver.control(device, known, memory, 0).unwrap();
        assert_eq!(wait(&mut machine, transfer), (TransferOutcome::Short, 18));
    }
}

#[test]
fn transfers_can_be_taken_back_from_an_endpoint_that_has_nothing() {
    let (mut machine, device) = with_echo(Config::default(), Speed::High);
    let waiting: Vec<_> =
        (0..4).map(|n| submit(&mut machine, device, BULK_IN, 512 * n, 512)).collect();
    let news = submit(&mut machine, device, NEWS, 0x3000, 64);
    machine.run(Nanos::from_millis(5));
    machine.driver.cancel(device, waiting[1]).unwrap();
    machine.driver.cancel(device, waiting[3]).unwrap();
    machine.driver.cancel(device, news).unwrap();
    for transfer in [waiting[1], waiting[3], news] {
        assert_eq!(wait(&mut machine, transfer), (TransferOutcome::Cancelled, 0));
    }
    for (transfer, length) in [(waiting[0], 100), (waiting[2], 200)] {
        let out = submit(&mut machine, device, BULK_OUT, 0x5000, length);
        assert_eq!(wait(&mut machine, out), (TransferOutcome::Done, length));
        assert_eq!(wait(&mut machine, transfer), (TransferOutcome::Short, length));
    }
    machine.run(Nanos::from_millis(5));
    assert_eq!(machine.driver.pools().transfers, 96);
    assert_eq!(machine.driver.counters().spurious, 0);
}

#[test]
fn a_stream_has_one_transfer_in_each_interval() {
    let (mut machine, device) = with_echo(Config::default(), Speed::High);
    assert_eq!(machine.driver.period(device, STREAM), Ok(8));
    let stream: Vec<_> =
        (0..20).map(|n| submit(&mut machine, device, STREAM, 1024 * n, 1024)).collect();
    let mut times = Vec::new();
    for transfer in stream {
        let end = machine.now() + Nanos::from_millis(50);
        machine.run_until(end, |m| m.finished.iter().any(|f| f.transfer == transfer));
        let finished = machine.finished.pop().unwrap();
        assert_eq!((finished.outcome, finished.actual), (TransferOutcome::Short, 1));
        times.push(finished.time.0);
    }
    // One each millisecond; the end of a packet varies with what else is in the microframe.
    for pair in times.windows(2) {
        assert!((pair[1] - pair[0]).abs_diff(1_000_000) < 125_000, "{times:?}");
    }
    let counts: Vec<u8> = (0..20).map(|n| machine.bytes(1024 * n, 1)[0]).collect();
    assert_eq!(counts, (1..=20).collect::<Vec<u8>>());
}

#[test]
fn a_lost_interrupt_is_found_by_looking() {
    let (mut machine, device) = with_echo(Config::default(), Speed::High);
    machine.disturb(|xhc| xhc.disturb(Disturbance::Lost));
    let out = submit(&mut machine, device, BULK_OUT, 0, 64);
    machine.run(Nanos::from_millis(50));
    assert!(machine.finished.is_empty() && machine.driver.has_events(0));
    let now = machine.now();
    machine.driver.handle_interrupt(0, 8, now);
    assert_eq!(wait(&mut machine, out), (TransferOutcome::Done, 64));
    let out = submit(&mut machine, device, BULK_OUT, 0, 64);
    assert_eq!(wait(&mut machine, out), (TransferOutcome::Done, 64));
}

#[test]
fn a_controller_that_breaks_is_started_again_and_finds_its_devices() {
    for error in [Death::SystemError, Death::ControllerError] {
        let (mut machine, device) = with_echo(Config::default(), Speed::High);
        let waiting = submit(&mut machine, device, BULK_IN, 0, 512);
        machine.disturb(|xhc| match error {
            Death::SystemError => xhc.system_error(),
            _ => xhc.controller_error(),
        });
        assert_eq!(wait(&mut machine, waiting), (TransferOutcome::Died, 0));
        assert_eq!(machine.driver.state(), ControllerState::Dead(error));
        assert_eq!(machine.notices, [Notice::Died(error)]);
        machine.notices.clear();
        let now = machine.now();
        machine.driver.start(now);
        machine.run(Nanos::from_secs(1));
        let again = machine.found();
        assert_ne!(again, device);
        machine.driver.configure(again, 1, &echo::plans(Speed::High)).unwrap();
        machine.run(Nanos::from_millis(10));
        let out = submit(&mut machine, again, BULK_OUT, 0, 64);
        assert_eq!(wait(&mut machine, out), (TransferOutcome::Done, 64));
    }
}

#[test]
fn a_lost_link_is_reset_and_the_device_is_found_again() {
    let (mut machine, device) = with_echo(Config::default(), Speed::Super);
    let waiting = submit(&mut machine, device, BULK_IN, 0, 512);
    machine.lose_link(port(Speed::Super));
    assert_eq!(wait(&mut machine, waiting), (TransferOutcome::Gone, 0));
    machine.run(Nanos::from_secs(1));
    assert_ne!(machine.found(), device);
    assert_eq!(machine.notices, [Notice::Gone(device)]);
}

#[test]
fn packets_that_are_damaged_halt_an_endpoint_that_comes_back() {
    let (mut machine, device) = with_echo(Config::default(), Speed::High);
    machine.disturb(|xhc| xhc.fail_packets(1, 4, 3));
    let damaged = submit(&mut machine, device, BULK_OUT, 0, 64);
    assert_eq!(wait(&mut machine, damaged), (TransferOutcome::Transaction, 0));
    let out = submit(&mut machine, device, BULK_OUT, 0, 64);
    assert_eq!(wait(&mut machine, out), (TransferOutcome::Done, 64));
}

#[test]
fn a_controller_that_runs_can_be_started_anew() {
    let (mut machine, device) = with_echo(Config::default(), Speed::Super);
    let waiting = submit(&mut machine, device, BULK_IN, 0, 512);
    let now = machine.now();
    machine.driver.start(now);
    assert_eq!(wait(&mut machine, waiting), (TransferOutcome::Died, 0));
    machine.run(Nanos::from_secs(1));
    assert_eq!(machine.driver.state(), ControllerState::Running);
    machine.found();
    assert_eq!(machine.denials(), 0);
}

#[test]
fn three_hundred_plugs_on_the_model_leave_every_pool_as_it_was() {
    let mut machine = Machine::running(Config::default(), Limits::default());
    let mut random = Random::new(300);
    let before = machine.driver.pools();
    let (mut configured, mut gone) = (0, 0);
    for _ in 0..300 {
        let speed = random.pick(&[Speed::Full, Speed::High, Speed::Super]);
        machine.attach(port(speed), Echo::boxed(speed));
        for _ in 0..random.below(5) {
            machine.run(Nanos::from_micros(random.below(150_000)));
            for notice in std::mem::take(&mut machine.notices) {
                let Notice::Found { device, speed, .. } = notice else { continue };
                machine.driver.configure(device, 1, &echo::plans(speed)).unwrap();
                machine.run(Nanos::from_micros(random.below(3_000)));
                for endpoint in [BULK_IN, BULK_OUT, NEWS, STREAM] {
                    let memory = machine.buffer(random.index(9) * 4096, 64);
                    let request = Request::new(device, endpoint, memory);
                    configured += u32::from(machine.driver.submit(&request).is_ok());
                }
            }
        }
        machine.detach(port(speed));
        machine.run(Nanos::from_micros(random.below(20_000)));
        gone += machine.finished.iter().filter(|f| f.outcome == TransferOutcome::Gone).count();
        machine.finished.clear();
    }
    machine.run(Nanos::from_secs(7));
    assert_eq!(machine.driver.state(), ControllerState::Running);
    assert_eq!(machine.driver.pools(), before);
    assert_eq!(machine.denials(), 0);
    assert!(configured > 100 && gone > 50, "configured {configured}, gone {gone}");
}
