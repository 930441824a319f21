//! The rules of `[[device]]`.

use crate::common::refused;

/// Returns a device `d` at this address, of this size, with more keys; its address is in line 8.
fn device(address: &str, size: &str, rest: &str) -> String {
    format!(
        "[system]\nname = \"s\"\n[[process]]\nname = \"p\"\npriority = 1\n\
         [[device]]\nname = \"d\"\naddress = {address}\nsize = \"{size}\"\n{rest}\n"
    )
}

/// A device at this address is refused there.
#[track_caller]
fn bad(address: &str, size: &str, title: &str, help: &str) {
    refused(&device(address, size, ""), (8, 11), title, help);
}

#[test]
fn addresses_are_whole_pages_of_physical_memory() {
    let help = "write `0xfed00000`: whole pages of 4096 bytes are mapped";
    bad("0xfed00010", "4K", "`address` is not the start of a page", help);
    let help = "write a whole number from 0 to 4503599627370495";
    bad("-4096", "4K", "`address` is -4096, out of range", help);
    let title = "`d` ends beyond the last physical address";
    bad("0xffffffffff000", "8K", title, "write an `address` of at most 0xfffffffffe000");
}

#[test]
fn ram_is_not_a_device() {
    let help = "write the address of its registers, or a smaller `memory`";
    bad("0x3fff000", "4K", "`d` lies in the machine's RAM", help);
    assert!(diapason_system::parse("f", &device("0x4000000", "4K", "")).is_ok());
}

#[test]
fn graphics_memory_below_the_first_megabyte_is_a_device() {
    assert!(diapason_system::parse("f", &device("0xb8000", "4K", "")).is_ok());
    let help = "write the address of its registers, or a smaller `memory`";
    bad("0xbf000", "8K", "`d` lies in the machine's RAM", help);
}

#[test]
fn interrupt_controllers_stay_with_the_kernel() {
    let title = "`d` overlaps the local APIC, which belongs to the kernel";
    bad("0xfee00000", "4K", title, "keep clear of 0xfee00000 to 0xfeefffff");
    let title = "`d` overlaps the I/O APIC, which belongs to the kernel";
    bad("0xfebff000", "8K", title, "keep clear of 0xfec00000 to 0xfec00fff");
}

#[test]
fn registers_belong_to_one_device() {
    let second = "[[device]]\nname = \"e\"\naddress = 0xfed01000\nsize = \"4K\"";
    let title = "the registers of `e` overlap those of `d`";
    let help = "correct `address` or `size`; registers in one page are one device";
    refused(&device("0xfed00000", "8K", second), (12, 11), title, help);
    assert!(diapason_system::parse("f", &device("0xfed00000", "4K", second)).is_ok());
}

#[test]
fn interrupt_lines_exist_and_are_used_once() {
    let help = "write a whole number from 0 to 23, its line at the I/O APIC";
    let text = device("0xfed00000", "4K", "irq = 24");
    refused(&text, (10, 7), "`irq` is 24, out of range", help);
    let second = "irq = 2\n[[device]]\nname = \"e\"\naddress = 0xfed01000\nsize = 4096\nirq = 2";
    let help = "give each device its own line; one waiter per line is what bounds its delay";
    let text = device("0xfed00000", "4K", second);
    refused(&text, (15, 7), "interrupt 2 is used twice", help);
}

#[test]
fn a_trigger_needs_a_line() {
    let help = "add `irq = …`, the device's interrupt line, or remove `trigger`";
    let text = device("0xfed00000", "4K", "trigger = \"edge\"");
    refused(&text, (10, 11), "`trigger` without `irq`", help);
    let text = device("0xfed00000", "4K", "irq = 2\ntrigger = \"egde\"");
    refused(&text, (11, 11), "`trigger` cannot be `egde`", "did you mean `\"edge\"`?");
}

#[test]
fn sizes_are_bounded() {
    let text = device("0xfd000000", "4M", "");
    let help = "write a size from `\"4K\"` to `\"2M\"`";
    refused(&text, (9, 8), "`size` is larger than 2M", help);
}
