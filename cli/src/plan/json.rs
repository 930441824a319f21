//! A plan for programs. `docs/plan.md` documents the format; fields may be added, never renamed or
//! given another unit.

use super::view::View;
use super::{bus, can, states, tuned};
use diapason_analysis::server::Queue;
use diapason_pipe::bill::Item;
use diapason_plan::core::queue_name;
use diapason_plan::pipes::Piped;
use diapason_plan::{Sum, Verdict, allocate};
use diapason_system::{Diagnostics, MachineProfile, PipeDirection, PipeSpec, ServerSpec, System};
use serde_json::{Value, json};

/// The version of the format.
const FORMAT: u32 = 1;

/// Returns the object of all hosts or cores.
pub(super) fn result(holds: bool, parts: String, each: Vec<Value>) -> Value {
    json!({ "format": FORMAT, "result": "plan", "holds": holds, parts: each })
}

/// Returns the profile of the computer that is planned for.
fn measured(machine: &MachineProfile) -> Value {
    json!({
        "processor": machine.processor,
        "real": machine.real,
        "kernel": format!("{:016x}", machine.kernel),
        "measured_ns": machine.measured.0,
        "clock_hz": machine.clock_hz,
        "slowest": machine.slowest,
        "late_ns": machine.late.0,
        "interrupt_ns": machine.interrupt.map(|time| time.0),
        "register_ns": machine.register.map(|time| time.0),
        "gap_ns": machine.gap.map(|gap| gap.longest.0),
        "gap_distance_ns": machine.gap.map(|gap| gap.apart.0),
        "cores": machine.cores(),
        "walk_alone_ns": machine.stress.map(|stress| stress.alone.0),
        "walk_ns": machine.stress.map(|stress| stress.beside.0),
        "ring_ns": machine.stress.and_then(|stress| stress.ring).map(|ring| ring.0),
    })
}

