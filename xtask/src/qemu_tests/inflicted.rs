//! Faults on command, in the simulator: after each kind, the right recovery or the right alarm.

use super::{Observed, QemuTest};
use diapason_ether::Discard;

const CONCENTRATOR: &str = "examples/can-concentrator.toml";
/// The system whose readers insist on every frame.
const WHOLE: &str = "tests/systems/whole.toml";
/// The system whose USB server may crash.
const SERVER: &str = "tests/systems/server.toml";
const UDP: &str = "examples/udp.toml";
const VCPUS: &str = "examples/vcpus.toml";
/// The system that keeps the time of another node of its bus.
const ON_TIME: &str = "examples/can-mts-host.toml";

/// When the fault comes: between two reports of the readers.
const AT_NS: u64 = 2_500_000_000;
/// Frames of channel 4 in a second.
const RATE: u64 = 3_194;

/// A test with one fault, which runs for two seconds more.
const fn after(
    name: &'static str,
    system: &'static str,
    faults: &'static [&'static str],
    check: fn(&[Observed]) -> Result<(), String>,
) -> QemuTest {
    let horizon_ns = AT_NS + 2_000_000_000;
    QemuTest { horizon_ns, faults, ..QemuTest::simulated(name, system, check) }
}

/// The tests of this file: one for each kind.
pub const TESTS: &[QemuTest] = &[
    after("fault: unplug", CONCENTRATOR, &["2500ms unplug interface 100ms"], replugged),
    after("fault: stall", CONCENTRATOR, &["2500ms stall interface 100ms"], gap),
    after("fault: damage", CONCENTRATOR, &["2500ms damage interface 100ms"], gap),
    after("fault: lie", CONCENTRATOR, &["2500ms lie interface 3 300ms"], lied),
    after("fault: link-loss", CONCENTRATOR, &["2500ms link-loss interface"], replugged),
    after("fault: fast-clock", CONCENTRATOR, &["2500ms fast-clock interface 20000"], fast),
    after("fault: slow-clock", CONCENTRATOR, &["2500ms slow-clock interface 20000"], slow),
    after("fault: can-errors", WHOLE, &["2500ms can-errors interface 20 4"], unharmed),
    after("fault: babble", CONCENTRATOR, &["2500ms babble interface 200ms 4"], babbled),
    after("fault: bus-off", CONCENTRATOR, &["2500ms bus-off interface 4"], reopened),
    after("fault: lost-interrupt", CONCENTRATOR, &["2500ms lost-interrupt xhci"], gap),
    after("fault: late-interrupt", WHOLE, &["2500ms late-interrupt xhci 3ms"], distance),
    after("fault: double-interrupt", WHOLE, &["2500ms double-interrupt xhci 200us"], distance),
    after("fault: system-error", CONCENTRATOR, &["2500ms system-error xhci"], died),
    after("fault: controller-error", CONCENTRATOR, &["2500ms controller-error xhci"], died),
    after("fault: stray-dma", WHOLE, &["2500ms stray-dma xhci"], strayed),
    after("fault: flood", UDP, &["2500ms flood nic1 5000 100ms"], flooded),
    after("fault: overrun", VCPUS, &["2500ms overrun sensors 10 100ms"], contained),
    after("fault: crash", SERVER, &["2500ms crash usbd"], restarted),
    after("fault: node-reset", ON_TIME, &["2500ms node-reset frame-unit 300ms"], untimed),
    after("fault: node-deaf", ON_TIME, &["2500ms node-deaf motor-left 300ms"], unmoved),
    after("fault: reboot", SERVER, &["2500ms reboot 100ms"], rebooted),
];

/// Returns the one boot, in which the one fault came when it should.
fn one(boots: &[Observed]) -> Result<&Observed, String> {
    let [boot] = boots else { return Err("one boot is needed".into()) };
    let injected: Vec<_> = boot.run.outcome.lives().flat_map(|life| &life.injected).collect();
    match injected.first() {
        Some((AT_NS, _)) => Ok(boot),
        _ => Err(format!("the faults that came: {injected:?}")),
    }
}

/// Returns how often the server said this.
fn said(boot: &Observed, text: &str) -> usize {
    boot.log("usbd").into_iter().filter(|line| line.contains(text)).count()
}

