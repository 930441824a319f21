//! The twin itself: Debian's kernel, and what its only process and the buses say of a run.

use super::lockstep::{self, Seen, Setting, Window};
use super::measured::{Channel, Latency, Measured, SHARE, Scenario, System, behind};
use crate::concentrator::TASKS;
use diapason::qemu::RunFolder;
use diapason::{Failure, Workspace};
use diapason_abi::Nanos;
use diapason_devices::can::{BUSY, Sent};
use diapason_redir::linux::{Drivers, Guest, GuestProgram, NoGuest};

const PROGRAM: GuestProgram = GuestProgram {
    name: "twin",
    source: include_str!("twin.c"),
    drivers: Drivers::Kvaser,
    tools: None,
};
/// The guest reports after the window.
const REPORT: Nanos = Nanos::from_millis(1_000);
/// The interface and Linux round its clock to this much, in ns.
const ROUNDING: u64 = 100;

/// A prepared guest that runs Linux.
#[derive(Debug)]
pub(crate) struct Twin {
    guest: Guest,
}

/// The identity that a kernel reports.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct About {
    /// The kernel's release and version, as `uname` has them.
    pub kernel: String,
    /// Whether HRTICK_DL is on, off, or missing.
    pub hrtick: String,
    /// The time at which the kernel was ready, in ns.
    pub ready: u64,
    /// When each task began, in ns.
    pub started: Vec<u64>,
}

impl Twin {
    /// Gets the kernel and builds its program.
    ///
    /// # Errors
    /// Why it cannot be had.
    pub fn prepare(workspace: &Workspace) -> Result<Twin, NoGuest> {
        let guest = Guest::prepare(&workspace.target().join("tmp/linux"), PROGRAM)?;
        Ok(Twin { guest })
    }

    /// Returns the package's version, and its HZ.
    #[must_use]
    pub fn package(&self) -> (&str, &str) {
        (&self.guest.version, self.guest.setting("CONFIG_HZ").unwrap_or("unknown"))
    }

    /// Boots it for one scenario.
    ///
    /// # Errors
    /// If it cannot be run, or what it reports makes no sense.
    pub fn run(
        &self,
        workspace: &Workspace,
        (system, scenario): (System, Scenario),
        window: Window,
    ) -> Result<(Measured, About), Failure> {
        let folder = RunFolder::create(&workspace.target())?;
        let setting = Setting { traffic: scenario.traffic(), window, end: window.end + REPORT };
        let words = words(system, scenario, window);
        let command = |console: &_| Ok(self.guest.command(&words, console));
        let seen = lockstep::run(&folder, setting, command)?;
        let console = String::from_utf8_lossy(&seen.console).into_owned();
        measured(&console, &seen, (system, scenario), window).ok_or_else(|| {
            let id = (system.id(), scenario.title());
            Failure::Ours(format!("{id:?}: what the Linux guest says makes no sense:\n{console}"))
        })
    }
}

/// Returns the environment of the guest's program.
fn words(system: System, scenario: Scenario, window: Window) -> String {
    let rates: Vec<String> = BUSY.iter().map(|bus| bus.0.to_string()).collect();
    format!(
        "rates={} begin={} end={} tasks={} hrtick={}",
        rates.join(","),
        window.begin.0,
        window.end.0,
        u8::from(scenario.tasks()),
        u8::from(system == System::Hrtick)
    )
}

/// Returns the numbers in the line that begins so.
fn numbers(console: &str, head: &str) -> Option<Vec<u64>> {
    let rest = console.lines().find_map(|line| line.strip_prefix(head)?.strip_prefix(' '))?;
    Some(rest.split_whitespace().filter_map(|word| word.parse().ok()).collect())
}

