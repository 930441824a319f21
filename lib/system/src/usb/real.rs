//! Adapters of the computer on which QEMU runs: `model = "host:0bfd:0108"`.

use crate::declared::DeclaredUsb;
use crate::diagnostics::{Problem, Report};
use crate::plugged::UsbModel;
use diapason_can::adapters::{self, Family};

/// A model, with the vendor and the product of the adapter that it stands for, if it does.
pub(super) type Named = (UsbModel, Option<(u16, u16)>);

/// Returns the model that speaks as an adapter does, and the adapter's vendor and product, or a
/// remedy. There is none for texts that name no adapter.
pub(super) fn named(text: &str) -> Option<Result<Named, String>> {
    let numbers = text.strip_prefix("host:")?;
    let Some((vendor, product)) = numbers.split_once(':').and_then(identity) else {
        let form = "write vendor and product in four hexadecimal digits each, as `lsusb` shows \
                    them: `\"host:0bfd:0108\"`";
        return Some(Err(form.into()));
    };
    let model = match adapters::family(vendor, product) {
        Some(Family::Kvaser) => UsbModel::UsbCan,
        Some(Family::GsUsb) => UsbModel::GsUsb,
        None => return Some(Err(served())),
    };
    Some(Ok((model, Some((vendor, product)))))
}

/// Returns two numbers of four hexadecimal digits.
fn identity((vendor, product): (&str, &str)) -> Option<(u16, u16)> {
    let number = |text: &str| {
        let is_plain = text.len() == 4 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        u16::from_str_radix(text, 16).ok().filter(|_| is_plain)
    };
    Some((number(vendor)?, number(product)?))
}

/// Returns the adapters there are, as a remedy.
fn served() -> String {
    let (first, last) = adapters::KVASER_PRODUCTS;
    let vendor = adapters::KVASER_VENDOR;
    let others = adapters::GS_USB.map(|(vendor, product)| format!("{vendor:04x}:{product:04x}"));
    let others = others.join(", ");
    format!("take an interface to CAN: {vendor:04x}:{first:04x} to {last:04x}, or {others}")
}

/// Reports keys that name an adapter twice, and logs that nobody plays on its buses. The other
/// keys of buses say what the plan assumes about the real ones.
pub(super) fn check(usb: &DeclaredUsb, report: &mut Report) {
    let Some(adapter) = &usb.adapter else { return };
    if let Some(said) = usb.vendor.as_ref().or(usb.product.as_ref()) {
        let help = "remove the key: `model` has vendor and product of an adapter";
        let problem = Problem::new(&said.span, "an adapter that is named twice", help);
        report.push(problem.with(&adapter.span, "the adapter"));
    }
    if let Some(log) = usb.replay.first() {
        let help = "remove the key, or take a model: nobody plays a log on a real bus";
        let problem = Problem::new(&log.span, "a log on the bus of an adapter", help);
        report.push(problem.with(&adapter.span, "the adapter"));
    }
}
