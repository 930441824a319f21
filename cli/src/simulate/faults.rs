//! The faults of a run: described, asked for, and drawn; and what they excuse.

use crate::describe::refused;
use crate::duration::human;
use crate::failure::Failure;
use crate::outcome::Outcome;
use diapason_random::Random;
use diapason_system::{
    FaultKind, FaultTarget, Hosts, InjectedFault, LIES, Pullable, Pulled, Restart, SemaphoreKind,
    System, UsbPlug, parse_fault,
};
use std::collections::BTreeMap;
use std::iter;

/// The first fault comes when devices have had time to be found.
const FIRST: u64 = 800_000_000;
/// The shortest and the longest time between two faults.
const DISTANCE: (u64, u64) = (20_000_000, 600_000_000);

/// Returns how often a kind is drawn, among the others.
const fn weight(kind: FaultKind) -> u32 {
    match kind {
        FaultKind::LostInterrupt | FaultKind::LateInterrupt | FaultKind::DoubleInterrupt => 3,
        FaultKind::Damage | FaultKind::Stall | FaultKind::Crash | FaultKind::Overrun => 2,
        _ => 1,
    }
}

/// Faults as they were asked for on the command line.
///
/// # Errors
/// Those that are none.
pub fn asked(system: &System, texts: &[String]) -> Result<Vec<InjectedFault>, Failure> {
    let parse = |text: &String| parse_fault(system, text).map_err(|wrong| refused(&wrong));
    texts.iter().map(parse).collect()
}

/// Returns the faults on the command line that each core of a host has. One that is about the whole
/// host is refused: a core does not lose its power alone.
///
/// # Errors
/// Those that are none.
pub fn asked_of_cores(
    cores: &[&System],
    texts: &[String],
) -> Result<Vec<Vec<InjectedFault>>, Failure> {
    let mut faults = vec![Vec::new(); cores.len()];
    for text in texts {
        let mut parsed = cores.iter().map(|system| parse_fault(system, text)).enumerate();
        let found = parsed.find_map(|(core, fault)| Some((core, fault.ok()?)));
        let Some((core, fault)) = found else { return asked(cores[0], texts).map(|_| faults) };
        if fault.kind.target() == FaultTarget::Host {
            return Err(Failure::Input(format!(
                "error: `{text}` is about a whole host, and this one has {} cores\n\
                 help: a host with several cores cannot lose its power in the simulator",
                cores.len()
            )));
        }
        faults[core].push(fault);
    }
    Ok(faults)
}

/// Returns the faults that a seed draws for a run of this length: of every kind that can happen
/// here.
#[must_use]
pub fn drawn(system: &System, seed: u64, horizon_ns: u64) -> Vec<InjectedFault> {
    let mut random = Random::stream(seed, 1);
    let choices: Vec<(FaultKind, usize)> = FaultKind::all()
        .flat_map(|kind| targets(system, kind).into_iter().map(move |target| (kind, target)))
        .collect();
    // A kind is as likely in a system with many targets for it as in one with few.
    let mut kinds: Vec<FaultKind> = choices.iter().map(|(kind, _)| *kind).collect();
    kinds.dedup();
    let lots: Vec<FaultKind> =
        kinds.iter().flat_map(|kind| (0..weight(*kind)).map(|_| *kind)).collect();
    let (mut faults, mut at_ns) = (Vec::new(), FIRST);
    while at_ns < horizon_ns && !lots.is_empty() {
        let kind = lots[random.index(lots.len())];
        let of: Vec<usize> =
            choices.iter().filter(|(other, _)| *other == kind).map(|(_, target)| *target).collect();
        let target = of[random.index(of.len())];
        let channels = system.usb.get(target).map_or(0, |plug| plug.channels as u64);
        let arguments = arguments(kind, channels.saturating_sub(1), &mut random);
        faults.push(InjectedFault { at_ns, kind, target, arguments });
        at_ns += random.between(DISTANCE.0, DISTANCE.1);
    }
    faults
}

