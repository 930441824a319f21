//! `[[device]]`: where a device is and how it interrupts, key by key.

use crate::declared::{DeclaredDevice, DeclaredPlace, Named};
use crate::diagnostics::{Problem, Report};
use crate::keys;
use crate::limits::{INTERVALS, IRQ_LINES, PAGE_BYTES, PHYSICAL_END};
use crate::source::At;
use crate::suggest::nearest;
use crate::system::ControllerVariant;
use crate::table::{Raw, Table};
use diapason_abi::archive::{BARS, INTERRUPTS_MAX, NONE, PciFunction};

/// Keys that only one of the two kinds of device has.
const OF_PCI: [&str; 4] = ["vendor", "instance", "bar", "irqs"];
const OF_ADDRESS: [&str; 2] = ["irq", "trigger"];
/// The class of USB controllers that the simulator has.
const XHCI: u32 = 0x0c_0330;
/// The words for what the simulator's controller can be.
const VARIANTS: [&str; 4] = ["large-contexts", "scratchpads", "firmware", "msi"];

pub(crate) fn device(raw: Raw<'_>, report: &mut Report) -> Named<DeclaredDevice> {
    let mut table = Table::new("[[device]]", "device", raw, report);
    let table = &mut table;
    let name = keys::name(table);
    let place = place(table);
    let is_pci = matches!(place, DeclaredPlace::Pci(_));
    strangers(table, is_pci);
    let size = keys::required_size(table, "add `size = \"4K\"`: the bytes of its registers");
    let irq = table.number("irq", 0..=u64::from(IRQ_LINES) - 1, ", its line at the I/O APIC");
    let most = INTERRUPTS_MAX as u64;
    let irqs = table.number("irqs", 1..=most, ", the messages (MSI-X) it sends");
    let trigger = table.choice("trigger", &[("edge", false), ("level", true)], "");
    let intervals = table.durations("interval", INTERVALS);
    without_interrupt(table, is_pci);
    number_of_intervals(table, &intervals, irqs.as_ref());
    let simulated = simulated(table, &place);
    table.report_unknown();
    let small = |number: At<u64>| Some(At::new(u16::try_from(number.value).ok()?, number.span));
    let (irq, irqs) = (irq.and_then(small), irqs.and_then(small));
    let level = trigger.is_some_and(|trigger| trigger.value);
    let intervals = intervals.into_iter().map(|interval| interval.value).collect();
    Named { name, what: DeclaredDevice { place, size, irq, level, irqs, intervals, simulated } }
}

/// Reads how the simulator's USB controller differs.
fn simulated(table: &mut Table<'_, '_>, place: &DeclaredPlace) -> ControllerVariant {
    let words = table.texts("simulated", "simulated = [\"msi\"]");
    let is_controller =
        matches!(place, DeclaredPlace::Pci(function) if function.value.class == XHCI);
    for word in &words {
        if !is_controller {
            let title = "`simulated` is for a USB controller";
            let help = "remove it, or add `pci = \"0c0330\"`";
            table.report.push(Problem::new(&word.span, title, help));
        } else if !VARIANTS.contains(&word.value.as_str()) {
            let title = format!("`simulated` cannot be `{}`", word.value);
            let meant =
                nearest(&word.value, VARIANTS).map(|word| format!("did you mean `{word}`?"));
            let help = meant.unwrap_or_else(|| format!("write one of {}", VARIANTS.join(", ")));
            table.report.push(Problem::new(&word.span, title, help));
        }
    }
    let [large_contexts, scratchpads, firmware, msi] =
        VARIANTS.map(|variant| words.iter().any(|word| word.value == variant));
    ControllerVariant { large_contexts, scratchpads, firmware, msi }
}

fn place(table: &mut Table<'_, '_>) -> DeclaredPlace {
    match (table.get("address"), table.get("pci")) {
        (None, None) => {
            let help = "add `address = 0x…`, the physical address of its registers, or \
                        `pci = \"0c0330\"`, its class";
            table.needs("address", help);
            DeclaredPlace::Unusable
        }
        (Some(_), Some(pci)) => {
            let title = "a device has `address` or `pci`, not both";
            let help = "remove `address`: firmware decides where a PCI device has its registers";
            table.report.push(Problem::new(&pci.span(), title, help));
            DeclaredPlace::Unusable
        }
        (Some(_), None) => address(table).map_or(DeclaredPlace::Unusable, DeclaredPlace::Address),
        (None, Some(_)) => pci(table).map_or(DeclaredPlace::Unusable, DeclaredPlace::Pci),
    }
}

