//! Figures 13 and 14: two units that send one frame every 363.4 to 366.2 µs, and how many of them a
//! reader gets in each second.

use super::{Bench, Effort, Figure, Machine, Row};
use crate::Failure;
use crate::chart::{LineChart, Series};
use crate::outcome::PipeRow;

/// Frames a second that the units send, at least and at most.
const SENT: (u64, u64) = (2_730, 2_752);
/// The channels they are on.
const CHANNELS: [u8; 2] = [3, 4];
const SECONDS: u64 = 32;
const QUICK: u64 = 6;

/// Rows for each channel and machine, and figure 13.
pub fn run(bench: &Bench, effort: Effort) -> Result<(Vec<Row>, Vec<Figure>), Failure> {
    let (machines, seconds): (&[Machine], u64) = match effort {
        Effort::Quick => (&[Machine::Simulated], QUICK),
        Effort::Full | Effort::Long => (&Machine::BOTH, SECONDS),
    };
    let (mut rows, mut series) = (Vec::new(), Vec::new());
    for machine in machines {
        let mut system = bench.concentrator.describe(true)?;
        for usb in &mut system.usb {
            usb.buses = CHANNELS
                .map(|channel| diapason_system::CanBus {
                    channel: channel.into(),
                    traffic: diapason_system::CanTraffic::Sender,
                })
                .to_vec();
        }
        for pipe in system.pipes.iter_mut().filter(|pipe| CHANNELS.contains(&pipe.channel)) {
            pipe.rate = SENT.1;
        }
        let seen = bench.run(system, seconds, *machine)?;
        for channel in CHANNELS {
            let is = |row: &&PipeRow| row.channel == channel;
            let Some(pipe) = seen.outcome.pipes.iter().find(is) else {
                return Err(Failure::Ours(format!("nothing came from channel {channel}")));
            };
            rows.extend(rates(pipe, *machine, channel));
            let points = pipe.rates.iter().enumerate().skip(1);
            let points = points.map(|(second, rate)| (second as f64, *rate as f64)).collect();
            series.push(Series { name: format!("CAN{} {}", channel + 1, machine.id()), points });
        }
    }
    let chart = LineChart {
        title: "Frames a second from two units (figure 13)".into(),
        x: "s".into(),
        y: "frames/s".into(),
        series,
    };
    Ok((rows, vec![Figure::lines("tuned-pipes-13", &chart)]))
}

/// In every second as many as were sent, none lost.
fn rates(pipe: &PipeRow, machine: Machine, channel: u8) -> [Row; 3] {
    let (least, most) = pipe.between.unwrap_or((0, 0));
    let id = |what: &str| format!("input.{}.CAN{}.{what}", machine.id(), channel + 1);
    let inside = |rate: u64| (SENT.0..=SENT.1).contains(&rate);
    let row = |what: &str, paper: u64, ours: u64| {
        Row::numbers(&id(what), "frames/s", Some(paper as f64), ours as f64)
            .holds(inside(ours))
            .note("of all seconds but the first")
    };
    [
        row("least", SENT.0, least),
        row("most", SENT.1, most),
        Row::numbers(&id("lost"), "frames", Some(0.0), pipe.lost as f64).holds(pipe.lost == 0),
    ]
}
