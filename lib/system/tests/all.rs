//! All tests of this package that see it from outside, as one program: each program more is linked
//! with the whole package once more.

mod archive;
mod buses;
mod chains;
mod common;
mod computed;
mod controller;
mod controller_mts;
mod cores;
mod detours;
mod devices;
mod documentation;
mod ethernet;
mod faults;
mod heard;
mod hosts;
mod mailed;
mod messages;
mod modes;
mod parts;
mod pci;
mod pipes;
mod properties;
mod rendered;
mod rules;
mod sections;
mod servers;
mod settings;
mod shorthand;
mod sources;
mod states;
mod syntax;
mod tpipes;
mod usb;
mod vcpus;
mod wires;
