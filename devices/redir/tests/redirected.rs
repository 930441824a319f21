//! A device behind usbredir, seen from the guest's side.

mod support;

use diapason_abi::Nanos;
use diapason_random::Random;
use diapason_redir::PacketDirection;
use diapason_redir::protocol::{
    AddressedPacket, Data, PacketStatus, RedirPacket, TransferType, slot,
};
use diapason_usb::Setup;
use support::{
    BULK_IN, BULK_OUT, DELAY, Guest, INTERRUPT_IN, INTERRUPT_OUT, ISOCHRONOUS_IN, ISOCHRONOUS_OUT,
    ROOM, data, out, wanted,
};

fn bulk(message: &AddressedPacket) -> (u64, PacketStatus, u32, &[u8]) {
    match &message.packet {
        RedirPacket::Bulk(Data { status, length, bytes, .. }) => {
            (message.id, *status, *length, bytes)
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_device_introduces_itself_and_shows_its_endpoints_once_configured() {
    let (mut guest, packets) = Guest::meet();
    let [RedirPacket::Endpoints(ends), RedirPacket::Interfaces(faces), RedirPacket::Connect(who)] =
        &packets[..]
    else {
        panic!("{packets:?}")
    };
    assert_eq!(faces.0, [[0, 0xff, 1, 2], [1, 3, 1, 1], [2, 0xff, 3, 4]]);
    assert_eq!((who.speed, who.vendor, who.product, who.version), (2, 0x1209, 1, 0x0102));
    let kinds = |ends: &[diapason_redir::protocol::EndpointInfo; 32], address: u8| {
        (ends[slot(address)].kind, ends[slot(address)].bytes)
    };
    assert_eq!(kinds(ends, 0x80), (TransferType::Control, 64));
    assert_eq!(kinds(ends, BULK_IN).0, TransferType::Absent);

    guest.send(RedirPacket::SetConfiguration(1));
    let messages = guest.hear();
    let RedirPacket::Endpoints(ends) = &messages[0].packet else { panic!("{messages:?}") };
    assert_eq!(kinds(ends, BULK_IN), (TransferType::Bulk, 512));
    assert_eq!(kinds(ends, INTERRUPT_OUT), (TransferType::Interrupt, 8));
    assert_eq!(kinds(ends, ISOCHRONOUS_IN).0, TransferType::Absent);
    guest.send(RedirPacket::SetAlternate(2, 1));
    let messages = guest.hear();
    let RedirPacket::Endpoints(ends) = &messages[0].packet else { panic!("{messages:?}") };
    assert_eq!(kinds(ends, ISOCHRONOUS_IN), (TransferType::Isochronous, 128));
    assert_eq!(messages[2].packet, RedirPacket::AlternateStatus(PacketStatus::Success, 2, 1));
    guest.send(RedirPacket::GetAlternate(2));
    guest.send(RedirPacket::GetConfiguration);
    guest.send(RedirPacket::SetConfiguration(9));
    let answers: Vec<RedirPacket> = guest.hear().into_iter().map(|m| m.packet).collect();
    let expected = [
        RedirPacket::AlternateStatus(PacketStatus::Success, 2, 1),
        RedirPacket::ConfigurationStatus(PacketStatus::Success, 1),
        RedirPacket::ConfigurationStatus(PacketStatus::Stall, 9),
    ];
    assert_eq!(answers, expected);
}

#[test]
fn what_is_said_can_be_kept_and_that_changes_nothing() {
    let life = |kept| {
        let mut guest = Guest::configured();
        guest.host.record(kept);
        let id = guest.send(out(&[7; 600]));
        guest.host.advance(DELAY);
        guest.hear();
        (id, *guest.host.journal(), guest.host.take_record())
    };
    let (id, journal, spoken) = life(true);
    assert_eq!(life(false), (id, journal, vec![]));
    let [asked, told] = &spoken[..] else { panic!("{spoken:?}") };
    assert_eq!((asked.way, &asked.message.packet), (PacketDirection::FromGuest, &out(&[7; 600])));
    let taken = (id, PacketStatus::Success, 600, &[][..]);
    assert_eq!((told.way, bulk(&told.message)), (PacketDirection::ToGuest, taken));
    assert!(asked.message.id == id && asked.time <= told.time);
}

#[test]
fn bulk_requests_wait_and_are_answered_in_their_order() {
    let mut guest = Guest::configured();
    let (a, b) = (guest.send(wanted(3072)), guest.send(wanted(3072)));
    assert!(guest.hear().is_empty());
    let sent = guest.send(out(&[7; 600]));
    let messages = guest.hear();
    assert_eq!(bulk(&messages[0]), (sent, PacketStatus::Success, 600, &[][..]));
    assert_eq!(messages.len(), 1);
    guest.host.advance(DELAY - Nanos(1));
    assert!(guest.hear().is_empty());
    guest.host.advance(DELAY);
    // 512 bytes are a full packet, 88 a short one: together one transfer.
    let messages = guest.hear();
    assert_eq!(bulk(&messages[0]), (a, PacketStatus::Success, 600, &[7; 600][..]));
    guest.send(out(&[8]));
    guest.hear();
    guest.host.advance(Nanos::from_millis(1));
    assert_eq!(bulk(&guest.hear()[0]), (b, PacketStatus::Success, 1, &[8][..]));
}

#[test]
fn a_full_device_holds_transfers_off_until_there_is_room() {
    let mut guest = Guest::configured();
    let ids: Vec<u64> = (0..ROOM + 2).map(|i| guest.send(out(&[i as u8]))).collect();
    assert_eq!(guest.hear().len(), ROOM);
    guest.host.advance(DELAY);
    assert!(guest.hear().is_empty());
    guest.send(wanted(512));
    let messages = guest.hear();
    let done: Vec<u64> = messages.iter().map(|message| message.id).collect();
    assert!(done.contains(&ids[ROOM]) && !done.contains(&ids[ROOM + 1]), "{done:?}");
}

#[test]
fn a_transfer_longer_than_asked_is_babble_and_a_halted_endpoint_stalls() {
    let mut guest = Guest::configured();
    guest.send(out(&[1; 100]));
    guest.hear();
    guest.host.advance(DELAY);
    let asked = guest.send(wanted(10));
    assert_eq!(bulk(&guest.hear()[0]), (asked, PacketStatus::Babble, 10, &[1; 10][..]));
    guest.host.device_mut().halt(BULK_OUT);
    let stalled = guest.send(out(&[1]));
    assert_eq!(bulk(&guest.hear()[0]), (stalled, PacketStatus::Stall, 0, &[][..]));
    let setup = Setup::clear_halt(BULK_OUT);
    guest.send(RedirPacket::Control(0, PacketStatus::Success, setup, Vec::new()));
    let good = guest.send(out(&[1]));
    assert_eq!(bulk(&guest.hear()[1]), (good, PacketStatus::Success, 1, &[][..]));
    let invalid = guest.send(RedirPacket::Bulk(data(0x8f, 5, &[])));
    assert_eq!(bulk(&guest.hear()[0]), (invalid, PacketStatus::Invalid, 0, &[][..]));
}

/// A controller halts an endpoint at a failed transfer, and begins what waits behind it anew.
#[test]
fn what_waits_behind_a_failed_transfer_is_not_done_before_it_is_asked_for_again() {
    let mut guest = Guest::configured();
    for bytes in [&[1; 100][..], &[2; 5]] {
        guest.send(out(bytes));
    }
    guest.hear();
    guest.host.advance(DELAY);
    let (failed, behind) = (guest.send(wanted(10)), guest.send(wanted(512)));
    let messages = guest.hear();
    assert_eq!(messages.len(), 1, "{messages:?}");
    assert_eq!(bulk(&messages[0]), (failed, PacketStatus::Babble, 10, &[1; 10][..]));
    guest.host.advance(DELAY + DELAY);
    assert!(guest.hear().is_empty());
    guest.send_as(behind, RedirPacket::Cancel);
    assert_eq!(bulk(&guest.hear()[0]), (behind, PacketStatus::Cancelled, 0, &[][..]));
    let again = guest.send(wanted(512));
    assert_eq!(bulk(&guest.hear()[0]), (again, PacketStatus::Success, 5, &[2; 5][..]));
}

#[test]
fn what_is_called_back_is_answered_once() {
    let mut guest = Guest::configured();
    let (a, b) = (guest.send(wanted(64)), guest.send(wanted(64)));
    guest.send_as(a, RedirPacket::Cancel);
    guest.send_as(a, RedirPacket::Cancel);
    assert_eq!(bulk(&guest.hear()[0]), (a, PacketStatus::Cancelled, 0, &[][..]));
    guest.send(out(&[3]));
    guest.host.advance(Nanos::from_millis(1));
    let messages = guest.hear();
    assert_eq!(bulk(&messages[1]), (b, PacketStatus::Success, 1, &[3][..]));
    guest.send_as(b, RedirPacket::Cancel);
    assert!(guest.hear().is_empty());
}

#[test]
fn reset_and_unplugging_end_what_is_under_way() {
    let mut guest = Guest::configured();
    let resets = guest.host.device().resets;
    let a = guest.send(wanted(64));
    guest.send(RedirPacket::Reset);
    assert_eq!(bulk(&guest.hear()[0]), (a, PacketStatus::Cancelled, 0, &[][..]));
    assert_eq!(guest.host.device().resets, resets + 1);
    guest.send(RedirPacket::SetConfiguration(1));
    guest.hear();
    let b = guest.send(wanted(64));
    guest.host.device_mut().is_away = true;
    guest.host.advance(DELAY);
    guest.host.advance(DELAY + DELAY);
    let messages = guest.hear();
    assert_eq!(bulk(&messages[0]), (b, PacketStatus::Cancelled, 0, &[][..]));
    assert_eq!((messages.len(), &messages[1].packet), (2, &RedirPacket::Disconnect));
    guest.send(wanted(64));
    guest.send(RedirPacket::DisconnectAcknowledged);
    assert!(guest.hear().is_empty());
    guest.host.device_mut().is_away = false;
    guest.host.advance(Nanos::from_millis(1));
    let kinds: Vec<RedirPacket> = guest.hear().into_iter().map(|message| message.packet).collect();
    assert!(matches!(
        kinds[..],
        [RedirPacket::Endpoints(_), RedirPacket::Interfaces(_), RedirPacket::Connect(_)]
    ));
}

#[test]
fn an_interrupt_endpoint_is_polled_at_its_interval() {
    let mut guest = Guest::configured();
    guest.host.advance(Nanos::from_micros(4_700));
    guest.send(RedirPacket::StartInterrupt(INTERRUPT_IN));
    assert_eq!(
        guest.hear()[0].packet,
        RedirPacket::InterruptStatus(PacketStatus::Success, INTERRUPT_IN)
    );
    guest.host.advance(Nanos::from_millis(12));
    let reports: Vec<RedirPacket> =
        guest.hear().into_iter().map(|message| message.packet).collect();
    let report = |ms: u64| {
        RedirPacket::Interrupt(data(INTERRUPT_IN, 8, &Nanos::from_millis(ms).0.to_le_bytes()))
    };
    assert_eq!(reports, [report(5), report(10)]);
    guest.send(RedirPacket::StopInterrupt(INTERRUPT_IN));
    guest.host.advance(Nanos::from_millis(30));
    assert_eq!(guest.hear().len(), 1);
    guest.send(RedirPacket::StartInterrupt(BULK_IN));
    assert_eq!(
        guest.hear()[0].packet,
        RedirPacket::InterruptStatus(PacketStatus::Invalid, BULK_IN)
    );
    guest.send(RedirPacket::Interrupt(data(INTERRUPT_OUT, 1, &[9])));
    let RedirPacket::Interrupt(answer) = &guest.hear()[0].packet else { panic!() };
    assert_eq!((answer.status, answer.length), (PacketStatus::Success, 1));
    assert_eq!(guest.host.device().heard, [(Nanos::from_millis(30), INTERRUPT_OUT, 9)]);
}

#[test]
fn isochronous_packets_go_one_a_microframe_both_ways() {
    let mut guest = Guest::configured();
    guest.send(RedirPacket::SetAlternate(2, 1));
    guest.send(RedirPacket::StartIsochronous(ISOCHRONOUS_IN, 1, 4));
    guest.send(RedirPacket::StartIsochronous(ISOCHRONOUS_OUT, 1, 4));
    guest.hear();
    for number in 0..3 {
        guest.send(RedirPacket::Isochronous(data(ISOCHRONOUS_OUT, 2, &[number, 0])));
    }
    guest.host.advance(Nanos::from_millis(1));
    let due = |n: u64| Nanos::from_micros(125 * n);
    let packets: Vec<RedirPacket> =
        guest.hear().into_iter().map(|message| message.packet).collect();
    let expected: Vec<RedirPacket> = (1..=8)
        .map(|n| RedirPacket::Isochronous(data(ISOCHRONOUS_IN, 8, &due(n).0.to_le_bytes())))
        .collect();
    assert_eq!(packets, expected);
    let heard: Vec<(Nanos, u8, u8)> =
        (0..3).map(|n| (due(n + 1), ISOCHRONOUS_OUT, n as u8)).collect();
    assert_eq!(guest.host.device().heard, heard);
    guest.send(RedirPacket::SetAlternate(2, 0));
    guest.hear();
    guest.host.advance(Nanos::from_millis(2));
    assert!(guest.hear().is_empty());
}

/// Any requests in any order: nothing breaks, and each transfer is answered at most once, and by
/// the end exactly once.
#[test]
fn any_requests_at_all_are_answered_once() {
    for case in 0..40 {
        let mut random = Random::stream(4, case);
        let mut guest = Guest::configured();
        let (mut open, mut time) = (Vec::new(), Nanos::ZERO);
        for _ in 0..150 {
            step(&mut random, &mut guest, &mut open, &mut time);
            close(&mut open, &mut guest);
        }
        guest.send(RedirPacket::Reset);
        close(&mut open, &mut guest);
        assert_eq!(open, [0; 0], "case {case}");
    }
}

/// Takes what was answered from what is open.
fn close(open: &mut Vec<u64>, guest: &mut Guest) {
    for message in guest.hear() {
        if matches!(message.packet, RedirPacket::Bulk(_) | RedirPacket::Control(..)) {
            let at = open.iter().position(|id| *id == message.id);
            open.remove(at.unwrap_or_else(|| panic!("nobody waits for {message:?}")));
        }
    }
}

fn step(random: &mut Random, guest: &mut Guest, open: &mut Vec<u64>, time: &mut Nanos) {
    let endpoints =
        [BULK_IN, BULK_OUT, INTERRUPT_IN, INTERRUPT_OUT, ISOCHRONOUS_IN, ISOCHRONOUS_OUT, 0x8f, 0];
    let endpoint = random.pick(&endpoints);
    let length = random.below(1_500) as u32;
    let bytes: Vec<u8> = (0..length).map(|_| random.bits() as u8).collect();
    let setup = Setup::decode(random.bits().to_le_bytes());
    let setup = Setup { length: length as u16, ..setup };
    match random.below(16) {
        0..3 => open.push(guest.send(wanted(length))),
        3..6 => open.push(guest.send(out(&bytes))),
        6 => open.push(guest.send(RedirPacket::Bulk(data(endpoint, length, &bytes)))),
        7 => open.push(guest.send(RedirPacket::Control(0, PacketStatus::Success, setup, bytes))),
        8 => drop(guest.send(RedirPacket::Interrupt(data(endpoint, length, &bytes)))),
        9 => drop(guest.send(RedirPacket::Isochronous(data(endpoint, length, &bytes)))),
        10 => drop(guest.send(RedirPacket::StartIsochronous(endpoint, 1, 1))),
        11 => drop(guest.send(RedirPacket::StartInterrupt(endpoint))),
        12 => drop(guest.send(RedirPacket::SetAlternate(2, random.below(3) as u8))),
        13 => drop(guest.send(RedirPacket::SetConfiguration(random.below(3) as u8))),
        14 => match open.is_empty() {
            true => drop(guest.send(RedirPacket::Reset)),
            false => guest.send_as(random.pick(open), RedirPacket::Cancel),
        },
        _ => {
            *time += Nanos(random.below(3_000_000));
            guest.host.advance(*time);
        }
    }
}
