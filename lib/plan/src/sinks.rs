//! Pipes to devices that are no CAN interfaces: a message is a packet for an endpoint, a frame for
//! a network, or a run of blocks for a disk, that a writer has once a period.
//!
//! A message is through when the device has taken it, and the bottom half has heard of that. The
//! device may say "not now" for as long as its description says. How long a message waits for the
//! one before it follows from how late the server hears of writes, and from how late a job of the
//! writer may have written it.

use crate::adapters;
use crate::blocks::{self, Command};
use crate::endpoints::{bus_time, named};
use crate::human;
use crate::known::nobody;
use crate::missing::Missing;
use crate::pipes::{NoBill, Piped, Plant, contract};
use crate::supplies::own_supply;
use diapason_abi::{CallNumber, Nanos};
use diapason_bus::{BusInstance, Direction, Transfer, packet_time};
use diapason_contract::sink::UNDER_WAY;
use diapason_pipe::bill::{Bill, Service, Traffic, Transfers, What, input};
use diapason_pipe::size::{Bucket, arrivals};
use diapason_system::{ChainSpec, PipeSpec, System};
use diapason_usb::class::sink::{PATIENCE, find};
use diapason_usb::descriptor::EndpointDescriptor;

/// Steps to a time by which the server never hears later of a write.
const STEPS: usize = 32;

/// The times of a packet, or of a frame, that do not depend on the driver.
struct Packet {
    bus: Nanos,
    device: Nanos,
    /// The least time of one.
    least: Nanos,
}

impl Packet {
    fn of(system: &System, pipe: &PipeSpec) -> Result<Packet, Missing> {
        let plug = &system.usb[pipe.usb];
        let (bus, speed, transfer) = if pipe.has_frames() {
            let (bus, speed) = adapters::bus(system, pipe)?;
            (bus, speed, Transfer::Bulk)
        } else {
            let end = written(system, pipe)?;
            (bus_time(system, pipe, &end)?, end.speed, end.transfer)
        };
        let device = plug.takes_ns.map(Nanos).ok_or_else(|| {
            let what = format!("nobody knows how long `{}` takes for a packet", plug.name);
            (what, "add `takes = \"100us\"` to it".to_owned())
        })?;
        // A packet that the device did not take is offered once more when it has room.
        let offers = if device > Nanos::ZERO { 2 } else { 1 };
        let bus = Nanos(bus.0.saturating_mul(offers));
        // A frame is offered for ever.
        if bus + device >= PATIENCE && !pipe.has_frames() {
            let what = format!(
                "`{}` may take {} for a packet, and the server gives one up after {}",
                plug.name,
                human((bus + device).0),
                human(PATIENCE.0)
            );
            return Err((what, "write a shorter `takes`".to_owned()));
        }
        let of_it = BusInstance::new(speed);
        let least = packet_time(of_it.speed, of_it.coding, transfer, Direction::Out, 1);
        Ok(Packet { bus, device, least: Nanos(least.0 / 1_000) })
    }
}

/// Returns the packets of a pipe as transfers.
pub(crate) fn transfers(system: &System, pipe: &PipeSpec) -> Result<Transfers, Missing> {
    let Packet { bus, device, least } = Packet::of(system, pipe)?;
    let queued = if pipe.has_frames() { adapters::queued_out(pipe) } else { UNDER_WAY };
    Ok(Transfers::of_one(bus + device, least, queued as u64))
}

/// Returns the endpoint that the packets of a pipe go to.
fn written(system: &System, pipe: &PipeSpec) -> Result<EndpointDescriptor, Missing> {
    let end = named(system, pipe, find)?;
    let (device, name, number) = (&system.usb[pipe.usb].name, &pipe.name, pipe.endpoint);
    let (bytes, packet) = (pipe.shape.bytes, usize::from(end.packet));
    if bytes > packet {
        let what = format!(
            "`{name}` has `bytes = {bytes}`, and a packet of endpoint {number} of `{device}` has \
             {packet} at most"
        );
        return Err((what, format!("write at most `bytes = {packet}`")));
    }
    Ok(end)
}

