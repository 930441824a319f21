//! Several hosts in one simulation with the cables between them, or the cores of one.

use super::cables::{Controllers, plug_all, targets};
use super::ethernet;
use super::ethernet::WireBooks;
use super::explain::{self, Asked};
use super::faults::asked_of_cores;
use super::flows::{self, FlowChoice, LinkEars, LinkLogs};
use super::measured::pictures;
use super::messages::HostPart;
use super::part::{Observations, Wishes};
use super::perfetto::Sheet;
use super::search::{Searched, Seeds, search};
use super::simulation::{Hearing, Simulated, how_it_ended, simulated, usual, with_upsets};
use super::switches::SwitchReport;
use super::{Listener, SeenTime, SimRequest, finding, tell_faults};
use crate::commands::Addition;
use crate::failure::{BROKEN, Failure, HOLDS};
use crate::interrupt;
use crate::live::live_from;
use crate::outcome::NetworkRow;
use crate::output::{note, tell};
use crate::plan::NetworkPlan;
use crate::qemu::MachineEnding;
use crate::session::{FinishedRun, Session};
use crate::several::{AllParts, Named, Several, report};
pub use crate::several::{Joined, Joints};
use crate::surroundings::{self, Functions, Sights, as_functions, simulable};
use crate::workspace::Workspace;
use diapason_abi::{Key, Nanos};
use diapason_sim::{Ended, EthernetNetwork, FrameTap, Observer, Options, Trace};
use diapason_system::{Hosts, InjectedFault, RunOptions, System};
use std::collections::BTreeMap;

/// How far hosts that nothing joins may be apart, so that what they say comes about in order.
const UNJOINED: Nanos = Nanos::from_millis(1);

/// A host that takes part.
pub struct Seat<'a, O> {
    /// The session that it boots.
    pub session: &'a Session,
    /// The options of the host's simulation.
    pub how: Options,
    /// The faults around it, and those of the host itself.
    pub faults: Vec<InjectedFault>,
    /// The observer of the host.
    pub observer: O,
}

