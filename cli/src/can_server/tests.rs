//! Clients over TCP against a bus whose time passes.

use super::*;
use diapason_can::{BitRate, StandardId};
use diapason_devices::can::{BusLoad, Sent};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

/// Returns a bus of 1,000 frames a second with a server, and the address.
fn served() -> (CanBus, SocketAddr) {
    let load = BusLoad { per_second: 1_000, extended: false };
    let bus = CanBus::loaded(3, BitRate::new(500_000).unwrap(), load);
    let server = CanServer::open("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = server.address().unwrap();
    server.serve(&[(3, bus.clone())]);
    bus.record(usize::MAX);
    (bus, address)
}

/// Lets time pass on the bus until `client` has ended; what the bus saw.
fn live<T: Send + 'static>(bus: &CanBus, client: std::thread::JoinHandle<T>) -> (Vec<Sent>, T) {
    let ends = (1..60_000).map(Nanos::from_millis);
    for now in ends.take_while(|_| !client.is_finished()) {
        bus.advance(now);
    }
    (bus.take_record(), client.join().unwrap())
}

/// A client that says things and hears until it has heard enough.
struct Talker(TcpStream, String);

impl Talker {
    fn connect(address: SocketAddr) -> Talker {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let mut talker = Talker(stream, String::new());
        assert_eq!(talker.next(), "< hi >");
        talker
    }

    fn say(&mut self, text: &str) {
        self.0.write_all(text.as_bytes()).unwrap();
    }

    fn next(&mut self) -> String {
        loop {
            if let Some(end) = self.1.find('>') {
                return self.1.drain(..=end).collect();
            }
            let mut bytes = [0; 1_000];
            let count = self.0.read(&mut bytes).unwrap();
            assert!(count > 0, "the server went away after {:?}", self.1);
            self.1 += std::str::from_utf8(&bytes[..count]).unwrap();
        }
    }

    /// Opens `can3` in raw mode.
    fn open(&mut self) {
        self.say("< open can3 >");
        assert_eq!(self.next(), "< ok >");
        self.say("< rawmode >");
        assert_eq!(self.next(), "< ok >");
    }
}

#[test]
fn a_client_hears_the_bus_and_is_heard_by_bus_and_other_clients() {
    let (bus, address) = served();
    let both = std::thread::spawn(move || {
        let (mut one, mut other) = (Talker::connect(address), Talker::connect(address));
        one.open();
        other.open();
        one.say("< send 7FF 2 ab c >");
        let told = loop {
            let told = other.next();
            if told.starts_with("< frame 7FF ") {
                break told;
            }
            assert!(told.starts_with("< frame 1"), "{told}");
        };
        // The frame was on the bus, and whoever sent it does not hear it.
        other.say("< send 7FE 0 >");
        let heard: Vec<String> = std::iter::from_fn(|| Some(one.next()))
            .take_while(|told| !told.starts_with("< frame 7FE "))
            .collect();
        assert!(!heard.is_empty() && heard.iter().all(|told| !told.starts_with("< frame 7FF ")));
        told
    });
    let (sent, told) = live(&bus, both);
    let frame = CanFrame::data(StandardId::MAX, &[0xab, 0x0c]).unwrap();
    let ours = sent.iter().find(|sent| sent.frame == frame.into()).unwrap();
    let time = format!("{}.{:06}", ours.time.0 / 1_000_000_000, ours.time.0 / 1_000 % 1_000_000);
    assert_eq!(told, format!("< frame 7FF {time} AB0C >"));
}

#[test]
fn a_client_that_sends_more_than_the_bus_carries_waits_and_loses_nothing() {
    const COUNT: usize = 2_000;
    let (bus, address) = served();
    let flood = std::thread::spawn(move || {
        let mut talker = Talker::connect(address);
        talker.say("< open can3 >");
        assert_eq!(talker.next(), "< ok >");
        for number in 0..COUNT {
            talker.say(&format!("< send 7FF 2 {:x} {:x} >", number >> 8, number & 0xff));
        }
        // The echo comes when the server hears again: all frames have found room by then.
        talker.say("< echo >");
        assert_eq!(talker.next(), "< echo >");
    });
    let (mut sent, ()) = live(&bus, flood);
    let now = bus.with_bus(|bus| bus.now());
    bus.advance(now + Nanos::from_millis(100));
    sent.extend(bus.take_record());
    let ours = sent.iter().filter(|sent| sent.frame.id() == StandardId::MAX.into());
    let numbers =
        ours.map(|sent| sent.frame.bytes()).map(|b| usize::from(b[0]) << 8 | usize::from(b[1]));
    assert!(numbers.eq(0..COUNT));
}

#[test]
fn a_run_is_not_faster_than_the_host() {
    let (bus, _address) = served();
    let begin = crate::pace::here();
    bus.advance(Nanos::from_millis(300));
    let passed = begin.elapsed();
    assert!(passed >= Duration::from_millis(290), "{passed:?}");
}

#[test]
fn an_address_that_is_taken_and_a_run_without_buses_are_told() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let refused = CanServer::open(taken.local_addr().unwrap()).unwrap_err();
    assert_eq!(refused.exit_code(), 4);
    assert!(refused.to_string().contains("cannot serve CAN buses at 127.0.0.1:"), "{refused}");
    let text = "[system]\nname = \"s\"\n[[process]]\nname = \"p\"\npriority = 1\n";
    let system = diapason_system::parse("f", text).unwrap();
    let can_server = taken.local_addr().ok();
    assert_eq!(check(&system, &CaptureRequest::default()), Ok(()));
    let refused =
        check(&system, &CaptureRequest { can_server, ..CaptureRequest::default() }).unwrap_err();
    assert_eq!(refused.exit_code(), 2);
}

/// The client that people use, if the host has it.
#[test]
fn python_can_sends_and_receives() {
    let python = |script: &str, address: SocketAddr| {
        let mut command =
            Command::new(std::env::var("DIAPASON_PYTHON").unwrap_or("python3".into()));
        command.args(["-c", script]).arg(address.port().to_string());
        command.output().map(|output| (output.status.success(), output))
    };
    let nowhere: SocketAddr = "127.0.0.1:1".parse().unwrap();
    if !python("import can.interfaces.socketcand", nowhere).is_ok_and(|(good, _)| good) {
        eprintln!("python3 has no python-can: it was not tried");
        return;
    }
    let (bus, address) = served();
    let client = std::thread::spawn(move || python(PYTHON, address).unwrap());
    let (sent, (good, output)) = live(&bus, client);
    assert!(good, "{}", String::from_utf8_lossy(&output.stderr));
    let ours: Vec<&Sent> = sent.iter().filter(|sent| sent.frame.is_extended()).collect();
    assert_eq!(ours.len(), 5);
    assert!((0..).zip(&ours).all(|(number, sent)| sent.frame.bytes() == [number, 0x0a, 0xff]));
}

const PYTHON: &str = r#"
import sys, can
bus = can.Bus(interface="socketcand", host="127.0.0.1", port=int(sys.argv[1]), channel="can3")
for number in range(5):
    bus.send(can.Message(arbitration_id=0x1abcde00, is_extended_id=True, data=[number, 10, 255]))
last, heard = 0.0, 0
while heard < 200:
    message = bus.recv(10)
    assert message is not None, heard
    # Some versions take each frame for an extended one.
    assert message.arbitration_id <= 0x7ff and message.timestamp >= last, message
    assert len(message.data) == 8, message
    last, heard = message.timestamp, heard + 1
bus.shutdown()
"#;
