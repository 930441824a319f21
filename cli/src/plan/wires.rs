//! The wires between adapters and switches, the credit of ports, and the common times of hosts, as
//! tables and as JSON.

use crate::table::{Align, TextTable};
use diapason_abi::Nanos;
use diapason_plan::{CommonTime, NetworkPlan, PlannedCredit};
use diapason_system::{EthernetLink, Hosts};
use serde_json::{Value, json};

/// Returns the table of wires; nothing without wires.
pub(super) fn render(hosts: &Hosts) -> String {
    let mut table = TextTable::new(&[
        ("wire", Align::Left),
        ("from", Align::Left),
        ("to", Align::Left),
        ("Mbit/s", Align::Right),
        ("delay", Align::Right),
    ]);
    for link in &hosts.ethernet {
        let [from, to] = link.ends.map(|end| end.name(hosts));
        let delay = Nanos(link.delay_ns).to_string();
        table.row(vec![link.name.clone(), from, to, link.speed.to_string(), delay]);
    }
    if hosts.ethernet.is_empty() { String::new() } else { table.render() }
}

/// Returns the table of credit at ports and adapters; nothing without any.
pub(super) fn render_credits(network: &NetworkPlan, hosts: &Hosts) -> String {
    let right = |name| (name, Align::Right);
    let mut table = TextTable::new(&[
        ("credit", Align::Left),
        right("priority"),
        right("idle slope"),
        right("send slope"),
        right("lo credit"),
        right("hi credit"),
    ]);
    for it in &network.credits {
        let slopes = [it.credit.idle_kbit.to_string(), format!("-{}", it.send_kbit())];
        let named = vec![it.end.name(hosts), it.credit.priority.to_string()];
        table.row([named, slopes.to_vec(), credit_limits(it).to_vec()].concat());
    }
    if network.credits.is_empty() { String::new() } else { table.render() }
}

/// Returns the lowest and the highest credit that are planned.
pub(crate) fn credit_limits(planned: &PlannedCredit) -> [String; 2] {
    let limits = planned.span.map(|it| [it.least, it.most].map(|it| it.to_string()));
    limits.unwrap_or_else(|| [(); 2].map(|()| "NONE".to_owned()))
}

/// Returns all credit as JSON objects: slopes in kbit/s, limits in bytes.
pub(super) fn credits_to_json(network: &NetworkPlan, hosts: &Hosts) -> Vec<Value> {
    let object = |it: &PlannedCredit| {
        json!({
            "port": it.end.name(hosts),
            "priority": it.credit.priority,
            "idle_slope": it.credit.idle_kbit,
            "send_slope": -i64::try_from(it.send_kbit()).unwrap_or(i64::MAX),
            "lo_credit": it.span.map(|it| it.least),
            "hi_credit": it.span.map(|it| it.most),
        })
    };
    network.credits.iter().map(object).collect()
}

/// Returns the table of common times; nothing without one.
pub(super) fn render_times(network: &NetworkPlan, hosts: &Hosts) -> String {
    let mut table = TextTable::new(&[
        ("common time", Align::Left),
        ("leads", Align::Left),
        ("follows", Align::Left),
        ("apart", Align::Right),
        ("known after", Align::Right),
        ("known for", Align::Right),
    ]);
    for it in &network.times {
        let [leads, follows] = roles(it, hosts);
        let terms = it.terms.as_ref().ok().map(|terms| &terms.sync);
        let shown = |time: Option<Nanos>| time.map_or("NONE".to_owned(), |time| time.to_string());
        let times = terms.map(|it| [it.error(), it.learnt(), it.valid()].map(Some));
        let [apart, learnt, valid] = times.unwrap_or_default().map(shown);
        let wire = hosts.ethernet[it.wire].name.clone();
        table.row(vec![wire, leads, follows, apart, learnt, valid]);
    }
    if network.times.is_empty() {
        return String::new();
    }
    table.render() + &network.times.iter().map(|it| closed(it, hosts)).collect::<String>()
}

/// Returns from when on flows through gates are promised that go by a common time.
fn closed(it: &CommonTime, hosts: &Hosts) -> String {
    let Ok(terms) = &it.terms else { return String::new() };
    let learnt = terms.sync.learnt();
    let sentence = |end: String| {
        format!(
            "the gates at {end} are closed until its host knows the time: messages are lost for up \
             to {learnt}, and from then on flows through them are promised\n"
        )
    };
    gated(it, hosts).into_iter().map(sentence).collect()
}

/// Returns the adapters whose gates go by a common time.
fn gated(it: &CommonTime, hosts: &Hosts) -> Vec<String> {
    hosts.ethernet[it.wire].gates.iter().map(|gates| gates.end.name(hosts)).collect()
}

/// Returns the adapter whose host leads a common time, and the one whose host follows.
fn roles(it: &CommonTime, hosts: &Hosts) -> [String; 2] {
    let wire = &hosts.ethernet[it.wire];
    let [one, other] = wire.ends;
    let leads = wire.time.map_or(one, |time| time.leads);
    let follows = if leads == one { other } else { one };
    [leads, follows].map(|end| end.name(hosts))
}

/// Returns the common times as JSON objects.
pub(super) fn times_to_json(network: &NetworkPlan, hosts: &Hosts) -> Vec<Value> {
    let object = |it: &CommonTime| {
        let [leads, follows] = roles(it, hosts);
        let terms = it.terms.as_ref().ok().map(|terms| &terms.sync);
        json!({
            "wire": hosts.ethernet[it.wire].name,
            "leads": leads,
            "follows": follows,
            "apart_ns": terms.map(|it| it.error().0),
            "learnt_ns": terms.map(|it| it.learnt().0),
            "gates": gated(it, hosts),
            "valid_ns": terms.map(|it| it.valid().0),
        })
    };
    network.times.iter().map(object).collect()
}

/// Returns the wires as JSON objects.
pub(super) fn to_json(hosts: &Hosts) -> Vec<Value> {
    let object = |link: &EthernetLink| {
        json!({
            "wire": link.name,
            "ends": link.ends.map(|end| end.name(hosts)),
            "mbit": link.speed,
            "delay_ns": link.delay_ns,
        })
    };
    hosts.ethernet.iter().map(object).collect()
}
