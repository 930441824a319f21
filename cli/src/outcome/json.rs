//! The run's outcome for programs. The format is documented in `docs/development.md`; fields may
//! be added, never renamed or given another unit.

use super::{
    Alarm, ChainPromise, ChainRow, DeviceRow, FaultEvent, KernelRow, Outcome, PipePromise, PipeRow,
    ProcessRow, Terms, ThreadRow, VcpuRow, state_word, usb,
};
use crate::names::{self, Names};
use crate::words;
use diapason_abi::{FaultCause, PAGE};
use diapason_system::Way;
use serde_json::{Value, json};

impl Outcome {
    /// Everything, as one object. `findings` are the reasons why the run does not hold, `alarms`
    /// among them.
    #[must_use]
    pub fn to_json(
        &self,
        system: &str,
        names: &Names,
        findings: &[String],
        alarms: &[Alarm],
        (promises, chains): (&[PipePromise], &[ChainPromise]),
    ) -> Value {
        let threads: Vec<Value> = self.threads.iter().map(|row| thread(row, names)).collect();
        let processes: Vec<Value> = self.processes.iter().map(|row| process(row, names)).collect();
        let vcpus: Vec<Value> = self.vcpus.iter().map(|row| vcpu(row, names)).collect();
        let devices: Vec<Value> = self.devices.iter().map(|row| device(row, names)).collect();
        let alarms: Vec<Value> = alarms.iter().map(alarm).collect();
        let pipes: Vec<Value> = promises.iter().map(|promise| pipe(promise, self, names)).collect();
        let chains: Vec<Value> = chains.iter().map(|promise| chain(promise, self)).collect();
        let faults: Vec<Value> = self.faults.iter().map(|event| fault(event, names)).collect();
        let injected = self.lives().flat_map(|life| &life.injected);
        let injected: Vec<Value> =
            injected.map(|(time, what)| json!({ "time_ns": time, "what": what })).collect();
        let end = self.end.map(|end| {
            json!({
                "entries": end.entries, "cr3": end.cr3, "msr": end.msr, "mmio": end.mmio,
            })
        });
        let longest = self.longest_path.map(|path| {
            let place = words::path_cause(path.cause);
            json!({ "instructions": path.instructions, "where": place })
        });
        let mut whole = json!({
            "system": system,
            "holds": findings.is_empty(),
            "findings": findings,
            "alarms": alarms,
            "time_ns": self.end.map(|end| end.time_ns),
            "idle_ns": self.end.map(|end| end.idle_ns),
            "kernel": end,
            "longest_kernel_path": longest,
            "kernel_time": self.kernel.iter().map(kernel).collect::<Vec<Value>>(),
            "threads": threads,
            "vcpus": vcpus,
            "devices": devices,
            "pipes": pipes,
            "chains": chains,
            "processes": processes,
            "faults": faults,
            "injected": injected,
        });
        usb::json(self, names).into_iter().for_each(|(field, rows)| whole[field] = rows);
        whole
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
        "cost_max_ns": row.cost.map(|cost| cost.most_ns),
    })
}

fn vcpu(row: &VcpuRow, names: &Names) -> Value {
    let terms = row.terms.as_ref();
    let maker = terms.and_then(|terms| terms.maker);
    let term = |value: fn(&Terms) -> u64| terms.map(value);
    json!({
        "vcpu": row.name(names),
        "kind": if row.kind() == "I/O" { "io" } else { row.kind() },
        "process": maker.map(|process| names.process(process)),
        "budget_ns": term(|terms| terms.budget_ns),
        "period_ns": term(|terms| terms.period_ns),
        "utilization_ppm": terms.and_then(|terms| terms.share_ppm),
        "changes": term(|terms| terms.changes),
        "used_ns": row.used_ns,
        "background_ns": row.background_ns,
        "waits": row.waits,
        "late_max_ns": row.late_max_ns,
        "overrun_max_ns": row.overrun_max_ns,
        "lockout_max_ns": term(|terms| terms.lockout_max_ns),
        "list_full": row.merges,
        "wakes_max": row.wakes_max,
    })
}

fn kernel(row: &KernelRow) -> Value {
    json!({
        "cause": row.what(),
        "entries": row.entries,
        "instructions": row.instructions,
        "longest_staying": row.longest_staying,
        "longest_leaving": row.longest_leaving,
    })
}

