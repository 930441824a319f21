//! Other ways of flows around cables that are lost.
//!
//! The program before a cable turns to the other way by itself: nobody tells it. It sends there
//! while a message that it gave to the cable has not been taken for longer than its patience. So no
//! more messages than come within the patience are stuck at the cable. They come at once when the
//! cable is back, and every stage behind it counts them beside all others.

use super::flows::{FlowBill, FlowStage, OtherWay};
use super::net::{Net, Place, Seat, apart, stage};
use super::route::By;
use crate::human;
use diapason_abi::Nanos;
use diapason_contract::link::REST_NS;
use diapason_system::{Flow, FlowStop, FlowWay, Hosts};
use diapason_usb::class::link::PEER_TIME;

impl Net<'_> {
    /// Returns the flows, without their other ways.
    pub(super) fn mains(&self) -> impl Iterator<Item = usize> {
        (0..self.routes.len()).filter(|route| self.routes[*route].around.is_none())
    }

    /// Returns the other ways of a flow.
    pub(super) fn others(&self, flow: usize) -> impl Iterator<Item = usize> {
        let behind = flow + 1..self.routes.len();
        behind.take_while(|route| self.routes[*route].around.is_some())
    }

    /// Returns the flow of a route, and the hop that the route goes around.
    fn around(&self, route: usize) -> Option<(usize, usize)> {
        let hop = self.routes[route].around?.hop;
        Some(((0..route).rev().find(|it| self.routes[*it].around.is_none())?, hop))
    }

    /// Returns the longest time until a message of a route reaches a stage, by whatever ways.
    pub(super) fn before(&self, route: usize, at: usize) -> Nanos {
        let sum = |route: usize, from: usize, to: usize| {
            let delays = self.delays[route].iter().take(to).skip(from);
            delays.fold(Nanos::ZERO, |sum, delay| sum + *delay)
        };
        if let Some((flow, hop)) = self.around(route) {
            return self.before(flow, stage(hop, FlowStage::Sends)) + sum(route, 0, at);
        }
        let longer = self.others(route).filter_map(|other| {
            let hop = self.routes[other].around?.hop;
            let (first, end) = (stage(hop, FlowStage::Sends), stage(hop + 1, FlowStage::Sends));
            let own = sum(route, first, end);
            (end <= at).then(|| Nanos(sum(other, 0, usize::MAX).0.saturating_sub(own.0)))
        });
        longer.fold(sum(route, 0, at), |sum, more| sum + more)
    }

    /// Returns the most messages of a route that may reach a stage beside those in time: they were
    /// stuck at cables that are back.
    pub(super) fn late(&self, route: usize, at: usize) -> u64 {
        let (flow, end) = match self.around(route) {
            Some((flow, hop)) => (flow, stage(hop, FlowStage::Sends)),
            None => (route, at.saturating_add(1)),
        };
        let is_before = |other: &usize| {
            let around = self.routes[*other].around;
            around.is_some_and(|around| stage(around.hop, FlowStage::Sends) < end)
        };
        let others = self.others(flow).filter(is_before);
        others.map(|other| self.stuck(other)).fold(0, u64::saturating_add)
    }

    /// Returns the most messages that a cable keeps when it is lost, before their program takes
    /// this other way; none of a flow's own way.
    pub(super) fn stuck(&self, route: usize) -> u64 {
        let (Some((flow, hop)), Some(around)) = (self.around(route), self.routes[route].around)
        else {
            return 0;
        };
        let first = stage(hop, FlowStage::Sends);
        let window = Nanos(around.patience_ns) + self.before(flow, first);
        // Those that were stuck before an earlier cable may come together, too.
        let earlier = first.checked_sub(1).map_or(0, |at| self.late(flow, at));
        self.routes[flow].bucket().most(window).saturating_add(earlier)
    }

    /// Returns the most messages that links give back to a program because nobody took them.
    pub(super) fn returned(&self, stop: &FlowStop) -> u64 {
        let seat = Seat::of(stop);
        let is_its = |route: &usize| {
            self.around(*route).is_some()
                && self.routes[*route].stops().next().is_some_and(|from| Seat::of(from) == seat)
        };
        let routes = (0..self.routes.len()).filter(is_its);
        routes.map(|route| self.stuck(route)).fold(0, u64::saturating_add)
    }

    /// Returns the crossings by which messages go on behind a crossing: the next one of the flow,
    /// and the first of the other way around that one.
    pub(super) fn onward(&self, (route, number, _): Place<'_>) -> Vec<Place<'_>> {
        let (flow, next) = match self.around(route) {
            Some((flow, hop)) if number + 1 == self.routes[route].crossings.len() => {
                (flow, hop + 1)
            }
            _ => (route, number + 1),
        };
        let of = |route: usize, number: usize| {
            Some((route, number, self.routes[route].crossings.get(number)?))
        };
        let around = |other: &usize| self.around(*other) == Some((flow, next));
        let others = self.others(flow).filter(around).filter_map(|other| of(other, 0));
        of(flow, next).into_iter().chain(others).collect()
    }

    /// Returns what another way of a flow costs.
    pub(super) fn other(&self, flow: usize, other: usize) -> OtherWay {
        let around = self.routes[other].around;
        let (hop, patience) = around.map_or((0, Nanos::ZERO), |it| (it.hop, Nanos(it.patience_ns)));
        let crossing = &self.routes[flow].crossings[hop];
        let place = (flow, hop, crossing);
        let least = self.job(&crossing.from.0) + self.known_to_be_sent(place);
        let under_way = [FlowStage::Sends, FlowStage::Cable, FlowStage::Told, FlowStage::Receives];
        let under_way = under_way.into_iter().map(|at| self.delay(place, at));
        let under_way = under_way.fold(Nanos::ZERO, |sum, delay| sum + delay);
        // Those that may reach the stage late are the ones that are stuck there.
        let lost = self.arrivals(flow, stage(hop, FlowStage::Sends), under_way);
        // When the cable is back, its first message may overtake those on the other way.
        let way = self.delays[other].iter().fold(Nanos::ZERO, |sum, delay| sum + *delay);
        let jitter = self.before(flow, stage(hop, FlowStage::Sends));
        let overtaken = self.routes[flow].bucket().most(way + jitter).saturating_sub(1);
        let mut bill = FlowBill::new();
        bill.total = self.before(flow, stage(hop, FlowStage::Sends));
        self.items(other, &mut bill);
        OtherWay {
            hop,
            patience,
            least: least + apart(least),
            lost: lost.saturating_add(overtaken),
            // A debug capability keeps what the other side does not take.
            again: matches!(crossing.from.1.by, By::Usb(_)).then_some(Nanos(REST_NS)),
            items: bill.items,
        }
    }
}

