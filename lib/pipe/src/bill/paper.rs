//! [USB 2023, eq. 9], to be shown beside a bill. It is no bound: see `docs/pipes-proofs.md`.

use super::stages::Stages;
use diapason_abi::Nanos;

/// E_wc = T_usb + T_iovcpu + T_rx + T_usr: one period per stage, with the period `endpoint` that
/// the bus guarantees to the endpoint, rounded up to whole intervals of interrupts. T_rx is left
/// out where the bottom half does the work of that thread.
#[must_use]
pub fn equation_nine(stages: &Stages<'_>, endpoint: Nanos) -> Nanos {
    let interval = stages.interrupts.moderation.0;
    let usb = match endpoint.0.checked_div(interval) {
        Some(_) => Nanos(endpoint.0.div_ceil(interval).saturating_mul(interval)),
        None => endpoint,
    };
    let receiver = stages.receiver.map_or(Nanos::ZERO, |stage| stage.service.period());
    let bottom_half = stages.bottom_half.service.period();
    usb + bottom_half + receiver + stages.user.service.period()
}
