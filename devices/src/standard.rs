//! The requests that every USB device answers, from its own descriptors (USB 2.0 §9.4).

use crate::descriptors::{Descriptors, parts};
use crate::device::Stall;
use crate::other_speed;
use diapason_usb::Setup;
use diapason_usb::setup::{ENDPOINT_HALT, IN, descriptor_type, request};

/// The language of all texts: English, United States.
const LANGUAGE: u16 = 0x0409;
/// `bmRequestType`: which device, interface or endpoint is meant.
const RECIPIENT: u8 = 0x1f;
/// `bmAttributes` of a configuration: it does not take its power from the bus.
const SELF_POWERED: u8 = 0x40;
/// `bmRequestType`: standard, class or vendor.
const KIND: u8 = 0x60;
/// Requests that SuperSpeed adds, and its features of a device (USB 3.2 §9.4).
const SET_SEL: u8 = 48;
const SET_ISOCHRONOUS_DELAY: u8 = 49;
const U1_ENABLE: u16 = 48;
const U2_ENABLE: u16 = 49;

/// An endpoint of one alternate setting.
#[derive(Clone, Copy, Debug)]
struct Endpoint {
    interface: u8,
    alternate: u8,
    address: u8,
}

/// The present state of an endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EndpointStatus {
    /// Not in the active configuration: nobody answers.
    Absent,
    /// Answers nothing but stalls until the host clears it.
    Halted,
    Ready,
}

/// The state that standard requests change.
#[derive(Clone, Debug, Default)]
pub struct Standard {
    descriptors: Descriptors,
    endpoints: Vec<Endpoint>,
    configuration: u8,
    /// Interface, current alternate setting, largest one.
    alternates: Vec<(u8, u8, u8)>,
    halted: Vec<u8>,
}

impl Standard {
    /// Returns a device that was just plugged in.
    #[must_use]
    pub fn new(descriptors: Descriptors) -> Standard {
        let mut standard = Standard { descriptors, ..Standard::default() };
        standard.settle(0);
        standard
    }

    /// Sets the state for a configuration, given by its index.
    fn settle(&mut self, number: usize) {
        let (mut endpoints, mut alternates) = (Vec::new(), Vec::<(u8, u8, u8)>::new());
        let (mut interface, mut alternate) = (0, 0);
        for part in self.descriptors.configurations().nth(number).into_iter().flat_map(parts) {
            match *part {
                [_, descriptor_type::INTERFACE, number, setting, ..] => {
                    (interface, alternate) = (number, setting);
                    match alternates.iter_mut().find(|known| known.0 == number) {
                        Some(known) => known.2 = known.2.max(setting),
                        None => alternates.push((number, 0, setting)),
                    }
                }
                [_, descriptor_type::ENDPOINT, address, ..] => {
                    endpoints.push(Endpoint { interface, alternate, address });
                }
                _ => {}
            }
        }
        (self.endpoints, self.alternates) = (endpoints, alternates);
    }

    /// A reset of the bus.
    pub fn reset(&mut self) {
        self.configure(0);
    }

    /// Returns whether a configuration is active.
    #[must_use]
    pub fn configured(&self) -> bool {
        self.configuration != 0
    }

    /// Returns the alternate setting of an interface.
    #[must_use]
    pub fn alternate(&self, interface: u8) -> u8 {
        self.alternates.iter().find(|known| known.0 == interface).map_or(0, |known| known.1)
    }

    /// Returns the state of the endpoint with this address.
    #[must_use]
    pub fn endpoint(&self, address: u8) -> EndpointStatus {
        if !self.exists(address) {
            EndpointStatus::Absent
        } else if self.halted.contains(&address) {
            EndpointStatus::Halted
        } else {
            EndpointStatus::Ready
        }
    }

    /// The device stalls an endpoint by itself; the host clears it.
    pub fn halt(&mut self, address: u8) {
        if self.endpoint(address) == EndpointStatus::Ready {
            self.halted.push(address);
        }
    }

    /// The answer to a standard request; `None` if it is a class or vendor request, or a
    /// descriptor this part does not have.
    pub fn control(&mut self, setup: Setup) -> Option<Result<Vec<u8>, Stall>> {
        if setup.kind & KIND != 0 {
            return None;
        }
        let answer = match setup.request {
            request::GET_DESCRIPTOR => self.descriptor(setup),
            request::GET_STATUS => self.status(setup),
            request::CLEAR_FEATURE => self.feature(setup, false),
            request::SET_FEATURE => self.feature(setup, true),
            request::GET_CONFIGURATION => Ok(vec![self.configuration]),
            request::SET_CONFIGURATION => self.set_configuration(setup.value),
            request::GET_INTERFACE => self.get_interface(setup.index),
            request::SET_INTERFACE => self.set_interface(setup),
            request::SET_ADDRESS | SET_SEL | SET_ISOCHRONOUS_DELAY => Ok(Vec::new()),
            _ => Err(Stall),
        };
        Some(answer.and_then(|bytes| reply(setup, bytes)))
    }

    fn exists(&self, address: u8) -> bool {
        self.configured()
            && self.endpoints.iter().any(|endpoint| {
                endpoint.address == address
                    && endpoint.alternate == self.alternate(endpoint.interface)
            })
    }

    fn configure(&mut self, value: u8) {
        self.configuration = value;
        self.halted.clear();
        for known in &mut self.alternates {
            known.1 = 0;
        }
    }

