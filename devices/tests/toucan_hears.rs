//! The buffers of a TouCAN that hear frames of other nodes: each frame is read or counted as lost.

use crate::support::desk::Desk;
use diapason_abi::Nanos;
use diapason_can::frame::{extended, standard};
use diapason_can::mts::code_filter;
use diapason_can::toucan::{BufferedFrame, BufferedOutbox, FrameSource, ToucanDriver, ended};
use diapason_can::wire::length;
use diapason_can::{BitRate, CanFrame, Filter, Id};
use diapason_devices::can::{CanBus, PeriodicMessage};
use diapason_random::Random;
use std::collections::BTreeMap;

const MEGABIT: u32 = 1_000_000;
/// Time for which all units send, and the time after which they are through.
const SENDING: u64 = 50_000_000;

fn rate() -> BitRate {
    BitRate::new(MEGABIT).unwrap()
}

/// A program that sends nothing.
struct Silent;

impl FrameSource for Silent {
    fn frame(&self, _: u8, _: Id) -> Option<CanFrame> {
        None
    }
}

/// A driver that only hears.
struct Ear<'a> {
    desk: &'a Desk,
    module: ToucanDriver<&'a Desk>,
    outbox: BufferedOutbox,
    buffers: Vec<usize>,
    heard: BTreeMap<u32, u64>,
}

