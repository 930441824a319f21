//! Rules about channels with CAN FD.

use super::{bit_rates, counted, with_channels};
use crate::declared::DeclaredUsb;
use crate::diagnostics::{Problem, Report};
use crate::plugged::UsbModel;

/// Reports rates of data that the channels of an interface cannot have.
pub(super) fn check(usb: &DeclaredUsb, channels: usize, report: &mut Report) {
    if let Some(extra) = usb.data_rates.get(channels) {
        let title = format!("{} rates of data for {}", usb.data_rates.len(), counted(channels));
        report.push(with_channels(usb, Problem::new(&extra.span, title, "remove those too many")));
    }
    let Some(first) = usb.data_rates.iter().find(|rate| rate.value > 0) else { return };
    if usb.model.is_some_and(|model| model != UsbModel::GsUsb) {
        let title = format!("`{}` has no CAN FD", usb.name.value);
        let help = "remove `data_rates`, or take `model = \"gs-usb\"`, which has it";
        report.push(Problem::new(&first.span, title, help));
        return;
    }
    for (data, rate) in usb.data_rates.iter().zip(bit_rates(usb)) {
        if (1..u64::from(rate)).contains(&data.value) {
            let title = format!("the data would be slower than the {rate} bit/s of the rest");
            let help = format!("write at least {rate}, or 0 for a channel without CAN FD");
            report.push(Problem::new(&data.span, title, help));
        }
    }
}
