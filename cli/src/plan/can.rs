//! The messages of CAN buses: a table for people, the same for programs.

use crate::duration::human;
use crate::table::{Align, TextTable};
use diapason_abi::Nanos;
use diapason_can::Id;
use diapason_can::mts::Unmet;
use diapason_can::response::Errors;
use diapason_plan::can::{
    CanClocks, CanEpochs, CanHeard, CanName, CanOutcome, CanPlan, CanPromise,
};
use diapason_plan::share;
use diapason_system::{CanMessage, CanNetwork, CanScheduler, CanSender, System};
use serde_json::{Value, json};

/// Parts per million in a per mille.
const PER_MILLE: i64 = 1_000;

/// Returns a table for every bus, the most urgent message first, and what is assumed.
pub fn tables(plans: &[CanPlan], system: &System) -> Vec<String> {
    let all = system.cans.iter().zip(plans);
    all.map(|(network, plan)| of_bus(network, plan)).collect()
}

fn of_bus(network: &CanNetwork, plan: &CanPlan) -> String {
    let mut table = TextTable::new(&[
        ("message", Align::Left),
        ("from", Align::Left),
        ("class", Align::Left),
        ("identifier", Align::Left),
        ("bytes", Align::Right),
        ("period", Align::Right),
        ("jitter", Align::Right),
        ("deadline", Align::Right),
        ("response", Align::Right),
        ("spare", Align::Right),
    ]);
    for index in by_urgency(plan) {
        let (message, promise) = (&network.messages[index], &plan.messages[index]);
        let time = |ns: Option<u64>| ns.map_or("-".to_owned(), human);
        let [response, spare] = outcome(message, &promise.outcome);
        table.row(vec![
            message.name.clone(),
            message.sender.name().to_owned(),
            promise.class.name().to_owned(),
            name(promise),
            format!("{}{}", if message.fd { "FD " } else { "" }, message.bytes),
            time(message.period_ns),
            human(message.jitter_ns),
            time(message.deadline_ns),
            response,
            spare,
        ]);
    }
    let head = format!(
        "CAN bus `{}`: {} bit/s{}, {}, {} of it used at worst\n",
        network.name,
        network.rate,
        data_rate(network),
        network.scheduler.name(),
        share(plan.load_ppm),
    );
    let clocks = plan.clocks.as_ref().map(|clocks| follows(network, clocks)).unwrap_or_default();
    let epochs = epochs(network, plan.epochs.as_ref());
    let ends = heard(network, plan);
    head + &table.render() + &epochs + &clocks + &queued(plan) + &ends + &assumed(network, plan)
}

/// Returns a table of the messages that processes of this host read from a controller.
fn heard(network: &CanNetwork, plan: &CanPlan) -> String {
    let mut table = TextTable::new(&[
        ("read here", Align::Left),
        ("by", Align::Left),
        ("after its frame", Align::Right),
        ("done within", Align::Right),
        ("next frame after", Align::Right),
    ]);
    for (place, found) in &plan.heard {
        let message = &network.messages[*place];
        let times = found.as_ref().ok().map(|it| [it.told, it.done, it.apart]);
        let time = |number: usize| times.map_or("NONE".to_owned(), |times| human(times[number].0));
        let reader = message.reader.clone().unwrap_or_default();
        table.row(vec![message.name.clone(), reader, time(0), time(1), time(2)]);
    }
    table.render()
}

/// Returns the rate of the data of CAN FD, if there is some.
fn data_rate(network: &CanNetwork) -> String {
    match network.messages.iter().any(|message| message.fd) {
        true => format!(" and {} bit/s for the data of CAN FD", network.data_rate),
        false => String::new(),
    }
}

/// Returns the numbers of the messages, in the order in which they go first.
fn by_urgency(plan: &CanPlan) -> Vec<usize> {
    let mut order: Vec<usize> = (0..plan.messages.len()).collect();
    order.sort_by_key(|index| match plan.messages[*index].name {
        Some(CanName::Code(code)) => (0, u32::from(code), None),
        Some(CanName::Fixed(id)) => (1, 0, Some(id)),
        None => (2, 0, None),
    });
    order
}

fn name(promise: &CanPromise) -> String {
    match promise.name {
        Some(CanName::Fixed(id)) => identifier(id),
        Some(CanName::Code(code)) => format!("code {code}"),
        None => "-".to_owned(),
    }
}

/// Returns an identifier as candump writes it.
fn identifier(id: Id) -> String {
    match id {
        Id::Standard(id) => format!("{:03X}", id.as_raw()),
        Id::Extended(id) => format!("{:08X}", id.as_raw()),
    }
}

