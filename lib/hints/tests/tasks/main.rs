//! What the code parser makes of tasks: decisions, refusals, rewritten functions, random ones.

mod common;
mod expansion;
mod oracle;
mod refusals;
mod shapes;
mod soup;
