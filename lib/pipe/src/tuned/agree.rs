//! The terms that all pipes of an endpoint get together: a pure function of their requests.

use super::claim::{Claim, Part, Wish, traffic};
use super::refused::WhyRefused;
use super::wish::{Attributes, Driver, Qos};
use crate::bill::{
    Basis, Bill, BillRefusal, Promised, Stage, Stages, Taking, Traffic, User, What, equation_nine,
    input,
};
use crate::size::Bucket;
use diapason_abi::Nanos;
use diapason_abi::pipe::Envelope;

/// The search for a period ends when it is known up to this part of it.
const PRECISION: u64 = 32;

/// The terms of one pipe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Terms {
    /// C of its thread.
    pub budget: Nanos,
    /// T of its thread, for which nothing overflows and no message is late.
    pub period: Nanos,
    /// The T of [USB 2023], by Little's law.
    pub little: Nanos,
    /// Slots of its buffer.
    pub slots: u64,
    /// The items of the pipe's latency.
    pub bill: Bill,
    /// How long it takes beyond the bill if its messages go on to the device, else zero; and until
    /// the driver has taken a message that goes to the device. Whole bills would be a lot to carry.
    pub onward: Nanos,
    pub taken: Nanos,
    /// The bound of [USB 2023, eq. 9] with the same parameters; zero of a pipe to a device.
    pub equation_nine: Nanos,
}

impl Terms {
    /// Returns the longest that a message takes.
    #[must_use]
    pub fn bound(&self) -> Nanos {
        self.bill.total + self.onward
    }
}

/// The terms of an endpoint and its pipes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Agreement<const N: usize> {
    /// Share of its I/O VCPU in millionths.
    pub share: u32,
    /// C of the driver's thread; zero if there is none.
    pub receiver: Nanos,
    /// The terms of each pipe.
    pub pipes: [Option<Terms>; N],
}

impl<const N: usize> Agreement<N> {
    pub(super) fn idle(driver: &Driver) -> Agreement<N> {
        let receiver = driver.receiver.map_or(Nanos::ZERO, |receiver| receiver.budget.0);
        Agreement { share: driver.io.least, receiver, pipes: [None; N] }
    }
}

/// Why there is no agreement: for which pipe, and what.
pub(super) type Failure = (usize, WhyRefused);

/// Returns terms that serve all `wishes` beside the other arrivals, if there are any.
pub(super) fn agree<const N: usize>(
    driver: &Driver,
    wishes: &[Option<Wish>; N],
    standing: &[Option<Claim>; N],
) -> Result<Agreement<N>, Failure> {
    let claims = core::array::from_fn(|pipe| {
        let wished = wishes[pipe].map(|wish| wish.claim(driver));
        wished.or(standing[pipe])
    });
    check(driver, wishes, &claims)?;
    check_envelopes(driver, wishes)?;
    let mut agreement = Agreement::idle(driver);
    // The delays of the driver's threads do not depend on the threads of pipes.
    while !drivers_conform(driver, &agreement, wishes, &claims) && grow(driver, &mut agreement) {}
    let pipes = all_terms(driver, &agreement, wishes, &claims)?;
    Ok(Agreement { pipes, ..agreement })
}

/// Returns whether no thread of the driver waits for budget.
fn drivers_conform<const N: usize>(
    driver: &Driver,
    agreement: &Agreement<N>,
    wishes: &[Option<Wish>; N],
    claims: &[Option<Claim>; N],
) -> bool {
    let Some((own, wish)) = wishes.iter().enumerate().find_map(|(i, it)| Some((i, it.as_ref()?)))
    else {
        return true;
    };
    let contracts = traffic(claims, own);
    let channels = contracts.each_ref().map(<[Bucket; 1]>::as_slice);
    let traffic = Traffic::among(&channels, own);
    let search = Search::new(driver, agreement, wish, traffic);
    let Ok(bill) = search.drivers() else { return false };
    let drivers = [What::BottomHalf, What::Driver].map(|what| bill.item(what));
    drivers.iter().flatten().all(|item| item.basis == Basis::Conformant)
}

/// A quarter more for the driver, if the device may take it.
fn grow<const N: usize>(driver: &Driver, agreement: &mut Agreement<N>) -> bool {
    let before = (agreement.share, agreement.receiver);
    let more = agreement.share.saturating_add(agreement.share / 4).saturating_add(1);
    agreement.share = more.min(driver.io.most).max(agreement.share);
    if let Some(receiver) = driver.receiver {
        let more = Nanos(agreement.receiver.0.saturating_add(agreement.receiver.0 / 4 + 1));
        agreement.receiver = more.min(receiver.budget.1).max(agreement.receiver);
    }
    before != (agreement.share, agreement.receiver)
}

