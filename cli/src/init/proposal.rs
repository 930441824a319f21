//! The text of a proposal.

use super::seen::{ChannelTraffic, MessageTraffic};
use crate::duration::human;
use diapason_contract::can::EACH;
use std::fmt::Write;
use std::path::Path;

/// Periods of readers in us, from the shortest bounds to the most room.
pub const READERS: [u64; 3] = [2_500, 5_000, 10_000];
/// The column of comments, counted from 0.
const COLUMN: usize = 31;
/// Messages of a channel that are listed.
const LISTED: usize = 64;
/// The time that a reader is given for a message, and the time for its wake-ups.
const EACH_US: u64 = 10;
const WAKES_US: u64 = 40;

/// A proposal before it is written.
pub struct Proposal<'a> {
    pub name: &'a str,
    /// The log that the simulator replays.
    pub log: Option<&'a Path>,
    pub channels: &'a [ChannelTraffic],
}

impl Proposal<'_> {
    /// Returns the description with readers of this period, and so many more messages at once than
    /// were seen. `bounds` are those that a plan proved, in ns.
    pub fn text(&self, period_us: u64, more: u64, bounds: &[u64]) -> String {
        let mut text = format!(
            "# Proposed by `diapason init`. Change what you know better: rates, latencies.\n\n\
             [system]\nname = \"{}\"\n\n\
             {}",
            self.name,
            said("[usbd]", "the USB server: `diapason explain` shows more")
        );
        text += &self.interfaces();
        for (at, channel) in self.channels.iter().enumerate() {
            let _ = write!(text, "\n{}", seen(channel));
            text += &pipe(channel, period_us, more, bounds.get(at));
        }
        text
    }

    /// Returns the USB interfaces with all channels up to the last.
    fn interfaces(&self) -> String {
        let count = self.channels.iter().map(|channel| channel.number + 1).max().unwrap_or(1);
        let mut text = String::new();
        for first in (0..count).step_by(EACH) {
            let here = first..count.min(first + EACH);
            let of = |number| self.channels.iter().find(|channel| channel.number == number);
            let rates = here.clone().map(|number| of(number).map_or(500_000, |it| it.bit_rate()));
            let rates: Vec<String> = rates.map(|rate| rate.to_string()).collect();
            let (number, channels) = (first / EACH, here.len());
            let _ = write!(
                text,
                "\n[[usb]]\nname = \"interface-{number}\"\non = \"xhci\"\nport = {}\n\
                 model = \"usb-can\"\nchannels = {channels}\nbit_rates = [{}]\n",
                number + 1,
                rates.join(", ")
            );
            text += &self.traffic(here);
        }
        text
    }

    /// Returns who sends on the buses of some channels: the log, or numbered frames.
    fn traffic(&self, here: std::ops::Range<usize>) -> String {
        let seen = || self.channels.iter().filter(|channel| here.contains(&channel.number));
        match self.log {
            Some(log) => {
                let log = log.display().to_string();
                let each = seen().map(|it| {
                    serde_json::Value::from(format!("can{}={log}", it.number)).to_string()
                });
                format!("replay = [{}]\n", each.collect::<Vec<_>>().join(", "))
            }
            None => {
                let rates = seen().map(|it| it.rate.to_string());
                format!("traffic = [{}]\n", rates.collect::<Vec<_>>().join(", "))
            }
        }
    }
}

/// Returns a pipe from a channel, and its reader.
fn pipe(channel: &ChannelTraffic, period_us: u64, more: u64, bound: Option<&u64>) -> String {
    let ChannelTraffic { number, rate, burst, .. } = channel;
    let burst = burst + more;
    let (interface, own) = (number / EACH, number % EACH);
    let messages = burst + rate.saturating_mul(period_us).div_ceil(1_000_000);
    let budget = (WAKES_US + EACH_US * messages).min(period_us);
    let latency = bound.map_or(String::new(), |bound| {
        said(&format!("latency = \"{}us\"", bound.div_ceil(1_000)), "what the plan proves")
    });
    [
        format!("[[pipe]]\nname = \"bus-{number}\"\nfrom = \"interface-{interface}\"\n"),
        format!("channel = {own}\nreader = \"reader-{number}\"\n"),
        said(&format!("rate = {rate}"), "a second in the long run, with a tenth to spare"),
        said(&format!("burst = {burst}"), "at once"),
        said("work = \"3us\"", "of the reader for one: `diapason measure` counts it"),
        latency,
        "\n".to_owned(),
        said("[[process]]", "a reader that counts: put a program of yours here"),
        format!("name = \"reader-{number}\"\nprogram = \"can-reader\"\npriority = 30\n"),
        format!("vcpu = \"read-{number}\"\n"),
        said(&format!("arguments = [{number}, 0]"), "the channel, and no end"),
        format!("\n[[vcpu]]\nname = \"read-{number}\"\nbudget = \"{budget}us\"\n"),
        format!("period = \"{period_us}us\"\n"),
    ]
    .concat()
}

/// Returns a line with a comment.
fn said(line: &str, comment: &str) -> String {
    format!("{line:COLUMN$}# {comment}\n")
}

/// Returns comments with what was seen of a channel.
fn seen(channel: &ChannelTraffic) -> String {
    let ChannelTraffic { number, frames, length, closest, messages, .. } = channel;
    let mut text = match closest {
        Some(closest) => format!(
            "# can{number}: {frames} frames in {}, no two closer than {}\n",
            human(length.0),
            human(closest.0)
        ),
        None if *frames == 1 => format!("# can{number}: 1 frame\n"),
        None => format!("# can{number}: no frame\n"),
    };
    for ((extended, id), message) in messages.iter().take(LISTED) {
        let id = if *extended { format!("{id:#010x}") } else { format!("{id:#05x}") };
        let _ = writeln!(text, "#   {id}{}", told(message));
    }
    if let Some(more) = messages.len().checked_sub(LISTED).filter(|more| *more > 0) {
        let _ = writeln!(text, "#   and {more} more");
    }
    text
}

fn told(message: &MessageTraffic) -> String {
    let name = message.name.as_ref().map_or(String::new(), |name| format!(" {name}"));
    let times = match (message.times, message.apart) {
        (0, _) => "not seen".to_owned(),
        (times, None) => format!("{times} times"),
        (times, Some((shortest, longest))) => {
            format!("{times} times, every {} to {}", human(shortest.0), human(longest.0))
        }
    };
    let cycle = message.cycle_ms.map_or(String::new(), |it| format!("; its cycle is {it} ms"));
    format!("{name}: {times}{cycle}")
}
