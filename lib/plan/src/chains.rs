//! The bill of every chain: from a device through several threads, and on to a device or to the end
//! of the last thread.
//!
//! The bill of the pipe holds the part before the first thread. The threads are in `bill::relay`.
//! The part behind the last one is again the bill of a pipe, with the chain's output as contract.

use crate::blocks;
use crate::calls::Step;
use crate::human;
use crate::missing::{self, Missing};
use crate::pipes::{NoBill, Piped, Plant, contract};
use crate::reports::Reporting;
use diapason_abi::Nanos;
use diapason_abi::pipe::OUT_SLOTS;
use diapason_analysis::server::Supply;
use diapason_pipe::bill::{
    Basis, Before, Bill, ChainStage, Hop, Relay, Stuck, Taking, User, What, input, relay,
};
use diapason_pipe::size::{Bucket, arrivals};
use diapason_system::{ChainSpec, Diagnostics, Handover, PipeSpec, Place, System};

/// The plan of a chain.
#[derive(Clone, Debug)]
pub struct Chained {
    /// The chain's bill, or why there is none.
    pub bill: Result<ChainBill, NoBill>,
}

/// How long a message of a chain takes at most.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChainBill {
    /// The items of its bill, in its order.
    pub items: Vec<ChainItem>,
    pub total: Nanos,
    /// The shortest way to the first thread.
    pub least: Nanos,
    /// Most messages in the ring of the pipe it ends with.
    pub ring: Option<u64>,
    /// The output of the chain, at once and a second: the pipe's contract has to cover it.
    pub leaves: Bucket,
    /// Whether each thread's time relies on a replenishment list that is never full.
    pub apart: Vec<bool>,
}

/// One line of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChainItem {
    /// A few words, or the name of the process.
    pub what: String,
    /// The place in the chain of the thread that the line is about, if it is about one.
    pub thread: Option<usize>,
    /// How long at most.
    pub value: Nanos,
    /// How long after its arrival a message, or a newer one, is behind this, at most.
    pub after: Nanos,
    /// Messages between the thread before and the end of this one's work, and those there is room
    /// for; of a state message nothing waits.
    pub waiting: Option<(u64, u64)>,
}

/// Returns the bills of all chains of `system`, in their order.
#[must_use]
pub(crate) fn chains(plant: &Plant<'_>, pipes: &[Piped]) -> Vec<Chained> {
    plant.system.chains.iter().map(|chain| Chained { bill: plant.chain(chain, pipes) }).collect()
}

/// Returns the bill of a pipe at an end of a chain.
fn has_bill<'p>(pipe: &PipeSpec, piped: &'p Piped) -> Result<&'p Bill, NoBill> {
    piped.bill.as_ref().map_err(|_| {
        let what = format!("its pipe `{}` has none", pipe.name);
        NoBill::Missing(what, format!("see the message about `{}`", pipe.name))
    })
}

fn no_bill((what, remedy): Missing) -> NoBill {
    NoBill::Missing(what, remedy)
}

