//! The interface's reaction to the host's commands.

use super::channel::{Channel, NotSent};
use super::command::{CommandHeader, HostCommand, KvaserCommand, number};
use super::personality::BIT_RATE_MAX;
use super::{CHANNELS, DEBUGGER, Hydra, NOBODY, ROUTER};
use diapason_abi::Nanos;

/// Codes of an error event.
const ERROR_CAN: u8 = 1;
const ERROR_UNKNOWN: u8 = 5;
const ERROR_PARAMETER: u8 = 9;
const ERROR_QUEUE: u8 = 8;
const LISTEN_ONLY: u16 = 2;
const ERROR_REPORTING: u16 = 5;
const ONE_SHOT: u16 = 6;
/// "There is no such capability."
const NOT_IMPLEMENTED: u16 = 1;
const FIRMWARE: u32 = 0x0102_0003;
/// The product number (EAN) in binary coded decimals; the real device's is not known to us.
const PRODUCT_NUMBER: [u8; 8] = [0x97, 0x07, 0x01, 0x13, 0x30, 0x73, 0x00, 0x00];

impl Hydra {
    /// Does what a command says, and replies.
    pub(super) fn perform(&mut self, now: Nanos, command: &KvaserCommand) {
        let header = command.header();
        if command.is_extended() != (header.number == number::EXTENDED_TRANSMIT) {
            return self.refuse(now, header, ERROR_UNKNOWN);
        }
        let message = match header.number {
            number::MAP_CHANNEL => self.map_channel(header, command),
            number::GET_SOFTWARE_INFO => self.software_info(header),
            number::GET_SOFTWARE_DETAILS => self.software_details(header, command),
            number::GET_CARD_INFO => self.card_info(header),
            number::GET_CAPABILITIES => self.capabilities(header, command),
            number::LED_ACTION => {
                reply(header, number::LED_ACTION_REPLY).put(4, command.array::<28>(4))
            }
            _ => return self.perform_on_channel(now, header, command),
        };
        self.outbox.reply(message);
    }

    /// An extended command with an impossible length: its receiver cannot be known.
    pub(super) fn refuse_unreadable(&mut self, now: Nanos) {
        let header =
            CommandHeader { number: number::EXTENDED, to: ROUTER, from: 0, transaction: 0 };
        self.refuse(now, header, ERROR_PARAMETER);
    }

    fn refuse(&mut self, now: Nanos, header: CommandHeader, code: u8) {
        let time = self.ticks(now).to_le_bytes();
        let [a, b, c, d, e, f, ..] = time;
        let message = reply(header, number::ERROR).put(4, [a, b, c, d, e, f]);
        self.outbox.reply(message.put(11, [code]).put(12, u16::from(header.number).to_le_bytes()));
    }

    fn perform_on_channel(&mut self, now: Nanos, header: CommandHeader, command: &KvaserCommand) {
        let ticks = self.ticks(now);
        let personality = self.identity.personality;
        let found = self.channels.iter_mut().find(|channel| channel.entity() == header.to);
        let Some(channel) = found else {
            return self.refuse(now, header, ERROR_PARAMETER);
        };
        let answer = match header.number {
            number::SET_BUS_PARAMETERS if !personality.accepts(command.array(4)) => {
                return self.refuse(now, header, ERROR_PARAMETER);
            }
            number::SET_BUS_PARAMETERS => {
                *channel.parameters(false) = command.array(4);
                number::SET_BUS_PARAMETERS_REPLY
            }
            number::SET_DATA_PARAMETERS => {
                *channel.parameters(true) = command.array(16);
                number::SET_DATA_PARAMETERS_REPLY
            }
            number::GET_BUS_PARAMETERS => {
                let bytes = *channel.parameters(command.byte(4) == 1);
                let message = reply(header, number::GET_BUS_PARAMETERS_REPLY).put(4, bytes);
                return self.outbox.reply(message);
            }
            number::GET_CHIP_STATE => {
                let message = channel.state(header.transaction, ticks);
                return self.outbox.reply(message);
            }
            number::TRANSMIT | number::EXTENDED_TRANSMIT => {
                return self.transmit(now, header, command);
            }
            number::SET_DRIVER_MODE => return channel.set_mode(command.byte(4)),
            switching => match switch(channel, now, switching) {
                Some(answer) => answer,
                None => return self.refuse(now, header, ERROR_UNKNOWN),
            },
        };
        self.outbox.reply(reply(header, answer));
    }

