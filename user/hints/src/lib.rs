//! An attribute that tells blocking calls which mutex comes next.
