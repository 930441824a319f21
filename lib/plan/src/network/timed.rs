//! The common time of two hosts at a wire: its terms, from the longest times of both servers, and
//! what it adds to the wire. `docs/gptp.md` says which times the terms consist of, and
//! `lib/ether/src/timed.rs` how.

use super::NetworkPlan;
use super::ethernet::{Ethernet, Wired};
use super::wired::{Sender, longest, on_wire};
use crate::missing::Missing;
use diapason_abi::Nanos;
use diapason_contract::ethernet::RING;
use diapason_contract::time::{SYNC_LOG, TURN_NS};
use diapason_ether::station::TURN_FRAMES;
use diapason_ether::timed::{TimeAssumed, TimeSite, sync_base};
use diapason_gptp::{FRAME_MAX, HEAD, SyncRefusal, SyncTerms};
use diapason_system::{
    Diagnostics, EthernetLink, Flow, Hosts, HostsPlace, SLEW_PPM, WireEnd, WireTime,
};
use diapason_tsn::TrafficFlow;

/// The common time of the hosts at a wire.
#[derive(Clone, Debug)]
pub struct CommonTime {
    /// The number of the wire.
    pub wire: usize,
    /// The terms that its hosts keep, or why there are none and the remedy.
    pub terms: Result<CommonTerms, (String, String)>,
}

/// The terms that both hosts of a common time keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommonTerms {
    pub sync: SyncTerms,
    /// The rates of an adapter's clock and of its host's differ by at most this.
    pub apart_ppm: u32,
}

/// Returns the most frames of so many turns.
pub(super) const fn sent(turns: u64) -> u64 {
    turns.saturating_mul(TURN_FRAMES as u64)
}

/// Returns the time on a wire of all frames of a turn, in ns.
pub(super) fn turn_ns(link: &EthernetLink) -> u64 {
    TURN_FRAMES as u64 * on_wire(link, (FRAME_MAX - HEAD) as u64, false)
}

/// Returns the frames of the common time at the adapter that sends a flow. Each turn begins so long
/// after the one before, and is done when the server is idle, as the frames of the flow are.
pub(super) fn traffic(link: &EthernetLink, flow: &Wired<'_>) -> TrafficFlow {
    TrafficFlow {
        class: 0,
        wire_ns: on_wire(link, (FRAME_MAX - HEAD) as u64, false),
        period_ns: TURN_NS,
        jitter_ns: flow.served(),
        burst: TURN_FRAMES as u64,
        phase: None,
    }
}

impl NetworkPlan {
    /// Returns how long after the start messages of a flow may be lost, if it passes gates that go
    /// by a common time. They are closed until their host knows the time. A program in step with
    /// them has to learn it, too.
    #[must_use]
    pub fn promised_after(&self, hosts: &Hosts, flow: &Flow) -> Option<Nanos> {
        let [from, _] = Sender::ends(flow)?;
        let end = from.end(hosts);
        let time = self.times.iter().find(|it| hosts.ethernet[it.wire].gates(end).is_some())?;
        let learnt = time.terms.as_ref().ok()?.sync.learnt();
        // A program learns it with two messages, and the next gap is up to two periods long.
        let period = flow.release.map_or(0, |_| flow.contract.per.0);
        Some(learnt + Nanos(5 * period))
    }
}

/// Returns the problems of common times, each of which is a refusal of the list.
pub(super) fn refusals<'a>(
    hosts: &'a Hosts,
    times: &'a [CommonTime],
) -> impl Iterator<Item = Diagnostics> + 'a {
    times.iter().filter_map(|it| {
        let (what, help) = it.terms.as_ref().err()?;
        let name = &hosts.ethernet[it.wire].name;
        let title = format!("the common time of `{name}` has no bound: {what}");
        Some(hosts.problem(HostsPlace::Ethernet(it.wire), [&title, "", help]))
    })
}

impl Ethernet<'_> {
    /// Returns the common time of each wire that has one. The delays of flows follow from each
    /// other, or there is something `unsettled`.
    pub(super) fn times(&self, unsettled: Option<&Missing>) -> Vec<CommonTime> {
        let wires = self.hosts.ethernet.iter().enumerate();
        let timed = wires.filter_map(|(wire, link)| Some((wire, link, link.time?)));
        let of = |(wire, link, time): (usize, &EthernetLink, WireTime)| {
            // A refusal with delays that are too short is one with the longest ones, too.
            let terms = self.terms(link, &time);
            let terms = terms.and_then(|it| unsettled.map_or(Ok(it), |it| Err(it.clone())));
            CommonTime { wire, terms }
        };
        timed.map(of).collect()
    }

    fn terms(&self, link: &EthernetLink, time: &WireTime) -> Result<CommonTerms, Missing> {
        let [one, other] = link.ends.map(|end| self.site(link, end, time));
        let assumed = TimeAssumed {
            log_interval: SYNC_LOG,
            losses: time.losses,
            drift_ppm: time.drift_ppm,
            wander_ppb: time.wander_ppb,
            link: Nanos(link.delay_ns),
            uneven: Nanos::ZERO,
            slew_ppm: SLEW_PPM,
        };
        let base = sync_base(&[one?, other?], &assumed);
        let sync = SyncTerms::new(base).map_err(|refusal| slow(&refusal))?;
        Ok(CommonTerms { sync, apart_ppm: assumed.apart_ppm() })
    }

    /// Returns the times of the host at an end.
    fn site(
        &self,
        link: &EthernetLink,
        end: WireEnd,
        time: &WireTime,
    ) -> Result<TimeSite, Missing> {
        let (WireEnd::Adapter { host, .. }, Some((plant, adapter))) = (end, self.adapter(end))
        else {
            return Err(("a switch passes no time on".to_owned(), "join two adapters".to_owned()));
        };
        if let Some(stranger) = self.strangers.iter().find(|it| it.ways.contains(&end)) {
            let name = stranger.sender.name(self.hosts);
            let what = format!("`{name}` may send by the same adapter, and nothing bounds it");
            return Err((what, "declare a `[[flow]]` of what it sends".to_owned()));
        }
        let busy = self.serves(end)?;
        let came = plant.came(adapter)?;
        let (place, file) = (self.place(end), &self.hosts.hosts[host].file);
        self.within(end, adapter.traffic.unwrap_or_default(), &format!("`{place}`"), file)?;
        Ok(TimeSite {
            came,
            // A turn began just before there was something to do.
            turn: Nanos(TURN_NS) + busy,
            // The ring is full of the longest frames.
            wire: Nanos(longest(link).saturating_mul(RING as u64 - 1)),
            looks: Nanos(time.read_ns),
        })
    }
}

/// Returns why no common time follows from the times of the hosts, and the remedy.
fn slow(refusal: &SyncRefusal) -> Missing {
    let help = match refusal {
        SyncRefusal::Slew { .. } => "write a shorter `time_read`, or a smaller `time_wander`",
        _ => "give the VCPUs of both servers shorter periods, or more of the processor",
    };
    (refusal.to_string(), help.to_owned())
}
