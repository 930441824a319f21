//! Virtual CPUs: what a reserved share of a processor is, as pure state machines with explicit time.
#![no_std]
#![forbid(unsafe_code)]
