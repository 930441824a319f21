//! Campaigns against the USB server in the simulator: a hub whose four devices come and go all the
//! time, beside a sensor that must not notice.
//!
//! *Sound* devices (a keyboard, a disk, a hub, a second sensor) leave the pools as they found them.
//! *Trees* do, too: chains of up to five hubs in all, whose last one loses and gets devices all the
//! time until it is pulled itself. The server serves all of them.
//! *Hostile* ones lie about themselves, and fail, cut, garble and swallow packets; nothing may
//! break, and the pools are in the end what they were in the beginning.

mod heard;

use crate::qemu_tests::observed::Observed;
use crate::tally::Tally;
use diapason::console::Line;
use diapason::describe::describe;
use diapason::metal::Built;
use diapason::session::Session;
use diapason::surroundings::Functions;
use diapason::{Failure, Workspace, metal};
use diapason_abi::Nanos;
use diapason_contract::threads::HUBS;
use diapason_core::{Decision, Kernel, Stock};
use diapason_devices::UsbDevice;
use diapason_devices::disk::Disk;
use diapason_devices::faulty::lies::{DescriptorChange, Lie, catalogue};
use diapason_devices::faulty::{FaultTally, Faulty, PacketFault, Rule};
use diapason_devices::hub::HubModel;
use diapason_devices::keyboard::KeyboardModel;
use diapason_devices::restless::{Restless, Rhythm};
use diapason_devices::sensor::Sensor;
use diapason_random::Random;
use diapason_sim::{Observer, Options, PluggedController, Said, XHCI};
use diapason_system::RunOptions;
use diapason_usb::setup::descriptor_type;
use heard::{Hearing, Pulls, ReadDisk};
use std::rc::Rc;

/// Devices that come and go beside a sensor.
pub const WAVES: &str = "tests/systems/usb-waves.toml";
/// Ports whose devices come and go.
const PORTS: u8 = 4;
/// How devices come and go: long enough that all of them are found, and missed. A hub tells four
/// times a second what has changed.
const FROM: Nanos = Nanos::from_millis(500);
const STAY: Nanos = Nanos::from_millis(900);
const AWAY: Nanos = Nanos::from_millis(400);
/// Packets of the sensor in a second, less one that may be under way.
const PACKETS: u64 = 399;

/// Lines that are shown of what went before a failure.
const BEFORE: usize = 24;

/// The kind of devices that come and go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wave {
    /// Devices that do what they should.
    Sound,
    /// Devices that do not.
    Hostile,
    /// Chains of hubs, at whose ends sound devices come and go.
    Trees,
}

/// Trees at a time.
const TREES: u8 = 2;
/// The most hubs of a tree, below the one that it is plugged into.
const DEEP: u64 = 4;
/// Hubs on the way to the deepest devices that the server must find: it serves one more, which is
/// in the other tree.
const FOUND: usize = HUBS - 1;
/// How trees come and go, and the devices at their ends. All hubs of a tree are found before the
/// first of these come.
const TREE_STAY: Nanos = Nanos::from_secs(8);
const TREE_AWAY: Nanos = Nanos::from_secs(1);
const TREE_FOUND: Nanos = Nanos::from_millis(2_500);
const LEAF_STAY: Nanos = Nanos::from_millis(350);
const LEAF_AWAY: Nanos = Nanos::from_millis(150);
/// Devices at the end of a tree, and how often they come.
const LEAVES: u8 = 2;
const LEAF_TIMES: u64 = 10;
/// Devices that came or left in a second, at least.
const CHANGES: u64 = 10;

impl Wave {
    /// Returns how many devices or trees come at a time, and in which rhythm.
    const fn rhythm(self, times: u64) -> (u8, Rhythm) {
        match self {
            Wave::Sound | Wave::Hostile => {
                (PORTS, Rhythm { from: FROM, stay: STAY, away: AWAY, times })
            }
            Wave::Trees => (TREES, Rhythm { from: FROM, stay: TREE_STAY, away: TREE_AWAY, times }),
        }
    }

    /// Returns the length of a run in which all have come and left.
    pub const fn length_ns(self, times: u64) -> u64 {
        let (_, Rhythm { from, stay, away, .. }) = self.rhythm(times);
        from.0 + (times + 1) * (stay.0 + away.0)
    }
}

/// Returns a controller with a sensor, and the hub with its devices.
pub fn around(wave: Wave, times: u64, seed: u64) -> Functions {
    counted(wave, times, seed, &Notes::default())
}

/// The books of devices.
#[derive(Clone, Default)]
struct Notes {
    /// Faults that were injected, and lies that were told.
    tally: Rc<FaultTally>,
    pulls: Pulls,
}

