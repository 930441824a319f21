//! Bills under attack: endpoints simulated tick by tick, on the servers of the kernel.

mod campaigns;
mod case;
mod chains;
mod counterexamples;
mod known;
mod looks;
mod machine;
mod outputs;
mod pipe;
mod pumps;
mod relays;
mod tellings;
