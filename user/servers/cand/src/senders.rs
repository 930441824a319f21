//! The segments in which programs have messages to send.

use diapason_contract::toucan::{
    ControllerNames, MESSAGES_SETTING, MessageTerms, OUT_MESSAGES, OutMessage, SENDERS,
};
use diapason_pipe::Reader;
use diapason_rt::{Errno, pipe, settings};

/// The reading ends of all senders.
pub(crate) struct Senders([Option<Reader<'static, OutMessage, OUT_MESSAGES>>; SENDERS]);

impl Senders {
    /// Opens the segments of the senders that the settings name.
    ///
    /// # Errors
    /// None for what the description grants.
    pub fn open(controller: u8, names: &ControllerNames) -> Result<Senders, Errno> {
        let told = settings::read();
        let mut all = [const { None }; SENDERS];
        for terms in MessageTerms::all(told.get(MESSAGES_SETTING)) {
            let place = usize::from(terms.sender) % SENDERS;
            if terms.controller == controller && all[place].is_none() {
                all[place] = Some(pipe::reader(names.out[place])?);
            }
        }
        Ok(Senders(all))
    }

    /// Takes a message, and returns the number of its sender.
    pub fn take(&mut self) -> Option<(u8, OutMessage)> {
        let all = (0..).zip(&mut self.0);
        all.filter_map(|(number, out)| Some((number, out.as_mut()?))).find_map(|(number, out)| {
            let message = out.pop()?;
            Some((number, message))
        })
    }
}
