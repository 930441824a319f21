//! Draws an interface with its pipes and chains, and the devices beside it.

use super::spread;
use crate::systems::drawn::{
    Budget, Commands, DiskPipe, Drawn, DrawnOutput, DrawnPipe, DrawnSamples, FramePipe, Gadget,
    Interface, KBITS, Onward, Sender, TRAFFIC, TURNS, reader,
};
use diapason_random::Random;

/// The time from one packet of a sensor to the next, in nanoseconds.
const SENSOR_PERIOD: u64 = 2_500_000;
/// That of an instrument, and of the reports of a keyboard.
const INSTRUMENT_PERIOD: u64 = 2_000_000;
/// From one piece of a picture to the next.
const PIECE_PERIOD: u64 = 125_000;
/// From one run of blocks of a disk to the next.
const DISK_PERIOD: u64 = 8_000_000;
const KEYS_PERIOD: u64 = 50_000_000;

/// Draws an interface with everything that its server serves.
pub fn interface(random: &mut Random) -> Interface {
    let mut channels = vec![0, 1, 2, 3, 4];
    let count = if random.one_in(3) { 5 } else { random.between(1, 5) };
    while channels.len() > count as usize {
        channels.remove(random.index(channels.len()));
    }
    let lies = random.one_in(8);
    let tuned = random.one_in(10);
    // Without one pipe from the device nothing asks it for acknowledgements.
    let written = if random.one_in(3) { random.below(channels.len() as u64) } else { 0 };
    let outputs = (0..written).filter_map(|_| channels.pop()).map(|it| output(random, it));
    let outputs: Vec<DrawnOutput> = outputs.collect();
    let tuned = tuned && outputs.is_empty();
    // A tuned pipe of a channel asks for what the channel's own pipe says.
    let mut pipes: Vec<DrawnPipe> =
        channels.iter().map(|channel| pipe(random, *channel, lies && !tuned)).collect();
    if random.one_in(3) && !tuned {
        chains(random, &mut pipes, &outputs);
    }
    let classes = if random.one_in(3) { classes(random) } else { Vec::new() };
    let manage = Budget {
        budget: 1_000 * spread(random, 10, 400),
        period: 1_000 * random.pick(&[1_000, 2_500, 5_000, 10_000]),
    };
    Interface {
        manage,
        share: random.between(3, 45),
        works: spread(random, 2, 100),
        pipes,
        kbits: random.pick(&[KBITS, KBITS, KBITS, 1_000, 250, 125]),
        behind_hub: random.one_in(12),
        few: random.one_in(3),
        second: None,
        bursts: false,
        outputs,
        classes,
        tuned,
        stretch: 1,
    }
}

/// Adds a second interface with one channel.
pub fn second(random: &mut Random, can: &mut Interface) {
    let traffic = random.below(5);
    can.second = Some(DrawnPipe { shares: false, ..pipe(random, traffic, false) });
}

/// Adds a second camera with a pipe to every other interface that has a first one, a second sensor
/// and a second disk likewise. The rest of the system `number` of a campaign is drawn as it was
/// before there was one.
pub fn seconds((seed, number): (u64, u64), can: &mut Interface) {
    second_camera(&mut Random::stream(seed.rotate_left(48), number), can);
    second_sensor(&mut Random::stream(seed.rotate_left(40), number), can);
    second_disk(&mut Random::stream(seed.rotate_left(24), number), can);
}

fn second_camera(random: &mut Random, can: &mut Interface) {
    let is_camera = |class: &Gadget| match class {
        Gadget::Pictures(_, samples) => Some(*samples),
        _ => None,
    };
    if let Some((place, samples)) = beside(random, PIECE_PERIOD, can, is_camera) {
        let slow = random.one_in(2);
        can.classes.insert(place, Gadget::SecondPictures(slow, samples));
    }
}

fn second_sensor(random: &mut Random, can: &mut Interface) {
    let is_sensor = |class: &Gadget| match class {
        Gadget::Samples(samples) => Some(*samples),
        _ => None,
    };
    if let Some((place, samples)) = beside(random, SENSOR_PERIOD, can, is_sensor) {
        can.classes.insert(place, Gadget::SecondSamples(samples));
    }
}

fn second_disk(random: &mut Random, can: &mut Interface) {
    let is_disk = |class: &Gadget| match class {
        Gadget::Blocks(_, samples) => Some(*samples),
        _ => None,
    };
    if let Some((place, samples)) = beside(random, DISK_PERIOD, can, is_disk) {
        let pipe = DiskPipe { fast: random.one_in(2), writes: random.one_in(2) };
        can.classes.insert(place, Gadget::SecondBlocks(pipe, samples));
    }
}

