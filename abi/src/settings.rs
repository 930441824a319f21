//! Settings: what a description gives a program by name, beyond its four arguments.
//!
//! A program that takes settings has room for them in its image, behind a mark. The builder of the
//! boot archive finds the mark and writes the settings there. They are part of the booted image,
//! and the kernel need not know of them.

use crate::Key;

/// The mark that stands in an image before the room for settings. It occurs nowhere else.
pub const MARK: [u64; 4] =
    [0x9d4c_1f27_e85a_b36e, 0x23f0_6b91_7ac4_d85f, 0xc6e1_583a_0d97_b24b, 0x7b38_a2d5_914e_60fc];
pub const WORDS: usize = 124;

/// Lists of numbers, each with a name.
///
/// Each is the key of its name, how many numbers there are, and these. A key of 0 ends them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settings([u64; WORDS]);

/// There is no room for another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Full;

impl Settings {
    pub const NONE: Settings = Settings([0; WORDS]);

    /// As they are in an image, whatever is there.
    #[must_use]
    pub const fn of(words: [u64; WORDS]) -> Settings {
        Settings(words)
    }

    /// Returns the words to write into an image.
    #[must_use]
    pub const fn words(&self) -> &[u64; WORDS] {
        &self.0
    }

    /// Returns the numbers under a name; none if nothing is.
    #[must_use]
    pub fn get(&self, name: &str) -> &[u64] {
        let wanted = Key::new(name).0;
        let mut rest = &self.0[..];
        while let Some((key, numbers, after)) = split(rest) {
            if key == wanted {
                return numbers;
            }
            rest = after;
        }
        &[]
    }

    /// Returns the first number under a name.
    #[must_use]
    pub fn first(&self, name: &str) -> Option<u64> {
        self.get(name).first().copied()
    }

    /// Puts numbers under a name that has none yet.
    ///
    /// # Errors
    /// There is no room for them.
    pub fn put(&mut self, name: &str, numbers: &[u64]) -> Result<(), Full> {
        let mut rest = &self.0[..];
        while let Some((_, _, after)) = split(rest) {
            rest = after;
        }
        let start = WORDS - rest.len();
        let room = self.0.get_mut(start..start + 2 + numbers.len()).ok_or(Full)?;
        room[0] = Key::new(name).0;
        room[1] = numbers.len() as u64;
        room[2..].copy_from_slice(numbers);
        Ok(())
    }
}

/// The first of a list of settings, and what is behind it; `None` at the end, or where nothing
/// makes sense.
fn split(words: &[u64]) -> Option<(u64, &[u64], &[u64])> {
    let [key @ (1..), count, rest @ ..] = words else { return None };
    let (numbers, after) = rest.split_at_checked(usize::try_from(*count).ok()?)?;
    Some((*key, numbers, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_is_got() {
        let mut settings = Settings::NONE;
        settings.put("places", &[5]).unwrap();
        settings.put("nothing", &[]).unwrap();
        settings.put("rates", &[480, 0, 3_200]).unwrap();
        let read = Settings::of(*settings.words());
        assert_eq!(read.get("rates"), [480, 0, 3_200]);
        assert_eq!((read.first("places"), read.first("nothing")), (Some(5), None));
        assert_eq!(read.get("place"), [0; 0]);
    }

    #[test]
    fn there_is_an_end_to_the_room() {
        let mut settings = Settings::NONE;
        settings.put("most", &[1; WORDS - 2 - 3]).unwrap();
        assert_eq!(settings.put("more", &[2, 3]), Err(Full));
        settings.put("last", &[7]).unwrap();
        assert_eq!(settings.put("none", &[]), Err(Full));
        assert_eq!((settings.first("last"), settings.get("more")), (Some(7), &[][..]));
    }

    #[test]
    fn no_words_make_it_panic() {
        let mut state = 5u64;
        for round in 0..20_000 {
            let mut words = [0; WORDS];
            for word in &mut words {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(round);
                *word = if state >> 62 == 0 { state } else { state >> 59 };
            }
            let mut settings = Settings::of(words);
            let _ = (settings.get("rates").len(), settings.put("rates", &[1, 2]));
        }
    }
}
