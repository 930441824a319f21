//! Memory given out at run time: heaps and their quotas, shared segments, device registers.

use crate::support::lab::{self, summon};
use crate::support::*;
use diapason_abi::archive::MESSAGES;
use diapason_abi::call::{PARTIAL, mapped};
use diapason_abi::{PAGE, PAGES_PER_CALL, layout};
use diapason_core::host::HOST_BUS;

const PER_CALL: u64 = PAGES_PER_CALL as u64;

fn plan() -> Plan {
    lab::plan().segment("wide", 10, EVERYBODY).segment("small", 2, EVERYBODY)
}

#[test]
fn a_heap_grows_page_by_page_up_to_its_quota() {
    lab::with(&plan(), |sys| {
        let all = sys.host.kernel.free_frames();
        let heap = layout::base(0) + layout::HEAP;
        assert_eq!(sys.ok(Call::MemAlloc, &[1]), heap);
        assert_eq!(sys.ok(Call::MemAlloc, &[PER_CALL]), heap + PAGE as u64);
        for pages in [4, 4, 3] {
            sys.ok(Call::MemAlloc, &[pages]);
        }
        assert_eq!(sys.host.kernel.free_frames(), all - 16);
        let mapped: Vec<u32> = sys.host.machine.heap.keys().map(|(_, page)| *page).collect();
        assert_eq!(mapped, (0..16).collect::<Vec<_>>());
        let frames: std::collections::BTreeSet<_> = sys.host.machine.heap.values().collect();
        assert_eq!(frames.len(), 16, "no frame twice");
        sys.misuses(FaultCause::Quota, Call::MemAlloc, &[1]);
        assert_eq!(sys.host.kernel.free_frames(), all, "the end gives all back");
        assert!(sys.host.machine.heap.is_empty());
    });
}

#[test]
fn the_quota_is_checked_before_anything_is_given() {
    lab::with(&plan().with(|p| p.heap_pages = 3), |sys| {
        sys.park();
        summon(sys);
        let all = sys.host.kernel.free_frames();
        sys.misuses(FaultCause::Quota, Call::MemAlloc, &[4]);
        assert_eq!(sys.host.kernel.free_frames(), all);
    });
}

#[test]
fn a_system_larger_than_its_ids_is_refused_at_boot() {
    let frames = |pages| {
        let all = (0..2).fold(Plan::new(), |plan, i| {
            plan.process(["a", "b"][i], 1).with(|p| p.heap_pages = pages)
        });
        let bytes = all.to_bytes();
        let archive = diapason_abi::archive::Archive::parse(&bytes).unwrap();
        diapason_core::Sizes::of(&archive).map(|sizes| sizes.frames)
    };
    assert_eq!(frames(0x7fff), Some(0xfffe));
    assert_eq!(frames(0x8000), None);
    let events = Plan::new().process("a", 1).with(|p| p.events = 1024);
    let events = (0..63).fold(events, |plan, _| plan.process("x", 1).with(|p| p.events = 1024));
    let bytes = events.to_bytes();
    let archive = diapason_abi::archive::Archive::parse(&bytes).unwrap();
    assert_eq!(diapason_core::Sizes::of(&archive), None, "too many alarms");
}

#[test]
fn impossible_sizes_are_misuse() {
    for pages in [0, PER_CALL + 1, u64::MAX] {
        lab::with(&plan(), |sys| {
            sys.misuses(FaultCause::BadArgument, Call::MemAlloc, &[pages]);
        });
    }
}

#[test]
fn one_process_exhausting_its_quota_takes_nothing_from_another() {
    lab::with(&plan(), |sys| {
        for _ in 0..4 {
            sys.ok(Call::MemAlloc, &[4]);
        }
        summon(sys);
        for _ in 0..4 {
            sys.ok(Call::MemAlloc, &[4]);
        }
        attach(sys, "wide");
        attach(sys, "small");
        assert_eq!(sys.host.kernel.free_frames(), 0, "exactly what was reserved");
    });
}

