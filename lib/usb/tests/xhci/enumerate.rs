//! From the plug to the configuration, and everything that can go wrong on the way.

use crate::bench::{Bench, CONFIGURATION, DEVICE, plans};
use diapason_usb::Speed;
use diapason_usb::register::port;
use diapason_usb::trb::{Completion, Kind};
use diapason_usb::xhci::{DeviceFailure, HubPlan, Limits, Notice, Refused, TransferOutcome};

#[test]
fn a_device_that_was_there_before_the_start_is_found() {
    let mut bench = Bench::new(Limits::default());
    bench.fake.0.borrow_mut().plug(1, 3);
    bench.driver.start(bench.now);
    bench.run(200);
    let device = bench.found();
    assert_eq!(bench.driver.device_descriptor(device), Ok(DEVICE));
    let mut bytes = [0; 64];
    assert_eq!(bench.driver.configuration(device, &mut bytes), Ok(CONFIGURATION.len()));
    assert_eq!(bytes[..46], CONFIGURATION);
    bench.driver.configure(device, 1, &plans(&[0x81, 2])).unwrap();
    bench.run(10);
    assert_eq!(bench.notices, [Notice::Configured(device)]);
    let fake = bench.fake.0.borrow();
    let kinds = [Kind::EnableSlot, Kind::AddressDevice, Kind::ConfigureEndpoint];
    assert_eq!(fake.commands, kinds);
    assert!(fake.rings.contains_key(&(1, 3)) && fake.rings.contains_key(&(1, 4)));
}

#[test]
fn a_full_speed_device_has_its_packet_size_corrected() {
    let mut bench = Bench::running(Limits::default());
    bench.fake.0.borrow_mut().plug(2, 1);
    bench.run(200);
    bench.found();
    let fake = bench.fake.0.borrow();
    assert_eq!(fake.commands, [Kind::EnableSlot, Kind::AddressDevice, Kind::EvaluateContext]);
}

#[test]
fn a_superspeed_port_needs_no_reset_and_large_contexts_work() {
    let mut bench = Bench::new(Limits::default());
    {
        let mut fake = bench.fake.0.borrow_mut();
        fake.large = true;
        let descriptor = fake.descriptors.get_mut(&1).unwrap();
        (descriptor[3], descriptor[7]) = (3, 9);
        fake.plug(4, 4);
    }
    bench.driver.start(bench.now);
    bench.run(20);
    bench.found();
    assert_eq!(bench.driver.capabilities().context, 64);
}

#[test]
fn a_device_that_does_not_take_its_address_is_tried_three_times_then_with_the_old_scheme() {
    let mut bench = Bench::running(Limits::default());
    let (fine, bad) = (Completion::Success, Completion::Transaction);
    bench.fake.0.borrow_mut().verdicts = vec![fine, bad, fine, fine, bad];
    bench.fake.0.borrow_mut().plug(1, 3);
    bench.run(2_000);
    bench.found();
    let fake = bench.fake.0.borrow();
    let addressed = fake.commands.iter().filter(|kind| **kind == Kind::AddressDevice).count();
    // Twice at once; then with the address held back, and without.
    assert_eq!(addressed, 4);
}

#[test]
fn a_device_that_never_works_is_reported_once_and_stays_off() {
    let mut bench = Bench::running(Limits::default());
    let before = bench.driver.pools();
    bench.fake.0.borrow_mut().descriptors.insert(1, vec![18, 1, 0, 2, 0, 0, 0, 7]);
    bench.fake.0.borrow_mut().plug(1, 3);
    bench.run(5_000);
    let failed = Notice::Failed { port: 1, route: 0, cause: DeviceFailure::Descriptor };
    assert_eq!(bench.notices, [failed]);
    assert_eq!(bench.driver.pools(), before);
    bench.fake.0.borrow_mut().descriptors.insert(1, DEVICE.to_vec());
    bench.fake.0.borrow_mut().unplug(1);
    bench.run(10);
    bench.fake.0.borrow_mut().plug(1, 3);
    bench.run(500);
    bench.found();
}

