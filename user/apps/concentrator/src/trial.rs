//! Tries every call of `diapason-canlib` on a channel with a receiver on its bus, and says what was
//! not as it must be, or `every call does what it says`. Argument: the channel.

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use diapason_can::bus::Health;
use diapason_can::frame::standard;
use diapason_canlib::{CanFrame, Channel, Error, Filter, Phase};
use diapason_rt::{Arguments, Nanos, entry, heap, log, time};
use embedded_can::{blocking, nb as not_blocking};

entry!(main);
// Parts of `diapason-can` that nothing here calls would allocate: no page of it is ever taken.
heap!(4 * 1024);

/// Identifier and least number of the receiver's receipts, and how long it is silent before one.
const RECEIPT: u32 = 0x00e;
const SILENCE: Nanos = Nanos::from_millis(50);
/// More than pipe and interface hold together.
const MANY: u64 = 400;

/// The result of a trial, with the failed step.
type Tried = Result<(), (&'static str, Option<Error>)>;

fn main(Arguments([number, ..]): Arguments) {
    match try_all(number as usize) {
        Ok(()) => log!("every call does what it says"),
        Err((what, error)) => log!("WRONG: {what}: {error:?}"),
    }
}

fn soon() -> Nanos {
    time::now() + Nanos::from_secs(2)
}

/// The call must have this result.
fn expect<T: PartialEq>(what: &'static str, is: Result<T, Error>, want: Result<T, Error>) -> Tried {
    if is == want { Ok(()) } else { Err((what, is.err())) }
}

fn holds(what: &'static str, so: bool) -> Tried {
    if so { Ok(()) } else { Err((what, None)) }
}

fn frame(number: u64) -> Result<CanFrame, (&'static str, Option<Error>)> {
    let id = standard(0x155).map_err(|_| ("an identifier", None))?;
    CanFrame::data(id, &number.to_le_bytes()).map_err(|_| ("a frame", None))
}

fn try_all(number: usize) -> Tried {
    expect("no such channel", Channel::listen(77).map(drop), Err(Error::NoSuchChannel))?;
    let mut reader = Channel::listen(number).map_err(|error| ("listen", Some(error)))?;
    expect("a reader writes", reader.write(&frame(0)?), Err(Error::ReceiveOnly))?;
    let mut channel = Channel::open(number, soon()).map_err(|error| ("open", Some(error)))?;
    off_the_bus(&mut channel)?;
    let sent = on_the_bus(&mut channel)?;
    receipts(&mut channel, sent)?;
    silence(&mut channel)?;
    traits(&mut channel, sent)
}

fn off_the_bus(channel: &mut Channel) -> Tried {
    expect("write off the bus", channel.write(&frame(0)?), Err(Error::OffBus))?;
    expect("a rate", channel.set_bus_params(777_777, 800), Ok(()))?;
    // The interface may still be probed: an answer comes when it is known.
    expect("no such rate", channel.bus_on(soon()), Err(Error::NoSuchRate))?;
    expect("still off", channel.write(&frame(0)?), Err(Error::OffBus))?;
    expect("another rate", channel.set_bus_params(500_000, 800), Ok(()))?;
    expect("on", channel.bus_on(soon()), Ok(()))?;
    expect("a rate on the bus", channel.set_bus_params(250_000, 800), Err(Error::OnBus))
}

/// Sends more than there is room for, and waits until all is through.
fn on_the_bus(channel: &mut Channel) -> Result<u64, (&'static str, Option<Error>)> {
    let mut sent = 0;
    let full = loop {
        match channel.write(&frame(sent)?) {
            Ok(()) if sent < MANY => sent += 1,
            other => break other,
        }
    };
    expect("a full pipe", full, Err(Error::Full))?;
    let nothing_was_through = channel.write_sync(Nanos::ZERO);
    expect("not through yet", nothing_was_through, Err(Error::TimedOut))?;
    while sent < MANY {
        expect("write and wait", channel.write_wait(&frame(sent)?, soon()), Ok(()))?;
        sent += 1;
    }
    expect("all through", channel.write_sync(soon()), Ok(()))?;
    let status = channel.request_chip_status(soon()).map_err(|error| ("status", Some(error)))?;
    let well = (status.phase, status.health, status.counters, status.pending());
    holds("well", well == (Phase::Open, Health::ErrorActive, (0, 0), 0))?;
    holds("counted", (status.written, status.through, status.given_up) == (sent, sent, 0))?;
    holds("timed", status.last_through.0 > Nanos::ZERO)?;
    Ok(sent)
}

/// Checks that returning messages pass a filter, or do not.
fn receipts(channel: &mut Channel, sent: u64) -> Tried {
    time::sleep(SILENCE);
    let counted = last_count(channel);
    holds("received, in order", counted == Some((sent as u32, 0)))?;
    let filters = [Filter::only(false, RECEIPT + 1), Filter::all(true)];
    expect("filters", channel.set_acceptance_filter(&filters), Ok(()))?;
    let many = [Filter::all(false); 17];
    expect("many", channel.set_acceptance_filter(&many), Err(Error::TooManyFilters))?;
    send_one(channel, sent)?;
    time::sleep(SILENCE);
    expect("filtered", channel.read_wait(time::now()).map(drop), Err(Error::TimedOut))?;
    expect("none", channel.set_acceptance_filter(&[]), Ok(()))?;
    send_one(channel, sent + 1)?;
    let receipt = channel.read_wait(soon()).map_err(|error| ("a receipt", Some(error)))?;
    holds("its identifier", receipt.frame.raw_id() == RECEIPT)
}

fn send_one(channel: &mut Channel, number: u64) -> Tried {
    expect("one more", channel.write(&frame(number)?), Ok(()))?;
    expect("through", channel.write_sync(soon()), Ok(()))
}

/// Returns the last receipt: frames read, and those that were wrong.
fn last_count(channel: &mut Channel) -> Option<(u32, u32)> {
    let mut last = None;
    while let Ok(message) = channel.read() {
        if let &[a, b, c, d, e, f, g, h] = message.frame.bytes() {
            last = Some((u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h])));
        }
    }
    last
}

