//! The delay of the link to a neighbour, and the neighbour's rate: requests are answered, and four
//! stamps give both (802.1AS, 11.2.19).
//!
//! An exchange that contradicts the ones before counts as lost. After too many lost ones in a row
//! the link begins anew. A link is capable once three exchanges agree. If the delay changes, or the
//! link was silent, the delay is unknown until three new exchanges agree.
//!
//! A neighbour whose stamps are of the time that it follows sets its clock once it knows that. Then
//! two exchanges in a row agree with each other, and not with those before. The measurement begins
//! with these two, and the link stays capable: `ptp4l` takes a node that fell silent for gone.

use crate::terms::SECOND;
use crate::{GptpFault, PortIdentity, SyncTerms};
use diapason_abi::Nanos;

/// Exchanges after which the delay is known.
pub(crate) const KNOWN: usize = 3;
/// Exchanges that are kept.
const KEPT: usize = 8;
const PPM: i128 = 1_000_000;

/// The first part of a neighbour's answer: it tells when the request came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Answer {
    source: PortIdentity,
    /// When the neighbour got the request, and when the answer came.
    received: Nanos,
    came: Nanos,
    correction_ns: i64,
}

/// A request under way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Request {
    sent: Option<Nanos>,
    answer: Option<Answer>,
    /// When the answer left, and its correction.
    left: Option<(Nanos, i64)>,
    done: bool,
}

/// Four stamps that agree with those before, as far as later ones need them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Exchange {
    /// When the answer left by the neighbour's clock, and came by the node's own.
    neighbour: i128,
    own: i128,
    delay: i128,
}

/// Numbers of messages begin behind this one. They wrap after ten messages, in every run, so that
/// nothing can come to depend on their order.
pub(crate) const FIRST_SEQUENCE: u16 = u16::MAX - 10;

/// The link at one port.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PeerLink {
    own: PortIdentity,
    next: Nanos,
    sequence: u16,
    request: Option<Request>,
    lost: u32,
    capable: bool,
    exchanges: [Exchange; KEPT],
    count: usize,
    /// The last exchange, if it contradicts those that are kept in the neighbour's time only.
    apart: Option<Exchange>,
}

fn wide(time: Nanos) -> i128 {
    i128::from(time.0)
}

/// Returns how far the neighbour's clock advances while the node's own counts, since an earlier
/// exchange. `None` if no two clocks differ so much.
fn rate(terms: &SyncTerms, first: Option<&Exchange>, exchange: &Exchange) -> Option<(i128, i128)> {
    let Some(first) = first else { return Some((1, 1)) };
    let (told, passed) = (exchange.neighbour - first.neighbour, exchange.own - first.own);
    let (drift, stamps) = (i128::from(terms.base().drift_ppm), 4 * wide(terms.stamp()));
    let fastest = passed * (PPM + drift) / (PPM - drift);
    let slowest = passed * (PPM - drift) / (PPM + drift);
    let possible = passed > 0 && (slowest - stamps..=fastest + stamps).contains(&told);
    possible.then(|| (told.clamp(slowest, fastest), passed))
}

/// Returns the delay in one direction, of the time there and back by the neighbour's clock, and of
/// that in which the neighbour answered.
fn delay(terms: &SyncTerms, round: i128, turnaround: i128) -> Result<i128, GptpFault> {
    let delay = (round - turnaround).div_euclid(2);
    let (error, longest) = (wide(terms.delay_error()), wide(terms.base().link));
    if delay < -error || delay > longest + error {
        return Err(GptpFault::Delay);
    }
    Ok(delay.max(0))
}

impl PeerLink {
    /// Returns a link whose first request is due `now`.
    pub const fn new(own: PortIdentity, now: Nanos) -> PeerLink {
        let none = Exchange { neighbour: 0, own: 0, delay: 0 };
        let (exchanges, count) = ([none; KEPT], 0);
        let (request, capable) = (None, false);
        PeerLink {
            own,
            next: now,
            sequence: FIRST_SEQUENCE,
            request,
            lost: 0,
            capable,
            exchanges,
            count,
            apart: None,
        }
    }

    /// Returns whether both directions work.
    pub const fn is_capable(&self) -> bool {
        self.capable
    }

    /// Returns the delay, if it is known.
    pub fn delay(&self) -> Option<Nanos> {
        (self.count >= KNOWN).then(|| Nanos(u64::try_from(self.mean()).unwrap_or(0)))
    }

    /// Returns when the next request is due.
    pub const fn next(&self) -> Nanos {
        self.next
    }

    /// Returns the number of the request that has to be sent now.
    pub fn look(&mut self, terms: &SyncTerms, now: Nanos) -> Option<u16> {
        if now < self.next {
            return None;
        }
        if self.request.is_some_and(|request| !request.done) {
            self.lost += 1;
        }
        if self.lost > terms.base().losses {
            self.begin_anew();
        }
        self.next += Nanos(((now - self.next).0 / SECOND.0 + 1).saturating_mul(SECOND.0));
        self.sequence = self.sequence.wrapping_add(1);
        self.request = Some(Request::default());
        Some(self.sequence)
    }

