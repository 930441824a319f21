//! One script: steps of transfers that are asked for together.

use crate::draw::{self, Command, STATUS};
use crate::host::{Host, Seat};
use crate::memory::{Piece, Sums};
use alloc::vec::Vec;
use diapason_random::Random;
use diapason_rt::{Errno, Nanos, log};
use diapason_usb::Setup;
use diapason_usb::context::EndpointKind;
use diapason_usb::descriptor::EndpointDescriptor;
use diapason_usb::xhci::{Finished, Refused, Request, TransferId, TransferOutcome};

/// Steps of a script.
const STEPS: u64 = 24;
/// A transfer that has not ended after this time is taken back: nobody answers. QEMU answers each
/// within some milliseconds.
const PATIENCE: Nanos = Nanos::from_millis(30);
/// The driver recovers an endpoint in this time.
const RECOVERY: Nanos = Nanos::from_millis(20);
/// A device that was told to go has gone after this time.
const GOES: Nanos = Nanos::from_millis(30);
/// A transfer that is taken back comes back in this time.
const RETURN: Nanos = Nanos::from_secs(2);
/// Most bytes of a transfer beside commands.
const BYTES_MAX: u64 = 20_000;

/// A transfer that was asked for.
struct Asked {
    seat: usize,
    endpoint: u8,
    piece: Piece,
    length: usize,
    to_host: bool,
    /// The sums over its memory before.
    sums: Sums,
    asked: Result<TransferId, Refused>,
}

/// A script and its course.
pub(crate) struct Script<'a> {
    pub number: u64,
    pub step: u64,
    pub random: Random,
    pub host: &'a mut Host,
    pub seats: Vec<Seat>,
}