/// Pulls cables and wires of a list at times that a seed draws, up to this time of the run. Lets
/// clocks of hosts and switches run apart that have no `drift`. One cable is away at a time, as
/// long as a device of a host is.
pub fn disturb(list: &mut Hosts, seed: u64, horizon_ns: u64) {
    let mut random = Random::stream(seed, 2);
    let hosts = list.hosts.iter_mut().map(|host| &mut host.drift_ppm);
    let clocks = hosts.chain(list.switches.iter_mut().map(|switch| &mut switch.drift_ppm));
    for drift in clocks.filter(|drift| **drift == 0) {
        *drift = random.below(201) as i32 - 100;
    }
    let all: Vec<Pullable> = list.pullable().map(|(_, what)| what).collect();
    let mut at_ns = FIRST + random.between(0, DISTANCE.1);
    while at_ns < horizon_ns && !all.is_empty() {
        let [for_ns, _] = arguments(FaultKind::Unplug, 0, &mut random);
        list.pull(all[random.index(all.len())], Pulled { at_ns, for_ns });
        at_ns += for_ns + random.between(DISTANCE.0, DISTANCE.1);
    }
}

/// Returns the targets of a kind: those for which the description provides, so that every promise
/// stands.
fn targets(system: &System, kind: FaultKind) -> Vec<usize> {
    let all = |count: usize| (0..count).collect::<Vec<usize>>();
    let buffered = || system.cans.iter().filter_map(|network| Some(network.controller?.device));
    let usb = || {
        let mut controllers: Vec<usize> = system.usb.iter().map(|usb| usb.device).collect();
        controllers.sort_unstable();
        controllers.dedup();
        controllers
    };
    match kind.target() {
        FaultTarget::Host => vec![0],
        FaultTarget::Usb => all(system.usb.len()),
        FaultTarget::Can | FaultTarget::Bus => {
            let is_can = |index: &usize| system.usb[*index].model.is_can();
            let plugs = all(system.usb.len()).into_iter().filter(is_can);
            plugs.chain(buffered().map(|device| system.usb.len() + device)).collect()
        }
        FaultTarget::Controller => usb().into_iter().chain(buffered()).collect(),
        FaultTarget::UsbController => usb(),
        // Frames of strangers use up what the `rate` of an adapter leaves to others, and messages
        // of a node in trouble are missing.
        FaultTarget::Adapter | FaultTarget::Node => Vec::new(),
        FaultTarget::Process => {
            let provided = |index: &usize| {
                let process = &system.processes[*index];
                match kind {
                    FaultKind::Crash => process.restart != Restart::Never,
                    // Without a budget nothing keeps it from the others' time.
                    _ => process.vcpu.is_some(),
                }
            };
            all(system.processes.len()).into_iter().filter(provided).collect()
        }
    }
}

/// Arguments of a kind, from short to long; `last` is the last channel of the target.
fn arguments(kind: FaultKind, last: u64, random: &mut Random) -> [u64; 2] {
    let mut us = |most: u64| random.between(1, most) * 1_000;
    match kind {
        FaultKind::Unplug | FaultKind::Reboot | FaultKind::NodeReset | FaultKind::NodeDeaf => {
            [us(300_000), 0]
        }
        FaultKind::Stall | FaultKind::Damage => [us(50_000), 0],
        FaultKind::LateInterrupt => [us(3_000), 0],
        FaultKind::DoubleInterrupt => [us(500), 0],
        FaultKind::Babble => [us(200_000), random.between(0, last)],
        FaultKind::Lie => {
            let length = us(1_000_000);
            [random.between(1, LIES), length]
        }
        FaultKind::Overrun => {
            let length = us(100_000);
            [random.between(2, 10), length]
        }
        FaultKind::FastClock | FaultKind::SlowClock => [random.between(1, 500), 0],
        FaultKind::CanErrors => [random.between(1, 40), random.between(0, last)],
        FaultKind::BusOff => [random.between(0, last), 0],
        FaultKind::LinkLoss
        | FaultKind::LostInterrupt
        | FaultKind::SystemError
        | FaultKind::ControllerError
        | FaultKind::StrayDma
        | FaultKind::Flood
        | FaultKind::Crash => [0; 2],
    }
}

