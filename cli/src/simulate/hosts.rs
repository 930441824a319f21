//! Several hosts in one simulation with the cables between them, or the cores of one.

use super::cables::{Controllers, plug_all, targets};
use super::ethernet;
use super::flows::{self, FlowChoice, LinkEars, LinkLogs};
use super::messages::{self, Messages};
use super::perfetto::Sheet;
use super::simulation::{Hearing, Simulated, how_it_ended, simulated, usual, with_upsets};
use super::switches::SwitchReport;
use super::watch::Watch;
use super::{Listener, SeenTime, SimRequest};
use crate::capture::CaptureRequest;
use crate::commands::Addition;
use crate::failure::Failure;
use crate::interrupt;
use crate::live::live_from;
use crate::outcome::NetworkRow;
use crate::output::{note, tell};
use crate::plan::NetworkPlan;
use crate::qemu::MachineEnding;
use crate::session::{FinishedRun, Session};
use crate::several::{AllParts, Named, Several, report};
pub use crate::several::{Joined, Joints};
use crate::surroundings::{self, Functions, as_functions, simulable};
use crate::workspace::Workspace;
use diapason_abi::{Key, Nanos};
use diapason_sim::{EthernetBooks, EthernetNetwork, GatedBooks, Observer, Options, Trace};
use diapason_system::{Hosts, InjectedFault, RunOptions, System};

/// How far hosts that nothing joins may be apart, so that what they say comes about in order.
const UNJOINED: Nanos = Nanos::from_millis(1);

/// A host that takes part.
pub struct Seat<'a, O> {
    /// The session that it boots.
    pub session: &'a Session,
    /// The options of the host's simulation.
    pub how: Options,
    /// The faults around it.
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
    seated(seats, joined, false)
}

/// Runs hosts or cores as they are described, each with its observer, and follows every message of
/// their pipes.
///
/// # Errors
/// If they cannot be run at all.
pub(crate) fn followed<O: Observer>(
    sessions: &[Named],
    joined: &Joined,
    seed: Option<u64>,
    observers: impl Iterator<Item = O>,
) -> Result<Vec<Simulated>, Failure> {
    let seats = sessions.iter().zip(observers).map(|((name, session), observer)| {
        let how = usual(session, seed.map(|seed| own_seed(name, seed)));
        let faults = session.system.faults.clone();
        let how = with_upsets(session, &how, &faults);
        Seat { session, how, faults, observer }
    });
    seated(seats.collect(), joined, true)
}

/// Returns the seed of a host: every host draws for itself, whatever its place.
fn own_seed(name: &str, seed: u64) -> u64 {
    seed ^ Key::new(name).0
}

fn seated<O: Observer>(
    seats: Vec<Seat<'_, O>>,
    joined: &Joined,
    follows: bool,
) -> Result<Vec<Simulated>, Failure> {
    let systems: Vec<&System> = seats.iter().map(|seat| &seat.session.system).collect();
    let around = around(joined, &systems)?;
    let mut listeners: Vec<Listener> = Vec::new();
    listeners.resize_with(seats.len(), Listener::default);
    let mut ears = ears(&systems, joined);
    let mut wired = Vec::new();
    let heard = listeners.iter_mut().zip(&mut ears);
    for ((host, seat), (listener, ears)) in seats.into_iter().enumerate().zip(heard) {
        wired.push(if follows {
            Wired::followed(host, seat, &around, listener)?.linked(ears, true)
        } else {
            Wired::new(host, seat, &around).heard_by(listener).linked(ears, false)
        });
    }
    let endings = drive_together(wired, joined)?;
    let of_one = |(((ending, listener), ears), system): (((_, Listener), LinkEars), &System)| {
        let Listener { mut outcome, hash, watch, mut messages, now, .. } = listener;
        watch.map_or(Ok(Vec::new()), |watch| watch.finish(now, None, messages.as_mut()))?;
        NetworkRow::call_all(&mut outcome.network, &system.neighbours);
        outcome.truth = messages.as_ref().map(|it| it.truth(now)).unwrap_or_default();
        let lives = messages.map(Messages::lives).unwrap_or_default();
        let (run, links) = (simulated(ending, outcome), ears.into_logs());
        Ok(Simulated { run, hash: hash.0, lives, links, gated: Vec::new() })
    };
    let ran = endings.into_iter().zip(listeners).zip(ears).zip(systems).map(of_one);
    let mut ran = ran.collect::<Result<Vec<Simulated>, Failure>>()?;
    for books in around.network.gated() {
        ran[ethernet::place(books.card).0].gated.push(books);
    }
    Ok(ran)
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
    fn cards(&self, host: usize, system: &System, faults: &[InjectedFault]) -> Functions {
        let wire = |device| {
            let wire = self.network.wire(ethernet::card(host, device))?;
            Some(wire.seen_by(self.joined.world(host)))
        };
        surroundings::cards(system, faults, wire)
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
    fn new(host: usize, seat: Seat<'a, O>, around: &Around<'_>) -> Wired<'a, O> {
        let Seat { session, how, faults, observer } = seat;
        let targets = targets(host, around.joined.cables());
        let controllers = surroundings::controllers(&session.system, &faults, &targets);
        let cards = around.cards(host, &session.system, &faults);
        Wired { session, how, controllers, cards, observer }
    }

    /// Lets a listener hear it, too.
    fn heard_by(self, listener: &mut Listener) -> Wired<'a, (&mut Listener, O)> {
        let Wired { session, how, controllers, cards, observer } = self;
        Wired { session, how, controllers, cards, observer: (listener, observer) }
    }

    /// Gives the host ears, which hear what passes its links if that is wanted.
    fn linked(self, ears: &mut LinkEars, follows: bool) -> Wired<'a, (&mut LinkEars, O)> {
        let Wired { session, mut how, controllers, cards, observer } = self;
        if follows {
            ears.listen(&mut how.watched);
        }
        Wired { session, how, controllers, cards, observer: (ears, observer) }
    }

    /// Returns a host whose messages a listener follows.
    fn followed<'l>(
        host: usize,
        seat: Seat<'a, O>,
        around: &Around<'_>,
        listener: &'l mut Listener,
    ) -> Result<Wired<'a, (&'l mut Listener, O)>, Failure> {
        let Seat { session, mut how, faults, observer } = seat;
        let targets = targets(host, around.joined.cables());
        let (controllers, sights) =
            surroundings::controllers_in_sight(&session.system, &faults, &targets, true);
        let cards = around.cards(host, &session.system, &faults);
        let seen = messages::Around { plan: &session.plan, sights: &sights, faults: &faults };
        let messages = Messages::new(&seen, None);
        how.watched = messages.watched();
        listener.messages = Some(messages);
        let nothing = CaptureRequest::default();
        listener.watch = Some(Watch::begin(sights, &nothing, &session.names)?);
        Ok(Wired { session, how, controllers, cards, observer: (listener, observer) })
    }
}

