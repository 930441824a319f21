//! The clients of a service: whether there is news for them, and the memory that they share with
//! the controller.

use diapason_usb::class::HEAD;
use diapason_usb::xhci::{Buffer, Dma, Window};

/// The first place of the second memory, where clients share two.
pub(crate) const SECOND: u32 = u128::BITS;

/// The clients of a service, without their pipes.
pub(crate) struct Clients<D: Dma> {
    /// Bells to be rung: bit n stands for bell n of the service.
    fresh: u32,
    memories: [Option<D>; 2],
    /// Clients share two memories: places from [`SECOND`] on are in the second one.
    is_split: bool,
    /// Bytes from one place in a memory to the next.
    unit: usize,
    /// Places of each memory that the controller has: bit n stands for place n. Later places have
    /// no bit.
    lent: [u128; 2],
}

impl<D: Dma> Clients<D> {
    /// Clients that share no memory.
    pub const fn new() -> Clients<D> {
        Clients::over([None, None], false, 1)
    }

    const fn over(memories: [Option<D>; 2], is_split: bool, unit: usize) -> Clients<D> {
        Clients { fresh: 0, memories, is_split, unit, lent: [0; 2] }
    }

    /// Clients that share memory, whose places are so many bytes apart.
    pub fn sharing(memory: D, unit: usize) -> Clients<D> {
        Clients::over([Some(memory), None], false, unit)
    }

    /// Clients that share two memories, of which one may be absent.
    pub fn sharing_each(memories: [Option<D>; 2], unit: usize) -> Clients<D> {
        Clients::over(memories, true, unit)
    }

    /// Returns the number of the memory with a place, and the place there.
    const fn split(&self, place: u32) -> (usize, u32) {
        if self.is_split && place >= SECOND { (1, place - SECOND) } else { (0, place) }
    }

    /// Notes that the bells of these bits are to be rung.
    pub const fn ring(&mut self, bells: u32) {
        self.fresh |= bells;
    }

    /// Returns the bells that are to be rung, and forgets them.
    pub const fn take_fresh(&mut self) -> u32 {
        core::mem::replace(&mut self.fresh, 0)
    }

    /// Returns all of the shared memory, if there is any; of two memories the first.
    pub fn window(&self) -> Option<Window> {
        self.memories[0].as_ref().map(window)
    }

    /// Returns all of each shared memory.
    pub fn windows(&self) -> impl Iterator<Item = Window> {
        self.memories.iter().flatten().map(window)
    }

    /// Returns how many whole places there are.
    pub fn places(&self) -> usize {
        self.window().map_or(0, |window| window.length as usize / self.unit)
    }

    /// Returns so many bytes from a place on, if all of them are in the memory.
    pub fn buffer(&self, place: u32, length: usize) -> Option<Buffer> {
        let (number, place) = self.split(place);
        let window = self.memories[number].as_ref().map(window)?;
        let at = (place as usize).checked_mul(self.unit)?;
        let end = at.checked_add(length)?;
        let inside = length > 0 && end <= window.length as usize;
        inside.then(|| Buffer { address: window.base + at as u64, length: length as u32 })
    }

    /// Returns the first of the `count` bytes that came to a place.
    pub fn head<'a>(&self, place: u32, count: usize, into: &'a mut [u8; HEAD]) -> &'a [u8] {
        let (number, place) = self.split(place);
        let Some(memory) = &self.memories[number] else { return &[] };
        let into = &mut into[..count.min(HEAD)];
        memory.read((place as usize * self.unit) as u64, into);
        into
    }

    /// Returns the eight bytes of a place from `offset` on, the least first, if there is memory.
    pub fn word(&self, place: u32, offset: usize) -> Option<u64> {
        let mut bytes = [0; 8];
        let (number, place) = self.split(place);
        let at = place as usize * self.unit + offset;
        self.memories[number].as_ref()?.read(at as u64, &mut bytes);
        Some(u64::from_le_bytes(bytes))
    }

    /// Notes that a place is the controller's until [`Clients::take_back`].
    pub fn lend(&mut self, place: u32) {
        let (number, place) = self.split(place);
        self.lent[number] |= bit(place);
    }

    /// Notes that the controller has let go of a place.
    pub fn take_back(&mut self, place: u32) {
        let (number, place) = self.split(place);
        self.lent[number] &= !bit(place);
    }

    /// Returns whether the controller has a place, which must be one of the first 128 of a memory.
    pub fn has_lent(&self, place: u32) -> bool {
        let (number, place) = self.split(place);
        self.lent[number] & bit(place) != 0
    }
}