/// Returns the place and the pipe of a second device, to every other interface that has a first
/// one. Both have the same works.
fn beside(
    random: &mut Random,
    every: u64,
    can: &Interface,
    is_first: impl Fn(&Gadget) -> Option<DrawnSamples>,
) -> Option<(usize, DrawnSamples)> {
    if !random.one_in(2) {
        return None;
    }
    let mut classes = can.classes.iter().enumerate();
    let (place, first) = classes.find_map(|(place, class)| Some((place, is_first(class)?)))?;
    let DrawnSamples { share, server, replenishments, .. } = samples(random, every);
    Some((place + 1, DrawnSamples { share, server, replenishments, ..first }))
}

/// Adds devices with pipes from them, if there is none yet.
pub fn reads(random: &mut Random, can: &mut Interface) {
    if can.classes.iter_mut().any(|class| reader(class).is_some()) {
        return;
    }
    let has = |wanted: fn(&Gadget) -> bool| can.classes.iter().any(wanted);
    let (sensor, camera) = (
        has(|class| matches!(class, Gadget::Sensor)),
        has(|class| matches!(class, Gadget::Camera(_))),
    );
    let keys = has(|class| matches!(class, Gadget::Keyboard));
    let some = random.between(1, 7);
    if some & 1 > 0 && !sensor {
        can.classes.push(Gadget::Samples(samples(random, SENSOR_PERIOD)));
    }
    if some & 2 > 0 && !camera {
        let pictures = samples(random, PIECE_PERIOD);
        can.classes.push(Gadget::Pictures(random.one_in(2), pictures));
    }
    if some & 4 > 0 {
        can.classes.push(endpoint(random, keys));
    }
}

/// Adds an actuator or a servo drive with a pipe to it, and leaves less of what else is there. One
/// writer of four writes more than its pipe allows.
pub fn sink(random: &mut Random, can: &mut Interface) {
    can.classes.truncate(1);
    can.pipes.truncate(2);
    can.tuned = false;
    let period = random.pick(&[10_000, 20_000, 50_000, 100_000]);
    let each = if random.one_in(4) { spread(random, 2, 64) } else { 1 };
    let commands = Commands {
        pair: random.one_in(2),
        bulk: random.one_in(2),
        period,
        busy: random.pick(&[1, 100, 200, 1_000]),
        each,
    };
    if commands.pair {
        // A server has one pipe from the endpoint of any device.
        can.classes.retain(|class| !matches!(class, Gadget::Endpoint(..)));
    }
    let samples = samples(random, 1_000 * period);
    can.classes.push(Gadget::Sink(commands, samples));
}

/// Lets some of the pipes begin a chain. There is at most one of each kind, as their programs name
/// what they hand over by.
fn chains(random: &mut Random, pipes: &mut [DrawnPipe], outputs: &[DrawnOutput]) {
    let mut seat = |periods: &[u64]| {
        let period = 1_000 * random.pick(periods);
        let budget = (1_000 * spread(random, 40, 1_000)).min(period / 2);
        Budget { budget, period }
    };
    let [control, writer] = [(); 2].map(|()| seat(&[1_000, 2_500, 2_500, 5_000, 10_000]));
    let shown = seat(&[2_500, 5_000, 10_000, 20_000, 40_000]);
    let every = random.pick(&[5_000, 10_000, 20_000, 50_000]);
    let read: Vec<u64> = pipes.iter().map(|pipe| pipe.channel).collect();
    let mut first = pipes.iter_mut();
    if let (Some(pipe), true) = (first.next(), random.one_in(2)) {
        pipe.chain = Some(Onward::Shown(every, shown));
    }
    let taken = outputs.iter().map(|output| output.channel).chain(read).collect::<Vec<u64>>();
    let free = (0..5).find(|channel| !taken.contains(channel));
    if let (Some(to), Some(pipe), true) = (free, first.next(), random.one_in(2)) {
        pipe.chain = Some(Onward::Relayed(to, control, writer));
    }
    pipes.iter_mut().for_each(|pipe| pipe.shares &= pipe.chain.is_none());
}

/// Returns a writer that fills its pipe about as often as the receiver on the bus empties it.
fn output(random: &mut Random, channel: u64) -> DrawnOutput {
    let rate = spread(random, 100, TURNS);
    let burst = spread(random, 1, 128);
    let period = (burst * 1_000_000 / rate).clamp(1_000, 100_000);
    let budget = spread(random, 10, period / 2);
    DrawnOutput {
        channel,
        rate,
        burst,
        server: Budget { budget: 1_000 * budget, period: 1_000 * period },
        replenishments: random.pick(&[2, 4, 8]),
    }
}

