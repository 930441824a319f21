//! The traffic around a simulated host: looked at from time to time, counted, captured, drawn.

use super::messages::Messages;
use super::perfetto::Perfetto;
use super::usage::Usage;
use crate::capture::{self, CaptureRequest, Captures};
use crate::failure::Failure;
use crate::names::Names;
use crate::surroundings::Sights;
use diapason_abi::Nanos;

/// How often it is looked at: what passed meanwhile is kept in memory.
const DISTANCE: Nanos = Nanos::from_millis(100);

/// The observer of the traffic.
pub(crate) struct Watch {
    sights: Sights,
    captures: Option<Captures>,
    usage: Vec<Usage>,
    next: Nanos,
}

impl Watch {
    /// Looks at these from now on, with captures if there is a request for some.
    ///
    /// # Errors
    /// If a capture's file cannot be made.
    pub fn begin(
        sights: Sights,
        request: &CaptureRequest,
        names: &Names,
    ) -> Result<Watch, Failure> {
        let begin = || Captures::begin(request, sights.taps.len(), &sights.buses, &sights.adapters);
        let captures = request.is_some().then(begin).transpose()?;
        let name = |(place, _): &(usize, _)| Usage::new(names.device(*place as u64));
        let usage = sights.taps.iter().map(name).collect();
        Ok(Watch { sights, captures, usage, next: DISTANCE })
    }

    /// The time has come to here.
    pub fn at(
        &mut self,
        now: Nanos,
        perfetto: Option<&mut Perfetto>,
        messages: Option<&mut Messages>,
    ) {
        if now >= self.next {
            self.next = now + DISTANCE;
            self.look(now, perfetto, messages);
        }
    }

    fn look(
        &mut self,
        now: Nanos,
        mut perfetto: Option<&mut Perfetto>,
        mut messages: Option<&mut Messages>,
    ) {
        for (index, (_, tap)) in self.sights.taps.iter().enumerate() {
            let passed = tap.take();
            let usage = &mut self.usage[index];
            usage.add(&passed);
            if let Some(perfetto) = &mut perfetto {
                passed.packets.iter().for_each(|packet| perfetto.packet(index, usage, packet));
            }
            if let Some(messages) = &mut messages {
                messages.passed(index, &passed);
            }
            if let Some(captures) = &mut self.captures {
                for transfer in &passed.transfers {
                    captures.usb(index, &capture::event(transfer, index as u16 + 1));
                }
                captures.settle(index, passed.settled);
            }
        }
        if let Some(captures) = &mut self.captures {
            captures.frames(now);
        }
        if let Some(messages) = messages {
            messages.follow(now);
            if let Some(perfetto) = perfetto {
                messages.take_arrived().for_each(|(pipe, life)| perfetto.message(pipe, &life));
            }
        }
    }

    /// The end: how the buses were used.
    ///
    /// # Errors
    /// If a capture could not be written.
    pub fn finish(
        mut self,
        now: Nanos,
        perfetto: Option<&mut Perfetto>,
        messages: Option<&mut Messages>,
    ) -> Result<Vec<Usage>, Failure> {
        self.look(now, perfetto, messages);
        self.captures.map_or(Ok(()), Captures::finish)?;
        Ok(self.usage)
    }
}
