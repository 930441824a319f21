//! `cargo xtask test`: every step runs, whatever happened to the ones before, and is counted.

use crate::systems::gate;
use crate::tally::{Tally, command};
use crate::{
    beside, captures, compare, costs, gdb, kernels, own, qemu_tests, reproductions, simulator,
    tidy, touched,
};
use diapason::image::Image;
use diapason::linkage::Linkage;
use diapason::metal::{self, Built, ImageKind};
use diapason::tools::{GDB, Missing, OBJDUMP, QEMU, Tool};
use diapason::{Failure, Workspace};
use diapason_costs::targets::IMAGE_BYTES_MAX;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

/// The captures of USB and CAN, which are simulated, so among what is run by the name's part.
const CAPTURES: &str = "simulator: captures change nothing and hold every frame";

/// The captures of adapters for Ethernet.
const FRAMES: &str = "simulator: captures of Ethernet have all frames, as Wireshark reads them";

/// A comparison of the two machines.
const COMPARED: &str = "QEMU and the simulator agree on random task sets";

/// Another one, of the host controllers of both.
const SCRIPTED: &str = "QEMU and the simulator do the same on scripts of USB traffic";

/// Random sets that every test run compares; `cargo xtask compare` takes more.
const SETS_COMPARED: u64 = 8;
/// Scripts of USB traffic that every test run compares.
const SCRIPTS_COMPARED: u64 = 40;

/// Runs all steps of the test.
pub fn everything(workspace: &Workspace) -> Result<u8, Failure> {
    require(&[QEMU, GDB, OBJDUMP])?;
    let mut tally = Tally::default();
    source_steps(workspace, &mut tally);
    host_tests(workspace, &mut tally)?;
    if let Some(built) = build(workspace, &mut tally) {
        let names = Tally::names(|names| booted_steps(workspace, &built, "", names));
        beside::run(workspace, &built, &names, &mut tally)?;
    }
    Ok(tally.finish())
}

/// Runs the steps of what boots, linked, in QEMU or in the simulator, whose name contains `part`.
fn booted_steps(workspace: &Workspace, built: &Built, part: &str, tally: &mut Tally) {
    kernel_steps(built, part, tally);
    debugger_steps(workspace, built, part, tally);
    kernels::steps(workspace, built, part, tally);
    qemu_tests::run(workspace, built, part, tally);
    type Check = fn(&Workspace, &Built) -> Result<(), String>;
    touched::steps(workspace, built, part, tally);
    let checks: [(&str, Check); 4] = [
        (CAPTURES, captures::check),
        (FRAMES, captures::check_ethernet),
        (COMPARED, compared),
        (SCRIPTED, scripted),
    ];
    for (name, check) in checks.into_iter().filter(|(name, _)| name.contains(part)) {
        tally.step(name, || check(workspace, built));
    }
    simulator::steps(workspace, built, part, tally);
    own::steps(workspace, built, part, tally);
    reproductions::steps(workspace, part, tally);
    gate::steps(workspace, built, part, tally);
}

/// Returns the names of all steps of what boots.
#[cfg(test)]
pub fn names_of(workspace: &Workspace, built: &Built) -> Vec<String> {
    Tally::names(|names| booted_steps(workspace, built, "", names))
}

/// Compares a few random task sets on both machines.
fn compared(workspace: &Workspace, built: &Built) -> Result<(), String> {
    compare::sets(workspace, built, SETS_COMPARED, 1).map(|spread| println!("{spread}"))
}

/// Compares a few scripts of USB traffic on both machines.
fn scripted(workspace: &Workspace, built: &Built) -> Result<(), String> {
    let equal = compare::scripts::compare(workspace, built, SCRIPTS_COMPARED, 1);
    equal.map(|equal| println!("{equal}"))
}