fn silence(channel: &mut Channel) -> Tried {
    expect("off", channel.bus_off(soon()), Ok(()))?;
    expect("off twice", channel.bus_off(soon()), Ok(()))?;
    expect("silent", channel.set_silent(true), Ok(()))?;
    expect("on and silent", channel.bus_on(soon()), Ok(()))?;
    expect("write in silence", channel.write(&frame(0)?), Err(Error::Silent))?;
    expect("off again", channel.bus_off(soon()), Ok(()))?;
    expect("loud", channel.set_silent(false), Ok(()))?;
    expect("on again", channel.bus_on(soon()), Ok(()))
}

/// Returns the traits, by code that knows nothing else.
fn traits(channel: &mut Channel, sent: u64) -> Tried {
    fn transmit<C: blocking::Can<Frame = CanFrame>>(
        can: &mut C,
        frame: &CanFrame,
    ) -> Result<(), C::Error> {
        can.transmit(frame)
    }
    fn receive<C: not_blocking::Can<Frame = CanFrame>>(
        can: &mut C,
    ) -> nb::Result<CanFrame, C::Error> {
        can.receive()
    }
    while channel.read().is_ok() {}
    holds("nothing", receive(channel) == Err(nb::Error::WouldBlock))?;
    expect("blocking", transmit(channel, &frame(sent + 2)?), Ok(()))?;
    expect("through", channel.write_sync(soon()), Ok(()))?;
    time::sleep(SILENCE);
    let receipt = receive(channel).map_err(|_| ("a receipt by the trait", None))?;
    holds("its identifier", receipt.raw_id() == RECEIPT)?;
    expect("the end", channel.bus_off(soon()), Ok(()))
}