#[test]
fn configurations_that_lie_about_their_length_are_refused() {
    for (length, cause) in [
        (2000, DeviceFailure::TooLong(2000)),
        (8, DeviceFailure::Descriptor),
        (47, DeviceFailure::Descriptor),
    ] {
        let mut bench = Bench::running(Limits::default());
        let mut bytes = CONFIGURATION.to_vec();
        bytes[2..4].copy_from_slice(&u16::to_le_bytes(length));
        bench.fake.0.borrow_mut().descriptors.insert(2, bytes);
        bench.fake.0.borrow_mut().plug(1, 3);
        bench.run(5_000);
        assert_eq!(bench.notices, [Notice::Failed { port: 1, route: 0, cause }]);
    }
}

#[test]
fn a_configuration_that_is_another_one_when_it_is_read_again_is_refused() {
    let mut bench = Bench::running(Limits::default());
    let mut other = CONFIGURATION.to_vec();
    other[2] = 40;
    bench.fake.0.borrow_mut().second.insert(2, other);
    bench.fake.0.borrow_mut().plug(1, 3);
    bench.run(5_000);
    // It is reset once; then what it says agrees with what it said.
    let Some(Notice::Found { device, .. }) = bench.notices.pop() else { panic!("no device") };
    assert_eq!(bench.notices, []);
    assert_eq!(bench.driver.configuration(device, &mut []), Ok(40));
    let enabled = bench.fake.0.borrow().commands.iter().filter(|k| **k == Kind::EnableSlot).count();
    assert_eq!(enabled, 2);
}

#[test]
fn a_device_that_stalls_its_descriptor_fails_with_the_request() {
    let mut bench = Bench::running(Limits::default());
    bench.fake.0.borrow_mut().answers = vec![Completion::Stall; 3];
    bench.fake.0.borrow_mut().plug(1, 3);
    bench.run(5_000);
    let Some(Notice::Failed {
        cause: DeviceFailure::Request(setup, TransferOutcome::Stalled), ..
    }) = bench.notices.pop()
    else {
        panic!("it worked");
    };
    assert_eq!(setup.length, 8);
}

#[test]
fn a_command_that_is_never_done_kills_the_controller_in_the_end() {
    let mut bench = Bench::running(Limits::default());
    bench.fake.0.borrow_mut().deaf = true;
    bench.fake.0.borrow_mut().plug(1, 3);
    bench.run(20_000);
    assert_eq!(bench.notices, [Notice::Died(diapason_usb::xhci::Death::Command)]);
    assert_eq!(bench.driver.counters().aborted, 1);
}

#[test]
fn an_endpoint_the_controller_refuses_leaves_everything_as_it_was() {
    let mut bench = Bench::running(Limits::default());
    let device = bench.device(&[2]);
    let pools = bench.driver.pools();
    bench.fake.0.borrow_mut().verdicts = vec![Completion::Bandwidth];
    bench.driver.set_alternate(device, (0, 1), &[2], &plans(&[0x81, 0x83])).unwrap();
    bench.run(10);
    let cause = DeviceFailure::Command(Completion::Bandwidth);
    assert_eq!(bench.notices.pop(), Some(Notice::Refused(device, cause)));
    assert_eq!(bench.driver.pools(), pools);
    assert_eq!(bench.driver.endpoint_kind(device, 0x81), None);
    let schedule = bench.driver.schedule(Speed::High);
    assert_eq!((schedule.asyncs().len(), schedule.periodic().len()), (2, 0));
    bench.driver.set_alternate(device, (0, 1), &[2], &plans(&[0x81, 0x83])).unwrap();
    bench.run(10);
    assert_eq!(bench.notices.pop(), Some(Notice::Configured(device)));
    assert_eq!(bench.driver.endpoint_kind(device, 2), None);
    assert_eq!(bench.driver.period(device, 0x83), Ok(8));
}

