//! The short messages that a program and the driver of an endpoint exchange about a pipe.
//!
//! A program asks for a pipe, for other terms, or that it is closed; each question has a number,
//! and its answer the same. Neither side trusts the other: what makes no sense is `None`.

use super::endpoint::PipeEndpoint;
use super::refused::{RefusedPipe, WhyRefused, WouldFit};
use super::wish::{Qos, Route};
use crate::bill::{BillRefusal, What};
use diapason_abi::Nanos;

/// Bytes of a question.
pub const REQUEST_BYTES: usize = 48;
/// Bytes of an answer.
pub const ANSWER_BYTES: usize = 64;

/// A request of a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PipeCommand {
    /// A pipe on this route.
    Open(Route, Qos),
    /// Other terms for its pipe.
    Change(Qos),
    Close,
}

/// A question, and the number by which it is answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PipeRequest {
    pub token: u32,
    pub wanted: PipeCommand,
}

/// A pipe that was given: its thread's reservation, and its bound.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Granted {
    /// C of its thread.
    pub budget: Nanos,
    /// T of its thread.
    pub period: Nanos,
    /// The longest time from a message's arrival at the device until the thread is done with it; to
    /// a device, from the write, or the arrival, until it is known to be through. It counts what
    /// is open now: others that open later may make it longer, up to the wanted latency.
    pub bound: Nanos,
    /// The part until the driver has taken a message to the device; else zero.
    pub taken: Nanos,
    /// The shortest time into the buffer.
    pub least: Nanos,
    /// The T of [USB 2023], by Little's law.
    pub little: Nanos,
    /// The bound of [USB 2023, eq. 9].
    pub equation_nine: Nanos,
    /// Most messages that wait in its buffer.
    pub slots: u16,
}

/// The fate of a question.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RequestOutcome {
    /// The pipe is open on these terms.
    Granted(Granted),
    Refused(RefusedPipe),
    Closed,
}

/// The answer to a question.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PipeAnswer {
    /// The number of the question.
    pub token: u32,
    /// The fate of the question.
    pub outcome: RequestOutcome,
}

impl Granted {
    /// Returns the terms of pipe number `pipe` of an endpoint, if it is open.
    #[must_use]
    pub fn of<const N: usize>(endpoint: &PipeEndpoint<N>, pipe: usize) -> Option<Granted> {
        let terms = (*endpoint.agreement().pipes.get(pipe)?)?;
        Some(Granted {
            budget: terms.budget,
            period: terms.period,
            bound: terms.bound(),
            taken: terms.taken,
            least: terms.bill.least,
            little: terms.little,
            equation_nine: terms.equation_nine,
            slots: u16::try_from(terms.bill.slots).unwrap_or(u16::MAX),
        })
    }
}

/// Writes numbers one behind the other. A value that does not fit is a mistake of this file.
struct Pen<const N: usize>([u8; N], usize);

impl<const N: usize> Pen<N> {
    fn put<const M: usize>(mut self, bytes: [u8; M]) -> Self {
        self.0[self.1..self.1 + M].copy_from_slice(&bytes);
        self.1 += M;
        self
    }

    fn times<const M: usize>(self, times: [Nanos; M]) -> Self {
        times.iter().fold(self, |pen, time| pen.put(time.0.to_le_bytes()))
    }
}

struct Eyes<'a>(&'a [u8]);

impl Eyes<'_> {
    fn take<const M: usize>(&mut self) -> Option<[u8; M]> {
        let (bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*bytes)
    }

    fn short(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    fn long(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    fn time(&mut self) -> Option<Nanos> {
        self.long().map(Nanos)
    }
}

impl PipeRequest {
    /// Encodes the question as a message.
    #[must_use]
    pub fn bytes(&self) -> [u8; REQUEST_BYTES] {
        let none =
            Qos { latency: Nanos::ZERO, tput: 0, buffer: 0, execution: Nanos::ZERO, burst: 0 };
        let (kind, [channel, to], qos) = match self.wanted {
            PipeCommand::Open(Route::From(channel), qos) => (0, [channel, 0], qos),
            PipeCommand::Change(qos) => (1, [0; 2], qos),
            PipeCommand::Close => (2, [0; 2], none),
            PipeCommand::Open(Route::To(to), qos) => (3, [0, to], qos),
            PipeCommand::Open(Route::Through(channel, to), qos) => (4, [channel, to], qos),
        };
        let Qos { latency, tput, buffer, execution, burst } = qos;
        let head = Pen([0; REQUEST_BYTES], 0).put(self.token.to_le_bytes());
        let head = head.put([kind, channel, to, 0]);
        head.times([latency, Nanos(tput), Nanos(buffer), execution, Nanos(burst)]).0
    }

    /// Out of a message.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<PipeRequest> {
        let bytes: &[u8; REQUEST_BYTES] = bytes.try_into().ok()?;
        let mut eyes = Eyes(bytes);
        let token = eyes.short()?;
        let [kind, channel, to, 0] = eyes.take()? else { return None };
        let qos = Qos {
            latency: eyes.time()?,
            tput: eyes.long()?,
            buffer: eyes.long()?,
            execution: eyes.time()?,
            burst: eyes.long()?,
        };
        let wanted = match kind {
            0 => PipeCommand::Open(Route::From(channel), qos),
            1 => PipeCommand::Change(qos),
            2 => PipeCommand::Close,
            3 => PipeCommand::Open(Route::To(to), qos),
            4 => PipeCommand::Open(Route::Through(channel, to), qos),
            _ => return None,
        };
        Some(PipeRequest { token, wanted })
    }
}

