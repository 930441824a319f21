//! The delays by a bottom half whose work for each wake-up is declared.
//!
//! If no wake-up waits for a grant, then all that one brings is done within a time that does not
//! depend on what else is under way. And the threads behind the bottom half are delayed by its
//! work, once for each wake-up, and not by whole grants of its VCPU. The theorem is in
//! `diapason_analysis`, `server/waking.rs`. Distance and work of the wake-ups are those that the
//! bill counts anyway, and a running system checks them (alarms `wake-ups` and `pipe-late`).
//! Admission, and the bills of other devices, count the share.

use crate::missing::Missing;
use crate::pictures;
use crate::pipes::{Inbound, Plant};
use crate::supplies::{own_supply, supply_among};
use diapason_abi::Nanos;
use diapason_analysis::server::{BottomHalf, Supply};
use diapason_pipe::bill::{Interrupts, Service, Taking, Traffic, User, What, input};
use diapason_pipe::size::{Bucket, arrivals};
use diapason_system::PipeSpec;

/// Steps to a wake-up that is heard of within the time that was counted for it.
const LOOKS_MAX: usize = 16;

/// Returns a user that has nothing to do.
pub(crate) fn nobody(service: &dyn Service) -> User<'_> {
    User { message: Nanos::ZERO, wake: Nanos::ZERO, taking: Taking::Each, service }
}

impl Plant<'_> {
    /// Returns the way to the server of the messages of a pipe, with what follows from the work of
    /// the bottom half.
    pub(crate) fn inbound(&self, index: usize) -> Result<Inbound, Missing> {
        self.inbound_of(index, None)
    }

    /// As [`Plant::inbound`], of messages that come as `own` says and not as their contract does.
    pub(crate) fn inbound_of(&self, index: usize, own: Option<Bucket>) -> Result<Inbound, Missing> {
        let mut inbound = Inbound { own, ..self.inbound_by_share(index)? };
        let Inbound { place, work, .. } = inbound;
        let found = if work.message == Nanos::ZERO { 0 } else { self.found(index, &inbound)? };
        let each = Nanos(work.message.0.saturating_mul(found));
        inbound.half = self.knowing(place, inbound.half, work.activation + each);
        let pipe = &self.system.pipes[index];
        if self.driver(pipe).home.pace > Nanos::ZERO {
            self.rests(index, &mut inbound)?;
        }
        Ok(inbound)
    }

    /// Adds the first of two wake-ups to the wait for the second: a bottom half with a pace hears
    /// of an interrupt, rests for the pace, and then looks.
    fn rests(&self, index: usize, inbound: &mut Inbound) -> Result<(), Missing> {
        let Interrupts { moderation, top_half, .. } = inbound.interrupts;
        let mut hears = Nanos::ZERO;
        for _ in 0..LOOKS_MAX {
            inbound.interrupts.moderation = moderation + top_half + hears;
            let stages = inbound.stages(nobody(&inbound.half));
            let at = (index, inbound.own);
            let bill = self.with_traffic(at, |traffic: &Traffic<'_>| input(&stages, traffic))?;
            // A bill that there is none of is refused by its own words.
            let longest = bill.map_or(hears, |bill| bill.value(What::BottomHalf));
            if longest <= hears {
                return Ok(());
            }
            hears = longest;
        }
        inbound.interrupts.moderation = Nanos::FOREVER;
        Ok(())
    }

    /// Returns the most messages that one wake-up of a bottom half finds. Each has come since the
    /// longest time before, in which it is handled for certain.
    fn found(&self, index: usize, inbound: &Inbound) -> Result<u64, Missing> {
        let stages = inbound.stages(nobody(&inbound.half));
        self.with_traffic((index, inbound.own), |traffic: &Traffic<'_>| {
            let Ok(bill) = input(&stages, traffic) else { return u64::MAX };
            let channels = traffic.channels.iter().chain(traffic.beside);
            channels.fold(0, |sum, channel| sum.saturating_add(arrivals(channel, bill.total)))
        })
    }

    /// Returns the bottom half at `place` among the I/O VCPUs, which does at most `work` each time
    /// it is woken, with what follows from that if this is all its VCPU runs.
    fn knowing(&self, place: usize, half: BottomHalf, work: Nanos) -> BottomHalf {
        let vcpu = self.core.ios.get(place).map(|number| &self.system.vcpus[usize::from(*number)]);
        let is_alone = vcpu.is_some_and(|vcpu| vcpu.allowed.count_ones() == 1);
        let known = is_alone.then(|| self.core.system.knowing(place, work)).flatten();
        let Some(known) = known else { return half };
        // Where deadlines decide, its own work delays it less, too. That is found once more.
        let known = known.knowing(place, work).unwrap_or(known);
        half.knowing(known, place)
    }

    /// Returns the supply of a pipe's reader, with what follows if its bottom half finds grants.
    pub(crate) fn joined(&self, index: usize, inbound: &Inbound) -> Result<Supply, Missing> {
        let pipe = &self.system.pipes[index];
        let (home, process) = self.end(pipe)?;
        if pipe.process().is_none() {
            // No bottom half of another core delays it.
            return own_supply(process, home.system, home.core);
        }
        let supply = self.supply_behind(inbound, process)?;
        let Inbound { place, ref half, .. } = *inbound;
        let vcpu = self.system.processes[usize::from(process)].vcpu;
        let reader = self.core.mains.iter().position(|number| Some(*number) == vcpu);
        let (Some(known), Some(reader), true) = (half.known(), reader, self.adds_up(pipe, process))
        else {
            return Ok(supply);
        };
        let stages = inbound.stages(nobody(half));
        let at = (index, inbound.own);
        let bill = self.with_traffic(at, |traffic: &Traffic<'_>| input(&stages, traffic))?;
        // A bill that there is none of is refused by its own words.
        let Ok(bill) = bill else { return Ok(supply) };
        Ok(supply.behind(known, reader, place, bill.value(What::BottomHalf)))
    }

    /// Returns whether the items of a pipe's bill matter only in their sum. Of other pipes the time
    /// of the reader alone decides something else, too: how often it helps with a mutex, how long
    /// places are away, or when it asks a disk. And a bottom half that rests is not pending.
    fn adds_up(&self, pipe: &PipeSpec, process: u16) -> bool {
        let rests = self.driver(pipe).home.pace > Nanos::ZERO;
        let others = pictures::is_of(pipe) || pipe.has_blocks() || pipe.has_frames();
        !rests && !others && self.mutexes.shared_by(process).is_none()
    }

    /// Returns the supply of a process whose messages come through this bottom half.
    pub(crate) fn supply_behind(&self, inbound: &Inbound, process: u16) -> Result<Supply, Missing> {
        let among = inbound.half.known().unwrap_or(&self.core.system);
        supply_among(among, (process, 1), self.system, self.core)
    }
}
