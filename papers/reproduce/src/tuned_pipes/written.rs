//! Figures 15 and 16: two channels are written as fast as the receivers on their buses read, and
//! how many frames go out in each second.
//!
//! The system is `examples/can-output.toml`. Seconds are those of the interface's clock, from the
//! last frame of one to the last of the next, so they do not depend on when the writer looks.

use super::spread::Spread;
use super::{Bench, Effort, Machine, Picture, Row};
use diapason::Failure;
use diapason::chart::{LineChart, Series};
use diapason::describe::describe;
use diapason::table::{Align, TextTable};
use diapason_system::System;

const SYSTEM: &str = "examples/can-output.toml";
/// Frames a second that the receivers read, at least and at most.
const READ: (u64, u64) = (3_053, 3_073);
/// The channels they are on.
const CHANNELS: [u64; 2] = [3, 4];
const SECONDS: u64 = 33;
const QUICK: u64 = 7;
/// Seconds in which channels are opened and filled.
const OPENING: usize = 2;

/// A writer's report of one second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Second {
    channel: u64,
    rate: u64,
    /// Frames that will not be sent, and those that were read out of order.
    lost: u64,
}

impl Second {
    /// Out of the numbers behind `OUT`.
    pub fn parse(numbers: &[u64]) -> Option<Second> {
        // Through, under way, given up, received, wrong.
        let &[channel, rate, _, _, given_up, _, wrong] = numbers else { return None };
        Some(Second { channel, rate, lost: given_up + wrong })
    }
}

/// Rows for each channel and machine, figure 15, figure 16, and its table.
pub fn run(bench: &Bench, effort: Effort) -> Result<(Vec<Row>, Vec<Picture>, String), Failure> {
    let (machines, seconds): (&[Machine], u64) = match effort {
        Effort::Quick => (&[Machine::Simulated], QUICK),
        Effort::Full | Effort::Long => (&Machine::BOTH, SECONDS),
    };
    let mut table = TextTable::new(&[
        ("channel", Align::Left),
        ("machine", Align::Left),
        ("least", Align::Right),
        ("average", Align::Right),
        ("most", Align::Right),
    ]);
    let (mut rows, mut series, mut spread) = (Vec::new(), Vec::new(), Spread::wanted(READ));
    for machine in machines {
        let seen = bench.run(system(bench)?, seconds, *machine)?;
        for channel in CHANNELS {
            let of = |second: &&Second| second.channel == channel;
            let all: Vec<Second> = seen.written.iter().filter(of).copied().collect();
            let name = format!("CAN{} {}", channel + 1, machine.id());
            let Some(steady) = all.get(OPENING..).filter(|steady| !steady.is_empty()) else {
                return Err(Failure::Ours(format!("nothing went out on {name}")));
            };
            let rates: Vec<u64> = steady.iter().map(|second| second.rate).collect();
            rows.extend(judged(&format!("output.{}.CAN{}", machine.id(), channel + 1), steady));
            let average = spread.push(name.clone(), &rates);
            let (least, most) = ends(&rates);
            table.row(vec![
                format!("CAN{}", channel + 1),
                machine.id().into(),
                least.to_string(),
                format!("{average:.1}"),
                most.to_string(),
            ]);
            let points = (OPENING..).zip(&rates);
            let points = points.map(|(second, rate)| (second as f64, *rate as f64)).collect();
            series.push(Series { name, points });
        }
    }
    let chart = LineChart {
        title: "Frames a second to two receivers (figure 15)".into(),
        x: "s".into(),
        y: "frames/s".into(),
        series,
    };
    let title = "Frames a second to two receivers (figure 16)";
    let figures =
        vec![Picture::lines("tuned-pipes-15", &chart), spread.figure("tuned-pipes-16", title)];
    Ok((rows, figures, table.render()))
}

/// Readers and writers that never end.
fn system(bench: &Bench) -> Result<System, Failure> {
    let mut system = describe(&bench.workspace.root().join(SYSTEM))?;
    let endless = |program: &str| ["can-reader", "can-writer"].contains(&program);
    for process in system.processes.iter_mut().filter(|process| endless(&process.program)) {
        process.arguments[1] = 0;
    }
    Ok(system)
}

fn ends(rates: &[u64]) -> (u64, u64) {
    let (least, most) = (rates.iter().min(), rates.iter().max());
    (least.copied().unwrap_or(0), most.copied().unwrap_or(0))
}

/// In every second as many as are read, none lost.
fn judged(id: &str, seconds: &[Second]) -> [Row; 3] {
    let rates: Vec<u64> = seconds.iter().map(|second| second.rate).collect();
    let (least, most) = ends(&rates);
    let lost = seconds.last().map_or(0, |second| second.lost);
    let row = |what: &str, paper: u64, ours: u64| {
        Row::numbers(&format!("{id}.{what}"), "frames/s", Some(paper as f64), ours as f64)
            .holds((READ.0..=READ.1).contains(&ours))
            .note(format!("of all seconds but the first {OPENING}"))
    };
    [
        row("least", READ.0, least),
        row("most", READ.1, most),
        Row::numbers(&format!("{id}.lost"), "frames", Some(0.0), lost as f64).holds(lost == 0),
    ]
}

#[cfg(test)]
mod tests {
    use super::Second;
    use crate::boot::numbers;

    #[test]
    fn a_second_of_a_writer() {
        let line = "OUT 3 3063 9187 234 1 8192 2";
        let numbers = numbers(line, "OUT").unwrap();
        let expected = Second { channel: 3, rate: 3_063, lost: 3 };
        assert_eq!(Second::parse(&numbers), Some(expected));
        assert_eq!(Second::parse(&numbers[..6]), None);
    }
}
