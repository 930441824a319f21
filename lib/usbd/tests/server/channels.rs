//! Channels whose clients open and write them, and clients that die at every step.

use crate::ground::{attach, now, post, take_lines};
use crate::machine::Machine;
use diapason_abi::Nanos;
use diapason_can::exchange::{
    ChannelCommand, ChannelParameters, ChannelReport, ChannelRequest, Departure, Phase,
};
use diapason_can::frame::standard;
use diapason_can::{BitRate, CanFrame};
use diapason_contract::can::{
    BIT_RATE, CanInterface, ChannelNames, DEPARTURES, INTERFACES, REPORTS, SAMPLE_POINT, names,
};
use diapason_contract::settings::{CLIENTS, OPENS, RESTART};
use diapason_devices::can::{BusMishap, CanBus};
use diapason_devices::kvaser::{Hydra, Identity};
use diapason_pipe::{Reader, Writer};
use diapason_usbd::Platform;

const PORT: u8 = 1;
const CHANNEL: usize = 2;
/// More than the interface takes at a time.
const FRAMES: u32 = 100;
const USUAL: ChannelParameters = ChannelParameters {
    bit_rate: BIT_RATE,
    sample_point: SAMPLE_POINT,
    silent: false,
    data_rate: 0,
};

/// The ends of the client of a channel. They outlive it.
struct Client {
    names: &'static ChannelNames,
    out: Writer<'static, Departure, DEPARTURES>,
    reports: Reader<'static, ChannelReport, REPORTS>,
    last: ChannelReport,
    written: u64,
}

impl Client {
    /// Asks for something by the mailbox of requests.
    fn ask(&self, token: u32, wanted: ChannelCommand) {
        post(self.names.requests, &ChannelRequest { wanted, token }.bytes());
    }

    /// Writes frames of the client with this number.
    fn write(&mut self, client: u32, count: u32) {
        for at in 0..count {
            if self.out.push(&Departure::at(&frame(client, at), now())).is_ok() {
                self.written += 1;
            }
        }
    }

    fn read(&mut self) {
        self.last = std::iter::from_fn(|| self.reports.pop()).last().unwrap_or(self.last);
    }
}

fn frame(client: u32, at: u32) -> CanFrame {
    let id = standard(0x100 * client + at).expect("it is one");
    CanFrame::data(id, &[]).expect("it is one")
}

/// Returns a CAN interface, one of whose channels has a client, and the bus of that channel.
fn with_client() -> (Machine, CanBus, Client) {
    with_settings(&[(CLIENTS, &[CHANNEL as u64])])
}

/// Returns the same of a server with these settings.
fn with_settings(settings: &[(&str, &[u64])]) -> (Machine, CanBus, Client) {
    let mut machine = Machine::with(settings);
    let names = names(CHANNEL).unwrap();
    let out = machine.ground.writer(names.departures).unwrap();
    let reports = machine.ground.reader(names.reports).unwrap();
    let bus = CanBus::quiet(BitRate::new(BIT_RATE).expect("it is one"));
    bus.record(1_000);
    let buses = [None, None, Some(bus.clone())];
    attach(PORT, Box::new(Hydra::new(Identity::default(), &buses)));
    machine.run(Nanos::from_millis(500));
    (machine, bus, Client { names, out, reports, last: ChannelReport::default(), written: 0 })
}

/// The life of a client, step by step. Each takes effect or is under way when it dies.
const LIFE: [fn(&mut Client, &mut Machine); 6] = [
    |client, _| client.ask(1, ChannelCommand::Open(USUAL)),
    |_, machine| machine.run(Nanos::from_millis(100)),
    |client, _| client.write(1, FRAMES),
    |client, _| client.ask(2, ChannelCommand::Status),
    |_, machine| machine.run(Nanos::from_millis(3)),
    |client, _| {
        client.ask(3, ChannelCommand::Open(ChannelParameters { bit_rate: 250_000, ..USUAL }))
    },
];

#[test]
fn a_client_that_dies_at_any_step_leaves_the_channel_to_its_successor() {
    let mut fates = (0, 0);
    for steps in 0..=LIFE.len() {
        for pause in [0, 150, 2_000] {
            let (mut machine, bus, mut client) = with_client();
            for step in &LIFE[..steps] {
                step(&mut client, &mut machine);
                machine.ask();
                machine.run(Nanos::from_micros(pause));
            }
            // It reads no report. Its successor leaves the bus, and takes part in it again.
            client.ask(100, ChannelCommand::Close);
            machine.ask();
            machine.run(Nanos::from_millis(50));
            client.read();
            let at = format!("after {steps} steps, {pause} us each");
            let closed = (client.last.token, client.last.phase());
            assert_eq!(closed, (100, Phase::Closed), "{at}");
            assert_eq!(client.last.through + client.last.given_up, client.written, "{at}");
            fates = (fates.0 + client.last.through, fates.1 + client.last.given_up);
            let begun = bus.take_record();
            let first = (0..begun.len() as u32).map(|at| frame(1, at));
            assert!(begun.iter().map(|sent| sent.frame.classic()).eq(first.map(Some)), "{at}");
            // At the rate of the description, which is that of the bus.
            client.ask(101, ChannelCommand::Open(ChannelParameters::AS_DESCRIBED));
            machine.ask();
            machine.run(Nanos::from_millis(200));
            client.read();
            assert_eq!(client.last.phase(), Phase::Open, "{at}");
            let before = client.last.through;
            client.write(2, FRAMES);
            machine.ask();
            machine.run(Nanos::from_millis(100));
            client.read();
            assert_eq!(client.last.through, before + u64::from(FRAMES), "{at}");
            let sent = bus.take_record();
            let own = (0..FRAMES).map(|at| frame(2, at));
            assert!(
                sent.iter().map(|sent| sent.frame.classic()).eq(own.map(Some)),
                "{at}: {sent:?}"
            );
        }
    }
    assert!(fates.0 > 100 && fates.1 > 100, "the steps miss a fate: {fates:?}");
}