/// Returns all of a memory.
fn window<D: Dma>(memory: &D) -> Window {
    Window { base: memory.base(), length: memory.length() }
}

/// Returns the bit of a place, or none.
fn bit(place: u32) -> u128 {
    1u128.checked_shl(place).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    /// Memory whose byte n is n.
    struct Counting(u64);

    impl Dma for Counting {
        fn base(&self) -> u64 {
            0x10_0000
        }

        fn length(&self) -> u64 {
            self.0
        }

        fn load(&self, _: u64) -> u32 {
            unreachable!("nobody reads words")
        }

        fn store(&mut self, _: u64, _: u32) {
            unreachable!("nobody writes")
        }

        fn read(&self, offset: u64, bytes: &mut [u8]) {
            assert!(offset + bytes.len() as u64 <= self.0, "outside");
            bytes.iter_mut().zip(offset..).for_each(|(byte, at)| *byte = at as u8);
        }

        fn write(&mut self, _: u64, _: &[u8]) {
            unreachable!("nobody writes")
        }
    }

    #[test]
    fn a_buffer_is_all_in_the_memory() {
        let clients = Clients::sharing(Counting(200), 64);
        let buffer = |address, length| Some(Buffer { address, length });
        assert_eq!(clients.places(), 3);
        assert_eq!(clients.buffer(0, 200), buffer(0x10_0000, 200));
        assert_eq!(clients.buffer(2, 72), buffer(0x10_0080, 72));
        for (place, length) in [(0, 0), (0, 201), (2, 73), (4, 1), (u32::MAX, 1), (1, usize::MAX)] {
            assert_eq!(clients.buffer(place, length), None, "{length} bytes at {place}");
        }
        let none = Clients::<Counting>::new();
        assert_eq!((none.places(), none.window(), none.buffer(0, 1)), (0, None, None));
    }

    #[test]
    fn the_head_is_what_came_up_to_its_length() {
        let clients = Clients::sharing(Counting(200), 64);
        for (place, count) in [(0, 0), (1, 5), (2, HEAD), (2, 72)] {
            let mut into = [0; HEAD];
            let came = (place as u8 * 64..).take(count.min(HEAD)).collect::<Vec<u8>>();
            assert_eq!(clients.head(place, count, &mut into), came);
        }
        assert_eq!(Clients::<Counting>::new().head(0, 5, &mut [0; HEAD]), []);
    }

    #[test]
    fn a_place_is_the_controllers_until_it_is_taken_back() {
        let mut clients = Clients::sharing(Counting(1 << 20), 64);
        for place in [0, 31, 127] {
            assert!(!clients.has_lent(place));
            clients.lend(place);
            assert!(clients.has_lent(place) && !clients.has_lent(place ^ 1));
        }
        clients.take_back(31);
        let lent: Vec<u32> = (0..200).filter(|place| clients.has_lent(*place)).collect();
        assert_eq!(lent, [0, 127]);
        // A place without a bit is nobody else's.
        clients.lend(128);
        clients.take_back(u32::MAX);
        assert!((0..200).filter(|place| clients.has_lent(*place)).eq(lent));
    }

    #[test]
    fn places_of_two_memories_are_apart() {
        let mut clients = Clients::sharing_each([None, Some(Counting(200))], 64);
        assert_eq!(clients.windows().count(), 1);
        assert_eq!(clients.buffer(2, 10), None);
        let buffer = Buffer { address: 0x10_0080, length: 10 };
        assert_eq!(clients.buffer(SECOND + 2, 10), Some(buffer));
        assert_eq!(
            clients.word(SECOND, 8),
            Some(u64::from_le_bytes([8, 9, 10, 11, 12, 13, 14, 15]))
        );
        clients.lend(SECOND + 2);
        assert!(clients.has_lent(SECOND + 2) && !clients.has_lent(2));
        clients.take_back(2);
        assert!(clients.has_lent(SECOND + 2));
        clients.take_back(SECOND + 2);
        assert!(!clients.has_lent(SECOND + 2));
    }

    #[test]
    fn a_bell_is_rung_once() {
        let mut clients = Clients::<Counting>::new();
        clients.ring(0b01);
        clients.ring(0b11);
        clients.ring(0);
        assert_eq!((clients.take_fresh(), clients.take_fresh()), (0b11, 0));
    }
}
