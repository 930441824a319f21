//! A random system as a structure, before it becomes text. Shrinking works on this structure, so
//! every smaller one is a description, too.

use std::collections::BTreeSet;

/// A whole system that was drawn.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Drawn {
    /// Instructions a second, in MHz.
    pub clock_mhz: u64,
    /// In which queues its VCPUs are.
    pub queues: Queues,
    /// The sum that the kernel can compute admits the VCPUs, not the exact test.
    pub closed: bool,
    /// Tasks with a job that is promised.
    pub tasks: Vec<DrawnTask>,
    /// Servers without a VCPU, which tasks ask.
    pub servers: Vec<DrawnServer>,
    /// CAN channels and their readers, if there is an interface.
    pub can: Option<Interface>,
    /// A bus on which programs send by a controller with message buffers.
    pub bus: Option<DrawnBus>,
    /// Programs on several cores that share a segment and a doorbell.
    pub board: Option<DrawnBoard>,
    pub rude: Vec<Rude>,
    /// The budget of the process that restarts those that fault.
    pub watch: Budget,
    /// Clocks of the devices run so many parts per million faster (or slower) than the host's.
    pub drift_ppm: i64,
    /// Faults of the seed happen in one of the runs.
    pub faults: bool,
}

/// In which order VCPUs run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Queues {
    Periods,
    Deadlines,
    /// The first ones of the text by deadline, the others by period.
    First(usize),
}

/// A periodic task of the program `task` with a VCPU of its own; times in microseconds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct DrawnTask {
    /// The time between the releases of two jobs.
    pub period: u64,
    /// The number of jobs that begin in a period of the task's VCPU.
    pub often: u64,
    /// The release of the task's first job.
    pub phase: u64,
    /// The time that a job computes.
    pub work: u64,
    /// The part of it under a mutex that others lock, too.
    pub section: u64,
    /// The budget for each job beyond that, for calls, switches and the holder of the mutex.
    pub spare: u64,
    /// Length of the VCPU's list.
    pub replenishments: u64,
    /// The core that it runs on.
    pub core: u64,
    /// How often a job asks each server. A task that asks leaves its own `section` out.
    pub asks: [u64; SERVERS],
    /// The longest wait for an answer, in microseconds; zero: as long as it takes.
    pub patience: u64,
    /// The task has no VCPU, and nothing is promised of its jobs.
    pub background: bool,
}

/// Most servers of a system; the program `service` has names for so many.
pub const SERVERS: usize = 3;

/// A server of the program `service`; times in microseconds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct DrawnServer {
    /// The time that a request takes, without what other servers do for it.
    pub work: u64,
    /// The part of it under the mutex that tasks lock, too. Only the first such server locks it.
    pub section: u64,
    /// How often it asks the next server for each request.
    pub onward: u64,
}

/// A controller with a job in every millisecond, and a logger on another core that its doorbell
/// wakes. The controller's state message is in a segment in common.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct DrawnBoard {
    /// The core of the controller.
    pub control: u64,
    /// The core of the logger.
    pub logger: u64,
    /// The budget of the logger.
    pub server: Budget,
    /// The shortest time between two rings, in microseconds at 1 GHz.
    pub interval: u64,
    /// The core of a program that never stops, and rings far more often.
    pub storm: Option<u64>,
}

/// A USB-CAN interface, its server, and the pipes from its channels.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Interface {
    /// The budget of the server's threads.
    pub manage: Budget,
    /// Percent of the processor that the bottom half has.
    pub share: u64,
    /// Longest work of each half, in microseconds.
    pub works: u64,
    /// The pipes, each from another channel.
    pub pipes: Vec<DrawnPipe>,
    /// The rate of its channels, in kbit/s. A channel with more traffic than that has [`KBITS`].
    pub kbits: u64,
    /// The interface is behind a hub.
    pub behind_hub: bool,
    /// The interface has no channel behind the last one that is used.
    pub few: bool,
    /// A pipe from the only channel of a second interface. Its `channel` says whose traffic that
    /// has; the number of the channel is [`SECOND`].
    pub second: Option<DrawnPipe>,
    /// The messages of its pipes come as burst-like as their contracts let them, not evenly.
    pub bursts: bool,
    /// The pipes to the interface, each to a channel that no other pipe has.
    pub outputs: Vec<DrawnOutput>,
    /// Other devices, each with its service and its client.
    pub classes: Vec<Gadget>,
    /// A program opens, changes and closes a tuned pipe at random instants.
    pub tuned: bool,
    /// Budgets and periods of clients of other devices and of tuned pipes are so many times as long
    /// as usual.
    pub stretch: u64,
}

