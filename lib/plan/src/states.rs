//! State messages: whether a read always ends before the writer comes back to its slot.
//!
//! The number of slots relies on the longest time of a read. `lib/system` takes two periods of the
//! reader's VCPU for it. Here the analysis of VCPUs proves that a read ends within that time,
//! whatever the reader has done before.

use crate::core::Core;
use crate::missing::Missing;
use crate::supplies::is_alone;
use diapason_abi::Nanos;
use diapason_analysis::server::{BudgetServer as _, Supply};
use diapason_costs::KernelTimes;
use diapason_system::{Diagnostics, Place, StateReading, StateSpec, System};

/// Instructions of a read at most: those of the call, and those for each word of the value. A read
/// in C takes 25 and 8 of them, and one in Rust 13 and 5. The step *a read of a state message takes
/// no more than the plan counts* of `cargo xtask test` counts them in QEMU and fails above these.
const CALL: u64 = 200;
const WORD: u64 = 16;

/// Returns the instructions of a read of a value of so many bytes.
#[must_use]
pub const fn read_instructions(bytes: u64) -> u64 {
    CALL + WORD * bytes.div_ceil(8)
}

/// Returns the state messages whose reads have no bound, each of which is a refusal.
pub(crate) fn refusals(system: &System, core: &Core, costs: &KernelTimes) -> Vec<Diagnostics> {
    let mut found = Vec::new();
    for (place, state) in (0u16..).zip(&system.states) {
        let time = costs.time(read_instructions(state.bytes()));
        for reader in &state.readers {
            if let Err((what, remedy)) = bounded(state, reader, time, system, core) {
                let title = format!("no bound on a read of `{}`: {what}", state.name);
                let note = "the slots are enough only if a read ends before the writer comes back";
                found.push(system.problem(Place::State(place), [&title, "", note, &remedy]));
            }
        }
    }
    found
}

/// Checks that a reader on this core reads within the time that the slots are enough for.
fn bounded(
    state: &StateSpec,
    reader: &StateReading,
    read: Nanos,
    system: &System,
    core: &Core,
) -> Result<(), Missing> {
    let Some(process) = reader.process else { return Ok(()) };
    is_alone(process, system)?;
    let vcpu = system.processes[usize::from(process)].vcpu;
    let place = core.mains.iter().position(|main| Some(*main) == vcpu);
    // Without a supply the system is refused as a whole.
    let Some(supply) = place.and_then(|place| Supply::of(&core.system, place)) else {
        return Ok(());
    };
    let (longest, window) = (supply.merge(read), Nanos(reader.window_ns));
    if longest <= window {
        return Ok(());
    }
    let of = &reader.name;
    Err((
        format!("`{of}` may take {longest} for it, and {} slots are for {window}", state.slots),
        format!("give the VCPU of `{of}` a larger `budget`: a read takes {read} of it"),
    ))
}
