//! Build, run, test, bench.
fn main() {}