fn classes(random: &mut Random) -> Vec<Gadget> {
    let sensor = match random.one_in(2) {
        true => Gadget::Samples(samples(random, SENSOR_PERIOD)),
        false => Gadget::Sensor,
    };
    let camera = match random.one_in(2) {
        true => Gadget::Pictures(random.one_in(2), samples(random, PIECE_PERIOD)),
        false => Gadget::Camera(spread(random, 5, 200)),
    };
    let disk = match random.one_in(2) {
        true => {
            let pipe = DiskPipe { fast: random.one_in(2), writes: random.one_in(2) };
            Gadget::Blocks(pipe, samples(random, DISK_PERIOD))
        }
        false => Gadget::Disk(spread(random, 10, 3_000)),
    };
    let all = [sensor, Gadget::Keyboard, disk, camera, network(random)];
    let mut some: Vec<Gadget> = all.into_iter().filter(|_| random.one_in(2)).collect();
    if random.one_in(2) {
        // The server's keyboard would take that of the pipe away.
        let keys = some.contains(&Gadget::Keyboard);
        some.push(endpoint(random, keys));
    }
    some
}

/// Returns a network device, with a pipe or without one.
fn network(random: &mut Random) -> Gadget {
    if random.one_in(2) {
        return Gadget::Network(spread(random, 5, 200));
    }
    let writes = random.one_in(2);
    let every = random.pick(match writes {
        true => &[1_000, 2_000, 5_000, 10_000, 20_000][..],
        false => &[200, 500, 1_000],
    });
    let both = writes && random.one_in(2);
    Gadget::Frames(
        FramePipe { every, writes, both, datagrams: false },
        samples(random, 1_000 * every),
    )
}

/// Lets the frames of a network device to which a pipe goes be datagrams, both ways, on a host with
/// one core.
pub fn datagrams((seed, number): (u64, u64), drawn: &mut Drawn) {
    let has_sockets = Random::stream(seed.rotate_left(24), number).one_in(2);
    if !has_sockets || drawn.cores() > 1 {
        return;
    }
    for class in drawn.can.iter_mut().flat_map(|can| &mut can.classes) {
        if let Gadget::Frames(pipe, _) = class {
            (pipe.both, pipe.datagrams) = (pipe.writes, pipe.writes);
        }
    }
}

/// A pipe from an endpoint; from that of a keyboard only if there is no other keyboard.
fn endpoint(random: &mut Random, keys: bool) -> Gadget {
    let sender = match random.below(3) {
        0 if !keys => Sender::Keys,
        1 => Sender::Bulk,
        _ => Sender::Interrupt,
    };
    let every = if sender == Sender::Keys { KEYS_PERIOD } else { INSTRUMENT_PERIOD };
    Gadget::Endpoint(sender, samples(random, every))
}

/// A pipe of a message every so many nanoseconds, with budgets from just enough up.
fn samples(random: &mut Random, every: u64) -> DrawnSamples {
    let work = spread(random, 1_000, 200_000.min(every / 2));
    let takes = if random.one_in(3) { work / 2 } else { work };
    let period: u64 = 1_000 * random.pick(&[1_000, 2_500, 2_500, 5_000, 10_000, 20_000]);
    let load = work * period.div_ceil(every);
    let budget = (load * spread(random, 80, 800) / 100).clamp(1_000, period * 6 / 10);
    DrawnSamples {
        half: spread(random, 5, 60),
        share: random.between(3, 25),
        work,
        takes,
        server: Budget { budget, period },
        replenishments: random.pick(&[2, 4, 8, 8]),
        core: 0,
    }
}

