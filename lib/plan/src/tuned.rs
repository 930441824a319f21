//! Pipes that programs may open while the system runs: what of them is in the bills of all others,
//! and what the server that decides about them is told.
//!
//! The server computes bills as the plan does, and must not compute them with other costs. So it
//! is told those of the plan, in its settings.

use crate::missing::Missing;
use crate::pipes::{Plant, interrupts};
use diapason_abi::Nanos;
use diapason_abi::pipe::{DriverCosts, Envelope, OutputCosts};
use diapason_contract::can::EACH;
use diapason_contract::threads::RECEIVE;
use diapason_pipe::size::Bucket;
use diapason_system::{Diagnostics, Place, System, Tpipe};
use diapason_usb::class::kvaser::{GUARANTEED, MODERATION};

/// A slot of a bus of high speed.
const SLOT: Nanos = Nanos::from_micros(125);

/// The costs for the server of each place, in the order of the places, or the reason why nothing
/// can be promised there.
pub type Tuned = Vec<Result<(DriverCosts, Option<OutputCosts>), Missing>>;

pub(crate) fn tuned(plant: &Plant<'_>) -> Tuned {
    let costs = |tpipe: &Tpipe| {
        plant.locks_nothing(tpipe.process)?;
        plant.mutexes.hidden(tpipe.process.into()).map_or(Ok(()), Err)?;
        plant.locks_nothing(tpipe.server)?;
        Ok((plant.costs(tpipe)?, plant.output_costs(tpipe)?))
    };
    plant.system.tpipes.iter().map(costs).collect()
}

impl Plant<'_> {
    /// Returns the traffic of a device beside the pipes of the description: of each channel without
    /// one the most that any place may ask for, or its acknowledgements if it is written. The
    /// traffic of a channel counts once.
    pub(crate) fn tuned_traffic(&self, usb: usize) -> Result<Vec<Bucket>, Missing> {
        let described = |channel: u8| {
            let mut pipes = self.system.pipes.iter();
            pipes.any(|pipe| pipe.usb == usb && pipe.channel == channel)
        };
        let channels = (0..EACH as u8).filter(|channel| !described(*channel));
        let mut all = self.tuned_acknowledgements(usb)?;
        all.extend(channels.filter_map(|channel| self.most(usb, channel)));
        Ok(all)
    }

    fn most(&self, usb: usize, channel: u8) -> Option<Bucket> {
        let places = self.system.tpipes.iter().filter(|tpipe| tpipe.usb == usb);
        let envelopes = places.map(|tpipe| tpipe.envelope).filter(|envelope| envelope.has(channel));
        let each = envelopes.map(|Envelope { rate, burst, .. }| (rate, burst));
        let (rate, burst) = each.reduce(|a, b| (a.0.max(b.0), a.1.max(b.1)))?;
        Some(Bucket::per_second(rate).with_burst(burst))
    }

    /// Returns the time of a transfer that takes `longest` beside all devices of the description.
    /// Where programs may open pipes, the server has it guaranteed, in whole slots of the bus.
    pub(crate) fn guaranteed(&self, usb: usize, longest: Nanos) -> Nanos {
        match self.system.tpipes.iter().any(|tpipe| tpipe.usb == usb) {
            true => Nanos(longest.0.next_multiple_of(SLOT.0)).max(GUARANTEED),
            false => longest,
        }
    }

    fn costs(&self, tpipe: &Tpipe) -> Result<DriverCosts, Missing> {
        let bus = self.bulk(tpipe.usb, None)?;
        let (share, period, gap) = self.io_of(tpipe, RECEIVE.vcpu)?;
        let interrupts = interrupts(gap, MODERATION, self.core)?;
        Ok(DriverCosts {
            transfer: bus.worst,
            transfer_least: bus.least,
            gap,
            top_half: interrupts.top_half,
            bottom_half: self.attendance(tpipe.server, tpipe.usb)?,
            share,
            period,
            wake: self.calls.of_reader(),
        })
    }

    /// Share and period of what a thread of the server runs on, and how often it is woken at most.
    pub(crate) fn io_of(&self, tpipe: &Tpipe, name: &str) -> Result<(u32, Nanos, Nanos), Missing> {
        let is = |number: &u16| {
            let vcpu = &self.system.vcpus[usize::from(*number)];
            vcpu.name == name && vcpu.allowed >> tpipe.server & 1 == 1
        };
        let place = self.core.ios.iter().position(is);
        let io = place.map(|place| &self.core.system.ios[place]);
        let mains = &self.core.system.mains;
        let served = io.map(|io| io.serves.iter().map(|main| mains[*main]));
        let most_urgent = served.and_then(|mains| mains.min_by_key(|it| (it.queue, it.period)));
        let server = self.system.process_name(tpipe.server).unwrap_or_default();
        let (io, main) = io.zip(most_urgent).ok_or_else(|| {
            (
                format!("`{server}` has no I/O VCPU `{name}`"),
                format!("declare one that serves a Main VCPU and add it to `uses` of `{server}`"),
            )
        })?;
        Ok((io.share.ppm(), main.period.min(io.cap), io.least_gap()))
    }
}

/// Returns the places where nothing can be promised, without those that lack only what a pipe or an
/// earlier place lacks, too.
pub(crate) fn refusals_of_places(
    tuned: &Tuned,
    lacking: &[Vec<Missing>],
    system: &System,
) -> Vec<Diagnostics> {
    let mut said: Vec<&Missing> = lacking.iter().flatten().collect();
    let mut found = Vec::new();
    for (number, (tpipe, tuned)) in (0u16..).zip(system.tpipes.iter().zip(tuned)) {
        let Err(missing) = tuned else { continue };
        if !said.contains(&missing) {
            said.push(missing);
            let (what, remedy) = missing;
            let title = format!("`{}` could have no bound: {what}", tpipe.name);
            found.push(system.problem(Place::Tpipe(number), [&title, "", "", remedy]));
        }
    }
    found
}
