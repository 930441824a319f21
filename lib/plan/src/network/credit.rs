//! Credit at ports of switches and at adapters: the limits between which it stays, and credit that
//! holds back nothing.

use super::ethernet::Ethernet;
use super::wired::link;
use diapason_system::{ClassCredit, Diagnostics, Hosts, HostsPlace, WireEnd};
use diapason_tsn::{CreditSpan, LinkRate, Shaping};

/// A priority that is shaped by credit at the end of a wire.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PlannedCredit {
    pub end: WireEnd,
    /// The number of the credit in its switch, or among those of its wire.
    pub number: usize,
    pub credit: ClassCredit,
    /// The rate of the wire at the end.
    pub rate: LinkRate,
    /// Frames of the priority leave by the end.
    pub is_used: bool,
    /// The limits of the credit, as long as all flows keep to their contracts. `None`: what is
    /// above is not bounded.
    pub span: Option<CreditSpan>,
}

impl PlannedCredit {
    /// Returns the rate at which the credit falls while a frame is sent, in kbit/s.
    #[must_use]
    pub const fn send_kbit(&self) -> u64 {
        self.rate.bits_per_second() / 1_000 - self.credit.idle_kbit
    }
}

/// Returns all credit of a list: that of switches first, each in the order of its description.
fn all(hosts: &Hosts) -> impl Iterator<Item = (WireEnd, usize, ClassCredit)> {
    let switches = hosts.switches.iter().enumerate().flat_map(|(switch, it)| {
        let credits = it.credits.iter().enumerate();
        let end = move |port: usize| WireEnd::Port { switch, port };
        credits.map(move |(number, (port, credit))| (end(*port), number, *credit))
    });
    let adapters = hosts.ethernet.iter().flat_map(|it| &it.gates).flat_map(|gates| {
        gates.credits.iter().map(|(number, credit)| (gates.end, *number, *credit))
    });
    switches.chain(adapters)
}

/// Returns whether a list has credit somewhere.
pub(super) fn has_credit(hosts: &Hosts) -> bool {
    all(hosts).next().is_some()
}

impl Ethernet<'_> {
    /// Returns all credit. `settled`: the delays of flows follow from each other.
    pub(super) fn credits(&self, settled: bool) -> Vec<PlannedCredit> {
        all(self.hosts).map(|it| self.credited(it, settled)).collect()
    }

    fn credited(
        &self,
        (end, number, credit): (WireEnd, usize, ClassCredit),
        settled: bool,
    ) -> PlannedCredit {
        let class = usize::from(credit.priority);
        let mbit = link(self.hosts, end).map_or(1_000, |link| link.speed);
        let (_, shaping) = self.shaped(end);
        let strangers = || self.strangers.iter().filter(|it| it.ways.contains(&end));
        let is_free =
            strangers().any(|it| it.class > class && shaping[it.class] == Shaping::Strict);
        let flow = self.leaving(end).next().filter(|_| settled && !is_free);
        let span = flow.and_then(|(_, flow)| self.with_model(flow, end, |it| it.credit(class)));
        let is_used = self.leaving(end).any(|(_, it)| it.class == class)
            || strangers().any(|it| it.class == class);
        let rate = LinkRate::new(mbit * 1_000_000);
        let span = span.and_then(Result::ok).flatten();
        PlannedCredit { end, number, credit, rate, is_used, span }
    }
}

/// Returns the problems of credit, each of which is a refusal of the list.
pub(super) fn refusals<'a>(
    hosts: &'a Hosts,
    credits: &'a [PlannedCredit],
) -> impl Iterator<Item = Diagnostics> + 'a {
    credits.iter().filter(|it| !it.is_used).map(|it| {
        let PlannedCredit { end, number, credit, .. } = *it;
        let title =
            format!("no frames of priority {} leave `{}`", credit.priority, end.name(hosts));
        let help = "write the priority of a `[[socket]]` whose frames do, or remove the credit";
        let place = match end {
            WireEnd::Port { switch, .. } => HostsPlace::Credit { switch, number },
            WireEnd::Adapter { .. } => {
                let link = hosts.ethernet.iter().position(|it| it.ends.contains(&end));
                HostsPlace::WireCredit { link: link.unwrap_or(0), number }
            }
        };
        hosts.problem(place, [&title, "", help])
    })
}