/// Only the steps of what boots whose name begins so, as a process beside others runs them.
pub fn one(workspace: &Workspace, name: &str, list: Option<&Path>) -> Result<u8, Failure> {
    let built = list.map_or_else(|| metal::build(workspace), beside::read)?;
    let mut tally = Tally::beginning(name);
    booted_steps(workspace, &built, "", &mut tally);
    Ok(tally.finish())
}

/// Runs the steps that need the debugger, if their names contain `part`.
fn debugger_steps(workspace: &Workspace, built: &Built, part: &str, tally: &mut Tally) {
    type Check = fn(&Workspace, &Path, &Built) -> Result<(), String>;
    const CHECKS: [(&str, Check); 4] = [
        ("gdb stops at kernel and program", gdb::check),
        ("a machine check is told with its bank", gdb::break_hardware),
        (
            "registers that a loader or a program left do not reach the kernel",
            gdb::registers::check,
        ),
        ("what firmware left on is off when the first program runs", gdb::functions::check),
    ];
    let system = workspace.root().join(crate::ENGINE);
    for (name, check) in CHECKS.into_iter().filter(|(name, _)| name.contains(part)) {
        tally.step(name, || check(workspace, &system, built));
    }
}

/// Runs only the steps that read the source.
pub fn source_only(workspace: &Workspace) -> u8 {
    let mut tally = Tally::default();
    source_steps(workspace, &mut tally);
    tally.finish()
}

/// Runs only the tests of what boots, linked or in QEMU, whose name contains `part`. The words of
/// a single one are shown at once.
pub fn qemu_only(workspace: &Workspace, part: &str) -> Result<u8, Failure> {
    require(&[QEMU])?;
    let mut tally = Tally::default();
    if let Some(built) = build(workspace, &mut tally) {
        let names = Tally::names(|names| booted_steps(workspace, &built, part, names));
        match names.as_slice() {
            [_] => booted_steps(workspace, &built, part, &mut tally),
            names => beside::run(workspace, &built, names, &mut tally)?,
        }
    }
    Ok(tally.finish())
}

/// Checks the linked kernel, by the checks whose names contain `part`.
fn kernel_steps(built: &Built, part: &str, tally: &mut Tally) {
    type Check = fn(&Built) -> Result<(), String>;
    let steps: [(&str, Check); 5] = [
        ("binary lints of the kernel", |built| both(built, tidy::binary::check)),
        ("depth of the kernel's stack", |built| both(built, tidy::stack::check)),
        ("boot leaves the kernel", |built| both(built, tidy::boot::check)),
        ("size of the kernel", image_size),
        ("kernel costs are of this kernel", |built| costs::check(&built.observing)),
    ];
    for (name, check) in steps.into_iter().filter(|(name, _)| name.contains(part)) {
        tally.step(name, || check(built));
    }
}

/// Checks the kernel, and the one that observes.
fn both(built: &Built, check: fn(&Path) -> Result<(), String>) -> Result<(), String> {
    check(&built.kernel)?;
    check(&built.observing).map_err(|wrong| format!("of the kernel that observes: {wrong}"))
}

fn require(tools: &[Tool]) -> Result<(), Failure> {
    tools.iter().try_for_each(|tool| tool.require(Missing::Install))
}

fn build(workspace: &Workspace, tally: &mut Tally) -> Option<Built> {
    let mut built = None;
    tally.step("build of kernel and programs", || {
        built = Some(metal::build(workspace).map_err(|failure| failure.to_string())?);
        Ok(())
    });
    built
}

fn source_steps(workspace: &Workspace, tally: &mut Tally) {
    tally.step("format", || cargo(workspace, &["fmt", "--all", "--check"]));
    tally.step("clippy: host", || {
        cargo(workspace, &["clippy", "--quiet", "--all-targets", "--", "-D", "warnings"])
    });
    for (name, kind) in [("kernel", ImageKind::Kernel), ("programs", ImageKind::Programs)] {
        tally.step(&format!("clippy: {name}"), || match metal::clippy(workspace, kind) {
            Ok(true) => Ok(()),
            Ok(false) => Err("clippy is not content".into()),
            Err(failure) => Err(failure.to_string()),
        });
    }
    tally.step("house rules", || tidy::check(workspace));
}

