//! Wireshark's own reader understands what we write. Without it, this test says so and is no test;
//! the golden bytes are.

use diapason_abi::Nanos;
use diapason_can::candump::LineContent;
use diapason_can::frame::extended;
use diapason_can::{CanFrame, FdFrame};
use diapason_capture::can;
use diapason_capture::pcap::{self, LinkType};
use diapason_capture::usb::{TransferKind, TransferStatus, TransferStep, UsbmonEvent};
use std::io::Write;
use std::process::{Command, Stdio};

/// These fields of every packet, tab-separated; `None` if there is no tshark.
fn fields(capture: &[u8], names: &[&str]) -> Option<Vec<String>> {
    let mut command = Command::new("tshark");
    command.args(["-n", "-r", "-", "-T", "fields"]);
    names.iter().for_each(|name| {
        command.args(["-e", name]);
    });
    let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut reader = piped.spawn().ok()?;
    reader.stdin.take()?.write_all(capture).ok()?;
    let output = reader.wait_with_output().ok()?;
    assert!(output.status.success(), "tshark refuses the capture");
    Some(String::from_utf8(output.stdout).ok()?.lines().map(String::from).collect())
}

#[test]
fn tshark_reads_transfers() {
    let begin = UsbmonEvent {
        time: Nanos(1_000_000_001),
        id: 7,
        kind: TransferKind::Control,
        endpoint: 0x80,
        device: 5,
        bus: 2,
        step: TransferStep::Submitted,
        setup: Some([0x80, 6, 0, 1, 0, 0, 18, 0]),
        length: 18,
        data: &[],
    };
    let device = [18, 1, 0, 2, 0xff, 0, 0, 64, 0xfd, 0x0b, 0x05, 0x01, 0, 1, 1, 2, 3, 1];
    let step = TransferStep::Completed(TransferStatus::Success);
    let end = UsbmonEvent { time: Nanos(1_000_250_003), step, data: &device, ..begin };
    let stall = UsbmonEvent {
        step: TransferStep::Completed(TransferStatus::Stall),
        length: 0,
        data: &[],
        ..end
    };
    let mut capture = pcap::header(LinkType::Usb).to_vec();
    for event in [begin, end, stall] {
        capture.extend(pcap::packet(event.time, &event.bytes()));
    }
    let names = ["frame.time_epoch", "usb.urb_type", "usb.device_address", "usb.urb_status"];
    let Some(lines) = fields(&capture, &[&names[..], &["usb.idVendor"]].concat()) else {
        return eprintln!("skipped: no tshark");
    };
    let expected = [
        "1.000000001\t'S'\t5\t-115\t",
        "1.000250003\t'C'\t5\t0\t0x0bfd",
        "1.000250003\t'C'\t5\t-32\t",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn tshark_reads_frames() {
    let id = extended(0x18db_33f1).unwrap();
    let mut capture = pcap::header(LinkType::Can).to_vec();
    for frame in [CanFrame::data(id, &[2, 1]).unwrap(), CanFrame::remote(id, 4).unwrap()] {
        capture.extend(pcap::packet(Nanos(5), &can::bytes(&LineContent::Frame(frame.into()))));
    }
    let fd = FdFrame::new(id, &[7; 12]).unwrap().with_fast(true);
    capture.extend(pcap::packet(Nanos(6), &can::bytes(&LineContent::Frame(fd.into()))));
    let names = ["frame.time_epoch", "can.id", "can.len", "can.flags.rtr", "data"];
    let Some(lines) = fields(&capture, &names) else { return eprintln!("skipped: no tshark") };
    let id = 0x18db_33f1;
    // How newer and older versions print a flag differs.
    let lines: Vec<String> =
        lines.iter().map(|l| l.replace("False", "0").replace("True", "1")).collect();
    assert_eq!(lines[0], format!("0.000000005\t{id}\t2\t0\t0201"));
    // It shows the padding of a remote frame as data, which it has not.
    assert!(lines[1].starts_with(&format!("0.000000005\t{id}\t4\t1\t")), "{}", lines[1]);
    // It has other names for frames of CAN FD, and takes padding for data.
    assert!(lines[2].starts_with("0.000000006\t") && lines[2].contains(&"07".repeat(12)));
}
