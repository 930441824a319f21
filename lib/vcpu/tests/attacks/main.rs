//! The theorems of the servers and of the closed forms, attacked on the simulated processor.
//!
//! `campaigns` are random: every set is admitted by a closed form, many filled to the brim, and
//! then everything the modules promise is checked on the trace. `counterexamples` are cases in
//! which the rules of [USB 2023], or rules we tried and rejected, break; ours hold there.

mod campaigns;
mod case;
mod changes;
mod checks;
mod counterexamples;
mod inheritance;
mod rejected;
mod supply;
