//! Descriptions that once broke a promise (`tests/cases`): each is refused now, or it holds. Where
//! what is broken is a program's own doing, the run says so.

use super::judge::{Judged, judge_file};
use diapason::failure::{BROKEN, HOLDS};
use diapason::metal::Built;
use diapason::{Failure, Workspace, metal};
use std::fmt::Write;

/// The folder of the cases, below the workspace's root.
const FOLDER: &str = "tests/cases";
/// The page about them.
const PAGE: &str = "docs/cases.md";

/// The right answer to a case.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    RefusedOrHeld,
    /// Nothing is wrong with it.
    Held,
    /// The case makes no sense, or promises what cannot be: the refusal says this.
    Refused(&'static str),
    /// The run names what a program does to itself.
    Told(&'static str),
    /// The run names this, and nothing else is wrong.
    Only(&'static str),
}

/// A case: its file, what it shows, and what became of it before.
struct Case(&'static str, Wanted, &'static str, &'static str);

use Wanted::{Held, Only, Refused, RefusedOrHeld, Told};

/// The fate of a flooded cable before the kernel counted switches to I/O VCPUs.
const WOKEN: &str = "holds; the run breaks `wake-ups`";

const CASES: &[Case] = &[
    Case(
        "f0-one-pipe",
        RefusedOrHeld,
        "a pipe on one of five channels",
        "holds; `usbd` dies at boot",
    ),
    Case("base", RefusedOrHeld, "a concentrator beside tasks of 1 ms", "holds"),
    Case("f1-base", RefusedOrHeld, "the base of `f1-greedy`", "holds, 8 ms are wanted"),
    Case("f1-greedy", RefusedOrHeld, "VCPUs made at run time beside a pipe", "3.544 of 2.899 ms"),
    Case("f1g", RefusedOrHeld, "the same without them", "holds, 1.25 ms"),
    Case("f1g-greedy", RefusedOrHeld, "VCPUs made at run time beside a pipe", "3.295 of 2.722 ms"),
    Case("f1k-greedy", RefusedOrHeld, "the same, with another period", "3.489 of 2.689 ms"),
    Case("f1e-disk0", RefusedOrHeld, "a disk without work", "inside its bound"),
    Case("f1e-disk300", RefusedOrHeld, "a disk whose work is 300 us", "inside its bound"),
    Case("f1e-disk100", RefusedOrHeld, "a disk whose work is 100 us", "inside its bound"),
    Case("f1e-disk1ms", RefusedOrHeld, "a disk whose work is 1 ms", "7.290 of 4.141 ms"),
    Case("f1e-disk3ms", RefusedOrHeld, "a disk whose work is 3 ms", "13.50 of 4.141 ms"),
    Case("manage-lock", RefusedOrHeld, "a lock that nobody can wait for", "a device never found"),
    Case("f2e-noise", RefusedOrHeld, "traffic of channels without a pipe", "1.912 of 1.786 ms"),
    Case("f2e-quiet", RefusedOrHeld, "the same channels, silent", "holds, 0.23 ms"),
    Case("f2l-quiet", RefusedOrHeld, "silent channels, and a long task", "holds"),
    Case(
        "f5-work",
        RefusedOrHeld,
        "a reader that takes 300 us, `work` says 3",
        "772 of 4.4 ms, \"holds\"",
    ),
    Case(
        "f7-edge60",
        RefusedOrHeld,
        "60 us of 2.5 ms, all of it `work`",
        "44.7 of 7.37 ms, \"holds\"",
    ),
    Case(
        "f7-edge100",
        RefusedOrHeld,
        "100 us of 2.5 ms, all of it `work`",
        "25.9 of 7.37 ms, \"holds\"",
    ),
    Case(
        "f7-edge300",
        RefusedOrHeld,
        "300 us of 2.5 ms, all of it `work`",
        "7.86 of 7.59 ms, \"holds\"",
    ),
    Case("f7-edge20", RefusedOrHeld, "20 us of 500 us, all of it `work`", "beyond its bound"),
    Case("f7-tiny-io2", RefusedOrHeld, "an I/O VCPU with 5 % of 40 us", "beyond its bound"),
    Case("f7-tiny-io3", RefusedOrHeld, "an I/O VCPU with 12 % of 20 us", "beyond its bound"),
    Case("f7-tiny-main2", RefusedOrHeld, "a reader with 2 us in 200 us", "beyond its bound"),
    Case("f7-tiny-main3", RefusedOrHeld, "a reader with 2 us in 100 us", "beyond its bound"),
    Case("f7-tiny-io", RefusedOrHeld, "an I/O VCPU with 3 % of 50 us", "95.0 of 28.5 ms"),
    Case("f7-tiny-main", RefusedOrHeld, "a reader with a tiny budget", "beyond its bound"),
    Case("f8-alone", Held, "a job of 960 us of 1 ms", "holds"),
    Case("f8-alone-970", Held, "a job of 970 us of 1 ms", "holds"),
    Case("f8-with-10", RefusedOrHeld, "10 less urgent tasks beside it", "holds"),
    Case("f8-with-30b", RefusedOrHeld, "30 of them beside a job of 940 us", "missed"),
    Case("f8-with-45", RefusedOrHeld, "45 less urgent tasks beside it", "missed"),
    Case("f8-with-60", RefusedOrHeld, "60 less urgent tasks beside it", "missed"),
    Case("f8q-alone", Held, "a job of 970 us of 1 ms, for QEMU", "holds"),
    Case("f8-ringer0", RefusedOrHeld, "a program that sets no timer beside a job", "holds"),
    Case("f8-with-20", RefusedOrHeld, "20 less urgent tasks beside it", "missed"),
    Case("f8-with-30", RefusedOrHeld, "30 less urgent tasks beside it", "189 of 189 missed"),
    Case("f8q", RefusedOrHeld, "45 less urgent tasks beside it", "90 missed"),
    Case("f8-ringer", RefusedOrHeld, "300 timers that ring in a job", "job of 1.519 ms, missed"),
    Case("f10-list2", RefusedOrHeld, "a job in three pieces, a list of 2", "4.623 of 1.311 ms"),
    Case("f10-list3", RefusedOrHeld, "a list of 3", "an alarm"),
    Case("f10-list8", Held, "a list of 8", "holds"),
    Case(
        "t14d-slow",
        RefusedOrHeld,
        "readers whose lists are full",
        "plan holds, the run does not",
    ),
    Case(
        "t2-hub",
        Refused("is behind a hub, and `usbd` serves none"),
        "an interface behind a hub that nobody serves",
        "refused wrongly",
    ),
    Case("t2b-hub", Held, "the same with `hubs`", "refused wrongly"),
    Case(
        "t3-two",
        Refused("`usbd` needs the VCPU `usb-receive1`"),
        "a pipe from a second interface",
        "carries the first one's messages",
    ),
    Case(
        "t3b-controller",
        Refused("is plugged into `xhci2`, but `usbd` drives `xhci`"),
        "an interface at a controller that nobody drives",
        "\"holds\", 0 messages",
    ),
    Case(
        "t6-interval",
        Refused("`usb-receive` is woken more often than its `interval` says"),
        "`interval = \"1s\"` for what moderates at 1 ms",
        "a smaller bound",
    ),
    Case("solo", Held, "a job of 3.8 of 4 ms", "holds"),
    Case("timers", RefusedOrHeld, "64 timers set again every 650 us", "42 of 42 missed"),
    Case(
        "timers2",
        RefusedOrHeld,
        "64 timers set again every 760 us",
        "32 of 32 missed, sim \"holds\"",
    ),
    Case(
        "storm-big",
        RefusedOrHeld,
        "processes with 32 threads and 256 events",
        "9,851 instructions of 3,000, \"holds\"",
    ),
    Case("out", RefusedOrHeld, "two pipes to devices beside tasks of 1 ms", "holds"),
    Case("irq2", Only("hpet"), "a device that interrupts each 1 us, not 1 ms", "18 of 23 missed"),
    Case("fat2c", RefusedOrHeld, "`fat2` without its fault", "0 of 2,702 missed"),
    Case("fat", RefusedOrHeld, "a fault of the largest process", "156,614 instructions"),
    Case("fat2", RefusedOrHeld, "the same beside 30 us of 45", "6 of 2,702 missed"),
    Case("delete", RefusedOrHeld, "a semaphore with 63 waiters is deleted", "17,114 instructions"),
    Case("mail", RefusedOrHeld, "a mailbox with 1,023 messages", "12,471 instructions"),
    Case("mail2", RefusedOrHeld, "the same beside 5 us of 6", "12,471 instructions"),
    Case("box", RefusedOrHeld, "a mailbox that comes and goes", "9,562 instructions"),
    Case("slow-writer", Held, "a pipe to a bus of 125 kbit/s", "no message was sent, holds"),
    Case(
        "fast-receiver",
        Refused("it can hold the next one back for"),
        "a receiver slower than its bus",
        "1,425 of 4,649 lost, holds",
    ),
    Case("full-pipe", Held, "a writer is told late of what went", "258 of 256 under way"),
    Case("many-timers", Held, "11 timers ring before a device's interrupt", "568 of 94 us late"),
    Case(
        "seldom-camera",
        Refused("may look at its camera too seldom"),
        "a bottom half of a camera with less budget than its looks need",
        "a frame 65 ms late, holds",
    ),
    Case("crowd", RefusedOrHeld, "31 threads and 8 VCPUs come and go at once", "not tried"),
    Case("sems", RefusedOrHeld, "one of 1,024 semaphores is asked for", "6,483 instructions"),
    Case(
        "flood",
        Told("victim"),
        "a process that logs without end",
        "the victim's misses are lost",
    ),
    Case("flood0", Told("victim"), "the same without the text", "the misses are named"),
    Case("flood2", Told("victim"), "the same, and a third one faults", "its fault is lost"),
    Case("edf", Held, "every VCPU in one queue by deadline", "holds"),
    Case("over", RefusedOrHeld, "a budget that a core does not have", "refused"),
    Case("two512", RefusedOrHeld, "two hosts that flood a cable, 512 bytes at once", WOKEN),
    Case("two1024", RefusedOrHeld, "the same, 1 KB at once", WOKEN),
    Case("two2048", RefusedOrHeld, "the same, 2 KB at once", WOKEN),
    Case("two65536", RefusedOrHeld, "the same, 64 KB at once", "holds"),
    Case("line4", RefusedOrHeld, "four hosts in a line", "holds"),
    Case("linef", RefusedOrHeld, "four hosts in a line, flooded", "not judged"),
    Case("ring", RefusedOrHeld, "a ring of debug cables", "no link forms, \"holds\""),
    Case(
        "bothdebug",
        Refused("has no port at either end"),
        "a cable between two debug capabilities",
        "refused",
    ),
    Case(
        "twodebug",
        Refused("the debug capability has two cables"),
        "two cables to one debug capability",
        "refused",
    ),
    Case("ud", RefusedOrHeld, "a pipe from a sensor, beside devices of four classes", "refused"),
    Case(
        "sink-slow-server",
        Held,
        "a pipe to an endpoint whose server begins after the writer",
        "2 of 1 under way",
    ),
    Case(
        "sink-late-writer",
        Held,
        "a pipe to an endpoint whose writer has the same period, and is late at times",
        "all packets outside",
    ),
    Case(
        "sink-pestered",
        Held,
        "a program asks the server of two pipes for something without a pause",
        "28.1 of 8.8 ms late",
    ),
    Case(
        "promote",
        Held,
        "a program asks for more of its VCPU than the description says",
        "5.005 of 1.054 ms, \"holds\"",
    ),
    Case(
        "long-section",
        Told("alarm job-late"),
        "a section that is longer than declared",
        "607 of 379 us, \"holds\"",
    ),
    Case(
        "job-often",
        Told("alarm job-late"),
        "jobs come more often than `interval` says",
        "2.004 of 0.879 ms, \"holds\"",
    ),
    Case(
        "job-nobody",
        Only("job on VCPU"),
        "a VCPU with a `job` that nobody does, beside a thread with jobs and no VCPU",
        "holds",
    ),
    Case(
        "tuned-served",
        Refused("`tpipe0.vcpu` is served, and its period changes"),
        "a bottom half that serves the VCPU of a closed tuned pipe",
        "3.011 of 1.683 ms",
    ),
];

/// The answer to a case as it is.
struct Now {
    fine: bool,
    text: String,
}

fn now(built: &Built, workspace: &Workspace, Case(file, wanted, ..): &Case) -> Now {
    let path = workspace.root().join(FOLDER).join(format!("{file}.toml"));
    let first = |why: &str| why.lines().next().unwrap_or_default().to_owned();
    let (fine, text) = match judge_file(built, &path) {
        Judged::Unread(why) | Judged::Refused(why) => {
            let fine = match wanted {
                RefusedOrHeld | Told(_) | Only(_) => true,
                Refused(words) => first(&why).contains(words),
                Held => false,
            };
            (fine, format!("refused: {}", first(&why)))
        }
        Judged::Ran(violations, _) => {
            let said: Vec<String> = violations.iter().map(|it| it.text.clone()).collect();
            let fine = match wanted {
                RefusedOrHeld | Held => said.is_empty(),
                Refused(_) => false,
                Told(name) => said.iter().any(|text| text.contains(name)),
                Only(name) => !said.is_empty() && said.iter().all(|text| text.contains(name)),
            };
            let text = if said.is_empty() { String::from("holds") } else { said.join("; ") };
            (fine, text)
        }
    };
    Now { fine, text }
}

/// Judges all of them. Returns the page about them, and how many are not as they should be.
fn judged(workspace: &Workspace, built: &Built) -> (String, usize) {
    let mut page = String::from(HEAD);
    let mut wrong = 0;
    for case in CASES {
        let now = now(built, workspace, case);
        wrong += usize::from(!now.fine);
        let mark = if now.fine { "" } else { "**not yet**: " };
        let Case(file, _, what, then) = case;
        let line = format!("| `{file}` | {what} | {then} | {mark}{} |", now.text.replace('|', "/"));
        println!("{line}");
        let _ = writeln!(page, "{line}");
    }
    page.push_str(TAIL);
    (page, wrong)
}

/// Judges all of them, and writes the page about them.
///
/// # Errors
/// If nothing could be judged.
pub fn command(workspace: &Workspace) -> Result<u8, Failure> {
    let (page, wrong) = judged(workspace, &metal::build(workspace)?);
    let path = workspace.root().join(PAGE);
    std::fs::write(&path, page)
        .map_err(|error| Failure::io(format!("write {}", path.display()), &error))?;
    println!("{} cases, {wrong} not as they should be", CASES.len());
    Ok(if wrong == 0 { HOLDS } else { BROKEN })
}

/// Judges all of them, and compares the page about them with what is so.
///
/// # Errors
/// The number of cases that are not as they should be, or that the page differs.
pub fn check(workspace: &Workspace, built: &Built) -> Result<(), String> {
    let (page, wrong) = judged(workspace, built);
    if wrong > 0 {
        return Err(format!("{wrong} of {} cases are not as they should be", CASES.len()));
    }
    match std::fs::read_to_string(workspace.root().join(PAGE)) {
        Ok(kept) if kept == page => Ok(()),
        Ok(_) => Err(format!("{PAGE} says something else: `cargo xtask attack cases` writes it")),
        Err(error) => Err(format!("cannot read {PAGE}: {error}")),
    }
}

const HEAD: &str = "# Cases: what once broke a promise

Each description in `tests/cases` broke a promise that `diapason plan` had given, or was refused
wrongly. Each is to be refused now, or to hold: `cargo xtask attack cases` judges all of them, by
what happened to messages and jobs in the simulator, and writes this page.

| case | what it shows | then | now |
|---|---|---|---|
";

/// The cases that a description alone does not show.
const TAIL: &str = "
Some cases need a program that does one thing which no program of a description does. A trial or a \
test does it now:

| case | what it shows | then | now |
|---|---|---|---|
| `seg` | data segment registers carry words between processes | a key is read | trial \
`no selector and no x87 address reaches one who waited` |
| `regs` | a short call leaves kernel addresses in registers | three addresses | trial \
`a call leaves nothing of the kernel's in registers` |
| `slowdev` | the kernel copies 4 KB of device registers in one piece | 880 instructions \
| it copies no registers: `layout::COPYABLE` ends where they begin |
| `wild` | a program whose entry point is not in its code | a real machine stops | \
refused: `abi`, `refuses_an_entry_that_is_not_its_code` |
| `host` | a guest reads and writes the simulator's thread block | the stack canary is \
overwritten | `fs` leads nowhere while a guest runs, and every run says what it trusts |
| `irq` | the HPET in its periodic mode, which the model lacks | 18 of 23 missed | \
`irq2` above, and `an_interrupt_that_comes_too_soon_is_the_last_until_the_next_may_come` \
|
| `f2l-noise` | 8,000 empty frames a second on channels that nobody reads | 244 frames \
lost | such channels are not opened; `f2e-noise` above |
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_description_is_a_case_and_every_case_a_description() {
        let folder = Workspace::find().unwrap().root().join(FOLDER);
        let mut files: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            // Descriptions of single hosts are in a folder of their own.
            .filter(|path| path.is_file())
            .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
            .collect();
        files.sort_unstable();
        let mut cases: Vec<&str> = CASES.iter().map(|case| case.0).collect();
        cases.sort_unstable();
        assert_eq!(files, cases);
    }
}
