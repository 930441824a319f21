//! The run's outcome for programs. The format is documented in `docs/development.md`; fields may
//! be added, never renamed or given another unit.

use super::{
    AdapterPromise, Assumptions, CameraRow, CanMessagePromise, ChainPromise, DeviceRow, FaultEvent,
    HeardPromise, KernelRow, LinkRow, ModePromise, NetworkRow, Outcome, PlugRow, ProcessRow,
    RaisedAlarm, SocketPromise, StrayRow, ThreadRow, VcpuRow, pipes,
};
use crate::names::Names;
use serde_json::{Value, json};

/// The version of the format.
pub(crate) const FORMAT: u32 = 1;

impl Outcome {
    /// Everything, as one object. `findings` are the reasons why the run does not hold, `alarms`
    /// among them.
    #[must_use]
    pub fn to_json(
        &self,
        system: &str,
        names: &Names,
        findings: &[String],
        alarms: &[RaisedAlarm],
        promised: &Assumptions,
    ) -> Value {
        let time = self.end.map(|end| end.time_ns);
        let injected = self.lives().flat_map(|life| &life.injected);
        let injected = injected.map(|(time, what)| json!({ "time_ns": time, "what": what }));
        json!({
            "format": FORMAT,
            "result": "run",
            "system": system,
            "holds": findings.is_empty(),
            "findings": findings,
            "alarms": alarms,
            "time_ns": time,
            "idle_ns": self.end.map(|end| end.idle_ns),
            "kernel": self.end,
            "longest_kernel_path": self.longest_path,
            "kernel_time": KernelRow::columns(0).objects(&self.kernel),
            "threads": ThreadRow::columns(names, 0).objects(&self.threads),
            "vcpus": VcpuRow::columns(names, 0).objects(&self.vcpus),
            "devices": DeviceRow::columns(names).objects(&self.devices),
            "pipes": pipes::objects(&promised.pipes, self, names),
            "chains": ChainPromise::columns(self).objects(&promised.chains),
            "processes": ProcessRow::columns(names).objects(&self.processes),
            "faults": FaultEvent::columns(names).objects(&self.faults),
            "drivers": self.drivers(),
            "stray_accesses": StrayRow::columns(names).objects(&self.stopped),
            "injected": injected.collect::<Value>(),
            "links": LinkRow::columns(names).objects(&self.links),
            "network": NetworkRow::columns(names).objects(&self.network),
            "usb_devices": PlugRow::columns(names).objects(&self.plugs),
            "cameras": CameraRow::columns(names).objects(&self.cameras),
            "modes": ModePromise::columns(self, names).objects(&promised.usb.modes),
            "sockets": SocketPromise::columns(self, names).objects(&promised.sockets),
            "adapters": AdapterPromise::columns(self, names).objects(&promised.adapters),
            "can_messages": CanMessagePromise::columns(self, names).objects(&promised.messages),
            "can_heard": HeardPromise::columns(self, names).objects(&promised.heard),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn the_fields_are_those_documented() {
        let alarm = RaisedAlarm {
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
            &sample::assumptions(),
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
