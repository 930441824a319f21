//! Devices: registers that belong to one device only, and to no RAM; interrupt lines used once; PCI
//! functions described once, and the names of their messages free.

use crate::declared::{Declared, DeclaredDevice, DeclaredPlace, Named};
use crate::diagnostics::{Problem, Report};
use crate::limits::{KERNEL_DEVICES, PHYSICAL_END, VGA};
use crate::names::{Names, message_of};
use crate::source::{At, Span};
use crate::units::show_size;
use diapason_abi::archive::{PciFunction, TABLE_MAX};
use std::ops::Range;

type Device = Named<DeclaredDevice>;

pub(crate) fn check(declared: &Declared, names: &Names<'_>, report: &mut Report) {
    // More have been refused already, and pairs are many.
    let devices = &declared.devices[..declared.devices.len().min(usize::from(TABLE_MAX))];
    for (index, device) in devices.iter().enumerate() {
        alone(device, &declared.memory, report);
        for earlier in &devices[..index] {
            pair(earlier, device, report);
            same_function(earlier, device, report);
        }
        interrupt(&devices[..index], device, report);
        messages(device, names, report);
    }
}

/// Returns where the registers of a device with an address are, and the key that says so.
fn registers(device: &Device) -> Option<(Range<u64>, &Span)> {
    let DeclaredPlace::Address(At { value: start, span }) = &device.what.place else {
        return None;
    };
    Some((*start..start.saturating_add(device.what.size), span))
}

fn overlap(a: &Range<u64>, b: &Range<u64>) -> bool {
    a.start < b.end && b.start < a.end
}

fn shown(range: &Range<u64>) -> String {
    format!("{:#x} to {:#x}", range.start, range.end.saturating_sub(1))
}

fn alone(device: &Device, memory: &At<u64>, report: &mut Report) {
    let Some((range, span)) = registers(device) else { return };
    let name = &device.name.value;
    if range.end > PHYSICAL_END {
        let title = format!("`{name}` ends beyond the last physical address");
        let help = format!("write an `address` of at most {:#x}", PHYSICAL_END - device.what.size);
        report.push(Problem::new(span, title, help));
    }
    let in_vga = VGA.start <= range.start && range.end <= VGA.end;
    if range.start < memory.value && !in_vga {
        let title = format!("`{name}` lies in the machine's RAM");
        let help = "write the address of its registers, or a smaller `memory`";
        let (registers, size) = (shown(&range), show_size(memory.value));
        let problem = Problem::new(span, title, help).label(format!("registers {registers}"));
        report.push(problem.note(format!("RAM is 0x0 to {:#x} ({size})", memory.value - 1)));
    }
    for (what, taken) in KERNEL_DEVICES {
        if overlap(&range, &taken) {
            let title = format!("`{name}` overlaps {what}, which belongs to the kernel");
            let help = format!("keep clear of {}", shown(&taken));
            let label = format!("registers {}", shown(&range));
            report.push(Problem::new(span, title, help).label(label));
        }
    }
}

fn pair(earlier: &Device, device: &Device, report: &mut Report) {
    let (Some((a, first)), Some((b, span))) = (registers(earlier), registers(device)) else {
        return;
    };
    if overlap(&a, &b) {
        let title = format!(
            "the registers of `{}` overlap those of `{}`",
            device.name.value, earlier.name.value
        );
        let help = "correct `address` or `size`; registers in one page are one device";
        let problem = Problem::new(span, title, help).label(shown(&b));
        report.push(problem.with(first, shown(&a)));
    }
}

fn same_function(earlier: &Device, device: &Device, report: &mut Report) {
    let (DeclaredPlace::Pci(a), DeclaredPlace::Pci(b)) = (&earlier.what.place, &device.what.place)
    else {
        return;
    };
    if (PciFunction { bar: a.value.bar, ..b.value }) == a.value {
        let (name, first) = (&device.name.value, &earlier.name.value);
        let title = format!("`{name}` and `{first}` are the same PCI function");
        let help = "add `instance = 1` if the machine has two of them, or remove one";
        let problem = Problem::new(&b.span, title, help);
        report.push(problem.with(&a.span, "first here"));
    }
}

/// Reports names that programs would take for those of the device's messages.
fn messages(device: &Device, names: &Names<'_>, report: &mut Report) {
    for number in 0..device.what.messages() {
        let message = message_of(&device.name.value, number);
        if let Some(other) = names.get(&message) {
            let device = &device.name;
            let title = format!("`{message}` is the name of an interrupt of `{}`", device.value);
            let problem = Problem::new(&other.span, title, "choose another name");
            report.push(problem.with(&device.span, "the device"));
        }
    }
}

fn interrupt(earlier: &[Device], device: &Device, report: &mut Report) {
    let Some(irq) = &device.what.irq else { return };
    let same = |other: &&Device| other.what.irq.as_ref().is_some_and(|o| o.value == irq.value);
    if let Some(first) = earlier.iter().find(same) {
        let title = format!("interrupt {} is used twice", irq.value);
        let help = "give each device its own line; one waiter per line is what bounds its delay";
        let problem = Problem::new(&irq.span, title, help);
        let place = first.what.irq.as_ref().map_or(0..0, |other| other.span.clone());
        report.push(problem.with(&place, format!("first by `{}`", first.name.value)));
    }
}