/// Checks whether each wish makes sense, and the device can do them all.
fn check<const N: usize>(
    driver: &Driver,
    wishes: &[Option<Wish>; N],
    claims: &[Option<Claim>; N],
) -> Result<(), Failure> {
    let Attributes { packet, buffer: holds, max_slots, .. } = driver.attributes;
    let given = driver.attributes.bits_per_second();
    for (pipe, wish) in wishes.iter().enumerate() {
        let Some(Wish { qos, part, .. }) = wish else { continue };
        let max_slots = match (part, driver.output) {
            (Part::Writes, Some(output)) => output.slots,
            _ => max_slots,
        };
        let nothing = [qos.latency.0, qos.tput, qos.execution.0, qos.burst].contains(&0);
        if nothing || packet.0 == 0 || packet.0 > packet.1 {
            return Err((pipe, WhyRefused::Nothing));
        }
        if qos.slots(&driver.attributes) == 0 {
            let buffer = qos.buffer;
            return Err((pipe, WhyRefused::SmallBuffer { buffer, packet: packet.1 }));
        }
        if qos.slots(&driver.attributes) > max_slots {
            let most = max_slots.saturating_mul(packet.1);
            return Err((pipe, WhyRefused::LargeBuffer { buffer: qos.buffer, most }));
        }
        if qos.burst > holds {
            return Err((pipe, WhyRefused::DeviceBuffer { holds, needed: qos.burst }));
        }
    }
    let arrives = traffic(claims, N).map(|[bucket]| driver.attributes.bits_of(&bucket));
    let wanted = arrives.into_iter().fold(0, u64::saturating_add);
    match wishes.iter().rposition(Option::is_some) {
        Some(pipe) if wanted > given => Err((pipe, WhyRefused::Device { wanted, given })),
        _ => Ok(()),
    }
}

/// Checks whether each wish is within what is declared of it.
fn check_envelopes<const N: usize>(
    driver: &Driver,
    wishes: &[Option<Wish>; N],
) -> Result<(), Failure> {
    for (pipe, wish) in wishes.iter().enumerate() {
        let Some((wish, envelope)) = wish.as_ref().and_then(|wish| Some((wish, wish.envelope?)))
        else {
            continue;
        };
        let Wish { channel, qos, .. } = wish;
        let rate = qos.rate(&driver.attributes);
        let reason = if let Some(channel) = channel.and_then(|it| undeclared(it, wish, &envelope)) {
            WhyRefused::Undeclared { channel: channel.into() }
        } else if rate > envelope.rate {
            WhyRefused::Rate { wanted: rate, declared: envelope.rate }
        } else if qos.burst > envelope.burst {
            WhyRefused::Burst { wanted: qos.burst, declared: envelope.burst }
        } else if qos.execution > envelope.budget {
            WhyRefused::Budget { wanted: qos.execution, declared: envelope.budget }
        } else {
            continue;
        };
        return Err((pipe, reason));
    }
    Ok(())
}

/// Returns a channel that it may not use so.
fn undeclared(channel: u8, wish: &Wish, envelope: &Envelope) -> Option<u8> {
    match wish.part {
        Part::Writes => Some(channel).filter(|channel| !envelope.writes(*channel)),
        _ if !envelope.has(channel) => Some(channel),
        Part::Passes(to, _) => Some(to).filter(|to| !envelope.writes(*to)),
        Part::Reads | Part::Carries => None,
    }
}

fn all_terms<const N: usize>(
    driver: &Driver,
    agreement: &Agreement<N>,
    wishes: &[Option<Wish>; N],
    claims: &[Option<Claim>; N],
) -> Result<[Option<Terms>; N], Failure> {
    let mut all = [None; N];
    for (pipe, (wish, terms)) in wishes.iter().zip(&mut all).enumerate() {
        let Some(wish) = wish.as_ref().filter(|it| it.part != Part::Carries) else { continue };
        let contracts = traffic(claims, pipe);
        let channels = contracts.each_ref().map(<[Bucket; 1]>::as_slice);
        let traffic = Traffic::among(&channels, pipe);
        let search = Search::new(driver, agreement, wish, traffic);
        *terms = Some(search.terms().map_err(|reason| (pipe, reason))?);
    }
    Ok(all)
}

/// The search for the period of one pipe's thread.
pub(super) struct Search<'a> {
    pub driver: &'a Driver,
    io: Promised,
    receiver: Option<Promised>,
    pub qos: &'a Qos,
    part: Part,
    pub channel: u8,
    /// No shorter period makes sense, or is declared.
    shortest: Nanos,
    traffic: Traffic<'a>,
}

