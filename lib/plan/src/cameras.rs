//! Cameras: whether they are asked for data as often as they have some.
//!
//! The bottom half asks a camera for the data of a few intervals, and looks when some have come. If
//! it looks too seldom, nobody asks the camera meanwhile. Its clients have to give places back
//! before a camera has none left.
//!
//! A camera asks for data in every interval, and each answer needs a place. A client has a place
//! until it runs and gives it back. If all places are at the client, nobody asks the camera for
//! data, and its frames come late or never. No interval is missing then, so this is no loss that a
//! server could count.

use crate::core::Core;
use crate::human;
use crate::pictures;
use diapason_abi::Nanos;
use diapason_analysis::server::IoSupply;
use diapason_contract::camera::{CameraNames, HOMES, NAMES, PLACE, WORK};
use diapason_contract::settings::{PROGRAM, SERVES};
use diapason_contract::threads::Home;
use diapason_contract::threads::ServiceKind;
use diapason_pipe::bill::Service as _;
use diapason_system::{Diagnostics, Place, ProcessSpec, SegmentSpec, ServerSpec, System};
use diapason_usb::class::uvc::{DEPTH, PLACES};

/// Time between two pieces of a frame, in nanoseconds.
const INTERVAL: u64 = 125_000;
/// The bottom half looks at what came, and at what was given back, so much later at most.
const LOOKS: u64 = 500_000;

/// Time that what a camera was asked for lasts, in nanoseconds.
const ASKED: u64 = DEPTH as u64 * INTERVAL;

/// Returns the refusal of a bottom half that may look so late that its camera is asked for nothing
/// meanwhile.
fn seldom(system: &System, core: &Core, server: u16, home: &Home) -> Option<Diagnostics> {
    let work = system.works.iter().find(|work| work.name == WORK)?;
    let is_its = |number: &u16| {
        let vcpu = &system.vcpus[usize::from(*number)];
        vcpu.name == home.vcpu && vcpu.allowed >> server & 1 == 1
    };
    let place = core.ios.iter().position(is_its)?;
    let supply = IoSupply::inherited(&core.system, place)?;
    let (each, name) = (Nanos(work.worst_ns), home.vcpu);
    // The thread that manages may have begun a visit, which a look then has to finish.
    let look = each + each;
    let looks = core.system.ios[place].wakeups(supply.period()).saturating_add(1);
    let in_time = Nanos(each.0.saturating_mul(looks)) <= supply.budget();
    let takes = if in_time { supply.sync(look) } else { supply.any(look) };
    if takes.0.saturating_add(LOOKS) <= ASKED {
        return None;
    }
    let title = format!("`{name}` may look at its camera too seldom");
    let note = format!(
        "a look may take {}; a camera is asked for the data of {}, and the next look begins up to \
         {} after the one before",
        human(takes.0),
        human(ASKED),
        human(LOOKS)
    );
    let help = format!("write a larger `utilization` for `{name}`, or a shorter work `{WORK}`");
    let at = Place::Vcpu(core.ios[place]);
    Some(system.problem(at, [&title, "", &note, &help]))
}

/// A client of a camera, and the time that the camera's places last.
struct Client {
    process: u16,
    /// The VCPU of its threads, and the period of that.
    vcpu: u16,
    period: u64,
    /// A client may have places for so long.
    lasts: u64,
    /// The name of the memory with the places.
    data: &'static str,
}

/// Returns how long places for so many bytes last: those that transfers have, and those that nobody
/// has looked at yet, are not the client's.
fn lasts(bytes: u64) -> u64 {
    let places = (bytes / PLACE as u64).min(PLACES.into());
    (places.saturating_sub(DEPTH as u64) * INTERVAL).saturating_sub(LOOKS)
}

impl Client {
    /// Returns the clients of a camera's seat of a server, as far as they have a Main VCPU.
    fn all(system: &System, number: u16, names: &CameraNames) -> Vec<Client> {
        let is_its = |segment: &&SegmentSpec| segment.allowed >> number & 1 == 1;
        let named = |name: &str| {
            let mut own = system.segments.iter().filter(is_its);
            own.find(|segment| segment.name == name)
        };
        let CameraNames { data, returned, .. } = *names;
        let (Some(memory), Some(returned)) = (named(data), named(returned)) else {
            return Vec::new();
        };
        let lasts = lasts(memory.size);
        let of = |(process, it): (u16, &ProcessSpec)| {
            let vcpu = it.vcpu?;
            let ServerSpec::Main { period_ns: period, .. } = system.vcpus[usize::from(vcpu)].server
            else {
                return None;
            };
            Some(Client { process, vcpu, period, lasts, data })
        };
        let processes = (0..).zip(&system.processes);
        // The bill of a pipe counts how long its reader has places.
        let reads = |process: u16| {
            let mut pipes = system.pipes.iter().filter(|pipe| pictures::is_of(pipe));
            pipes.any(|pipe| pipe.ends_at(process))
        };
        let others = processes.filter(|(process, _)| {
            *process != number && returned.allowed >> process & 1 == 1 && !reads(*process)
        });
        others.filter_map(of).collect()
    }

