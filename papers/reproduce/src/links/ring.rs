//! `usb-ring`: messages of 1,024 bytes round a ring of four hosts ([Bridging, §4.5]).

use super::hosts::{CABLE_NS, LOOK_US, MODERATION_NS, PERIOD_NS, RING_BYTES, RingBus, four};
use super::machine::{numbers, run};
use super::wires::HEADS;
use super::{deviation, micros, times};
use crate::{Effort, Progress, ReproductionReport, Row};
use diapason::chart::Distribution;
use diapason::metal::Built;
use diapason::table::{Align, TextTable};
use diapason::{Failure, Workspace, metal};
use diapason_tsn::{LinkRate, wire_bytes};

/// The paper's throughput over USB and Ethernet, in Mbit/s.
const THROUGHPUT: [f64; 2] = [221.00, 195.08];
/// By how many percent more goes over USB, at least.
const LEAST_MORE: f64 = 13.0;
/// Its laps over USB, in us: least, most and mean, and their standard deviation.
const LAPS: ([f64; 3], f64) = ([999.0, 1_100.0, 1_091.0], 25.0);
/// Its laps over Ethernet, likewise.
const ETHERNET_LAPS: ([f64; 3], f64) = ([1_429.0, 1_800.0, 1_614.0], 263.0);
/// The pause between messages that go one by one. The paper's is 500 ms, and says itself that it
/// makes no difference.
const PAUSE_US: u64 = 5_000;
/// Messages under way at once where throughput is measured.
const UNDER_WAY: u64 = 8;
const SECOND: u64 = 1_000_000_000;
const HOPS: u64 = 4;
/// The transfer of a message over USB 3 (equation 4): 1,720.2 ns.
const USB3_NS: u64 = 1_721;

/// Laps of a ring over one bus.
struct Ring {
    laps: Distribution,
    /// The throughput of many messages at once, in the last whole second.
    megabits: f64,
}

/// Sends messages round the ring, one by one and many at once, over USB and over Ethernet.
pub fn reproduce(effort: Effort, progress: &Progress) -> Result<ReproductionReport, Failure> {
    let built = metal::build(&Workspace::find()?)?;
    progress.at("runs", 0, 2);
    let usb = Ring::simulated(RingBus::Usb, effort, &built)?;
    progress.at("runs", 1, 2);
    let ethernet = Ring::simulated(RingBus::Ethernet, effort, &built)?;
    progress.end();
    let sections = vec![("Tables 3 and 4: four hosts".into(), table(&usb, &ethernet))];
    Ok(ReproductionReport::new("usb-ring", compared(&usb, &ethernet), sections, Vec::new()))
}

impl Ring {
    fn simulated(bus: RingBus, effort: Effort, built: &Built) -> Result<Ring, Failure> {
        let seconds = match effort {
            Effort::Quick => 3,
            Effort::Full => 20,
            Effort::Long => 60,
        };
        let horizon = seconds * SECOND + SECOND / 10;
        let mut laps = Vec::new();
        run(&four(bus, PAUSE_US, 1), built, horizon, |_, words| {
            laps.extend(numbers(words, "LAPS").into_iter().flatten());
        })?;
        let mut counts = Vec::new();
        run(&four(bus, 0, UNDER_WAY), built, horizon, |_, words| {
            if let Some([came, _]) = numbers(words, "RING").as_deref() {
                counts.push(*came);
            }
        })?;
        // The last whole second of the origin.
        let last = counts.windows(2).next_back().map_or(0, |pair| pair[1] - pair[0]);
        if laps.is_empty() || last == 0 {
            return Err(Failure::Ours("nothing went round the ring".into()));
        }
        let megabits = (last * RING_BYTES * 8) as f64 / 1e6;
        Ok(Ring { laps: times("laps", laps.into_iter(), bound(bus)), megabits })
    }
}

