//! The messages that people see, to the character. A change here is a change of the interface.
//!
//! To accept new texts, run this test with `DIAPASON_BLESS=1` and read the difference.

use crate::common::{ENGINE, problems, program};
use diapason_system::{Permit, RunOptions, build, parse};
use std::path::PathBuf;

#[track_caller]
fn looks_like(file: &str, rendered: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/rendered").join(file);
    let rendered = format!("{rendered}\n");
    if std::env::var_os("DIAPASON_BLESS").is_some() {
        std::fs::write(&path, &rendered).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(rendered, golden, "\n{rendered}");
}

#[test]
fn several_mistakes_at_once() {
    let text = ENGINE
        .replace("priority = 40", "priorty = 40")
        .replace("\"hpet\"]", "\"hpte\"]")
        .replace("name = \"samples\"\nsize = \"16K\"", "name = \"readings\"\nsize = \"15K\"");
    looks_like("several.txt", &problems(&text).plain());
}

#[test]
fn too_little_memory() {
    let text = ENGINE.replace("heap = \"64K\"", "heap = \"40M\"");
    looks_like("memory.txt", &problems(&text).plain());
}

#[test]
fn a_program_the_kernel_would_refuse() {
    let options = RunOptions { horizon_ns: 1, record_bytes: 0, watch: false };
    let found =
        build(Permit::granted(), &parse("engine.toml", ENGINE).unwrap(), &options, &mut |name| {
            let mut file = program();
            file[64 + 4] = if name == "control" { 3 } else { 1 };
            Ok(file)
        });
    looks_like("program.txt", &found.unwrap_err().plain());
}

#[test]
fn colours() {
    let text =
        "[system]\nname = \"s\"\nmemory = \"1G\"\n[[process]]\nname = \"p\"\npriority = 99\n";
    looks_like("colours.txt", &problems(text).coloured());
}