/// Returns the controller and its devices, which keep these books.
fn counted(wave: Wave, times: u64, seed: u64, notes: &Notes) -> Functions {
    let Notes { tally, pulls } = notes.clone();
    let (ports, rhythm) = wave.rhythm(times);
    let make = move |number: u64| match wave {
        Wave::Sound => sound(number, &pulls),
        Wave::Hostile => hostile(number, seed, &tally),
        Wave::Trees => tree(number, seed, &pulls),
    };
    let mut controller = PluggedController::new();
    controller.plug(1, Box::new(Sensor::default()));
    controller.plug(2, Box::new(Restless::new(ports, rhythm, Box::new(make))));
    vec![(XHCI, Box::new(controller))]
}

/// Returns one of four, by its number.
fn sound(number: u64, pulls: &Pulls) -> Box<dyn UsbDevice> {
    match number % 4 {
        0 => Box::new(KeyboardModel::typing(Nanos::from_millis(100), 10_000)),
        1 => Box::new(ReadDisk::new(Disk::new(4096), pulls)),
        2 => Box::new(HubModel::new(false, 4)),
        _ => Box::new(Sensor::default()),
    }
}

/// Returns the hubs of a tree: every fourth is as deep as the standard allows, and the one beside
/// it has a single hub. So the server has room for all hubs of both.
fn hubs(number: u64, seed: u64) -> u64 {
    match number % 4 {
        0 => DEEP,
        1 => 1,
        2 => 1 + Random::stream(seed, number).below(DEEP),
        _ => HUBS as u64 - 1 - hubs(number - 1, seed),
    }
}

/// Returns a chain of hubs. At the last one devices come and go until it is pulled.
fn tree(number: u64, seed: u64, pulls: &Pulls) -> Box<dyn UsbDevice> {
    let mut random = Random::stream(seed, !number);
    let (_, Rhythm { from, stay, away, .. }) = Wave::Trees.rhythm(0);
    let plugged = from.0 + number / u64::from(TREES) * (stay.0 + away.0);
    let rhythm = Rhythm {
        from: Nanos(plugged) + TREE_FOUND,
        stay: LEAF_STAY,
        away: LEAF_AWAY,
        times: LEAF_TIMES,
    };
    let (first, pulls) = (random.below(4), Rc::clone(pulls));
    let make = move |number| sound(first + number, &pulls);
    let last = Restless::new(LEAVES, rhythm, Box::new(make));
    let mut tree: Box<dyn UsbDevice> = Box::new(last);
    for _ in 1..hubs(number, seed) {
        let mut hub = HubModel::new(false, 4);
        let port = 1 + random.below(4) as u8;
        let fits = hub.plug(Nanos::ZERO, port, tree);
        assert!(fits.is_ok(), "a new hub has free ports");
        tree = Box::new(hub);
    }
    tree
}

/// Returns how many devices come or leave in so many waves of trees.
fn tree_changes(times: u64, seed: u64) -> u64 {
    let trees = times * u64::from(TREES);
    let leaves = trees * u64::from(LEAVES) * LEAF_TIMES;
    2 * (leaves + (0..trees).map(|number| hubs(number, seed)).sum::<u64>())
}

/// Checks that enough devices came and left, that the server found most of them to the end, and
/// some behind as many hubs as there can be.
fn grown(boot: &Observed, times: u64, seed: u64) -> Result<String, String> {
    let (changes, ns) = (tree_changes(times, seed), times * (TREE_STAY.0 + TREE_AWAY.0));
    let rate = changes * 1_000_000_000 / ns;
    let server = boot.log("usbd");
    let routes = server.iter().filter_map(|line| line.split(", route ").nth(1)?.split(':').next());
    let mut depths = [0_u64; FOUND + 1];
    routes.for_each(|route| depths[if route == "0" { 0 } else { route.len().min(FOUND) }] += 1);
    let (found, came) = (depths.iter().sum::<u64>(), changes / 2);
    let said = format!(
        "{changes} changes, {rate} a second; of {came} devices that came, {found} were found, by \
         their hubs: {depths:?}"
    );
    // Some may leave before their turn comes.
    let all = 10 * found >= 9 * came && !depths.contains(&0);
    if rate >= CHANGES && all { Ok(said) } else { Err(said) }
}

