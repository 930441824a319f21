//! `usb-ring`: messages of 1,024 bytes round a ring of four hosts ([Bridging, §4.5]).

use super::hosts::{CABLE_NS, LOOK_US, MODERATION_NS, PERIOD_NS, RING_BYTES, four};
use super::machine::{numbers, run};
use super::{deviation, micros, times};
use crate::{Effort, Progress, ReproductionReport, Row};
use diapason::chart::Distribution;
use diapason::table::{Align, TextTable};
use diapason::{Failure, Workspace, metal};
use diapason_tsn::{LinkRate, wire_bytes};

/// The paper's throughput over USB and Ethernet, in Mbit/s, and its laps over USB: least, most and
/// mean, in us.
const THROUGHPUT: [f64; 2] = [221.00, 195.08];
const LAPS: [f64; 3] = [999.0, 1_100.0, 1_091.0];
/// The standard deviation of these laps, in us.
const LAP_DEVIATION: f64 = 25.0;
/// The pause between messages that go one by one. The paper's is 500 ms, and says itself that it
/// makes no difference.
const PAUSE_US: u64 = 5_000;
/// Messages under way at once where throughput is measured.
const UNDER_WAY: u64 = 8;
const SECOND: u64 = 1_000_000_000;
const HOPS: u64 = 4;
/// The transfer of a message over USB 3 (equation 4): 1,720.2 ns.
const USB3_NS: u64 = 1_721;

/// Sends messages round the ring, one by one and many at once.
pub fn reproduce(effort: Effort, progress: &Progress) -> Result<ReproductionReport, Failure> {
    let built = metal::build(&Workspace::find()?)?;
    progress.at("runs", 0, 2);
    let seconds = match effort {
        Effort::Quick => 3,
        Effort::Full => 20,
        Effort::Long => 60,
    };
    let horizon = seconds * SECOND + SECOND / 10;
    let mut laps = Vec::new();
    run(&four(PAUSE_US, 1), &built, horizon, |_, words| {
        laps.extend(numbers(words, "LAPS").into_iter().flatten());
    })?;
    progress.at("runs", 1, 2);
    let mut counts = Vec::new();
    run(&four(0, UNDER_WAY), &built, horizon, |_, words| {
        if let Some([came, _]) = numbers(words, "RING").as_deref() {
            counts.push(*came);
        }
    })?;
    // The last whole second of the origin.
    let last = counts.windows(2).next_back().map_or(0, |pair| pair[1] - pair[0]);
    let megabits = (last * RING_BYTES * 8) as f64 / 1e6;
    let laps = times("laps", laps.into_iter(), bound());
    if laps.values().is_empty() || last == 0 {
        return Err(Failure::Ours("nothing went round the ring".into()));
    }
    progress.end();
    let sections = vec![("Tables 3 and 4: four hosts".into(), table(&laps, megabits))];
    Ok(ReproductionReport::new("usb-ring", compared(&laps, megabits), sections, Vec::new()))
}

/// Returns the bound of a lap: at each hop a debug server, the link, the interrupt with its bottom
/// half, and the program, each within the period of its VCPU.
fn bound() -> u64 {
    let hop = LOOK_US * 1_000 + USB3_NS + CABLE_NS + MODERATION_NS + 2 * PERIOD_NS;
    HOPS * hop
}

/// Returns by how much a lap is longer over Ethernet if nothing changes but the wire.
fn over_ethernet() -> u64 {
    let wire = wire_bytes(RING_BYTES, true).map_or(0, |bytes| LinkRate::GIGABIT.time_ns(bytes));
    HOPS * (wire - USB3_NS)
}

fn compared(laps: &Distribution, megabits: f64) -> Vec<Row> {
    let [usb, ethernet] = THROUGHPUT;
    let [least, most, mean] = LAPS;
    let (count, bound) = (laps.values().len(), micros(bound()));
    let note = format!("of {count} laps; at most {bound:.1} us here, and what Quest took at most");
    vec![
        Row::numbers("ring.throughput", "Mbit/s", Some(usb), megabits)
            .holds(megabits >= usb)
            .note(format!("no less than the paper's over USB; its Ethernet had {ethernet}")),
        Row::numbers("ring.longest", "us", Some(most), micros(laps.max()))
            .holds(laps.beyond() == 0 && micros(laps.max()) <= most)
            .note(note),
        Row::numbers("ring.mean", "us", Some(mean), micros(laps.mean()))
            .holds(micros(laps.mean()) <= mean),
        Row::numbers("ring.shortest", "us", Some(least), micros(laps.min())),
        Row::numbers("ring.deviation", "us", Some(LAP_DEVIATION), deviation(laps))
            .holds(deviation(laps) <= LAP_DEVIATION),
    ]
}

fn table(laps: &Distribution, megabits: f64) -> String {
    let mut table = TextTable::new(&[
        ("", Align::Left),
        ("Mbit/s", Align::Right),
        ("shortest lap, us", Align::Right),
        ("mean", Align::Right),
        ("longest", Align::Right),
    ]);
    let cells = |cells: [&str; 5]| cells.map(String::from).to_vec();
    let shown = |ns: u64| format!("{:.2}", ns as f64 / 1_000.0);
    let [least, mean, most] = [laps.min(), laps.mean(), laps.max()].map(shown);
    table.row(cells(["USB, Diapason", &format!("{megabits:.2}"), &least, &mean, &most]));
    let wired = |ns: u64| format!("{:.2}", (ns + over_ethernet()) as f64 / 1_000.0);
    let [least, mean, most] = [laps.min(), laps.mean(), laps.max()].map(wired);
    table.row(cells(["Ethernet, calculated for the same software", "-", &least, &mean, &most]));
    table.row(cells(["USB, Quest [Bridging]", "221.00", "999", "1,091", "1,100"]));
    table.row(cells(["USB, Linux [Bridging]", "112.71", "884", "1,214", "1,217"]));
    table.row(cells(["Ethernet, Linux [Bridging]", "195.08", "1,429", "1,614", "1,800"]));
    table.render()
}
