//! The same request again, until there is a good answer.

use std::future::Future;
use std::time::Duration;

use tokio::time::Instant;

use super::Failure;

const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Sends while the outcome is unknown, for at most `patience`. `repeated` is called before each
/// repeat.
///
/// # Errors
/// The last failure.
pub async fn insist<T, F>(
    patience: Duration,
    repeated: impl Fn(),
    attempt: impl Fn() -> F,
) -> Result<T, Failure>
where
    F: Future<Output = Result<T, Failure>>,
{
    let begun = Instant::now();
    let mut pause = FIRST_PAUSE;
    loop {
        let failure = match attempt().await {
            Err(failure @ Failure::Again(_)) => failure,
            done => return done,
        };
        if begun.elapsed() + pause > patience {
            return Err(failure);
        }
        repeated();
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use reqwest::StatusCode;

    use super::*;

    #[tokio::test]
    async fn only_unknown_outcomes_are_asked_again() {
        let (tries, repeats) = (Cell::new(0), Cell::new(0));
        let again = || repeats.set(repeats.get() + 1);
        let third = insist(Duration::from_secs(60), again, || {
            tries.set(tries.get() + 1);
            let good = tries.get() == 3;
            async move {
                good.then_some(7)
                    .ok_or_else(|| Failure::Again("no answer".to_owned()))
            }
        });
        assert_eq!(third.await.unwrap(), 7);
        assert_eq!((tries.get(), repeats.get()), (3, 2));
        let refused = insist(Duration::from_secs(60), again, || async {
            Err::<(), _>(Failure::Refused(StatusCode::NOT_FOUND, String::new()))
        });
        assert!(matches!(refused.await, Err(Failure::Refused(..))));
        let impatient = insist(Duration::ZERO, again, || async {
            Err::<(), _>(Failure::Again(String::new()))
        });
        assert!(matches!(impatient.await, Err(Failure::Again(_))));
        assert_eq!(repeats.get(), 2);
    }
}