/// Returns a device with a lie or two, and with packets that go wrong.
fn hostile(number: u64, seed: u64, tally: &Rc<FaultTally>) -> Box<dyn UsbDevice> {
    let mut random = Random::stream(seed, number);
    let lies = catalogue();
    let known = |random: &mut Random| lies[random.below(lies.len() as u64) as usize].1.clone();
    let noise = |random: &mut Random| {
        let kinds = [descriptor_type::DEVICE, descriptor_type::CONFIGURATION, descriptor_type::HUB];
        let about = kinds[random.below(3) as usize];
        let count = 1 + random.below(4) as u32;
        let from_read = if random.one_in(3) { random.below(3) as u32 } else { 0 };
        Lie { from_read, ..Lie::new(about, DescriptorChange::Noise(count)) }
    };
    let faults = [
        PacketFault::Stall,
        PacketFault::Error,
        PacketFault::Babble,
        PacketFault::Empty,
        PacketFault::Cut(3),
        PacketFault::Garble(5),
    ];
    let fault = faults[random.below(faults.len() as u64) as usize];
    let one_in = 1 << random.below(5);
    let device =
        Faulty::new(sound(number, &Pulls::default()), random.bits()).counted(Rc::clone(tally));
    let device = match random.below(8) {
        0 => device,
        1 => device.lie(known(&mut random)),
        2..=4 => device.lie(noise(&mut random)),
        _ => device.lie(known(&mut random)).lie(noise(&mut random)),
    };
    let packets = Rule { one_in, ..Rule::always(fault) };
    let requests = Rule { endpoint: Some(0), one_in: 32 << random.below(4), ..Rule::always(fault) };
    Box::new(device.rule(packets).rule(requests))
}

/// Checks, by the observations of the neighbours, that the sensor noticed nothing and the pools are
/// what they were.
pub fn beside(boot: &Observed, wave: Wave) -> Result<String, String> {
    let reader = boot.log("sensor-reader");
    let reports = reader.iter().filter(|line| line.starts_with("SENSOR "));
    let numbers: Vec<Vec<u64>> = reports
        .map(|line| line.split_whitespace().skip(1).filter_map(|word| word.parse().ok()).collect())
        .collect();
    let last = numbers.last().filter(|last| last.len() == 4).ok_or("the sensor said nothing")?;
    if last[1] + last[2] > 0 {
        return Err(format!("the sensor lost packets: {last:?}"));
    }
    let steps = numbers.windows(2).map(|pair| pair[1][0].saturating_sub(pair[0][0]));
    if let Some((report, slow)) = (1..).zip(steps).find(|(_, packets)| *packets < PACKETS) {
        let said = before_report(boot, report).join("\n");
        return Err(format!(
            "only {slow} packets of the sensor in second {report}; before:\n{said}"
        ));
    }
    let server = boot.log("usbd");
    let left = pools(&server)?;
    let found = server.iter().filter(|line| line.starts_with("port ")).count();
    let failed = server.iter().filter(|line| line.contains("does not work")).count();
    let packets = last[0];
    Ok(format!(
        "{wave:?}: {found} found, {failed} times none worked; {packets} packets beside; {left}"
    ))
}

/// Returns the server's last statement before the sensor's client had reported so many times and
/// once more.
fn before_report(boot: &Observed, reports: usize) -> Vec<String> {
    let logged = boot.lines.iter().filter_map(|line| match line {
        Line::Log { text, .. } => Some(text),
        _ => None,
    });
    let (mut seen, mut said) = (0, Vec::new());
    for text in logged {
        seen += usize::from(text.starts_with("SENSOR "));
        if seen > reports {
            break;
        }
        said.push(text.clone());
    }
    said.split_off(said.len().saturating_sub(BEFORE))
}

/// Checks the rest of the pools whenever only the sensor and the hub are there: never less than at
/// first, and of the heap no less in the second half than in the first. How often that was, and
/// what it was.
fn pools(server: &[&str]) -> Result<String, String> {
    let parse = |line: &&str| -> Option<(Vec<u64>, u64)> {
        let words = line.strip_prefix("pools: ")?.split_whitespace();
        let mut numbers: Vec<u64> = words.filter_map(|word| word.parse().ok()).collect();
        let heap = numbers.pop()?;
        Some((numbers, heap))
    };
    let all: Vec<(Vec<u64>, u64)> = server.iter().filter_map(parse).collect();
    let most = all.iter().map(|(free, _)| free[0]).max().ok_or("no device ever left")?;
    let empty: Vec<&(Vec<u64>, u64)> = all.iter().filter(|(free, _)| free[0] == most).collect();
    let (first, second) = empty.split_at(empty.len() / 2);
    let heap = |half: &[&(Vec<u64>, u64)]| half.iter().map(|(_, heap)| *heap).max().unwrap_or(0);
    let (times, usual) = (empty.len(), &empty[0].0);
    let said = format!("{times} times left {usual:?}, heap {} then {}", heap(first), heap(second));
    // A transfer of the sensor may have ended and not be asked for again yet: that is more.
    let less = |free: &[u64]| free.iter().zip(usual).any(|(now, usual)| now < usual);
    if let Some(at) = empty.iter().position(|(free, _)| less(free)) {
        return Err(format!("{said}, but {:?} at the time of number {at}", empty[at].0));
    }
    if times > 1 && heap(second) <= heap(first) { Ok(said) } else { Err(said) }
}

