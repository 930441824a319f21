//! Contexts in memory: what the driver hands in, what it is shown.

use crate::{Memory, Xhc};
use diapason_usb::context::{self, Control, SlotState, WORDS, Words};
use diapason_usb::trb::{Completion, Trb};

fn number(state: SlotState) -> u32 {
    match state {
        SlotState::Disabled => 0,
        SlotState::Default => 1,
        SlotState::Addressed => 2,
        SlotState::Configured => 3,
    }
}

impl Xhc {
    fn stride(&self) -> u64 {
        if self.config.large_contexts { 64 } else { 32 }
    }

    pub(crate) fn load_context(
        &mut self,
        memory: &mut dyn Memory,
        base: u64,
        index: u64,
    ) -> Option<Words> {
        let address = base.wrapping_add(index * self.stride());
        self.load_words::<WORDS>(memory, address).map(Words)
    }

    /// Returns the contexts that an input context adds and drops, and its slot context.
    pub(crate) fn input(
        &mut self,
        memory: &mut dyn Memory,
        block: Trb,
    ) -> Result<(Control, context::Slot), Completion> {
        let base = block.parameter;
        if base & 0xf != 0 {
            return Err(Completion::Trb);
        }
        let mut load = |index| self.load_context(memory, base, index).ok_or(Completion::Trb);
        Ok((Control(load(0)?), context::Slot(load(1)?)))
    }

    /// The endpoint context of an input context.
    pub(crate) fn input_endpoint(
        &mut self,
        memory: &mut dyn Memory,
        block: Trb,
        index: u8,
    ) -> Result<context::EndpointContext, Completion> {
        let words = self.load_context(memory, block.parameter, u64::from(index) + 1);
        words.map(context::EndpointContext).ok_or(Completion::Trb)
    }

    /// Shows the slot context to the driver.
    pub(crate) fn write_slot(&mut self, memory: &mut dyn Memory, slot: u8) -> Option<()> {
        let known = &mut self.slots[usize::from(slot)];
        known.words.set_state_number(number(known.state));
        let (address, words) = (known.contexts, known.words.0.0);
        self.store_words(memory, address, &words)
    }

    /// Shows an endpoint's whole context to the driver; `None` clears it.
    pub(crate) fn write_endpoint(
        &mut self,
        memory: &mut dyn Memory,
        slot: u8,
        index: u8,
        words: Option<context::EndpointContext>,
    ) -> Option<()> {
        let mut words = words.unwrap_or_default();
        if let Some(endpoint) = self.endpoint(slot, index) {
            endpoint.write_back(&mut words);
        }
        let base = self.slots[usize::from(slot)].contexts;
        let address = base.wrapping_add(u64::from(index) * self.stride());
        self.store_words(memory, address, &words.0.0)
    }

    /// Shows state and dequeue pointer of an endpoint to the driver.
    pub(crate) fn update_endpoint(&mut self, memory: &mut dyn Memory, slot: u8, index: u8) {
        let base = self.slots[usize::from(slot)].contexts;
        if let Some(words) = self.load_context(memory, base, u64::from(index)) {
            self.write_endpoint(memory, slot, index, Some(context::EndpointContext(words)));
        }
    }
}