/// Returns the longest response and what is left of the deadline. Of a message that is begun by its
/// start-by time the response is its deadline, and what is left is said of its tightest window.
fn outcome(message: &CanMessage, outcome: &CanOutcome) -> [String; 2] {
    let none = || "-".to_owned();
    match outcome {
        CanOutcome::Response(response) => {
            let deadline = message.deadline_ns.unwrap_or(response.0);
            [human(response.0), human(deadline - response.0)]
        }
        CanOutcome::StartBy(tightest) => {
            ["by deadline".to_owned(), human((tightest.window - tightest.work).0)]
        }
        CanOutcome::Unmet(Unmet::Response { response, .. }) => {
            [human(response.0), "NONE".to_owned()]
        }
        CanOutcome::Unmet(_) | CanOutcome::Unbounded(_) => [none(), "NONE".to_owned()],
        CanOutcome::NotDue => [none(), none()],
    }
}

fn epochs(network: &CanNetwork, epochs: Option<&CanEpochs>) -> String {
    let Some(epochs) = epochs else { return String::new() };
    let time = |time: Nanos| human(time.0);
    let mut text = format!(
        "epochs of {}{}: deadlines less than {} apart may not be told apart, identifiers are \
         renewed within {}, {}\n",
        time(epochs.epochs.epoch()),
        if epochs.given { "" } else { ", the best length" },
        time(epochs.epochs.region()),
        time(epochs.renewal),
        match network.renewal_ns {
            Some(_) => format!("by clocks, and so {} go in any order", time(epochs.cost)),
            None => format!("after a signal, which takes {}", time(epochs.cost)),
        }
    );
    if let (true, Some((best, spare))) = (epochs.given, epochs.best) {
        let now = epochs.spare_ppm.map_or("-".to_owned(), of_deadline);
        text += &format!(
            "best epoch: {} leaves at least {} of each deadline, this one {now}\n",
            time(best),
            of_deadline(spare),
        );
    }
    text
}

fn of_deadline(ppm: i64) -> String {
    let permille = ppm.div_euclid(PER_MILLE);
    let sign = if permille < 0 { "-" } else { "" };
    let permille = permille.unsigned_abs();
    format!("{sign}{}.{} %", permille / 10, permille % 10)
}

/// Returns how long messages of this host wait for the driver of their controller.
fn queued(plan: &CanPlan) -> String {
    let Some(Ok(queued)) = &plan.queued else { return String::new() };
    format!(
        "messages of this host are in the queue of their controller at most {} after their program \
         woke its driver\n",
        human(queued.0)
    )
}

/// Returns what follows for the clocks of a bus from the message that carries the time.
fn follows(network: &CanNetwork, clocks: &CanClocks) -> String {
    let Some(message) = network.time.and_then(|time| network.messages.get(time.message)) else {
        return String::new();
    };
    let (name, sender) = (&message.name, message.sender.name());
    let Some(terms) = &clocks.time else {
        return format!(
            "nothing bounds the clocks: no bound of `{name}`, which carries the time, is in time\n"
        );
    };
    let time = |time: Nanos| human(time.0);
    let (interval, late) = (time(terms.base().interval), time(terms.base().late));
    format!(
        "clocks are at most {} off, {} counted: `{sender}` sends `{name}` each {interval} by its \
         clock, which is through within {late}, and a node knows the time for {} after a frame\n",
        time(terms.clocks()),
        time(clocks.counted),
        time(terms.valid()),
    )
}

fn assumed(network: &CanNetwork, plan: &CanPlan) -> String {
    let Errors { burst, interval } = network.errors;
    let mut text = match burst {
        0 => "assumed: no frame is destroyed; ".to_owned(),
        _ => format!(
            "assumed: frames are destroyed at most {burst} at once, and one more each {}; ",
            human(interval.0)
        ),
    };
    text += match network.in_order.as_slice() {
        [] => "each node sends its most urgent message first\n",
        _ => "each other node sends its most urgent message first\n",
    };
    if !network.in_order.is_empty() {
        text += &format!("in the order of requests: {}\n", network.in_order.join(", "));
    }
    let own = |(message, _): &(&CanMessage, _)| matches!(message.sender, CanSender::Process(_));
    let unbounded =
        network.messages.iter().zip(&plan.told).filter(own).any(|(_, told)| told.is_none());
    let sent = network.messages.iter().zip(&plan.told).filter(own).count();
    let refills = network.controller.is_some_and(|it| sent > it.own.into());
    let measured = [
        (
            unbounded,
            "programs without a `job` wake the driver early enough for the `jitter` of their \
             messages",
        ),
        (refills, "the driver refills the buffers in time"),
    ];
    let measured: Vec<&str> =
        measured.into_iter().filter_map(|(is_so, what)| is_so.then_some(what)).collect();
    if network.controller.is_some() && !measured.is_empty() {
        text += &format!("measured in a run: {}\n", measured.join(", and "));
    }
    if network.scheduler == CanScheduler::Mts {
        text += &format!(
            "assumed: {}, and each node renews its identifiers {}\n",
            assumed_clocks(network),
            match network.renewal_ns {
                Some(within) => format!("within {} after its clock says so", human(within)),
                None => "as `docs/can.md` says".to_owned(),
            }
        );
    }
    text
}

