//! `cargo xtask attack systems`: random whole systems, with programs that misbehave in some of
//! their seats. Every system that the planner admits must hold: it is simulated, and judged by its
//! messages and jobs. A system that breaks a promise is made small and written down.

mod boards;
mod bursts;
mod buses;
pub mod cases;
mod draw;
mod drawn;
pub mod gate;
mod judge;
mod shrink;
mod slack;
mod text;

use crate::campaign::Shard;
use diapason::failure::{BROKEN, HOLDS};
use diapason::metal::Built;
use diapason::table::{Align, TextTable};
use diapason::tools::{Missing, QEMU};
use diapason::{Failure, Workspace, metal};
use diapason_abi::Nanos;
use drawn::Drawn;
use judge::{Breach, Judged, Tightness, judge};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The number that is drawn when nobody says how many.
const COUNT: u64 = 1_000;
/// The number of each kind that is made small; the others are only counted.
const SHRUNK_OF_A_KIND: usize = 3;

/// The number of reasons for refusals that are shown.
const REASONS: usize = 12;

/// The options of the command.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Asked {
    /// The number of systems that `systems` draws.
    #[arg(long, value_name = "N", default_value_t = COUNT)]
    count: u64,
    /// The campaign of `systems`.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// The number of the first system of `systems`.
    #[arg(long, value_name = "N", default_value_t = 0)]
    from: u64,
    /// The share of `systems`: every n-th only, from the i-th on, so that several processes share
    /// them.
    #[arg(long, value_name = "I/N", default_value_t = Shard::WHOLE)]
    shard: Shard,
    /// The number of admitted `systems` that are booted in QEMU, too.
    #[arg(long, value_name = "K", default_value_t = 0)]
    qemu: u64,
}

/// The system that is judged at the moment.
static JUDGED: AtomicU64 = AtomicU64::new(0);

/// A panic ends the process; it says first which system it was.
fn name_panics(seed: u64) {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        eprintln!("while system {} of seed {seed} was judged:", JUDGED.load(Relaxed));
        usual(panic);
    }));
}

/// A violation with the system that it was found in.
struct Found {
    number: u64,
    violation: Breach,
    smallest: Option<(Drawn, PathBuf)>,
}

/// Everything that a campaign has seen.
#[derive(Default)]
struct Campaign {
    drawn: u64,
    unread: u64,
    /// Why the first of them is none.
    why: Option<String>,
    /// Those that are refused, by why.
    refused: BTreeMap<String, u64>,
    admitted: u64,
    /// The number of those with several cores.
    several: u64,
    /// The number of systems that break a promise.
    broken: u64,
    shares: Tightness,
    found: Vec<Found>,
    /// The numbers of those that were admitted and broke nothing, and that QEMU can boot.
    sound: Vec<u64>,
}

impl Campaign {
    /// Draws and judges the systems with these numbers; each violation is made small.
    fn run(
        workspace: &Workspace,
        built: &Built,
        seed: u64,
        numbers: impl Iterator<Item = u64>,
    ) -> Result<Campaign, Failure> {
        let mut campaign = Campaign::default();
        let live = std::io::stderr().is_terminal();
        name_panics(seed);
        for number in numbers {
            JUDGED.store(number, Relaxed);
            let drawn = draw::system(seed, number, &judge::refuses);
            campaign.drawn += 1;
            match judge(built, &drawn, number) {
                Judged::Unread(why) => {
                    campaign.unread += 1;
                    campaign.why.get_or_insert_with(|| format!("{number}: {why}"));
                }
                Judged::Refused(why) => {
                    *campaign.refused.entry(kind_of(&why)).or_default() += 1;
                }
                Judged::Ran(violations, shares) => {
                    campaign.admitted += 1;
                    campaign.several += u64::from(drawn.cores() > 1);
                    campaign.broken += u64::from(!violations.is_empty());
                    campaign.shares.extend(*shares);
                    if violations.is_empty() && drawn.boots_in_qemu() {
                        campaign.sound.push(number);
                    }
                    campaign.note(workspace, built, (seed, number), &drawn, violations)?;
                }
            }
            if live {
                let Campaign { drawn, admitted, found, .. } = &campaign;
                eprint!("\r{drawn} drawn, {admitted} admitted, {} violations", found.len());
            }
        }
        if live {
            eprintln!();
        }
        Ok(campaign)
    }

