//! What the description tells the server in its arguments.
//!
//! | argument | bits | what |
//! |---|---|---|
//! | first | 0–7 | services ([`policy::wanted`]); nothing at all is the CAN interface alone |
//! | | 8–11, 12–15 | how many links, how many streams |
//! | | 16–19 | how many places for tuned pipes |
//! | second | 0–8 | what is to be said, as of [`policy::tell`] |
//! | | 12–61 | most messages a second of each channel's pipe in the description ([`Contracts`]) |
//! | third | 0–4 | CAN channels whose clients open and write them |
//! | | 5–15 | most messages at once of any of these pipes |
//! | | 16–31, 32–63 | what each direction of a link is promised: microframes, bytes in them |
//! | fourth | 0–31 | the root port of each link, eight bits each; 0 is any |
//! | | 32–63 | eight bits for each stream: it runs at 2ⁿ times its period (4), is critical (1) |
//!
//! If there are places for tuned pipes, a channel without a rate has no pipe in the description.

use crate::policy::{self, LINKS, STREAMS};
use crate::services::Terms;
use diapason_abi::pipe::Contracts;
use diapason_pipe::size::Bucket;
use diapason_usb::xhci::Guarantee;

/// All of it.
#[derive(Clone, Copy)]
pub struct Told {
    /// Services.
    pub services: u64,
    /// What is to be said.
    pub tell: u64,
    /// CAN channels whose clients open and write them, one bit each.
    pub clients: u8,
    /// What is known of pipes.
    pub pipes: Pipes,
    /// What links are promised.
    pub guarantee: Option<Guarantee>,
    links: usize,
    streams: usize,
    fourth: u64,
}

/// Places for tuned pipes, and what the pipes of the description carry.
#[derive(Clone, Copy)]
pub struct Pipes {
    /// How many places there are.
    pub places: usize,
    /// What these carry at most.
    contracts: Contracts,
}

/// So many bits of a word.
const fn bits(word: u64, from: u32, count: u32) -> u64 {
    word >> from & ((1 << count) - 1)
}

impl Told {
    /// Out of the four arguments.
    pub fn read([first, second, third, fourth]: [u64; 4]) -> Told {
        let services = match bits(first, 0, 8) {
            0 if bits(first, 8, 8) == 0 => policy::wanted::CAN,
            services => services,
        };
        let (period, bytes) = (bits(third, 16, 16) as u32, bits(third, 32, 32) as u32);
        let contracts = Contracts::of([first, second, third, fourth]);
        Told {
            services,
            tell: bits(second, 0, 9),
            clients: bits(third, 0, 5) as u8,
            pipes: Pipes { places: bits(first, 16, 4) as usize, contracts },
            guarantee: (bytes > 0 && period > 0).then_some(Guarantee { bytes, period }),
            links: (bits(first, 8, 4) as usize).min(LINKS.len()),
            streams: (bits(first, 12, 4) as usize).min(STREAMS.len()),
            fourth,
        }
    }

    /// Nothing but CAN interfaces?
    pub const fn is_can_alone(&self) -> bool {
        self.services == policy::wanted::CAN && self.links == 0 && self.streams == 0
    }

    /// The root port of each link; 0 is any.
    pub fn links(&self) -> impl Iterator<Item = u8> + '_ {
        (0..self.links).map(|number| bits(self.fourth, 8 * number as u32, 8) as u8)
    }

    /// How each stream is scheduled.
    pub fn streams(&self) -> impl Iterator<Item = Terms> + '_ {
        (0..self.streams).map(|number| {
            let bits = bits(self.fourth, 32 + 8 * number as u32, 8);
            Terms { stretch: (bits & 0xf) as u8, critical: bits >> 4 & 1 != 0 }
        })
    }
}

impl Pipes {
    /// Has this channel a pipe in the description? Without places for others all have one.
    pub fn has(&self, channel: usize) -> bool {
        self.places == 0 || self.contract(channel).is_some()
    }

    /// What the pipe of a channel carries at most.
    pub fn contract(&self, channel: usize) -> Option<Bucket> {
        let rate = self.contracts.rates.get(channel).copied().filter(|rate| *rate > 0)?;
        let burst = self.contracts.burst.max(1);
        Some(Bucket::per_second(rate).with_burst(burst).with_jitter(policy::CLOCK))
    }
}