/// The kernel's objects given out whenever the server reported the rest of its own pools.
#[derive(Default)]
struct Stocktaking {
    said: Option<u64>,
    /// Devices that the server had room for, and the kernel's stock.
    taken: Vec<(u64, Stock)>,
}

impl Observer for Stocktaking {
    fn hear(&mut self, said: Said) {
        if let Said::Log(_, text) = said
            && let Some(words) = text.strip_prefix("pools: ")
        {
            self.said = words.split_whitespace().next().and_then(|word| word.parse().ok());
        }
    }

    fn decided(&mut self, _: Nanos, _: Nanos, kernel: &Kernel<'_>, _: &Decision) {
        if let Some(free) = self.said.take() {
            self.taken.push((free, kernel.stock()));
        }
    }
}

impl Stocktaking {
    /// Checks that the stock was the same in the second half of the times when only the sensor and
    /// the hub were there, and never more than at the first. A client may have ended in the first
    /// half.
    fn is_level(&self) -> Result<String, String> {
        let most = self.taken.iter().map(|(free, _)| *free).max();
        let alone = self.taken.iter().filter(|(free, _)| Some(*free) == most);
        let stocks: Vec<Stock> = alone.map(|(_, stock)| *stock).collect();
        let (first, second) = stocks.split_at(stocks.len() / 2);
        let (Some(at_first), Some(at_last)) = (first.first(), second.last()) else {
            return Err("the stock was not taken twice".into());
        };
        let level = second.iter().all(|stock| stock == at_last);
        if !level || at_last.exceeds(at_first) {
            return Err(format!("the kernel had {at_first:?}, in the end {at_last:?}"));
        }
        Ok(format!("{} times the kernel had {at_last:?}", second.len()))
    }
}

/// Simulates so many waves. Checks that nobody was disturbed, nothing was left behind, and each
/// client heard in time that its disk was gone.
fn run(
    workspace: &Workspace,
    built: &Built,
    (wave, times, seed): (Wave, u64, u64),
) -> Result<(), String> {
    let system = describe(&workspace.root().join(WAVES)).map_err(|f| f.to_string())?;
    let horizon_ns = wave.length_ns(times);
    let options = RunOptions { horizon_ns, record_bytes: 0, watch: false };
    let session = Session::assemble(system, built.clone(), options).map_err(|f| f.to_string())?;
    let notes = Notes::default();
    let among = counted(wave, times, seed, &notes);
    let mut watchers = (Stocktaking::default(), Hearing::default());
    let boot = Observed::simulate_watched(&session, among, &Options::default(), &mut watchers)?;
    let seen = beside(&boot, wave)?;
    let FaultTally { liars, lies, faults } = &*notes.tally;
    let (liars, lies, faults) = (liars.get(), lies.get(), faults.get());
    println!("{seen}; {liars} devices lied, {lies} times in all, {faults} faults");
    if wave == Wave::Trees {
        println!("{}", grown(&boot, times, seed)?);
        println!("{}", watchers.1.is_in_time(&notes.pulls, Nanos(horizon_ns))?);
    }
    println!("{}", watchers.0.is_level()?);
    Ok(())
}

/// Waves of trees in each test run, and the seed of their depths. The heap has been at its fullest
/// in the first half of them.
const USUAL: (u64, u64) = (16, 17);

/// Runs some waves of trees.
pub fn trees(workspace: &Workspace, built: &Built) -> Result<(), String> {
    let (times, seed) = USUAL;
    run(workspace, built, (Wave::Trees, times, seed))
}

/// Simulates as many waves of each kind as are asked for, each kind in a step.
///
/// # Errors
/// If the programs cannot be built.
pub fn command(
    workspace: &Workspace,
    [cycles, hostile, trees]: [u64; 3],
    seed: u64,
) -> Result<u8, Failure> {
    let mut tally = Tally::default();
    let built = metal::build(workspace)?;
    let waves = [
        (Wave::Sound, cycles),
        (Wave::Hostile, hostile.div_ceil(PORTS.into())),
        (Wave::Trees, trees),
    ];
    for (wave, times) in waves {
        if times == 0 {
            continue;
        }
        let (ports, _) = wave.rhythm(times);
        tally.step(&format!("{times} times {ports} devices: {wave:?}"), || {
            run(workspace, &built, (wave, times, seed))
        });
    }
    Ok(tally.finish())
}
