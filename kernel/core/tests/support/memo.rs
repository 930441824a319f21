//! Handles that the processes of a storm were given, for calls that make sense.

/// The handles that a hostile process remembers: some are stale by now.
#[derive(Clone, Default)]
pub struct Memo {
    pub semaphores: Vec<u64>,
    pub conditions: Vec<u64>,
    pub mailboxes: Vec<u64>,
    pub events: Vec<u64>,
    pub vcpus: Vec<u64>,
}

/// Keeps a handle, and the last few before it.
pub fn remember(list: &mut Vec<u64>, handle: u64) {
    if list.len() == 6 {
        list.remove(0);
    }
    list.push(handle);
}