fn measured(
    console: &str,
    seen: &Seen,
    (system, scenario): (System, Scenario),
    window: Window,
) -> Option<(Measured, About)> {
    let text = |head: &str| console.lines().find_map(|line| line.strip_prefix(head));
    text("guest: done")?;
    let tasks = if scenario.tasks() { TASKS } else { 0 };
    let task = |index| numbers(console, &format!("guest: task{index}"));
    let tasks: Vec<Vec<u64>> = (0..tasks).map(task).collect::<Option<_>>()?;
    let about = About {
        kernel: text("guest: kernel ")?.trim().to_string(),
        hrtick: text("guest: hrtick ")?.trim().to_string(),
        ready: *numbers(console, "guest: ready")?.first()?,
        started: tasks.iter().map(|task| task.get(2).copied()).collect::<Option<_>>()?,
    };
    let whole = (window.end - window.begin).0 / SHARE.1 * SHARE.1;
    let late = |task: &Vec<u64>| match task[..] {
        [unit, done, _] => Some(behind(done, unit, whole)),
        _ => None,
    };
    let backlog = *numbers(console, "guest: backlog")?.first()?;
    let channel = |index| channel(console, seen, index, backlog);
    let within = seen.within();
    let measured = Measured {
        system,
        scenario,
        channels: (0..BUSY.len()).map(channel).collect::<Option<_>>()?,
        behind: tasks.iter().map(late).collect::<Option<_>>()?,
        carried: (0..BUSY.len()).map(|index| seen.carried(index, window)).sum(),
        instructions: within.instructions,
        wire: seen.report.hash,
    };
    let expected = if system == System::Hrtick { "on" } else { "off" };
    (about.hrtick == expected && about.ready < window.begin.0).then_some((measured, about))
}

/// Returns the results of a channel. The backlog between driver and sockets belongs to all of them;
/// its drops are counted with the first.
fn channel(console: &str, seen: &Seen, index: usize, backlog: u64) -> Option<Channel> {
    let said = |what: &str| numbers(console, &format!("guest: can{index} {what}"));
    let [received, _, disordered, socket, driver, told] = said("received")?[..] else {
        return None;
    };
    let [wait, stamp, fastest, slowest] = said("wait")?[..] else { return None };
    let [first_id, first, last_id, last] = said("from")?[..] else { return None };
    let dropped = socket + driver + if index == 0 { backlog } else { 0 };
    let common = Channel {
        received,
        overruns: *seen.within().overruns.get(index)?,
        reported: Some(told),
        dropped,
        seconds: said("seconds")?,
        ..Channel::default()
    };
    if received == 0 {
        return Some(common);
    }
    let bus = seen.buses.get(index)?;
    let (begin, end) = (find(bus, first_id, first)?, find(bus, last_id, last)?);
    // The interface's clock began at a time that Linux does not know. The bus does.
    let epoch = bus.get(begin)?.time.0.checked_sub(stamp)?;
    let longest = (slowest + ROUNDING).checked_sub(epoch)?.saturating_sub(ROUNDING);
    let beyond = slowest.checked_sub(fastest)?;
    (disordered == 0 && fastest + ROUNDING >= epoch).then_some(Channel {
        sent: (end.checked_sub(begin)? + 1) as u64,
        wait: Some(wait),
        latency: Latency { longest: Some(longest), beyond },
        ..common
    })
}

/// Returns where a bus carried this frame.
fn find(bus: &[Sent], id: u64, number: u64) -> Option<usize> {
    let same = |sent: &Sent| {
        u64::from(sent.frame.raw_id()) == id && sent.frame.bytes() == number.to_le_bytes()
    };
    bus.iter().position(same)
}

#[cfg(test)]
mod tests {
    use super::super::lockstep::Look;
    use super::*;
    use diapason_devices::can::CanBus;
    use diapason_redir::{RunEnding, RunReport};
    use proptest::prelude::*;

    const WINDOW: Window = Window { begin: Nanos(20_000_000), end: Nanos(1_020_000_000) };