/// Attaches as the runtime does, calling again while pages are being prepared.
fn attach(sys: &mut Sys<'_>, name: &str) -> u64 {
    loop {
        let result = sys.ok(Call::ShmAttach, &[key(name)]);
        if result & PARTIAL == 0 {
            return result;
        }
    }
}

#[test]
fn a_segment_is_prepared_a_few_pages_at_a_time_and_then_visible() {
    lab::with(&plan(), |sys| {
        assert_eq!(sys.ok(Call::ShmAttach, &[key("wide")]), PARTIAL | 4);
        assert_eq!(sys.ok(Call::ShmAttach, &[key("wide")]), PARTIAL | 8);
        assert!(sys.host.machine.attached.is_empty());
        assert_eq!(sys.err(Call::ShmDetach, &[key("wide")]), Gone, "not attached yet");
        assert_eq!(sys.ok(Call::ShmAttach, &[key("wide")]), layout::segment(0, 0));
        assert_eq!(sys.host.machine.attached.iter().collect::<Vec<_>>(), [&(0, 0)]);
        assert_eq!(sys.host.machine.segments.len(), 10);
        assert_eq!(attach(sys, "wide"), layout::segment(0, 0), "again is the same");
        assert_eq!(attach(sys, "small"), layout::segment(0, 1));
    });
}

#[test]
fn two_processes_may_prepare_one_segment_between_them() {
    lab::with(&plan(), |sys| {
        assert_eq!(sys.ok(Call::ShmAttach, &[key("wide")]), PARTIAL | 4);
        summon(sys);
        assert_eq!(sys.ok(Call::ShmAttach, &[key("wide")]), PARTIAL | 8);
        assert_eq!(sys.ok(Call::ShmAttach, &[key("wide")]), layout::segment(1, 0));
        lab::dismiss(sys);
        assert_eq!(sys.ok(Call::ShmAttach, &[key("wide")]), layout::segment(0, 0));
        assert_eq!(sys.host.machine.attached.len(), 2);
    });
}

#[test]
fn the_last_to_detach_frees_the_memory() {
    lab::with(&plan(), |sys| {
        let all = sys.host.kernel.free_frames();
        attach(sys, "wide");
        summon(sys);
        attach(sys, "wide");
        lab::dismiss(sys);
        assert_eq!(sys.ok(Call::ShmDetach, &[key("wide")]), 0);
        assert_eq!(sys.err(Call::ShmDetach, &[key("wide")]), Gone);
        assert_eq!(sys.host.kernel.free_frames(), all - 10);
        assert_eq!(sys.host.machine.segments.len(), 10);
        summon(sys);
        sys.ok(Call::ShmDetach, &[key("wide")]);
        assert_eq!(sys.host.kernel.free_frames(), all);
        assert!(sys.host.machine.segments.is_empty(), "the next attach maps fresh zero pages");
        assert_eq!(sys.ok(Call::ShmAttach, &[key("wide")]), PARTIAL | 4);
    });
}

#[test]
fn the_end_of_a_process_detaches_it() {
    lab::with(&plan(), |sys| {
        let all = sys.host.kernel.free_frames();
        attach(sys, "wide");
        attach(sys, "small");
        summon(sys);
        attach(sys, "small");
        lab::dismiss(sys);
        sys.crash(FaultCause::Read, 0);
        assert_eq!(sys.host.machine.attached.iter().collect::<Vec<_>>(), [&(1, 1)]);
        assert_eq!(sys.host.kernel.free_frames(), all - 2);
        summon(sys);
        sys.ok(Call::ShmDetach, &[key("small")]);
        assert_eq!(sys.host.kernel.free_frames(), all);
    });
}

