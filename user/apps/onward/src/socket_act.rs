//! Takes the datagrams of the socket `onward`, checks every byte, and writes a numbered frame to a
//! CAN channel for each. It reports as the last program of a flow.
//!
//! Once a second it says `ONWARD came lost damaged`, and how the channel does. Argument: the number
//! of the channel.

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use diapason_canlib::Error;
use diapason_concentrator::stream::SentStream;
use diapason_netlib::UdpSocket;
use diapason_onward::{CHECK, MOST, OnwardEnd, read};
use diapason_rt::{Arguments, Errno, entry, heap, log, time};

entry!(main);
// Parts of `diapason-can` that nothing here calls would allocate: no page of it is ever taken.
heap!(4 * 1024);

fn main(Arguments([number, ..]): Arguments) {
    if let Err(error) = run(number) {
        log!("can{number}: not written: {error}");
    }
}

fn run(number: u64) -> Result<(), Error> {
    let mut end = OnwardEnd::default();
    let mut socket = UdpSocket::bind("onward")?;
    let mut stream = SentStream::open(number)?;
    let mut memory = [0; MOST];
    loop {
        match socket.recv(&mut memory, end.report_at()) {
            Ok(received) => {
                let message = memory.get(..received.length).unwrap_or(&[]);
                let found = time::work(CHECK, || read(message));
                if found.is_some() {
                    match stream.write() {
                        // The pipe counts what it had no room for.
                        Ok(()) | Err(Error::Full) => {}
                        Err(error) => return Err(error),
                    }
                }
                end.took(found);
            }
            Err(Errno::TimedOut) => {}
            Err(errno) => return Err(errno.into()),
        }
        stream.read();
        stream.look(|_, _| {})?;
        if end.look() {
            stream.say()?;
        }
    }
}
