//! Makes budgets that are drawn worth more than what the kernel takes of them. A budget below twice
//! that is refused by one rule, and such a system shows nothing of all others.

use super::{PERIODS, bus};
use crate::systems::drawn::{
    Budget, Drawn, DrawnTask, Gadget, Interface, Onward, Perch, SECOND, samples,
};
use diapason_random::Random;

/// Longest period that a budget is given, in nanoseconds.
const PERIOD_MAX: u64 = 400_000_000;
/// Longest period of a reader or a writer that grants ask for.
const GRANTED_MAX: u64 = 40_000_000;
/// Longest stretch of the budgets of clients.
const STRETCH_MAX: u64 = 64;
/// Most stretches of a budget, in eighths of the least one: a few are just enough, most are not.
const ROOM: [u64; 8] = [8, 9, 12, 16, 16, 24, 32, 64];

/// Returns the VCPUs whose budgets a refusal calls too small, each with the least one in
/// nanoseconds.
fn too_small(why: &str) -> Vec<(String, u64)> {
    let mut found = Vec::new();
    let mut name = None;
    for line in why.lines() {
        if let Some((_, rest)) = line.split_once("more than half of each budget of `") {
            name = rest.split('`').next().map(str::to_owned);
        } else if let Some((_, rest)) = line.split_once("help: give it at least ") {
            let least = rest.split(',').next().and_then(nanos);
            found.extend(name.take().zip(least));
        }
    }
    found
}

/// Returns a time as refusals say it.
fn nanos(text: &str) -> Option<u64> {
    let (number, unit) = text.split_once(' ')?;
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let unit: u64 = match unit {
        "ns" => 1,
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        _ => return None,
    };
    // A thousandth more than what was cut off.
    let thousandths: u64 = format!("{part:0<3}").get(..3)?.parse().ok()?;
    Some(whole.parse::<u64>().ok()? * unit + (thousandths + 1) * unit.div_ceil(1_000))
}

/// Gives every VCPU that a refusal calls too small a budget that is enough, if it calls any. Most
/// get more than just enough.
pub fn afford(random: &mut Random, drawn: &mut Drawn, why: &str) -> bool {
    let all = too_small(why);
    let grants = why.contains("more than half of each grant of `usb-");
    if let Some(can) = drawn.can.as_mut().filter(|_| grants) {
        grant(random, can);
    }
    for (name, least) in &all {
        let wanted = least * random.pick(&ROOM) / 8;
        let number = |prefix: &str| name.strip_prefix(prefix).and_then(|it| it.parse().ok());
        if let Some(number) = number("run-") {
            task(drawn, number, wanted);
        } else if name == "watch" {
            drawn.watch.hold(wanted);
        } else if let (Some(board), "logging") = (&mut drawn.board, &**name) {
            board.server.hold(wanted);
        } else if let Some(number) = name.strip_prefix("rude-").and_then(|it| it.split('-').next())
        {
            let rude = number.parse().ok().and_then(|it: usize| drawn.rude.get_mut(it));
            if let Some(Perch::Own(server, _)) = rude.map(|rude| &mut rude.seat) {
                server.hold(wanted);
            }
        } else if let Some(server) = bus::seat(drawn, name) {
            server.hold(wanted);
        } else if let Some(can) = &mut drawn.can {
            seat(can, name, wanted);
        }
    }
    grants || !all.is_empty()
}

/// Makes grants longer: by more of the processor, or by longer periods of those they are for.
fn grant(random: &mut Random, can: &mut Interface) {
    if can.share < 45 && random.one_in(2) {
        can.share += 6;
        samples(&mut can.classes).for_each(|samples| samples.share += 6);
        return;
    }
    can.stretch = (can.stretch * 2).min(STRETCH_MAX);
    let sampled = samples(&mut can.classes).map(|samples| &mut samples.server);
    let readers = can.pipes.iter_mut().chain(&mut can.second).map(|pipe| &mut pipe.server);
    let readers = readers.chain(sampled);
    for server in readers.chain(can.outputs.iter_mut().map(|output| &mut output.server)) {
        if server.period * 2 <= GRANTED_MAX {
            (server.budget, server.period) = (server.budget * 2, server.period * 2);
        }
    }
}

impl Budget {
    /// Makes the budget at least so long, and its period long enough for it.
    fn hold(&mut self, wanted: u64) {
        self.budget = self.budget.max(wanted);
        while self.budget > self.period * 6 / 10 && self.period < PERIOD_MAX {
            self.period *= 2;
        }
    }
}