/// Physical address of a device; its page is the unit of protection.
fn address(table: &mut Table<'_, '_>) -> Option<At<u64>> {
    let address = table.number("address", 0..=PHYSICAL_END - 1, "")?;
    if !address.value.is_multiple_of(PAGE_BYTES) {
        let title = "`address` is not the start of a page";
        let start = address.value - address.value % PAGE_BYTES;
        let help = format!("write `{start:#x}`: whole pages of {PAGE_BYTES} bytes are mapped");
        table.report.push(Problem::new(&address.span, title, help));
        return None;
    }
    Some(address)
}

fn pci(table: &mut Table<'_, '_>) -> Option<At<PciFunction>> {
    const CLASS: &str = "six hexadecimal digits: class, subclass, programming interface";
    const VENDOR: &str = "four hexadecimal digits, or four and four";
    let class = table.parsed("pci", CLASS, "pci = \"0c0330\"", |text| hexadecimal(text, 6));
    let vendor = table.parsed("vendor", VENDOR, "vendor = \"1b36:000d\"", vendor);
    let instance = table.number("instance", 0..=u64::from(u8::MAX), "; 0 is the first that fits");
    let bar = table.number("bar", 0..=u64::from(BARS) - 1, ", a base address register");
    let small = |number: Option<At<u64>>| number.map_or(0, |n| u8::try_from(n.value).unwrap_or(0));
    let (vendor, product) = vendor.map_or((NONE, NONE), |vendor| vendor.value);
    let (instance, bar) = (small(instance), small(bar));
    let At { value: class, span } = class?;
    Some(At::new(PciFunction { class, vendor, product, instance, bar }, span))
}

/// Returns a number of so many hexadecimal digits.
fn hexadecimal(text: &str, digits: usize) -> Option<u32> {
    let fine = text.len() == digits && text.chars().all(|c| c.is_ascii_hexdigit());
    u32::from_str_radix(text, 16).ok().filter(|_| fine)
}

/// Returns a vendor, and perhaps which of its products.
fn vendor(text: &str) -> Option<(u16, u16)> {
    let half = |text| u16::try_from(hexadecimal(text, 4)?).ok().filter(|id| *id != NONE);
    match text.split_once(':') {
        None => Some((half(text)?, NONE)),
        Some((vendor, product)) => Some((half(vendor)?, half(product)?)),
    }
}

/// Reports keys that the other kind of device has.
fn strangers(table: &mut Table<'_, '_>, is_pci: bool) {
    for key in if is_pci { &OF_ADDRESS[..] } else { &OF_PCI[..] } {
        let Some(entry) = table.get(key) else { continue };
        let (title, help) = if is_pci {
            let help = "write `irqs = 1`: it sends messages, which need no line and no trigger";
            (format!("`{key}` is not for a PCI device"), help.to_owned())
        } else {
            let help = format!("add `pci = \"…\"`, the class of a PCI device, or remove `{key}`");
            (format!("`{key}` without `pci`"), help)
        };
        table.report.push(Problem::new(&entry.span(), title, help));
    }
}

/// Reports what is said of an interrupt that there is not.
fn without_interrupt(table: &mut Table<'_, '_>, is_pci: bool) {
    let (needed, what) = match is_pci {
        true => ("irqs", "the number of messages it sends"),
        false => ("irq", "the device's interrupt line"),
    };
    if table.get(needed).is_some() {
        return;
    }
    for key in if is_pci { &["interval"][..] } else { &["trigger", "interval"] } {
        if let Some(entry) = table.get(key) {
            let title = format!("`{key}` without `{needed}`");
            let help = format!("add `{needed} = …`, {what}, or remove `{key}`");
            table.report.push(Problem::new(&entry.span(), title, help));
        }
    }
}

/// Reports a list of intervals that is not as long as there are interrupts.
fn number_of_intervals(table: &mut Table<'_, '_>, intervals: &[At<u64>], irqs: Option<&At<u64>>) {
    let (Some(first), Some(last)) = (intervals.first(), intervals.last()) else { return };
    let needed = irqs.map_or(1, |irqs| irqs.value);
    if intervals.len() > 1 && intervals.len() as u64 != needed {
        let title = format!("{} intervals for {needed} interrupts", intervals.len());
        let help = "write one `interval` for each, or a single one without a list for all";
        let place = first.span.start..last.span.end;
        table.report.push(Problem::new(&place, title, help));
    }
}