    /// Returns the refusal, if the client may have all places. Its budget comes back at latest a
    /// period after it was used, and it may take another one until that is done.
    fn refusal(&self, system: &System) -> Option<Diagnostics> {
        let Client { process, vcpu, period, lasts, data } = *self;
        let takes = period.saturating_mul(2);
        if takes <= lasts {
            return None;
        }
        let name = &system.processes[usize::from(process)].name;
        let server = &system.vcpus[usize::from(vcpu)].name;
        let title = format!("`{name}` may let its camera run out of places");
        let note = format!(
            "it may give a place back only {} after it got it, two periods of `{server}`; the \
             places of `{data}` last {}",
            human(takes),
            human(lasts)
        );
        let help = match (lasts / 2_000, u64::from(PLACES) * PLACE as u64) {
            (0, most) => format!("make `{data}` larger, up to \"{}K\"", most >> 10),
            (micros, most) => format!(
                "write at most `period = \"{micros}us\"` for `{server}`, or make `{data}` larger, \
                 up to \"{}K\"",
                most >> 10
            ),
        };
        Some(system.problem(Place::Vcpu(vcpu), [&title, "", &note, &help]))
    }
}

/// Returns the refusals of clients and of bottom halves that may stop their camera.
pub(crate) fn refusals<'a>(
    system: &'a System,
    core: &'a Core,
) -> impl Iterator<Item = Diagnostics> + 'a {
    let serves = |process: &ProcessSpec| {
        let watched = process.setting(SERVES).contains(&(ServiceKind::Cameras as u64));
        process.program == PROGRAM && watched
    };
    let servers = (0..).zip(&system.processes).filter(move |(_, process)| serves(process));
    let seats = servers.flat_map(|(number, _)| {
        NAMES.iter().zip(&HOMES).map(move |(names, home)| (number, names, home))
    });
    seats.flat_map(|(number, names, home)| {
        let clients = Client::all(system, number, names).into_iter();
        let clients = clients.filter_map(|client| client.refusal(system));
        clients.chain(seldom(system, core, number, home)).collect::<Vec<Diagnostics>>()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Plan;

    const EXAMPLE: &str = include_str!("../../../examples/usb-devices.toml");
    const WATCH: &str = "name = \"watch\"\nbudget = \"500us\"\nperiod = \"2ms\"";

    fn refused(text: &str) -> Option<String> {
        let system = diapason_system::parse("s", text).unwrap_or_else(|wrong| panic!("{wrong}"));
        let plan = Plan::of(&system);
        let refusals: Vec<Diagnostics> = refusals(&system, &plan.core).collect();
        assert_eq!(refusals.is_empty(), plan.holds(), "the plan asks");
        refusals.first().map(Diagnostics::plain)
    }

    #[test]
    fn a_client_that_may_have_all_places_is_refused_with_the_longest_period() {
        assert_eq!(refused(EXAMPLE), None);
        let with = |period: &str, budget: &str| {
            let vcpu = WATCH.replace("2ms", period).replace("500us", budget);
            refused(&EXAMPLE.replace(WATCH, &vcpu))
        };
        // 64 places, of which transfers have 16, and 0.5 ms.
        let why = with("64ms", "16ms").expect("frames would come 2.4 s late");
        assert!(why.contains("`camera-check` may let its camera run out of places"), "{why}");
        assert!(why.contains("128.000 ms after it got it, two periods of `watch`"), "{why}");
        assert!(why.contains("last 5.500 ms"), "{why}");
        assert!(why.contains("at most `period = \"2750us\"` for `watch`"), "{why}");
        assert_eq!(with("2750us", "600us"), None, "the remedy helps");
        assert!(with("2751us", "600us").is_some());
    }

    #[test]
    fn a_bottom_half_that_looks_too_seldom_is_refused() {
        let with = |worst: &str| {
            refused(&format!("{EXAMPLE}\n[[work]]\nname = \"usbd.camera\"\nworst = \"{worst}\"\n"))
        };
        assert_eq!(with("10us"), None);
        let why = with("150us").expect("frames would come late");
        assert!(why.contains("`usb-camera` may look at its camera too seldom"), "{why}");
        assert!(why.contains("a camera is asked for the data of 2.000 ms"), "{why}");
    }

    #[test]
    fn more_places_last_longer() {
        assert_eq!((lasts(0), lasts(16 * 4_096), lasts(21 * 4_096)), (0, 0, 125_000));
        assert_eq!((lasts(512 << 10), lasts(1 << 30)), (13_500_000, 13_500_000));
    }
}
