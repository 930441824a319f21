//! The largest of some numbers that will do.

/// Returns the largest of 0 to `most` for which `does` holds, if it holds for none above one for
/// which it does not; 0 is not asked. The largest is asked first.
///
/// # Errors
/// Returns the first error of `does`.
pub fn largest<E>(most: u64, mut does: impl FnMut(u64) -> Result<bool, E>) -> Result<u64, E> {
    if does(most)? {
        return Ok(most);
    }
    let (mut will, mut will_not) = (0, most);
    while will_not - will > 1 {
        let middle = will + (will_not - will) / 2;
        if does(middle)? { will = middle } else { will_not = middle }
    }
    Ok(will)
}

#[cfg(test)]
mod tests {
    use super::largest;
    use std::convert::Infallible;

    #[test]
    fn every_limit_is_found_and_nothing_is_asked_twice() {
        for limit in 0..=70 {
            let mut asked = Vec::new();
            let found = largest(64, |number| {
                assert!(number > 0 && !asked.contains(&number));
                asked.push(number);
                Ok::<bool, Infallible>(number <= limit)
            });
            assert_eq!(found, Ok(limit.min(64)));
            assert!(asked.len() <= 8, "{asked:?}");
        }
    }

    #[test]
    fn a_failure_ends_it() {
        assert_eq!(largest(9, |_| Err("no")), Err("no"));
    }
}