#[test]
fn an_endpoint_begins_anew_here_and_in_the_device() {
    let mut bench = Bench::running(Limits::default());
    let device = bench.device(&[2, 0x81]);
    let pools = bench.driver.pools();
    bench.fake.0.borrow_mut().commands.clear();
    bench.driver.renew(device, 0x81).unwrap();
    assert_eq!(bench.driver.renew(device, 2), Err(Refused::Busy), "one at a time");
    bench.run(10);
    assert_eq!(bench.notices.pop(), Some(Notice::Configured(device)));
    assert_eq!(bench.fake.0.borrow().commands, [Kind::ConfigureEndpoint]);
    assert_eq!(bench.driver.pools(), pools);
    for absent in [0, 3, 0x82] {
        assert_eq!(bench.driver.renew(device, absent), Err(Refused::NoEndpoint));
    }
    // A device that does not want to know it is given up.
    bench.fake.0.borrow_mut().answers = vec![Completion::Stall];
    bench.driver.renew(device, 2).unwrap();
    bench.run(10);
    assert!(bench.notices.pop().is_some_and(|notice| notice != Notice::Configured(device)));
}

#[test]
fn what_does_not_fit_is_refused_with_the_reason_and_reaches_no_controller() {
    let mut bench = Bench::running(Limits::default());
    bench.fake.0.borrow_mut().plug(1, 3);
    bench.run(200);
    let device = bench.found();
    let mut greedy = plans(&[0x84]);
    // Three packets of 1024 bytes in every microframe, and that twice.
    (greedy[0].endpoint.burst, greedy[0].endpoint.interval_bytes) = (2, 3072);
    let mut second = greedy[0];
    second.endpoint.address = 0x85;
    second.criticality = diapason_bus::Criticality::High;
    greedy[0].criticality = diapason_bus::Criticality::High;
    let refused = bench.driver.configure(device, 1, &[greedy[0], second]);
    assert!(matches!(refused, Err(Refused::Unfit(_))), "{refused:?}");
    // Without the second being critical, the device gets the first.
    second.criticality = diapason_bus::Criticality::Low;
    bench.driver.configure(device, 1, &[greedy[0], second]).unwrap();
    bench.run(10);
    assert_eq!(bench.notices.pop(), Some(Notice::Configured(device)));
    assert_eq!(bench.driver.period(device, 0x84), Ok(1));
    assert!(matches!(bench.driver.period(device, 0x85), Err(Refused::Unscheduled(_))));
    assert!(!bench.fake.0.borrow().rings.contains_key(&(1, 11)));
}

#[test]
fn devices_behind_a_hub_have_a_route_and_a_translator() {
    let mut bench = Bench::running(Limits::default());
    let hub = bench.device(&[0x83]);
    bench.driver.set_hub(hub, HubPlan { ports: 4, think_time: 1, multi_tt: true }).unwrap();
    bench.run(10);
    assert_eq!(bench.notices.pop(), Some(Notice::Configured(hub)));
    assert_eq!(bench.driver.attach_child(hub, 5, Speed::Full), Err(Refused::Nonsense));
    bench.driver.attach_child(hub, 3, Speed::Full).unwrap();
    bench.run(50);
    let Some(Notice::Found { device, speed, port, route }) = bench.notices.pop() else {
        panic!("no child");
    };
    assert_eq!((speed, port, route), (Speed::Full, 1, 3));
    // Full speed, many translators, route 3; root port 1; port 3 of slot 1 translates.
    let slot = [1 << 27 | 1 << 25 | 1 << 20 | 3, 1 << 16, 3 << 8 | 1];
    assert_eq!(bench.fake.0.borrow().slot, slot);
    assert_eq!(bench.driver.attach_child(hub, 3, Speed::Full), Err(Refused::Busy));
    // The hub goes, and its child with it.
    bench.fake.0.borrow_mut().unplug(1);
    bench.run(10);
    let gone = [Notice::Gone(hub), Notice::Gone(device)];
    assert!(gone.iter().all(|notice| bench.notices.contains(notice)), "{:?}", bench.notices);
}

