//! The segments in which programs have messages to send.

use diapason_contract::toucan::{
    ControllerNames, MESSAGES_SETTING, MessageTerms, OUT_MESSAGES, OutMessage, SENDERS,
};
use diapason_pipe::Reader;
use diapason_pipe::intake::Intake;
use diapason_rt::{Errno, pipe, settings};

/// The reading ends of all senders, by their numbers.
pub(crate) type Senders = Intake<Reader<'static, OutMessage, OUT_MESSAGES>, SENDERS>;

/// Opens the segments of the senders that the settings name.
///
/// # Errors
/// None for what the description grants.
pub(crate) fn open(controller: u8, names: &ControllerNames) -> Result<Senders, Errno> {
    let told = settings::read();
    let mut all = [const { None }; SENDERS];
    for terms in MessageTerms::all(told.get(MESSAGES_SETTING)) {
        let place = usize::from(terms.sender) % SENDERS;
        if terms.controller == controller && all[place].is_none() {
            all[place] = Some(pipe::reader(names.out[place])?);
        }
    }
    Ok(Intake::new(all))
}