    /// Returns a run in which all buses carried the article's traffic for a second.
    fn seen() -> Seen {
        let bus = |number| {
            let bus = CanBus::busy(number).unwrap();
            bus.record(10_000);
            bus.advance(WINDOW.end);
            bus.take_record()
        };
        let overruns = [0, 0, 0, 2, 0];
        let report = RunReport {
            ending: RunEnding::Planned,
            time: WINDOW.end,
            hash: 1,
            journals: Vec::new(),
            stops: 0,
            exchanges: 0,
        };
        let buses = (0..5).map(bus).collect();
        let looks = [Look::default(), Look { instructions: 5, overruns }];
        Seen { console: Vec::new(), buses, looks, report, status: Some(7) }
    }

    /// Returns the console of a guest that reads every frame of the window but `lost` of each
    /// channel, 300 us after the bus, by an interface whose clock began after 5 ms.
    fn console(seen: &Seen, lost: u64) -> String {
        let mut text = String::from(
            "guest: kernel 6.1 #1\nguest: hrtick off\nguest: ready at 19000000\n\
             guest: backlog 0\n",
        );
        for (index, bus) in seen.buses.iter().enumerate() {
            let inside: Vec<&Sent> = bus.iter().filter(|s| s.time >= WINDOW.begin).collect();
            let name = |sent: &Sent| {
                let number = u64::from_le_bytes(sent.frame.bytes().try_into().unwrap());
                format!("{} {number}", sent.frame.raw_id())
            };
            let (first, last) = (inside[0], inside[inside.len() - 1]);
            let received = inside.len() as u64 - lost;
            let (stamp, fastest) = (first.time.0 - 5_000_000, 5_300_000);
            text += &format!(
                "guest: can{index} received {received} missing {lost} disordered 0 socket 0 \
                 driver 0 overruns 0\nguest: can{index} from {} to {}\nguest: can{index} wait 9 \
                 stamp {stamp} fastest {fastest} slowest {}\nguest: can{index} seconds \
                 {received}\n",
                name(first),
                name(last),
                fastest + 7
            );
        }
        let units = 1_000_000_000 / 7_000_000 * 100;
        for task in 0..TASKS {
            text += &format!("guest: task{task} unit 10000 done {units} started 7\n");
        }
        text + "guest: done\n"
    }

    const KIND: (System, Scenario) = (System::Shipped, Scenario::Both);

    #[test]
    fn what_the_buses_carried_and_nobody_read_is_lost() {
        let seen = seen();
        let (run, about) = measured(&console(&seen, 3), &seen, KIND, WINDOW).unwrap();
        assert_eq!((run.lost(), run.overruns(), run.instructions), (15, 2, 5));
        assert!((6_950..=7_050).contains(&run.carried), "{}", run.carried);
        let expected = Latency { longest: Some(300_007), beyond: 7 };
        assert_eq!(run.channels[4].latency, expected);
        assert!(run.error().abs() < 1e-9, "{:?}", run.behind);
        assert_eq!((about.hrtick.as_str(), about.started.len()), ("off", 3));
    }

    #[test]
    fn a_guest_that_is_not_what_was_asked_for_is_no_measurement() {
        let seen = seen();
        let fine = console(&seen, 0);
        assert!(measured(&fine, &seen, KIND, WINDOW).is_some());
        for (from, to) in [
            ("hrtick off", "hrtick on"),
            ("ready at 1", "ready at 2"),
            ("disordered 0", "disordered 1"),
            ("guest: done", "guest: failed"),
            ("fastest 5", "fastest 4"),
        ] {
            assert!(measured(&fine.replace(from, to), &seen, KIND, WINDOW).is_none(), "{from}");
        }
        assert!(measured(&fine, &seen, (System::Hrtick, KIND.1), WINDOW).is_none());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn whatever_is_printed_is_survived(at in 0usize..2_000, with in "[ 0-9a-z:\n]{0,30}") {
            let seen = seen();
            let mut text = console(&seen, 0);
            let at = at % text.len();
            text.replace_range(at..(at + with.len()).min(text.len()), &with);
            let _ = measured(&text, &seen, KIND, WINDOW);
        }

        #[test]
        fn numbers_of_a_line(text in "\\PC*") {
            let _ = numbers(&text, "guest: can0");
        }
    }
}
