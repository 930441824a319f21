//! Channels with CAN FD: one is read, and one is written by a client that also writes what is no
//! frame.

use crate::ground::{attach, now, post};
use crate::machine::Machine;
use diapason_abi::Nanos;
use diapason_can::exchange::{
    ChannelCommand, ChannelParameters, ChannelReport, ChannelRequest, FLEXIBLE, FdDeparture,
    FdReceivedFrame, Phase,
};
use diapason_can::frame::standard;
use diapason_can::{AnyFrame, BitRate, CanFrame, FdFrame};
use diapason_contract::can::{CanInterface, DEPARTURES, INTERFACES, RECORDS, REPORTS, names};
use diapason_contract::settings::{BIT_RATES, CLIENTS, DATA_RATES, OPENS, RESTART};
use diapason_devices::UsbDevice;
use diapason_devices::can::{BUSY_FD, BusMishap, CanBus};
use diapason_devices::gs_usb::GsUsbModel;
use diapason_devices::kvaser::{Hydra, Identity};
use diapason_pipe::{Reader, Writer};
use diapason_usbd::Platform;

const PORT: u8 = 1;
const WRITTEN: usize = 1;

/// A server with two channels with CAN FD: the first is read, and the second has a client.
struct Rig {
    machine: Machine,
    arrivals: Reader<'static, FdReceivedFrame, RECORDS>,
    out: Writer<'static, FdDeparture, DEPARTURES>,
    reports: Reader<'static, ChannelReport, REPORTS>,
    bus: CanBus,
    last: ChannelReport,
}

impl Rig {
    /// Returns the server with an interface that this makes of its two buses.
    fn new(device: fn(&[Option<CanBus>]) -> Box<dyn UsbDevice>) -> Rig {
        let (rate, data, _) = BUSY_FD;
        let both = CanInterface { first: 0, channels: 2 }.word();
        let machine = Machine::with(&[
            (INTERFACES, &[both]),
            (OPENS, &[0]),
            (CLIENTS, &[WRITTEN as u64]),
            (BIT_RATES, &[rate.into(), rate.into()]),
            (DATA_RATES, &[data.into(), data.into()]),
            (RESTART, &[20_000_000]),
        ]);
        let ground = &machine.ground;
        let arrivals = ground.reader(names(0).unwrap().fd_arrivals).unwrap();
        let own = names(WRITTEN).unwrap();
        let out = ground.writer(own.fd_departures).unwrap();
        let reports = ground.reader(own.reports).unwrap();
        let rates = (BitRate::new(rate).unwrap(), BitRate::of_data(data).unwrap());
        let bus = CanBus::with_data_rate(rates.0, rates.1).acknowledged();
        bus.record(1_000);
        let busy = CanBus::busy_fd().unwrap();
        attach(PORT, device(&[Some(busy), Some(bus.clone())]));
        let last = ChannelReport::default();
        let mut rig = Rig { machine, arrivals, out, reports, bus, last };
        rig.machine.run(Nanos::from_millis(500));
        rig
    }

    fn ask(&mut self, token: u32, wanted: ChannelCommand) {
        post(names(WRITTEN).unwrap().requests, &ChannelRequest { wanted, token }.bytes());
        self.machine.ask();
        self.machine.run(Nanos::from_millis(20));
    }

    fn write(&mut self, records: &[FdDeparture]) {
        records.iter().for_each(|record| self.out.push(record).unwrap());
        self.machine.ask();
        self.machine.run(Nanos::from_millis(20));
        self.last = std::iter::from_fn(|| self.reports.pop()).last().unwrap_or(self.last);
    }
}

fn interface(buses: &[Option<CanBus>]) -> Box<dyn UsbDevice> {
    Box::new(GsUsbModel::new(1, buses))
}

fn long(byte: u8) -> FdFrame {
    FdFrame::new(standard(byte.into()).unwrap(), &[byte; 64]).unwrap()
}

#[test]
fn frames_of_both_formats_come_and_go_and_nothing_else_does() {
    let mut rig = Rig::new(interface);
    let frames: Vec<AnyFrame> =
        std::iter::from_fn(|| rig.arrivals.pop()).filter_map(|record| record.frame()).collect();
    let flexible = frames.iter().filter(|frame| frame.is_fd()).count();
    assert!(flexible > 100 && frames.len() - flexible > 100, "{flexible} of {}", frames.len());
    rig.ask(1, ChannelCommand::Open(ChannelParameters::AS_DESCRIBED));
    let classic = CanFrame::data(standard(7).unwrap(), &[1, 2]).unwrap();
    let good = [AnyFrame::Fd(long(1).with_fast(true)), AnyFrame::Classic(classic)];
    let record = |frame: &AnyFrame| FdDeparture::at(frame, now());
    let mut none = record(&good[0]);
    (none.head.code, none.head.flags) = (200, FLEXIBLE);
    let slow = record(&AnyFrame::Fd(long(2)));
    rig.write(&[record(&good[0]), none, slow, record(&good[1])]);
    let sent: Vec<AnyFrame> = rig.bus.take_record().iter().map(|sent| sent.frame).collect();
    assert_eq!(sent, good);
    assert_eq!((rig.last.through, rig.last.given_up, rig.last.phase()), (2, 2, Phase::Open));
}

/// A bit rate above that of the data is none. The channel takes part again at the described ones.
#[test]
fn a_client_has_no_bit_rate_above_that_of_the_data() {
    let mut rig = Rig::new(interface);
    let much = ChannelParameters { bit_rate: 1_000_000, ..ChannelParameters::AS_DESCRIBED };
    rig.ask(1, ChannelCommand::Open(much));
    rig.write(&[]);
    assert_eq!(rig.last.token, 1);
    rig.ask(2, ChannelCommand::Open(ChannelParameters::AS_DESCRIBED));
    let frame = AnyFrame::Fd(long(3).with_fast(true));
    rig.write(&[FdDeparture::at(&frame, now())]);
    assert_eq!((rig.last.phase(), rig.last.through), (Phase::Open, 1));
}

/// A channel that went bus-off is opened again with CAN FD, and the frames of the other one go on.
#[test]
fn bus_off_ends_and_the_channel_has_can_fd_again() {
    let mut rig = Rig::new(interface);
    rig.ask(1, ChannelCommand::Open(ChannelParameters::AS_DESCRIBED));
    rig.bus.suffer(now(), BusMishap::BusOff);
    let frame = AnyFrame::Fd(long(4).with_fast(true));
    while rig.arrivals.pop().is_some() {}
    rig.write(&[FdDeparture::at(&frame, now())]);
    rig.machine.run(Nanos::from_millis(40));
    rig.write(&[FdDeparture::at(&frame, now())]);
    assert_eq!(rig.last.phase(), Phase::Open);
    assert_eq!(rig.last.through + rig.last.given_up, 2);
    assert!(rig.last.through >= 1, "{:?}", rig.last);
    let arrived = std::iter::from_fn(|| rig.arrivals.pop()).count();
    assert!(arrived > 100, "{arrived}");
}

#[test]
fn an_interface_without_can_fd_is_not_served() {
    let mut rig = Rig::new(|buses| Box::new(Hydra::new(Identity::default(), buses)));
    assert!(rig.arrivals.pop().is_none());
    rig.write(&[]);
    assert_eq!(rig.last.phase(), Phase::Absent);
}