fn must(boot: &Observed, text: &str, times: usize) -> Result<(), String> {
    match said(boot, text) {
        found if found == times => Ok(()),
        found => Err(format!("the server said `{text}` {found} times, not {times}")),
    }
}

/// Frames of channel 4 at each report, and how many were missing.
fn reports(boot: &Observed) -> Result<Vec<(u64, u64)>, String> {
    let reports = boot.pipe_reports("reader-4");
    let found: Vec<(u64, u64)> =
        reports.iter().map(|report| (report.messages, report.lost.into())).collect();
    if found.len() == 4 { Ok(found) } else { Err(format!("the reader reported {found:?}")) }
}

/// In the last second, the frames of a whole one.
fn flows(boot: &Observed) -> Result<(), String> {
    let reports = reports(boot)?;
    let frames = reports[3].0 - reports[2].0;
    let fine = frames + 2 >= RATE;
    if fine { Ok(()) } else { Err(format!("only {frames} frames in the last second")) }
}

/// Nothing was broken but promises of pipes, each with its alarm; loss among them, if some was.
fn answered(boot: &Observed, loses: bool) -> Result<(), String> {
    let findings = boot.holds().err().unwrap_or_default();
    let other = findings.lines().find(|finding| !finding.starts_with("alarm pipe-"));
    if let Some(other) = other {
        return Err(format!("it broke {other}"));
    }
    if loses && !findings.contains("alarm pipe-loss") {
        return Err(format!("nobody rang for what was lost: {findings}"));
    }
    Ok(())
}

fn replugged(boots: &[Observed]) -> Result<(), String> {
    let boot = one(boots)?;
    must(boot, "a CAN interface is gone", 1)?;
    must(boot, "can4: open", 2)?;
    flows(boot)?;
    answered(boot, true)
}

/// Frames are missing, which the reader says, and then come again.
fn gap(boots: &[Observed]) -> Result<(), String> {
    let boot = one(boots)?;
    let reports = reports(boot)?;
    if reports[1].1 != 0 || reports[2].1 == 0 {
        return Err(format!("missing before and after: {reports:?}"));
    }
    flows(boot)?;
    answered(boot, true)
}

fn lied(boots: &[Observed]) -> Result<(), String> {
    let boot = one(boots)?;
    must(boot, "a device nobody serves", 1)?;
    must(boot, "can4: open", 2)?;
    flows(boot)?;
    answered(boot, true)
}

/// Frames of the last second, for a clock of the interface that goes wrong by 2 %.
fn drifted(boots: &[Observed], expected: u64) -> Result<(), String> {
    let boot = one(boots)?;
    let reports = reports(boot)?;
    let frames = reports[3].0 - reports[2].0;
    if frames.abs_diff(expected) > 4 || reports[3].1 != reports[0].1 {
        return Err(format!("{frames} frames, and not {expected}: {reports:?}"));
    }
    answered(boot, false)
}

fn fast(boots: &[Observed]) -> Result<(), String> {
    drifted(boots, RATE * 102 / 100)
}

fn slow(boots: &[Observed]) -> Result<(), String> {
    drifted(boots, RATE * 98 / 100)
}

/// Readers that insist find nothing wrong, and nothing rings.
fn unharmed(boots: &[Observed]) -> Result<(), String> {
    let boot = one(boots)?;
    flows(boot)?;
    boot.holds()
}

/// The babbler's frames come on its channel, its senders lose some, and the next second is whole.
fn babbled(boots: &[Observed]) -> Result<(), String> {
    let boot = one(boots)?;
    let reports = reports(boot)?;
    if reports[2].0 - reports[1].0 < RATE + 500 {
        return Err(format!("nobody babbled: {reports:?}"));
    }
    flows(boot)?;
    answered(boot, true)
}

fn reopened(boots: &[Observed]) -> Result<(), String> {
    let boot = one(boots)?;
    must(boot, "can4: closed: BusOff", 1)?;
    must(boot, "can4: open", 2)?;
    must(boot, "can3: open", 1)?;
    flows(boot)?;
    answered(boot, true)
}

/// This and nothing else was broken.
fn broke(boot: &Observed, finding: &str) -> Result<(), String> {
    match boot.holds() {
        Err(found) if found.lines().count() == 1 && found.contains(finding) => Ok(()),
        Err(found) => Err(format!("it broke {found}")),
        Ok(()) => Err("nothing was noticed".into()),
    }
}

