//! The plugged devices for people: one line for each device, endpoint and bus, in the log.

use crate::branch::Driver;
use crate::papers::Papers;
use crate::platform::{Platform, log};
use crate::plugged::Place;
use crate::slots::Pool;
use diapason_usb::Speed;
use diapason_usb::xhci::DeviceId;

/// Logs a device with its interfaces and their endpoints.
pub fn device<P: Platform>(driver: &Driver<P>, device: DeviceId, speed: Speed, place: Place) {
    let papers = Papers::read(driver, device, (speed, place));
    let Some(found) = papers.as_ref().and_then(Papers::found) else {
        log!(P, "usb {place}: its descriptors make no sense");
        return;
    };
    let about = &found.about;
    let (vendor, product, version) = (about.vendor, about.product, about.version);
    log!(P, "usb {place}: {vendor:04x}:{product:04x} version {version:x}, USB {:x}", about.usb);
    for interface in found.set.interfaces() {
        let (number, alternate) = (interface.number, interface.alternate);
        let [class, subclass, protocol] = interface.class;
        log!(
            P,
            "usb {place}: interface {number}.{alternate} {class:02x}/{subclass:02x}/{protocol:02x}"
        );
        for endpoint in interface.endpoints() {
            let (address, transfer, packet) =
                (endpoint.address, endpoint.transfer, endpoint.packet);
            let each = endpoint.interval;
            log!(
                P,
                "usb {place}: endpoint {address:02x} {transfer:?} {packet} bytes, interval {each}"
            );
        }
    }
}

/// Logs the bus of this speed: endpoints with a place, its fullest slot, and how long a packet of
/// an asynchronous endpoint takes at worst from the doorbell on (`t_A`, exact).
pub fn schedule<P: Platform>(driver: &Driver<P>, speed: Speed) {
    let scheduler = driver.schedule(speed);
    let (plan, bus, all) = (scheduler.plan(), scheduler.bus(), scheduler.asyncs());
    let (placed, periodic) = (plan.placed.len(), scheduler.periodic().len());
    log!(P, "bus {speed:?}: {placed} of {periodic} periodic endpoints, {} asynchronous", all.len());
    let fullest = plan.load.iter().max().map_or(0, |load| load.nanos().0);
    let (slots, slot) = (plan.load.len(), bus.speed.slot().nanos().0);
    log!(P, "bus {speed:?}: fullest of {slots} slots: {fullest} of {slot} ns");
    let worst = all.iter().map(|one| plan.worst_time(bus, all, one.id, one.packet));
    match worst.filter_map(Result::ok).max_by_key(|worst| worst.map_or(u64::MAX, |t| t.nanos().0)) {
        Some(Some(longest)) => log!(P, "bus {speed:?}: t_A {} ns", longest.nanos().0),
        Some(None) => log!(P, "bus {speed:?}: t_A has no bound"),
        None => {}
    }
}

/// Logs the remaining room of the pools of the driver and of the server.
pub fn pools<P: Platform>(driver: &mut Driver<P>, pool: &Pool<P>) {
    let (pools, heap) = (driver.pools(), P::heap_used());
    let (devices, pipes, transfers) = (pools.devices, pools.pipes, pools.transfers);
    let taken = pool.taken();
    let driver = format_args!("{devices} devices, {pipes} pipes, {transfers} transfers");
    log!(P, "pools: {driver}, {taken} pieces, {heap} heap");
}
