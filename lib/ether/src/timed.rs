//! The terms of a common time between two adapters, derived from the times of their hosts.
//!
//! A server of an adapter has two threads. One receives, and reads the stamp of a frame with the
//! frame. The other one keeps the time in *turns*: it hears messages, takes the stamps of events
//! that left, and sends. Each term is the longest time of a chain of these steps:
//!
//! | term | steps |
//! |---|---|
//! | age of a stamp | a frame comes, or leaves, and a turn reads both clocks |
//! | gap | the neighbour reads the stamp of a frame. An event may leave late by a wire |
//! | wait of an event | an event before it leaves, a gap passes, and a turn sends the next |
//! | turnaround | a request is heard, its answer waits for one event and leaves |
//! | late | a Sync waits for two events, leaves and is stamped, and its Follow_Up comes |
//!
//! `lib/gptp` proves the bound of the time from these terms. A node does not trust them: it uses no
//! stamp and no answer that is worse than they say. So a host that is slower than its terms does
//! not have a wrong time. It has none.

use crate::stamps::stamp_error;
use diapason_abi::Nanos;
use diapason_gptp::SyncBase;

const PPM: u128 = 1_000_000;

/// The times of one end of a wire, by the clock of its host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TimeSite {
    /// From the beginning of a frame on the wire until the server has read its stamp and has told
    /// the thread that sends.
    pub came: Nanos,
    /// From when a turn has something to do until it is done: its pause, and all that the thread
    /// that sends does before.
    pub turn: Nanos,
    /// From when the adapter has a frame to send until the frame has left it: all that it may send
    /// before, and the frame.
    pub wire: Nanos,
    /// Between the two looks at the host's clock around a look at the adapter's.
    pub looks: Nanos,
}

/// The properties of clocks and of the wire that nothing derives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TimeAssumed {
    /// The interval of Syncs, as a power of two in seconds.
    pub log_interval: i8,
    /// The most frames of one kind that are lost in a row.
    pub losses: u32,
    /// Each clock, of a host or of an adapter, is fast or slow by at most this.
    pub drift_ppm: u32,
    /// The rate of a clock changes in a second by at most this.
    pub wander_ppb: u32,
    /// The longest delay of the wire, and half of what its directions differ by.
    pub link: Nanos,
    pub uneven: Nanos,
    /// How fast a clock approaches the computed time.
    pub slew_ppm: u32,
}

impl TimeAssumed {
    /// Returns how far the rates of two clocks differ at most: (1 + p)/(1 − p) − 1, which is 2p
    /// and less than a millionth more.
    #[must_use]
    pub const fn apart_ppm(&self) -> u32 {
        2 * self.drift_ppm + if self.drift_ppm == 0 { 0 } else { 1 }
    }

    /// Returns the longest time on a clock while another clock measures this.
    fn slower(&self, time: Nanos) -> Nanos {
        let apart = u128::from(time.0) * u128::from(self.apart_ppm());
        time + Nanos(u64::try_from(apart.div_ceil(PPM)).unwrap_or(u64::MAX))
    }
}

