//! The descriptors of a device, as its model gives them.

/// The descriptors of a device.
#[derive(Clone, Debug, Default)]
pub struct Descriptors {
    pub device: Vec<u8>,
    /// The first configuration, with all it contains.
    pub configuration: Vec<u8>,
    pub others: Vec<Vec<u8>>,
    /// The texts with index 1, 2, …
    pub strings: Vec<String>,
    /// The binary object store; empty: none.
    pub bos: Vec<u8>,
    /// Descriptors with a type of their own, as (type, bytes): hub, HID report.
    pub more: Vec<(u8, Vec<u8>)>,
    /// The device works at high speed, so it can say what it would be at full speed.
    pub high_speed: bool,
}

impl Descriptors {
    pub(crate) fn configurations(&self) -> impl Iterator<Item = &[u8]> {
        [&self.configuration].into_iter().chain(&self.others).map(Vec::as_slice)
    }
}

/// Returns the descriptors in a row of them.
pub(crate) fn parts(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let length = usize::from(*rest.first()?).max(2);
        let (part, after) = rest.split_at_checked(length)?;
        rest = after;
        Some(part)
    })
}
