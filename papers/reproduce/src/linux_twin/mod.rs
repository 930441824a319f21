//! The Linux twin: Debian's own real-time kernel in Diapason's place.
//!
//! The same QEMU in the same lock-step, the same USB-CAN interface with the traffic of the
//! article's table 7, five readers and three tasks of 1 ms in every 7 ms: scenarios 1 to 3 of
//! table 8. Linux runs as shipped, where budgets are enforced at its tick, and with HRTICK_DL.
//! Only Diapason's numbers and repeatability are promised; Linux's are reported.

mod linux;
mod lockstep;
mod measured;
mod ours;
mod tables;

use super::{Effort, Progress, ReproductionReport, parallel};
use diapason::tools::{Missing, QEMU};
use diapason::{Failure, Workspace};
use diapason_abi::Nanos;
use diapason_redir::linux::NoGuest;
use linux::{About, Twin};
use lockstep::Window;
use measured::{Measured, Scenario, System};
use ours::Ours;

/// When the window begins, and its length. Both systems have started by then.
const FULL: (Nanos, Nanos) = (Nanos::from_secs(10), Nanos::from_secs(30));
const QUICK: (Nanos, Nanos) = (Nanos::from_secs(8), Nanos::from_secs(3));

/// The system and scenario to boot.
type Job = (System, Scenario);

/// All runs, and what must be known to read them.
#[derive(Debug)]
struct Runs {
    window: Window,
    all: Vec<(Measured, Option<About>)>,
    /// The package's version and its HZ, or why there is no Linux.
    package: Result<(String, String), String>,
}

pub(super) fn reproduce(
    effort: Effort,
    progress: &Progress,
) -> Result<ReproductionReport, Failure> {
    let workspace = Workspace::find()?;
    QEMU.require(Missing::Say)?;
    let twin = match Twin::prepare(&workspace) {
        Ok(twin) => Ok(twin),
        Err(NoGuest::Missing(why)) => Err(why),
        Err(NoGuest::Wrong(why)) => return Err(Failure::Ours(why)),
    };
    if let Err(why) = &twin {
        eprintln!("LINUX IS SKIPPED, ONLY DIAPASON IS MEASURED: {why}");
    }
    let ours = Ours::prepare(&workspace)?;
    let (begin, length) = if effort == Effort::Quick { QUICK } else { FULL };
    let window = Window { begin, end: begin + length };
    let jobs = jobs(effort, twin.is_ok());
    let run = |index: usize| {
        let (system, scenario) = jobs[index];
        match &twin {
            Ok(twin) if system != System::Diapason => twin
                .run(&workspace, (system, scenario), window)
                .map(|(measured, about)| (measured, Some(about))),
            _ => ours.run(&workspace, scenario, window).map(|measured| (measured, None)),
        }
    };
    let step = |done| progress.at("boots", done, jobs.len());
    step(0);
    let all = parallel::map(jobs.len(), run, step);
    let all = all.into_iter().collect::<Result<Vec<_>, Failure>>()?;
    progress.end();
    let package = twin.map(|twin| {
        let (version, hz) = twin.package();
        (version.to_string(), hz.to_string())
    });
    Ok(tables::report(&Runs { window, all, package }))
}

/// Returns the jobs to boot. A job that comes twice must come out the same. A quick look repeats
/// ours only: a boot of Linux takes long, and its repeatability is not ours to promise.
fn jobs(effort: Effort, linux: bool) -> Vec<Job> {
    use Scenario::{Both, Input, Silent, Tasks};
    use System::{Diapason, Hrtick, Shipped};
    let quick = [(Shipped, Both), (Diapason, Both)];
    let full = [
        (Shipped, Both),
        (Hrtick, Both),
        (Diapason, Both),
        (Shipped, Input),
        (Hrtick, Input),
        (Diapason, Input),
        (Shipped, Tasks),
        (Hrtick, Tasks),
        (Diapason, Tasks),
        (Shipped, Silent),
        (Diapason, Silent),
    ];
    let once: &[Job] = if effort == Effort::Quick { &quick } else { &full };
    let is_repeated = |system| effort != Effort::Quick || system == Diapason;
    let again = once.iter().filter(|(system, scenario)| *scenario == Both && is_repeated(*system));
    let wanted = |job: &&Job| linux || job.0 == Diapason;
    once.iter().chain(again).filter(wanted).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_input_and_tasks_is_run_twice() {
        for (effort, linux, count) in [
            (Effort::Quick, true, 3),
            (Effort::Quick, false, 2),
            (Effort::Full, true, 14),
            (Effort::Full, false, 5),
        ] {
            let jobs = jobs(effort, linux);
            assert_eq!(jobs.len(), count);
            for job in &jobs {
                let times = jobs.iter().filter(|other| *other == job).count();
                let quick_linux = effort == Effort::Quick && job.0 != System::Diapason;
                let twice = job.1 == Scenario::Both && !quick_linux;
                assert_eq!(times, 1 + usize::from(twice), "{job:?}");
                assert!(linux || job.0 == System::Diapason);
            }
        }
    }
}