impl<'a> Ear<'a> {
    fn new(desk: &'a Desk, filters: &[Filter], ignores_regions: bool) -> Ear<'a> {
        let mut module = ToucanDriver::start(desk, rate()).unwrap();
        if ignores_regions {
            module.ignore_regions();
        }
        let mut outbox = BufferedOutbox::new(rate(), 2, 3, 2).unwrap();
        let listen = |filter: &Filter| outbox.listen(&module, *filter).unwrap();
        let buffers = filters.iter().map(listen).collect();
        Ear { desk, module, outbox, buffers, heard: BTreeMap::new() }
    }

    /// Reads all that came. Each frame ended before now, and not before its stamp says.
    fn read(&mut self) {
        self.outbox.attend(&self.module, &Silent, self.desk.time());
        for buffer in self.buffers.clone() {
            let Some(BufferedFrame { frame, begun }) = self.outbox.heard(&self.module, buffer)
            else {
                continue;
            };
            let now = self.desk.time();
            let end = ended(rate(), (begun, self.module.timer()), length(&frame), now);
            assert!(end <= self.desk.time() + Nanos(2_000), "{end} after {now}");
            *self.heard.entry(frame.raw_id()).or_default() += 1;
        }
    }

    fn missed(&self) -> u64 {
        self.buffers.iter().map(|buffer| self.outbox.missed(*buffer)).sum()
    }
}

/// Returns a bus with units whose messages have these identifiers and periods.
fn bus(messages: &[(Id, u64)]) -> CanBus {
    let bus = CanBus::new(rate());
    bus.record(usize::MAX);
    for (place, (id, period)) in (0u64..).zip(messages) {
        let (period, offset) = (Nanos(*period), Nanos(1_000_000 + 37_000 * place));
        bus.add_unit(vec![PeriodicMessage { id: *id, length: 8, period, offset }]);
    }
    bus
}

fn sent(bus: &CanBus) -> BTreeMap<u32, u64> {
    let mut all = BTreeMap::new();
    for sent in bus.take_record() {
        *all.entry(sent.frame.classic().unwrap().raw_id()).or_default() += 1;
    }
    all
}

/// A driver that reads before a message comes again loses none. One that does not has counted what
/// it lost.
#[test]
fn a_frame_is_read_or_counted_as_lost() {
    let mut random = Random::new(31);
    let (mut prompt, mut late) = (0, 0);
    for _ in 0..300 {
        let count = 1 + random.below(8);
        let messages: Vec<(Id, u64)> = (0..count)
            .map(|place| {
                let raw = 0x100 + 7 * place as u32;
                let id = if random.below(3) == 0 { extended(raw << 16) } else { standard(raw) };
                (id.unwrap(), 2_000_000 + random.below(3_000_000))
            })
            .collect();
        let bus = bus(&messages);
        let desk = Desk::new(&bus, 20);
        let filters: Vec<Filter> = messages.iter().map(|(id, _)| Filter::of(*id)).collect();
        let mut ear = Ear::new(&desk, &filters, false);
        let pause = if random.below(2) == 0 { 600_000 } else { 4_000_000 };
        while desk.now.get() < SENDING {
            if desk.wait(SENDING) {
                desk.pass(random.below(pause));
            }
            ear.read();
        }
        // All that came before the last look is read.
        let (sent, missed) = (sent(&bus), ear.missed());
        for (id, sent) in &sent {
            let heard = ear.heard.get(id).copied().unwrap_or(0);
            assert!(heard <= *sent, "{id:x}: {heard} of {sent}");
        }
        let sum = |all: &BTreeMap<u32, u64>| all.values().sum::<u64>();
        let lost = sum(&sent) - sum(&ear.heard);
        assert!(missed <= lost && (missed > 0) == (lost > 0), "{missed} counted, {lost} lost");
        if pause < 1_000_000 {
            assert_eq!(lost, 0);
            prompt += sum(&sent);
        }
        late += lost;
    }
    assert!(prompt > 5_000 && late > 500, "{prompt} {late}");
}

/// Under MTS a buffer hears a message by its code. A message of another class under the same mask
/// is dropped after it was read.
#[test]
fn a_code_is_heard_whatever_the_deadline() {
    let id = |raw: u32| standard(raw).unwrap();
    let high = |region: u32, code: u32| id(region << 5 | code);
    let messages = [
        (high(1, 3), 3_000_000),
        (high(9, 3), 5_000_000),
        (high(9, 4), 3_000_000),
        (id(0x403), 4_000_000),
        (id(0x423), 9_000_000),
    ];
    let bus = bus(&messages);
    let desk = Desk::new(&bus, 20);
    let code = code_filter(3);
    let mut ear = Ear::new(&desk, &[code, Filter::of(id(0x403))], true);
    while desk.now.get() < SENDING {
        desk.wait(SENDING);
        ear.read();
    }
    let sent = sent(&bus);
    let wanted = [high(1, 3), high(9, 3), id(0x403)].map(|id| match id {
        Id::Standard(id) => u32::from(id.as_raw()),
        Id::Extended(id) => id.as_raw(),
    });
    let wanted: BTreeMap<u32, u64> = wanted.map(|raw| (raw, sent[&raw])).into();
    assert_eq!((ear.heard.clone(), ear.missed()), (wanted, 0));
    assert!(ear.heard[&0x403] > 5);
}

#[test]
fn a_module_that_lost_its_setup_hears_again() {
    let message = standard(0x100).unwrap();
    let bus = bus(&[(message, 1_000_000)]);
    let desk = Desk::new(&bus, 20);
    let mut ear = Ear::new(&desk, &[Filter::of(message)], true);
    let listen_until = |ear: &mut Ear<'_>, end: u64| {
        while desk.now.get() < end {
            // Nothing interrupts without a set-up.
            desk.wait(end.min(desk.now.get() + 2_000_000));
            ear.read();
        }
        ear.heard.values().sum::<u64>()
    };
    let before = listen_until(&mut ear, 10_500_000);
    desk.model.borrow_mut().reset(desk.time());
    let after = listen_until(&mut ear, 20_500_000);
    assert!(before == 10 && after >= 17, "{before} {after}");
}

#[test]
fn a_module_has_so_many_buffers() {
    let bus = bus(&[]);
    let desk = Desk::new(&bus, 0);
    let module = ToucanDriver::start(&desk, rate()).unwrap();
    let mut outbox = BufferedOutbox::new(rate(), 9, 3, 2).unwrap();
    assert_eq!(outbox.listen(&module, Filter::only(false, 1)), Ok(13));
    assert_eq!(outbox.listen(&module, Filter::only(true, 2)), Ok(12));
    assert!(outbox.listen(&module, Filter::only(true, 3)).is_err());
    let mut outbox = BufferedOutbox::new(rate(), 0, 3, 2).unwrap();
    assert!(outbox.listen(&module, Filter::only(false, 0x800)).is_err());
}
