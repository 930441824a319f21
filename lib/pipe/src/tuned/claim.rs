//! The arrivals on the channels of an endpoint, by the claims on them. Several pipes may listen to
//! one channel; its messages then count once for all of them.

use super::wish::{Driver, Qos};
use crate::size::Bucket;
use diapason_abi::Nanos;
use diapason_abi::pipe::Envelope;

/// A pipe, and the channel it listens to; without one, nobody else does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Wish {
    pub channel: Option<u8>,
    pub part: Part,
    pub qos: Qos,
    /// The most that it may be, if that is declared.
    pub envelope: Option<Envelope>,
}

/// The use that a pipe makes of its channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Part {
    Reads,
    Writes,
    /// The pipe reads, and what it read is written: to this channel, in this place of the endpoint.
    Passes(u8, usize),
    /// The pipe is where another one's messages are written.
    Carries,
}

/// A statement about a channel's traffic.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Claim {
    pub channel: Option<u8>,
    pub contract: Bucket,
}

impl Wish {
    /// Returns the arrivals from its channel: acknowledgements, if the channel is written.
    pub fn claim(&self, driver: &Driver) -> Claim {
        let contract = match (self.part, driver.output) {
            (Part::Writes | Part::Carries, Some(output)) => output.acknowledged,
            _ => self.qos.contract(&driver.attributes),
        };
        Claim { channel: self.channel, contract }
    }
}

impl Claim {
    fn is_of_one_with(&self, other: &Claim) -> bool {
        self.channel.is_some() && self.channel == other.channel
    }
}

/// Nothing comes for a pipe that is not there.
const SILENT: Bucket = Bucket { burst: 0, messages: 0, per: Nanos(1), jitter: Nanos::ZERO };

/// Returns the arrivals as a list for each pipe. The messages of a channel count for the pipe `own`
/// if it listens to the channel, else for the first that does.
pub(super) fn traffic<const N: usize>(claims: &[Option<Claim>; N], own: usize) -> [[Bucket; 1]; N] {
    core::array::from_fn(|pipe| {
        let Some(claim) = claims[pipe] else { return [SILENT] };
        let others = || {
            (0..N).filter(|at| *at != pipe && claims[*at].is_some_and(|o| o.is_of_one_with(&claim)))
        };
        let goes_before = |at: usize| at == own || pipe != own && at < pipe;
        if others().any(goes_before) {
            return [SILENT];
        }
        let contracts = others().filter_map(|at| claims[at]).map(|other| other.contract);
        [contracts.fold(claim.contract, most)]
    })
}

/// Returns a contract that both keep.
fn most(a: Bucket, b: Bucket) -> Bucket {
    let (of_a, of_b) = (u128::from(a.messages), u128::from(b.messages));
    let faster = if of_a * u128::from(b.per.0) >= of_b * u128::from(a.per.0) { a } else { b };
    Bucket { burst: a.burst.max(b.burst), jitter: a.jitter.max(b.jitter), ..faster }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(channel: u8, rate: u64, burst: u64) -> Option<Claim> {
        let contract = Bucket::per_second(rate).with_burst(burst);
        Some(Claim { channel: Some(channel), contract })
    }

    #[test]
    fn what_comes_on_a_channel_comes_once() {
        let alone = claim(7, 9, 9).map(|it| Claim { channel: None, ..it });
        let claims = [claim(1, 100, 2), alone, claim(1, 50, 8), alone, claim(2, 7, 1), None];
        let all = Bucket::per_second(100).with_burst(8);
        let (other, third) = (Bucket::per_second(9).with_burst(9), Bucket::per_second(7));
        for (own, first, second) in [(0, all, SILENT), (2, SILENT, all), (4, all, SILENT)] {
            let expected = [first, other, second, other, third, SILENT];
            assert_eq!(traffic(&claims, own).map(|[bucket]| bucket), expected, "{own}");
        }
    }
}
