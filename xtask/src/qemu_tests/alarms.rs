//! The analysis' assumptions are counted while a system runs: broken assumptions ring, and time in
//! is time out.

use super::{Observed, QemuTest};
use diapason::outcome::{Outcome, RunVerdict};

const ALARMS: &str = "tests/systems/alarms.toml";
const VCPUS: &str = "examples/vcpus.toml";

/// The tests of this file.
pub const TESTS: &[QemuTest] = &[
    QemuTest::new("assumptions that a system contradicts ring", ALARMS, they_ring),
    QemuTest {
        horizon_ns: 2_000_000_000,
        watch: true,
        ..QemuTest::new("the VCPU example contradicts nothing, and its books balance", VCPUS, quiet)
    },
];

/// The alarms that must ring, and their subjects.
const RINGING: [(&str, &str); 3] = [
    ("job-cost", "VCPU crumbs"),
    ("replenishment-list-full", "VCPU crumbs"),
    ("interrupt-distance", "device hpet"),
];

fn they_ring(boots: &[Observed]) -> Result<(), String> {
    let [boot] = boots else { return Err("one boot is needed".into()) };
    if !matches!(boot.verdict, RunVerdict::Broken(_)) {
        return Err("contradicted assumptions did not break the run".into());
    }
    let findings = boot.verdict.findings();
    for (name, of) in RINGING {
        let rings = |finding: &&String| finding.starts_with(&format!("alarm {name}: "));
        if !findings.iter().filter(rings).any(|finding| finding.contains(of)) {
            return Err(format!("{name} did not ring for {of}:\n{}", findings.join("\n")));
        }
    }
    let guiltless = |f: &&String| f.contains("VCPU depleted") || f.contains("VCPU quiet");
    if let Some(wrong) = findings.iter().find(guiltless) {
        return Err(format!("it contradicts nothing: {wrong}"));
    }
    boot.never_late(&["much", "seldom"])?;
    balanced(&boot.run.outcome)
}

fn quiet(boots: &[Observed]) -> Result<(), String> {
    let [boot] = boots else { return Err("one boot is needed".into()) };
    boot.holds()?;
    let outcome = &boot.run.outcome;
    if outcome.vcpus.len() != 4 || outcome.longest_path.is_none() {
        return Err("the tables have not all that is to be checked".into());
    }
    balanced(outcome)
}

/// Every nanosecond was idle or a thread's; VCPUs paid for some of the latter.
fn balanced(outcome: &Outcome) -> Result<(), String> {
    let end = outcome.end.ok_or("no end")?;
    let threads: u64 = outcome.threads.iter().map(|row| row.cpu_ns).sum();
    let vcpus: u64 = outcome.vcpus.iter().map(|row| row.cpu_ns()).sum();
    if threads + end.idle_ns == end.time_ns && 0 < vcpus && vcpus <= threads {
        return Ok(());
    }
    Err(format!("threads {threads} + idle {} != {}; VCPUs {vcpus}", end.idle_ns, end.time_ns))
}
