//! Credit at ports of switches: the limits between which it stays, and credit that holds back
//! nothing.

use super::ethernet::Ethernet;
use super::wired::link;
use diapason_system::{Diagnostics, Hosts, HostsPlace, PortCredit, WireEnd};
use diapason_tsn::{CreditSpan, LinkRate, Shaping};

/// A priority that a port of a switch shapes by credit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PlannedCredit {
    /// The number of the switch.
    pub switch: usize,
    /// The number of the credit in its switch.
    pub number: usize,
    pub credit: PortCredit,
    /// The rate of the wire at the port.
    pub rate: LinkRate,
    /// Frames of the priority leave by the port.
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

impl Ethernet<'_> {
    /// Returns the credit of all ports. `settled`: the delays of flows follow from each other.
    pub(super) fn credits(&self, settled: bool) -> Vec<PlannedCredit> {
        let switches = self.hosts.switches.iter().enumerate();
        let each = switches.flat_map(|(number, switch)| {
            let credits = switch.credits.iter().enumerate();
            credits.map(move |(place, credit)| (number, place, *credit))
        });
        each.map(|(switch, number, credit)| self.credited(switch, (number, credit), settled))
            .collect()
    }

    fn credited(
        &self,
        switch: usize,
        (number, credit): (usize, PortCredit),
        settled: bool,
    ) -> PlannedCredit {
        let PortCredit { port, priority, .. } = credit;
        let (end, class) = (WireEnd::Port { switch, port }, usize::from(priority));
        let mbit = link(self.hosts, end).map_or(1_000, |link| link.speed);
        let shaping = self.hosts.switches[switch].shaping(port);
        let strangers = || self.strangers.iter().filter(|it| it.ways.contains(&end));
        let is_free =
            strangers().any(|it| it.class > class && shaping[it.class] == Shaping::Strict);
        let flow = self.leaving(end).next().filter(|_| settled && !is_free);
        let span = flow.and_then(|(_, flow)| self.with_model(flow, end, |it| it.credit(class)));
        let is_used = self.leaving(end).any(|(_, it)| it.class == class)
            || strangers().any(|it| it.class == class);
        let rate = LinkRate::new(mbit * 1_000_000);
        let span = span.and_then(Result::ok).flatten();
        PlannedCredit { switch, number, credit, rate, is_used, span }
    }
}

/// Returns the problems of credit, each of which is a refusal of the list.
pub(super) fn refusals<'a>(
    hosts: &'a Hosts,
    credits: &'a [PlannedCredit],
) -> impl Iterator<Item = Diagnostics> + 'a {
    credits.iter().filter(|it| !it.is_used).map(|it| {
        let PlannedCredit { switch, number, credit, .. } = *it;
        let name = &hosts.switches[switch].name;
        let (priority, port) = (credit.priority, credit.port + 1);
        let title = format!("no frames of priority {priority} leave `{name}:{port}`");
        let help = "write the priority of a `[[socket]]` whose frames do, or remove the credit";
        hosts.problem(HostsPlace::Credit { switch, number }, [&title, "", help])
    })
}