/// Returns the terms of a common time between two adapters that a wire joins.
#[must_use]
pub fn sync_base(sites: &[TimeSite; 2], assumed: &TimeAssumed) -> SyncBase {
    let most = |of: &dyn Fn(&TimeSite) -> Nanos| sites.iter().map(of).max().unwrap_or_default();
    let both = |of: &dyn Fn(&TimeSite, &TimeSite) -> Nanos| {
        let [one, other] = sites;
        of(one, other).max(of(other, one))
    };
    // A stamp is as old as its frame when a turn reads both clocks.
    let age = most(&|it| it.came.max(it.wire) + it.turn);
    let looks = most(&|it| it.looks);
    let stamp = stamp_error(looks, assumed.slower(age), assumed.apart_ppm());
    // A node keeps the gap from the stamp of an event. Without one it keeps the gap from when the
    // adapter got the event, which left later by a wire.
    let gap = both(&|from, to| assumed.slower(assumed.slower(to.came)) + from.wire.max(stamp));
    // The event before was handed out just now.
    let waits = |it: &TimeSite| it.wire + stamp + gap + it.turn;
    // Both stamps of the neighbour may be wrong in the directions that make the answer late.
    let answers = |it: &TimeSite| it.came + it.turn + waits(it) + it.wire + stamp + stamp;
    let syncs = |from: &TimeSite, to: &TimeSite| {
        let left = from.turn + waits(from) + waits(from) + from.wire + from.turn;
        left + from.wire + assumed.link + to.came + to.turn
    };
    SyncBase {
        log_interval: assumed.log_interval,
        late: assumed.slower(both(&syncs)),
        losses: assumed.losses,
        hops: 1,
        drift_ppm: assumed.drift_ppm,
        wander_ppb: assumed.wander_ppb,
        stamp,
        turnaround: most(&answers),
        gap,
        link: assumed.link,
        uneven: assumed.uneven,
        slew_ppm: assumed.slew_ppm,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diapason_gptp::SyncTerms;

    const MICRO: u64 = 1_000;
    const SITE: TimeSite = TimeSite {
        came: Nanos(300 * MICRO),
        turn: Nanos(700 * MICRO),
        wire: Nanos(100 * MICRO),
        looks: Nanos(4 * MICRO),
    };
    const PERFECT: TimeAssumed = TimeAssumed {
        log_interval: -3,
        losses: 3,
        drift_ppm: 0,
        wander_ppb: 0,
        link: Nanos(MICRO),
        uneven: Nanos::ZERO,
        slew_ppm: 500,
    };
    const USUAL: TimeAssumed = TimeAssumed { drift_ppm: 100, wander_ppb: 20, ..PERFECT };

    /// With perfect clocks each term is the sum of its steps.
    #[test]
    fn terms_are_the_sums_of_their_steps() {
        let base = sync_base(&[SITE; 2], &PERFECT);
        // Half of the looks, a tick, and rounding.
        let stamp = 2_041;
        assert_eq!(base.stamp, Nanos(stamp));
        assert_eq!(base.gap, Nanos(400 * MICRO));
        let waits = (100 + 400 + 700) * MICRO + stamp;
        assert_eq!(base.turnaround, Nanos((300 + 700 + 100) * MICRO + waits + 2 * stamp));
        let left = (700 + 100 + 700) * MICRO + 2 * waits;
        assert_eq!(base.late, Nanos(left + (100 + 1 + 300 + 700) * MICRO));
    }

    /// A stamp of a frame that leaves gets older than one of a frame that comes if others may be
    /// sent before it.
    #[test]
    fn the_age_of_a_stamp_is_that_of_the_slower_way() {
        let stamp = |site: TimeSite| sync_base(&[SITE, site], &USUAL).stamp;
        let usual = stamp(SITE);
        // A frame comes in 300 us, and leaves in 100 us.
        assert_eq!(stamp(TimeSite { wire: Nanos(300 * MICRO), ..SITE }), usual);
        let slower = stamp(TimeSite { wire: Nanos(1_300 * MICRO), ..SITE });
        // 201 millionths of a millisecond.
        assert_eq!(slower - usual, Nanos(201));
        assert_eq!(stamp(TimeSite { came: Nanos(1_300 * MICRO), ..SITE }), slower);
    }

    /// No term gets better if any time of any host gets worse.
    #[test]
    fn a_slower_host_has_worse_terms() {
        let more = Nanos(50 * MICRO);
        let slower: [fn(&mut TimeSite, Nanos); 4] = [
            |it, more| it.came += more,
            |it, more| it.turn += more,
            |it, more| it.wire += more,
            |it, more| it.looks += more,
        ];
        let before = sync_base(&[SITE; 2], &USUAL);
        for (number, slow) in slower.iter().enumerate() {
            for host in 0..2 {
                let mut sites = [SITE; 2];
                slow(&mut sites[host], more);
                let after = sync_base(&sites, &USUAL);
                let terms = |it: &SyncBase| [it.stamp, it.gap, it.turnaround, it.late];
                let mut grown = terms(&before).into_iter().zip(terms(&after));
                assert!(grown.all(|(before, after)| before <= after), "{number} {host}");
                assert!(before.late < after.late);
            }
        }
    }

    /// A node's own checks leave room for a neighbour whose clock is as fast as it may be.
    #[test]
    fn the_gap_has_room_for_clocks_that_run_apart() {
        let base = sync_base(&[SITE; 2], &USUAL);
        let apart = base.gap - SITE.wire;
        // The sender's clock is fast and counts the gap early. The neighbour's is slow.
        let fast = u128::from(apart.0) * 999_900 / 1_000_100;
        assert!(fast >= u128::from(SITE.came.0), "{apart:?}");
    }

    #[test]
    fn a_common_time_follows_from_usual_hosts_and_none_from_slow_ones() {
        let terms = SyncTerms::new(sync_base(&[SITE; 2], &USUAL)).expect("terms that make sense");
        assert_eq!(terms.error(), Nanos(11_847));
        let slow = TimeSite { turn: Nanos(40_000 * MICRO), ..SITE };
        assert!(SyncTerms::new(sync_base(&[SITE, slow], &USUAL)).is_err());
    }
}