#[test]
fn segments_that_are_not_granted_are_misuse() {
    let plan = plan().segment("secret", 1, 0b10);
    for call in [Call::ShmAttach, Call::ShmDetach] {
        for name in ["secret", "nothing", "m1"] {
            lab::with(&plan, |sys| sys.misuses(FaultCause::BadGrant, call, &[key(name)]));
        }
        lab::with(&plan, |sys| sys.misuses(FaultCause::BadGrant, call, &[0]));
    }
}

/// Returns the result of mapping the single page of a device.
fn registers(process: u16, device: u16) -> u64 {
    mapped(layout::device(process, device), 1)
}

#[test]
fn devices_are_mapped_for_those_who_are_granted_them_until_they_end() {
    let plan = plan().device("gpio", 7, false, 0b01).device("shared", 8, false, EVERYBODY);
    lab::with(&plan, |sys| {
        assert_eq!(sys.ok(Call::MapDevice, &[key("gpio")]), registers(0, 1));
        assert_eq!(sys.ok(Call::MapDevice, &[key("gpio")]), registers(0, 1));
        assert_eq!(sys.ok(Call::MapDevice, &[key("shared")]), registers(0, 2));
        summon(sys);
        assert_eq!(sys.ok(Call::MapDevice, &[key("shared")]), registers(1, 2));
        let mapped = sys.host.machine.mapped.iter().copied().collect::<Vec<_>>();
        assert_eq!(mapped, [(0, 1), (0, 2), (1, 2)]);
        assert_eq!(masters(sys), [1, 2]);
        lab::dismiss(sys);
        assert_eq!(sys.call(Call::ThreadExit, &[0]), Outcome::Ended);
        let mapped = sys.host.machine.mapped.iter().copied().collect::<Vec<_>>();
        assert_eq!(mapped, [(1, 2)]);
        assert_eq!(masters(sys), [2], "a device without a driver leaves memory alone");
        summon(sys);
        sys.misuses(FaultCause::BadGrant, Call::MapDevice, &[key("gpio")]);
        assert!(sys.host.machine.mapped.is_empty());
        assert_eq!(masters(sys), []);
    });
}

/// The devices that may access memory by themselves.
fn masters(sys: &Sys<'_>) -> Vec<u16> {
    sys.host.machine.masters.iter().copied().collect()
}

#[test]
fn a_device_the_machine_lacks_is_absent_and_others_are_not() {
    let plan = plan().device("gpio", 7, false, 0b01).device("shared", 8, false, EVERYBODY);
    lab::with(&plan, |sys| {
        sys.host.kernel.lack_devices(0b010);
        for call in [Call::MapDevice, Call::SetIsr] {
            assert_eq!(sys.err(call, &[key("gpio")]), Absent);
        }
        assert_eq!(sys.ok(Call::MapDevice, &[key("shared")]), registers(0, 2));
        assert_eq!(masters(sys), [2]);
        summon(sys);
        sys.misuses(FaultCause::BadGrant, Call::MapDevice, &[key("gpio")]);
    });
}

#[test]
fn the_messages_of_an_absent_device_are_absent() {
    let plan = plan().pci("card", 2, EVERYBODY).pci("other", 1, EVERYBODY);
    for (lacking, absent) in
        [(0b010, ["card", "card.0", "card.1"]), (0b01_0000, ["other", "other.0", ""])]
    {
        lab::with(&plan, |sys| {
            sys.host.kernel.lack_devices(lacking);
            for name in ["card.0", "card.1", "other.0"] {
                let answer = sys.call(Call::SetIsr, &[key(name)]);
                let lacks = answer == Outcome::Returned(Err(Absent));
                assert_eq!(lacks, absent.contains(&name), "{name}: {answer:?}");
            }
        });
    }
}

