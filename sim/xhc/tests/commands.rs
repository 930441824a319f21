//! The command ring and the states of slots and endpoints.

use crate::support;
use crate::support::{Driver, Shared, bulk, op};
use diapason_abi::Nanos;
use diapason_usb::Speed;
use diapason_usb::context::{self, EndpointKind, EndpointState, SlotState};
use diapason_usb::register::{command_ring, operational, status};
use diapason_usb::trb::{Completion, Kind, Trb, bit};
use diapason_xhc::Config;

const NO_OP: Trb = Trb::new(Kind::NoOpCommand, 0, 0, 0);

#[test]
fn commands_go_round_the_ring_with_both_cycles() {
    let mut driver = Driver::running(Config::default());
    for _ in 0..300 {
        assert_eq!(driver.command(NO_OP), Completion::Success);
    }
}

#[test]
fn the_cycle_state_of_the_register_counts() {
    let mut driver = Driver::running(Config::default());
    let mut ring = driver.ring(64);
    ring.cycle = false;
    driver.write64(op(operational::COMMAND_RING), ring.base);
    driver.commands = ring;
    // Zeroed memory belongs to a ring that begins with cycle 0: kind 0 makes no sense.
    driver.write(diapason_xhc::DOORBELLS, 0);
    driver.run_for(Nanos::from_micros(10));
    assert_eq!(driver.take(0)[0].completion(), Some(Completion::Trb));
}

#[test]
fn slots_run_out_and_come_back() {
    let mut driver = Driver::running(Config { slots: 3, ..Config::default() });
    let enable = Trb::new(Kind::EnableSlot, 0, 0, 0);
    for slot in 1..=3 {
        assert_eq!(driver.command_with(enable).1, Completion::Success);
        let _ = slot;
    }
    assert_eq!(driver.command(enable), Completion::NoSlots);
    assert_eq!(driver.slot_command(Kind::DisableSlot, 2, 0, 0), Completion::Success);
    assert_eq!(driver.slot_command(Kind::DisableSlot, 2, 0, 0), Completion::SlotNotEnabled);
    let (_, code, slot) = driver.command_with(enable);
    assert_eq!((code, slot), (Completion::Success, 2));
    assert_eq!(driver.slot_command(Kind::StopEndpoint, 1, 3, 0), Completion::EndpointNotEnabled);
    assert_eq!(driver.slot_command(Kind::ResetDevice, 1, 0, 0), Completion::ContextState);
    assert_eq!(driver.slot_command(Kind::StopEndpoint, 200, 3, 0), Completion::SlotNotEnabled);
    for kind in [18u32, 19, 20, 22, 24, 25, 0, 1, 63] {
        let block = Trb { control: kind << 10, ..NO_OP };
        assert_eq!(driver.command(block), Completion::Trb, "command {kind}");
    }
}

#[test]
fn stop_ends_after_the_command_and_abort_within_it() {
    for (flag, code) in [
        (command_ring::STOP, Completion::Success),
        (command_ring::ABORT, Completion::CommandAborted),
    ] {
        let mut driver = Driver::running(Config::default());
        let mut ring = driver.commands;
        let first = driver.push(&mut ring, NO_OP);
        let second = driver.push(&mut ring, NO_OP);
        driver.write(diapason_xhc::DOORBELLS, 0);
        assert_eq!(driver.read(op(operational::COMMAND_RING)), command_ring::RUNNING);
        driver.write64(op(operational::COMMAND_RING), u64::from(flag));
        assert_eq!(driver.read(op(operational::COMMAND_RING)), 0);
        let events = driver.take(0);
        let told = |e: &Trb| (e.parameter, e.completion().unwrap());
        assert_eq!(told(&events[0]), (first, code));
        assert_eq!(told(&events[1]), (second, Completion::CommandRingStopped));
        // The ring goes on where it stopped.
        driver.write(diapason_xhc::DOORBELLS, 0);
        driver.run_for(Nanos::from_micros(10));
        assert_eq!(told(&driver.take(0)[0]), (second, Completion::Success));
    }
}

#[test]
fn a_ring_of_links_ends() {
    let mut driver = Driver::running(Config::default());
    let base = driver.commands.base;
    let link = Trb::new(Kind::Link, base, 0, 0).with_cycle(true);
    driver.ram.put_words(base, &link.words());
    driver.write(diapason_xhc::DOORBELLS, 0);
    driver.run_for(Nanos::from_micros(10));
    assert_eq!(driver.take(0)[0].completion(), Some(Completion::Trb));
    assert_eq!(driver.read(op(operational::STATUS)) & status::HALTED, 0);
}

#[test]
fn addressing_in_one_step_and_in_two() {
    for large_contexts in [false, true] {
        let mut driver = Driver::running(Config { large_contexts, ..Config::default() });
        driver.plug(1, Shared::new(Speed::High).boxed());
        let (_, _, slot) = driver.command_with(Trb::new(Kind::EnableSlot, 0, 0, 0));
        let output = driver.ram.take(32 * driver.stride, 64);
        driver.ram.put_words(driver.array + 8 * u64::from(slot), &[output as u32, 0]);
        let (input, _) = driver.address_input(1);
        let address = |flags| Trb::new(Kind::AddressDevice, input, 0, Trb::place(slot, 0) | flags);
        assert_eq!(driver.command(address(bit::BLOCK_ADDRESS)), Completion::Success);
        assert_eq!(driver.slot_context(slot).state(), Some(SlotState::Default));
        assert_eq!(driver.slot_context(slot).address(), 0);
        assert_eq!(driver.command(address(bit::BLOCK_ADDRESS)), Completion::ContextState);
        assert_eq!(driver.command(address(0)), Completion::Success);
        assert_eq!(driver.slot_context(slot).state(), Some(SlotState::Addressed));
        assert_eq!(driver.slot_context(slot).address(), u32::from(slot));
        assert_eq!(driver.command(address(0)), Completion::ContextState);
        assert_eq!(driver.endpoint_context(slot, 1).state(), Some(EndpointState::Running));
        assert_eq!(driver.slot_command(Kind::ResetDevice, slot, 0, 0), Completion::Success);
        assert_eq!(driver.slot_context(slot).state(), Some(SlotState::Default));
    }
}

