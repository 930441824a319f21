//! The screen of a PC, as far as a kernel needs it at boot and after the end of a run.
//!
//! Nothing here touches memory of a screen: whoever has it passes a function that does. So boot
//! loaders' bytes, geometry, words and the verdict are tested on the host, and the kernel keeps
//! only the writes.
//!
//! | file | what |
//! |---|---|
//! | `frame` | where a boot loader's framebuffer is, and which bytes a character changes |
//! | `font` | the shapes of the characters |
//! | `sheet` | the names that an image carries for its screen, and what they may be judged by |
//! | `line` | text without formatting of the standard library |
//! | `words` | the sentences, as named constants |
//! | `account` | what the final tables add up to: the verdict |
//! | `page` | what stands where |

#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

pub mod account;
pub mod font;
pub mod frame;
pub mod line;
pub mod page;
pub mod sheet;
mod words;

pub use frame::{Canvas, Framebuffer, Pixel};
pub use page::Page;
