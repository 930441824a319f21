//! Each assumption about a socket rings at the first number that is too large, and only the right
//! processes may say how it does.

use super::super::{Assumptions, sample};
use super::*;
use diapason_pipe::measured::{Measurement, Reported};

const UDP: &str = include_str!("../../../../examples/udp.toml");

/// The processes of the example, in its order.
const CONTROL: u64 = 0;
const DRIVE: u64 = 1;
const NET: [u64; 2] = [3, 4];

fn system() -> System {
    diapason_system::parse("udp.toml", UDP).unwrap_or_else(|wrong| panic!("{wrong}"))
}

fn assumptions() -> Assumptions {
    let system = system();
    Assumptions::of(&Plan::of(&system))
}

/// Takes in a report of this process, as the kernel's records say it.
fn say(outcome: &mut Outcome, process: u64, at: u64, said: Measurement) {
    let report = Reported { at: Nanos(at), said };
    outcome.note_measured(process, Reported::of(&report.words()));
}

fn frames(end: FrameEnd, number: u8, count: u64) -> FrameReport {
    let (longest, slowest) = (Nanos(1_000), 3);
    let (offered, passed, link) = (count, count, 1_000);
    FrameReport { offered, passed, longest, slowest, link, ..FrameReport::new(end, number) }
}

/// Returns a run of two seconds in which everybody reported, after changes.
fn run(change: impl Fn(u64, &mut FrameReport)) -> Outcome {
    let mut outcome = Outcome { end: sample::outcome().end, ..Outcome::default() };
    outcome.end.as_mut().unwrap().time_ns = 2_000_000_000;
    for at in [1_000_000_000, 1_900_000_000] {
        for (number, (program, server)) in [CONTROL, DRIVE].into_iter().zip(NET).enumerate() {
            for (process, end) in [
                (server, FrameEnd::Adapter),
                (server, FrameEnd::Server),
                (program, FrameEnd::Program),
            ] {
                let mut report = frames(end, number as u8, at / 1_000_000);
                change(process, &mut report);
                say(&mut outcome, process, at, Measurement::Frames(report));
            }
        }
    }
    outcome
}

fn alarms(outcome: &Outcome) -> Vec<(&'static str, String, u64, u64)> {
    let (assumptions, names) = (assumptions(), Names::of(&system()));
    let of_sockets = assumptions.sockets.iter().flat_map(|it| it.alarms(outcome, &names, 0));
    let of_adapters = assumptions.adapters.iter().flat_map(|it| it.alarms(outcome, &names));
    let all = of_sockets.chain(of_adapters);
    all.map(|alarm| (alarm.name, alarm.of, alarm.observed, alarm.assumed)).collect()
}

/// At `most` nothing rings, and beyond it only this.
fn rings(name: &'static str, of: &str, most: u64, set: impl Fn(u64, &mut FrameReport, u64)) {
    assert_eq!(alarms(&run(|process, report| set(process, report, most))), []);
    let beyond = run(|process, report| set(process, report, most + 1));
    assert_eq!(alarms(&beyond), [(name, of.to_owned(), most + 1, most)]);
}

/// Returns a run in which this process discarded frames at this end.
fn discarding(process: u64, end: FrameEnd, reason: Discard) -> Outcome {
    let mut outcome = run(|_, _| ());
    let mut counts = [0; 16];
    counts[reason as usize % 16] = 7;
    let report = DiscardReport { end, number: 0, part: reason as u8 / 16, counts };
    say(&mut outcome, process, 1_900_000_000, Measurement::Discards(report));
    outcome
}

#[test]
fn each_assumption_rings_at_the_first_number_that_is_too_large() {
    let bound = assumptions().sockets[0].bound.unwrap();
    assert!(bound.seen_ns < bound.whole_ns);
    let is = |process, report: &FrameReport, whose, end| process == whose && report.end == end;
    rings("socket-late", "control", bound.seen_ns, |process, report, ns| {
        if is(process, report, CONTROL, FrameEnd::Program) {
            report.longest = Nanos(ns);
        }
    });
    let slots = assumptions().sockets[1].bound.unwrap().slots;
    rings("socket-buffer", "drive", slots, |process, report, peak| {
        if is(process, report, NET[1], FrameEnd::Server) {
            report.peak = peak as u32;
        }
    });
    rings("socket-contract", "control", 0, |process, report, outside| {
        if is(process, report, NET[0], FrameEnd::Server) {
            report.outside = outside;
        }
    });
    rings("socket-step", "control", 0, |process, report, out_of_step| {
        if is(process, report, NET[0], FrameEnd::Server) {
            report.foreign = out_of_step;
        }
    });
    rings("adapter-contract", "nic1", 0, |process, report, outside| {
        if is(process, report, NET[1], FrameEnd::Adapter) {
            report.outside = outside;
        }
    });
}