impl OtherWay {
    /// Returns why the program would turn from a cable that works, and the remedy.
    pub(super) fn hasty(&self, flow: &Flow, hosts: &Hosts) -> Option<[String; 2]> {
        if self.patience >= self.least {
            return None;
        }
        let cable = match flow.hops.get(self.hop)?.way {
            FlowWay::Cable(cable) => hosts.cables[cable].name.as_str(),
            FlowWay::Sockets { .. } | FlowWay::Mailbox(_) => "",
        };
        let (patience, least) = (human(self.patience.0), human(self.least.0));
        Some([
            format!(
                "its program knows after {least} that `{cable}` has taken a message, and its \
                 patience is {patience}"
            ),
            format!("write `patience = \"{}us\"` or more", self.least.0.div_ceil(1_000)),
        ])
    }
    /// Returns why the program cannot keep this patience, and the remedy: another flow gives it
    /// another one.
    pub(super) fn told_twice(&self, flow: &Flow, hosts: &Hosts) -> Option<[String; 2]> {
        let own = flow.stops().nth(self.hop)?;
        let (other, patience) = hosts.flows.iter().find_map(|other| {
            let differs = other.detours.iter().find(|detour| {
                let stop = other.stops().nth(detour.hop);
                let same = |stop: &FlowStop| (stop.host, stop.process) == (own.host, own.process);
                stop.is_some_and(same) && detour.patience_ns != self.patience.0
            })?;
            Some((&other.name, differs.patience_ns))
        })?;
        let host = &hosts.hosts[own.host];
        let process = &host.system.processes[usize::from(own.process)].name;
        let (own, theirs) = (human(self.patience.0), human(patience));
        Some([
            format!(
                "`{}:{process}` has one patience, which is {own} here and {theirs} in `{other}`",
                host.name
            ),
            "write the same `patience` in both".to_owned(),
        ])
    }

    /// Returns why messages may come back before the program turns, and the remedy: a USB server
    /// gives up what the other side does not take.
    pub(super) fn given_up(&self, flow: &Flow, hosts: &Hosts) -> Option<[String; 2]> {
        let FlowWay::Cable(cable) = flow.hops.get(self.hop)?.way else { return None };
        let cable = &hosts.cables[cable];
        if self.again.is_none() || self.patience < PEER_TIME {
            return None;
        }
        let (patience, peer) = (human(self.patience.0), human(PEER_TIME.0));
        Some([
            format!(
                "`{}` gives up a message that its other side has not taken for {peer}, and the \
                 patience of its program is {patience}",
                cable.name
            ),
            format!("write a `patience` below {peer}"),
        ])
    }
}
