//! Contracts of pipes against what their own description puts on the buses: its models and logs.
//!
//! A contract that the description itself breaks in every run cannot be meant, nor can senders that
//! no bus has room for.

use crate::frames::Frames;
use crate::human;
use crate::pipes::contract;
use diapason_abi::Nanos;
use diapason_can::wire::{self, INTERFRAME_BITS};
use diapason_can::{BitRate, CanFrame};
use diapason_devices::can::replay;
use diapason_devices::sensor;
use diapason_pipe::meter::Meter;
use diapason_pipe::size::Bucket;
use diapason_system::{
    CanTraffic, Diagnostics, PipeDirection, PipeSpec, Place, System, UsbModel, UsbPlug,
};
use diapason_usb::class::kvaser::Personality;

const SECOND: u64 = 1_000_000_000;
/// A log may be so much longer on its bus than by its own times: a burst is no load.
const BURST: Nanos = Nanos::from_millis(100);
/// Exactness of interfaces' time stamps: as much as the server forgives.
const CLOCK: Nanos = Nanos::from_micros(10);

/// The senders on the bus of a channel, as the description has them.
enum Senders<'s> {
    /// Messages a second, the least time of two of them, and the key that declares them.
    Steady { rate: u64, two: Nanos, key: &'static str },
    /// The frames of this log.
    Log { file: &'s str, frames: Vec<(Nanos, CanFrame)> },
    /// Receivers, which send little.
    Quiet,
}

/// The bus of a channel.
struct Bus<'s> {
    plug: &'s UsbPlug,
    channel: usize,
    rate: BitRate,
    frames: Frames,
    senders: Senders<'s>,
}

/// A problem and its remedy.
type Wrong = (String, String);

/// Returns the refusals of pipes that promise what their own description contradicts.
pub(crate) fn refusals(system: &System) -> Vec<Diagnostics> {
    let mut found = Vec::new();
    for (number, pipe) in (0u16..).zip(&system.pipes) {
        if let Some((title, help)) = of_source(system, pipe) {
            found.push(system.problem(Place::Pipe(number), [&title, "", "", &help]));
        }
        let Some(bus) = Bus::of(system, pipe) else { continue };
        let mut same = system.pipes[..usize::from(number)].iter();
        let is_first = !same.any(|it| (it.usb, it.channel) == (pipe.usb, pipe.channel));
        let of_bus = || bus.crowded(system, pipe.usb).or_else(|| bus.unset());
        let crowded = if is_first { of_bus() } else { None };
        let more = || if pipe.way == PipeDirection::FromDevice { bus.exceeds(pipe) } else { None };
        let Some((title, help)) = crowded.or_else(more) else { continue };
        found.push(system.problem(Place::Pipe(number), [&title, "", "", &help]));
    }
    found
}

/// Returns what is wrong if a sensor sends more than its pipe says.
fn of_source(system: &System, pipe: &PipeSpec) -> Option<Wrong> {
    let plug = system.usb.get(pipe.usb).filter(|plug| plug.model == UsbModel::Sensor)?;
    let (name, device) = (&pipe.name, &plug.name);
    if pipe.shape.bytes < sensor::PACKET {
        let (said, bytes) = (pipe.shape.bytes, sensor::PACKET);
        let title =
            format!("`{name}` has `bytes = {said}`, and packets of `{device}` have {bytes}");
        return Some((title, format!("write `bytes = {bytes}`")));
    }
    let gap = plug.gap_ns.map_or(sensor::PERIOD, Nanos);
    let Bucket { messages, per, .. } = contract(pipe);
    let exceeds = u128::from(per.0) > u128::from(gap.0) * u128::from(messages);
    let (every, said) = (human(gap.0), human(per.0 / messages.max(1)));
    let title =
        format!("`{name}` has a message every {said}, and `{device}` has one every {every}");
    let help = format!("write `period = \"{}ns\"` or less, or mend `gap` of `{device}`", gap.0);
    exceeds.then_some((title, help))
}