impl Plant<'_> {
    fn chain(&self, chain: &ChainSpec, pipes: &[Piped]) -> Result<ChainBill, NoBill> {
        let system = self.system;
        let from = usize::from(chain.from);
        let reads = &system.pipes[from];
        let piped = has_bill(reads, &pipes[from])?;
        if let Some(none) = blocks::no_chain(reads) {
            return Err(none);
        }
        let arrives = [contract(reads)];
        let processes = processes(chain, system);
        processes.iter().try_for_each(|it| self.locks_nothing(*it)).map_err(no_bill)?;
        let inbound = self.inbound(from).map_err(no_bill)?;
        let supplies = processes.iter().map(|process| self.supply_behind(&inbound, *process));
        let supplies = supplies.collect::<Result<Vec<Supply>, Missing>>().map_err(no_bill)?;
        let reporting: Vec<Reporting<'_>> = processes
            .iter()
            .zip(&supplies)
            .map(|(process, supply)| self.reporting(*process, supply))
            .collect();
        let steps = self.steps(chain, reads).map_err(no_bill)?;
        let (shortest, longest) = (piped.least, piped.before(What::User));
        let first = self.first(from, steps[0], &supplies[0])?;
        let before = Before { shortest, longest, first };
        let hops: Vec<Hop<'_>> = (0..processes.len())
            .map(|place| Hop {
                link: ChainStage { message: steps[place], service: &reporting[place] },
                sampled: sampled(chain, place),
            })
            .collect();
        let relayed = relay(&hops, &arrives, before);
        let relayed = relayed.map_err(|stuck| no_bill(self.stuck(&stuck, &processes, chain)))?;
        let mut bill = ChainBill::of(piped, &relayed, chain, system);
        bill.leaves = leaves(&relayed, reads);
        if let Some(to) = chain.to {
            let pipe = &system.pipes[usize::from(to)];
            if pipe.is_written() {
                bill.deliver(has_bill(pipe, &pipes[usize::from(to)])?);
                return Ok(bill);
            }
            let behind = relayed.sampled.map_or(arrives, |period| [Bucket::periodic(period)]);
            // The work of the last thread counts until it has told the server.
            let output = self.output_of(to.into(), &behind, Nanos::ZERO).map_err(no_bill)?;
            bill.send(&output.map_err(NoBill::Refused)?, &behind, relayed.varies);
        }
        Ok(bill)
    }

    /// The longest time of the first thread, as the bill of a pipe whose reader takes `step` for a
    /// message.
    fn first(&self, from: usize, step: Nanos, service: &Supply) -> Result<Nanos, NoBill> {
        let inbound = self.inbound(from).map_err(no_bill)?;
        let (wake, taking) = (Nanos::ZERO, Taking::Each);
        let (_, process) = self.end(&self.system.pipes[from]).map_err(no_bill)?;
        let service = &self.reporting(process, service);
        let stages = inbound.stages(User { message: step, wake, taking, service });
        let bill = self
            .with_traffic((from, inbound.own), |traffic| input(&stages, traffic))
            .map_err(no_bill)?;
        let item = bill.map_err(NoBill::Refused)?.item(What::User);
        Ok(item.map_or(Nanos::FOREVER, |item| item.value))
    }

    /// The longest time of each thread for a message, its calls included.
    fn steps(&self, chain: &ChainSpec, reads: &PipeSpec) -> Result<Vec<Nanos>, Missing> {
        let taken = |place: usize| -> Result<(Nanos, Nanos), Missing> {
            let Some(link) = place.checked_sub(1).map(|link| &chain.links[link]) else {
                return Ok((self.work_of_end(reads)?, self.calls.takes(Step::Counted)));
            };
            let process = self.system.process_name(link.process).unwrap_or_default();
            let work = missing::said(link.work_ns, process, "to the `[[chain.link]]`")?;
            Ok((work, self.calls.takes(step(link.handover))))
        };
        let given = |place: usize| match chain.links.get(place) {
            Some(link) => self.calls.gives(step(link.handover)),
            None => chain.to.map_or(Nanos::ZERO, |to| {
                let is_sink = self.system.pipes[usize::from(to)].is_written();
                self.calls.gives(if is_sink { Step::Counted } else { Step::Mailed })
            }),
        };
        let each = |place| {
            let (work, calls) = taken(place)?;
            Ok(work + calls + given(place))
        };
        (0..=chain.links.len()).map(each).collect()
    }

    fn stuck(&self, stuck: &Stuck, processes: &[u16], chain: &ChainSpec) -> Missing {
        let name = |place: &usize| {
            processes.get(*place).and_then(|p| self.system.process_name(*p)).unwrap_or_default()
        };
        match stuck {
            Stuck::Slow(place, why) => (
                format!("`{}`: {why}", name(place)),
                "give its VCPU more of the processor, or make `work` or the rate smaller".into(),
            ),
            Stuck::Skips(place, takes) => {
                let every = sampled(chain, *place).unwrap_or_default();
                (
                    format!(
                        "`{}` may take {} and samples every {}: it would miss the next sample",
                        name(place),
                        human(takes.0),
                        human(every.0)
                    ),
                    "make `every` longer, or give its VCPU more of the processor".into(),
                )
            }
            Stuck::Length => ("it has too many threads".into(), "make it shorter".into()),
        }
    }
}

fn step(handover: Handover) -> Step {
    match handover {
        Handover::Mailbox { .. } => Step::Mailed,
        Handover::Semaphore { .. } => Step::Counted,
        Handover::State { .. } => Step::Sampled,
    }
}

/// Returns how often the thread at this place takes a value, if it does.
fn sampled(chain: &ChainSpec, place: usize) -> Option<Nanos> {
    match chain.links.get(place.checked_sub(1)?)?.handover {
        Handover::State { every_ns } => Some(Nanos(every_ns)),
        _ => None,
    }
}