    /// One violation of each kind of a system, as small as it gets.
    fn note(
        &mut self,
        workspace: &Workspace,
        built: &Built,
        (seed, number): (u64, u64),
        drawn: &Drawn,
        violations: Vec<Breach>,
    ) -> Result<(), Failure> {
        let mut kinds: BTreeMap<String, Breach> = BTreeMap::new();
        for violation in violations {
            kinds.entry(violation.kind.clone()).or_insert(violation);
        }
        for (kind, violation) in kinds {
            let known = self.found.iter().filter(|found| found.violation.kind == kind);
            let smallest = if known.count() < SHRUNK_OF_A_KIND {
                let small = shrink::shrink(drawn, &mut |next| {
                    matches!(judge(built, next, number), Judged::Ran(all, _)
                        if all.iter().any(|other| other.kind == kind))
                });
                let path = write_down(workspace, (seed, number), &small, &violation)?;
                println!("\n{seed}/{number}: {kind}: {}\n  {}", violation.text, path.display());
                println!("again: {}", again(seed, number));
                Some((small, path))
            } else {
                None
            };
            self.found.push(Found { number, violation, smallest });
        }
        Ok(())
    }

    /// Returns what was seen, as tables.
    fn render(&self, seed: u64) -> String {
        let Campaign { drawn, unread, admitted, several, broken, .. } = self;
        let refused: u64 = self.refused.values().sum();
        let mut text = format!(
            "\n{drawn} systems of seed {seed}: {unread} no description, {refused} refused, \
             {admitted} admitted and simulated, {several} of them with several cores; {broken} \
             break a promise\n"
        );
        if let Some(why) = &self.why {
            let _ = writeln!(text, "the first that is no description is {why}");
        }
        let right = Align::Right;
        let columns = ["observed/bound", "n", "median", "90 %", "99 %", "most"];
        let columns: Vec<(&str, Align)> = columns.iter().map(|name| (*name, right)).collect();
        let mut table = TextTable::new(&columns);
        let Tightness { pipes, far, sinks, jobs, calls, queued, through, read, slack } =
            &self.shares;
        let all = [
            ("pipes", pipes),
            ("pipes to other cores", far),
            ("pipes to endpoints", sinks),
            ("jobs", jobs),
            ("jobs that ask", calls),
            ("CAN messages until queued", queued),
            ("CAN messages until through", through),
            ("CAN messages until read", read),
        ];
        for (name, all) in all {
            let mut row = vec![String::from(name), all.len().to_string()];
            row.extend([500, 900, 990, 1_000].map(|part| thousandths(quantile(all, part))));
            table.row(row);
        }
        text += &table.render();
        text +=
            &format!("\nwhere bounds of pipes are longer than what was seen:\n{}", slack.render());
        let mut table = TextTable::new(&[("refused", right), ("why", Align::Left)]);
        let mut reasons: Vec<(&String, &u64)> = self.refused.iter().collect();
        reasons.sort_unstable_by_key(|(_, count)| std::cmp::Reverse(**count));
        for (why, count) in reasons.into_iter().take(REASONS) {
            table.row(vec![count.to_string(), why.clone()]);
        }
        text += &format!("\n{}", table.render());
        let mut kinds: BTreeMap<&str, Vec<&Found>> = BTreeMap::new();
        for found in &self.found {
            kinds.entry(&found.violation.kind).or_default().push(found);
        }
        let mut table = TextTable::new(&[
            ("broken", Align::Left),
            ("systems", right),
            ("first", right),
            ("smallest", right),
            ("what", Align::Left),
        ]);
        for (kind, all) in kinds {
            let first = all[0];
            let small = all.iter().filter_map(|found| found.smallest.as_ref());
            let size = small.map(|(small, _)| small.size()).min();
            table.row(vec![
                kind.to_owned(),
                all.len().to_string(),
                first.number.to_string(),
                size.map_or_else(String::new, |size| format!("{size} parts")),
                first.violation.text.chars().take(90).collect(),
            ]);
        }
        text + "\n" + &table.render()
    }
}

