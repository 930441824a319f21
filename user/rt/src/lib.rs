//! What a user program links.