impl Script<'_> {
    /// Does its steps, each with transfers that are settled before the next one.
    ///
    /// # Errors
    /// The controller's message is gone.
    pub fn run(mut self) -> Result<(), Errno> {
        if self.seats.is_empty() {
            return Ok(());
        }
        while self.step < STEPS {
            self.host.memory.clear();
            let seat = self.random.index(self.seats.len());
            match self.random.below(8) {
                0..=2 => self.requests(seat)?,
                3..=5 => self.command(seat)?,
                6 => self.transfers(seat)?,
                _ if self.random.one_in(3) => self.restart(seat)?,
                _ => self.renew(seat)?,
            }
            for notice in self.host.news() {
                log!("{}.{} {notice:?}", self.number, self.step);
            }
            self.step += 1;
        }
        let counters = self.host.driver.counters();
        let wrong = [counters.residuals, counters.unknown, counters.lost, counters.full];
        if wrong != [0; 4] {
            log!("{} residuals, unknown, lost, full: {wrong:?}", self.number);
        }
        Ok(())
    }

    /// Up to three requests to a control endpoint.
    fn requests(&mut self, seat: usize) -> Result<(), Errno> {
        let count = self.random.between(1, 3);
        let asked = (0..count).filter_map(|_| {
            let setup = draw::setup(&mut self.random, &self.seats[seat]);
            self.request(seat, setup)
        });
        let asked = asked.collect();
        self.settle("request", asked)
    }

    fn request(&mut self, seat: usize, setup: Setup) -> Option<Asked> {
        let length = usize::from(setup.length);
        let mut asked = self.prepare(seat, 0, length, setup.is_in())?;
        let buffer = self.host.memory.buffer(asked.piece);
        asked.asked = self.host.driver.control(self.seats[seat].device, setup, buffer, 0);
        Some(asked)
    }

    /// Returns a transfer that is still to be asked for.
    fn prepare(
        &mut self,
        seat: usize,
        endpoint: u8,
        length: usize,
        to_host: bool,
    ) -> Option<Asked> {
        let piece = self.host.memory.piece(length, &mut self.random)?;
        let (sums, asked) = (self.host.memory.sums(piece), Err(Refused::Busy));
        Some(Asked { seat, endpoint, piece, length, to_host, sums, asked })
    }

    /// Asks for a transfer that begins with these bytes.
    fn transfer(
        &mut self,
        seat: usize,
        endpoint: EndpointDescriptor,
        length: usize,
        bytes: &[u8],
    ) -> Option<Asked> {
        let mut asked = self.prepare(seat, endpoint.address, length, endpoint.is_in())?;
        if !bytes.is_empty() {
            self.host.memory.put(asked.piece, bytes);
            asked.sums = self.host.memory.sums(asked.piece);
        }
        let buffer = self.host.memory.buffer(asked.piece);
        let request = Request::new(self.seats[seat].device, endpoint.address, buffer);
        asked.asked = self.host.driver.submit(&request);
        Some(asked)
    }

    fn endpoint(&self, seat: usize, kind: EndpointKind) -> Option<EndpointDescriptor> {
        self.seats[seat].endpoints.iter().copied().find(|endpoint| endpoint.kind() == kind)
    }

    /// A disk that lost its way forgets what was under way, and its endpoints work again.
    fn reset(&mut self, seat: usize) -> Result<(), Errno> {
        let endpoints = self.seats[seat].endpoints.iter();
        let halts = endpoints.map(|endpoint| Setup::clear_halt(endpoint.address));
        let setups: Vec<Setup> = [draw::RESET].into_iter().chain(halts).collect();
        let asked = setups.into_iter().filter_map(|setup| self.request(seat, setup)).collect();
        self.settle("reset", asked)
    }

    /// A command to a disk, its data in up to three transfers, and its status. Of a device that is
    /// none, transfers.
    fn command(&mut self, seat: usize) -> Result<(), Errno> {
        let ends = [EndpointKind::BulkOut, EndpointKind::BulkIn];
        let [Some(out), Some(back)] = ends.map(|kind| self.endpoint(seat, kind)) else {
            return self.transfers(seat);
        };
        if !self.random.one_in(8) {
            self.reset(seat)?;
        }
        let Command { block, data, to_host } = draw::command(&mut self.random);
        let mut asked: Vec<Asked> = Vec::new();
        asked.extend(self.transfer(seat, out, block.len(), &block));
        let end = if to_host { back } else { out };
        let mut left = data;
        while left > 0 {
            let packets = left.div_ceil(end.packet.into());
            let some = usize::from(end.packet) * (1 + self.random.index(packets));
            let odd = self.random.one_in(12);
            let length = if odd { 1 + self.random.index(2 * left) } else { some.min(left) };
            let length = if asked.len() == 3 { left } else { length };
            asked.extend(self.transfer(seat, end, length, &[]));
            left = left.saturating_sub(length);
        }
        let room = if self.random.one_in(10) { self.random.index(600) } else { STATUS };
        asked.extend(self.transfer(seat, back, room, &[]));
        self.settle("command", asked)
    }

    /// Up to four transfers of any length at any endpoint.
    fn transfers(&mut self, seat: usize) -> Result<(), Errno> {
        let mut asked = Vec::new();
        let endpoints = self.seats[seat].endpoints.clone();
        for _ in 0..self.random.between(1, 4) {
            if endpoints.is_empty() {
                break;
            }
            let endpoint = self.random.pick(&endpoints);
            let most = if self.random.one_in(3) { BYTES_MAX } else { 100 };
            let length = match self.random.below(4) {
                0 => usize::from(endpoint.packet) * self.random.index(5),
                _ => self.random.below(most) as usize,
            };
            asked.extend(self.transfer(seat, endpoint, length, &[]));
        }
        self.settle("transfer", asked)
    }

    /// An endpoint begins anew.
    fn renew(&mut self, seat: usize) -> Result<(), Errno> {
        let own = &self.seats[seat];
        if own.endpoints.is_empty() {
            return self.requests(seat);
        }
        let endpoint = self.random.pick(&own.endpoints).address;
        let told = self.host.driver.renew(own.device, endpoint);
        let changed = told.is_ok() && self.host.changed(own)?;
        log!("{}.{} renew {} {endpoint:02x}: {changed}", self.number, self.step, own.connector);
        Ok(())
    }

    /// A device is told to leave its port and to come back, while transfers that nobody answers are
    /// under way. It is found and configured again. Most devices do not know the request.
    fn restart(&mut self, seat: usize) -> Result<(), Errno> {
        let back = self.endpoint(seat, EndpointKind::BulkIn);
        let mut asked = Vec::new();
        for _ in 0..self.random.below(4) {
            let length = self.random.index(3000);
            asked.extend(back.and_then(|back| self.transfer(seat, back, length, &[])));
        }
        let setup = Setup { value: self.random.between(1, 400) as u16, ..draw::RESTART };
        let request: Vec<Asked> = self.request(seat, setup).into_iter().collect();
        let own = &self.seats[seat];
        if !self.host.gone(own, GOES)? {
            asked.extend(request);
            return self.settle("restart", asked);
        }
        let connector = own.connector;
        self.settle("last request", request)?;
        self.settle("pulled", asked)?;
        let found = self.host.found(self.number, 1)?;
        self.seats.retain(|seat| seat.connector != connector);
        self.seats.extend(found);
        self.seats.sort_by_key(|seat| seat.connector);
        Ok(())
    }

    /// Waits until all transfers have ended, takes back those that nobody answers, and says what
    /// came of each.
    fn settle(&mut self, what: &str, asked: Vec<Asked>) -> Result<(), Errno> {
        let ids: Vec<TransferId> = asked.iter().filter_map(|it| it.asked.ok()).collect();
        let over = |host: &mut Host| {
            ids.iter().all(|id| host.finished.iter().any(|done| done.transfer == *id))
        };
        if !self.host.until(PATIENCE, over)? {
            for one in &asked {
                if let Ok(id) = one.asked {
                    // One that has ended meanwhile is not found.
                    let _ = self.host.driver.cancel(self.seats[one.seat].device, id);
                }
            }
            self.host.until(RETURN, over)?;
        }
        let all = core::mem::take(&mut self.host.finished);
        let own = |done: &Finished| ids.contains(&done.transfer);
        let (finished, others): (Vec<_>, Vec<_>) = all.into_iter().partition(own);
        self.host.finished = others;
        let fine = |done: &Finished| {
            matches!(done.outcome, TransferOutcome::Done | TransferOutcome::Short)
        };
        if !finished.iter().all(fine) {
            self.host.until(RECOVERY, |_| false)?;
        }
        for one in &asked {
            let done = finished.iter().find(|done| Ok(done.transfer) == one.asked);
            self.tell(what, one, done);
        }
        Ok(())
    }

    fn tell(&self, what: &str, asked: &Asked, done: Option<&Finished>) {
        let Asked { seat, endpoint, length, to_host, sums, piece, .. } = *asked;
        let (number, step, connector) = (self.number, self.step, self.seats[seat].connector);
        let now = self.host.memory.sums(piece);
        let own = now.own;
        let damage = match (now.around == sums.around, to_host || own == sums.own) {
            (false, _) => ", AROUND IT CHANGED",
            (_, false) => ", CHANGED",
            _ => "",
        };
        let said = format_args!("{number}.{step} {what} {connector} {endpoint:02x} {length}");
        let Some(Finished { outcome, actual, .. }) = done else {
            return log!("{said}: not done, {:?}{damage}", asked.asked);
        };
        match (outcome, to_host) {
            // The controller does not acknowledge a packet that is too long. Whether it has written
            // the beginning of it, and counts that, is not laid down.
            (TransferOutcome::Babble, _) => log!("{said}: {outcome:?}{damage}"),
            // QEMU counts what it has handed on to a device's server, though the device took none.
            (TransferOutcome::Cancelled, false) => log!("{said}: {outcome:?}{damage}"),
            _ => log!("{said}: {outcome:?} {actual} {own:08x}{damage}"),
        }
    }
}