impl<'a, O> Seat<'a, O> {
    /// Returns the seat of a host as its description has it.
    #[must_use]
    pub fn new(session: &'a Session, observer: O) -> Seat<'a, O> {
        Seat { session, how: usual(session, None), faults: Vec::new(), observer }
    }
}

/// Runs hosts or cores beside each other to their end. The ends of cables count hosts as `seats`
/// does; cores are in their order.
///
/// # Errors
/// If they cannot be run at all.
pub fn together<O: Observer>(
    seats: Vec<Seat<'_, O>>,
    joined: &Joined,
) -> Result<Vec<Simulated>, Failure> {
    let wishes = seats.iter().map(|_| None).collect();
    seated(seats, joined, wishes, false)?.simulated()
}

/// Runs hosts or cores as they are described, each with its observer, and follows every message of
/// their pipes.
///
/// # Errors
/// If they cannot be run at all.
pub fn followed<O: Observer>(
    sessions: &[Named],
    joined: &Joined,
    seed: Option<u64>,
    observers: impl Iterator<Item = O>,
) -> Result<Vec<Simulated>, Failure> {
    let seats = sessions.iter().zip(observers).map(|((name, session), observer)| {
        let how = usual(session, seed.map(|seed| own_seed(name, seed)));
        Seat { session, how, faults: session.system.faults.clone(), observer }
    });
    let seats: Vec<Seat<'_, O>> = seats.collect();
    let follow = |_: &Seat<'_, O>| Some(Wishes { follows: true, ..Wishes::default() });
    let wishes = seats.iter().map(follow).collect();
    seated(seats, joined, wishes, true)?.simulated()
}

/// Returns the seed of a host: every host draws for itself, whatever its place.
#[must_use]
pub fn own_seed(name: &str, seed: u64) -> u64 {
    seed ^ Key::new(name).0
}

/// A part of a run of several, when it has ended.
struct Part {
    run: FinishedRun,
    hash: Trace,
    observations: Observations,
    /// The messages at its links, if they were followed.
    links: LinkLogs,
}

/// The results of several hosts or cores.
struct Ran {
    parts: Vec<Part>,
    wires: WireBooks,
}

impl Ran {
    /// Returns each part as a simulation of its own.
    fn simulated(self) -> Result<Vec<Simulated>, Failure> {
        let of_one = |Part { run, hash, observations, links }: Part| {
            let gated = Vec::new();
            Simulated { run, hash: hash.0, lives: observations.lives, links, gated }
        };
        let mut ran: Vec<Simulated> = self.parts.into_iter().map(of_one).collect();
        for books in self.wires.gated {
            ran[ethernet::place(books.card).0].gated.push(books);
        }
        Ok(ran)
    }
}

/// Runs hosts or cores to their end. A part with wishes is looked at. `follows` is whether the
/// messages at links are followed.
fn seated<O: Observer>(
    seats: Vec<Seat<'_, O>>,
    joined: &Joined,
    wishes: Vec<Option<Wishes>>,
    follows: bool,
) -> Result<Ran, Failure> {
    let sessions: Vec<&Session> = seats.iter().map(|seat| seat.session).collect();
    let systems: Vec<&System> = sessions.iter().map(|session| &session.system).collect();
    let around = around(joined, &systems)?;
    let mut listeners: Vec<Listener> = Vec::new();
    listeners.resize_with(seats.len(), Listener::default);
    let mut ears = ears(&systems, joined);
    let (mut wired, mut places) = (Vec::new(), host_parts(joined, &systems));
    let heard = listeners.iter_mut().zip(&mut ears).zip(wishes);
    for ((host, seat), ((listener, ears), wishes)) in seats.into_iter().enumerate().zip(heard) {
        let part = places.remove(&host).unwrap_or_default();
        let wishes = wishes.map(|wishes| Wishes { part, ..wishes });
        wired.push(Wired::new(host, seat, &around, wishes, listener)?.linked(ears, follows));
    }
    let endings = drive_together(wired, joined)?;
    listeners.iter_mut().try_for_each(Listener::settle)?;
    let of_one = |(((ending, listener), ears), session): (((_, Listener), LinkEars), &Session)| {
        let (mut outcome, hash, observations) = listener.finish(&session.names)?;
        NetworkRow::call_all(&mut outcome.network, &session.system.neighbours);
        let (run, links) = (simulated(ending, outcome), ears.into_logs());
        Ok(Part { run, hash, observations, links })
    };
    let ran = endings.into_iter().zip(listeners).zip(ears).zip(sessions).map(of_one);
    let parts = ran.collect::<Result<Vec<Part>, Failure>>()?;
    let Around { network, .. } = around;
    Ok(Ran { parts, wires: WireBooks::of(&network) })
}

/// Returns the place of each part among the cores of its host.
fn host_parts(joined: &Joined, systems: &[&System]) -> BTreeMap<usize, HostPart> {
    let of_host = |crew: Vec<usize>| {
        let host = HostPart::default();
        crew.into_iter().map(move |part| (part, host.beside(part)))
    };
    joined.crews(systems).into_iter().flat_map(of_host).collect()
}

/// Returns the ears of each host, which hear times by the clock of the world.
fn ears(systems: &[&System], joined: &Joined) -> Vec<LinkEars> {
    let hosts = systems.iter().enumerate();
    hosts.map(|(host, system)| LinkEars::of(system, joined.world(host))).collect()
}

/// The cables between hosts, and the network of their adapters.
struct Around<'a> {
    joined: &'a Joined,
    network: EthernetNetwork,
}

fn around<'a>(joined: &'a Joined, systems: &[&System]) -> Result<Around<'a>, Failure> {
    let network = match joined {
        Joined::By(joints) => ethernet::network(joints, systems)?,
        Joined::Cores => ethernet::network(&Joints::default(), systems)?,
    };
    Ok(Around { joined, network })
}