/// Returns the VCPUs that an overrun delays by itself: that of the process, and those of others
/// that wait for a mutex while it holds it for too long.
#[must_use]
pub fn delayed(system: &System, faults: &[InjectedFault]) -> Vec<Option<u16>> {
    let overruns = faults.iter().filter(|fault| fault.kind == FaultKind::Overrun);
    let mut late = overruns.fold(0u64, |late, fault| late | 1 << fault.target);
    let mutexes = system.semaphores.iter().filter(|it| it.kind == SemaphoreKind::Mutex);
    let mutexes: Vec<u64> = mutexes.map(|mutex| mutex.allowed).collect();
    // A thread that waits for one mutex may hold another.
    for _ in &system.processes {
        late = mutexes
            .iter()
            .fold(late, |late, users| if late & users == 0 { late } else { late | users });
    }
    let numbered = system.processes.iter().enumerate();
    numbered
        .filter(|(number, _)| late >> number & 1 == 1)
        .map(|(_, process)| process.vcpu)
        .collect()
}

/// Takes out of an outcome what these faults break by themselves, so that what is left was to hold
/// in spite of them: deadlines on VCPUs that an overrun delays, and memory that a controller was
/// made to miss.
pub fn excuse(system: &System, faults: &[InjectedFault], outcome: &mut Outcome) {
    let budgets = delayed(system, faults);
    let strays = faults.iter().any(|fault| fault.kind == FaultKind::StrayDma);
    outcome.each_life(|life| {
        for thread in &mut life.threads {
            let process = usize::try_from(thread.process).ok();
            let process = process.and_then(|process| system.processes.get(process));
            if process.is_some_and(|process| budgets.contains(&process.vcpu)) {
                thread.misses = 0;
            }
        }
        if strays {
            life.strays.clear();
        }
    });
}

/// Returns one sentence for each device with a pipe whose clock ran further apart from the host's
/// than described, by the faults that came. A short run has too few reports for `clock-drift`.
#[must_use]
pub fn adrift(system: &System, outcome: &Outcome) -> Vec<String> {
    let came = outcome.lives().flat_map(|life| &life.injected);
    let faults: Vec<InjectedFault> =
        came.filter_map(|(_, text)| parse_fault(system, text).ok()).collect();
    let timed = |number: usize| {
        system.pipes.iter().any(|pipe| pipe.usb == number)
            || system.tpipes.iter().any(|place| place.usb == number)
    };
    let plugs = system.usb.iter().enumerate().filter(|(number, _)| timed(*number));
    let sentence = |(number, plug): (usize, &UsbPlug)| {
        let (at, ppm) = fastest(system, &faults, number)?;
        let (name, most, way) = (&plug.name, plug.drift, if ppm > 0 { "fast" } else { "slow" });
        (ppm.unsigned_abs() > most.into()).then(|| {
            format!(
                "how long messages of `{name}` took: its clock was {} millionths {way} from {} on, \
                 and at most {most} (`drift`) are described",
                ppm.unsigned_abs(),
                human(at)
            )
        })
    };
    plugs.filter_map(sentence).collect()
}

