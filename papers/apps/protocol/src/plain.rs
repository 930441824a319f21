//! Filter, stack and copy alone, as plain code: `PLAIN bytes filter bypass full conventional`,
//! instructions, the most of many runs.

#![no_std]
#![no_main]

use core::hint::black_box;
use diapason_ether::{Buffers, Demux, FrameInbox, LazyReceiver, Listeners, NetworkThread};
use diapason_ether::{SocketBuffers, SocketReader};
use diapason_protocol::{Handling, flow, listener, stamp};
use diapason_rt::{Arguments, entry, log};

entry!(main);

const RUNS: usize = 50;
const COUNT: usize = 4;

/// A few buffers on the stack.
struct Memory([[u8; 2_048]; COUNT]);

impl Buffers for Memory {
    #[inline(always)]
    fn buffer(&self, number: u16) -> &[u8] {
        &self.0[usize::from(number) % COUNT]
    }
}

impl SocketBuffers for Memory {
    fn buffer_mut(&mut self, number: u16) -> &mut [u8] {
        &mut self.0[usize::from(number) % COUNT]
    }
}

fn main(_: Arguments) {
    let empty = most(|| timed(|| ()));
    for bytes in [10, 20, 32, 40, 60, 80, 100, 400, 1_000, 1_400] {
        let costs = [filter(bytes), lazy(bytes, Handling::Bypass), lazy(bytes, Handling::Lazy)];
        let [filter, bypass, full] = costs.map(|cost| cost - empty);
        let conventional = conventional(bytes) - empty;
        log!("PLAIN {bytes} {filter} {bypass} {full} {conventional}");
    }
    log!("DONE");
}

/// Returns the instructions of something, and of reading the counter.
#[inline(always)]
fn timed(what: impl FnOnce()) -> u64 {
    let begin = stamp();
    what();
    stamp() - begin
}

fn most(mut once: impl FnMut() -> u64) -> u64 {
    (0..RUNS).map(|_| once()).max().unwrap_or(0)
}

/// Writes a frame with so many bytes of payload into the buffer, and returns its length.
fn write(memory: &mut Memory, buffer: u16, bytes: usize) -> usize {
    let payload = [7; 1_400];
    let payload = payload.get(..bytes).unwrap_or(&payload);
    flow(0, false).write(payload, memory.buffer_mut(buffer)).unwrap_or(0)
}

#[inline(never)]
fn filter(bytes: usize) -> u64 {
    let mut memory = Memory([[0; 2_048]; COUNT]);
    let mut listeners = Listeners::<8>::default();
    for number in 0..2 {
        let _ = listeners.add(number, &listener(usize::from(number), Handling::Bypass));
    }
    let length = write(&mut memory, 0, bytes);
    most(|| {
        let frame = black_box(memory.buffer(0).get(..length).unwrap_or(&[]));
        timed(|| {
            black_box(listeners.classify(frame));
        })
    })
}

/// From the frame in its buffer to the payload in the receiver's memory.
#[inline(never)]
fn lazy(bytes: usize, way: Handling) -> u64 {
    let mut memory = Memory([[0; 2_048]; COUNT]);
    let inboxes = [FrameInbox::default(), FrameInbox::default()];
    let mut demux = Demux::<8, 16>::new(COUNT as u16);
    for (number, inbox) in inboxes.iter().enumerate() {
        let _ = demux.listen(&listener(number, way), inbox);
    }
    let mut receiver = LazyReceiver::new(&inboxes[0], &listener(0, way));
    let mut into = [0; 1_500];
    most(|| {
        demux.reclaim();
        let buffer = demux.refill().unwrap_or(0);
        let length = write(&mut memory, buffer, bytes);
        let length = black_box(length);
        timed(|| {
            let frame = memory.buffer(buffer).get(..length).unwrap_or(&[]);
            black_box(demux.arrive(buffer, frame));
            let _ = black_box(receiver.take(&memory, black_box(&mut into)));
        })
    })
}

#[inline(never)]
fn conventional(bytes: usize) -> u64 {
    let mut memory = Memory([[0; 2_048]; COUNT]);
    let mut payloads = Memory([[0; 2_048]; COUNT]);
    let inboxes = [FrameInbox::default(), FrameInbox::default(), FrameInbox::default()];
    let mut demux = Demux::<8, 16>::new(COUNT as u16);
    let _ = demux.listen_to_rest(&inboxes[2], COUNT as u16);
    let mut network = NetworkThread::<8, 16>::new(&inboxes[2], COUNT as u16);
    for (number, inbox) in inboxes[..2].iter().enumerate() {
        network.listen(&listener(number, Handling::Conventional), inbox);
    }
    let mut socket = SocketReader::new(&inboxes[0]);
    let mut into = [0; 1_500];
    most(|| {
        demux.reclaim();
        let buffer = demux.refill().unwrap_or(0);
        let length = write(&mut memory, buffer, bytes);
        let length = black_box(length);
        timed(|| {
            let frame = memory.buffer(buffer).get(..length).unwrap_or(&[]);
            black_box(demux.arrive(buffer, frame));
            let _ = black_box(network.process(&memory, &mut payloads));
            let _ = black_box(socket.take(&payloads, black_box(&mut into)));
        })
    })
}
