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
        // The driver sends the frames of the time itself.
        if terms.controller == controller
            && let Some(place @ None) = all.get_mut(usize::from(terms.sender))
        {
            *place = Some(pipe::reader(names.out[usize::from(terms.sender)])?);
        }
    }
    Ok(Intake::new(all))
}