/// A bus with a controller that has message buffers, its driver, and the programs that send and
/// read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct DrawnBus {
    /// Its rate in kbit/s.
    pub kbits: u64,
    /// The number of messages that have a buffer of their own.
    pub own: u64,
    pub senders: Vec<DrawnSender>,
    pub readers: Vec<DrawnEar>,
    /// The budget of the driver, and the length of its list.
    pub driver: Budget,
    pub replenishments: u64,
    /// The longest work of the driver for a look, for a search and for a message, in nanoseconds.
    pub works: [u64; 3],
    /// The longest from the release of a message until the controller has it, in microseconds.
    pub jitter: u64,
    /// The period of a message that another unit sends, in microseconds.
    pub others: u64,
    /// The bus is under MTS: its driver keeps the time and renews identifiers.
    pub on_time: bool,
    /// A frame may be destroyed each time that so many milliseconds are over, and some are; zero:
    /// none.
    pub errors: u64,
}

/// A program `message-sender` with its messages.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct DrawnSender {
    /// The period of each message in milliseconds, and its bytes.
    pub messages: Vec<(u64, u64)>,
    /// The time between the first releases of two messages, in microseconds.
    pub apart: u64,
    /// How many times too often it sends each message; zero: as it declares.
    pub often: u64,
    pub server: Budget,
}

/// A program `message-reader` with the messages of other units that it reads.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct DrawnEar {
    /// The period and the deadline of each message, in microseconds. Each is of a unit of its own.
    pub messages: Vec<(u64, u64)>,
    /// The longest work for one, in microseconds.
    pub work: u64,
    pub server: Budget,
}

/// A budget and its period, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Budget {
    /// The time that it may use in every period.
    pub budget: u64,
    pub period: u64,
}

/// A pipe from a channel to a reader of the program `can-reader`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct DrawnPipe {
    /// The number of the channel, 0 to 4.
    pub channel: u64,
    /// Percent of the traffic of the model that is declared; less than 100 is a lie.
    pub rate: u64,
    /// Messages that may come at once, as declared. The model's traffic is even: one is true.
    pub burst: u64,
    /// The declared time of the reader for a message, in nanoseconds.
    pub work: u64,
    /// The time that it really takes.
    pub takes: u64,
    /// The budget of its VCPU.
    pub server: Budget,
    /// Length of the VCPU's list.
    pub replenishments: u64,
    /// The pipe is on the VCPU of the pipe before it.
    pub shares: bool,
    /// How much later than at its nominal time a message may come, in microseconds.
    pub jitter: u64,
    /// The chain that begins with this pipe.
    pub chain: Option<Onward>,
}

/// The threads of a chain behind the reader of its pipe, with their VCPUs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Onward {
    /// A display takes the newest value in this period, in microseconds.
    Shown(u64, Budget),
    /// A controller and a writer pass each message on to this channel.
    Relayed(u64, Budget, Budget),
}

/// A pipe to a channel from a writer of the program `can-writer`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct DrawnOutput {
    /// The number of the channel, 0 to 4.
    pub channel: u64,
    /// Messages a second that the writer keeps to.
    pub rate: u64,
    /// The messages that it writes at once.
    pub burst: u64,
    /// The budget of its VCPU.
    pub server: Budget,
    /// Length of the VCPU's list.
    pub replenishments: u64,
}

/// A device beside the interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Gadget {
    /// 512 bytes every 2.5 ms.
    Sensor,
    /// The same sensor with a pipe from it.
    Samples(DrawnSamples),
    /// A device with a pipe from one of its endpoints.
    Endpoint(Sender, DrawnSamples),
    /// An actuator, or a servo drive, with a pipe to one of its endpoints.
    Sink(Commands, DrawnSamples),
    /// Ten keys a second.
    Keyboard,
    /// A disk whose client writes and reads without a pause; work of its bottom half in
    /// microseconds.
    Disk(u64),
    /// A disk with a pipe from it or to it.
    Blocks(DiskPipe, DrawnSamples),
    /// A camera whose frames are checked; work of its bottom half in microseconds.
    Camera(u64),
    /// The same camera with a pipe from it, at one of two periods.
    Pictures(bool, DrawnSamples),
    /// A second camera with a pipe, behind the first one in the list. Their works are the same.
    SecondPictures(bool, DrawnSamples),
    /// A second sensor with a pipe, behind the first one in the list. Their works are the same.
    SecondSamples(DrawnSamples),
    /// A second disk with a pipe, behind the first one in the list. Their works are the same.
    SecondBlocks(DiskPipe, DrawnSamples),
    /// A network whose other end answers echoes; work of its bottom half in microseconds.
    Network(u64),
    /// A network device with a pipe from it or to it.
    Frames(FramePipe, DrawnSamples),
}

