//! The measurements of a simulation, besides the records of the kernel: the use of buses, the times
//! of jobs, and the times of messages on each part of their way.

use super::messages::{Seen, render_stages, stages_to_json};
use super::usage::Usage;
use crate::chart::{Distribution, cdf, histogram};
use crate::commands::Addition;
use crate::failure::Failure;
use crate::session::{FinishedRun, Session};
use diapason_abi::Nanos;
use serde_json::Value;
use std::path::Path;

/// The measurements of a run.
pub(crate) struct Measured<'a> {
    pub usage: &'a [Usage],
    pub jobs: &'a [Distribution],
    /// The stages of each pipe's messages, if they were asked for.
    pub stages: Option<&'a [Seen]>,
}

impl Measured<'_> {
    /// Returns all of it as text and as JSON.
    pub fn addition(&self, session: &Session, run: &FinishedRun) -> Addition {
        let end = Nanos(run.outcome.end.map_or(0, |end| end.time_ns));
        let system = &session.system;
        let stages = self.stages.map(|seen| render_stages(system, seen, &session.names));
        let jobs = self.jobs.iter().map(histogram::terminal);
        let parts = stages.into_iter().chain([Usage::render(self.usage, end)]).chain(jobs);
        let text = parts.filter(|part| !part.is_empty()).collect::<Vec<String>>().join("\n");
        let buses = ("buses", Usage::to_json(self.usage, end));
        let jobs = Value::Array(self.jobs.iter().map(Distribution::to_json).collect());
        let stages = self.stages.map(|seen| ("stages", stages_to_json(system, seen)));
        let json = [buses, ("responses", jobs)].into_iter().chain(stages);
        Addition { text, json: json.map(|(name, value)| (name.to_owned(), value)).collect() }
    }
}

/// A histogram for each thread and the distribution functions of all, as files.
///
/// # Errors
/// If they cannot be written.
pub fn pictures(folder: &Path, jobs: &[Distribution]) -> Result<(), Failure> {
    let failed = |error| Failure::io(format!("write pictures into {}", folder.display()), &error);
    std::fs::create_dir_all(folder).map_err(failed)?;
    for of in jobs {
        let name = of.name.replace(|c: char| !c.is_ascii_alphanumeric() && c != '-', "_");
        let path = folder.join(format!("responses-{name}.svg"));
        std::fs::write(path, histogram::svg(of)).map_err(failed)?;
    }
    let all = cdf::svg("from release to end", jobs);
    std::fs::write(folder.join("responses.svg"), all).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::super::buses;
    use super::super::messages::Seen;
    use super::*;
    use crate::commands::as_json;
    use crate::console::Line;
    use crate::documented::agrees;
    use crate::outcome::{CameraRow, LinkRow, LongestPath, NetworkRow, PlugRow, sample};
    use crate::qemu::MachineEnding;
    use diapason_abi::record::Record;
    use diapason_bus::{Picos, Speed};
    use diapason_pipe::measured::{
        CameraReport, DeviceReport, DiscardReport, Fate, FrameEnd, LinkReport, Measurement,
        NetworkReport, NetworkStep, Reported,
    };
    use diapason_sim::{BusPacket, PacketOutcome, TapTraffic};
    use diapason_usb::context::EndpointKind;

    fn usage() -> Usage {
        let (start, end) = (Picos::ZERO, Picos(1));
        let (kind, outcome) = (EndpointKind::BulkIn, PacketOutcome::Moved);
        let packet =
            BusPacket { start, end, bus: 0, slot: 1, endpoint: 5, kind, bytes: 9, outcome };
        let mut usage = Usage::new("xhci".into());
        let (packets, buses) = (vec![packet], vec![(Speed::High, false)]);
        usage.add(&TapTraffic { packets, buses, ..TapTraffic::default() });
        usage
    }

    /// Returns a run in which everything that can be reported was.
    fn run() -> FinishedRun {
        let mut outcome = sample::outcome();
        outcome.note(&Line::parse(b"~1c 0 64 f4240 c8 190"));
        // Threads of a VCPU ran more often than their processor allows.
        outcome.vcpus[0].overrun_max_ns = u64::MAX;
        outcome.longest_path = Some(LongestPath { instructions: 1, cause: 1 });
        outcome.injected.push((1, "a fault".into()));
        let (process, worked) = (0, true);
        outcome.links.push(LinkRow {
            process,
            last: LinkReport::default(),
            at_ns: 1,
            gone: 0,
            first_gone: None,
        });
        outcome.cameras.push(CameraRow::new(process, CameraReport::default(), Nanos::ZERO));
        let last = DeviceReport { connector: 1, route: 0, identity: (1, 2), fate: Fate::Works };
        outcome.plugs.push(PlugRow { process, last, worked });
        let step = NetworkReport { step: NetworkStep::Late, port: 1, peer: 1 };
        outcome.network.push(NetworkRow::new(process, 1, step));
        outcome.note(&Line::Record(Record::Confined, vec![0, 1]));
        outcome.note(&Line::Record(Record::Stray, vec![1, 0, 4096, 5 << 32]));
        FinishedRun { ending: MachineEnding::Finished, outcome, flight: None, served: None }
    }

    fn session(example: &str) -> Session {
        let path = format!("{}/../examples/{example}", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(&path).unwrap();
        Session::unbuilt(diapason_system::parse(&path, &text).unwrap())
    }

    /// Returns the result of a run in which the server of an adapter discarded frames.
    fn of_sockets() -> Value {
        let session = session("udp.toml");
        let mut run = run();
        let processes = &session.system.processes;
        let server = processes.iter().position(|it| it.name == "net0").unwrap() as u64;
        for end in [FrameEnd::Adapter, FrameEnd::Server] {
            let report = DiscardReport { end, number: 0, part: 0, counts: [1; 16] };
            let report = Reported { at: Nanos(1), said: Measurement::Discards(report) };
            let words = [server].into_iter().chain(report.words()).collect();
            run.outcome.note(&Line::Record(Record::Measured, words));
        }
        let measured = Measured { usage: &[usage()], jobs: &[], stages: None };
        let addition = measured.addition(&session, &run);
        as_json(&session, &run, &session.judge(&run), addition)
    }

    /// Returns the result of a run of an example that needs nothing more.
    fn of(example: &str) -> Value {
        let (session, run) = (session(example), run());
        let measured = Measured { usage: &[usage()], jobs: &[], stages: None };
        let addition = measured.addition(&session, &run);
        as_json(&session, &run, &session.judge(&run), addition)
    }

    #[test]
    fn the_keys_of_a_run_are_documented() {
        let session = session("can-gateway.toml");
        let run = run();
        let bill =
            |piped: &diapason_plan::pipes::Piped| Seen::new(piped.bill.as_ref().ok().cloned());
        let seen: Vec<Seen> = session.plan.pipes.iter().map(bill).collect();
        let jobs = [Distribution::new("job".into(), vec![1], None)];
        let measured = Measured { usage: &[usage()], jobs: &jobs, stages: Some(&seen) };
        let addition = measured.addition(&session, &run);
        let json = as_json(&session, &run, &session.judge(&run), addition);
        agrees(
            include_str!("../../../docs/development.md"),
            "JSON of `run`",
            &[
                json,
                of_sockets(),
                of("can-controller.toml"),
                of("can-dashboard.toml"),
                of("modes.toml"),
                buses::of_nothing(),
            ],
        );
    }
}
