//! Channels that tuned pipes write to: lent to a place, and given back at any step.

use crate::ground::{attach, detach, now};
use crate::machine::Machine;
use diapason_abi::pipe::{ENVELOPES, Envelope};
use diapason_abi::{Errno, Nanos};
use diapason_can::exchange::{ChannelReport, Departure, Phase};
use diapason_can::frame::standard;
use diapason_can::{BitRate, CanFrame};
use diapason_contract::can::{BIT_RATE, DEPARTURES, REPORTS};
use diapason_contract::tuned::names;
use diapason_devices::can::CanBus;
use diapason_devices::kvaser::{Hydra, Identity};
use diapason_pipe::{Reader, Writer};
use diapason_usbd::{PlaceOrder, Platform};

const PORT: u8 = 1;
const CHANNEL: u8 = 1;
/// More than the interface takes at a time.
const FRAMES: u32 = 120;
const ENVELOPE: Envelope = Envelope {
    channels: 0,
    to: 1 << CHANNEL,
    rate: 1_000,
    burst: 8,
    budget: Nanos::from_millis(1),
    period: Nanos::from_millis(5),
};

/// The program's ends of a place.
struct Place {
    number: usize,
    out: Writer<'static, Departure, DEPARTURES>,
    reports: Reader<'static, ChannelReport, REPORTS>,
    last: ChannelReport,
}

impl Place {
    fn new(machine: &Machine, number: usize) -> Result<Place, Errno> {
        let names = names(number).ok_or(Errno::Absent)?;
        let (out, reports) =
            (machine.ground.writer(names.out)?, machine.ground.reader(names.reports)?);
        Ok(Place { number, out, reports, last: ChannelReport::default() })
    }

    /// Writes frames with identifiers of this place.
    fn write(&mut self, count: u32) {
        for at in 0..count {
            self.out.push(&Departure::at(&frame(self.number, at), now())).expect("there is room");
        }
    }

    /// Returns where the last report has the channel.
    fn phase(&mut self) -> Phase {
        self.last = std::iter::from_fn(|| self.reports.pop()).last().unwrap_or(self.last);
        self.last.phase()
    }
}

fn frame(place: usize, at: u32) -> CanFrame {
    let id = standard(0x100 * (place as u32 + 1) + at).expect("it is one");
    CanFrame::data(id, &[]).expect("it is one")
}

/// Returns a CAN interface whose channel 1 two places may write to, and the bus of that channel.
fn with_places() -> (Machine, CanBus, [Place; 2]) {
    let mut machine = Machine::with(&[(ENVELOPES, &[ENVELOPE.words(); 2].concat())]);
    let places = [0, 1].map(|number| Place::new(&machine, number).expect("its ends are there"));
    let bus = CanBus::quiet(BitRate::new(BIT_RATE).expect("it is one"));
    bus.record(1_000);
    attach(PORT, Box::new(Hydra::new(Identity::default(), &[None, Some(bus.clone())])));
    machine.run(Nanos::from_millis(500));
    (machine, bus, places)
}

fn lend(machine: &mut Machine, place: usize) {
    machine.order(&PlaceOrder::Write { place, channel: CHANNEL });
}

/// Lets time pass until a place hears that its channel is open.
fn wait(machine: &mut Machine, place: &mut Place) {
    let opens = (0..300).any(|_| {
        machine.run(Nanos::from_millis(1));
        place.phase() == Phase::Open
    });
    assert!(opens, "the channel stays {:?}", place.phase());
}

/// Returns the frames that were on the bus since the last call.
fn sent(bus: &CanBus) -> Vec<CanFrame> {
    bus.take_record().iter().filter_map(|sent| sent.frame.classic()).collect()
}

#[test]
fn a_channel_is_lent_to_one_place_at_a_time() {
    let (mut machine, bus, [mut first, mut second]) = with_places();
    lend(&mut machine, 0);
    lend(&mut machine, 1);
    wait(&mut machine, &mut first);
    assert_eq!(second.phase(), Phase::Absent);
    first.write(3);
    second.write(3);
    machine.ask();
    machine.run(Nanos::from_millis(100));
    assert_eq!(sent(&bus), [0, 1, 2].map(|at| frame(0, at)));
    assert_eq!((first.phase(), first.last.through), (Phase::Open, 3));
}

/// Whenever a place gives its channel back, each of its frames was on the bus or is given up, and
/// the next place sends its own frames only.
#[test]
fn a_channel_given_back_at_any_step_is_the_next_ones() {
    let mut fates = (0, 0);
    for step in 0..40 {
        let (mut machine, bus, [mut first, mut second]) = with_places();
        lend(&mut machine, 0);
        wait(&mut machine, &mut first);
        first.write(FRAMES);
        machine.ask();
        machine.run(Nanos::from_micros(step * 250));
        machine.order(&PlaceOrder::Leave { place: 0 });
        assert_eq!(first.phase(), Phase::Closed, "after {step} steps");
        let ChannelReport { through, given_up, .. } = first.last;
        assert_eq!(through + given_up, FRAMES.into(), "after {step} steps");
        fates = (fates.0 + through, fates.1 + given_up);
        lend(&mut machine, 1);
        wait(&mut machine, &mut second);
        // The device may have sent some whose acknowledgement came too late.
        let before = sent(&bus);
        assert!(before.len() as u64 >= through, "after {step} steps");
        assert!(before.iter().copied().eq((0..before.len() as u32).map(|at| frame(0, at))));
        second.write(FRAMES);
        machine.ask();
        machine.run(Nanos::from_millis(100));
        assert_eq!((second.phase(), second.last.through), (Phase::Open, FRAMES.into()));
        assert!(
            sent(&bus).into_iter().eq((0..FRAMES).map(|at| frame(1, at))),
            "after {step} steps"
        );
        assert_eq!(first.phase(), Phase::Closed, "a place hears of a channel that is another's");
    }
    assert!(fates.0 > 1_000 && fates.1 > 1_000, "the steps miss a fate: {fates:?}");
}

/// An interface that goes takes the frames of its channel with it. The next one's channel is lent
/// to the same place.
#[test]
fn a_lent_channel_is_there_again_with_the_next_interface() {
    let (mut machine, _, [mut first, _]) = with_places();
    lend(&mut machine, 0);
    wait(&mut machine, &mut first);
    first.write(FRAMES);
    machine.ask();
    detach(PORT);
    machine.run(Nanos::from_millis(200));
    assert_eq!(first.phase(), Phase::Absent);
    assert_eq!(first.last.through + first.last.given_up, FRAMES.into());
    let bus = CanBus::quiet(BitRate::new(BIT_RATE).expect("it is one"));
    attach(PORT, Box::new(Hydra::new(Identity::default(), &[None, Some(bus)])));
    machine.run(Nanos::from_millis(500));
    wait(&mut machine, &mut first);
    let before = first.last.through;
    first.write(2);
    machine.ask();
    machine.run(Nanos::from_millis(50));
    first.phase();
    assert_eq!(first.last.through, before + 2);
}
