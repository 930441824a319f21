//! The steps of programs that open a pipe while the system runs: each is a line in the log.

#![no_std]
#![forbid(unsafe_code)]

use diapason_rt::{Nanos, log, time};
use diapason_tpipe::{Granted, Pipe, PipeError, Qos, Route, WhyRefused};

/// The server answers within this time.
const ANSWER: Nanos = Nanos::from_secs(5);
/// Until the device is there it asks again after this time.
const AGAIN: Nanos = Nanos::from_millis(200);

/// Bytes of a message.
const FRAME: u64 = 16;

/// Answers come until then.
#[must_use]
pub fn soon() -> Nanos {
    time::now() + ANSWER
}

/// Returns every message within `latency`, `rate` of them a second, 8 at once, 3 us for each; a
/// buffer for `slots`.
#[must_use]
pub fn wish(rate: u64, latency: Nanos, slots: u64) -> Qos {
    Qos {
        latency,
        tput: rate * FRAME * 8 * latency.0 / 1_000_000_000,
        buffer: slots * FRAME,
        execution: Nanos::from_micros(3 * slots),
        burst: 8,
    }
}

/// Returns the time in microseconds.
#[must_use]
pub const fn us(time: Nanos) -> u64 {
    time.0.div_ceil(1_000)
}

/// Logs the granted terms.
pub fn say(what: &str, granted: &Granted) {
    let Granted { budget, period, bound, slots, .. } = *granted;
    log!("{what}: C {} us, T {} us, bound {} us, {slots} slots", us(budget), us(period), us(bound));
}

/// Logs the granted terms of a pipe to a device.
pub fn say_written(what: &str, granted: &Granted) {
    say(what, granted);
    log!("taken by the server within {} us", us(granted.taken));
}

/// Opens it as soon as the device is there.
///
/// # Errors
/// Its server is not there, or does not answer.
pub fn opened(pipe: &mut Pipe, route: Route, qos: &Qos) -> Result<Granted, PipeError> {
    loop {
        match pipe.open(route, qos, soon()) {
            Ok(granted) => return Ok(granted),
            Err(PipeError::Refused(refused)) => log!("not yet: {refused}"),
            Err(error) => return Err(error),
        }
        time::sleep(AGAIN);
    }
}

/// Asks for terms that must be refused, and checks the reason.
///
/// # Errors
/// Its server is not there, or does not answer.
pub fn refused(
    pipe: &mut Pipe,
    what: &str,
    qos: &Qos,
    right: impl Fn(WhyRefused) -> bool,
) -> Result<(), PipeError> {
    match pipe.renegotiate(qos, soon()) {
        Ok(_) => log!("WRONG: {what}: given, which cannot be"),
        Err(PipeError::Refused(refused)) if right(refused.reason) => {
            log!("{what}: {}", refused.reason);
            log!("but {}", refused.would_fit);
        }
        Err(PipeError::Refused(refused)) => log!("WRONG: {what}: {refused}"),
        Err(error) => return Err(error),
    }
    Ok(())
}

/// Nothing has changed by what was refused. The bound may have: another pipe that was opened
/// meanwhile makes it longer, but not longer than the latency that was asked for.
///
/// # Errors
/// Its server is not there, or does not answer.
pub fn again(pipe: &mut Pipe, qos: &Qos, before: &Granted) -> Result<(), PipeError> {
    let now = pipe.renegotiate(qos, soon())?;
    let same = (now.budget, now.period) == (before.budget, before.period);
    let same = same && now.bound <= qos.latency;
    log!("{}", if same { "as before" } else { "WRONG: not as before" });
    Ok(())
}

/// Closes it when all is through, and says whether it was; `written` messages at least.
///
/// # Errors
/// Its server is not there, or does not answer.
pub fn finish(pipe: &mut Pipe, written: impl Fn() -> u64) -> Result<(), PipeError> {
    pipe.close(soon())?;
    let Some(report) = pipe.written() else { return Ok(()) };
    let fine = report.lost == 0 && report.through > 0 && report.through >= written();
    let verdict = if fine { "WHOLE" } else { "NOT WHOLE" };
    log!("closed: {verdict}, {} messages, {} lost", report.through, report.lost);
    Ok(())
}