impl PipeAnswer {
    /// Encodes the answer as a message.
    #[must_use]
    pub fn bytes(&self) -> [u8; ANSWER_BYTES] {
        let pen = Pen([0; ANSWER_BYTES], 0).put(self.token.to_le_bytes());
        let pen = match self.outcome {
            RequestOutcome::Granted(g) => {
                let [low, high] = g.slots.to_le_bytes();
                let terms = [g.budget, g.period, g.bound, g.taken, g.least];
                pen.put([0, low, high, 0]).times(terms).times([g.little, g.equation_nine])
            }
            RequestOutcome::Refused(refused) => {
                let RefusedPipe { pipe, reason, would_fit } = refused;
                let (code, [first, second]) = reason_code(reason);
                let (fit, amount) = fit_code(would_fit);
                let pipe = u8::try_from(pipe).unwrap_or(u8::MAX);
                pen.put([1, pipe, code, fit]).times([first, second, amount].map(Nanos))
            }
            RequestOutcome::Closed => pen.put([2]),
        };
        pen.0
    }

    /// Out of a message.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<PipeAnswer> {
        let bytes: &[u8; ANSWER_BYTES] = bytes.try_into().ok()?;
        let mut eyes = Eyes(bytes);
        let token = eyes.short()?;
        let outcome = match eyes.take::<4>()? {
            [0, low, high, _] => RequestOutcome::Granted(Granted {
                slots: u16::from_le_bytes([low, high]),
                budget: eyes.time()?,
                period: eyes.time()?,
                bound: eyes.time()?,
                taken: eyes.time()?,
                least: eyes.time()?,
                little: eyes.time()?,
                equation_nine: eyes.time()?,
            }),
            [1, pipe, code, fit] => {
                let reason = reason_of(code, [eyes.long()?, eyes.long()?])?;
                let would_fit = fit_of(fit, eyes.long()?)?;
                RequestOutcome::Refused(RefusedPipe { pipe: pipe.into(), reason, would_fit })
            }
            [2, ..] => RequestOutcome::Closed,
            _ => return None,
        };
        Some(PipeAnswer { token, outcome })
    }
}

/// Codes of stages begin here: eight for each kind of refusal that names one.
const TOO_SLOW: u8 = 64;
const ENDLESS: u8 = TOO_SLOW + What::ALL.len() as u8;
const AFTER: u8 = ENDLESS + What::ALL.len() as u8;

fn reason_code(reason: WhyRefused) -> (u8, [u64; 2]) {
    let pair = |a: Nanos, b: Nanos| [a.0, b.0];
    match reason {
        WhyRefused::NoChannel { channels } => (0, [channels.into(), 0]),
        WhyRefused::NoPipe => (1, [0; 2]),
        WhyRefused::Nothing => (2, [0; 2]),
        WhyRefused::SmallBuffer { buffer, packet } => (3, [buffer, packet]),
        WhyRefused::Device { wanted, given } => (4, [wanted, given]),
        WhyRefused::Latency { wanted, fixed } => (5, pair(wanted, fixed)),
        WhyRefused::Overflow { slots, needed } => (6, [slots, needed]),
        WhyRefused::DeviceBuffer { holds, needed } => (7, [holds, needed]),
        WhyRefused::Processor { thread: (budget, period) } => (8, pair(budget, period)),
        WhyRefused::NoDevice => (9, [0; 2]),
        WhyRefused::NoSuchChannel { channel, channels } => (10, [channel.into(), channels.into()]),
        WhyRefused::LargeBuffer { buffer, most } => (11, [buffer, most]),
        WhyRefused::AlreadyOpen => (12, [0; 2]),
        WhyRefused::Undeclared { channel } => (13, [channel.into(), 0]),
        WhyRefused::Rate { wanted, declared } => (14, [wanted, declared]),
        WhyRefused::Burst { wanted, declared } => (15, [wanted, declared]),
        WhyRefused::Budget { wanted, declared } => (16, pair(wanted, declared)),
        WhyRefused::Stage(refusal) => refusal_code(refusal),
    }
}

