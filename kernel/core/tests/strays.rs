//! A device that goes beyond its grants falls silent, and each process that has it ends as by a
//! fault of its own: at its priority, and with a report.

use crate::support::*;
use diapason_abi::FaultReport;
use diapason_abi::record::Record;
use diapason_core::Id;

const ADDRESS: u64 = 0x20_0000;
const FAULT: u64 = 1 << 63 | 5 << 32 | 0x10;
const CARD: u16 = 1;

/// `boss` (process 0, priority 50) supervises `driver` (30) and `friend` (20), which may have the
/// card, too; `other` (10) has nothing to do with it.
fn plan() -> Plan {
    let plan = Plan::new().process("boss", 50).process("driver", 30).supervised_by(0);
    let plan = plan.process("friend", 20).supervised_by(0).process("other", 10);
    plan.device("bell", 5, false, EVERYBODY).pci("card", 1, 0b110).reports("reports", 4, 0)
}

/// `boss` waits for reports, and the first thread of `driver` runs.
fn booted(experiment: impl FnOnce(&mut Sys<'_>, u64)) {
    run(&plan(), |sys| {
        let (reports, buffer) = (sys.open(Call::MboxCreate, "reports"), sys.address(0x40));
        sys.blocks(Call::MboxReceive, &[reports, buffer, FOREVER]);
        assert_eq!(sys.running_process(), 1);
        experiment(sys, buffer);
    });
}

fn state(sys: &Sys<'_>, process: u16) -> ProcessState {
    sys.host.kernel.processes[Id::new(process)].state
}

fn stray(sys: &mut Sys<'_>, device: u16) {
    sys.host.enter(Cause::Stray(device, ADDRESS, FAULT));
}

#[test]
fn a_driver_that_waits_for_ever_ends_and_its_supervisor_hears_why() {
    booted(|sys, buffer| {
        sys.ok(Call::MapDevice, &[key("card")]);
        assert!(sys.host.machine.masters.contains(&CARD));
        sys.blocks(Call::SleepUntil, &[FOREVER]);
        assert_eq!(sys.running_process(), 2);
        stray(sys, CARD);
        assert!(sys.host.machine.masters.is_empty(), "the device is silent");
        assert_eq!(sys.records(Record::Stray), [[0, CARD.into(), ADDRESS, FAULT]]);
        assert_eq!(state(sys, 1), ProcessState::Faulted);
        assert_eq!(sys.running_process(), 0, "the supervisor runs");
        let bytes = sys.peek(buffer, 64);
        let report = FaultReport::from_bytes(&bytes.try_into().unwrap()).unwrap();
        assert_eq!((report.cause, report.address), (FaultCause::StrayDma, ADDRESS));
        assert_eq!(sys.host.machine.hidden, 0);
        // It starts anew, and its device is its own again.
        sys.ok(Call::ProcCreate, &[key("driver")]);
        sys.blocks(Call::SleepUntil, &[FOREVER]);
        assert_eq!(sys.running_process(), 1);
        sys.ok(Call::MapDevice, &[key("card")]);
        assert!(sys.host.machine.masters.contains(&CARD));
    });
}

#[test]
fn every_process_that_has_the_device_ends_and_no_other() {
    booted(|sys, _| {
        sys.ok(Call::MapDevice, &[key("card")]);
        sys.blocks(Call::SleepUntil, &[1_000]);
        assert_eq!(sys.running_process(), 2);
        sys.ok(Call::MapDevice, &[key("card")]);
        stray(sys, CARD);
        assert_eq!(sys.running_process(), 0);
        // `friend` has the device until it ends, which is as soon as it would go on.
        assert!(sys.host.machine.masters.is_empty(), "the device is silent");
        assert_eq!((state(sys, 1), state(sys, 2)), (ProcessState::Faulted, ProcessState::Running));
        let waits = sys.call(Call::SleepUntil, &[FOREVER]);
        assert_eq!(waits, Outcome::Faulted(FaultCause::StrayDma, ADDRESS));
        assert_eq!(state(sys, 2), ProcessState::Faulted);
        assert_eq!((sys.running_process(), state(sys, 3)), (3, ProcessState::Running));
        assert_eq!(sys.records(Record::Fault).len(), 2);
    });
}

#[test]
fn a_stray_of_nobody_is_only_told() {
    booted(|sys, _| {
        for device in [0, CARD, 0xffff] {
            stray(sys, device);
        }
        let names: Vec<u64> = sys.records(Record::Stray).iter().map(|words| words[1]).collect();
        assert_eq!(names, [0, 1, u64::MAX]);
        assert!(sys.records(Record::Fault).is_empty());
        assert_eq!((sys.running_process(), state(sys, 1)), (1, ProcessState::Running));
    });
}

#[test]
fn a_process_that_has_ended_does_not_end_again() {
    booted(|sys, _| {
        sys.ok(Call::MapDevice, &[key("card")]);
        sys.spawn(20);
        sys.crash(FaultCause::Write, 7);
        stray(sys, CARD);
        assert_eq!((state(sys, 1), sys.records(Record::Fault).len()), (ProcessState::Faulted, 1));
        assert_eq!(sys.host.machine.hidden, 0);
    });
}