#[test]
fn what_cannot_be_addressed_is_refused() {
    let mut driver = Driver::running(Config::default());
    let slot = driver.connect(1, Shared::new(Speed::High).boxed());
    let (_, _, second) = driver.command_with(Trb::new(Kind::EnableSlot, 0, 0, 0));
    let output = driver.ram.take(1024, 64);
    driver.ram.put_words(driver.array + 8 * u64::from(second), &[output as u32, 0]);
    let (input, _) = driver.address_input(1);
    let address = Trb::new(Kind::AddressDevice, input, 0, Trb::place(second, 0));
    assert_eq!(driver.command(address), Completion::Trb, "slot {slot} has that device");
    let [word] = driver.ram.words(input + driver.stride + 4);
    driver.ram.put_words(input + driver.stride + 4, &[word + (1 << 16)]);
    assert_eq!(driver.command(address), Completion::Transaction, "port 2 is empty");
    driver.ram.put_words(input + driver.stride + 4, &[99 << 16]);
    assert_eq!(driver.command(address), Completion::Parameter, "port 99 does not exist");
    driver.ram.put_words(input + 4, &[1]);
    assert_eq!(driver.command(address), Completion::Parameter, "no control endpoint");
}

#[test]
fn endpoints_follow_their_table_of_states() {
    let mut driver = Driver::running(Config::default());
    let slot = driver.connect(5, Shared::new(Speed::Super).boxed());
    assert_eq!(driver.configure(slot, &[bulk(2, 1024, 0), bulk(3, 1024, 15)]), Completion::Success);
    assert_eq!(driver.slot_context(slot).state(), Some(SlotState::Configured));
    assert_eq!(driver.slot_context(slot).entries(), 3);
    let state = |driver: &Driver| driver.endpoint_context(slot, 3).state().unwrap();
    assert_eq!(state(&driver), EndpointState::Running);
    let wrong = Completion::ContextState;
    assert_eq!(driver.slot_command(Kind::ResetEndpoint, slot, 3, 0), wrong);
    assert_eq!(driver.slot_command(Kind::SetDequeue, slot, 3, 0), wrong);
    assert_eq!(driver.slot_command(Kind::StopEndpoint, slot, 3, 0), Completion::Success);
    assert_eq!(state(&driver), EndpointState::Stopped);
    assert_eq!(driver.slot_command(Kind::StopEndpoint, slot, 3, 0), wrong);
    let place = Trb::place(slot, 3);
    let there = Trb::new(Kind::SetDequeue, 0x12_3450 | 1, 0, place);
    assert_eq!(driver.command(there), Completion::Success);
    assert_eq!(driver.endpoint_context(slot, 3).dequeue(), (0x12_3450, true));
    assert_eq!(driver.slot_command(Kind::StopEndpoint, slot, 9, 0), Completion::EndpointNotEnabled);
    let decline = driver.slot_command(Kind::ConfigureEndpoint, slot, 0, bit::DECONFIGURE);
    assert_eq!(decline, Completion::Success);
    assert_eq!(driver.slot_context(slot).state(), Some(SlotState::Addressed));
    assert_eq!(state(&driver), EndpointState::Disabled);
}

#[test]
fn contexts_that_make_no_sense_change_nothing() {
    let mut driver = Driver::running(Config::default());
    let slot = driver.connect(5, Shared::new(Speed::Super).boxed());
    let good = bulk(3, 1024, 0);
    let wrong = [
        support::Plan { packet: 0, ..good },
        support::Plan { packet: 1025, ..good },
        support::Plan { burst: 16, ..good },
        support::Plan { interval: 16, kind: EndpointKind::InterruptIn, ..good },
        support::Plan { kind: EndpointKind::BulkOut, ..good },
    ];
    for plan in wrong {
        let code = driver.configure(slot, &[bulk(2, 1024, 0), plan]);
        assert_eq!(code, Completion::Parameter, "{plan:?}");
        assert_eq!(driver.endpoint_context(slot, 2), context::EndpointContext::default());
    }
    assert_eq!(driver.slot_context(slot).state(), Some(SlotState::Addressed));
    assert_eq!(driver.configure(slot, &[good]), Completion::Success);
    assert_eq!(driver.configure(slot, &[good]), Completion::Parameter, "it is there already");
}

#[test]
fn a_packet_size_can_be_corrected() {
    let mut driver = Driver::running(Config::default());
    let slot = driver.connect(1, Shared::new(Speed::Full).boxed());
    let input = driver.ram.take(33 * 32, 64);
    driver.ram.put_words(input, &context::Control::new(0, 2).0.0);
    let mut ep0 = context::EndpointContext::default();
    ep0.set_packet(8);
    driver.ram.put_words(input + 64, &ep0.0.0);
    let evaluate = Trb::new(Kind::EvaluateContext, input, 0, Trb::place(slot, 0));
    assert_eq!(driver.command(evaluate), Completion::Success);
    assert_eq!(driver.endpoint_context(slot, 1).packet(), 8);
    driver.ram.put_words(input, &context::Control::new(0, 6).0.0);
    assert_eq!(driver.command(evaluate), Completion::Parameter);
}
