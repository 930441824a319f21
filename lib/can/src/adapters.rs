//! The USB interfaces to CAN buses that are served, by what they say they are.

/// The vendor of interfaces that speak Kvaser's protocol.
pub const KVASER_VENDOR: u16 = 0x0bfd;
/// The first and the last product of that vendor that is served.
pub const KVASER_PRODUCTS: (u16, u16) = (0x0102, 0x011b);
/// The vendors and products of interfaces that speak the protocol of Linux's `gs_usb`.
pub const GS_USB: [(u16, u16); 5] =
    [(0x1d50, 0x606f), (0x1209, 0x2323), (0x1cd2, 0x606f), (0x16d0, 0x10b8), (0x16d0, 0x0f30)];

/// A protocol of interfaces.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Family {
    Kvaser,
    GsUsb,
}

/// Returns the protocol of the interface of this vendor and product, if it is served.
#[must_use]
pub fn family(vendor: u16, product: u16) -> Option<Family> {
    let (first, last) = KVASER_PRODUCTS;
    if vendor == KVASER_VENDOR && (first..=last).contains(&product) {
        return Some(Family::Kvaser);
    }
    GS_USB.contains(&(vendor, product)).then_some(Family::GsUsb)
}