fn refusal_code(refusal: BillRefusal) -> (u8, [u64; 2]) {
    match refusal {
        BillRefusal::NoChannel { own, channels } => (32, [own as u64, channels as u64]),
        BillRefusal::NoTransfers => (33, [0; 2]),
        BillRefusal::NoContract => (34, [0; 2]),
        BillRefusal::TooFewQueued { queued, needed } => (35, [queued, needed]),
        BillRefusal::DeviceBuffer { holds, needed } => (36, [holds, needed]),
        BillRefusal::TooSlow { what, wanted, given } => (TOO_SLOW + what as u8, [wanted, given]),
        BillRefusal::Endless { what, beyond } => (ENDLESS + what as u8, [beyond.0, 0]),
    }
}

fn reason_of(code: u8, [a, b]: [u64; 2]) -> Option<WhyRefused> {
    let small = |number: u64| u32::try_from(number).ok();
    Some(match code {
        0 => WhyRefused::NoChannel { channels: small(a)? },
        1 => WhyRefused::NoPipe,
        2 => WhyRefused::Nothing,
        3 => WhyRefused::SmallBuffer { buffer: a, packet: b },
        4 => WhyRefused::Device { wanted: a, given: b },
        5 => WhyRefused::Latency { wanted: Nanos(a), fixed: Nanos(b) },
        6 => WhyRefused::Overflow { slots: a, needed: b },
        7 => WhyRefused::DeviceBuffer { holds: a, needed: b },
        8 => WhyRefused::Processor { thread: (Nanos(a), Nanos(b)) },
        9 => WhyRefused::NoDevice,
        10 => WhyRefused::NoSuchChannel { channel: small(a)?, channels: small(b)? },
        11 => WhyRefused::LargeBuffer { buffer: a, most: b },
        12 => WhyRefused::AlreadyOpen,
        13 => WhyRefused::Undeclared { channel: small(a)? },
        14 => WhyRefused::Rate { wanted: a, declared: b },
        15 => WhyRefused::Burst { wanted: a, declared: b },
        16 => WhyRefused::Budget { wanted: Nanos(a), declared: Nanos(b) },
        _ => WhyRefused::Stage(refusal_of(code, [a, b])?),
    })
}

fn refusal_of(code: u8, [a, b]: [u64; 2]) -> Option<BillRefusal> {
    let size = |number: u64| usize::try_from(number).ok();
    let what = |first: u8| What::ALL.get(usize::from(code - first)).copied();
    Some(match code {
        32 => BillRefusal::NoChannel { own: size(a)?, channels: size(b)? },
        33 => BillRefusal::NoTransfers,
        34 => BillRefusal::NoContract,
        35 => BillRefusal::TooFewQueued { queued: a, needed: b },
        36 => BillRefusal::DeviceBuffer { holds: a, needed: b },
        TOO_SLOW..ENDLESS => BillRefusal::TooSlow { what: what(TOO_SLOW)?, wanted: a, given: b },
        ENDLESS..AFTER => BillRefusal::Endless { what: what(ENDLESS)?, beyond: Nanos(a) },
        _ => return None,
    })
}

const fn fit_code(fit: WouldFit) -> (u8, u64) {
    match fit {
        WouldFit::Nothing => (0, 0),
        WouldFit::Latency(latency) => (1, latency.0),
        WouldFit::Buffer(bytes) => (2, bytes),
        WouldFit::Tput(bits) => (3, bits),
    }
}

const fn fit_of(code: u8, amount: u64) -> Option<WouldFit> {
    match code {
        0 => Some(WouldFit::Nothing),
        1 => Some(WouldFit::Latency(Nanos(amount))),
        2 => Some(WouldFit::Buffer(amount)),
        3 => Some(WouldFit::Tput(amount)),
        _ => None,
    }
}