impl Plant<'_> {
    /// Returns the bill of a pipe to a device that is no CAN interface.
    pub(crate) fn sink(&self, index: usize) -> Result<Piped, Missing> {
        let pipe = &self.system.pipes[index];
        let many = self.asks_apart(index);
        if pipe.has_blocks() {
            self.keeps_up(index)?;
        } else if !many {
            self.has_time(index)?;
        }
        let (_, process) = self.end(pipe)?;
        let writer = own_supply(process, self.system, self.core)?;
        let told = self.calls.of(CallNumber::SemUnlock);
        let told = self.reporting(process, &writer).any(told).min(self.job_of(process));
        let own = Bucket { jitter: self.lateness(index)?, ..contract(pipe) };
        // The thread that hears of writes may have begun to rest.
        let rest = self.driver(pipe).home.pace;
        let mut late = told;
        for _ in 0..STEPS {
            let comes = own.with_jitter(own.jitter + late);
            let inbound = self.inbound_of(index, Some(comes))?;
            let stages = inbound.stages(nobody(&inbound.half));
            let at = (index, inbound.own);
            let bill = self.with_traffic(at, |traffic: &Traffic<'_>| input(&stages, traffic))?;
            let bill = match bill {
                Ok(bill) => bill,
                Err(refusal) => {
                    let bill = Err(NoBill::Refused(refusal));
                    return Ok(Piped { bill, equation_nine: None });
                }
            };
            let heard = told + rest + bill.value(What::BottomHalf);
            if heard > own.per && !many {
                break;
            }
            if heard <= late {
                let bill = whole(self.system, (pipe, &own), &bill, (told, late))?;
                if pipe.has_blocks() {
                    blocks::has_places(pipe, &own, &bill)?;
                }
                if many {
                    adapters::has_room(pipe, &bill)?;
                }
                return Ok(Piped { bill: Ok(bill), equation_nine: None });
            }
            late = heard;
        }
        let writer = self.end_name(pipe);
        let half = self.driver(pipe).home.vcpu;
        let late = if many { "ever later" } else { "a period late" };
        let what = format!("the server may hear of a message of `{}` {late}", pipe.name);
        Err((what, format!("give `{writer}` or `{half}` a larger budget, or a longer period")))
    }

    /// Returns the system with the lateness of each writer as the jitter of its pipe to a
    /// device. The server holds the writer to that contract. A pipe without a bound keeps its
    /// contract.
    pub(crate) fn with_lateness(&self) -> System {
        let mut system = self.system.clone();
        for (index, pipe) in system.pipes.iter_mut().enumerate() {
            let is_late = pipe.is_written().then(|| self.lateness(index).ok()).flatten();
            pipe.jitter_ns = is_late.map_or(pipe.jitter_ns, |late| late.0);
        }
        system
    }

    /// Returns how long after it is due a packet is written at most.
    ///
    /// A writer has a packet once a period. Its job is released then and may begin whatever the
    /// budget that is left, so the packet is written within [`Service::any`] of all that a job
    /// does. That is less than a period, so a job finds no work of the one before. Two packets in
    /// a row are therefore apart by the period less the lateness at least, and `k` of them by
    /// `k - 1` periods less the lateness: the contract of the period with that jitter.
    ///
    /// If the description says how much budget a job uses, a packet is also written before its job
    /// is done.
    ///
    /// The packets of a chain or a flow have no such job. It has to keep them apart by the period.
    pub(crate) fn lateness(&self, index: usize) -> Result<Nanos, Missing> {
        let pipe = &self.system.pipes[index];
        let ends_with = |chain: &ChainSpec| chain.to.map(usize::from) == Some(index);
        if pipe.ends_flow || self.system.chains.iter().any(ends_with) {
            return Ok(Nanos::ZERO);
        }
        let (_, process) = self.end(pipe)?;
        self.locks_nothing(process)?;
        self.reads_no_other(index)?;
        let writer = own_supply(process, self.system, self.core)?;
        let calls = [CallNumber::JobWait, CallNumber::SemUnlock].map(|call| self.calls.of(call));
        let job = self.work_of_end(pipe)? + calls[0] + calls[1];
        let late = self.reporting(process, &writer).any(job).min(self.job_of(process));
        let period = contract(pipe).per;
        if late < period {
            return Ok(late);
        }
        let name = self.end_name(pipe);
        let what = format!(
            "`{name}` may write a message {} after it is due, and has one every {}",
            human(late.0),
            human(period.0)
        );
        Err((what, format!("give `{name}` a larger budget, a shorter `work` or a longer period")))
    }

    /// Returns how long a job of a process takes at most, from when it begins until it is done.
    /// [`Nanos::FOREVER`] if the description does not bound its jobs.
    fn job_of(&self, process: u16) -> Nanos {
        let vcpu = self.system.processes[usize::from(process)].vcpu;
        let place = self.core.mains.iter().position(|number| Some(*number) == vcpu);
        let job = place.and_then(|place| self.jobs.get(place)?.as_ref()?.as_ref().ok());
        job.map_or(Nanos::FOREVER, |job| job.done)
    }

    /// Checks that a packet has ended before the next one is written.
    fn has_time(&self, index: usize) -> Result<(), Missing> {
        let pipe = &self.system.pipes[index];
        let takes = self.takes(index)?;
        let period = contract(pipe).per;
        if takes <= period {
            return Ok(());
        }
        let (name, device) = (&pipe.name, &self.system.usb[pipe.usb].name);
        let what = format!(
            "`{name}` has a packet every {}, and one to `{device}` may take {}",
            human(period.0),
            human(takes.0)
        );
        let micros = takes.0.div_ceil(1_000);
        let mut remedy = format!("write at least `period = \"{micros}us\"`");
        if pipe.has_frames() {
            let each = self.driver(pipe).home.each;
            remedy += &format!(", or add the `[[work]]` `{each}`: several may be under way then");
        }
        Err((what, remedy))
    }
}

/// Returns the bill of a message that the server hears of within `late`, of which the writer needs
/// `told`. One clock measures it, so its times are whole.
fn whole(
    system: &System,
    (pipe, own): (&PipeSpec, &Bucket),
    back: &Bill,
    (told, late): (Nanos, Nanos),
) -> Result<Bill, Missing> {
    let (bus, device) = match pipe.has_blocks() {
        true => Command::of(system, pipe).map(|it| (it.bus, it.device))?,
        false => Packet::of(system, pipe).map(|it| (it.bus, it.device))?,
    };
    let carried = [What::Request, What::Bus].map(|what| back.value(what));
    let returns = back.total - carried[0] - carried[1];
    let mut bill = Bill::of_output(&[
        (What::Written, told),
        (What::Taken, late - told + carried[0]),
        (What::Bus, bus),
        (What::Device, device),
        (What::Back, returns),
    ]);
    bill.slots = arrivals(&[*own], bill.total);
    bill.device = 1;
    Ok(bill)
}