impl Around<'_> {
    /// Returns the adapters of a host, each at its wire. Those that no wire of the list ends at
    /// have one of their own.
    fn cards(
        &self,
        host: usize,
        system: &System,
        faults: &[InjectedFault],
    ) -> (Functions, Vec<FrameTap>) {
        let mut taps = Vec::new();
        let wire = |device| {
            let wire = self.network.wire(ethernet::card(host, device))?;
            Some(wire.seen_by(self.joined.world(host)))
        };
        (surroundings::cards(system, faults, wire, &mut taps), taps)
    }
}

/// A host that takes part, with its controllers and adapters.
struct Wired<'a, O> {
    session: &'a Session,
    how: Options,
    controllers: Controllers,
    cards: Functions,
    observer: O,
}

impl<'a, O> Wired<'a, O> {
    /// Returns a host with its surroundings, which a listener hears, too. With wishes, the listener
    /// also hears what passes at the controllers.
    fn new<'l>(
        host: usize,
        seat: Seat<'a, O>,
        around: &Around<'_>,
        wishes: Option<Wishes>,
        listener: &'l mut Listener,
    ) -> Result<Wired<'a, (&'l mut Listener, O)>, Failure> {
        let Seat { session, how, faults, observer } = seat;
        let mut how = with_upsets(session, &how, &faults);
        let (system, targets) = (&session.system, targets(host, &around.joined.joints().cables));
        let (cards, adapters) = around.cards(host, system, &faults);
        let controllers = match wishes {
            None => surroundings::controllers(system, &faults, &targets),
            Some(wishes) => {
                let transfers = wishes.transfers();
                let (controllers, sights) =
                    surroundings::controllers_in_sight(system, &faults, &targets, transfers);
                let sights = Sights { adapters, ..sights };
                *listener = wishes.listener(session, sights, &faults, &mut how)?;
                controllers
            }
        };
        Ok(Wired { session, how, controllers, cards, observer: (listener, observer) })
    }
}

impl<'a, O> Wired<'a, O> {
    /// Gives the host ears, which hear what passes its links if that is wanted.
    fn linked(self, ears: &mut LinkEars, follows: bool) -> Wired<'a, (&mut LinkEars, O)> {
        let Wired { session, mut how, controllers, cards, observer } = self;
        if follows {
            ears.listen(&mut how.watched);
        }
        Wired { session, how, controllers, cards, observer: (ears, observer) }
    }
}

fn drive_together<O: Observer>(
    hosts: Vec<Wired<'_, O>>,
    joined: &Joined,
) -> Result<Vec<MachineEnding>, Failure> {
    hosts.iter().try_for_each(|host| simulable(&host.session.system))?;
    let sessions: Vec<&Session> = hosts.iter().map(|host| host.session).collect();
    let (mut controllers, (parts, mut observers)): (Vec<Controllers>, (Vec<_>, Vec<_>)) = hosts
        .into_iter()
        .map(|host| (host.controllers, ((host.session, host.how, host.cards), host.observer)))
        .unzip();
    plug_all(joined, &mut controllers)?;
    let delay = notice(joined);
    let hosts = parts.into_iter().zip(&mut observers).zip(controllers).enumerate();
    let hosts = hosts.map(|(host, (((session, options, cards), observer), own))| {
        let options = Options { world: joined.world(host), ..options };
        let (archive, mut functions) = (&session.archive, as_functions(own));
        functions.extend(cards);
        diapason_sim::SimulatedHost { archive, options, functions, observer }
    });
    let systems: Vec<&System> = sessions.iter().map(|session| &session.system).collect();
    let crews = joined.crews(&systems);
    let mut all: Vec<Option<_>> = hosts.map(Some).collect();
    let crew = |crew: &Vec<usize>| crew.iter().filter_map(|part| all[*part].take()).collect();
    let ended = diapason_sim::run_together(crews.iter().map(crew).collect(), delay);
    let ended = ended.map_err(|error| Failure::Ours(error.to_string()))?;
    let ended = crews.into_iter().flatten().zip(ended.into_iter().flatten());
    let ended: BTreeMap<usize, Ended> = ended.collect();
    let each = sessions.into_iter().zip(ended.into_values());
    each.map(|(session, ended)| how_it_ended(session, ended)).collect()
}

