//! The pipe from a disk: 20 MB a second beside a CAN channel, and what the disk costs that channel.
//! The pipe to a disk: what a recorder writes, beside the same channel.

use super::{Bench, Measured, NOTICED, rings};
use crate::report::Row;
use diapason::Failure;
use diapason::session::Session;
use diapason::table::TextTable;
use diapason_abi::Nanos;
use diapason_pipe::bill::{Bill, What};
use diapason_plan::Plan;
use diapason_system::{System, UsbModel};

/// The description of the disk, the pipe of it, and that of the CAN channel.
const PATH: &str = "examples/disk.toml";
const BLOCKS: &str = "blocks";
const BRAKES: &str = "brakes";
/// Bytes a second that have to be read.
const RATE: f64 = 20e6;
/// A period that the disk keeps on the bus of the interface, too.
const SLOW: u64 = 20_000_000;
/// The description of the recorder, and its pipe.
const RECORDER: &str = "examples/recorder.toml";
const RECORD: &str = "record";
/// The period of a recorder that breaks its promise, in us.
const HASTY: u64 = 5_000;
/// The times that disks and a reader take if they break their promises, in us.
const DISK_TAKES: u64 = 6_000;
const RECORDER_TAKES: u64 = 9_000;
const READER_TAKES: u64 = 3_000;

/// Runs the disk, and its description's lies in the simulator.
pub(super) fn rows(
    bench: &Bench,
    machine: &str,
    seconds: u64,
    table: &mut TextTable,
) -> Result<Vec<Row>, Failure> {
    let system = diapason::describe::describe(&bench.workspace.root().join(PATH))?;
    let session = bench.session(system.clone(), seconds)?;
    let Measured { seen, mut rows, .. } =
        bench.measure(&session, ("disk.", machine, seconds), table)?;
    let pipes = session.system.pipes.iter().zip(seen);
    for (pipe, seen) in pipes.filter(|(pipe, _)| pipe.name == BLOCKS) {
        let rate = seen.fewest as f64 * pipe.shape.bytes as f64;
        let row = Row::numbers(&format!("disk.{machine}.rate"), "MB/s", None, rate / 1e6);
        rows.push(row.holds(rate >= RATE).note("at least 20 have to be read in each second"));
    }
    if machine == "sim" {
        rows.push(owed(&system)?);
        rows.extend(lies(bench, &system)?);
    }
    Ok(rows)
}

/// Runs the recorder, and its description's lies in the simulator.
pub(super) fn recorder(
    bench: &Bench,
    machine: &str,
    seconds: u64,
    table: &mut TextTable,
) -> Result<Vec<Row>, Failure> {
    let system = diapason::describe::describe(&bench.workspace.root().join(RECORDER))?;
    let session = bench.session(system.clone(), seconds)?;
    let mut rows = bench.measure(&session, ("recorder.", machine, seconds), table)?.rows;
    if machine == "sim" {
        let slow = slower(bench, &system, RECORDER_TAKES)?;
        rows.push(rings(&slow, RECORD, ("slow-recorder", "pipe-late"))?);
        let mut hasty = system;
        let writers = hasty.processes.iter_mut().filter(|it| it.name == "recorder");
        writers.for_each(|writer| writer.arguments[1] = HASTY);
        let hasty = bench.session(hasty, NOTICED)?;
        rows.push(rings(&hasty, RECORD, ("hasty-recorder", "pipe-contract"))?);
    }
    Ok(rows)
}

/// Returns a session whose disk takes so long for a command, in us, and says less.
fn slower(bench: &Bench, system: &System, takes: u64) -> Result<Session, Failure> {
    let mut slow = bench.session(system.clone(), NOTICED)?;
    for plug in slow.system.usb.iter_mut().filter(|plug| plug.takes_ns.is_some()) {
        plug.takes_ns = Some(takes * 1_000);
    }
    Ok(slow)
}

/// Returns the bill of the CAN channel, with the disk on this bus.
fn beside(system: &System, model: UsbModel) -> Result<Bill, Failure> {
    let mut system = system.clone();
    for plug in system.usb.iter_mut().filter(|plug| plug.takes_ns.is_some()) {
        plug.model = model;
    }
    for pipe in system.pipes.iter_mut().filter(|pipe| pipe.name == BLOCKS) {
        (pipe.period_ns, pipe.latency_ns) = (Some(SLOW), None);
    }
    let plan = Plan::of(&system);
    let place = system.pipes.iter().position(|pipe| pipe.name == BRAKES);
    let piped = place.and_then(|place| plan.pipes.get(place));
    let bill = piped.and_then(|piped| piped.bill.as_ref().ok()).copied();
    bill.filter(|_| plan.holds()).ok_or_else(|| Failure::Ours(format!("{PATH} does not hold")))
}

/// Compares the bill of the CAN channel with the disk on its bus with that beside one on another:
/// the wait for the bus and the bus may be longer, and nothing else.
fn owed(system: &System) -> Result<Row, Failure> {
    let apart = beside(system, UsbModel::SuperSpeedDisk)?;
    let shared = beside(system, UsbModel::Disk)?;
    let of_bus = [What::Request, What::Bus];
    let others = shared.items().iter().filter(|item| !of_bus.contains(&item.what));
    let same = others.clone().all(|item| item.value <= apart.value(item.what));
    let longer = shared.total - apart.total;
    let bus = of_bus.map(|what| shared.value(what) - apart.value(what));
    let ours = longer.0 as f64 / 1e3;
    Ok(Row::numbers("disk.can-owes", "us", None, ours)
        .holds(same && longer > Nanos::ZERO && longer <= bus[0] + bus[1])
        .note("longer bound of the CAN channel: its wait for the bus and its time there only"))
}

/// Returns whether a disk and a reader that take longer than they say are found out.
fn lies(bench: &Bench, system: &System) -> Result<[Row; 2], Failure> {
    let slow = slower(bench, system, DISK_TAKES)?;
    let mut starved = system.clone();
    let readers = starved.processes.iter_mut().filter(|it| it.name == "reader");
    readers.for_each(|reader| reader.arguments[1] = READER_TAKES);
    let starved = bench.session(starved, NOTICED)?;
    Ok([
        rings(&slow, BLOCKS, ("slow-disk", "pipe-contract"))?,
        rings(&starved, BLOCKS, ("starved-blocks", "pipe-late"))?,
    ])
}
