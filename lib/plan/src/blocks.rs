//! Pipes of disks: a message is a run of blocks for which its reader or writer asks once a period.
//!
//! A command has three transfers: the command, the data and the status. The driver asks for all of
//! them at once, and works at one command at a time. So a command takes the bus three times, and
//! the disk as long as its description says.
//!
//! A message from a disk begins when its reader is to ask. The reader may be at another message
//! then, and the thread of the driver that hears of asks has to run. How long a command waits for
//! the ones before it follows from how late asks may be. A message to a disk begins when it is
//! written, as any that goes to a device does ([`crate::sinks`]).

use crate::beside::{longest_at, model};
use crate::human;
use crate::missing::Missing;
use crate::pipes::{NoBill, Piped, Plant, contract};
use diapason_abi::{CallNumber, Nanos};
use diapason_bus::{BusInstance, Direction, Speed, Transfer, packet_time};
use diapason_contract::disk::places;
use diapason_pipe::bill::{Bill, Traffic, Transfers, What, input};
use diapason_pipe::size::{Bucket, arrivals};
use diapason_system::{PipeSpec, System};
use diapason_usb::class::mass_storage::{COMMAND_BYTES, STATUS_BYTES};

/// Steps to a time by which asks are never later.
const STEPS: usize = 32;
/// A period in which a command certainly ends, for finding out how long it takes.
const SELDOM: Nanos = Nanos::from_secs(100);

/// The times of a command that do not depend on the driver.
pub(crate) struct Command {
    speed: Speed,
    pub bus: Nanos,
    pub device: Nanos,
}

impl Command {
    /// Returns the times of the commands of a pipe.
    ///
    /// # Errors
    /// The description lacks something.
    pub fn of(system: &System, pipe: &PipeSpec) -> Result<Command, Missing> {
        let plug = &system.usb[pipe.usb];
        let Some(disk) = model(plug.model) else {
            let what = format!("nothing is known of the endpoints of `{}`", plug.name);
            return Err((what, "take a disk that there is a model of".to_owned()));
        };
        let speed = disk.speed();
        let packet = if speed == Speed::Super { 1_024 } else { 512 };
        let data = if pipe.is_written() { Direction::Out } else { Direction::In };
        let transfers = [
            (Direction::Out, COMMAND_BYTES),
            (data, pipe.shape.bytes),
            (Direction::In, STATUS_BYTES),
        ];
        let mut bus = Nanos::ZERO;
        for (direction, bytes) in transfers {
            let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
            bus += longest_at(system, (pipe.usb, speed), (direction, packet), bytes)?;
        }
        let device = plug.takes_ns.map(Nanos).ok_or_else(|| {
            let what = format!("nobody knows how long `{}` takes for a command", plug.name);
            (what, "add `takes = \"500us\"` to it".to_owned())
        })?;
        Ok(Command { speed, bus, device })
    }
}

/// Returns the commands of a pipe as transfers.
pub(crate) fn transfers(system: &System, pipe: &PipeSpec) -> Result<Transfers, Missing> {
    let Command { speed, bus, device } = Command::of(system, pipe)?;
    let of_it = BusInstance::new(speed);
    let least = packet_time(of_it.speed, of_it.coding, Transfer::Bulk, Direction::In, 1);
    let (worst, least) = (bus + device, Nanos(least.0 / 1_000));
    Ok(Transfers::of_one(worst, least, 1))
}

