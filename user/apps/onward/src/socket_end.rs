//! Takes the datagrams of the socket `onward`, checks every byte, and reports as the end of a flow:
//! how many came, how many are missing, and how much longer the slowest took than the fastest.
//!
//! Once a second it says `ONWARD came lost damaged`.

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use diapason_netlib::UdpSocket;
use diapason_onward::{CHECK, MOST, OnwardEnd, read};
use diapason_rt::{Arguments, Errno, entry, log, time};

entry!(main);

fn main(_: Arguments) {
    if let Err(errno) = run() {
        log!("end: {errno:?}");
    }
}

fn run() -> Result<(), Errno> {
    let mut socket = UdpSocket::bind("onward")?;
    let mut end = OnwardEnd::default();
    let mut memory = [0; MOST];
    loop {
        match socket.recv(&mut memory, end.report_at()) {
            Ok(received) => {
                let message = memory.get(..received.length).unwrap_or(&[]);
                end.took(time::work(CHECK, || read(message)));
            }
            Err(Errno::TimedOut) => {}
            Err(errno) => return Err(errno),
        }
        end.look();
    }
}
