//! The diapason command.
