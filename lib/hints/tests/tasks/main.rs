//! The parser's results for tasks: decisions, refusals, rewritten functions, random ones.

mod common;
mod expansion;
mod oracle;
mod refusals;
mod shapes;
mod soup;