/// Returns the least time in which one host can notice what another did.
fn notice(joined: &Joined) -> Nanos {
    let Joined::By(joints) = joined else { return UNJOINED };
    let cables = joints.cables.iter().map(|cable| cable.delay_ns);
    let wires = joints.ethernet.iter().map(|link| link.delay_ns);
    cables.chain(wires).min().map_or(UNJOINED, Nanos)
}

/// A list of hosts with the plan of its network.
type Network<'a> = (&'a Hosts, &'a NetworkPlan);

/// Simulates several hosts, or cores, and reports on each.
pub(super) fn simulate(
    request: &SimRequest,
    several: Several,
    network: Option<Network<'_>>,
) -> Result<u8, Failure> {
    let flowing = network.filter(|(hosts, _)| !hosts.flows.is_empty());
    refuse(request, &several, network.is_some())?;
    let systems = several.systems();
    let Question { flow: asked, parts: wanted } = Question::of(request, &several, network)?;
    let faults = match network {
        Some(_) => vec![Vec::new(); systems.len()],
        None => asked_of_cores(&systems, &request.fault)?,
    };
    note(super::TRUST);
    if let Some(count) = request.search {
        let from = request.seed.unwrap_or(0);
        return search(request, &systems, from, count)?.tell(request);
    }
    let (horizon_ns, unproved) = (request.length.horizon_ns, request.length.unproved());
    let options = RunOptions { horizon_ns, record_bytes: 0, watch: false };
    let (mut sessions, joined) =
        several.assemble(&Workspace::find()?, &request.system, options, unproved)?;
    interrupt::await_signals()?;
    let command = Asks { request, wanted: &wanted, faults: &faults };
    if let Some(seeds) = request.seeds {
        return through(&command, &mut sessions, &joined, seeds);
    }
    let breaks = sessions.iter().any(|(_, session)| !session.system.faults.is_empty());
    let pulls = matches!(&joined, Joined::By(joints) if joints.pulls()) || breaks || request.faults;
    let follows = request.stages || asked.is_some() || pulls && flowing.is_some();
    let Ran { parts, wires } = run(&command, &sessions, &joined, follows)?;
    for ((name, _), part) in sessions.iter().zip(&parts) {
        tell(&format!("trace {:016x} of {}", part.hash.0, joined.called(name)));
    }
    tell(&format!("trace {:016x} of all", all_traces(&parts)));
    let (mut runs, mut found, mut links) = (Vec::new(), Vec::new(), Vec::new());
    for part in parts {
        runs.push(part.run);
        found.push(part.observations);
        links.push(part.links);
    }
    let links: Vec<&LinkLogs> = links.iter().collect();
    let told = |(hosts, network)| flows::told(hosts, network, &links, asked);
    let told = flowing.map(told).unwrap_or_default();
    let addition = match () {
        () if request.stages && flowing.is_some() => flows::addition(&told),
        () if pulls => flows::books(&told),
        () => Addition::default(),
    };
    let switches = wires.report(&joined, &sessions);
    let times = seen_times(&joined, &runs, &mut sessions);
    let stages = request.stages;
    let each = sessions.iter().zip(&found).zip(&runs);
    let each = each.map(|(((_, session), found), run)| found.addition(session, run, stages));
    let each = each.collect();
    let (noun, switches) = (joined.noun(), switches.as_ref());
    let about = AllParts { noun, switches, times, each, addition };
    let code = report(request.json, &sessions, &runs, about)?;
    draw(request, &sessions, &joined, &found)?;
    if let Some(asked) = asked {
        tell(&format!("\n{}", asked.life(&told)));
    } else if request.explain.is_some() {
        tell(&format!("\n{}", explained(&sessions, &joined, &found, &wanted)));
    }
    Ok(code)
}

/// Returns the sum of all traces, which is equal whatever the order of the hosts.
fn all_traces(parts: &[Part]) -> u64 {
    parts.iter().fold(0, |sum, part| sum.wrapping_add(part.hash.0))
}