    /// The request of this number left. The answer may have been faster than this stamp.
    pub fn sent(
        &mut self,
        terms: &SyncTerms,
        sequence: u16,
        stamp: Nanos,
    ) -> Result<(), GptpFault> {
        if let Some(request) = self.request_of(sequence) {
            request.sent = Some(stamp);
        }
        self.finish(terms)
    }

    /// The first part of an answer came.
    pub fn answered(
        &mut self,
        source: PortIdentity,
        sequence: u16,
        requester: PortIdentity,
        answer: (Nanos, i64, Nanos),
    ) -> Result<(), GptpFault> {
        let (received, correction_ns, came) = answer;
        let own = self.own;
        let request = self.request_of(sequence).filter(|_| requester == own);
        let request = request.ok_or(GptpFault::Sequence)?;
        if request.answer.is_some_and(|before| before.source != source) {
            self.begin_anew();
            return Err(GptpFault::Neighbours);
        }
        if request.done || request.answer.is_some() {
            return Err(GptpFault::Sequence);
        }
        request.answer = Some(Answer { source, received, came, correction_ns });
        Ok(())
    }

    /// The second part of an answer came: when the first one left.
    pub fn completed(
        &mut self,
        terms: &SyncTerms,
        source: PortIdentity,
        sequence: u16,
        requester: PortIdentity,
        sent: (Nanos, i64),
    ) -> Result<(), GptpFault> {
        let own = self.own;
        let request = self.request_of(sequence).filter(|_| requester == own);
        let answer = |it: &Request| it.answer.is_some_and(|answer| answer.source == source);
        let request = request.filter(|it| it.left.is_none() && answer(it));
        request.ok_or(GptpFault::Sequence)?.left = Some(sent);
        self.finish(terms)
    }

    /// Measures once all stamps are there. Without a measurement the request counts as lost when
    /// the next one is due.
    fn finish(&mut self, terms: &SyncTerms) -> Result<(), GptpFault> {
        let Some(Request {
            sent: Some(asked),
            answer: Some(answer),
            left: Some(left),
            done: false,
        }) = self.request
        else {
            return Ok(());
        };
        let (left, correction_ns) = left;
        let correction = i128::from(answer.correction_ns) + i128::from(correction_ns);
        let turnaround = wide(left) + correction - wide(answer.received);
        let exchange = Exchange { neighbour: wide(left), own: wide(answer.came), delay: 0 };
        let exchange = self.measure(terms, asked, turnaround, exchange)?;
        self.request = self.request.map(|request| Request { done: true, ..request });
        self.keep(exchange);
        Ok(())
    }

    /// Returns the exchange with its delay.
    fn measure(
        &mut self,
        terms: &SyncTerms,
        asked: Nanos,
        turnaround: i128,
        exchange: Exchange,
    ) -> Result<Exchange, GptpFault> {
        let stamps = 2 * wide(terms.stamp());
        if !(-stamps..=wide(terms.base().turnaround)).contains(&turnaround) {
            return Err(GptpFault::Turnaround);
        }
        let round = exchange.own - wide(asked);
        let Some((told, passed)) = rate(terms, self.kept().first(), &exchange) else {
            let delay = delay(terms, round, turnaround)?;
            return self.set_apart(terms, Exchange { delay, ..exchange });
        };
        let delay = delay(terms, (round * told).div_euclid(passed), turnaround)?;
        if self.count > 0 && (delay - self.mean()).abs() > 2 * wide(terms.delay_error()) {
            self.measure_anew();
        }
        Ok(Exchange { delay, ..exchange })
    }

    /// Takes an exchange in which the neighbour's clock is another than in those before. It is
    /// believed if the one before says the same.
    fn set_apart(&mut self, terms: &SyncTerms, exchange: Exchange) -> Result<Exchange, GptpFault> {
        let agrees = |before: &Exchange| rate(terms, Some(before), &exchange).is_some();
        let Some(before) = self.apart.take().filter(agrees) else {
            self.apart = Some(exchange);
            return Err(GptpFault::Rate);
        };
        self.measure_anew();
        self.keep(before);
        Ok(exchange)
    }

    fn kept(&self) -> &[Exchange] {
        self.exchanges.get(..self.count).unwrap_or_default()
    }

    fn mean(&self) -> i128 {
        let sum: i128 = self.kept().iter().map(|exchange| exchange.delay).sum();
        sum / (self.count.max(1) as i128)
    }

    fn keep(&mut self, exchange: Exchange) {
        if self.count == KEPT {
            self.exchanges.copy_within(1.., 0);
            self.count -= 1;
        }
        self.exchanges[self.count] = exchange;
        self.count += 1;
        (self.lost, self.apart) = (0, None);
        self.capable |= self.count >= KNOWN;
    }

    /// Forgets the delay: the cable may be another one.
    pub const fn measure_anew(&mut self) {
        (self.count, self.apart) = (0, None);
    }

    fn begin_anew(&mut self) {
        (self.capable, self.lost, self.request) = (false, 0, None);
        self.measure_anew();
    }

    fn request_of(&mut self, sequence: u16) -> Option<&mut Request> {
        self.request.as_mut().filter(|_| sequence == self.sequence)
    }
}