/// Returns the bound of a lap: at each hop the server that sends, the wire, the interrupt with its
/// bottom half, and the program, each within the period of its VCPU.
fn bound(bus: RingBus) -> u64 {
    let wire = match bus {
        RingBus::Usb => USB3_NS,
        RingBus::Ethernet => wire_ns(),
    };
    HOPS * (LOOK_US * 1_000 + wire + CABLE_NS + MODERATION_NS + 2 * PERIOD_NS)
}

/// Returns the time of a message on a wire of Ethernet, with the heads of UDP and IP.
fn wire_ns() -> u64 {
    wire_bytes(RING_BYTES + HEADS, false).map_or(0, |bytes| LinkRate::GIGABIT.time_ns(bytes))
}

fn compared(usb: &Ring, ethernet: &Ring) -> Vec<Row> {
    let [paper, paper_ethernet] = THROUGHPUT;
    let more = 100.0 * (usb.megabits / ethernet.megabits - 1.0);
    let mut rows = vec![
        Row::numbers("ring.throughput", "Mbit/s", Some(paper), usb.megabits)
            .holds(usb.megabits >= paper)
            .note("no less than the paper's over USB"),
        Row::numbers("ethernet.throughput", "Mbit/s", Some(paper_ethernet), ethernet.megabits)
            .holds(ethernet.megabits >= paper_ethernet)
            .note("no less than the paper's over Ethernet"),
        Row::numbers("ring.more", "%", Some(100.0 * (paper / paper_ethernet - 1.0)), more)
            .holds(more >= LEAST_MORE)
            .note(format!(
                "the throughput over USB above that over Ethernet; at least {LEAST_MORE}"
            )),
    ];
    rows.extend(laps("ring", &usb.laps, LAPS));
    rows.extend(laps("ethernet", &ethernet.laps, ETHERNET_LAPS));
    rows
}

/// Compares the laps over one bus with the paper's: the least, the most, the mean, the deviation.
fn laps(
    bus: &str,
    laps: &Distribution,
    ([least, most, mean], spread): ([f64; 3], f64),
) -> Vec<Row> {
    let (count, bound) = (laps.values().len(), micros(laps.bound.unwrap_or(0)));
    let note =
        format!("of {count} laps; at most {bound:.1} us here, and what the paper has at most");
    let id = |what: &str| format!("{bus}.{what}");
    vec![
        Row::numbers(&id("longest"), "us", Some(most), micros(laps.max()))
            .holds(laps.beyond() == 0 && micros(laps.max()) <= most)
            .note(note),
        Row::numbers(&id("mean"), "us", Some(mean), micros(laps.mean()))
            .holds(micros(laps.mean()) <= mean),
        Row::numbers(&id("shortest"), "us", Some(least), micros(laps.min())),
        Row::numbers(&id("deviation"), "us", Some(spread), deviation(laps))
            .holds(deviation(laps) <= spread),
    ]
}

fn table(usb: &Ring, ethernet: &Ring) -> String {
    let mut table = TextTable::new(&[
        ("", Align::Left),
        ("Mbit/s", Align::Right),
        ("shortest lap, us", Align::Right),
        ("mean", Align::Right),
        ("longest", Align::Right),
    ]);
    for (name, ring) in [("USB, Diapason", usb), ("Ethernet, Diapason", ethernet)] {
        let laps = &ring.laps;
        let shown = [laps.min(), laps.mean(), laps.max()].map(|ns| format!("{:.2}", micros(ns)));
        let cells = [name.to_owned(), format!("{:.2}", ring.megabits)];
        table.row(cells.into_iter().chain(shown).collect());
    }
    let mut row = |cells: [&str; 5]| table.row(cells.map(String::from).to_vec());
    row(["USB, Quest [Bridging]", "221.00", "999", "1,091", "1,100"]);
    row(["USB, Linux [Bridging]", "112.71", "884", "1,214", "1,217"]);
    row(["Ethernet, Linux [Bridging]", "195.08", "1,429", "1,614", "1,800"]);
    table.render()
}
