//! Shares: tasks that never stop get theirs beside interrupts, and runaways take nothing of it.

use super::{Observed, QemuTest};
use diapason::console::Line;
use diapason_papers::fig12::{ERROR_MAX, Looks, SYSTEM, TASKS};

/// How far a task may be ahead of its budget, in percent.
const AHEAD_MAX: f64 = 1.5;

/// The tests of this file.
pub const TESTS: &[QemuTest] = &[QemuTest {
    horizon_ns: 3_000_000_000,
    ..QemuTest::new("tasks keep their shares beside interrupts and runaways", SYSTEM, shares)
}];

/// Every task is as far as its budget says, and so is the runaway that has one; both runaways run.
fn shares(boots: &[Observed]) -> Result<(), String> {
    let [boot] = boots else { return Err("one boot is needed".into()) };
    boot.holds()?;
    let mut looks = Looks::default();
    for line in &boot.lines {
        if let Line::Log { text, .. } = line {
            looks.hear(text);
        }
    }
    for (task, name) in TASKS.iter().enumerate() {
        let error = looks.error(task).ok_or("the monitor is silent")?;
        // Nobody pays for the way of a switch. The plan counts the longest. A shorter one leaves
        // its VCPU the difference: 1.4 us of each of 6,900 interrupts a second.
        if !(-AHEAD_MAX..=ERROR_MAX).contains(&error) {
            return Err(format!("{name} is {error:.4} % behind, at most {ERROR_MAX} %"));
        }
    }
    let (Some(first), Some(last)) = (looks.looks.first(), looks.looks.last()) else {
        return Err("the monitor is silent".into());
    };
    let passed = last.time - first.time;
    let interrupts = last.interrupts[0] - first.interrupts[0];
    if interrupts < passed / 260_000 {
        return Err(format!("only {interrupts} interrupts in {passed} ns"));
    }
    // A unit is 10 us of work: the runaway has a tenth of the processor, the stray what is left.
    let [hog, stray] = [3, 4].map(|task| last.counts[task] - first.counts[task]);
    if hog < passed / 10_000 * 95 / 1_000 || stray < passed / 10_000 / 10 {
        return Err(format!("the runaways did {hog} and {stray} units: too few to be a danger"));
    }
    Ok(())
}