    fn transmit(&mut self, now: Nanos, header: CommandHeader, command: &KvaserCommand) {
        let found = self.channels.iter_mut().find(|channel| channel.entity() == header.to);
        let sent = found.map(|channel| channel.transmit(now, command));
        let code = match sent {
            Some(Ok(())) => return,
            Some(Err(NotSent::Controller)) => ERROR_CAN,
            Some(Err(NotSent::Full)) => ERROR_QUEUE,
            Some(Err(NotSent::Parameter)) | None => ERROR_PARAMETER,
        };
        self.refuse(now, header, code);
    }

    fn map_channel(&self, header: CommandHeader, command: &KvaserCommand) -> HostCommand {
        let (name, index) = (command.array::<16>(4), command.byte(20));
        let length = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
        let channel = self.channels.get(usize::from(index)).map(Channel::entity);
        let entity = match name.get(..length) {
            Some(b"CAN") => channel,
            Some(b"SYSDBG") if index == 0 => Some(DEBUGGER),
            _ => None,
        };
        reply(header, number::MAP_CHANNEL_REPLY).put(4, [entity.unwrap_or(NOBODY), index])
    }

    fn software_info(&self, header: CommandHeader) -> HostCommand {
        let most = self.identity.outstanding.to_le_bytes();
        reply(header, number::GET_SOFTWARE_INFO_REPLY).put(12, most)
    }

    /// Also the place where the host says whether it understands extended commands.
    fn software_details(&mut self, header: CommandHeader, command: &KvaserCommand) -> HostCommand {
        let personality = self.identity.personality;
        let understands = command.byte(4) != 0;
        self.extended = personality.extended() && understands;
        let message = reply(header, number::GET_SOFTWARE_DETAILS_REPLY);
        let message = message.put(4, personality.flags(understands).to_le_bytes());
        let message = message.put(8, FIRMWARE.to_le_bytes()).put(16, PRODUCT_NUMBER);
        message.put(24, BIT_RATE_MAX.to_le_bytes())
    }

    fn card_info(&self, header: CommandHeader) -> HostCommand {
        let resolution = self.identity.personality.ticks_per_micro() as u32;
        let message = reply(header, number::GET_CARD_INFO_REPLY);
        let message = message.put(4, self.identity.serial.to_le_bytes());
        let message = message.put(8, resolution.to_le_bytes()).put(16, PRODUCT_NUMBER);
        message.put(24, [1, 0, 0, 0, self.channels.len().min(CHANNELS) as u8])
    }

    /// One bit per channel. A single attempt can only be asked for in extended commands.
    fn capabilities(&self, header: CommandHeader, command: &KvaserCommand) -> HostCommand {
        let asked = command.half(4);
        let all = (1u32 << self.channels.len().min(CHANNELS)) - 1;
        let (status, mask, value) = match asked {
            LISTEN_ONLY | ERROR_REPORTING => (0, all, all),
            ONE_SHOT => (0, all, if self.extended { all } else { 0 }),
            _ => (NOT_IMPLEMENTED, 0, 0),
        };
        let message = reply(header, number::GET_CAPABILITIES_REPLY).put(4, asked.to_le_bytes());
        let message = message.put(6, status.to_le_bytes()).put(8, mask.to_le_bytes());
        message.put(12, value.to_le_bytes())
    }
}

/// Commands that switch a channel's controller; the number of the reply.
fn switch(channel: &mut Channel, now: Nanos, command: u8) -> Option<u8> {
    match command {
        number::START_CHIP => {
            channel.start(now);
            Some(number::START_CHIP_REPLY)
        }
        number::STOP_CHIP => {
            channel.stop(now);
            Some(number::STOP_CHIP_REPLY)
        }
        number::FLUSH_QUEUE => {
            channel.flush(now);
            Some(number::FLUSH_QUEUE_REPLY)
        }
        _ => None,
    }
}

/// A reply from whom the request went to; requests to nobody are answered by the router.
fn reply(request: CommandHeader, number: u8) -> HostCommand {
    let from = if request.to == NOBODY { ROUTER } else { request.to };
    HostCommand::normal(number, from, request.transaction)
}