/// Two packets of 1024 bytes in every microframe are too many beside what another device must
/// have.
#[test]
fn an_endpoint_makes_room_for_one_that_matters_more_and_comes_back() {
    let mut bench = Bench::running(Limits::default());
    bench.fake.0.borrow_mut().plug(1, 3);
    bench.run(200);
    let (camera, mut plan) = (bench.found(), plans(&[0x84]));
    (plan[0].endpoint.burst, plan[0].endpoint.interval_bytes) = (2, 3072);
    bench.driver.configure(camera, 1, &plan).unwrap();
    bench.fake.0.borrow_mut().plug(2, 3);
    bench.run(200);
    let brakes = bench.found();
    bench.notices.clear();
    let memory = crate::bench::buffer(0, 3072);
    let request = diapason_usb::xhci::Request::new(camera, 0x84, memory);
    bench.driver.submit(&request).unwrap();
    plan[0].criticality = diapason_bus::Criticality::High;
    bench.driver.configure(brakes, 1, &plan).unwrap();
    assert!(matches!(bench.driver.submit(&request), Err(Refused::Unscheduled(_))));
    bench.run(10);
    let stopped = Notice::Stopped { device: camera, endpoint: 0x84 };
    assert_eq!(bench.notices, [stopped, Notice::Configured(brakes)]);
    assert_eq!(bench.finished.pop().unwrap().outcome, TransferOutcome::Unscheduled);
    assert!(!bench.fake.0.borrow().rings.contains_key(&(1, 9)));
    assert!(bench.fake.0.borrow().rings.contains_key(&(2, 9)));
    bench.fake.0.borrow_mut().unplug(2);
    bench.run(10);
    assert!(bench.fake.0.borrow().rings.contains_key(&(1, 9)));
    assert!(bench.driver.submit(&request).is_ok());
}

#[test]
fn an_endpoint_can_run_at_a_longer_period_than_it_asks_for() {
    let mut bench = Bench::running(Limits::default());
    bench.fake.0.borrow_mut().plug(1, 3);
    bench.run(200);
    let (device, mut first) = (bench.found(), plans(&[0x84])[0]);
    (first.endpoint.burst, first.endpoint.interval_bytes) = (2, 3072);
    let mut second = first;
    (second.endpoint.address, second.endpoint.interval, second.stretch) = (0x85, 1, 8);
    first.endpoint.interval = 2;
    first.criticality = diapason_bus::Criticality::High;
    bench.driver.configure(device, 1, &[first, second]).unwrap();
    bench.run(10);
    assert_eq!(bench.driver.period(device, 0x84), Ok(2));
    assert_eq!(bench.driver.period(device, 0x85), Ok(2));
    assert_eq!(bench.fake.0.borrow().rings[&(1, 11)].interval, 1);
}

#[test]
fn a_port_that_the_controller_switches_off_is_reset() {
    let mut bench = Bench::running(Limits::default());
    let device = bench.device(&[2]);
    bench.fake.0.borrow_mut().poke_port(1, port::ENABLE_CHANGE, port::ENABLED);
    bench.run(200);
    assert_ne!(bench.found(), device);
    assert_eq!(bench.notices, [Notice::Gone(device)]);
}

#[test]
fn over_current_takes_the_device_away_and_power_brings_it_back() {
    let mut bench = Bench::running(Limits::default());
    let device = bench.device(&[2]);
    bench.fake.0.borrow_mut().poke_port(1, port::OVER_CURRENT | port::OVER_CURRENT_CHANGE, 0);
    bench.run(300);
    assert_eq!(bench.notices, [Notice::OverCurrent(1), Notice::Gone(device)]);
    bench.fake.0.borrow_mut().poke_port(1, port::OVER_CURRENT_CHANGE, port::OVER_CURRENT);
    bench.run(500);
    bench.found();
}

/// Returns a device with two configurations, of which the second is one byte longer.
fn twofold(bench: &mut Bench) -> diapason_usb::xhci::DeviceId {
    let mut device = DEVICE;
    device[17] = 2;
    let second =
        [&[9, 2, 49, 0, 1, 7, 0, 0x80, 50][..], &CONFIGURATION[9..], &[3, 0x24, 9]].concat();
    bench.fake.0.borrow_mut().descriptors.insert(1, device.to_vec());
    bench.fake.0.borrow_mut().others.push(second);
    bench.fake.0.borrow_mut().plug(1, 3);
    bench.run(200);
    bench.found()
}