/// Every frame came, and the assumption that does not hold rings. An interrupt that is held back
/// wakes its thread once more, so `wake-ups` may ring, too.
fn distance(boots: &[Observed]) -> Result<(), String> {
    let boot = one(boots)?;
    flows(boot)?;
    let found = boot.holds().err().unwrap_or_default();
    let distance = |line: &&str| line.starts_with("alarm interrupt-distance: device xhci");
    let expected = |line: &str| distance(&line) || line.starts_with("alarm wake-ups: VCPU usb-");
    match found.lines().find(distance) {
        Some(_) if found.lines().all(expected) => Ok(()),
        _ => Err(format!("it broke {found}")),
    }
}

fn died(boots: &[Observed]) -> Result<(), String> {
    let boot = one(boots)?;
    must(boot, "the controller died", 1)?;
    must(boot, "can4: open", 2)?;
    flows(boot)?;
    answered(boot, true)
}

/// Checks the device and address of the access. Nobody's memory changed, so that no reader
/// complains.
fn strayed(boots: &[Observed]) -> Result<(), String> {
    let boot = one(boots)?;
    if boot.run.outcome.strays.first().map(|stray| stray.0) != Some(AT_NS) {
        return Err(format!("strays: {:?}", boot.run.outcome.strays));
    }
    flows(boot)?;
    broke(boot, "device xhci used memory that nobody has, at 0xdead0000")
}

/// Checks that the process that overruns is late itself, and a process with another budget is not.
fn contained(boots: &[Observed]) -> Result<(), String> {
    let boot = one(boots)?;
    boot.never_late(&["controller", "actuators", "supervisor"])?;
    match boot.never_late(&["sensors"]) {
        Err(_) => Ok(()),
        Ok(()) => Err("nobody overran".into()),
    }
}

/// The stranger is found out, and the frames of its flood are counted.
fn flooded(boots: &[Observed]) -> Result<(), String> {
    let boot = one(boots)?;
    let findings = boot.holds().err().unwrap_or_default();
    if !findings.contains("alarm adapter-contract: ") {
        return Err(format!("nobody rang for the stranger: {findings}"));
    }
    let discarded = boot.run.outcome.frames.iter().map(|row| row.of(Discard::Unregistered));
    let discarded: u64 = discarded.sum();
    let is_counted = discarded == 500;
    is_counted.then_some(()).ok_or_else(|| format!("{discarded} frames of the 500 are counted"))
}

fn restarted(boots: &[Observed]) -> Result<(), String> {
    let boot = one(boots)?;
    let starts = boot.process("usbd")?.starts;
    if starts != 2 {
        return Err(format!("the server was started {starts} times"));
    }
    must(boot, "can4: open", 2)?;
    boot.holds()
}

/// The driver says that it lost the time when its master was away, and nothing else is broken.
fn untimed(boots: &[Observed]) -> Result<(), String> {
    let findings = one(boots)?.holds().err().unwrap_or_default();
    let other = findings.lines().find(|line| !line.starts_with("alarm can-time: "));
    match (other, findings.is_empty()) {
        (Some(other), _) => Err(format!("it broke {other}")),
        (None, true) => Err("nobody rang for the time".into()),
        (None, false) => Ok(()),
    }
}

/// The trouble of another node delays no message of this host.
fn unmoved(boots: &[Observed]) -> Result<(), String> {
    one(boots)?.holds()
}

fn rebooted(boots: &[Observed]) -> Result<(), String> {
    let boot = one(boots)?;
    let lives = boot.run.outcome.lives().count();
    if lives != 2 {
        return Err(format!("the host had {lives} lives"));
    }
    must(boot, "can4: open", 2)?;
    boot.holds()
}

#[cfg(test)]
mod tests {
    use super::*;
    use diapason_system::FaultKind;

    #[test]
    fn every_kind_has_its_test() {
        let tested = TESTS.iter().map(|test| test.name.trim_start_matches("fault: "));
        let tested: Vec<&str> = tested.collect();
        let kinds: Vec<&str> = FaultKind::all().map(FaultKind::name).collect();
        assert_eq!(tested, kinds);
    }
}
