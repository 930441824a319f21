//! The system most tests use: `lab` (process 0, priority 40), whose threads do the experiment, and
//! `control` (process 1, priority 60), which waits for its bell and then acts from outside.

use super::{Call, EVERYBODY, Plan, Sys, run};

/// The device `control` waits for.
pub const BELL: u16 = 0;

/// The description; add to it what the experiment needs.
pub fn plan() -> Plan {
    let plan = Plan::new().process("lab", 40).process("control", 60);
    plan.device("bell", 5, false, EVERYBODY).mutex("m1").mutex("m2").mutex("m3").mutex("m4")
}

/// Boots it: `control` waits for its bell, and the first thread of `lab` runs.
pub fn with<R>(plan: &Plan, experiment: impl FnOnce(&mut Sys<'_>) -> R) -> R {
    run(plan, |sys| {
        assert_eq!(sys.running_process(), 1);
        sys.await_bell("bell");
        assert_eq!(sys.running_process(), 0);
        experiment(sys)
    })
}

/// Runs an experiment in the plain lab.
pub fn lab<R>(experiment: impl FnOnce(&mut Sys<'_>) -> R) -> R {
    with(&plan(), experiment)
}

/// Makes `control` run now.
pub fn summon(sys: &mut Sys<'_>) {
    sys.ring(BELL);
    assert_eq!(sys.running_process(), 1);
}

/// `control` waits for its bell again.
pub fn dismiss(sys: &mut Sys<'_>) {
    assert_eq!(sys.running_process(), 1);
    let event = sys.host.kernel.threads[sys.running()].wait;
    assert_eq!(event, diapason_core::Wait::Nothing);
    sys.blocks(Call::EventWait, &[bell_handle(), super::FOREVER]);
}

/// Handle of `control`'s first event: slots of process 0 come first.
fn bell_handle() -> u64 {
    diapason_abi::Handle::new(diapason_abi::Kind::Event, 4, 1).0
}