/// Returns all processes of a chain.
#[must_use]
pub fn processes(chain: &ChainSpec, system: &System) -> Vec<u16> {
    let first = system.pipes[usize::from(chain.from)].process();
    first.into_iter().chain(chain.links.iter().map(|link| link.process)).collect()
}

/// Returns the output of a chain: that of its last leg, later and so perhaps at once.
fn leaves(relayed: &Relay, reads: &PipeSpec) -> Bucket {
    let enters = relayed.sampled.map_or(contract(reads), Bucket::periodic);
    Bucket { jitter: enters.jitter + relayed.varies, ..enters }
}

impl ChainBill {
    fn of(input: &Bill, relayed: &Relay, chain: &ChainSpec, system: &System) -> ChainBill {
        let leaves = Bucket::per_second(1);
        let (total, least) = (Nanos::ZERO, input.least);
        let apart = relayed.reaches().iter().map(|reach| reach.apart).collect();
        let mut bill = ChainBill { items: Vec::new(), total, least, ring: None, leaves, apart };
        for item in input.items().iter().filter(|item| item.what != What::User) {
            bill.put(item.what.name().to_owned(), item.value);
        }
        for (place, (process, reach)) in
            processes(chain, system).into_iter().zip(relayed.reaches()).enumerate()
        {
            let name = system.process_name(process).unwrap_or_default();
            bill.put(name.to_owned(), reach.done - bill.total);
            let Some(item) = bill.items.last_mut() else { continue };
            item.thread = Some(place);
            let room = place.checked_sub(1).and_then(|link| match chain.links[link].handover {
                Handover::Mailbox { messages } => Some(u64::from(messages)),
                Handover::Semaphore { slots } => Some(slots),
                Handover::State { .. } => None,
            });
            item.waiting = room.map(|room| (reach.waiting, room));
        }
        bill
    }

    fn put(&mut self, what: String, value: Nanos) {
        self.total += value;
        let after = self.total;
        self.items.push(ChainItem { what, thread: None, value, after, waiting: None });
    }

    /// Adds the pipe to an endpoint at the end of the chain. Its bill holds for each packet that
    /// comes a period after the one before, and [`sent`] requires that of the chain. The work of
    /// the last thread counts until it has told the server, so the writer's item is in the chain
    /// already.
    fn deliver(&mut self, output: &Bill) {
        for item in output.items().iter().filter(|item| item.what != What::Written) {
            self.put(item.what.name().to_owned(), item.value);
        }
    }

    /// The pipe to a device at its end, whose bill is for what enters the chain's last leg.
    fn send(&mut self, output: &Bill, enters: &[Bucket], varies: Nanos) {
        for item in output.items() {
            self.put(item.what.name().to_owned(), item.value);
        }
        let full = output.items().iter().any(|item| matches!(item.basis, Basis::Full { .. }));
        // Every message in the ring entered the leg within this time.
        let ring = arrivals(enters, varies + output.total);
        self.ring = Some(if full { ring.max(OUT_SLOTS as u64 + 1) } else { ring });
    }
}

/// Returns the problems of chains, each of which is a refusal of the system.
pub(crate) fn refusals<'a>(
    chains: &'a [Chained],
    system: &'a System,
) -> impl Iterator<Item = Diagnostics> + 'a {
    let numbered = (0u16..).zip(system.chains.iter().zip(chains));
    numbered.filter_map(|(number, (chain, chained))| {
        let [title, note, help] = refusal(chain, chained, system)?;
        Some(system.problem(Place::Chain(number), [&title, "", &note, &help]))
    })
}

fn refusal(chain: &ChainSpec, chained: &Chained, system: &System) -> Option<[String; 3]> {
    let name = &chain.name;
    let bill = match &chained.bill {
        Ok(bill) => bill,
        Err(none) => return Some(none.words(name)),
    };
    let items: Vec<String> =
        bill.items.iter().map(|item| format!("{} {}", item.what, human(item.value.0))).collect();
    let note = items.join(", ");
    for item in &bill.items {
        let (Some(place), Some((needed, room))) = (item.thread, item.waiting) else { continue };
        if needed > room {
            let by = place.checked_sub(1).map_or("", |link| chain.links[link].by.as_str());
            let title =
                format!("{needed} messages may wait for `{}`; `{by}` holds {room}", item.what);
            return Some([title, note, format!("make room for {needed} in `{by}`")]);
        }
    }
    sent(chain, bill, system).map(|[title, help]| [title, note.clone(), help]).or_else(|| {
        let wanted = chain.latency_ns.filter(|wanted| *wanted < bill.total.0)?;
        let longest = bill.items.iter().max_by_key(|item| item.value)?;
        let (total, wanted) = (human(bill.total.0), human(wanted));
        let help = format!(
            "write `latency = \"{}us\"`, or shorten the longest item, {}",
            bill.total.0.div_ceil(1_000),
            longest.what
        );
        Some([
            format!("messages of `{name}` may take {total}; at most {wanted} is wanted"),
            note,
            help,
        ])
    })
}

