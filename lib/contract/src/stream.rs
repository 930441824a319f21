//! Cameras that nobody watches: where their bytes go.

/// The memory of each stream, by its number.
pub const DATA: [&str; crate::settings::MOST] =
    ["stream0.data", "stream1.data", "stream2.data", "stream3.data"];
