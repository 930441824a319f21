//! Transfers as the model of a controller tells them. The device's address is its slot.

use diapason_capture::usb::{TransferKind, TransferStatus, TransferStep, UsbmonEvent};
use diapason_sim::TransferRecord;
use diapason_usb::context::EndpointKind;
use diapason_usb::trb::Completion;

/// Returns a transfer's beginning or end, as it is in a capture of this bus.
#[must_use]
pub fn event(transfer: &TransferRecord, bus: u16) -> UsbmonEvent<'_> {
    UsbmonEvent {
        time: transfer.time,
        id: transfer.id,
        kind: kind(transfer.kind),
        endpoint: transfer.endpoint,
        device: transfer.slot,
        bus,
        step: transfer
            .end
            .map_or(TransferStep::Submitted, |code| TransferStep::Completed(status(code))),
        setup: transfer.setup.map(diapason_usb::Setup::encode),
        length: transfer.length,
        data: &transfer.data,
    }
}

fn kind(kind: EndpointKind) -> TransferKind {
    match kind {
        EndpointKind::Control => TransferKind::Control,
        EndpointKind::BulkIn | EndpointKind::BulkOut => TransferKind::Bulk,
        EndpointKind::InterruptIn | EndpointKind::InterruptOut => TransferKind::Interrupt,
        EndpointKind::IsochIn | EndpointKind::IsochOut => TransferKind::Isochronous,
    }
}

fn status(code: Completion) -> TransferStatus {
    match code {
        Completion::Success | Completion::ShortPacket => TransferStatus::Success,
        Completion::Stall => TransferStatus::Stall,
        Completion::Babble | Completion::IsochBufferOverrun => TransferStatus::Overflow,
        Completion::MissedService => TransferStatus::Missed,
        Completion::Stopped => TransferStatus::Cancelled,
        Completion::BandwidthOverrun | Completion::Trb => TransferStatus::Invalid,
        _ => TransferStatus::Error,
    }
}
