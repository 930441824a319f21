//! A controller reaches the memory of transfers that are under way, and no other: transfers of any
//! length and place beside poisoned memory, some of them taken back, with devices that are pulled.
//!
//! The model watches each block of each transfer. The poison shows what the model could overlook: a
//! byte beside a transfer, or one that comes when its transfer has ended.

use crate::echo::{self, BULK_IN, BULK_OUT, Echo};
use crate::machine::Machine;
use diapason_abi::Nanos;
use diapason_random::Random;
use diapason_usb::Speed;
use diapason_usb::xhci::{
    DeviceId, Finished, Limits, Notice, Request, TransferId, TransferOutcome,
};
use diapason_xhc::{Config, Misuse};

/// The variable with the number of transfers of a run.
const TRANSFERS: &str = "DIAPASON_TRANSFERS";
/// The transfers of a run without it.
const USUAL: u64 = 100_000;
/// Bytes of a piece of memory. One transfer at a time has a part of it.
const PIECE: usize = 2_048;
const PIECES: usize = 64;
/// The longest transfer: one packet of a fast device.
const LONGEST: usize = 1_024;
const POISON: u8 = 0xa5;
const PORT: u8 = 6;

/// A transfer that is under way.
#[derive(Clone, Debug)]
struct UnderWay {
    transfer: TransferId,
    /// The first byte in its piece.
    from: usize,
    /// The bytes that it sends; none if it receives.
    sends: Vec<u8>,
}

/// The ends of all transfers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Ends {
    moved: u64,
    cancelled: u64,
    gone: u64,
}

struct Trial {
    machine: Machine,
    random: Random,
    device: DeviceId,
    pieces: Vec<Option<UnderWay>>,
    /// The packets that the device has or may have yet.
    echoes: Vec<Vec<u8>>,
    ends: Ends,
    submitted: u64,
    pulled: bool,
}

fn plug(machine: &mut Machine) -> DeviceId {
    machine.attach(PORT, Echo::boxed(Speed::Super));
    machine.run(Nanos::from_millis(400));
    let device = machine.found();
    machine.driver.configure(device, 1, &echo::plans(Speed::Super)).unwrap();
    machine.run(Nanos::from_millis(10));
    assert_eq!(machine.notices.pop(), Some(Notice::Configured(device)));
    device
}

impl Trial {
    fn new(seed: u64) -> Trial {
        let mut machine = Machine::running(Config::default(), Limits::default());
        (0..PIECES).for_each(|piece| machine.fill(piece * PIECE, &[POISON; PIECE]));
        Trial {
            device: plug(&mut machine),
            machine,
            random: Random::new(seed),
            pieces: vec![None; PIECES],
            echoes: Vec::new(),
            ends: Ends::default(),
            submitted: 0,
            pulled: false,
        }
    }

    fn bytes(&self, piece: usize) -> Vec<u8> {
        self.machine.bytes(piece * PIECE, PIECE)
    }

    /// Submits a transfer of any length to any place in a free piece, in one of both directions.
    fn submit(&mut self) {
        let piece = self.random.index(PIECES);
        if self.pieces[piece].is_some() {
            return;
        }
        assert!(self.bytes(piece).iter().all(|byte| *byte == POISON), "piece {piece} is not free");
        let is_out = self.random.one_in(2);
        // A packet of one byte may ask for a stall. An answer is one packet, so memory for it has
        // room for one.
        let length = if is_out { 2 + self.random.index(LONGEST - 1) } else { LONGEST };
        let from = self.random.index(PIECE - length + 1);
        let byte = self.random.bits() as u8;
        let sends = if is_out { vec![byte; length] } else { Vec::new() };
        let at = piece * PIECE + from;
        self.machine.fill(at, &sends);
        let memory = self.machine.buffer(at, length as u32);
        let endpoint = if is_out { BULK_OUT } else { BULK_IN };
        let request =
            Request { cookie: piece as u64, ..Request::new(self.device, endpoint, memory) };
        match self.machine.driver.submit(&request) {
            Ok(transfer) => {
                self.echoes.extend(is_out.then(|| sends.clone()));
                self.pieces[piece] = Some(UnderWay { transfer, from, sends });
                self.submitted += 1;
            }
            Err(_) => self.machine.fill(piece * PIECE, &[POISON; PIECE]),
        }
    }

    /// Takes a transfer back, if there is one.
    fn cancel(&mut self) {
        let first = self.random.index(PIECES);
        let (before, from) = self.pieces.split_at(first);
        if let Some(under_way) = from.iter().chain(before).flatten().next() {
            // One that has ended and is not looked at yet is refused.
            let _ = self.machine.driver.cancel(self.device, under_way.transfer);
        }
    }

