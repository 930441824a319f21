//! Random sets of tasks, as descriptions.

use diapason_random::Random;
use std::fmt::Write;

/// Periods in microseconds; their least common multiple is short.
const PERIODS: [u64; 8] = [2_000, 4_000, 5_000, 8_000, 10_000, 20_000, 25_000, 40_000];

/// Returns the description of set number `number` of a campaign: 2 to 8 tasks, half of the sets on
/// VCPUs, and in half of the sets half of the tasks with a part under one mutex.
pub fn description(random: &mut Random, number: u64) -> String {
    let count = 2 + random.below(7);
    let on_vcpus = random.one_in(2);
    let locks = random.one_in(2);
    let share = 700_000 / count;
    let mut text =
        format!("[system]\nname = \"set-{number}\"\n\n[[semaphore]]\nname = \"shared\"\n");
    for task in 0..count {
        let period = random.pick(&PERIODS);
        let most = (period * share / 1_000_000).max(20);
        let work = 10 + random.below(most - 10);
        let section = if locks && random.one_in(2) { random.below(work / 2 + 1) } else { 0 };
        let phase = random.below(period);
        let budget = work + 10 + random.below(work / 4 + 1);
        if on_vcpus {
            let _ = write!(
                text,
                "\n[[vcpu]]\nname = \"v{task}\"\nbudget = \"{budget}us\"\nperiod = \"{period}us\"\n"
            );
        }
        let _ = write!(
            text,
            "\n[[process]]\nname = \"t{task}\"\nprogram = \"task\"\npriority = {}\n\
             arguments = [{phase}, {period}, {work}, {section}]\nuses = [\"shared\"]\n",
            2 * task + 2
        );
        if on_vcpus {
            let _ = writeln!(text, "vcpu = \"v{task}\"");
        }
    }
    text
}
