//! The computing part of the program. It knows no Diapason, so `cargo test` tests it here.

#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

/// Jobs in a second.
const JOBS: u64 = 100;

/// Makes seconds of jobs.
#[derive(Debug, Default)]
pub struct Beat {
    jobs: u64,
}

impl Beat {
    /// Counts a job. Returns the number of the second, if one begins with this job.
    pub fn next(&mut self) -> Option<u64> {
        let job = self.jobs;
        self.jobs += 1;
        job.is_multiple_of(JOBS).then_some(job / JOBS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_begins_with_every_hundredth_job() {
        let mut beat = Beat::default();
        let seconds: Vec<u64> = (0..250).filter_map(|_| beat.next()).collect();
        assert_eq!(seconds, [0, 1, 2]);
    }
}