fn cargo(workspace: &Workspace, arguments: &[&str]) -> Result<(), String> {
    match command(workspace, arguments).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err(format!("`cargo {}` failed", arguments.join(" "))),
        Err(error) => Err(format!("cannot start cargo: {error}")),
    }
}

/// `cargo test`, its output passed on and its tests counted.
fn host_tests(workspace: &Workspace, tally: &mut Tally) -> Result<(), Failure> {
    println!("=== tests on the host");
    let mut child = command(workspace, &["test", "--no-fail-fast"])
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| Failure::io("start cargo", &error))?;
    let (mut passed, mut failed) = (0, 0);
    let mut failures = Vec::new();
    if let Some(output) = child.stdout.take() {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            println!("{line}");
            let counts = counts(&line).unwrap_or((0, 0));
            (passed, failed) = (passed + counts.0, failed + counts.1);
            failures.extend(failed_test(&line).map(String::from));
        }
    }
    let status = child.wait().map_err(|error| Failure::io("wait for cargo", &error))?;
    if !status.success() && failed == 0 {
        failures.push("tests on the host: cargo failed, and no test says why".into());
        failed = 1;
    }
    tally.add((passed, failed), failures.into_iter());
    Ok(())
}

/// Returns the name in a line `test sim::tests::a_host_ends ... FAILED`.
fn failed_test(line: &str) -> Option<&str> {
    line.strip_prefix("test ")?.strip_suffix(" ... FAILED")
}

/// Returns the passed and failed tests of a line `test result: ok. 46 passed; 0 failed; …`.
fn counts(line: &str) -> Option<(u64, u64)> {
    let rest = line.strip_prefix("test result: ")?;
    let number = |word: &str| {
        let part = rest.split([';', '.']).find_map(|part| part.trim().strip_suffix(word))?;
        part.trim().parse().ok()
    };
    Some((number("passed")?, number("failed")?))
}

/// The size of the kernel's code and constants when this was last lowered: those that stay in
/// memory, and those that leave it after boot. Short ways on VCPUs and between them took 8 KB in
/// November 2026, ends and deletions in stages 6 KB, and short ways of hinted locks and of sleeps
/// 2,700 bytes; docs/architecture.md has the reasons. Multiboot2 took 800 bytes of boot, and clocks
/// and controllers of PCs 2,200. An IOMMU's tables took 6,300 bytes of boot, and what it reports
/// took 580 of those that stay. To look for a screen takes 1,620 bytes of boot, and 250 of those
/// that stay: a byte is looked at in three places, and messages of panics stay that the compiler
/// left out before. The screen itself leaves where there is none, and has a limit of its own. The
/// rest of a chunk that waits for the next one took 29 bytes. Servers that run in their callers'
/// places took 3,380 bytes, and 300 of boot; a kernel of a description without them has none. The
/// address of memory for devices that cores have in common took 24 bytes. A copy of the console for
/// a process that takes it to a stick took 480, and 380 of boot; a kernel of a description without
/// it has none that stays. Short ways between VCPUs that call nothing took 1,390: a message there
/// and back takes 100 instructions less, and a decision 20. An IOMMU for several cores took 210
/// bytes: its interrupt has a vector besides that of doorbells, and is passed on to the core of the
/// device. Its tables for all cores and the way back from an x2APIC took 1,520 of boot, and the
/// words of a locked one 60 of a screen. The end of a run in which a core stopped without a word
/// took 176 bytes, and 46 of a screen. To ask for no-execute took 64 of boot, and its words 71 of a
/// screen. To wake functions, and to switch off the messages that firmware had them send, took 240
/// of boot, and 47 of a screen. To see that the known clock may have wrapped, and to ask for the
/// speed that the processor names, took 860 of boot, and their words 103 of a screen. The number of
/// processors took 184 of a screen. The end of the wait for a core that stopped in its turn at the
/// I/O APIC took 32 bytes. New numbers for the interrupt controllers of old PCs took 48 of boot.
const RESIDENT_BYTES_RATCHET: u64 = 80_169;
const BOOT_BYTES_RATCHET: u64 = 43_455;
const SCREEN_BYTES_RATCHET: u64 = 10_290;

