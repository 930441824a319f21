//! What the description tells the server in its arguments.

use crate::policy;
use diapason_canlib::agreement::CHANNELS;
use diapason_pipe::size::Bucket;

/// Bits of the number of places, and of a rate.
const PLACE_BITS: u32 = 4;
const RATE_BITS: u32 = 12;
/// Messages a second in a unit of a rate.
const RATE_UNIT: u64 = 4;

/// All of it.
#[derive(Clone, Copy)]
pub struct Told {
    /// Services, as bits of [`policy::wanted`].
    pub wanted: u64,
    /// What is to be said, as bits of [`policy::tell`].
    pub tell: u64,
    /// CAN channels whose clients open and write them, one bit each.
    pub clients: u8,
    /// What is known of pipes.
    pub pipes: Pipes,
}

/// Places for tuned pipes, and what the pipes of the description carry.
#[derive(Clone, Copy)]
pub struct Pipes {
    /// How many places there are.
    pub places: usize,
    /// Most messages a second of each channel's pipe; 0 if nobody says, or it has none.
    rates: [u64; CHANNELS],
}

impl Told {
    /// Out of the four arguments. The last one has the number of places in its lowest four bits,
    /// and then the rates of the channels' pipes, twelve bits each, in units of four messages a
    /// second.
    pub fn read([wanted, tell, clients, pipes]: [u64; 4]) -> Told {
        let wanted = if wanted == 0 { policy::wanted::CAN } else { wanted };
        let places = (pipes & ((1 << PLACE_BITS) - 1)) as usize;
        let rates = core::array::from_fn(|channel| {
            let units = pipes >> (PLACE_BITS + RATE_BITS * channel as u32);
            (units & ((1 << RATE_BITS) - 1)) * RATE_UNIT
        });
        Told { wanted, tell, clients: clients as u8, pipes: Pipes { places, rates } }
    }
}

impl Pipes {
    /// Has this channel a pipe in the description? Without places for others all have one.
    pub fn has(&self, channel: usize) -> bool {
        self.places == 0 || self.contract(channel).is_some()
    }

    /// What the pipe of a channel carries at most.
    pub fn contract(&self, channel: usize) -> Option<Bucket> {
        let rate = self.rates.get(channel).copied().filter(|rate| *rate > 0)?;
        Some(Bucket::per_second(rate).with_burst(policy::BURST))
    }
}
