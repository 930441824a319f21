//! A sensor on the model: a packet every 2.5 ms, none lost.

use crate::machine::Machine;
use diapason_abi::Nanos;
use diapason_devices::sensor::{self, Sensor};
use diapason_usb::Setup;
use diapason_usb::descriptor::Configuration;
use diapason_usb::xhci::{EndpointPlan, Limits, Notice, Request, TransferOutcome};
use diapason_xhc::Config;

#[test]
fn packets_of_the_sensor_arrive_in_order_and_accesses_are_counted() {
    let mut machine = Machine::running(Config::default(), Limits::default());
    machine.attach(1, Box::new(Sensor::default()));
    machine.run(Nanos::from_millis(400));
    let Some(Notice::Found { device, speed, .. }) = machine.notices.pop() else {
        panic!("no sensor");
    };
    let mut bytes = [0; 512];
    let length = machine.driver.configuration(device, &mut bytes).unwrap();
    let configuration = Configuration::parse_once(&bytes[..length], speed).unwrap();
    let plans: Vec<EndpointPlan> = configuration
        .interfaces()
        .flat_map(|interface| interface.endpoints().map(EndpointPlan::new).collect::<Vec<_>>())
        .collect();
    let value = configuration.header().value;
    machine.driver.configure(device, value, &plans).unwrap();
    machine.run(Nanos::from_millis(10));
    assert_eq!(machine.notices.pop(), Some(Notice::Configured(device)));
    // SET_CONTROL_LINE_STATE: the sensor starts when somebody listens.
    let listen = Setup { kind: 0x21, request: 0x22, value: 1, index: 0, length: 0 };
    let nothing = machine.buffer(0, 0);
    machine.driver.control(device, listen, nothing, 0).unwrap();
    machine.run(Nanos::from_millis(1));
    assert_eq!(machine.finished.pop().unwrap().outcome, TransferOutcome::Done);
    let before = (machine.accesses(), machine.now());
    for number in 0..200u64 {
        let memory = machine.buffer(0, sensor::PACKET as u32);
        let request = Request::new(device, sensor::IN, memory);
        machine.driver.submit(&request).unwrap();
        machine.run_until(machine.now() + Nanos::from_millis(20), |m| !m.finished.is_empty());
        let finished = machine.finished.pop().unwrap();
        assert_eq!((finished.outcome, finished.actual), (TransferOutcome::Done, 512));
        let bytes = machine.bytes(0, 16);
        assert_eq!(bytes[..8], sensor::packet(number, Nanos::ZERO)[..8]);
    }
    let (reads, writes) = machine.accesses();
    let watches = (machine.now().0 - before.1.0) / 100_000_000;
    // Three writes each; reads only to see whether the controller lives.
    assert_eq!(writes - before.0.1, 600);
    assert!(reads - before.0.0 <= watches + 1, "{} reads", reads - before.0.0);
}
