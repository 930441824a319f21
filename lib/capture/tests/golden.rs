//! Captures byte by byte.

use diapason_abi::Nanos;
use diapason_can::candump::{self, LineContent};
use diapason_can::frame::{extended, standard};
use diapason_can::{CanFrame, FdFrame};
use diapason_capture::pcap::{self, KEPT_MAX, LinkType};
use diapason_capture::usb::{TransferKind, TransferStatus, TransferStep, UsbmonEvent};
use diapason_capture::{can, usb};

/// Hexadecimal digits without spaces as bytes.
fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u32> = text.chars().filter_map(|c| c.to_digit(16)).collect();
    digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect()
}

#[test]
fn a_file_begins_with_its_kind_and_each_packet_with_its_time() {
    let header = "4d3cb2a1 0200 0400 00000000 00000000 00000400";
    assert_eq!(pcap::header(LinkType::Can)[..], hex(&format!("{header} e3000000")));
    assert_eq!(pcap::header(LinkType::Usb)[..], hex(&format!("{header} dc000000")));
    let packet = pcap::packet(Nanos(3_000_000_007), &[0xab, 0xcd]);
    assert_eq!(packet, hex("03000000 07000000 02000000 02000000 abcd"));
}

#[test]
fn what_is_too_long_is_cut_and_says_so() {
    let packet = pcap::packet(Nanos::ZERO, &vec![1; KEPT_MAX + 1]);
    assert_eq!(packet.len(), 16 + KEPT_MAX);
    assert_eq!(packet[8..16], hex("00000400 01000400"));
    assert_eq!(pcap::packet(Nanos::FOREVER, &[])[0..4], [0xff; 4]);
}

#[test]
fn frames_are_as_socketcan_has_them() {
    let data = |id, bytes: &[u8]| LineContent::Frame(CanFrame::data(id, bytes).unwrap().into());
    let (id, long) = (standard(0x123).unwrap(), extended(0x18db_33f1).unwrap());
    let cases = [
        (data(id, &[1, 2, 3]), "00000123 03000000 0102030000000000"),
        (data(long, &[]), "98db33f1 00000000 0000000000000000"),
        (
            LineContent::Frame(CanFrame::remote(id, 4).unwrap().into()),
            "40000123 04000000 0000000000000000",
        ),
        (
            LineContent::Frame(CanFrame::data(id, &[5; 8]).unwrap().with_code(9).unwrap().into()),
            "00000123 08000009 0505050505050505",
        ),
        (LineContent::Error { class: 0x80, details: [0; 8] }, "20000080 08000000 0000000000000000"),
    ];
    let fd = FdFrame::new(long, &[7; 12]).unwrap();
    let reports =
        [fd.with_fast(true), fd.with_passive(true)].map(|fd| LineContent::Frame(fd.into()));
    for (report, flags) in reports.iter().zip(["05", "06"]) {
        let expected = format!("98db33f1 0c{flags}0000 {}{}", "07".repeat(12), "00".repeat(52));
        assert_eq!(can::bytes(report)[..], hex(&expected));
    }
    for (report, bytes) in cases {
        assert_eq!(can::bytes(&report)[..], hex(bytes), "{report:?}");
    }
}

#[test]
fn a_candump_line_and_a_packet_say_the_same() {
    let record = candump::parse("(0000000001.000002) can3 18DB33F1#0201").unwrap();
    assert_eq!(can::bytes(&record.report)[..], hex("98db33f1 02000000 0201000000000000"));
}

fn request() -> UsbmonEvent<'static> {
    UsbmonEvent {
        time: Nanos(1_002_003_004),
        id: 0x1122_3344_5566_7788,
        kind: TransferKind::Control,
        endpoint: 0x80,
        device: 5,
        bus: 1,
        step: TransferStep::Submitted,
        setup: Some([0x80, 6, 0, 1, 0, 0, 18, 0]),
        length: 18,
        data: &[],
    }
}

#[test]
fn a_request_and_its_answer() {
    // Identifier; S, kind, endpoint, device; bus; set-up is there, data are not; s, us; status;
    // length; kept; set-up; interval; frame; flags; packets.
    let submitted = "8877665544332211 53028005 0100 003c 0100000000000000 d3070000 8dffffff \
                     12000000 00000000 8006000100001200 00000000 00000000 00020000 00000000";
    assert_eq!(request().bytes(), hex(submitted));
    let step = TransferStep::Completed(TransferStatus::Success);
    let answer = UsbmonEvent { step, length: 3, data: &[18, 1, 0], ..request() };
    let completed = "8877665544332211 43028005 0100 2d00 0100000000000000 d3070000 00000000 \
                     03000000 03000000 0000000000000000 00000000 00000000 00020000 00000000 120100";
    assert_eq!(answer.bytes(), hex(completed));
}

#[test]
fn bulk_to_the_device_carries_its_data_at_the_beginning() {
    let out =
        UsbmonEvent { kind: TransferKind::Bulk, endpoint: 2, setup: None, length: 2, ..request() };
    let begin = UsbmonEvent { data: &[0xaa, 0xbb], ..out }.bytes();
    assert_eq!(begin[8..16], hex("53030205 0100 2d00"));
    assert_eq!((begin[36], begin[64..].to_vec()), (2, vec![0xaa, 0xbb]));
    let end = UsbmonEvent { step: TransferStep::Completed(TransferStatus::Stall), ..out }.bytes();
    assert_eq!(end[14..16], hex("2d3e"));
    assert_eq!((end[28..32].to_vec(), end.len()), (hex("e0ffffff"), 64));
}

#[test]
fn isochronous_transfers_have_one_packet() {
    let missed = UsbmonEvent {
        kind: TransferKind::Isochronous,
        endpoint: 0x81,
        setup: None,
        step: TransferStep::Completed(TransferStatus::Missed),
        length: 0,
        ..request()
    };
    let bytes = missed.bytes();
    assert_eq!((bytes[9], bytes.len()), (usb::TransferKind::Isochronous as u8, 80));
    assert_eq!(bytes[36..40], hex("10000000"));
    assert_eq!(bytes[40..48], hex("01000000 01000000"));
    assert_eq!(bytes[60..], hex("01000000 eeffffff 00000000 00000000 00000000"));
}