impl<'s> Bus<'s> {
    fn of(system: &'s System, pipe: &PipeSpec) -> Option<Bus<'s>> {
        let plug = system.usb.get(pipe.usb).filter(|plug| plug.model.is_can())?;
        let channel = usize::from(pipe.channel);
        let rate = BitRate::new(*plug.bit_rates.get(channel)?).ok()?;
        let described = plug.buses.iter().find(|bus| bus.channel == channel);
        let own = Frames::of(plug, channel)?;
        let senders = match described.map(|bus| &bus.traffic) {
            None | Some(CanTraffic::Receiver { .. }) => Senders::Quiet,
            Some(CanTraffic::Numbered { per_second, extended }) => {
                let (rate, two) = (u64::from(*per_second), own.two_of_traffic(*extended));
                Senders::Steady { rate, two, key: "traffic" }
            }
            Some(CanTraffic::Sender { gap_ns: (_, longest) }) => {
                let two = Nanos(2 * own.numbered(false).0);
                Senders::Steady { rate: SECOND / longest, two, key: "gap" }
            }
            // A program that measures puts its own traffic on the bus; nothing is promised of it.
            Some(CanTraffic::Replay { file, .. }) if file.is_empty() => Senders::Quiet,
            Some(CanTraffic::Replay { file, log }) => {
                let frames = replay(log, &format!("can{}", pipe.number)).ok()?;
                Senders::Log { file, frames: frames.into() }
            }
        };
        Some(Bus { plug, channel, rate, frames: own, senders })
    }

    /// Returns what is wrong if the clocks of interfaces do not give the bit rate: the server could
    /// not open the channel.
    fn unset(&self) -> Option<Wrong> {
        let point = u32::from(self.plug.sample_point);
        let kinds = [Personality::Kcan, Personality::Rt, Personality::Flexc];
        let hertz = self.rate.hertz();
        kinds.iter().all(|kind| kind.parameters(self.rate, point).is_err()).then(|| {
            let name = &self.plug.name;
            let title = format!("`{name}` has no bit rate of {hertz} for channel {}", self.channel);
            (title, "write a rate that divides 24 or 80 MHz, such as 500000".into())
        })
    }

    /// Returns what is wrong if all that is sent on the bus does not fit on it.
    fn crowded(&self, system: &System, usb: usize) -> Option<Wrong> {
        let own = |it: &&PipeSpec| it.usb == usb && usize::from(it.channel) == self.channel;
        let rate = |way| -> u64 {
            let pipes = system.pipes.iter().filter(own).filter(|it| it.way == way);
            pipes.map(|it| it.rate).fold(0, u64::saturating_add)
        };
        let (from, to) = (rate(PipeDirection::FromDevice), rate(PipeDirection::ToDevice));
        let shortest = self.frames.shortest().0;
        let written = to.saturating_mul(shortest);
        let declared = from.saturating_mul(shortest).saturating_add(written);
        let hertz = u64::from(self.rate.hertz());
        let name = &self.plug.name;
        let bus = format!("channel {} of `{name}` at {hertz} bit/s", self.channel);
        let slower = "declare less, or write a larger rate for the channel in `bit_rates`";
        if declared > SECOND {
            let most = SECOND / shortest;
            let title = format!(
                "pipes declare {} messages a second on {bus}, which carries at most {most}",
                from.saturating_add(to)
            );
            return Some((title, slower.into()));
        }
        let (what, busy, length) = match &self.senders {
            Senders::Quiet => return None,
            Senders::Steady { rate, two, .. } => {
                (format!("{rate} messages a second"), rate * two.0 / 2, Nanos(SECOND))
            }
            Senders::Log { file, frames } => {
                let bits = frames.iter().map(|(_, frame)| u64::from(space(frame))).sum();
                let busy = self.rate.time(bits).0;
                let (first, last) = (frames.first()?, frames.last()?);
                (format!("the log `{file}`"), busy, last.0 - first.0 + BURST)
            }
        };
        let beside = u128::from(written) * u128::from(length.0) / u128::from(SECOND);
        let all = u128::from(busy) + beside;
        let room = u128::from(length.0);
        let share = all.saturating_mul(100).div_ceil(room.max(1));
        let what = if to > 0 { format!("{what} and {to} that are written") } else { what };
        let title = format!("the senders on {bus} ({what}) need {share} % of it");
        let remedy =
            format!("send less, or write a larger rate for the channel in `bit_rates` of `{name}`");
        (all > room).then_some((title, remedy))
    }

    /// Returns what is wrong if more is sent than a pipe from the device says.
    fn exceeds(&self, pipe: &PipeSpec) -> Option<Wrong> {
        let (name, said, channel) = (&pipe.name, pipe.rate, self.channel);
        let device = &self.plug.name;
        match &self.senders {
            Senders::Quiet => None,
            Senders::Steady { rate, key, .. } => {
                let title = format!(
                    "`{name}` has `rate = {said}`, and `{device}` has {rate} messages a second on \
                     channel {channel}"
                );
                let help = format!("write `rate = {rate}` or more, or mend `{key}` of `{device}`");
                (said < *rate).then_some((title, help))
            }
            Senders::Log { file, frames } => {
                let tolerant = contract(pipe);
                let mut meter = Meter::new(tolerant.with_jitter(tolerant.jitter + CLOCK));
                let first = self.on_the_bus(frames).find(|at| !meter.admits(*at))?;
                let title = format!(
                    "the log `{file}` sends more on channel {channel} than `{name}` says, first \
                     {first} after its beginning"
                );
                let help = "raise `rate`, `burst` or `jitter` of the pipe, or replay another log";
                Some((title, help.into()))
            }
        }
    }

    /// Returns the times at which frames of a log are through on a bus that nobody else uses.
    fn on_the_bus<'f>(&self, frames: &'f [(Nanos, CanFrame)]) -> impl Iterator<Item = Nanos> + 'f {
        let rate = self.rate;
        let mut free = Nanos::ZERO;
        frames.iter().map(move |(at, frame)| {
            free = free.max(*at) + rate.time(space(frame).into());
            free
        })
    }
}

/// Bits of a frame with the space behind it.
fn space(frame: &CanFrame) -> u32 {
    wire::length(frame) + INTERFRAME_BITS
}
