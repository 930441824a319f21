//! `cargo xtask areas`: where the bytes of the linked kernel are, by what they are for.
//!
//! A function counts where its own module does, with everything that was inlined into it. The rest,
//! which no function's size covers, is assembly and padding.

use diapason::failure::HOLDS;
use diapason::image::{Image, ImageSizes};
use diapason::linkage::{Linkage, Part};
use diapason::{Failure, Workspace, metal};

/// An area and the modules of its functions as their symbols have them: crate, then module; or what
/// the assembly calls.
type Area = (&'static str, &'static [&'static str]);

/// The first that fits counts.
const AREAS: [Area; 8] = [
    (
        "boot: machine, archive, ELF, filling the pools",
        &["15diapason_kernel4boot", "13diapason_core6config", "12diapason_abi", "kernel_main"],
    ),
    (
        "handlers of calls, with what is inlined",
        &["15diapason_kernel5calls", "any_call", "on_observed_syscall"],
    ),
    (
        "console, recorder, watch",
        &["15diapason_kernel7console", "15diapason_kernel8recorder", "15diapason_kernel5watch"],
    ),
    (
        "the rest of the shell, with the core's decision",
        &["15diapason_kernel", "on_trap", "on_idle", "on_kernel_fault"],
    ),
    ("servers and closed forms (`lib/vcpu`)", &["13diapason_vcpu"]),
    (
        "core: VCPUs and admission",
        &[
            "13diapason_core8services4vcpu",
            "13diapason_core7objects4vcpu",
            "13diapason_core6budget",
            "13diapason_core7promise",
            "13diapason_core8accounts",
        ],
    ),
    (
        "core: who runs, lists, alarms",
        &[
            "13diapason_core9scheduler",
            "13diapason_core7helping",
            "13diapason_core7objects5ready",
            "13diapason_core4ring",
            "13diapason_core6alarms",
            "13diapason_core5enter",
        ],
    ),
    ("core: services, processes, memory", &["13diapason_core"]),
];
const REST: &str = "assembly, library, padding";

/// Bytes that stay after boot, and bytes that leave.
type Bytes = [u64; 2];

/// Builds the kernel and prints its areas.
pub fn command(workspace: &Workspace) -> Result<u8, Failure> {
    let image = Image::read(&metal::build(workspace)?.kernel)?;
    let (linkage, sizes) = (Linkage::read(&image), image.sizes());
    let leaving = linkage.symbol("__boot_start").zip(linkage.symbol("__boot_end"));
    let screen = linkage.symbol("__boot_end").zip(linkage.symbol("__screen_end"));
    let on_screen =
        |part: &&Part| screen.is_some_and(|(from, to)| (from..to).contains(&part.at.start));
    let parts: Vec<Part> =
        linkage.functions.iter().filter(|part| !on_screen(part)).cloned().collect();
    let leaves =
        |part: &Part| leaving.is_some_and(|(from, to)| (from..to).contains(&part.at.start));
    println!("{:52} {:>7} {:>7}", "area", "stays", "leaves");
    for (name, [stays, gone]) in rows(&parts, leaves, &sizes) {
        println!("{name:52} {stays:>7} {gone:>7}");
    }
    println!("{} more stay with a screen", sizes.screen());
    Ok(HOLDS)
}

fn rows(
    parts: &[Part],
    leaves: impl Fn(&Part) -> bool,
    sizes: &ImageSizes,
) -> Vec<(String, Bytes)> {
    let mut rows: Vec<(String, Bytes)> = AREAS.map(|(name, _)| (name.into(), [0; 2])).to_vec();
    let mut rest = [sizes.text - sizes.boot_text - sizes.screen_text, sizes.boot_text];
    for part in parts {
        let side = usize::from(leaves(part));
        if let Some(area) = area(&part.name) {
            let bytes = part.at.end - part.at.start;
            rows[area].1[side] += bytes;
            rest[side] = rest[side].saturating_sub(bytes);
        }
    }
    rows.push((REST.into(), rest));
    let constants = sizes.rodata - sizes.boot_rodata - sizes.screen_rodata;
    rows.push(("constants".into(), [constants, sizes.boot_rodata]));
    rows.push(("all".into(), [sizes.resident(), sizes.boot()]));
    rows
}

/// Returns the area of the function of this symbol. A symbol's own path comes first in it.
fn area(symbol: &str) -> Option<usize> {
    let place = |(at, (_, modules)): (usize, &Area)| {
        Some((modules.iter().filter_map(|module| symbol.find(module)).min()?, at))
    };
    AREAS.iter().enumerate().filter_map(place).min().map(|(_, area)| area)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_is_where_its_own_path_says() {
        let name = |symbol| area(symbol).map(|area| AREAS[area].0);
        let boot = "_RNvNtNtCs1_15diapason_kernel4boot4acpi6number";
        assert!(name(boot).is_some_and(|name| name.starts_with("boot")));
        let stop = "_RINvMs_NtCs1_13diapason_core7processNtNtB6_6kernel6Kernel12process_stop\
                    NtNtCs2_15diapason_kernel7machine5MetalE";
        assert_eq!(name(stop), Some("core: services, processes, memory"));
        let rank = "_RNvMs_NtCs1_13diapason_core9schedulerNtB4_9Scheduler4rank";
        assert_eq!(name(rank), Some("core: who runs, lists, alarms"));
        let fit = "_RNvMNtNtCs1_13diapason_core8services4vcpuNtNtB6_6kernel6Kernel8vcpu_fit";
        assert_eq!(name(fit), Some("core: VCPUs and admission"));
        assert_eq!(name("memset"), None);
    }

    #[test]
    fn every_byte_is_in_one_row() {
        let part = |name: &str, at| Part { name: name.into(), at };
        let parts = [part("kernel_main", 0..10), part("on_trap", 20..50), part("memset", 60..64)];
        let sizes = ImageSizes {
            text: 100,
            rodata: 30,
            boot_text: 16,
            boot_rodata: 5,
            ..ImageSizes::default()
        };
        let rows = rows(&parts, |part| part.at.end <= 16, &sizes);
        let of = |start: &str| rows.iter().find(|row| row.0.starts_with(start)).map(|row| row.1);
        assert_eq!(of("boot"), Some([0, 10]));
        assert_eq!(of("the rest of the shell"), Some([30, 0]));
        assert_eq!(of(REST), Some([54, 6]));
        assert_eq!(of("all"), Some([109, 21]));
        let sum = |side: usize| rows[..rows.len() - 1].iter().map(|row| row.1[side]).sum::<u64>();
        assert_eq!((sum(0), sum(1)), (109, 21));
    }
}
