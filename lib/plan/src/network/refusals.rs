//! Flaws of a network as refusals: what is wrong, where, and what to do.

use diapason_system::{Diagnostics, Hosts, HostsPlace};
use diapason_topology::{Flaw, Jack, Lists, Topology};

/// Returns a refusal for each flaw.
pub(super) fn refusals(
    hosts: &Hosts,
    topology: &Topology,
    lists: &Lists,
    found: &[Flaw],
) -> Vec<Diagnostics> {
    let network = Refuser { hosts, topology, lists };
    found.iter().map(|flaw| network.refusal(flaw)).collect()
}

struct Refuser<'a> {
    hosts: &'a Hosts,
    topology: &'a Topology,
    lists: &'a Lists,
}

impl Refuser<'_> {
    fn host(&self, number: usize) -> &str {
        &self.hosts.hosts[number].name
    }

    fn cable(&self, number: usize) -> &str {
        &self.hosts.cables[number].name
    }

    fn target(&self, cable: usize) -> usize {
        self.topology.edges[cable].ends()[0].host
    }

    /// Returns the debug host of the cable that makes `target` a device, if there is such a cable.
    fn owner(&self, target: Jack) -> Option<&str> {
        let mut cables = self.topology.debug_cables();
        cables.find(|it| it.1 == target).map(|it| self.host(it.2.host))
    }

    fn refusal(&self, flaw: &Flaw) -> Diagnostics {
        let (place, title, note, help) = match flaw {
            Flaw::TwoHosts { target, cables: [first, second] } => (
                HostsPlace::Cable(*second),
                format!("`{}` would be a device of two hosts", self.host(target.host)),
                "a controller has one debug capability".to_owned(),
                format!("make `{}` or `{}` a bridge", self.cable(*first), self.cable(*second)),
            ),
            Flaw::NeverEnabled { cable } => {
                let target = self.host(self.target(*cable));
                (
                    HostsPlace::Cable(*cable),
                    format!("`{target}` never enables its debug capability, where this cable ends"),
                    String::new(),
                    format!("remove `enable = false` from the host `{target}`"),
                )
            }
            Flaw::Stranger { host, awaits } => {
                let (host, awaited) = (*host, self.host(*awaits));
                (
                    HostsPlace::Depends(host),
                    format!("`{}` waits for `{awaited}` for ever", self.host(host)),
                    format!("no debug cable makes `{awaited}` a device of it"),
                    format!("remove `{awaited}` from its `depends`"),
                )
            }
            Flaw::Circle { hosts } => self.circle(hosts),
            Flaw::Missed { cable } => {
                let [target, host] = self.topology.edges[*cable].ends().map(|jack| jack.host);
                let (target, name) = (self.host(target), self.host(host));
                (
                    HostsPlace::Depends(host),
                    format!("`{name}` may enumerate before `{target}` enables"),
                    format!("then the cable `{}` never links", self.cable(*cable)),
                    format!("add `{target}` to its `depends`"),
                )
            }
            Flaw::Taken { target, cable, by } => self.taken(*target, *cable, *by),
        };
        self.hosts.problem(place, [&title, &note, &help])
    }

    fn circle(&self, hosts: &[usize]) -> (HostsPlace, String, String, String) {
        let after = hosts.iter().skip(1).chain(hosts.first());
        let waits: Vec<String> = hosts
            .iter()
            .zip(after)
            .map(|(one, next)| format!("`{}` waits for `{}`", self.host(*one), self.host(*next)))
            .collect();
        let title = format!("{}: none of them ever enables", waits.join(", "));
        let place = match self.lists.leader {
            Some(_) => HostsPlace::Leader,
            None => HostsPlace::Depends(hosts.first().copied().unwrap_or_default()),
        };
        let note = match self.lists.leader {
            Some(leader) => format!("the leader `{}` is not among them", self.host(leader)),
            None => "a leader enables before it waits; there is none".to_owned(),
        };
        let help = self.by_a_leader().unwrap_or_else(|| {
            let in_circle = |host: usize| hosts.contains(&host);
            let cables = self.topology.debug_cables();
            let mut cables = cables.filter(|it| in_circle(it.1.host) && in_circle(it.2.host));
            match cables.next() {
                Some((cable, ..)) => self.as_bridge(cable),
                None => "change `depends`: each host waits for its debug targets".to_owned(),
            }
        });
        (place, title, note, help)
    }

    fn taken(&self, target: Jack, cable: usize, by: usize) -> (HostsPlace, String, String, String) {
        let (name, thief, over) = (self.host(target.host), self.host(by), self.cable(cable));
        let note =
            format!("the cable `{over}` joins the two, and `{thief}` looks at all its ports");
        let (place, title, help) = match self.owner(target) {
            Some(owner) => (
                HostsPlace::Cable(cable),
                format!("`{thief}` may enumerate `{name}`, which is the target of `{owner}`"),
                self.by_a_leader().unwrap_or_else(|| self.as_bridge(cable)),
            ),
            None => (
                HostsPlace::Host(target.host),
                format!("`{name}` enables, no cable needs it, and `{thief}` may enumerate it"),
                format!("remove `enable = true` from the host `{name}`"),
            ),
        };
        (place, title, note, help)
    }

    /// Returns the remedy if another leader, with the lists that the cables ask for, will do.
    fn by_a_leader(&self) -> Option<String> {
        let better = Lists::with_some_leader(self.topology)?;
        let (depends, enable) = (&better.awaits, &better.enables);
        let by_hand = if (depends, enable) == (&self.lists.awaits, &self.lists.enables) {
            ""
        } else {
            ", and leave out `depends` and `enable`"
        };
        let leader = match better.leader {
            Some(leader) => format!("write `leader = \"{}\"` under `[network]`", self.host(leader)),
            None if self.lists.leader.is_some() => "leave out `leader`".to_owned(),
            None => "leave out `leader`, which is not needed".to_owned(),
        };
        Some(leader + by_hand)
    }

    fn as_bridge(&self, cable: usize) -> String {
        format!("make `{}` a bridge: write a port at both of its ends", self.cable(cable))
    }
}