/// Makes the budget of a task at least so long: more of it is spare, or several jobs share it, or
/// they come less often.
fn task(drawn: &mut Drawn, number: usize, wanted: u64) {
    let Some(task) = drawn.tasks.get_mut(number) else { return };
    let budget = |task: &DrawnTask| (task.work + task.spare) * task.often * 1_000;
    loop {
        let lacking = wanted.saturating_sub(budget(task)).div_ceil(1_000 * task.often);
        let room = (task.period * 6 / 10).saturating_sub(task.work + task.spare);
        if lacking <= room {
            task.spare += lacking;
            return;
        }
        let longer = PERIODS.into_iter().find(|period| *period > task.period);
        match longer {
            Some(period) => task.period = period,
            None if task.often < 4 => (task.often, task.replenishments) = (task.often + 1, 8),
            None => return,
        }
    }
}

/// Gives the VCPU `name` of the interface at least the budget that is wanted.
fn seat(can: &mut Interface, name: &str, wanted: u64) {
    let channel = |prefix: &str| name.strip_prefix(prefix).and_then(|it| it.parse().ok());
    let (read, written): (Option<u64>, Option<u64>) = (channel("read-"), channel("write-"));
    if name == "usb-manage" {
        return can.manage.hold(wanted);
    }
    for class in &mut can.classes {
        match (class, name) {
            (Gadget::Samples(samples), "use-sensor")
            | (Gadget::SecondSamples(samples), "use-sensor1")
            | (Gadget::Endpoint(_, samples), "use-endpoint")
            | (Gadget::Sink(_, samples), "use-sink" | "use-pair" | "watch-pair")
            | (Gadget::Pictures(_, samples), "use-camera")
            | (Gadget::SecondPictures(_, samples), "use-camera1")
            | (Gadget::Blocks(_, samples), "use-disk")
            | (Gadget::SecondBlocks(_, samples), "use-disk1")
            | (Gadget::Frames(_, samples), "use-network" | "watch-network") => {
                return samples.server.hold(wanted);
            }
            _ => {}
        }
    }
    if name.starts_with("use-") || name == "usb-tune" || name == "hostile-main" {
        can.stretch = (can.stretch * 2).min(STRETCH_MAX);
        return;
    }
    for output in can.outputs.iter_mut().filter(|output| Some(output.channel) == written) {
        output.server.hold(wanted);
    }
    if let Some(pipe) = can.second.as_mut().filter(|_| read == Some(SECOND)) {
        pipe.server.hold(wanted);
    }
    for pipe in &mut can.pipes {
        if Some(pipe.channel) == read {
            pipe.server.hold(wanted);
        }
        match &mut pipe.chain {
            Some(Onward::Shown(_, shown)) if name == "shows" => shown.hold(wanted),
            Some(Onward::Relayed(_, control, _)) if name == "controls" => control.hold(wanted),
            Some(Onward::Relayed(to, _, writer)) if Some(*to) == written => writer.hold(wanted),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_which_budgets_are_too_small() {
        let why = "error: the kernel may take more than half of each budget of `run-3`\n\
                   = help: give it at least 41.082 us, or shorter lists\n\
                   error: something else\n  = help: give it at least 1 ms, or less\n\
                   error: the kernel may take more than half of each budget of `usb-manage`\n\
                   = help: give it at least 4.744 ms, or shorter lists";
        let found = too_small(why);
        assert_eq!(found, [("run-3".into(), 41_083), ("usb-manage".into(), 4_745_000)]);
        assert_eq!(nanos("600 ns"), Some(601));
        assert_eq!(nanos("of it"), None);
    }

    #[test]
    fn a_budget_that_is_too_small_becomes_enough() {
        let mut random = Random::new(1);
        for number in 0..200 {
            let mut drawn = super::super::raw(6, number);
            let seats = drawn.tasks.len();
            let said = |name: &str, least: &str| {
                format!(
                    "the kernel may take more than half of each budget of `{name}`\n\
                     help: give it at least {least}, or"
                )
            };
            for task in 0..seats {
                assert!(afford(&mut random, &mut drawn, &said(&format!("run-{task}"), "50 us")));
                let it = &drawn.tasks[task];
                assert!((it.work + it.spare) * it.often >= 50, "{it:?}");
                assert!(it.work + it.spare <= it.period, "{it:?}");
            }
            afford(&mut random, &mut drawn, &said("usb-manage", "1.500 ms"));
            let manage = drawn.can.as_ref().map_or(u64::MAX, |can| can.manage.budget);
            assert!(manage >= 1_500_000, "{manage}");
            assert!(!afford(&mut random, &mut drawn, "error: something else"));
        }
    }
}
