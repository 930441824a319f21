//! Everything the `diapason` command does, as a library, so that `xtask` calls the same code.
//!
//! From a description to a verdict: [`metal`] compiles the kernel and the programs, [`session`]
//! puts them into an archive and boots it with [`qemu`], [`console`] and [`words`] turn what the
//! kernel prints into sentences, [`outcome`] into tables and a verdict. [`bench`] is a run whose
//! program counts instructions, and
//! [`measure`] counts what works take. [`plan`] proves a description without running it.
//! [`stick`] makes a file that boots on a PC.
//! [`capture`] writes what passes USB and CAN in files for Wireshark.
//! [`project`] compiles programs of a user's own, which [`create`] begins.
//! [`network`] writes lists of hosts. [`beside`] starts the program that reproduces papers, and
//! [`chart`] draws.
//!
//! Rule of this room: policy is decided elsewhere. Here are files, processes, and words for people.

#![forbid(unsafe_code)]

pub mod arguments;
pub mod bench;
pub mod beside;
pub mod c_programs;
pub mod can_server;
pub mod capture;
pub mod chart;
pub mod commands;
pub mod compile;
pub mod computer;
pub mod console;
pub mod cores;
mod create;
pub mod describe;
pub mod difference;
#[cfg(test)]
mod documented;
pub mod duration;
pub mod explain;
pub mod failure;
pub mod flight;
pub mod formats;
pub mod hardware;
pub mod hints;
pub mod image;
pub mod init;
pub mod input;
pub mod interrupt;
pub mod linkage;
mod live;
pub mod logs;
mod mark;
pub mod measure;
pub mod messages;
pub mod metal;
pub mod names;
pub mod network;
pub mod outcome;
pub mod output;
pub mod own_kernel;
mod pace;
pub mod plan;
pub mod plugged;
pub mod profile;
pub mod project;
pub mod qemu;
mod real;
pub mod report;
pub mod results;
pub mod session;
mod several;
mod sheet;
pub mod signals;
pub mod simulate;
pub mod states;
pub mod stick;
pub mod surroundings;
pub mod table;
pub mod together;
pub mod tools;
pub mod witness;
pub mod words;
pub mod workspace;

pub use failure::Failure;
pub use outcome::Outcome;
pub use workspace::Workspace;
