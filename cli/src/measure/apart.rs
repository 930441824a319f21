//! Tells what each message takes apart from what a wake-up takes.
//!
//! A bottom half does its work whenever it is woken, whether for one message or for many. Its time
//! is counted by how many there were. A line above all of these counts has the two parts.

use std::collections::BTreeMap;

/// The time of a wake-up without its messages, and that of each message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Apart {
    pub wakeup_ns: u64,
    pub message_ns: u64,
}

/// Wake-ups with at most so few messages say what a wake-up takes, and with at least so many what
/// each message takes.
const FEW: u64 = 1;
const SEVERAL: u64 = 4;

impl Apart {
    /// Returns the parts, from the longest time of a wake-up by how many messages it had.
    ///
    /// The line begins at the fewest messages, and is as steep as it has to be. There is none if no
    /// wake-up had few of them, or none had several: a line through those would say too little of
    /// the others.
    pub fn of(longest: &BTreeMap<u64, u64>) -> Option<Apart> {
        let (fewest, first) = longest.first_key_value()?;
        let (most, _) = longest.last_key_value()?;
        if *fewest > FEW || *most < SEVERAL {
            return None;
        }
        let more = longest.iter().skip(1);
        let steps =
            more.map(|(messages, ns)| ns.saturating_sub(*first).div_ceil(messages - fewest));
        let message_ns = steps.max()?;
        let wakeup_ns = first.saturating_sub(message_ns.saturating_mul(*fewest));
        Some(Apart { wakeup_ns, message_ns })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_line_goes_through_the_fewest_messages_and_above_all_others() {
        let counted = BTreeMap::from([(1, 3_000), (2, 3_100), (8, 9_700)]);
        let apart = Apart { wakeup_ns: 2_042, message_ns: 958 };
        assert_eq!(Apart::of(&counted), Some(apart));
        for unknown in [vec![(4, 3_000)], vec![(0, 900), (1, 3_000)], vec![(15, 900), (16, 3_000)]]
        {
            assert_eq!(Apart::of(&unknown.into_iter().collect()), None);
        }
        assert_eq!(Apart::of(&BTreeMap::new()), None);
    }

    proptest! {
        #[test]
        fn no_time_that_was_counted_is_longer(
            counted in prop::collection::btree_map(0_u64..40, 0_u64..100_000, 2..12)
        ) {
            let Some(Apart { wakeup_ns, message_ns }) = Apart::of(&counted) else {
                return Ok(());
            };
            for (messages, ns) in &counted {
                prop_assert!(wakeup_ns + message_ns * messages >= *ns);
            }
        }
    }
}
