//! Tasks in CSD queues, with the run-time cost of scheduling: the theory of EMERALDS.