/// The server believes a device that has more channels as far as the description goes, and one that
/// has fewer as far as itself.
#[test]
fn channels_beyond_the_description_or_the_device_stay_closed() {
    let told = |channels| CanInterface { first: 0, channels }.word();
    for (described, built, open) in [(2, 5, 2), (2, 2, 2), (5, 3, 3), (1, 5, 1)] {
        let opens = [0, 1, 2, 3, 4];
        let mut machine = Machine::with(&[(INTERFACES, &[told(described)]), (OPENS, &opens)]);
        attach(PORT, Box::new(Hydra::new(Identity::default(), &vec![None; built])));
        machine.run(Nanos::from_millis(500));
        let lines = take_lines();
        let opened = lines.iter().filter(|line| line.ends_with(": open")).count();
        assert_eq!(opened, open, "{described} of {built}: {lines:?}");
    }
}

/// A client that asks without end and reads no report gets the last one when it asks again.
#[test]
fn a_client_that_reads_nothing_is_answered_when_it_reads() {
    let (mut machine, _, mut client) = with_client();
    for token in 1..=4 * REPORTS as u32 {
        client.ask(token, ChannelCommand::Open(USUAL));
        machine.ask();
        machine.run(Nanos::from_micros(500));
    }
    client.read();
    assert!(client.last.token < 4 * REPORTS as u32, "there is room for so many reports");
    // A report for which there was no room is written when the client asks for it again.
    client.ask(0, ChannelCommand::Wake);
    machine.ask();
    client.read();
    assert_eq!(client.last.token, 4 * REPORTS as u32);
    assert_eq!(client.last.phase(), Phase::Open);
}

/// A channel that went bus-off comes back after the time that the description says, for its client,
/// too. Without such a time it waits for its client.
#[test]
fn a_channel_that_went_bus_off_is_opened_again_after_the_described_time() {
    let restart = 30_000_000u64;
    let owned: (&str, &[u64]) = (CLIENTS, &[CHANNEL as u64]);
    for time in [0, restart] {
        let (mut machine, bus, mut client) = with_settings(&[owned, (RESTART, &[time])]);
        machine.sleeps = true;
        client.ask(1, ChannelCommand::Open(USUAL));
        machine.ask();
        machine.run(Nanos::from_millis(100));
        bus.suffer(now(), BusMishap::BusOff);
        machine.run(Nanos::from_millis(20));
        client.read();
        assert_eq!(client.last.phase(), Phase::BusOff, "{time}");
        client.write(1, 3);
        machine.ask();
        machine.run(Nanos::from_millis(40));
        client.read();
        let back = if time > 0 { Phase::Open } else { Phase::BusOff };
        assert_eq!(client.last.phase(), back, "{time}");
        let through = if time > 0 { 3 } else { 0 };
        assert_eq!(bus.take_record().len(), through, "{time}");
        assert_eq!(
            (client.last.through, client.last.given_up),
            (through as u64, 3 - through as u64)
        );
        // A client that opens the channel itself does not wait.
        bus.suffer(now(), BusMishap::BusOff);
        machine.run(Nanos::from_millis(5));
        client.ask(2, ChannelCommand::Open(USUAL));
        machine.ask();
        machine.run(Nanos::from_millis(5));
        client.read();
        assert_eq!((client.last.phase(), client.last.token), (Phase::Open, 2), "{time}");
    }
}

/// Room in the pipe and in the interface is all the room there is. A client that counts what it
/// wrote, and waits to be told what became of it, would count frames that went meanwhile, too.
#[test]
fn no_more_frames_are_under_way_than_pipe_and_interface_hold() {
    let (mut machine, _, mut client) = with_client();
    client.ask(1, ChannelCommand::Open(USUAL));
    machine.ask();
    machine.run(Nanos::from_millis(100));
    let room = DEPARTURES as u32 + u32::from(Identity::default().outstanding);
    let mut most = 0;
    for _ in 0..1_000 {
        client.write(1, DEPARTURES as u32);
        machine.ask();
        machine.run(Nanos::from_micros(70));
        let told = std::iter::from_fn(|| client.reports.pop()).map(|report| report.under_way);
        most = told.fold(most, u32::max);
    }
    assert_eq!(most, room);
}