    /// Lets time pass, and looks at all transfers that ended, and at the memory around them.
    fn run(&mut self, time: Nanos) {
        self.machine.run(time);
        for finished in std::mem::take(&mut self.machine.finished) {
            self.end(&finished);
        }
        assert_eq!(self.machine.take_misuses(), []);
    }

    fn end(&mut self, finished: &Finished) {
        let piece = finished.cookie as usize;
        let UnderWay { transfer, from, sends } = self.pieces[piece].take().expect("it ended twice");
        assert_eq!(finished.transfer, transfer);
        let moved = matches!(finished.outcome, TransferOutcome::Done | TransferOutcome::Short);
        match finished.outcome {
            TransferOutcome::Done | TransferOutcome::Short => self.ends.moved += 1,
            TransferOutcome::Cancelled => self.ends.cancelled += 1,
            TransferOutcome::Gone => self.ends.gone += 1,
            // No answer: the packet was under way when the device was pulled.
            TransferOutcome::Transaction if self.pulled => self.ends.gone += 1,
            other => panic!("{other:?}"),
        }
        let mut holds = sends;
        if holds.is_empty() && moved {
            // The end of an answer may be told before that of its question.
            let memory = self.bytes(piece);
            holds = memory[from..from + finished.actual as usize].to_vec();
            self.answer(&holds);
        } else if finished.outcome == TransferOutcome::Cancelled && !holds.is_empty() {
            self.answer(&holds);
        }
        assert!(!moved || finished.actual as usize == holds.len());
        let mut expected = vec![POISON; PIECE];
        expected[from..from + holds.len()].copy_from_slice(&holds);
        assert!(self.bytes(piece) == expected, "piece {piece} after {finished:?}");
        self.machine.fill(piece * PIECE, &[POISON; PIECE]);
    }

    /// Takes a packet from those that the device has.
    fn answer(&mut self, packet: &[u8]) {
        let place = self.echoes.iter().position(|echo| echo == packet);
        self.echoes.remove(place.expect("a packet that nobody sent"));
    }

    /// Pulls the device and plugs in another one.
    fn replug(&mut self) {
        self.machine.detach(PORT);
        self.pulled = true;
        self.run(Nanos::from_millis(100));
        assert!(self.pieces.iter().all(Option::is_none), "a transfer of nobody");
        assert_eq!(self.machine.notices, [Notice::Gone(self.device)]);
        self.machine.notices.clear();
        self.echoes.clear();
        self.device = plug(&mut self.machine);
        self.pulled = false;
    }
}

#[test]
fn the_controller_reaches_the_memory_of_transfers_and_no_other() {
    let asked = std::env::var(TRANSFERS).ok().map(|text| text.parse().expect("a number"));
    let asked = asked.unwrap_or(USUAL);
    let mut trial = Trial::new(20);
    while trial.submitted < asked {
        (0..trial.random.below(8)).for_each(|_| trial.submit());
        if trial.random.one_in(4) {
            trial.cancel();
        }
        let time = trial.random.below(20_000);
        trial.run(Nanos(time));
        if trial.random.one_in(3_000) {
            trial.replug();
        }
    }
    trial.replug();
    assert!((0..PIECES).all(|piece| trial.bytes(piece).iter().all(|byte| *byte == POISON)));
    let Ends { moved, cancelled, gone } = trial.ends;
    println!(
        "{moved} transfers moved, {cancelled} were taken back, {gone} ended with their device"
    );
    assert_eq!(moved + cancelled + gone, trial.submitted);
    assert!(moved > asked / 2 && cancelled > asked / 100 && gone > asked / 10_000);
    assert!(trial.machine.counts().lent >= trial.submitted, "not every transfer was watched");
    assert_eq!(trial.machine.denials(), 0);
}

/// A controller that writes behind the driver's back is seen by the model and by the poison.
#[test]
fn a_write_after_the_end_is_seen_in_both_ways() {
    let mut trial = Trial::new(21);
    while trial.ends.moved < 1_000 {
        trial.submit();
        trial.run(Nanos::from_micros(10));
    }
    trial.run(Nanos::from_millis(1));
    trial.machine.write_late();
    assert!(matches!(trial.machine.take_misuses()[..], [(Misuse::GivenBack, _)]));
    let spoiled = |piece| trial.bytes(piece).iter().any(|byte| *byte != POISON);
    assert_eq!((0..PIECES).filter(|piece| spoiled(*piece)).count(), 1);
}