/// Returns the mistake about the pipe it ends with.
fn sent(chain: &ChainSpec, bill: &ChainBill, system: &System) -> Option<[String; 2]> {
    let to = &system.pipes[usize::from(chain.to?)];
    let slots = OUT_SLOTS as u64;
    if let Some(ring) = bill.ring.filter(|ring| *ring > slots) {
        return Some([
            format!(
                "`{}` may have {ring} messages waiting for `{}`, its ring holds {slots}",
                chain.name, to.name
            ),
            "reduce the rate, or shorten the chain".to_owned(),
        ]);
    }
    let leaves = &bill.leaves;
    if to.is_written() {
        return too_close(chain, leaves, system);
    }
    more_at_once(leaves, to).map(|(title, help)| [format!("`{}` {title}", chain.name), help])
}

/// Returns what may be written, and the remedy, if that is more than a pipe to a device declares.
pub(crate) fn more_at_once(leaves: &Bucket, to: &PipeSpec) -> Option<(String, String)> {
    let said = contract(to);
    // Each side for a second, and at once: buckets with one fraction need no more.
    let at_once = |bucket: &Bucket| arrivals(&[*bucket], Nanos::ZERO);
    let quicker = u128::from(leaves.messages) * u128::from(said.per.0)
        > u128::from(said.messages) * u128::from(leaves.per.0);
    let burst = at_once(leaves) + u64::from(leaves.jitter > Nanos::ZERO);
    if !quicker && burst <= at_once(&said) {
        return None;
    }
    let a_second =
        (u128::from(leaves.messages) * 1_000_000_000).div_ceil(leaves.per.0.max(1).into());
    Some((
        format!("may write {burst} at once and {a_second} a second; `{}` declares less", to.name),
        format!(
            "write `rate = {}` and `burst = {burst}` in `{}`",
            a_second.max(to.rate.into()),
            to.name
        ),
    ))
}

/// Returns the mistake about a pipe to an endpoint whose packets may come closer together than the
/// pipe says.
///
/// A message enters the last leg a period after the one before, or earlier by the jitter with which
/// it comes. Its way through the leg varies by at most what `leaves` adds to that jitter. So two
/// packets in a row are apart by the period without the jitter at least. With that distance, `k`
/// packets are apart by `k` periods of the pipe at least, because the jitter counts only once. The
/// period of a device is a time of its own clock, which may be fast.
fn too_close(chain: &ChainSpec, leaves: &Bucket, system: &System) -> Option<[String; 2]> {
    let to = &system.pipes[usize::from(chain.to?)];
    let is_sampled = (1..=chain.links.len()).any(|place| sampled(chain, place).is_some());
    let drift = match is_sampled {
        true => 0,
        false => system.usb[system.pipes[usize::from(chain.from)].usb].drift.into(),
    };
    let every = Nanos(leaves.per.0 / leaves.messages.max(1));
    let fast = Nanos(every.0.saturating_mul(drift).div_ceil(1_000_000));
    let least = match leaves.burst {
        0 | 1 => every - fast - leaves.jitter,
        _ => Nanos::ZERO,
    };
    let sample = "let the last thread sample a state message";
    closer(least, to, sample).map(|(title, help)| [format!("`{}` {title}", chain.name), help])
}

/// Returns what may be written, and the remedy, if packets for an endpoint are apart by `least` and
/// its pipe declares more. `instead` is a remedy, too.
pub(crate) fn closer(least: Nanos, to: &PipeSpec, instead: &str) -> Option<(String, String)> {
    let said = contract(to).per;
    if said <= least {
        return None;
    }
    let title = format!(
        "may write two packets within {}, and `{}` says that they are {} apart",
        human(least.0),
        to.name,
        human(said.0)
    );
    let help = match least.0 / 1_000 {
        0 => instead.to_owned(),
        micros => format!("write `period = \"{micros}us\"` in `{}`, or {instead}", to.name),
    };
    Some((title, help))
}
