//! Makes cargo link the kernel again when its linker script changes.
//!
//! The script reaches the linker as a flag (`cli/src/metal.rs`), and cargo does not look into the
//! files that flags name.

fn main() {
    println!("cargo:rerun-if-changed=kernel.ld");
}
