//! Checks at every instant: clocks that know the time agree, none steps back, and none is faster
//! than it may be.

use super::World;
use diapason_abi::Nanos;

impl World {
    /// Notes which hosts can hear of each other from now on.
    pub(super) fn connect(&mut self) {
        let count = self.hosts.len();
        let mut near = vec![vec![false; count]; count];
        (0..count).for_each(|host| near[host][host] = self.hosts[host].on);
        for _ in 0..count {
            for link in self.links.iter().filter(|link| link.up) {
                let [(one, _), (other, _)] = link.ends;
                if near[one][one] && near[other][other] {
                    for row in &mut near {
                        let any = row[one] || row[other];
                        (row[one], row[other]) = (any, any);
                    }
                }
            }
        }
        self.joined.resize(count, Vec::new());
        for (one, row) in self.joined.iter_mut().enumerate() {
            row.resize(count, None);
            for (other, since) in row.iter_mut().enumerate() {
                *since = near[one][other].then(|| since.unwrap_or(self.now));
            }
        }
    }

    /// Returns whether two hosts must have heard of each other's masters.
    fn are_joined(&self, one: usize, other: usize) -> bool {
        let whole = self.terms.settle().0 + 3 * self.terms.announced().0;
        let since = self.joined[one][other];
        since.is_some_and(|since| since == 0 || self.now - since > whole)
    }

    /// Compares all clocks with each other and with what they were.
    pub(super) fn compare(&mut self) {
        let error = self.terms.error().0;
        let mut times: Vec<(usize, u64, bool)> = Vec::new();
        for host in 0..self.hosts.len() {
            let local = self.local(host);
            let time = self.time(host);
            let own = self.hosts[host].own.identity;
            let leads = self.hosts[host].node.grandmaster() == Some(own);
            self.goes_on(host, local, time);
            times.extend(time.map(|time| (host, time.0, leads)));
        }
        for (number, (host, one, leads)) in times.iter().enumerate() {
            for (with, other, also) in &times[..number] {
                if !self.compares || !self.are_joined(*host, *with) {
                    continue;
                }
                assert!(!(*leads && *also), "two grandmasters know the time at {}", self.now);
                let bound = if *leads || *also { error } else { 2 * error };
                let apart = one.abs_diff(*other);
                assert!(apart <= bound, "{apart} ns apart at {}: {bound} are stated", self.now);
                if *leads || *also {
                    self.furthest = self.furthest.max(apart);
                    self.compared += 1;
                }
            }
        }
    }

    /// The time that a host knows never goes back, and is no faster than it may slew.
    fn goes_on(&mut self, host: usize, local: Nanos, time: Option<Nanos>) {
        let base = self.terms.base();
        let last = self.hosts[host].last.take();
        if let (Some((then, before)), Some(time)) = (last, time) {
            let (passed, shown) = ((local - then).0, time.0.checked_sub(before.0));
            let shown = shown.unwrap_or_else(|| {
                panic!("host {host} steps back at {}: {then} to {local}", self.now)
            });
            let most = passed * u64::from(2 * base.drift_ppm + 1 + base.slew_ppm) / 1_000_000 + 2;
            assert!(shown.abs_diff(passed) <= most, "{shown} ns in {passed} at {}", self.now);
        }
        self.hosts[host].last = time.map(|time| (local, time));
        if let Some(time) = time {
            let node = &self.hosts[host].node;
            let first = node.local(time).unwrap();
            assert!(first <= local && node.time(local) >= Some(time));
        }
    }
}
