//! State messages.
