//! Pipes that programs may open while the system runs: what of them is in the bills of all others,
//! and what the server that decides about them is told.
//!
//! The server computes bills as the plan does, and must not compute them with other costs. So it
//! is told those of the plan, in its settings.

use super::calls::Calls;
use super::core::Core;
use super::pipes::{Missing, Plant, interrupts};
use super::verdict::Plan;
use crate::duration::human;
use crate::table::{Align, Table};
use diapason_abi::Nanos;
use diapason_abi::pipe::{CHANNELS, COSTS, DriverCosts, Envelope, OUTPUT_COSTS, OutputCosts};
use diapason_costs::{KERNEL, KernelTimes};
use diapason_pipe::size::Bucket;
use diapason_system::{Diagnostics, Place, Setting, System, Tpipe};
use diapason_usb::class::kvaser::GUARANTEED;
use serde_json::{Value, json};

/// The I/O VCPU of the bottom half; the server opens it by this name.
const RECEIVER: &str = "usb-receive";
/// A slot of a bus of high speed.
const SLOT: Nanos = Nanos::from_micros(125);

/// What the server of each place is told, in the order of the places, or why nothing can be
/// promised there.
pub type Tuned = Vec<Result<(DriverCosts, Option<OutputCosts>), Missing>>;

pub(super) fn tuned(system: &System, core: &Core, costs: &KernelTimes) -> Tuned {
    let plant = Plant { system, core, calls: Calls::new(costs) };
    let costs = |tpipe| Ok((plant.driver(tpipe)?, plant.output_costs(tpipe)?));
    system.tpipes.iter().map(costs).collect()
}

/// The system with what its servers are told: the costs that its plan computes with.
#[must_use]
pub fn told(mut system: System) -> System {
    let costs = KernelTimes::new(KERNEL, system.clock_hz);
    let core = super::core::core(&system, &costs);
    let tuned = tuned(&system, &core, &costs);
    for (place, costs) in tuned.iter().enumerate() {
        let server = usize::from(system.tpipes[place].server);
        let settings = &mut system.processes[server].settings;
        let is_told = settings.iter().any(|setting| setting.name == COSTS);
        if let (Ok((costs, output)), false) = (costs, is_told) {
            settings.push(Setting::new(COSTS, &costs.words()));
            settings.extend(output.map(|costs| Setting::new(OUTPUT_COSTS, &costs.words())));
        }
    }
    system
}

impl Plant<'_> {
    /// What may come from a device beside the pipes of the description: of each channel without
    /// one the most that any place may ask for, or what comes back if it is written. What comes on
    /// a channel comes once.
    pub(super) fn tuned_traffic(&self, usb: usize) -> Result<Vec<Bucket>, Missing> {
        let described = |channel: u8| {
            let mut pipes = self.system.pipes.iter();
            pipes.any(|pipe| pipe.usb == usb && pipe.channel == channel)
        };
        let channels = (0..CHANNELS as u8).filter(|channel| !described(*channel));
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

    /// The time in which the bus guarantees a transfer of a device, if the server asks for that.
    pub(super) fn guaranteed(&self, usb: usize) -> Nanos {
        match self.system.tpipes.iter().any(|tpipe| tpipe.usb == usb) {
            true => Nanos(SLOT.0 * u64::from(GUARANTEED)),
            false => Nanos::ZERO,
        }
    }

    fn driver(&self, tpipe: &Tpipe) -> Result<DriverCosts, Missing> {
        let bus = self.transfers(tpipe.usb)?;
        let (share, period, gap) = self.io_of(tpipe, RECEIVER)?;
        let interrupts = interrupts(gap, self.core)?;
        Ok(DriverCosts {
            transfer: bus.worst,
            transfer_least: bus.least,
            gap,
            top_half: interrupts.top_half,
            bottom_half: self.attendance(tpipe.server)?,
            share,
            period,
            wake: self.calls.of_reader(),
        })
    }

    /// Share and period of what a thread of the server runs on, and how often it is woken at most.
    pub(super) fn io_of(&self, tpipe: &Tpipe, name: &str) -> Result<(u32, Nanos, Nanos), Missing> {
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

impl Plan {
    /// Every place for a tuned pipe with the most that it may be; nothing without any.
    pub(super) fn tpipe_table(&self, system: &System) -> String {
        if system.tpipes.is_empty() {
            return String::new();
        }
        let columns = ["channels", "rate", "at once", "budget", "period"];
        let columns = columns.map(|name| (name, Align::Right));
        let first = [("may be opened", Align::Left), ("by", Align::Left)];
        let mut table = Table::new(&[&first[..], &columns[..]].concat());
        for tpipe in &system.tpipes {
            let Envelope { rate, burst, budget, period, .. } = tpipe.envelope;
            let reader = system.process_name(tpipe.process).unwrap_or_default();
            table.row(vec![
                tpipe.name.clone(),
                reader.to_owned(),
                ways(tpipe),
                format!("{rate}/s"),
                burst.to_string(),
                human(budget.0),
                human(period.0),
            ]);
        }
        table.render() + "all of it is in the bills, and no more is given\n"
    }

    /// The places where nothing can be promised.
    pub(super) fn of_tpipes<'a>(
        &'a self,
        system: &'a System,
    ) -> impl Iterator<Item = Diagnostics> + 'a {
        let numbered = (0u16..).zip(system.tpipes.iter().zip(&self.tuned));
        numbered.filter_map(|(number, (tpipe, tuned))| {
            let (what, remedy) = tuned.as_ref().err()?;
            let title = format!("`{}` could have no bound: {what}", tpipe.name);
            Some(system.problem(Place::Tpipe(number), [&title, "", "", remedy]))
        })
    }
}

/// The channels it may listen to, or write to.
fn channels(tpipe: &Tpipe, is: fn(&Envelope, u8) -> bool) -> Vec<u8> {
    (0..CHANNELS as u8).filter(|channel| is(&tpipe.envelope, *channel)).collect()
}

/// The same in words.
fn ways(tpipe: &Tpipe) -> String {
    let list =
        |channels: Vec<u8>| channels.iter().map(u8::to_string).collect::<Vec<String>>().join(", ");
    let from = list(channels(tpipe, |envelope, channel| envelope.has(channel)));
    let to = list(channels(tpipe, |envelope, channel| envelope.writes(channel)));
    match (from.is_empty(), to.is_empty()) {
        (_, true) => from,
        (true, false) => format!("to {to}"),
        (false, false) => format!("{from} to {to}"),
    }
}

/// The places for programs.
pub(super) fn to_json(system: &System) -> Vec<Value> {
    let place = |tpipe: &Tpipe| {
        let Envelope { rate, burst, budget, period, .. } = tpipe.envelope;
        json!({
            "tpipe": tpipe.name,
            "channels": channels(tpipe, |envelope, channel| envelope.has(channel)),
            "to": channels(tpipe, |envelope, channel| envelope.writes(channel)),
            "rate": rate,
            "burst": burst,
            "budget_ns": budget.0,
            "period_ns": period.0,
        })
    };
    system.tpipes.iter().map(place).collect()
}