/// Returns the first sentence of a refusal, without its names and numbers.
fn kind_of(why: &str) -> String {
    let first = why.lines().next().unwrap_or_default();
    let known = |word: &&str| !word.starts_with('`') && !word.contains(|c: char| c.is_numeric());
    first.split_whitespace().filter(known).take(12).collect::<Vec<&str>>().join(" ")
}

/// Returns the value below which so many thousandths of all are.
fn quantile(all: &[u64], part: usize) -> u64 {
    let mut sorted = all.to_vec();
    sorted.sort_unstable();
    let place = (sorted.len().saturating_sub(1) * part).div_ceil(1_000);
    sorted.get(place).copied().unwrap_or_default()
}

fn thousandths(value: u64) -> String {
    format!("{}.{:03}", value / 1_000, value % 1_000)
}

/// Returns the command that judges this system again.
fn again(seed: u64, number: u64) -> String {
    format!("cargo xtask attack systems --seed {seed} --from {number} --count 1")
}

/// Writes the description of a small system, with how to see what it breaks.
fn write_down(
    workspace: &Workspace,
    (seed, number): (u64, u64),
    drawn: &Drawn,
    violation: &Breach,
) -> Result<PathBuf, Failure> {
    let folder = workspace.target().join("attack");
    let kind = violation.kind.chars().filter(|c| c.is_ascii_alphanumeric());
    // A name has at most 31 characters.
    let kind: String = kind.take(12).collect();
    let name = format!("{kind}-{seed}-{number}");
    let path = folder.join(format!("{name}.toml"));
    let fault = match &violation.fault {
        Some(options) if options.starts_with("--") => format!(" {options}"),
        Some(fault) => format!(" --seed {number} --fault \"{fault}\""),
        None => String::new(),
    };
    let (kind, text) = (&violation.kind, &violation.text);
    let head = format!(
        "# {kind}: {text} (before it was made small)\n\
         # {}\n\
         # diapason sim {} --for {}ms --stages{fault}\n\n",
        again(seed, number),
        path.display(),
        judge::horizon(drawn) / 1_000_000
    );
    let failure = |error| Failure::io(format!("write {}", path.display()), &error);
    std::fs::create_dir_all(&folder).map_err(failure)?;
    std::fs::write(&path, head + &text::description(drawn, &name)).map_err(failure)?;
    let horizon = Nanos(judge::horizon(drawn));
    for (file, log) in judge::read(drawn, horizon).iter().flatten().flat_map(bursts::logs) {
        let file = file.replacen("drawn", &name, 1);
        std::fs::write(folder.join(file), log).map_err(failure)?;
    }
    Ok(path)
}

/// Returns the campaign as a command.
///
/// # Errors
/// If it cannot be carried out.
pub fn command(workspace: &Workspace, asked: &Asked) -> Result<u8, Failure> {
    if asked.qemu > 0 {
        QEMU.require(Missing::Install)?;
    }
    let built = metal::build(workspace)?;
    let numbers = asked.shard.of(asked.from..asked.from.saturating_add(asked.count));
    let campaign = Campaign::run(workspace, &built, asked.seed, numbers)?;
    println!("{}", campaign.render(asked.seed));
    let mut broken = !campaign.found.is_empty();
    let distance = (campaign.sound.len() as u64 / asked.qemu.max(1)).max(1);
    let sampled = campaign.sound.iter().step_by(distance as usize).take(asked.qemu as usize);
    for number in sampled {
        let found =
            judge::boot(workspace, &built, &draw::system(asked.seed, *number, &judge::refuses))?;
        let said: Vec<String> =
            found.iter().map(|it| format!("{}: {}", it.kind, it.text)).collect();
        let said = if said.is_empty() { String::from("holds") } else { said.join("\n  ") };
        println!("{}/{number} in QEMU: {said}", asked.seed);
        broken |= !found.is_empty();
        let _ = std::io::stdout().flush();
    }
    Ok(if broken { BROKEN } else { HOLDS })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_values_that_were_seen() {
        let all: Vec<u64> = (1..=100).rev().collect();
        assert_eq!([500, 900, 1_000].map(|part| quantile(&all, part)), [51, 91, 100]);
        assert_eq!((quantile(&[], 500), quantile(&[7], 990)), (0, 7));
        assert_eq!(thousandths(1_234), "1.234");
    }
}