#[test]
fn another_configuration_is_read_when_it_is_asked_for() {
    let mut bench = Bench::running(Limits::default());
    let device = twofold(&mut bench);
    assert_eq!(bench.driver.configuration(device, &mut []), Ok(CONFIGURATION.len()));
    assert_eq!(bench.driver.read_configuration(device, 2), Err(Refused::Nonsense));
    assert_eq!(bench.driver.read_configuration(device, 1), Ok(()));
    assert_eq!(bench.driver.read_configuration(device, 1), Err(Refused::Busy));
    bench.run(10);
    assert_eq!(bench.notices, [Notice::Read(device)]);
    let mut bytes = [0; 64];
    assert_eq!(bench.driver.configuration(device, &mut bytes), Ok(49));
    assert_eq!((bytes[5], &bytes[46..49]), (7, &[3, 0x24, 9][..]));
    bench.driver.configure(device, 7, &plans(&[0x81, 2])).unwrap();
    bench.run(10);
    assert_eq!(bench.notices[1..], [Notice::Configured(device)]);
    // Its endpoints are those of this one: it is too late for another.
    assert_eq!(bench.driver.read_configuration(device, 0), Err(Refused::Nonsense));
}

#[test]
fn a_configuration_that_cannot_be_read_costs_the_device() {
    let mut bench = Bench::running(Limits::default());
    let before = bench.driver.pools();
    let device = twofold(&mut bench);
    bench.fake.0.borrow_mut().answers.push(Completion::Stall);
    bench.driver.read_configuration(device, 1).unwrap();
    bench.fake.0.borrow_mut().unplug(1);
    bench.run(50);
    assert_eq!(bench.notices, [Notice::Gone(device)]);
    assert_eq!(bench.driver.pools(), before);
    assert_eq!(bench.driver.read_configuration(device, 1), Err(Refused::NoDevice));
}

/// A serial number of ten characters, in the first of two languages.
#[test]
fn a_text_is_read_in_the_first_language() {
    let mut bench = Bench::running(Limits::default());
    let device = twofold(&mut bench);
    let text: Vec<u8> =
        [22, 3].into_iter().chain("0123456789".bytes().flat_map(|c| [c, 0])).collect();
    bench.fake.0.borrow_mut().descriptors.insert(3, vec![6, 3, 0x09, 0x04, 0x07, 0x04]);
    bench.fake.0.borrow_mut().second.insert(3, text.clone());
    assert_eq!(bench.driver.read_text(device, 0), Err(Refused::Nonsense));
    bench.driver.read_text(device, 3).unwrap();
    assert_eq!(bench.driver.read_text(device, 3), Err(Refused::Busy));
    bench.run(10);
    assert_eq!(bench.notices, [Notice::Read(device)]);
    let mut bytes = [0; 64];
    assert_eq!(bench.driver.configuration(device, &mut bytes), Ok(22));
    assert_eq!(bytes[..22], text);
    // The configuration is read again before it is chosen.
    bench.driver.read_configuration(device, 1).unwrap();
    bench.run(10);
    bench.driver.configure(device, 7, &plans(&[0x81, 2])).unwrap();
    bench.run(10);
    assert_eq!(bench.notices[1..], [Notice::Read(device), Notice::Configured(device)]);
    assert_eq!(bench.driver.read_text(device, 3), Err(Refused::Nonsense));
}

#[test]
fn a_device_without_texts_has_one_of_no_bytes() {
    for languages in [vec![2, 3], vec![4, 9, 9, 4], vec![]] {
        let mut bench = Bench::running(Limits::default());
        let device = twofold(&mut bench);
        bench.fake.0.borrow_mut().descriptors.insert(3, languages);
        bench.driver.read_text(device, 1).unwrap();
        bench.run(10);
        assert_eq!(bench.notices, [Notice::Read(device)]);
        assert_eq!(bench.driver.configuration(device, &mut []), Ok(0));
    }
    // A device that refuses stays, and so does everything else that it can do.
    let mut bench = Bench::running(Limits::default());
    let device = twofold(&mut bench);
    bench.fake.0.borrow_mut().answers.push(Completion::Stall);
    bench.driver.read_text(device, 1).unwrap();
    bench.run(10);
    assert_eq!(bench.notices, [Notice::Read(device)]);
    assert_eq!(bench.driver.configuration(device, &mut []), Ok(0));
    bench.driver.read_configuration(device, 0).unwrap();
    bench.run(10);
    assert_eq!(bench.notices[1..], [Notice::Read(device)]);
    assert_eq!(bench.driver.configuration(device, &mut []), Ok(CONFIGURATION.len()));
}
