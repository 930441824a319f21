//! The deterministic machine: the real kernel core and the very images that boot, at virtual time.