/// A device whose endpoint is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Sender {
    /// Reports of a keyboard.
    Keys,
    /// Packets from the interrupt endpoint of an instrument, or from its bulk endpoint.
    Interrupt,
    Bulk,
}

/// The packets that are written to an actuator; times in microseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Commands {
    /// The device is a servo drive with a pipe from it besides: one packet every 2 ms.
    pub pair: bool,
    /// The packets go to the bulk endpoint, not to the interrupt endpoint.
    pub bulk: bool,
    /// The period of the pipe, and the time between two jobs of the writer.
    pub period: u64,
    /// The longest time for which the actuator says "not now".
    pub busy: u64,
    /// The packets that the writer has in each job. More than one is a flood.
    pub each: u64,
}

/// The pipe of a disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct DiskPipe {
    /// The disk is one of SuperSpeed.
    pub fast: bool,
    /// The pipe goes to the disk.
    pub writes: bool,
}

/// The pipe of a network device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FramePipe {
    /// The time from one frame to the next, in microseconds.
    pub every: u64,
    /// The pipe goes to the device.
    pub writes: bool,
    /// Another one comes from the device besides: a frame each millisecond.
    pub both: bool,
    /// The frames of both are datagrams of a socket, and `netd` is at their ends.
    pub datagrams: bool,
}

/// A pipe from a sensor to a reader of the program `sensor-pipe`, or from an endpoint to one of the
/// program `packet-pipe`, or from a camera to one of the program `picture-pipe`, or from a disk to
/// one of the program `block-pipe`, or from a network device to one of the program `frame-pipe`; or
/// one to an actuator from a writer of `packet-writer`, to a disk from one of `block-writer`, or to
/// a network device from one of `frame-writer`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct DrawnSamples {
    /// Longest work of the bottom half that moves a packet, in microseconds.
    pub half: u64,
    /// Percent of the processor that the bottom half has.
    pub share: u64,
    /// The declared time of the reader or writer for a packet, in nanoseconds.
    pub work: u64,
    /// The time that it really takes to check or to make a packet.
    pub takes: u64,
    /// The budget of its VCPU.
    pub server: Budget,
    /// Length of the VCPU's list.
    pub replenishments: u64,
    /// The core of the reader. Writers, and readers of disks, are on that of the server.
    pub core: u64,
}

/// A seat with a program that misbehaves in it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Rude {
    /// The program's behaviour and the arguments of it, as the README of `rude` says; or [`STORM`],
    /// and a seed for the program `hostile`.
    pub arguments: [u64; 4],
    pub seat: Perch,
    /// The program's priority, 0 to 63.
    pub priority: u64,
    /// The core that it runs on.
    pub core: u64,
}

/// The behaviour that is the program `hostile`.
pub const STORM: u64 = 100;

/// The place of a rude program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Perch {
    /// Background, without a VCPU.
    Background,
    /// On a VCPU of its own, with a list of this length.
    Own(Budget, u64),
    /// On the VCPU of the first reader, or of the first task.
    Beside,
}

/// The number of the first channel behind those of an interface with all of them.
pub const SECOND: u64 = 5;

/// The rate of channels that say none, in kbit/s.
pub const KBITS: u64 = 500;

/// Messages a second that are sent on the bus of each channel.
pub const SENT: [u64; 5] = [463, 391, 1_389, 1_563, 3_194];
/// Messages a second on the bus of each channel, rounded up.
pub const TRAFFIC: [u64; 5] = [470, 400, 1_400, 1_570, 3_200];

/// Messages a second that a receiver on a bus takes at least.
pub const TURNS: u64 = 3_053;

/// Returns the core of the reader of a device, if it may be on another one than the server.
pub const fn reader(class: &mut Gadget) -> Option<&mut u64> {
    match class {
        Gadget::Samples(samples)
        | Gadget::Endpoint(_, samples)
        | Gadget::Sink(Commands { pair: true, .. }, samples)
        | Gadget::Pictures(_, samples)
        | Gadget::SecondPictures(_, samples)
        | Gadget::SecondSamples(samples) => Some(&mut samples.core),
        _ => None,
    }
}

/// Returns the pipes from and to devices of classes.
pub fn samples(classes: &mut [Gadget]) -> impl Iterator<Item = &mut DrawnSamples> {
    classes.iter_mut().filter_map(|class| match class {
        Gadget::Samples(samples)
        | Gadget::Endpoint(_, samples)
        | Gadget::Sink(_, samples)
        | Gadget::Pictures(_, samples)
        | Gadget::SecondPictures(_, samples)
        | Gadget::SecondSamples(samples)
        | Gadget::Blocks(_, samples)
        | Gadget::SecondBlocks(_, samples)
        | Gadget::Frames(_, samples) => Some(samples),
        _ => None,
    })
}

