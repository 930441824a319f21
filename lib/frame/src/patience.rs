//! The choice between a link and another way: the link is left while it has not taken a message for
//! too long, and taken again as soon as it has taken all.

/// The messages that a link has not taken, by the numbers of their memory. Times are in ns.
#[derive(Clone, Copy, Debug)]
pub struct Patience<const PLACES: usize> {
    longest_ns: u64,
    given_ns: [Option<u64>; PLACES],
}

impl<const PLACES: usize> Patience<PLACES> {
    /// Returns the choice of a program that leaves the link when it has not taken a message for
    /// `longest_ns`.
    #[must_use]
    pub const fn new(longest_ns: u64) -> Patience<PLACES> {
        Patience { longest_ns, given_ns: [None; PLACES] }
    }

    /// Notes that the link was given the message in this memory.
    pub const fn given(&mut self, place: usize, now_ns: u64) {
        if place < PLACES {
            self.given_ns[place] = Some(now_ns);
        }
    }

    /// Notes that the link is done with this memory: it took the message, or gave it back.
    pub const fn done(&mut self, place: usize) {
        if place < PLACES {
            self.given_ns[place] = None;
        }
    }

    /// Returns whether messages must go the other way. The caller must have noted all memory that
    /// the link is done with.
    #[must_use]
    pub fn is_over(&self, now_ns: u64) -> bool {
        let late = |given: &u64| now_ns.saturating_sub(*given) >= self.longest_ns;
        self.given_ns.iter().flatten().any(late)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_left_for_as_long_as_it_keeps_a_message() {
        let mut patience = Patience::<4>::new(10);
        assert!(!patience.is_over(u64::MAX), "it has nothing");
        patience.given(0, 100);
        patience.given(3, 105);
        assert_eq!([109, 110].map(|now| patience.is_over(now)), [false, true]);
        patience.done(0);
        assert_eq!([114, 115].map(|now| patience.is_over(now)), [false, true]);
        patience.done(3);
        assert!(!patience.is_over(u64::MAX));
        // Time that runs back is no patience lost, and memory that nobody has does nothing.
        patience.given(1, 500);
        patience.given(4, 0);
        patience.done(9);
        assert!(!patience.is_over(400));
    }

    /// However links behave, messages given within the patience are the most that one keeps.
    #[test]
    fn no_more_messages_are_kept_than_come_within_the_patience() {
        for period in 1..30 {
            let mut patience = Patience::<64>::new(40);
            let sent = (0..100).map(|number| number * period);
            let kept = sent.enumerate().filter(|(place, now)| {
                let stays = !patience.is_over(*now);
                if stays {
                    patience.given(*place, *now);
                }
                stays
            });
            assert_eq!(kept.count() as u64, 40_u64.div_ceil(period), "period {period}");
        }
    }
}
