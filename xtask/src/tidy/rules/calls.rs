//! Rules about what may be called where.

use super::super::Problem;
use super::super::source::{Source, words};

/// Returns one problem per whole word of `banned` in the code of a file.
fn banned(source: &Source, banned: &[&str], remedy: &str) -> Vec<Problem> {
    if !source.is_rust() {
        return Vec::new();
    }
    let hits = source.code_lines().flat_map(|(line, code)| {
        let found = banned.iter().filter(move |word| words(code, word).next().is_some());
        found.map(move |word| {
            let word = word.trim_end_matches(['(', '!']);
            Problem::new(&source.path, line, format!("`{word}`: {remedy}"))
        })
    });
    hits.collect()
}

fn inside(source: &Source, folders: &[&str]) -> bool {
    folders.iter().any(|folder| source.path.starts_with(folder))
}

/// Nothing unfinished is committed.
pub fn unfinished(source: &Source) -> Vec<Problem> {
    banned(source, &["todo!", "unimplemented!", "dbg!"], "finish it, or leave it out")
}

/// Only the commands talk to people; examples and integration tests show what they found, and the
/// scripts of packages tell cargo what to watch.
pub fn printing(source: &Source) -> Vec<Problem> {
    let shown = ["/examples/", "/tests/"].iter().any(|folder| source.path.contains(folder));
    let shown = shown || source.path.ends_with("/build.rs") && !source.path.contains("/src/");
    if shown || inside(source, &["cli/", "xtask/", "papers/reproduce/"]) {
        return Vec::new();
    }
    let calls = ["println!", "print!", "eprintln!", "eprint!"];
    banned(source, &calls, "return a value and let `cli` or `xtask` print it")
}

/// Files that may look at the wall clock, all to guard against hangs, to tell a person how long
/// something took, or to hold a run back for people's tools.
const WALL_CLOCK: [&str; 6] = [
    "cli/src/pace.rs",
    "cli/src/qemu.rs",
    "cli/src/simulate/progress.rs",
    "kernel/core/tests/storm.rs",
    "xtask/src/campaign/mod.rs",
    "xtask/src/tally.rs",
];

/// No result depends on how fast the host is.
pub fn wall_clock(source: &Source) -> Vec<Problem> {
    if WALL_CLOCK.contains(&source.path.as_str()) {
        return Vec::new();
    }
    let remedy = "machines are shared: assert on counted instructions or on the machine's own time";
    banned(source, &["Instant::now", "SystemTime", "UNIX_EPOCH"], remedy)
}

/// The kernel computes in integers.
pub fn floating_point(source: &Source) -> Vec<Problem> {
    if !inside(source, &["kernel/"]) || source.path.contains("/tests/") {
        return Vec::new();
    }
    banned(source, &["f32", "f64"], "the kernel has no floating point: use integers")
}

/// Where assembly may be: two homes, the memory routines both share, the simulator's way into
/// programs, and programs that must do what no compiler would.
const ASSEMBLY: [&str; 7] = [
    "kernel/x86_64/",
    "user/rt/",
    "lib/routines/",
    "sim/src/",
    "user/apps/bench/",
    "user/apps/hostile/",
    "user/apps/trials/",
];

/// Assembly has few homes.
pub fn assembly(source: &Source) -> Vec<Problem> {
    if inside(source, &ASSEMBLY) {
        return Vec::new();
    }
    let remedy = "assembly belongs in kernel/x86_64 (privileged) or user/rt (system calls)";
    if source.path.ends_with(".s") {
        return vec![Problem::new(&source.path, 1, remedy)];
    }
    banned(source, &["asm!", "global_asm!", "naked_asm!"], remedy)
}

/// Only the planner permits an archive; the tests of its builder stand in for it.
pub fn permits(source: &Source) -> Vec<Problem> {
    if inside(source, &["lib/plan/src/", "lib/system/src/archive.rs", "lib/system/tests/"]) {
        return Vec::new();
    }
    banned(source, &["Permit::granted"], "ask a plan: `Plan::clear`, or `Unproved`")
}

#[cfg(test)]
mod tests {
    use super::super::fixture::fires;
    use super::*;

    #[test]
    fn unfinished_code_is_found_but_not_in_comments() {
        let text = "fn a() { todo!() }\n// todo!()\nlet s = \"dbg!\";\ndbg!(1);\n";
        assert_eq!(fires(unfinished, "lib/a/src/lib.rs", text), [1, 4]);
    }

    #[test]
    fn only_commands_print() {
        let text = "println!(\"x\");\n";
        assert_eq!(fires(printing, "lib/a/src/lib.rs", text), [1]);
        assert_eq!(fires(printing, "cli/src/main.rs", text), [0; 0]);
        assert_eq!(fires(printing, "lib/a/examples/show.rs", text), [0; 0]);
    }

    #[test]
    fn the_wall_clock_is_off_limits() {
        let text = "\nlet t = Instant::now();\n";
        assert_eq!(fires(wall_clock, "lib/a/tests/speed.rs", text), [2]);
        assert_eq!(fires(wall_clock, "cli/src/qemu.rs", text), [0; 0]);
    }

    #[test]
    fn the_kernel_has_no_floating_point() {
        let text = "let x: f64 = 0.5;\nlet f64_like = 1;\n";
        assert_eq!(fires(floating_point, "kernel/core/tests/a.rs", text), [0; 0]);
        assert_eq!(fires(floating_point, "kernel/core/src/a.rs", text), [1]);
        assert_eq!(fires(floating_point, "cli/src/a.rs", text), [0; 0]);
    }

    #[test]
    fn assembly_stays_in_its_homes() {
        let text = "core::arch::asm!(\"nop\");\n";
        assert_eq!(fires(assembly, "lib/a/src/lib.rs", text), [1]);
        assert_eq!(fires(assembly, "lib/a/src/fast.s", "nop\n"), [1]);
        assert_eq!(fires(assembly, "kernel/x86_64/src/cpu.rs", text), [0; 0]);
        assert_eq!(fires(assembly, "user/rt/src/call.rs", text), [0; 0]);
    }

    #[test]
    fn only_the_planner_permits_an_archive() {
        let text = "let bytes = build(Permit::granted(), &system);\n";
        assert_eq!(fires(permits, "cli/src/session.rs", text), [1]);
        assert_eq!(fires(permits, "lib/plan/src/boot.rs", text), [0; 0]);
        assert_eq!(fires(permits, "lib/system/tests/archive.rs", text), [0; 0]);
    }
}
