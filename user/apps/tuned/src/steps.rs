//! The steps of a program whose pipe goes to a device: each is a line in the log.

use diapason_rt::{Nanos, log, time};
use diapason_tpipe::{Error, Granted, Pipe, Qos, Reason, Route};

/// The server answers within this time.
const ANSWER: Nanos = Nanos::from_secs(5);
/// How often a program says how it goes.
pub const REPORT: Nanos = Nanos::from_secs(1);
/// Until the device is there it asks again after this time.
const AGAIN: Nanos = Nanos::from_millis(200);

/// Bytes of a message, and messages that fit into the buffer.
const FRAME: u64 = 16;
const SLOTS: u64 = 64;

/// Answers come until then.
pub fn soon() -> Nanos {
    time::now() + ANSWER
}

/// Every message within `latency`, `rate` of them a second, 8 at once, 3 us for each.
pub fn wish(rate: u64, latency: Nanos) -> Qos {
    Qos {
        latency,
        tput: rate * FRAME * 8 * latency.0 / 1_000_000_000,
        buffer: SLOTS * FRAME,
        execution: Nanos::from_micros(3 * SLOTS),
        burst: 8,
    }
}

/// What was given.
pub fn say(what: &str, granted: &Granted) {
    let us = |time: Nanos| time.0.div_ceil(1_000);
    let Granted { budget, period, bound, taken, slots, .. } = *granted;
    log!("{what}: C {} us, T {} us, bound {} us, {slots} slots", us(budget), us(period), us(bound));
    log!("taken by the server within {} us", us(taken));
}

/// Opens it as soon as the device is there.
pub fn opened(pipe: &mut Pipe, route: Route, qos: &Qos) -> Result<Granted, Error> {
    loop {
        match pipe.open(route, qos, soon()) {
            Ok(granted) => {
                say("opened", &granted);
                return Ok(granted);
            }
            Err(Error::Refused(refused)) => log!("not yet: {refused}"),
            Err(error) => return Err(error),
        }
        time::sleep(AGAIN);
    }
}

/// What must not be given, and why.
pub fn refused(
    pipe: &mut Pipe,
    what: &str,
    qos: &Qos,
    right: impl Fn(Reason) -> bool,
) -> Result<(), Error> {
    match pipe.renegotiate(qos, soon()) {
        Ok(_) => log!("WRONG: {what}: given, which cannot be"),
        Err(Error::Refused(refused)) if right(refused.reason) => {
            log!("{what}: {}", refused.reason);
            log!("but {}", refused.would_fit);
        }
        Err(Error::Refused(refused)) => log!("WRONG: {what}: {refused}"),
        Err(error) => return Err(error),
    }
    Ok(())
}

/// Nothing has changed by what was refused.
pub fn again(pipe: &mut Pipe, qos: &Qos, before: &Granted) -> Result<(), Error> {
    let same = pipe.renegotiate(qos, soon())? == *before;
    log!("{}", if same { "as before" } else { "WRONG: not as before" });
    Ok(())
}

/// Closes it when all is through, and says whether it was; `written` messages at least.
pub fn finish(pipe: &mut Pipe, written: impl Fn() -> u64) -> Result<(), Error> {
    pipe.close(soon())?;
    let Some(report) = pipe.written() else { return Ok(()) };
    let fine = report.lost == 0 && report.through > 0 && report.through >= written();
    let verdict = if fine { "WHOLE" } else { "NOT WHOLE" };
    log!("closed: {verdict}, {} messages, {} lost", report.through, report.lost);
    Ok(())
}