/// Writes the pictures of each part into a folder of its own, if they are wanted.
fn draw(
    request: &SimRequest,
    sessions: &[Named],
    joined: &Joined,
    found: &[Observations],
) -> Result<(), Failure> {
    let Some(folder) = &request.svg else { return Ok(()) };
    let mut parts = sessions.iter().zip(found);
    parts
        .try_for_each(|((name, _), found)| pictures(&folder.join(joined.folder(name)), &found.jobs))
}

/// Refuses options that are about one host or core.
fn refuse(request: &SimRequest, several: &Several, of_hosts: bool) -> Result<(), Failure> {
    let of_one = [
        (request.search.is_some() && request.faults && of_hosts, "--search --faults"),
        (request.witness, "--witness"),
        (request.captures.can_server.is_some(), "--can-server"),
        (request.gdb.is_some(), "--gdb"),
    ];
    several.refuse(&request.system, &of_one)
}

/// The thing to explain: a message of a flow, or a job or message of a part.
struct Question {
    flow: Option<FlowChoice>,
    parts: Vec<Asked>,
}

impl Question {
    /// Reads what is asked of hosts with flows, of hosts without, or of cores. `HOST:` stands
    /// before a job or a pipe of one host.
    fn of(
        request: &SimRequest,
        several: &Several,
        network: Option<Network<'_>>,
    ) -> Result<Question, Failure> {
        let wrong = |text: String| Failure::Input(format!("error: {text}"));
        let systems = several.systems();
        let mut question = Question { flow: None, parts: vec![Asked::default(); systems.len()] };
        let Some(text) = request.explain.as_deref() else { return Ok(question) };
        let flowing = network.filter(|(hosts, _)| !hosts.flows.is_empty());
        let flow = flowing.map(|(hosts, _)| FlowChoice::parse(text, hosts));
        let of_host = text.split_once(':').and_then(|(host, rest)| {
            let part = several.names().position(|name| name == host);
            Some((part.filter(|_| network.is_some())?, rest))
        });
        match (flow, of_host) {
            (Some(Ok(flow)), _) => question.flow = Some(flow),
            (_, Some((part, rest))) => {
                question.parts[part] = explain::wanted(rest, &[systems[part]]).map_err(wrong)?[0];
            }
            (Some(Err(text)), None) => return Err(wrong(text)),
            (None, None) => question.parts = explain::wanted(text, &systems).map_err(wrong)?,
        }
        Ok(question)
    }
}

/// Returns the job or message that was asked for in words: of several cores, that of the one where
/// it took most of its bound.
fn explained(
    sessions: &[Named],
    joined: &Joined,
    observations: &[Observations],
    wanted: &[Asked],
) -> String {
    let each =
        sessions.iter().zip(observations).zip(wanted).filter_map(|((part, found), asked)| {
            let explained = found.explained(*asked)?;
            Some((part, found, explained))
        });
    let worst = each.reduce(|one, two| if two.2.is_worse(one.2) { two } else { one });
    worst.map_or_else(
        || explain::NOTHING.to_owned(),
        |((name, session), found, explained)| {
            let called = |part: Option<usize>| match part {
                Some(part) => observations[part].called(&sessions[part].1.names),
                None => found.called(&session.names),
            };
            let words = explained.render(&session.system, called);
            format!("{}: {words}", joined.called(name))
        },
    )
}

/// Returns the common times in a run. A session is told if that of its host was not measured.
fn seen_times(joined: &Joined, runs: &[FinishedRun], sessions: &mut [Named]) -> Vec<SeenTime> {
    let promised = match joined {
        Joined::By(joints) => &joints.times[..],
        Joined::Cores => &[],
    };
    let times = promised.iter().map(|it| it.seen(runs, |host| joined.world(host)));
    let times: Vec<SeenTime> = times.collect();
    for (host, sentence) in times.iter().filter_map(SeenTime::unmeasured) {
        sessions[host].1.unseen.push(sentence);
    }
    times
}