#[test]
fn each_message_has_an_event_of_its_own() {
    lab::with(&plan().pci("card", 2, 0b01), |sys| {
        assert_eq!(sys.err(Call::SetIsr, &[key("card")]), Busy, "it has no line");
        let [first, second] = ["card.0", "card.1"].map(|name| sys.ok(Call::SetIsr, &[key(name)]));
        assert_eq!(sys.err(Call::SetIsr, &[key("card.1")]), Busy);
        let open = |sys: &Sys<'_>, irq| sys.host.machine.irqs.contains(&irq);
        assert!(open(sys, MESSAGES) && open(sys, MESSAGES + 1));
        sys.host.enter(Cause::Irq(3));
        assert_eq!(sys.err(Call::EventWait, &[first, 0]), WouldBlock);
        assert_eq!(sys.ok(Call::EventWait, &[second, 0]), 1);
        sys.ok(Call::EventDelete, &[first]);
        assert!(!open(sys, MESSAGES), "held back while nobody has it");
    });
}

/// A plan with a segment for devices between two others.
fn with_rings() -> Plan {
    plan().segment("rings", 6, 0b01).for_devices().segment("buffers", 3, EVERYBODY).for_devices()
}

#[test]
fn memory_for_devices_is_in_one_piece_and_stays_its_own() {
    lab::with(&with_rings(), |sys| {
        let all = sys.host.kernel.free_frames();
        assert_eq!(sys.err(Call::ShmBus, &[key("rings")]), Gone, "not attached yet");
        for name in ["buffers", "rings"] {
            attach(sys, name);
        }
        assert_eq!(sys.host.kernel.free_frames(), all, "nothing came from the pool of all");
        let bus = |frame| HOST_BUS + frame * PAGE as u64;
        assert_eq!(sys.ok(Call::ShmBus, &[key("rings")]), mapped(bus(0), 6));
        assert_eq!(sys.ok(Call::ShmBus, &[key("buffers")]), mapped(bus(6), 3));
        let index = |name| if name == "rings" { 2 } else { 3 };
        for (name, first, pages) in [("rings", 0, 6), ("buffers", 6, 3)] {
            for page in 0..pages {
                let frame = sys.host.machine.segments[&(index(name), page)];
                assert_eq!(u32::from(frame), first + page, "{name}");
            }
        }
        sys.ok(Call::ShmDetach, &[key("rings")]);
        assert_eq!(sys.host.kernel.free_frames(), all, "and nothing went there");
        assert_eq!(sys.err(Call::ShmBus, &[key("rings")]), Gone);
        assert_eq!(sys.ok(Call::ShmAttach, &[key("rings")]), PARTIAL | 4, "zeroed again");
        attach(sys, "rings");
        assert_eq!(sys.ok(Call::ShmBus, &[key("rings")]), mapped(bus(0), 6));
    });
}

#[test]
fn only_memory_for_devices_has_an_address_for_them() {
    for name in ["wide", "nothing", "m1"] {
        let bus = |sys: &mut Sys<'_>| {
            attach(sys, "wide");
            sys.misuses(FaultCause::BadGrant, Call::ShmBus, &[key(name)]);
        };
        lab::with(&with_rings(), bus);
    }
    lab::with(&with_rings(), |sys| {
        summon(sys);
        sys.misuses(FaultCause::BadGrant, Call::ShmBus, &[key("rings")]);
    });
}

#[test]
fn memory_in_common_takes_no_frames_and_outlives_whoever_has_it() {
    let plan = plan().segment("common", 200, EVERYBODY).in_common();
    lab::with(&plan, |sys| {
        let (all, index) = (sys.host.kernel.free_frames(), 2);
        let address = layout::segment(0, index);
        for _ in 0..2 {
            assert_eq!(sys.ok(Call::ShmAttach, &[key("common")]), address, "whole at once");
            sys.ok(Call::ShmDetach, &[key("common")]);
        }
        assert_eq!(sys.host.kernel.free_frames(), all);
        assert!(sys.host.machine.segments.is_empty(), "the core prepares nothing");
        sys.misuses(FaultCause::BadGrant, Call::ShmBus, &[key("common")]);
    });
}
