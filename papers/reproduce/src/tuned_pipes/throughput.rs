//! Figures 13 and 14: two units that send one frame every 363.4 to 366.2 µs, and how many of them a
//! reader gets in each second.

use super::spread::Spread;
use super::{Bench, Effort, Machine, Picture, Row};
use diapason::Failure;
use diapason::chart::{LineChart, Series};
use diapason::outcome::{Outcome, PipeRow};
use diapason_system::ProcessSpec;

/// Frames a second that the units send, at least and at most.
const SENT: (u64, u64) = (2_730, 2_752);
/// The shortest and the longest time between two frames of a unit.
const GAP_NS: (u64, u64) = (363_400, 366_200);
/// The channels they are on.
const CHANNELS: [u8; 2] = [3, 4];
const SECONDS: u64 = 32;
const QUICK: u64 = 6;

/// Rows for each channel and machine, and figures 13 and 14.
pub fn run(bench: &Bench, effort: Effort) -> Result<(Vec<Row>, Vec<Picture>), Failure> {
    let (machines, seconds): (&[Machine], u64) = match effort {
        Effort::Quick => (&[Machine::Simulated], QUICK),
        Effort::Full | Effort::Long => (&Machine::BOTH, SECONDS),
    };
    let (mut rows, mut series, mut spread) = (Vec::new(), Vec::new(), Spread::wanted(SENT));
    for machine in machines {
        let mut system = bench.concentrator.describe(true)?;
        for usb in &mut system.usb {
            usb.buses.retain(|bus| !CHANNELS.map(usize::from).contains(&bus.channel));
            usb.buses.extend(CHANNELS.map(|channel| diapason_system::PluggedCanBus {
                channel: channel.into(),
                traffic: diapason_system::CanTraffic::Sender { gap_ns: GAP_NS },
            }));
        }
        for pipe in system.pipes.iter_mut().filter(|pipe| CHANNELS.contains(&pipe.channel)) {
            pipe.rate = SENT.1;
        }
        let spins = |(_, process): &(u64, &ProcessSpec)| process.program == "spin";
        let spins = (0..).zip(&system.processes).filter(spins).map(|(place, _)| place).collect();
        let seen = bench.run(system, seconds, *machine)?;
        rows.extend(cost(&seen.outcome, spins, *machine));
        for channel in CHANNELS {
            let is = |row: &&PipeRow| row.channel == channel;
            let Some(pipe) = seen.outcome.pipes.iter().find(is) else {
                return Err(Failure::Ours(format!("nothing came from channel {channel}")));
            };
            rows.extend(rates(pipe, *machine, channel));
            let name = format!("CAN{} {}", channel + 1, machine.id());
            // As the rows: from the second report with messages on.
            let opened = pipe.rates.iter().position(|rate| *rate > 0).unwrap_or(0);
            spread.push(name.clone(), pipe.rates.get(opened + 1..).unwrap_or_default());
            let points = pipe.rates.iter().enumerate().skip(1);
            let points = points.map(|(second, rate)| (second as f64, *rate as f64)).collect();
            series.push(Series { name, points });
        }
    }
    let chart = LineChart {
        title: "Frames a second from two units (figure 13)".into(),
        x: "s".into(),
        y: "frames/s".into(),
        series,
    };
    let title = "Frames a second from two units (figure 14)";
    let figures =
        vec![Picture::lines("tuned-pipes-13", &chart), spread.figure("tuned-pipes-14", title)];
    Ok((rows, figures))
}

/// Returns the core's cost of a frame, from its interrupt to the thread that reads it: all its work
/// but for the tasks that never stop, their switches included, by frames. A nanosecond is an
/// instruction of QEMU's, and what one was measured to take in the simulator.
fn cost(outcome: &Outcome, spins: Vec<u64>, machine: Machine) -> Option<Row> {
    let end = outcome.end?;
    let tasks = outcome.threads.iter().filter(|row| spins.contains(&row.process));
    let tasks = tasks.fold(0, |sum: u64, row| sum.saturating_add(row.cpu_ns));
    let busy = end.time_ns.saturating_sub(end.idle_ns).saturating_sub(tasks);
    let frames: u64 = outcome.pipes.iter().map(|pipe| pipe.messages).sum();
    let each = busy.checked_div(frames)?;
    let id = format!("input.{}.cost-of-a-frame", machine.id());
    let note = "kernel, server and reader, the tasks' switches included; 1 ns an instruction";
    Some(Row::numbers(&id, "instructions", None, each as f64).note(note))
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
