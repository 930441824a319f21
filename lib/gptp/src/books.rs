//! The books of a node: the frames that it does not believe, each by its reason.

use core::fmt;

/// Why a frame of gPTP is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GptpFault {
    /// The frame ends before its header, or before its message.
    Short,
    /// The message is not of gPTP (`majorSdoId`), but of another profile of IEEE 1588.
    Profile,
    Version,
    Domain,
    /// The length is too small for the kind of message.
    Length,
    /// The node has no use for this kind of message.
    Kind,
    /// A Sync or an answer that carries its own time.
    OneStep,
    /// Nanoseconds of a second or more, or a time after the year 2554.
    Timestamp,
    /// A correction of more than a second.
    Correction,
    /// A field behind the message reaches out of it.
    Tlv,
    /// The message says that it comes from this node, or passed it.
    Own,
    /// The way from the grandmaster is longer than a node keeps.
    Path,
    /// A time of a clock that is not the master of this port.
    Parent,
    /// A Follow_Up without its Sync, or an answer without its request.
    Sequence,
    /// Two nodes answer one request: there is no single neighbour.
    Neighbours,
    /// The neighbour took longer to answer than the terms say, or answered before it was asked.
    Turnaround,
    /// The link is longer than the terms say, or how long it is is not known.
    Delay,
    /// The neighbour's clock is faster or slower than the terms say.
    Rate,
    /// The time of a Sync cannot be right if the last one was.
    Disagrees,
}

impl GptpFault {
    /// Every reason, in the order of [`TimeBooks`].
    pub const ALL: [GptpFault; 19] = [
        GptpFault::Short,
        GptpFault::Profile,
        GptpFault::Version,
        GptpFault::Domain,
        GptpFault::Length,
        GptpFault::Kind,
        GptpFault::OneStep,
        GptpFault::Timestamp,
        GptpFault::Correction,
        GptpFault::Tlv,
        GptpFault::Own,
        GptpFault::Path,
        GptpFault::Parent,
        GptpFault::Sequence,
        GptpFault::Neighbours,
        GptpFault::Turnaround,
        GptpFault::Delay,
        GptpFault::Rate,
        GptpFault::Disagrees,
    ];

    /// Returns the name under which it is counted.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            GptpFault::Short => "short",
            GptpFault::Profile => "profile",
            GptpFault::Version => "version",
            GptpFault::Domain => "domain",
            GptpFault::Length => "length",
            GptpFault::Kind => "kind",
            GptpFault::OneStep => "one-step",
            GptpFault::Timestamp => "timestamp",
            GptpFault::Correction => "correction",
            GptpFault::Tlv => "tlv",
            GptpFault::Own => "own",
            GptpFault::Path => "path",
            GptpFault::Parent => "parent",
            GptpFault::Sequence => "sequence",
            GptpFault::Neighbours => "neighbours",
            GptpFault::Turnaround => "turnaround",
            GptpFault::Delay => "delay",
            GptpFault::Rate => "rate",
            GptpFault::Disagrees => "disagrees",
        }
    }
}

impl fmt::Display for GptpFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The frames that a node heard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimeBooks {
    pub heard: u64,
    /// Frames that changed or confirmed what the node knows.
    pub used: u64,
    refused: [u64; GptpFault::ALL.len()],
}

impl TimeBooks {
    /// Counts a frame as used, or by the reason why it is not.
    pub(crate) fn count<T>(&mut self, result: &Result<T, GptpFault>) {
        self.heard += 1;
        match result {
            Ok(_) => self.used += 1,
            Err(fault) => self.refused[*fault as usize] += 1,
        }
    }

    /// Counts a fault of a frame that was heard before and is looked at only now.
    pub(crate) fn count_late(&mut self, result: Result<(), GptpFault>) {
        if let Err(fault) = result {
            self.used -= 1;
            self.refused[fault as usize] += 1;
        }
    }

    /// Returns how many frames were refused for this reason.
    #[must_use]
    pub const fn refused(&self, fault: GptpFault) -> u64 {
        self.refused[fault as usize]
    }
}