    fn set_configuration(&mut self, value: u16) -> Result<Vec<u8>, Stall> {
        let value = value as u8;
        let named = |bytes: &[u8]| bytes.get(5).copied().unwrap_or(1) == value;
        if value > 0 {
            let number = self.descriptors.configurations().position(named).ok_or(Stall)?;
            self.settle(number);
        }
        self.configure(value);
        Ok(Vec::new())
    }

    fn get_interface(&self, index: u16) -> Result<Vec<u8>, Stall> {
        let known = self.alternates.iter().find(|known| u16::from(known.0) == index);
        let known = known.filter(|_| self.configured()).ok_or(Stall)?;
        Ok(vec![known.1])
    }

    fn set_interface(&mut self, setup: Setup) -> Result<Vec<u8>, Stall> {
        let configured = self.configured();
        let known = self.alternates.iter_mut().find(|known| u16::from(known.0) == setup.index);
        let known = known.filter(|known| configured && setup.value <= known.2.into());
        let known = known.ok_or(Stall)?;
        known.1 = setup.value as u8;
        let inside = |address: &u8| {
            let mut endpoints = self.endpoints.iter();
            endpoints.any(|e| e.address == *address && e.interface == known.0)
        };
        self.halted.retain(|address| !inside(address));
        Ok(Vec::new())
    }

    /// The active configuration; before there is one, the first.
    fn active(&self) -> Option<&[u8]> {
        let mut all = self.descriptors.configurations();
        let active = all.find(|bytes| bytes.get(5) == Some(&self.configuration));
        active.or(self.descriptors.configurations().next())
    }

    fn is_self_powered(&self) -> bool {
        let bits = self.active().and_then(|bytes| bytes.get(7));
        bits.is_some_and(|bits| bits & SELF_POWERED != 0)
    }

    fn status(&self, setup: Setup) -> Result<Vec<u8>, Stall> {
        let bits = match setup.kind & RECIPIENT {
            0 => u8::from(self.is_self_powered()),
            1 if self.configured() => 0,
            2 if setup.index & 0x7f == 0 => 0,
            2 => match self.endpoint(setup.index as u8) {
                EndpointStatus::Absent => return Err(Stall),
                EndpointStatus::Halted => 1,
                EndpointStatus::Ready => 0,
            },
            _ => return Err(Stall),
        };
        Ok(vec![bits, 0])
    }

    fn feature(&mut self, setup: Setup, on: bool) -> Result<Vec<u8>, Stall> {
        let address = setup.index as u8;
        match (setup.kind & RECIPIENT, setup.value) {
            (0, U1_ENABLE | U2_ENABLE) => {}
            (2, ENDPOINT_HALT) if address & 0x7f == 0 => {}
            (2, ENDPOINT_HALT) if self.exists(address) => {
                self.halted.retain(|halted| *halted != address);
                if on {
                    self.halted.push(address);
                }
            }
            _ => return Err(Stall),
        }
        Ok(Vec::new())
    }

    fn descriptor(&self, setup: Setup) -> Result<Vec<u8>, Stall> {
        let [index, kind] = setup.value.to_le_bytes();
        let own = &self.descriptors;
        match kind {
            descriptor_type::DEVICE => Ok(own.device.clone()),
            descriptor_type::CONFIGURATION => {
                own.configurations().nth(index.into()).map(<[u8]>::to_vec).ok_or(Stall)
            }
            descriptor_type::STRING => self.string(index),
            descriptor_type::DEVICE_QUALIFIER if own.high_speed => {
                other_speed::qualifier(&own.device).ok_or(Stall)
            }
            descriptor_type::OTHER_SPEED_CONFIGURATION if own.high_speed => {
                own.configurations().nth(index.into()).map(other_speed::configuration).ok_or(Stall)
            }
            descriptor_type::HID => self.human_input(setup.index).ok_or(Stall),
            descriptor_type::BOS if !own.bos.is_empty() => Ok(own.bos.clone()),
            _ => {
                let other = own.more.iter().find(|(known, _)| *known == kind);
                other.map(|(_, bytes)| bytes.clone()).ok_or(Stall)
            }
        }
    }

    /// Returns the HID descriptor of an interface of the active configuration (HID 1.11 §7.1.1).
    fn human_input(&self, interface: u16) -> Option<Vec<u8>> {
        let mut all = parts(self.active()?).skip_while(|part| {
            let [_, descriptor_type::INTERFACE, number, ..] = **part else { return true };
            number != interface as u8
        });
        all.next()?;
        let mut own = all.take_while(|part| part.get(1) != Some(&descriptor_type::INTERFACE));
        own.find(|part| part.get(1) == Some(&descriptor_type::HID)).map(<[u8]>::to_vec)
    }

    fn string(&self, index: u8) -> Result<Vec<u8>, Stall> {
        let units: Vec<u16> = match index.checked_sub(1) {
            None => vec![LANGUAGE],
            Some(at) => {
                let text = self.descriptors.strings.get(usize::from(at)).ok_or(Stall)?;
                text.encode_utf16().take(126).collect()
            }
        };
        let mut bytes = vec![2 + 2 * units.len() as u8, descriptor_type::STRING];
        bytes.extend(units.iter().flat_map(|unit| unit.to_le_bytes()));
        Ok(bytes)
    }
}

/// `bytes` as far as the host wants them.
///
/// # Errors
/// There is something to say, but the data stage goes the other way.
pub fn reply(setup: Setup, mut bytes: Vec<u8>) -> Result<Vec<u8>, Stall> {
    if !bytes.is_empty() && setup.kind & IN == 0 {
        return Err(Stall);
    }
    bytes.truncate(setup.length.into());
    Ok(bytes)
}