fn drive_together<O: Observer>(
    hosts: Vec<Wired<'_, O>>,
    joined: &Joined,
) -> Result<Vec<MachineEnding>, Failure> {
    hosts.iter().try_for_each(|host| simulable(&host.session.system))?;
    let sessions: Vec<&Session> = hosts.iter().map(|host| host.session).collect();
    let (mut controllers, parts): (Vec<Controllers>, Vec<_>) = hosts
        .into_iter()
        .map(|host| (host.controllers, (host.session, host.how, host.cards, host.observer)))
        .unzip();
    plug_all(joined, &mut controllers)?;
    let delay = notice(joined);
    let hosts = parts.into_iter().zip(controllers).enumerate();
    let hosts = hosts.map(|(host, ((session, options, cards, observer), own))| {
        let options = Options { world: joined.world(host), ..options };
        let (archive, mut functions) = (&session.archive, as_functions(own));
        functions.extend(cards);
        diapason_sim::SimulatedHost { archive, options, functions, observer }
    });
    let ended = match joined {
        Joined::By(_) => diapason_sim::run_together(hosts.collect(), delay),
        Joined::Cores => diapason_sim::run_cores(hosts.collect()),
    };
    let ended = ended.map_err(|error| Failure::Ours(error.to_string()))?;
    sessions.into_iter().zip(ended).map(|(session, ended)| how_it_ended(session, ended)).collect()
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
    let of_one = [
        (request.explain.is_some() && flowing.is_none(), "--explain"),
        (request.stages && flowing.is_none(), "--stages"),
        (request.search.is_some(), "--search"),
        (!request.fault.is_empty() && network.is_none(), "--fault"),
        (request.seeds.is_some(), "--seeds"),
        (request.captures.pcap.is_some(), "--pcap"),
        (request.captures.candump.is_some(), "--candump"),
        (request.captures.asc.is_some(), "--asc"),
        (request.captures.blf.is_some(), "--blf"),
        (request.captures.can_server.is_some(), "--can-server"),
        (request.histogram, "--histogram"),
        (request.svg.is_some(), "--svg"),
        (request.gdb.is_some(), "--gdb"),
    ];
    several.refuse(&request.system, &of_one)?;
    let asked = request.explain.as_deref().zip(flowing);
    let asked = asked.map(|(text, (hosts, _))| FlowChoice::parse(text, hosts)).transpose();
    let asked = asked.map_err(|text| Failure::Input(format!("error: {text}")))?;
    note(super::TRUST);
    let options =
        RunOptions { horizon_ns: request.length.horizon_ns, record_bytes: 0, watch: false };
    let unproved = request.length.unproved();
    let (mut sessions, joined) =
        several.assemble(&Workspace::find()?, &request.system, options, unproved)?;
    interrupt::await_signals()?;
    let breaks = sessions.iter().any(|(_, session)| !session.system.faults.is_empty());
    let pulls = matches!(&joined, Joined::By(joints) if joints.pulls()) || breaks || request.faults;
    let follows = request.stages || asked.is_some() || pulls && flowing.is_some();
    let Ran { runs, traces, links, books, gated, lost } =
        run(request, &sessions, &joined, follows)?;
    for ((name, _), trace) in sessions.iter().zip(&traces) {
        let name = joined.called(name);
        tell(&format!("trace {:016x} of {name}", trace.0));
    }
    // A sum: equal whatever the order of the hosts.
    let all = traces.iter().fold(0u64, |sum, trace| sum.wrapping_add(trace.0));
    tell(&format!("trace {all:016x} of all"));
    let links: Vec<&LinkLogs> = links.iter().collect();
    let told = flowing.map(|(hosts, network)| flows::told(hosts, network, &links, asked));
    let told = told.unwrap_or_default();
    let addition = match () {
        () if request.stages => flows::addition(&told),
        () if pulls => flows::books(&told),
        () => Addition::default(),
    };
    let switches = match &joined {
        Joined::By(joints) if !joints.ethernet.is_empty() => {
            Some(SwitchReport::of(joints, &books, &lost).with_gates(&gated))
        }
        _ => None,
    };
    let times = seen_times(&joined, &runs, &mut sessions);
    let about = AllParts { noun: joined.noun(), switches: switches.as_ref(), times, addition };
    let code = report(request.json, &sessions, &runs, &about)?;
    if let Some(asked) = asked {
        tell(&format!("\n{}", asked.life(&told)));
    }
    Ok(code)
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

/// The results of several hosts or cores.
struct Ran {
    runs: Vec<FinishedRun>,
    traces: Vec<Trace>,
    /// The messages at the links of each, if they were followed.
    links: Vec<LinkLogs>,
    books: EthernetBooks,
    /// The frames that adapters with gates sent, each with its name.
    gated: Vec<(String, GatedBooks)>,
    /// Frames that were lost in each wire.
    lost: Vec<u64>,
}

/// Returns how an adapter that a network knows by this number is called.
fn adapter_name(card: usize, names: &[String], systems: &[&System]) -> String {
    let (host, device) = ethernet::place(card);
    format!("{}:{}", names[host], systems[host].devices[device].name)
}

fn run(
    request: &SimRequest,
    sessions: &[Named],
    joined: &Joined,
    follows: bool,
) -> Result<Ran, Failure> {
    let sheet = request.trace.as_ref().map(|path| Sheet::create(path)).transpose()?;
    let names: Vec<String> = sessions.iter().map(|(name, _)| joined.called(name)).collect();
    let width = names.iter().map(String::len).max().unwrap_or(0);
    let listener = |(index, (name, (_, session))): (usize, (&String, &Named))| {
        let whose = format!("{name:width$} ");
        let live = live_from(whose, request.json, session.names.clone(), session.promises());
        let draw = |sheet: &Sheet| sheet.host(index, name, session.names.clone());
        let perfetto = sheet.as_ref().map(draw);
        (Listener { perfetto, ..Listener::default() }, Hearing(live))
    };
    let mut listeners: Vec<_> = names.iter().zip(sessions).enumerate().map(listener).collect();
    let seats = sessions.iter().zip(&mut listeners).map(|((name, session), observer)| {
        let seed = |seed: u64| own_seed(name, seed);
        let how = request.options(session, request.seed.map(seed));
        let drawn = request.drawn(session, seed(request.seed.unwrap_or(0)));
        let faults = [&session.system.faults[..], &joined.possible(drawn)].concat();
        // A host of several that loses its power stays off.
        let how = with_upsets(session, &how, &faults);
        Seat { session, how, faults, observer }
    });
    let systems: Vec<&System> = sessions.iter().map(|(_, session)| &session.system).collect();
    let around = around(joined, &systems)?;
    let mut ears = ears(&systems, joined);
    let wired = seats
        .zip(&mut ears)
        .enumerate()
        .map(|(host, (seat, ears))| Wired::new(host, seat, &around).linked(ears, follows));
    let endings = drive_together(wired.collect(), joined)?;
    let (mut runs, mut traces) = (Vec::new(), Vec::new());
    for ((ending, (listener, _)), (_, session)) in endings.into_iter().zip(listeners).zip(sessions)
    {
        let Listener { mut outcome, hash, perfetto, cast, .. } = listener;
        NetworkRow::call_all(&mut outcome.network, &session.system.neighbours);
        perfetto.into_iter().for_each(|perfetto| perfetto.close(&cast));
        runs.push(simulated(ending, outcome));
        traces.push(hash);
    }
    sheet.map_or(Ok(()), Sheet::finish)?;
    let links = ears.into_iter().map(LinkEars::into_logs).collect();
    let (books, lost) = (around.network.books(), around.network.lost());
    let gated = around.network.gated().into_iter();
    let gated = gated.map(|it| (adapter_name(it.card, &names, &systems), it)).collect();
    Ok(Ran { runs, traces, links, books, gated, lost })
}