fn pipe(random: &mut Random, channel: u64, lies: bool) -> DrawnPipe {
    let work = spread(random, 300, 12_000);
    let takes = match random.below(6) {
        0 if lies => work * random.between(2, 100),
        1 => work / 2,
        _ => work,
    };
    let rate = if lies && random.one_in(4) { random.between(1, 99) } else { 100 };
    let period = 1_000 * random.pick(&[200, 500, 1_000, 2_500, 2_500, 5_000, 10_000, 20_000]);
    // The time that the messages of a period take, and a part or a multiple of it.
    let load = TRAFFIC[channel as usize] * work * (period / 1_000) / 1_000_000;
    let factor = spread(random, 80, 1_600);
    let budget = (load * factor / 100).clamp(1_000, period * 6 / 10);
    DrawnPipe {
        channel,
        rate,
        burst: 4,
        work,
        takes,
        server: Budget { budget, period },
        replenishments: random.pick(&[2, 4, 8, 8, 8]),
        shares: random.one_in(8),
        jitter: if random.one_in(4) { spread(random, 1, 5_000) } else { 0 },
        chain: None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::raw;
    use super::*;

    /// Counts the interfaces of many for which something is true.
    fn share(of: impl Fn(&Interface) -> bool) -> usize {
        (0..1_000).filter(|n| of(&interface(&mut Random::stream(7, *n)))).count()
    }

    #[test]
    fn some_interfaces_have_two_devices_of_a_kind() {
        let all: Vec<Drawn> = (0..1_000).map(|number| raw(7, number)).collect();
        let has = |second: fn(&Gadget) -> bool| {
            all.iter()
                .filter_map(|drawn| drawn.can.as_ref())
                .any(|can| can.classes.iter().any(second))
        };
        assert!(has(|class| matches!(class, Gadget::SecondPictures(..))));
        assert!(has(|class| matches!(class, Gadget::SecondSamples(_))));
        assert!(has(|class| matches!(class, Gadget::SecondBlocks(..))));
    }

    #[test]
    fn some_frames_are_datagrams_on_a_host_with_one_core() {
        let all: Vec<Drawn> = (0..1_000).map(|number| raw(7, number)).collect();
        let has = |drawn: &&Drawn| {
            let mut classes = drawn.can.iter().flat_map(|can| &can.classes);
            classes.any(|it| matches!(it, Gadget::Frames(pipe, _) if pipe.datagrams))
        };
        let some: Vec<&Drawn> = all.iter().filter(has).collect();
        assert!(some.len() > 5, "{}", some.len());
        assert!(some.iter().all(|drawn| drawn.cores() == 1));
    }

    #[test]
    fn every_part_is_drawn() {
        let chain = |it: &Interface, wanted: fn(&Onward) -> bool| {
            it.pipes.iter().filter_map(|pipe| pipe.chain.as_ref()).any(wanted)
        };
        assert!(share(|it| chain(it, |onward| matches!(onward, Onward::Shown(..)))) > 30);
        assert!(share(|it| chain(it, |onward| matches!(onward, Onward::Relayed(..)))) > 30);
        assert!(share(|it| !it.outputs.is_empty()) > 100);
        assert!(share(|it| it.tuned) > 30);
        assert!(share(|it| it.few) > 200);
        assert!(share(|it| it.kbits < KBITS) > 200);
        let class = |it: &Interface, wanted: fn(&Gadget) -> bool| it.classes.iter().any(wanted);
        assert!(share(|it| class(it, |gadget| matches!(gadget, Gadget::Camera(_)))) > 50);
        assert!(share(|it| class(it, |gadget| matches!(gadget, Gadget::Network(_)))) > 50);
        assert!(share(|it| class(it, |gadget| matches!(gadget, Gadget::Samples(_)))) > 50);
        assert!(share(|it| class(it, |gadget| matches!(gadget, Gadget::Pictures(..)))) > 50);
        for writes in [false, true] {
            let is_it =
                |gadget: &Gadget| matches!(gadget, Gadget::Blocks(it, _) if it.writes == writes);
            assert!(share(|it| it.classes.iter().any(is_it)) > 20, "{writes}");
        }
        for writes in [false, true] {
            let is_it =
                |gadget: &Gadget| matches!(gadget, Gadget::Frames(it, _) if it.writes == writes);
            assert!(share(|it| it.classes.iter().any(is_it)) > 20, "{writes}");
        }
        let both = |gadget: &Gadget| matches!(gadget, Gadget::Frames(it, _) if it.both);
        assert!(share(|it| it.classes.iter().any(both)) > 10);
        for sender in [Sender::Keys, Sender::Interrupt, Sender::Bulk] {
            let is_it =
                |gadget: &Gadget| matches!(gadget, Gadget::Endpoint(it, _) if *it == sender);
            assert!(share(|it| it.classes.iter().any(is_it)) > 15, "{sender:?}");
        }
    }

    #[test]
    fn every_kind_of_sink_is_drawn() {
        let (mut floods, mut bulk, mut pairs) = (0, 0, 0);
        for number in 0..100 {
            let random = &mut Random::stream(7, number);
            let mut it = interface(random);
            sink(random, &mut it);
            let Some(Gadget::Sink(commands, _)) = it.classes.last() else { panic!("{it:?}") };
            floods += usize::from(commands.each > 1);
            bulk += usize::from(commands.bulk);
            pairs += usize::from(commands.pair);
        }
        assert!((10..50).contains(&floods) && (30..70).contains(&bulk), "{floods}, {bulk}");
        assert!((30..70).contains(&pairs), "{pairs}");
    }

    #[test]
    fn no_channel_is_read_and_written() {
        for number in 0..1_000 {
            let drawn = interface(&mut Random::stream(7, number));
            let relayed = drawn.pipes.iter().filter_map(|pipe| match pipe.chain {
                Some(Onward::Relayed(to, ..)) => Some(to),
                _ => None,
            });
            let written = drawn.outputs.iter().map(|output| output.channel).chain(relayed);
            let mut all: Vec<u64> =
                drawn.pipes.iter().map(|pipe| pipe.channel).chain(written).collect();
            let count = all.len();
            all.sort_unstable();
            all.dedup();
            assert_eq!(all.len(), count, "{drawn:?}");
        }
    }
}