/// Returns when the clock of a USB device ran furthest apart, and by how many millionths. A clock
/// runs with those of the hubs that the device is behind.
fn fastest(system: &System, faults: &[InjectedFault], number: usize) -> Option<(u64, i64)> {
    let behind = |number: &usize| system.usb.get(*number)?.behind;
    let clocks: Vec<usize> = iter::successors(Some(number), behind).collect();
    let mut rates: BTreeMap<usize, i64> = BTreeMap::new();
    let turns = faults.iter().filter(|fault| clocks.contains(&fault.target));
    let turns = turns.filter_map(|fault| {
        let ppm = i64::try_from(fault.arguments[0]).ok()?;
        let ppm = match fault.kind {
            FaultKind::FastClock => ppm,
            FaultKind::SlowClock => -ppm,
            _ => return None,
        };
        rates.insert(fault.target, ppm);
        Some((fault.at_ns, rates.values().sum::<i64>()))
    });
    turns.max_by_key(|(_, ppm)| ppm.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYSTEM: &str = include_str!("../../../examples/can-concentrator.toml");

    #[test]
    fn a_clock_that_runs_further_apart_than_described_is_not_measured() {
        let system = diapason_system::parse("f", SYSTEM).unwrap();
        let adrift = |faults: &[&str]| {
            let injected = faults.iter().map(|text| (0, String::from(*text))).collect();
            adrift(&system, &Outcome { injected, ..Outcome::default() })
        };
        assert_eq!(adrift(&[]), [""; 0]);
        let name = &system.usb[system.pipes[0].usb].name;
        let most = system.usb[system.pipes[0].usb].drift;
        let fault = |at: u64, way: &str, ppm: u32| format!("{at}s {way}-clock {name} {ppm}");
        assert_eq!(adrift(&[&fault(2, "fast", most)]), [""; 0]);
        for way in ["fast", "slow"] {
            let found = adrift(&[&fault(1, way, most), &fault(2, way, 5_000)]);
            let [text] = &found[..] else { panic!("{found:?}") };
            let wanted = format!("its clock was 5000 millionths {way} from 2.000 s on");
            assert!(text.contains(&wanted), "{text}");
        }
    }

    #[test]
    fn a_seed_has_its_faults_and_they_keep_their_distance() {
        let system = diapason_system::parse("f", SYSTEM).unwrap();
        let all = |seed| drawn(&system, seed, 200_000_000_000);
        assert_eq!(all(1), all(1));
        assert_ne!(all(1), all(2));
        for pair in all(3).windows(2) {
            assert!((DISTANCE.0..=DISTANCE.1).contains(&(pair[1].at_ns - pair[0].at_ns)));
        }
        let mut kinds: Vec<FaultKind> = all(4).iter().map(|fault| fault.kind).collect();
        kinds.sort_unstable();
        kinds.dedup();
        // Nobody in this system may crash.
        let crash = usize::from(!kinds.contains(&FaultKind::Crash));
        // No seed draws a flood, or the trouble of other nodes.
        assert_eq!(kinds.len() + crash + 3, FaultKind::all().count());
    }

    #[test]
    fn a_seed_pulls_cables_one_at_a_time_and_draws_clocks() {
        let path = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../examples"));
        let drawn = |seed| {
            let found = crate::describe::describe_any(&path.join("flow.toml")).ok();
            let Some(diapason_system::Description::Several(mut list)) = found else {
                panic!("the example is no list");
            };
            disturb(&mut list, seed, 20_000_000_000);
            list
        };
        let times = |list: &Hosts| -> Vec<Pulled> {
            let mut all: Vec<Pulled> =
                list.cables.iter().flat_map(|it| it.pulled.clone()).collect();
            all.sort_unstable();
            all
        };
        let (one, other) = (drawn(1), drawn(2));
        assert_eq!(times(&one), times(&drawn(1)));
        assert_ne!(times(&one), times(&other));
        assert!(one.cables.iter().all(|cable| !cable.pulled.is_empty()));
        assert!(times(&one).windows(2).all(|pair| pair[0].end_ns() < pair[1].at_ns));
        assert!(one.hosts.iter().all(|host| host.drift_ppm.abs() <= 100));
        assert!(one.hosts.iter().any(|host| host.drift_ppm != other.hosts[0].drift_ppm));
    }

    #[test]
    fn an_overrun_delays_those_that_wait_for_its_mutexes() {
        let text = "[system]\nname = \"s\"\n[[semaphore]]\nname = \"m\"\n\
                    [[semaphore]]\nname = \"n\"\n[[semaphore]]\nname = \"c\"\n\
                    kind = \"counting\"\n";
        let process = |name: &str, uses: &str| {
            format!(
                "[[process]]\nname = \"{name}\"\npriority = 1\nvcpu = \"on-{name}\"\n\
                 uses = [{uses}]\n[[vcpu]]\nname = \"on-{name}\"\nbudget = \"1ms\"\n\
                 period = \"10ms\"\n"
            )
        };
        let text = text.to_owned()
            + &process("one", "\"n\"")
            + &process("two", "\"m\", \"n\"")
            + &process("late", "\"m\", \"c\"")
            + &process("apart", "\"c\"");
        let system = diapason_system::parse("f", &text).unwrap();
        let fault = parse_fault(&system, "1s overrun late 3 10ms").unwrap();
        assert_eq!(delayed(&system, &[fault]), [Some(0), Some(1), Some(2)]);
        let fault = parse_fault(&system, "1s overrun apart 3 10ms").unwrap();
        assert_eq!(delayed(&system, &[fault]), [Some(3)]);
    }

    #[test]
    fn what_was_drawn_can_be_asked_for() {
        let system = diapason_system::parse("f", SYSTEM).unwrap();
        for fault in drawn(&system, 5, 300_000_000_000) {
            assert_eq!(parse_fault(&system, &system.fault_words(&fault)).unwrap(), fault);
        }
    }
}