impl View<'_> {
    /// Everything, as one object.
    #[must_use]
    pub fn to_json(&self, system: &System) -> Value {
        let core = &self.core.system;
        let findings: Vec<Value> = self.findings.iter().flat_map(finding).collect();
        json!({
            "format": FORMAT,
            "result": "plan",
            "system": system.name,
            "holds": self.holds(),
            "promises_nothing": self.verdict() == Verdict::PromisesNothing,
            "findings": findings,
            "admission": if system.scheduling.exact { "exact" } else { "closed" },
            "clock_hz": self.costs.clock_hz(),
            "machine": system.machine.as_ref().map(measured),
            "kernel": {
                "longest_path_ns": core.kernel_section.0,
                "top_half_ns": self.costs.top_half().0,
                "switch_ns": core.switch.0,
            },
            "vcpus": self.vcpus(system),
            "pipes": self.piped(system),
            "sockets": self.socketed(system),
            "tpipes": tuned::to_json(system),
            "states": states::to_json(system),
            "chains": self.chained(system),
            "buses": bus::to_json(&self.buses, system),
            "modes": self.moded(system),
            "cans": can::to_json(&self.cans, system),
            "utilization_ppm": self.utilization_ppm(),
            "tests": {
                "exact": { "holds": self.exact.is_ok() },
                "equation_1": sum(self.equation_one),
                "wide": sum(self.wide),
            },
            "margin_permille": self.margin(),
            "cheapest_queues": self.cheapest().map(|queues| self.queues(system, queues)),
            "witnesses": [],
        })
    }

    fn piped(&self, system: &System) -> Vec<Value> {
        let named = system.pipes.iter().zip(&self.pipes);
        let pipe = |(pipe, piped): (&PipeSpec, &Piped)| {
            let bill = piped.bill.as_ref().ok();
            let items = bill.map(|bill| {
                let item = |item: &Item| {
                    let (what, basis) = (item.what.name(), item.basis.to_string());
                    json!({ "item": what, "ns": item.value.0, "basis": basis })
                };
                bill.items().iter().map(item).collect::<Vec<Value>>()
            });
            json!({
                "pipe": pipe.name,
                "to_device": pipe.way == PipeDirection::ToDevice,
                "channel": pipe.number,
                "rate": pipe.rate,
                "wanted_ns": pipe.latency_ns,
                "bound_ns": bill.map(|bill| bill.total.0),
                "least_ns": bill.map(|bill| bill.least.0),
                "slots": bill.map(|bill| bill.slots),
                "in_device": bill.map(|bill| bill.device),
                "equation_9_ns": piped.equation_nine.map(|time| time.0),
                "items": items,
            })
        };
        named.map(pipe).collect()
    }

    fn vcpus(&self, system: &System) -> Vec<Value> {
        let numbered = (0u16..).zip(&system.vcpus);
        let vcpu = |(number, vcpu): (u16, &diapason_system::VcpuSpec)| {
            let place = |list: &[u16]| list.iter().position(|other| *other == number);
            let mut value = match &vcpu.server {
                ServerSpec::Main {
                    budget_ns,
                    period_ns,
                    replenishments,
                    background,
                    job_ns,
                    ..
                } => {
                    let main = place(&self.core.mains);
                    let response = main.and_then(|main| self.response(main));
                    let job = main.and_then(|main| self.job(main));
                    json!({
                        "vcpu": vcpu.name,
                        "kind": "main",
                        "budget_ns": budget_ns,
                        "period_ns": period_ns,
                        "replenishments": replenishments,
                        "background": background,
                        "job_ns": job_ns,
                        "job_done_ns": job.map(|job| job.done.0),
                        "job_every_ns": job.map(|job| job.every.0),
                        "job_help_ns": job.map(|job| job.help.0),
                        "response_ns": response.map(|response| response.response.0),
                        "response_is_exact": response.map(|response| response.exact),
                    })
                }
                ServerSpec::Io { utilization_ppm, cap_ns, interval_ns, wakes, serves } => {
                    let grant = place(&self.core.ios).map(|io| self.grant(io));
                    let serves: Vec<_> =
                        serves.iter().filter_map(|number| system.vcpu_name(*number)).collect();
                    json!({
                        "vcpu": vcpu.name,
                        "kind": "io",
                        "utilization_ppm": utilization_ppm,
                        "cap_ns": cap_ns,
                        "interval_ns": interval_ns,
                        "wakes": wakes,
                        "serves": serves,
                        "grant_ns": grant.map(|(grant, _)| grant.0),
                        "cycle_ns": grant.map(|(_, cycle)| cycle.0),
                    })
                }
            };
            let by_deadline = vcpu.queue < system.scheduling.dp_queues;
            let queue = if by_deadline { Queue::Dp(vcpu.queue) } else { Queue::Fp };
            value["queue"] = queue_name(queue).into();
            value
        };
        numbered.map(vcpu).collect()
    }

    fn queues(&self, system: &System, queues: &[Queue]) -> Value {
        let names: Vec<&str> =
            self.core.mains.iter().filter_map(|number| system.vcpu_name(*number)).collect();
        let of: serde_json::Map<String, Value> = names
            .iter()
            .zip(queues)
            .map(|(name, queue)| ((*name).to_owned(), queue_name(*queue).into()))
            .collect();
        json!({ "of": of, "line": allocate::lines(queues, &names) })
    }
}

fn sum(sum: Sum) -> Value {
    let (wanted, bound) = sum.form().ppm();
    let applies = matches!(sum, Sum::Says(_));
    json!({ "wanted_ppm": wanted, "bound_ppm": bound, "applies": applies, "holds": sum.holds() })
}

/// Returns the problems of a finding as objects.
pub(super) fn finding(found: &Diagnostics) -> Vec<Value> {
    let items = found.items().into_iter();
    items
        .map(|item| {
            json!({
                "what": item.title, "file": item.file, "line": item.line, "column": item.column,
                "remedy": item.help,
            })
        })
        .collect()
}