impl<'a> Search<'a> {
    fn new<const N: usize>(
        driver: &'a Driver,
        agreement: &Agreement<N>,
        wish: &'a Wish,
        traffic: Traffic<'a>,
    ) -> Search<'a> {
        let declared = wish.envelope.map_or(Nanos::ZERO, |envelope| envelope.period);
        let (qos, shortest) = (&wish.qos, wish.qos.execution.max(declared));
        let io = Promised::io(agreement.share, driver.io.period, driver.interrupts.gap);
        let receiver = driver.receiver.map(|r| Promised::main(agreement.receiver, r.period));
        let (part, channel) = (wish.part, wish.channel.unwrap_or_default());
        Search { driver, io, receiver, qos, part, channel, shortest, traffic }
    }

    /// Returns the longest period that fits, at most Little's. A longer one makes nothing shorter.
    fn terms(&self) -> Result<Terms, WhyRefused> {
        let shortest = self.shortest;
        let mut best = self.at(shortest)?;
        // All that is known of its thread is that it has its budget within a period.
        let longest = self.qos.little().min(self.qos.latency);
        let longest = match self.part {
            Part::Writes => longest.min(self.qos.per_burst(&self.driver.attributes)),
            _ => longest,
        };
        let longest = longest.max(shortest);
        let (mut fits, mut late) = (shortest.0, longest.0);
        if let Ok(terms) = self.at(Nanos(late)) {
            return Ok(terms);
        }
        while late - fits > 1 + fits / PRECISION {
            let middle = fits + (late - fits) / 2;
            match self.at(Nanos(middle)) {
                Ok(terms) => (best, fits) = (terms, middle),
                Err(_) => late = middle,
            }
        }
        Ok(best)
    }

    /// Returns the terms with this period, if they are good enough.
    fn at(&self, period: Nanos) -> Result<Terms, WhyRefused> {
        match self.part {
            Part::Writes => self.written(period),
            Part::Passes(to, own) => self.passed(period, to, own),
            Part::Reads | Part::Carries => self.read(period),
        }
        .and_then(|terms| {
            let (wanted, fixed) = (self.qos.latency, terms.bound());
            if fixed > wanted { Err(WhyRefused::Latency { wanted, fixed }) } else { Ok(terms) }
        })
    }

    /// Returns the terms with this period for a reader, if its buffer and the device's are large
    /// enough.
    pub(super) fn read(&self, period: Nanos) -> Result<Terms, WhyRefused> {
        let Search { driver, qos, .. } = self;
        let (slots, holds) = (qos.slots(&driver.attributes), driver.attributes.buffer);
        let (bill, equation_nine) = self.bill(period).map_err(WhyRefused::Stage)?;
        if bill.slots > slots {
            return Err(WhyRefused::Overflow { slots, needed: bill.slots });
        }
        if bill.device > holds {
            return Err(WhyRefused::DeviceBuffer { holds, needed: bill.device });
        }
        Ok(Terms { bill, equation_nine, ..self.terms_with(period, bill) })
    }

    /// Returns the terms with this bill and nothing else.
    pub(super) fn terms_with(&self, period: Nanos, bill: Bill) -> Terms {
        let (budget, little) = (self.qos.execution, self.qos.little());
        let slots = self.qos.slots(&self.driver.attributes);
        let [onward, taken, equation_nine] = [Nanos::ZERO; 3];
        Terms { budget, period, little, slots, bill, onward, taken, equation_nine }
    }

    fn bill(&self, period: Nanos) -> Result<(Bill, Nanos), BillRefusal> {
        let Driver { bus, reader, attributes, .. } = self.driver;
        let service =
            Promised { chunks: reader.chunks, ..Promised::main(self.qos.execution, period) };
        let message = self.qos.each(attributes);
        let user = User { message, wake: reader.wake, taking: Taking::Each, service: &service };
        let stages = self.stages(user);
        let bill = input(&stages, &self.traffic)?;
        Ok((bill, equation_nine(&stages, bus.worst)))
    }

    /// Returns the bill of the answers from a written channel, in this place.
    pub(super) fn back(&self, own: usize) -> Result<Bill, BillRefusal> {
        let nobody = Promised::main(Nanos(1), Nanos(1));
        let (message, wake, taking) = (Nanos::ZERO, Nanos::ZERO, Taking::Each);
        let user = User { message, wake, taking, service: &nobody };
        input(&self.stages(user), &Traffic { own, ..self.traffic })
    }

    /// Returns the bill of all arrivals, as far as it does not depend on the pipe's own thread.
    fn drivers(&self) -> Result<Bill, BillRefusal> {
        match self.part {
            Part::Reads | Part::Passes(..) => self.bill(self.shortest).map(|(bill, _)| bill),
            Part::Writes | Part::Carries => self.back(self.traffic.own),
        }
    }

    /// Returns the place in the endpoint.
    pub(super) const fn own(&self) -> usize {
        self.traffic.own
    }

    fn stages<'s>(&'s self, user: User<'s>) -> Stages<'s> {
        let Driver { bus, interrupts, bottom_half, receiver, .. } = self.driver;
        let (work, telling) = *bottom_half;
        let receiver = receiver.as_ref().zip(self.receiver.as_ref());
        Stages {
            bus: *bus,
            interrupts: *interrupts,
            bottom_half: Stage { work, telling, service: &self.io },
            receiver: receiver.map(|(receiver, service)| Stage {
                work: receiver.work,
                telling: receiver.telling,
                service,
            }),
            user,
        }
    }
}
