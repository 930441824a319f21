//! Pipes to a device: the terms of a thread that writes, and of one that passes on what it reads.

use super::agree::{Search, Terms};
use super::refused::WhyRefused;
use super::wish::Outward;
use crate::bill::{Bill, Look, Promised, Pump, What, pump};
use crate::size::{Bucket, arrivals};
use diapason_abi::Nanos;

impl Search<'_> {
    /// Returns the terms with this period for a writer: its ring never holds more than its buffer.
    pub(super) fn written(&self, period: Nanos) -> Result<Terms, WhyRefused> {
        let output = self.output(self.channel)?;
        let written = self.qos.written(period, &self.driver.attributes);
        // It writes what its budget is for as soon as it has that: the last of it one period later.
        let mut bill = self.pumped(&output, &written, self.own(), period)?;
        let slots = self.qos.slots(&self.driver.attributes);
        let needed = in_ring(&bill, &written, Nanos::ZERO);
        if needed > slots {
            return Err(WhyRefused::Overflow { slots, needed });
        }
        bill.slots = needed;
        let taken = period + bill.value(What::Taken);
        Ok(Terms { taken, ..self.terms_with(period, bill) })
    }

    /// Returns the terms with this period for a pipe that passes on what it reads, in place `own`
    /// of the endpoint. A delay on the way in is paid for once.
    pub(super) fn passed(&self, period: Nanos, to: u8, own: usize) -> Result<Terms, WhyRefused> {
        let output = self.output(to)?;
        let read = self.read(period)?;
        let arrives = self.qos.contract(&self.driver.attributes);
        let onward = self.pumped(&output, &arrives, own, Nanos::ZERO)?;
        let needed = in_ring(&onward, &arrives, read.bill.total - read.bill.least);
        if needed > output.slots {
            return Err(WhyRefused::Overflow { slots: output.slots, needed });
        }
        Ok(Terms {
            onward: onward.total,
            taken: read.bill.total + onward.value(What::Taken),
            ..read
        })
    }

    fn output(&self, channel: u8) -> Result<Outward, WhyRefused> {
        self.driver.output.ok_or(WhyRefused::Undeclared { channel: channel.into() })
    }

    /// Returns the bill from the ring on, of what enters by this contract. More than the device
    /// sends in the long run has none.
    fn pumped(
        &self,
        output: &Outward,
        enters: &Bucket,
        own: usize,
        told: Nanos,
    ) -> Result<Bill, WhyRefused> {
        let attributes = &self.driver.attributes;
        let sends = Bucket { per: output.drain.each, messages: 1, ..*enters };
        let [wanted, given] = [*enters, sends].map(|bucket| attributes.bits_of(&bucket));
        if wanted > given {
            return Err(WhyRefused::Device { wanted, given });
        }
        let back = self.back(own).map_err(WhyRefused::Stage)?;
        let (share, period) = output.io;
        let (rest, work) = output.look;
        let service = Promised::io(share, period, rest);
        let (transfer, transfers) = output.transfers;
        let pumped = Pump {
            told,
            look: Look { rest, work, service: &service },
            slots: output.slots,
            transfers,
            round: Pump::round(transfer, transfers, &back),
            ahead: output.ahead,
            channels: output.channels,
            drain: output.drain,
            back: back.total,
        };
        Ok(pump(&pumped, &[*enters]))
    }
}

/// Returns the most messages in the ring, that entered by this contract up to `varies` late.
fn in_ring(bill: &Bill, enters: &Bucket, varies: Nanos) -> u64 {
    arrivals(&[*enters], varies + bill.value(What::Written) + bill.value(What::Taken))
}
