//! Registers of an xHCI 1.1 controller: offsets and bits.

/// Capability registers, from the base.
pub mod capability {
    /// Length of this region (byte) and version (high half).
    pub const LENGTH: u64 = 0x00;
    /// Slots (7:0), interrupters (18:8), ports (31:24).
    pub const PARAMETERS_1: u64 = 0x04;
    /// Scheduling threshold, event-ring segments, scratchpads.
    pub const PARAMETERS_2: u64 = 0x08;
    pub const PARAMETERS_3: u64 = 0x0c;
    /// 64-bit addresses (0), context size (2), port power (3), extended capabilities (31:16).
    pub const CAPABILITIES_1: u64 = 0x10;
    /// Where the doorbells are.
    pub const DOORBELLS: u64 = 0x14;
    /// Where the runtime registers are.
    pub const RUNTIME: u64 = 0x18;
    /// Contiguous frame ids (2) and others.
    pub const CAPABILITIES_2: u64 = 0x1c;
    /// `CAPABILITIES_1`: contexts are 64 bytes.
    pub const LARGE_CONTEXTS: u32 = 1 << 2;
    /// `CAPABILITIES_1`: ports can be switched on and off.
    pub const PORT_POWER: u32 = 1 << 3;
}

/// Operational registers, from base + capability length.
pub mod operational {
    pub const COMMAND: u64 = 0x00;
    pub const STATUS: u64 = 0x04;
    /// Bit n: pages of 2^(n+12) bytes.
    pub const PAGE_SIZE: u64 = 0x08;
    pub const NOTIFICATIONS: u64 = 0x14;
    /// Command ring (64 bits).
    pub const COMMAND_RING: u64 = 0x18;
    /// Device context array (64 bits).
    pub const CONTEXTS: u64 = 0x30;
    pub const CONFIGURE: u64 = 0x38;
    /// Port 1; each has four words.
    pub const PORTS: u64 = 0x400;
    pub const PORT_STRIDE: u64 = 0x10;
}

/// The bits of `COMMAND`.
pub mod command {
    pub const RUN: u32 = 1;
    pub const RESET: u32 = 1 << 1;
    pub const INTERRUPTS: u32 = 1 << 2;
    /// Report host system errors.
    pub const SYSTEM_ERRORS: u32 = 1 << 3;
    /// Report wraps of the microframe counter.
    pub const WRAP_EVENTS: u32 = 1 << 10;
}

/// The bits of `STATUS`.
pub mod status {
    pub const HALTED: u32 = 1;
    /// Host system error; written one clears it.
    pub const SYSTEM_ERROR: u32 = 1 << 2;
    /// Some interrupter has something; written one clears it.
    pub const EVENT: u32 = 1 << 3;
    /// Some port changed; written one clears it.
    pub const PORT_CHANGE: u32 = 1 << 4;
    /// Not ready: nothing else may be touched.
    pub const NOT_READY: u32 = 1 << 11;
    /// The controller is broken until reset.
    pub const CONTROLLER_ERROR: u32 = 1 << 12;
}

/// Bits of the low word of `COMMAND_RING`.
pub mod command_ring {
    pub const CYCLE: u32 = 1;
    /// Stop after the current command.
    pub const STOP: u32 = 1 << 1;
    /// Abort the current command.
    pub const ABORT: u32 = 1 << 2;
    pub const RUNNING: u32 = 1 << 3;
}

/// A port's first word.
pub mod port {
    pub const CONNECTED: u32 = 1;
    /// Enabled; **written one disables**.
    pub const ENABLED: u32 = 1 << 1;
    pub const OVER_CURRENT: u32 = 1 << 3;
    pub const RESET: u32 = 1 << 4;
    /// Link state, taken only with `LINK_STROBE`.
    pub const LINK_SHIFT: u32 = 5;
    pub const POWER: u32 = 1 << 9;
    pub const SPEED_SHIFT: u32 = 10;
    /// Take the link state.
    pub const LINK_STROBE: u32 = 1 << 16;
    pub const CONNECT_CHANGE: u32 = 1 << 17;
    pub const ENABLE_CHANGE: u32 = 1 << 18;
    /// A warm reset ended.
    pub const WARM_RESET_CHANGE: u32 = 1 << 19;
    pub const OVER_CURRENT_CHANGE: u32 = 1 << 20;
    pub const RESET_CHANGE: u32 = 1 << 21;
    /// The link state changed.
    pub const LINK_CHANGE: u32 = 1 << 22;
    /// The link could not be configured.
    pub const CONFIG_ERROR_CHANGE: u32 = 1 << 23;
    /// Warm reset; clears itself.
    pub const WARM_RESET: u32 = 1 << 31;
    /// All changes: each is cleared by writing one.
    pub const CHANGES: u32 = 0x00fe_0000;
    /// The bits that can be written back as they were read without any effect.
    pub const NEUTRAL: u32 = 0x4e00_ffe9;

    /// The link states of a port.
    pub mod link {
        pub const U0: u32 = 0;
        pub const U3: u32 = 3;
        pub const DISABLED: u32 = 4;
        /// Looking for a partner.
        pub const RX_DETECT: u32 = 5;
        /// Lost: needs a warm reset.
        pub const INACTIVE: u32 = 6;
        pub const POLLING: u32 = 7;
        pub const RESUME: u32 = 15;
    }
}

/// Runtime registers, from base + `RUNTIME`.
pub mod runtime {
    /// Microframe counter, fourteen bits.
    pub const MICROFRAME: u64 = 0x00;
    pub const INTERRUPTERS: u64 = 0x20;
    pub const INTERRUPTER_STRIDE: u64 = 0x20;
}

/// Registers of an interrupter.
pub mod interrupter {
    pub const MANAGEMENT: u64 = 0x00;
    /// Moderation interval (15:0) and counter (31:16), in units of 250 ns.
    pub const MODERATION: u64 = 0x04;
    /// Segments of the event ring.
    pub const TABLE_SIZE: u64 = 0x08;
    /// Segment table (64 bits).
    pub const TABLE: u64 = 0x10;
    /// Where the driver reads (64 bits).
    pub const DEQUEUE: u64 = 0x18;
    /// `MANAGEMENT`: pending; written one clears it.
    pub const PENDING: u32 = 1;
    pub const ENABLE: u32 = 1 << 1;
    /// `DEQUEUE`: the handler is busy; written one clears it.
    pub const BUSY: u32 = 1 << 3;
}

/// The ids of extended capabilities.
pub mod extended {
    /// Hand-over from the firmware.
    pub const LEGACY: u8 = 1;
    /// The capability that names the protocol of each port.
    pub const PROTOCOL: u8 = 2;
    pub const DEBUG: u8 = 10;
}

/// Speed numbers of ports and slots.
pub mod speed {
    pub const FULL: u32 = 1;
    pub const LOW: u32 = 2;
    pub const HIGH: u32 = 3;
    pub const SUPER: u32 = 4;
}