/// Returns what is assumed of the clocks of a bus under MTS.
fn assumed_clocks(network: &CanNetwork) -> String {
    let Some(time) = network.time else {
        return format!("no clock is more than {} off", human(network.clocks_ns.unwrap_or(0)));
    };
    format!(
        "each node reads its clock at most {} after a frame of the time, in steps of at most {}; \
         no clock drifts by more than {} ppm; of such frames no node loses more than {} in a row",
        human(time.read_ns),
        human(time.step_ns),
        time.drift_ppm,
        time.losses
    )
}

/// Returns every bus as an object for programs.
pub fn to_json(plans: &[CanPlan], system: &System) -> Vec<Value> {
    let all = system.cans.iter().zip(plans);
    let bus = |(network, plan): (&CanNetwork, &CanPlan)| {
        let messages = network.messages.iter().zip(&plan.messages);
        json!({
            "bus": network.name,
            "rate": network.rate,
            "data_rate": network.data_rate,
            "scheduler": network.scheduler.name(),
            "load_ppm": plan.load_ppm,
            "queued_ns": plan.queued.as_ref().and_then(|found| Some(found.as_ref().ok()?.0)),
            "epoch": plan.epochs.as_ref().map(|epochs| json!({
                "ns": epochs.epochs.epoch().0,
                "region_ns": epochs.epochs.region().0,
                "renewal_ns": epochs.renewal.0,
                "by_clock": network.renewal_ns.is_some(),
                "renewal_cost_ns": epochs.cost.0,
                "spare_ppm": epochs.spare_ppm,
                "best_ns": epochs.best.map(|(best, _)| best.0),
                "best_spare_ppm": epochs.best.map(|(_, spare)| spare),
            })),
            "clocks": plan.clocks.as_ref().map(|clocks| of_clocks(network, clocks)),
            "messages": messages.map(message).collect::<Vec<Value>>(),
            "heard": plan.heard.iter().map(|it| of_heard(network, it)).collect::<Vec<Value>>(),
        })
    };
    all.map(bus).collect()
}

fn of_heard(
    network: &CanNetwork,
    (place, found): &(usize, Result<CanHeard, [String; 2]>),
) -> Value {
    let (message, found) = (&network.messages[*place], found.as_ref().ok());
    json!({
        "message": message.name,
        "reader": message.reader,
        "told_ns": found.map(|it| it.told.0),
        "done_ns": found.map(|it| it.done.0),
        "apart_ns": found.map(|it| it.apart.0),
    })
}

fn of_clocks(network: &CanNetwork, clocks: &CanClocks) -> Value {
    let carrier = network.time.and_then(|time| network.messages.get(time.message));
    json!({
        "counted_ns": clocks.counted.0,
        "message": carrier.map(|message| &message.name),
        "time": clocks.time.as_ref().map(|terms| json!({
            "interval_ns": terms.base().interval.0,
            "late_ns": terms.base().late.0,
            "clocks_ns": terms.clocks().0,
            "valid_ns": terms.valid().0,
            "silence_ns": terms.silence().0,
        })),
    })
}

fn message((message, promise): (&CanMessage, &CanPromise)) -> Value {
    let (id, code) = match promise.name {
        Some(CanName::Fixed(Id::Standard(id))) => (Some(u32::from(id.as_raw())), None),
        Some(CanName::Fixed(Id::Extended(id))) => (Some(id.as_raw()), None),
        Some(CanName::Code(code)) => (None, Some(code)),
        None => (None, None),
    };
    let (response, spare) = match &promise.outcome {
        CanOutcome::Response(response) => {
            let spare = message.deadline_ns.map(|deadline| deadline - response.0);
            (Some(response.0), spare)
        }
        CanOutcome::StartBy(tightest) => {
            (message.deadline_ns, Some((tightest.window - tightest.work).0))
        }
        CanOutcome::Unmet(Unmet::Response { response, .. }) => (Some(response.0), None),
        _ => (None, None),
    };
    let holds = match &promise.outcome {
        CanOutcome::NotDue => None,
        CanOutcome::Response(_) | CanOutcome::StartBy(_) => Some(true),
        CanOutcome::Unmet(_) | CanOutcome::Unbounded(_) => Some(false),
    };
    json!({
        "message": message.name,
        "from": message.sender.name(),
        "from_process": matches!(message.sender, CanSender::Process(_)),
        "class": promise.class.name(),
        "id": id,
        "extended": matches!(promise.name, Some(CanName::Fixed(Id::Extended(_)))),
        "code": code,
        "bits": promise.bits,
        "fd": message.fd,
        "period_ns": message.period_ns,
        "deadline_ns": message.deadline_ns,
        "response_ns": response,
        "spare_ns": spare,
        "holds": holds,
    })
}