/// The kernel's code and constants against their limits.
fn image_size(built: &Built) -> Result<(), String> {
    let image = Image::read(&built.kernel).map_err(|failure| failure.to_string())?;
    let sizes = image.sizes();
    let bytes = sizes.image();
    println!("{} bytes of code + {} of constants = {bytes}", sizes.text, sizes.rodata);
    let [leave, stay, screen] = [sizes.boot(), sizes.resident(), sizes.screen()];
    println!("{leave} of them leave memory after boot, {stay} stay, {screen} more with a screen");
    if bytes > IMAGE_BYTES_MAX {
        println!("the target of {IMAGE_BYTES_MAX} is not reached yet (docs/architecture.md)");
    }
    without_formatting(&Linkage::read(&image))?;
    within("the part of the kernel that stays", stay, RESIDENT_BYTES_RATCHET)?;
    within("the part that leaves after boot", leave, BOOT_BYTES_RATCHET)?;
    within("the part that stays with a screen", screen, SCREEN_BYTES_RATCHET)
}

/// The kernel says numbers. Text of `core::fmt` comes in with a panic whose message the compiler
/// cannot prove to be unused.
fn without_formatting(linkage: &Linkage) -> Result<(), String> {
    let formats = linkage.functions.iter().filter(|part| part.name.contains("4core3fmt"));
    let names: Vec<&str> = formats.map(|part| part.name.as_str()).collect();
    if names.is_empty() {
        return Ok(());
    }
    Err(format!(
        "{} in the kernel: find the panic with a message (division, slices of unequal length, \
         `unwrap`) and write it so that it has none",
        names.join(", ")
    ))
}

pub(crate) fn within(what: &str, bytes: u64, limit: u64) -> Result<(), String> {
    if bytes == 0 {
        return Err(format!("{what} has no bytes: is this the kernel?"));
    }
    if bytes <= limit {
        return Ok(());
    }
    Err(format!("{what} grew to {bytes} bytes, beyond {limit}: this limit may only fall"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_cargo_test_are_counted() {
        let line = "test result: ok. 46 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; \
                    finished in 0.39s";
        assert_eq!(counts(line), Some((46, 0)));
        let line = "test result: FAILED. 2 passed; 3 failed; 0 ignored; 0 measured";
        assert_eq!(counts(line), Some((2, 3)));
        assert_eq!(counts("test a::passed ... ok"), None);
        assert_eq!(failed_test("test a::late ... FAILED"), Some("a::late"));
        assert_eq!(failed_test("test a::passed ... ok"), None);
    }

    #[test]
    fn a_size_may_fall_but_not_grow_or_vanish() {
        assert!(within("it", 9, 10).is_ok() && within("it", 10, 10).is_ok());
        assert!(within("it", 11, 10).unwrap_err().contains("grew to 11 bytes, beyond 10"));
        assert!(within("it", 0, 10).is_err());
    }

    #[test]
    fn text_in_the_kernel_is_found() {
        use diapason::linkage::Part;
        let mut linkage = Linkage::default();
        linkage.functions.push(Part { name: "_RNvC6kernel4main".into(), at: 0..8 });
        assert!(without_formatting(&linkage).is_ok());
        let name = "_RNvXsi_NtNtNtCs_4core3fmt3num3impjNtB9_7Display3fmt";
        linkage.functions.push(Part { name: name.into(), at: 8..16 });
        assert!(without_formatting(&linkage).unwrap_err().contains(name));
    }
}
