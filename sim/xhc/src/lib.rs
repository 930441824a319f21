//! An xHCI 1.1 host controller as software sees it: registers, rings, contexts, and buses that take
//! time.
#![forbid(unsafe_code)]
