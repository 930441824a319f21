//! All tests of this package that see it from outside, as one program: each program more is linked
//! with the whole package once more.

mod accounts;
mod blocking;
mod budgets;
mod calls;
mod conditions;
mod ends;
mod events;
mod exchange;
mod grace;
mod helping;
mod hints;
mod inheritance;
mod jobs;
mod mailboxes;
mod memory;
mod model;
mod pointers;
mod processes;
mod replay;
mod restarts;
mod room;
mod semaphores;
mod serving;
mod shortcuts;
mod storm;
mod strays;
mod support;
mod theft;
mod threads;
mod vcpus;
mod walks;
