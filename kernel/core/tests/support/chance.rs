//! Scripts made at random: a few VCPUs, some of them more than the core can carry, and actors that
//! run, sleep, lock, send and wait on them.

use super::script::{Actor, Op, Script, Virtual};
use super::{FOREVER, Nanos};
use diapason_random::Random;
use diapason_vcpu::admission::{Load, Overheads, Reservation, Test};

/// A script and what is known of it.
pub struct Drawn {
    pub script: Script,
    /// For how long, in ns.
    pub end: u64,
    /// How late the timer may be.
    pub late: u64,
    /// The VCPUs are admitted, and stay as they are.
    pub admitted: bool,
    /// All are ranked by period.
    pub by_period: bool,
}

/// Draws a script from `seed`.
pub fn draw(seed: u64) -> Drawn {
    let mut r = Random::new(seed);
    let late = if r.one_in(2) { 0 } else { 2_000 };
    let queues = r.pick(&[0, 0, 1, 2]);
    let all_by_deadline = queues == 1 && r.one_in(2);
    let mut script = Script { queues, ..Script::default() };
    let admitted = !r.one_in(3);
    vcpus(&mut r, &mut script, all_by_deadline, admitted.then_some(late));
    for name in ["m", "n", "s"].iter().take(r.below(4) as usize) {
        script.locks.push((name.to_string(), (*name == "s").then_some(1)));
    }
    if r.one_in(3) {
        script.mailboxes.push(("b".to_string(), 1));
    }
    let changes = !admitted && r.one_in(3);
    actors(&mut r, &mut script, changes);
    let longest = script.vcpus.iter().filter_map(|v| v.main).map(|(_, t)| t).max().unwrap_or(0);
    Drawn { end: longest * (2 + r.below(6)), late, admitted, by_period: queues == 0, script }
}

/// VCPUs in the order of queues and, between queues, of periods; if `late` is given, no more than
/// the closed form admits with a timer that late.
fn vcpus(r: &mut Random, script: &mut Script, all_by_deadline: bool, late: Option<u64>) {
    let test = if all_by_deadline { Test::Deadline } else { Test::Wide };
    let overhead = Nanos(late.unwrap_or(0));
    let overheads = Overheads { section: overhead, overrun: overhead, ..Overheads::NONE };
    let mut load = Load::new(overheads);
    let mut periods: Vec<u64> = (0..1 + r.below(4)).map(|_| 60_000 + r.below(400_000)).collect();
    if r.one_in(4) {
        let first = periods[0];
        periods.iter_mut().for_each(|t| *t = first);
    }
    periods.sort_unstable();
    let mut queue = 0;
    for (at, period) in periods.into_iter().enumerate() {
        let fits =
            match load.admit_main(test, Reservation { budget: Nanos(0), period: Nanos(period) }) {
                Err(refusal) => refusal.fits.0,
                Ok(_) => 0,
            };
        let most = if late.is_some() { fits } else { period };
        if most < 2_000 {
            break;
        }
        let budget = if r.one_in(3) { most } else { 1_000 + r.below(most - 1_000) };
        let asked = Reservation { budget: Nanos(budget), period: Nanos(period) };
        load = load.admit_main(test, asked).unwrap_or(load);
        queue = if all_by_deadline { 0 } else { (queue + r.below(2) as u8).min(script.queues) };
        script.vcpus.push(Virtual {
            name: format!("v{at}"),
            main: Some((budget, period)),
            io: (0, 0, 0),
            queue,
            background: r.one_in(4),
            list: 2 + r.below(7) as u8,
        });
    }
    if r.one_in(2) && !script.vcpus.is_empty() {
        let share = 20_000 + r.below(150_000) as u32;
        let fits = load.admit_io(test, share).is_ok();
        let main = r.below(script.vcpus.len() as u64);
        let queue = script.vcpus[main as usize].queue;
        let io = (share, 1 << main, FOREVER);
        let name = "io".to_string();
        if fits || late.is_none() {
            let x = Virtual { name, main: None, io, queue, background: false, list: 0 };
            script.vcpus.push(x);
        }
    }
}

fn actors(r: &mut Random, script: &mut Script, changes: bool) {
    let vcpus = script.vcpus.len();
    let mut homes: Vec<Option<usize>> = (0..vcpus).map(Some).collect();
    for _ in 0..r.below(3) {
        homes.push((vcpus > 0).then(|| r.below(vcpus as u64) as usize));
    }
    homes.extend((0..1 + r.below(2)).map(|_| None));
    for (at, on) in homes.into_iter().enumerate() {
        let ops = ops(r, script, changes);
        let priority = 1 + r.below(5) as u8;
        script.actors.push(Actor { name: format!("a{at}"), priority, on, ops });
    }
}

fn ops(r: &mut Random, script: &Script, changes: bool) -> Vec<Op> {
    if r.one_in(3) {
        let nap = r.below(100_000);
        return vec![Op::Nap(nap, None), Op::Run(1 << 40)];
    }
    let mut ops = vec![Op::Run(1 + r.below(30_000))];
    for _ in 0..1 + r.below(7) {
        step(r, script, changes, &mut ops);
    }
    if !r.one_in(5) {
        ops.push(Op::Again);
    }
    ops
}

fn step(r: &mut Random, script: &Script, changes: bool, ops: &mut Vec<Op>) {
    let locks = script.locks.len() as u64;
    let time = r.below(60_000);
    let hint = (locks > 0 && r.one_in(2)).then(|| r.below(locks.max(1)) as usize);
    let within = r.pick(&[0, time, FOREVER, FOREVER]);
    match r.below(10) {
        0 => ops.push(Op::Run(time)),
        1 | 2 => ops.push(Op::Nap(time, hint)),
        3..=6 if locks > 0 => {
            let lock = r.below(locks) as usize;
            ops.push(Op::Lock(lock, within, hint));
            match r.below(8) {
                0 => step(r, script, changes, ops),
                1 => ops.push(Op::Nap(time, None)),
                _ => ops.push(Op::Run(time)),
            }
            ops.push(Op::Unlock(lock));
        }
        7 if !script.mailboxes.is_empty() => ops.push(Op::Send(0, within)),
        8 if !script.mailboxes.is_empty() => ops.push(Op::Receive(0, within, hint)),
        9 if locks > 0 && r.one_in(4) => {
            let lock = r.below(locks) as usize;
            ops.extend([Op::Delete(lock), Op::Create(lock)]);
        }
        _ if changes && !script.vcpus.is_empty() => {
            let period = 30_000 + r.below(500_000);
            let budget = 1_000 + r.below(period - 1_000);
            ops.push(Op::Set(r.below(script.vcpus.len() as u64) as usize, budget, period));
        }
        _ => ops.push(Op::Yield),
    }
}
