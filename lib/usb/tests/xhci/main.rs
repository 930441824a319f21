//! The xHCI driver against a small controller on command, and against the model of a real one.

mod bench;
mod echo;
mod enumerate;
mod fake;
mod hostile;
mod lanes;
mod lent;
mod machine;
mod model;
mod plug;
mod recover;
mod sensor;
mod start;
mod transfers;