#[test]
fn a_server_later_than_its_guard_rings() {
    let mut system = system();
    let terms = GateTerms { guard_ns: 60_000, base_ns: 0, mbit: 1_000, credits: &[], entries: &[] };
    let words = terms.head();
    system.processes[NET[1] as usize].set(GATES_SETTING, &words);
    let assumptions = Assumptions::of(&Plan::of(&system));
    let alarms = |longest| {
        let outcome = run(|process, report| {
            if process == NET[1] && report.end == FrameEnd::Adapter {
                report.longest = Nanos(longest);
            }
        });
        let names = Names::of(&system);
        let all = assumptions.adapters.iter().flat_map(|it| it.alarms(&outcome, &names));
        let all = all.map(|alarm| (alarm.name, alarm.of, alarm.observed, alarm.assumed));
        all.collect::<Vec<_>>()
    };
    assert_eq!(alarms(60_000), []);
    assert_eq!(alarms(60_001), [("adapter-gates", "nic1".to_owned(), 60_001, 60_000)]);
}

#[test]
fn a_link_has_its_speed_and_stays() {
    let link = |speeds: [u32; 2]| {
        let is = move |process, report: &FrameReport| {
            process == NET[1] && report.end == FrameEnd::Adapter
        };
        let outcome = run(|process, report| {
            if is(process, report) {
                report.link = speeds[usize::from(report.offered > 1_000)];
            }
        });
        alarms(&outcome)
    };
    let rang = |observed| vec![("adapter-link", "nic1".to_owned(), observed, 1_000)];
    assert_eq!(link([1_000, 1_000]), []);
    assert_eq!(link([0, 1_000]), [], "a link needs a while to come up");
    assert_eq!(link([1_000, 100]), rang(100));
    assert_eq!(link([100, 1_000]), rang(100));
    assert_eq!(link([1_000, 0]), rang(0));
}

#[test]
fn frames_that_found_no_room_are_lost_and_those_of_strangers_are_not() {
    let lost = |name, of: &str| vec![(name, of.to_owned(), 7, 0)];
    for reason in [Discard::Quota, Discard::Broken] {
        let outcome = discarding(NET[0], FrameEnd::Server, reason);
        assert_eq!(alarms(&outcome), lost("socket-loss", "control"));
    }
    let outcome = discarding(CONTROL, FrameEnd::Program, Discard::Room);
    assert_eq!(alarms(&outcome), lost("socket-loss", "control"));
    let outcome = discarding(NET[0], FrameEnd::Adapter, Discard::NoBuffer);
    assert_eq!(alarms(&outcome), lost("adapter-loss", "nic0"));
    let outcome = discarding(NET[0], FrameEnd::Adapter, Discard::Unregistered);
    assert_eq!(alarms(&outcome), []);
}

/// The drive says that all is well with the control's socket. Nobody believes it.
#[test]
fn nobody_reports_for_another() {
    let honest = |process: u64, report: &mut FrameReport| {
        if process == CONTROL {
            report.longest = Nanos::from_secs(1);
        }
    };
    let mut outcome = run(honest);
    for end in [FrameEnd::Program, FrameEnd::Server, FrameEnd::Adapter] {
        say(&mut outcome, DRIVE, 1_950_000_000, Measurement::Frames(frames(end, 0, 9)));
    }
    let found = alarms(&outcome);
    assert_eq!((found.len(), found[0].0), (1, "socket-late"));
    let names = Names::of(&system());
    let columns = SocketPromise::columns(&outcome, &names);
    assert_eq!(columns.object(&assumptions().sockets[0])["datagrams"], 1_900);
}

#[test]
fn silence_and_sockets_without_datagrams_are_said() {
    let names = Names::of(&system());
    let mut silent = Outcome { end: run(|_, _| ()).end, ..Outcome::default() };
    let found: Vec<&str> = alarms(&silent).iter().map(|alarm| alarm.0).collect();
    let (socket, adapter) = (["socket-unmeasured", "socket-empty"], ["adapter-unmeasured"; 2]);
    assert_eq!(found, [socket, socket, adapter].concat());
    let unmeasured = assumptions().unmeasured(&silent, &names);
    let no = ["no datagram of socket control", "no datagram of socket drive"];
    assert_eq!(unmeasured, no);
    // A short run breaks nothing, and measured nothing either.
    silent.end.as_mut().unwrap().time_ns = 1_000_000_000;
    assert!(alarms(&silent).iter().all(|alarm| alarm.0 != "socket-empty"));
    let measured = run(|_, _| ());
    assert_eq!(assumptions().unmeasured(&measured, &names), [""; 0]);
}

#[test]
fn a_table_has_reasons_in_words() {
    let names = Names::of(&system());
    let outcome = discarding(NET[0], FrameEnd::Server, Discard::Quota);
    let cells = SocketPromise::columns(&outcome, &names).cells(&assumptions().sockets[0], "-");
    assert_eq!(cells[..5], ["control", "control", "1900", "1900", "7 quota"]);
    let object = SocketPromise::columns(&outcome, &names).object(&assumptions().sockets[0]);
    assert_eq!(object["discarded"], json!([{ "reason": "quota", "frames": 7 }]));
    assert_eq!((&object["slowest"], &object["longest_ns"]), (&3.into(), &1_000.into()));
}
