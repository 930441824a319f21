//! The choice between a link and another way. The link is left while it has not taken a message for
//! too long, and taken again once it has taken all. A link that gives a message back has shown
//! nothing of itself, so it is left for a rest: each try of a link whose other side hangs loses
//! messages.

/// The messages that a link has not taken, by the numbers of their memory. Times are in ns.
#[derive(Clone, Copy, Debug)]
pub struct Patience<const PLACES: usize> {
    longest_ns: u64,
    rest_ns: u64,
    given_ns: [Option<u64>; PLACES],
    /// The end of the rest.
    rested_ns: u64,
}

impl<const PLACES: usize> Patience<PLACES> {
    /// Returns the choice of a program that leaves the link when it has not taken a message for
    /// `longest_ns`, and for `rest_ns` when it gave one back.
    #[must_use]
    pub const fn new(longest_ns: u64, rest_ns: u64) -> Patience<PLACES> {
        Patience { longest_ns, rest_ns, given_ns: [None; PLACES], rested_ns: 0 }
    }

    /// Notes that the link was given the message in this memory.
    pub const fn given(&mut self, place: usize, now_ns: u64) {
        if place < PLACES {
            self.given_ns[place] = Some(now_ns);
        }
    }

    /// Notes that the link took the message in this memory.
    pub const fn taken(&mut self, place: usize) {
        if place < PLACES {
            self.given_ns[place] = None;
        }
    }

    /// Notes that the link gave the message in this memory back.
    pub const fn given_back(&mut self, place: usize, now_ns: u64) {
        self.taken(place);
        self.rested_ns = now_ns.saturating_add(self.rest_ns);
    }

    /// Returns whether messages must go the other way. The caller must have noted all memory that
    /// the link is done with.
    #[must_use]
    pub fn is_over(&self, now_ns: u64) -> bool {
        let late = |given: &u64| now_ns.saturating_sub(*given) >= self.longest_ns;
        now_ns < self.rested_ns || self.given_ns.iter().flatten().any(late)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn a_link_is_left_for_as_long_as_it_keeps_a_message() {
        let mut patience = Patience::<4>::new(10, 100);
        assert!(!patience.is_over(u64::MAX), "it has nothing");
        patience.given(0, 100);
        patience.given(3, 105);
        assert_eq!([109, 110].map(|now| patience.is_over(now)), [false, true]);
        patience.taken(0);
        assert_eq!([114, 115].map(|now| patience.is_over(now)), [false, true]);
        patience.taken(3);
        assert!(!patience.is_over(u64::MAX));
        // Time that runs back is no patience lost, and memory that nobody has does nothing.
        patience.given(1, 500);
        patience.given(4, 0);
        patience.taken(9);
        assert!(!patience.is_over(400));
    }

    /// However links behave, messages given within the patience are the most that one keeps.
    #[test]
    fn no_more_messages_are_kept_than_come_within_the_patience() {
        for period in 1..30 {
            let mut patience = Patience::<64>::new(40, 0);
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

    #[test]
    fn a_link_that_gives_a_message_back_rests() {
        let mut patience = Patience::<4>::new(10, 1_000);
        patience.given(0, 100);
        patience.given(1, 105);
        patience.given_back(0, 150);
        patience.given_back(1, 151);
        assert_eq!([151, 1_150, 1_151].map(|now| patience.is_over(now)), [true, true, false]);
        // A message that it takes meanwhile was given before.
        patience.given_back(2, 2_000);
        patience.taken(3);
        assert!(patience.is_over(2_999) && !patience.is_over(3_000));
    }

    /// A link whose other side hangs gives each message back after 50 ms. The program tries it
    /// once a rest, and loses no more each time than come within the patience.
    #[test]
    fn a_link_that_hangs_costs_so_many_messages_in_each_rest() {
        const HELD: u64 = 50;
        for period in 1..30 {
            let mut patience = Patience::<64>::new(4, 1_000);
            let mut kept: Vec<(usize, u64)> = Vec::new();
            let mut lost = 0;
            for now in 0..10_000 {
                while let Some((place, _)) = kept.first().filter(|(_, at)| *at + HELD <= now) {
                    patience.given_back(*place, now);
                    kept.remove(0);
                }
                if now % period == 0 && !patience.is_over(now) {
                    patience.given(lost as usize % 64, now);
                    kept.push((lost as usize % 64, now));
                    lost += 1;
                }
            }
            let each = 4_u64.div_ceil(period);
            assert!((1..=each * 10).contains(&lost), "{lost} lost, one in {period}");
        }
    }
}