impl Interface {
    /// Returns the channels on whose bus a log is replayed. A lie is about even messages, and a
    /// tuned pipe has a contract of its own.
    pub fn replayed(&self) -> impl Iterator<Item = u64> {
        let all = self.pipes.iter().map(|pipe| pipe.channel);
        let is_true = self.pipes.iter().all(|pipe| pipe.rate == 100);
        all.filter(move |_| self.bursts && is_true && !self.tuned)
    }
}

impl Drawn {
    /// Returns the server that locks the mutex of tasks.
    #[must_use]
    pub fn locker(&self) -> Option<usize> {
        self.servers.iter().position(|server| server.section > 0)
    }

    /// Returns how often the server asks the next one for each request.
    #[must_use]
    pub fn onward(&self, server: usize) -> u64 {
        if server + 1 < self.servers.len() { self.servers[server].onward } else { 0 }
    }

    /// Returns the servers that a task asks itself, with how often. A server that one of them asks
    /// in turn is not among these: a process declares one section for each mutex.
    #[must_use]
    pub fn asked(&self, task: &DrawnTask) -> Vec<(usize, u64)> {
        let mut all = Vec::new();
        let mut in_turn = false;
        for (server, times) in (0..self.servers.len()).zip(task.asks) {
            let asks = times > 0 && !in_turn;
            if asks {
                all.push((server, times));
            }
            in_turn = (in_turn || asks) && self.onward(server) > 0;
        }
        all
    }

    /// Returns the core of everything that may be on another core than the first.
    pub fn places(&mut self) -> Vec<&mut u64> {
        let Drawn { tasks, rude, can, board, .. } = self;
        let mut all: Vec<&mut u64> = tasks.iter_mut().map(|task| &mut task.core).collect();
        all.extend(rude.iter_mut().map(|rude| &mut rude.core));
        all.extend(can.iter_mut().flat_map(|can| &mut can.classes).filter_map(reader));
        if let Some(DrawnBoard { control, logger, storm, .. }) = board {
            all.extend([control, logger].into_iter().chain(storm));
        }
        all
    }

    /// Returns the cores that something runs on, in their order.
    fn busy(&self) -> BTreeSet<u64> {
        let on_first = self.can.is_some() || self.bus.is_some() || !self.servers.is_empty();
        let mut copy = self.clone();
        let places = copy.places().into_iter().map(|core| *core);
        places.chain(on_first.then_some(0)).collect()
    }

    /// Returns how many cores it has.
    #[must_use]
    pub fn cores(&self) -> u64 {
        self.busy().len().max(1) as u64
    }

    /// Returns it without the cores that nothing runs on.
    #[must_use]
    pub fn packed(&self) -> Drawn {
        let busy = self.busy();
        let mut packed = self.clone();
        packed.places().into_iter().for_each(|core| *core = busy.range(..*core).count() as u64);
        packed
    }

    /// Returns whether QEMU has all that it needs: one core, no controller with message buffers,
    /// no actuator, and a hub that is fast enough for what is behind it.
    #[must_use]
    pub fn boots_in_qemu(&self) -> bool {
        let lacks = |can: &Interface| {
            let is_sink = |class: &Gadget| matches!(class, Gadget::Sink(..));
            can.behind_hub || can.classes.iter().any(is_sink)
        };
        self.cores() == 1 && self.bus.is_none() && !self.can.as_ref().is_some_and(lacks)
    }

    /// Returns the number of its parts, which shrinking makes smaller.
    #[must_use]
    pub fn size(&self) -> usize {
        let of = |can: &Interface| {
            let chains = can.pipes.iter().filter(|pipe| pipe.chain.is_some()).count();
            let pipes = can.pipes.len() + usize::from(can.second.is_some());
            3 + pipes + can.outputs.len() + chains + can.classes.len()
        };
        let messages = |sender: &DrawnSender| 1 + sender.messages.len();
        let of_bus = |bus: &DrawnBus| {
            let ears = bus.readers.iter().map(|reader| 1 + reader.messages.len());
            1 + bus.senders.iter().map(messages).sum::<usize>() + ears.sum::<usize>()
        };
        let usb = self.can.as_ref().map_or(0, of);
        let bus = self.bus.as_ref().map_or(0, of_bus);
        let board = self.board.as_ref().map_or(0, |it| 2 + usize::from(it.storm.is_some()));
        self.tasks.len() + self.servers.len() + self.rude.len() + usb + bus + board
    }
}
