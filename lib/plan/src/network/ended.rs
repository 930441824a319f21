//! The end of a flow at a device: its last program writes each message into a pipe.
//!
//! The bill of that pipe follows from its own contract. So the messages of the flow must leave the
//! last program within that contract, however late each of them is.

use super::flows::{FlowBill, FlowStage};
use super::net::apart;
use crate::chains::{closer, more_at_once};
use crate::human;
use crate::missing::Missing;
use crate::pipes::{NoBill, Plant};
use diapason_abi::Nanos;
use diapason_pipe::size::Bucket;
use diapason_system::{Flow, Hosts, PipeSpec};

/// Returns the bill of a flow with the pipe to a device that it ends with.
///
/// # Errors
/// The pipe has no bill, or the flow may write more than the pipe declares.
pub(super) fn ended(
    (hosts, plants): (&Hosts, &[Plant<'_>]),
    flow: &Flow,
    mut bill: FlowBill,
) -> Result<FlowBill, NoBill> {
    let Some(index) = flow.into else { return Ok(bill) };
    let end = flow.end();
    let plant = &plants[end.host];
    let pipe = &plant.system.pipes[index];
    let missing = |(what, remedy): Missing| NoBill::Missing(what, remedy);
    let piped = plant.piped(index).ok().and_then(|piped| piped.bill.ok());
    let piped = piped.ok_or_else(|| {
        let what = format!("the pipe `{}` has none", pipe.name);
        missing((what, "see the message about it".to_owned()))
    })?;
    let leaves = leaves(flow, bill.longest);
    if let Some((what, help)) = too_many(&leaves, pipe) {
        return Err(missing((format!("its last program {what}"), help)));
    }
    // The way before the pipe has the time that the `latency` of the pipe leaves.
    if let Some(latency) = flow.latency_of_programs(&hosts.hosts)
        && bill.longest.0 > latency
    {
        let (longest, left) = (human(bill.longest.0), human(latency));
        let name = &pipe.name;
        let what = format!(
            "its last program may be done after {longest}, and the `latency` of `{name}` leaves \
             {left}"
        );
        let help = format!("write a shorter `latency` in `{name}`, or a longer one in the flow");
        return Err(missing((what, help)));
    }
    let (host, longest) = (Some(end.host), bill.longest + piped.total);
    bill.put(FlowStage::Pipe, (host, pipe.name.clone()), piped.total, None);
    bill.longest = longest;
    Ok(bill)
}

/// Returns the messages of a flow as they leave its last program, each within `longest`. A time of
/// the first host may be shorter by the clock of the last one.
fn leaves(flow: &Flow, longest: Nanos) -> Bucket {
    let said = flow.contract;
    let (per, jitter) = (said.per - apart(said.per), said.jitter + longest);
    Bucket { messages: said.messages.into(), per, burst: said.burst, jitter }
}

/// Returns what the last program may do that the pipe does not declare, and the remedy.
///
/// Packets for an endpoint are apart by the period of their pipe. Two messages in a row leave the
/// first program a period apart, and the second may be early by all that the way varies.
fn too_many(leaves: &Bucket, pipe: &PipeSpec) -> Option<(String, String)> {
    if !pipe.is_written() {
        return more_at_once(leaves, pipe);
    }
    let every = Nanos(leaves.per.0 / leaves.messages.max(1));
    let least = if leaves.burst > 1 { Nanos::ZERO } else { every - leaves.jitter };
    closer(least, pipe, "send fewer messages, each alone")
}
