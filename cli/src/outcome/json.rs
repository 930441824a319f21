//! The run's outcome for programs. The format is documented in `docs/development.md`; fields may
//! be added, never renamed or given another unit.

use super::{FaultEvent, Outcome, ProcessRow, ThreadRow, state_word};
use crate::names::{self, Names};
use crate::words;
use diapason_abi::{FaultCause, PAGE};
use serde_json::{Value, json};

impl Outcome {
    /// Everything, as one object. `findings` are the reasons why the run does not hold.
    #[must_use]
    pub fn to_json(&self, system: &str, names: &Names, findings: &[String]) -> Value {
        let threads: Vec<Value> = self.threads.iter().map(|row| thread(row, names)).collect();
        let processes: Vec<Value> = self.processes.iter().map(|row| process(row, names)).collect();
        let faults: Vec<Value> = self.faults.iter().map(|event| fault(event, names)).collect();
        let end = self.end.map(|end| {
            json!({
                "entries": end.entries, "cr3": end.cr3, "msr": end.msr, "mmio": end.mmio,
            })
        });
        let longest = self.longest_path.map(|path| {
            let place = words::path_cause(path.cause);
            json!({ "instructions": path.instructions, "where": place })
        });
        json!({
            "system": system,
            "holds": findings.is_empty(),
            "findings": findings,
            "time_ns": self.end.map(|end| end.time_ns),
            "idle_ns": self.end.map(|end| end.idle_ns),
            "kernel": end,
            "longest_kernel_path": longest,
            "threads": threads,
            "processes": processes,
            "faults": faults,
        })
    }
}

fn thread(row: &ThreadRow, names: &Names) -> Value {
    json!({
        "process": names.process(row.process),
        "thread": names::thread(row.name, row.slot),
        "slot": row.slot,
        "cpu_ns": row.cpu_ns,
        "jobs": row.jobs,
        "misses": row.misses,
        "skipped": row.skipped,
        "response_max_ns": row.response_max_ns,
    })
}

fn process(row: &ProcessRow, names: &Names) -> Value {
    json!({
        "process": names.process(row.process),
        "starts": row.starts,
        "faults": row.faults,
        "restarts": row.restarts(),
        "heap_bytes": row.heap_pages.saturating_mul(PAGE as u64),
        "state": state_word(row.state),
    })
}

fn fault(event: &FaultEvent, names: &Names) -> Value {
    let cause = u8::try_from(event.cause).ok().and_then(FaultCause::decode);
    json!({
        "time_ns": event.time_ns,
        "process": names.process(event.process),
        "thread_slot": event.thread,
        "cause": cause.map_or_else(|| event.cause.to_string(), |cause| format!("{cause:?}")),
        "address": format!("{:#x}", event.address),
        "instruction": format!("{:#x}", event.instruction),
    })
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn the_fields_are_those_documented() {
        let json = sample::outcome().to_json("demo", &sample::names(), &["late".into()]);
        assert_eq!(json["system"], "demo");
        assert_eq!(json["holds"], false);
        assert_eq!(json["time_ns"], 10_000_000_000u64);
        assert_eq!(json["kernel"]["cr3"], 500);
        assert_eq!(json["longest_kernel_path"], Value::Null);
        assert_eq!(json["threads"][1]["thread"], "ctrl");
        assert_eq!(json["threads"][1]["response_max_ns"], 2_000_000);
        assert_eq!(json["processes"][0]["heap_bytes"], 65_536);
        assert_eq!(json["processes"][1]["state"], "faulted");
        assert_eq!(json["faults"][0]["cause"], "Write");
        assert_eq!(json["faults"][0]["address"], "0xdead0000");
    }
}
