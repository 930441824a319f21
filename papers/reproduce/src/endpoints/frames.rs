//! The pipe from a USB network device: 10,000 frames a second beside a CAN channel and three tasks.
//! Pipes from and to one such device: 2,000 frames a second come, and 1,000 go.

use super::{Bench, Measured, NOTICED, rings};
use crate::report::Row;
use diapason::Failure;
use diapason::table::TextTable;

/// The description, the pipe of the network device, and its reader.
const PATH: &str = "examples/frames.toml";
const FRAMES: &str = "frames";
const READER: &str = "listener";
/// The description of pipes both ways.
const BOTH: &str = "tests/systems/frames-both.toml";
/// Frames a second that have to be read.
const RATE: f64 = 10e3;
/// The time from one frame to the next, in ns, of a sender that breaks the promise.
const HASTY: u64 = 80_000;
/// The time that a reader takes besides for each frame, in us, if it breaks its promise.
const READER_TAKES: u64 = 70;

/// Runs the system, and its description's lies in the simulator.
pub(super) fn rows(
    bench: &Bench,
    machine: &str,
    seconds: u64,
    table: &mut TextTable,
) -> Result<Vec<Row>, Failure> {
    let system = diapason::describe::describe(&bench.workspace.root().join(PATH))?;
    let session = bench.session(system.clone(), seconds)?;
    let Measured { seen, mut rows, .. } =
        bench.measure(&session, ("network.", machine, seconds), table)?;
    let pipes = session.system.pipes.iter().zip(seen);
    for (_, seen) in pipes.filter(|(pipe, _)| pipe.name == FRAMES) {
        let rate = seen.fewest as f64;
        let row = Row::numbers(&format!("network.{machine}.rate"), "frames/s", None, rate);
        rows.push(
            row.holds(rate + 1.0 >= RATE)
                .note("the fewest in a second; 10,000 come, and one may come just after a report"),
        );
    }
    let both = diapason::describe::describe(&bench.workspace.root().join(BOTH))?;
    let both = bench.session(both, seconds)?;
    rows.extend(bench.measure(&both, ("network-both.", machine, seconds), table)?.rows);
    if machine == "sim" {
        // The plan has another device than the run.
        let mut hasty = bench.session(system.clone(), NOTICED)?;
        let plugs = hasty.system.usb.iter_mut().filter(|plug| plug.gap_ns.is_some());
        plugs.for_each(|plug| plug.gap_ns = Some(HASTY));
        rows.push(rings(&hasty, FRAMES, ("hasty-frames", "pipe-contract"))?);
        let mut starved = system;
        let readers = starved.processes.iter_mut().filter(|it| it.name == READER);
        readers.for_each(|reader| reader.arguments[1] = READER_TAKES);
        let starved = bench.session(starved, NOTICED)?;
        rows.push(rings(&starved, FRAMES, ("starved-frames", "pipe-late"))?);
    }
    Ok(rows)
}