impl Plant<'_> {
    /// Returns what a reader does for a message besides its work, if it has to ask for messages:
    /// its own ask and one that comes before, and the alarms that wake it for them.
    pub(crate) fn asks(&self, pipe: &PipeSpec) -> Nanos {
        if !pipe.has_blocks() {
            return Nanos::ZERO;
        }
        let each = [CallNumber::SemUnlock, CallNumber::SemLock].map(|call| self.calls.of(call));
        Nanos(2 * (each[0] + each[1]).0)
    }

    /// Returns the bill of a pipe from a disk.
    pub(crate) fn blocks(&self, index: usize) -> Result<Piped, Missing> {
        let pipe = &self.system.pipes[index];
        self.keeps_up(index)?;
        let own = contract(pipe);
        let mut late = Nanos::ZERO;
        for _ in 0..STEPS {
            let inbound = self.inbound_of(index, Some(own.with_jitter(late)))?;
            let piped = self.input_of(index, &inbound)?;
            let Ok(bill) = &piped.bill else { return Ok(piped) };
            let asked = inbound.interrupts.top_half + bill.value(What::User);
            if asked > own.per {
                break;
            }
            // The thread that hears of asks may have begun to rest.
            let rest = self.driver(pipe).home.pace;
            let heard = asked + rest + bill.value(What::BottomHalf);
            if heard <= late {
                let bill = whole(self.system, pipe, bill, late)?;
                return Ok(Piped { bill: Ok(bill), ..piped });
            }
            late = heard;
        }
        let reader = self.end_name(pipe);
        let what = format!("`{reader}` may ask for a message of `{}` a period late", pipe.name);
        Err((what, format!("give `{reader}` a larger budget, or a shorter period")))
    }

    /// Returns how long one message of a pipe takes from the server's request until its answer, if
    /// no other one of that pipe is under way.
    pub(crate) fn takes(&self, index: usize) -> Result<Nanos, Missing> {
        let inbound = self.inbound_of(index, Some(Bucket::periodic(SELDOM)))?;
        let stages = inbound.stages(crate::known::nobody(&inbound.half));
        let at = (index, inbound.own);
        let bill = self.with_traffic(at, |traffic: &Traffic<'_>| input(&stages, traffic))?;
        bill.map(|bill| bill.total).map_err(|refusal| {
            let help = "give the stage more of the processor, or reduce the traffic";
            (refusal.to_string(), help.to_owned())
        })
    }

    /// Checks that a command has ended before the next one is due.
    pub(crate) fn keeps_up(&self, index: usize) -> Result<(), Missing> {
        let pipe = &self.system.pipes[index];
        let takes = self.takes(index)?;
        let period = contract(pipe).per;
        if takes <= period {
            return Ok(());
        }
        let (name, disk) = (&pipe.name, &self.system.usb[pipe.usb].name);
        let does = if pipe.is_written() { "has" } else { "asks for" };
        let what = format!(
            "`{name}` {does} {} bytes every {}, and `{disk}` may take {} for them",
            pipe.shape.bytes,
            human(period.0),
            human(takes.0)
        );
        let micros = takes.0.div_ceil(1_000);
        Err((what, format!("write at least `period = \"{micros}us\"`, or fewer `bytes`")))
    }
}

/// Returns the bill of a message, with the parts of its command. The server and its reader have one
/// clock, so the measured times are whole.
///
/// # Errors
/// The reader may lack places.
fn whole(system: &System, pipe: &PipeSpec, bill: &Bill, late: Nanos) -> Result<Bill, Missing> {
    let Command { bus, device, .. } = Command::of(system, pipe)?;
    let parts = [(What::Bus, bus), (What::Device, device)];
    let mut bill = bill.split(What::Bus, &parts).after(What::Asked, late);
    bill.least = Nanos::ZERO;
    has_places(pipe, &contract(pipe), &bill)?;
    Ok(bill)
}

/// Checks that there are places for all messages that are under way, and for one more: a place is
/// used again by the first call of its reader after it is done with it, or filled by its writer.
pub(crate) fn has_places(pipe: &PipeSpec, own: &Bucket, bill: &Bill) -> Result<(), Missing> {
    let needed = arrivals(&[*own], bill.total) + 1;
    let there = places(pipe.shape.bytes) as u64;
    if needed <= there {
        return Ok(());
    }
    let what =
        format!("`{}` needs {needed} places for its messages, and there are {there}", pipe.name);
    Err((what, "write fewer `bytes`, or a longer `period`".to_owned()))
}

/// Returns the refusal of a chain that begins at a disk: what its first thread does besides delays
/// its asks.
pub(crate) fn no_chain(pipe: &PipeSpec) -> Option<NoBill> {
    let what = format!("its pipe `{}` comes from a disk, whose reader has to ask", pipe.name);
    let remedy = "let the chain begin at another pipe".to_owned();
    pipe.has_blocks().then_some(NoBill::Missing(what, remedy))
}