/// A request, with what it asks of each part.
struct Asks<'a> {
    request: &'a SimRequest,
    /// The job or message to explain.
    wanted: &'a [Asked],
    faults: &'a [Vec<InjectedFault>],
}

/// Runs many seeds, up to the first that breaks a promise.
fn through(
    command: &Asks<'_>,
    sessions: &mut [Named],
    joined: &Joined,
    seeds: Seeds,
) -> Result<u8, Failure> {
    for seed in seeds.each() {
        Searched::Tries(seed).tell();
        let request = &SimRequest { seed: Some(seed), ..command.request.clone() };
        let command = Asks { request, ..*command };
        let seats = (0..sessions.len()).map(|part| seat(&command, sessions, part, ()));
        let seats: Vec<Seat<'_, ()>> = seats.collect();
        let faults: Vec<Vec<InjectedFault>> = seats.iter().map(|it| it.faults.clone()).collect();
        let wishes = sessions
            .iter()
            .map(|(_, session)| Some(request.wishes(&session.system, Asked::default(), None)));
        let Ran { parts, wires } = seated(seats, joined, wishes.collect(), false)?;
        Searched::Trace(seed, all_traces(&parts)).tell();
        let mut runs: Vec<FinishedRun> = parts.into_iter().map(|part| part.run).collect();
        let mut broken = Vec::new();
        for (((name, session), faults), run) in sessions.iter().zip(&faults).zip(&mut runs) {
            let called = joined.called(name);
            broken.extend(finding(session, faults, run).map(|why| format!("{called}: {why}")));
        }
        let report = wires.report(joined, sessions);
        broken.extend(report.iter().flat_map(SwitchReport::findings));
        broken.extend(seen_times(joined, &runs, sessions).iter().flat_map(SeenTime::findings));
        if let Some(why) = broken.into_iter().next() {
            Searched::Broke(seed, why).tell();
            runs.iter().for_each(|run| tell_faults(seed, run));
            return Ok(BROKEN);
        }
    }
    Ok(HOLDS)
}

fn run(
    command: &Asks<'_>,
    sessions: &[Named],
    joined: &Joined,
    follows: bool,
) -> Result<Ran, Failure> {
    let Asks { request, wanted, .. } = *command;
    let sheet = request.trace.as_ref().map(|path| Sheet::create(path)).transpose()?;
    let names: Vec<String> = sessions.iter().map(|(name, _)| joined.called(name)).collect();
    let width = names.iter().map(String::len).max().unwrap_or(0);
    let (mut seats, mut wishes) = (Vec::new(), Vec::new());
    for (index, (name, session)) in sessions.iter().enumerate() {
        let called = &names[index];
        let draw = |sheet: &Sheet| sheet.host(index, called, session.names.clone());
        let perfetto = sheet.as_ref().map(draw);
        let mut wish = request.wishes(&session.system, wanted[index], perfetto);
        wish.captures = wish.captures.within(&joined.folder(name));
        wishes.push(Some(wish));
        let whose = format!("{called:width$} ");
        let live = live_from(whose, request.json, session.names.clone(), session.promises());
        seats.push(seat(command, sessions, index, Hearing(live)));
    }
    let ran = seated(seats, joined, wishes, follows)?;
    sheet.map_or(Ok(()), Sheet::finish)?;
    Ok(ran)
}

/// Returns the seat of a part, with the faults that were asked for and what the seed draws for it.
fn seat<'a, O>(command: &Asks<'_>, sessions: &'a [Named], part: usize, observer: O) -> Seat<'a, O> {
    let (request, (name, session)) = (command.request, &sessions[part]);
    let seed = request.seed.map(|seed| own_seed(name, seed));
    let how = request.options(session, seed);
    let drawn = request.drawn(session, own_seed(name, request.seed.unwrap_or(0)));
    let (drawn, asked) = (Joined::possible(&session.system, drawn), &command.faults[part]);
    let faults = [&session.system.faults[..], asked, &drawn].concat();
    Seat { session, how, faults, observer }
}
