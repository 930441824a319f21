//! Transfers as the model of a controller tells them. The device's address is its slot.

use diapason_capture::usb::{Event, Kind, Status, Step};
use diapason_sim::Transfer;
use diapason_usb::context::EndpointKind;
use diapason_usb::trb::Completion;

/// Returns a transfer's beginning or end, as it is in a capture of this bus.
#[must_use]
pub fn event(transfer: &Transfer, bus: u16) -> Event<'_> {
    Event {
        time: transfer.time,
        id: transfer.id,
        kind: kind(transfer.kind),
        endpoint: transfer.endpoint,
        device: transfer.slot,
        bus,
        step: transfer.end.map_or(Step::Submitted, |code| Step::Completed(status(code))),
        setup: transfer.setup.map(diapason_usb::Setup::encode),
        length: transfer.length,
        data: &transfer.data,
    }
}

fn kind(kind: EndpointKind) -> Kind {
    match kind {
        EndpointKind::Control => Kind::Control,
        EndpointKind::BulkIn | EndpointKind::BulkOut => Kind::Bulk,
        EndpointKind::InterruptIn | EndpointKind::InterruptOut => Kind::Interrupt,
        EndpointKind::IsochIn | EndpointKind::IsochOut => Kind::Isochronous,
    }
}

fn status(code: Completion) -> Status {
    match code {
        Completion::Success | Completion::ShortPacket => Status::Success,
        Completion::Stall => Status::Stall,
        Completion::Babble | Completion::IsochBufferOverrun => Status::Overflow,
        Completion::MissedService => Status::Missed,
        Completion::Stopped => Status::Cancelled,
        Completion::BandwidthOverrun | Completion::Trb => Status::Invalid,
        _ => Status::Error,
    }
}