fn device(row: &DeviceRow, names: &Names) -> Value {
    json!({
        "device": names.device(row.device),
        "interrupts": row.interrupts,
        "distance_min_ns": row.distance_min_ns,
    })
}

fn pipe(promise: &PipePromise, outcome: &Outcome, names: &Names) -> Value {
    let row = promise.row(outcome);
    let seen = |value: fn(&PipeRow) -> u64| row.map(value);
    json!({
        "pipe": promise.name,
        "reader": names.process(promise.reader),
        "to_device": promise.way == Way::ToDevice,
        "channel": promise.channel,
        "bound_ns": promise.bound_ns,
        "least_ns": promise.least_ns,
        "slots": promise.slots,
        "messages": seen(|row| row.messages),
        "lost": seen(|row| row.lost),
        "between_reports": row.and_then(|row| row.between).map(|(least, most)| [least, most]),
        "peak": seen(|row| row.peak),
        "taken_bound_ns": promise.taken_ns,
        "taken_max_ns": row.map(|row| promise.taken(row)),
        "moving_max_ns": seen(|row| row.moving_max_ns),
        "reading_max_ns": seen(|row| row.reading_max_ns),
        "longest_ns": seen(|row| row.whole_max_ns),
        "inexact_ns": seen(|row| row.inexact_max_ns),
        "drift_ppm": promise.drift,
        "truth_ns": promise.truth(outcome).map(|truth| truth.longest_ns.max(truth.waiting_ns)),
    })
}

fn chain(promise: &ChainPromise, outcome: &Outcome) -> Value {
    let row = promise.row(outcome);
    let seen = |value: fn(&ChainRow) -> u64| row.map(value);
    let threads = promise.reached.iter().enumerate().map(|(place, (process, bound))| {
        let longest = row.and_then(|row| row.reached_max_ns.get(place));
        json!({ "process": process, "bound_ns": bound, "longest_ns": longest })
    });
    json!({
        "chain": promise.name,
        "bound_ns": promise.bound_ns,
        "least_ns": promise.least_ns,
        "messages": seen(|row| row.messages),
        "lost": seen(|row| row.lost),
        "replaced": seen(|row| row.replaced),
        "longest_ns": seen(|row| row.whole_max_ns),
        "threads": threads.collect::<Vec<Value>>(),
    })
}

fn alarm(alarm: &Alarm) -> Value {
    json!({
        "alarm": alarm.name,
        "of": alarm.of,
        "observed": alarm.observed,
        "assumed": alarm.assumed,
        "text": alarm.text,
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
        let alarm = Alarm {
            name: "late-supply",
            of: "control".into(),
            observed: 2,
            assumed: 1,
            text: "late".into(),
        };
        let json = sample::outcome().to_json(
            "demo",
            &sample::names(),
            &["late".into()],
            &[alarm],
            (&[], &[]),
        );
        assert_eq!(json["alarms"][0]["alarm"], "late-supply");
        assert_eq!(json["alarms"][0]["observed"], 2);
        let control = &json["vcpus"][0];
        assert_eq!((&control["vcpu"], &control["kind"]), (&"control".into(), &"main".into()));
        assert_eq!(control["process"], Value::Null);
        assert_eq!(control["utilization_ppm"], Value::Null);
        assert_eq!(control["budget_ns"], 1_000_000);
        assert_eq!(control["used_ns"], 100_000_000);
        assert_eq!((&control["waits"], &control["overrun_max_ns"]), (&2.into(), &100.into()));
        assert_eq!(json["vcpus"][1]["kind"], "io");
        assert_eq!(json["vcpus"][1]["utilization_ppm"], 25_000);
        assert_eq!(json["vcpus"][1]["lockout_max_ns"], 2_000_000);
        assert_eq!(json["vcpus"][2]["vcpu"], "private 0 of diag");
        assert_eq!(json["vcpus"][2]["process"], "diag");
        assert_eq!(json["vcpus"][2]["changes"], 1);
        assert_eq!(json["devices"][0]["device"], "sensor");
        assert_eq!(json["devices"][0]["distance_min_ns"], 1_001_000);
        assert_eq!(json["threads"][1]["cost_max_ns"], 900_000);
        assert_eq!(json["threads"][0]["cost_max_ns"], Value::Null);
        assert_eq!(json["kernel_time"], json!([]));
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
