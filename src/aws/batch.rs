//! Reads that are asked for within a few milliseconds go out as one call.
//!
//! A question joins the call that waits to be sent, never one that is on its way: an answer is always younger
//! than its question, so that a read after a write sees the write. Nobody leads a call. It is a future that
//! all who asked share: who gives up leaves it to the others, and when all have, it is gone.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared, WeakShared};

use super::{AwsError, ErrorClass};

/// How long a call waits for more questions, on the daemon's clock.
pub(super) const WINDOW: Duration = Duration::from_millis(5);
/// Questions of one call: EC2 takes 200 values of a filter (EC2 API, `Filter`).
const MOST: usize = 200;

type Found<T> = Result<Arc<BTreeMap<String, Vec<T>>>, AwsError>;
type Pending<T> = BoxFuture<'static, Found<T>>;
/// What a call will ask for; nothing any more once it is on its way.
type Keys = Arc<Mutex<Option<BTreeSet<String>>>>;

/// Reads of one kind in one session.
pub struct Batch<T> {
    window: Duration,
    open: Mutex<Option<Open<T>>>,
}

/// The call that waits to be sent.
struct Open<T> {
    keys: Keys,
    call: WeakShared<Pending<T>>,
}

impl<T> fmt::Debug for Batch<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch").field("window", &self.window).finish_non_exhaustive()
    }
}

// No code panics while it holds one of these locks.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<T: Clone + Send + Sync + 'static> Batch<T> {
    /// Reads that wait `window` of tokio's time for others.
    pub fn new(window: Duration) -> Self {
        Self { window, open: Mutex::new(None) }
    }

    /// Everything that is found under a key. `read` makes the call for all keys that came together, and
    /// answers each finding with its key; that of the first who asked is used for all.
    ///
    /// # Errors
    /// Those of the call, the same for all who asked.
    pub async fn get<Read, Reading>(&self, key: &str, read: Read) -> Result<Vec<T>, AwsError>
    where
        Read: FnOnce(Vec<String>) -> Reading + Send + 'static,
        Reading: Future<Output = Result<Vec<(String, T)>, AwsError>> + Send + 'static,
    {
        let found = self.join(key, read).await?;
        Ok(found.get(key).cloned().unwrap_or_default())
    }

    fn join<Read, Reading>(&self, key: &str, read: Read) -> Shared<Pending<T>>
    where
        Read: FnOnce(Vec<String>) -> Reading + Send + 'static,
        Reading: Future<Output = Result<Vec<(String, T)>, AwsError>> + Send + 'static,
    {
        let mut open = lock(&self.open);
        if let Some(Open { keys, call }) = &*open
            && let Some(call) = call.upgrade()
            && let Some(keys) = &mut *lock(keys)
            && (keys.len() < MOST || keys.contains(key))
        {
            keys.insert(key.to_owned());
            return call;
        }
        let keys: Keys = Arc::new(Mutex::new(Some(BTreeSet::from([key.to_owned()]))));
        let (asked, window) = (keys.clone(), self.window);
        let work = async move {
            tokio::time::sleep(window).await;
            let keys = lock(&asked).take().unwrap_or_default();
            let mut found: BTreeMap<String, Vec<T>> = BTreeMap::new();
            for (key, one) in read(keys.into_iter().collect()).await? {
                found.entry(key).or_default().push(one);
            }
            Ok(Arc::new(found))
        };
        // A panic would reach everybody who asked, and say nothing of where it came from.
        let work =
            AssertUnwindSafe(work).catch_unwind().map(|outcome| outcome.unwrap_or_else(|_| Err(defect())));
        let call = work.boxed().shared();
        *open = call.downgrade().map(|call| Open { keys, call });
        call
    }
}

fn defect() -> AwsError {
    AwsError {
        class: ErrorClass::Transient,
        operation: "Describe",
        code: "Defect".into(),
        message: "a defect of this program while it read AWS's answer, please report it".into(),
        request_id: None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// An AWS that counts calls, and answers each key with the state at the moment of the call.
    #[derive(Clone, Default)]
    struct Counting {
        calls: Arc<Mutex<Vec<Vec<String>>>>,
        state: Arc<AtomicUsize>,
    }

    impl Counting {
        fn read(
            &self,
        ) -> impl FnOnce(Vec<String>) -> BoxFuture<'static, Result<Vec<(String, usize)>, AwsError>> + Send + 'static
        {
            let this = self.clone();
            move |keys| {
                async move {
                    lock(&this.calls).push(keys.clone());
                    let seen = this.state.load(Ordering::SeqCst);
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    assert!(!keys.contains(&"panic".to_owned()), "boom");
                    if keys.contains(&"denied".to_owned()) {
                        return Err(AwsError {
                            request_id: Some("request-1".into()),
                            ..AwsError::invalid("DescribeVpcs", "denied")
                        });
                    }
                    Ok(keys.into_iter().filter(|key| key != "gone").map(|key| (key, seen)).collect())
                }
                .boxed()
            }
        }

        fn calls(&self) -> Vec<usize> {
            lock(&self.calls).iter().map(Vec::len).collect()
        }
    }

    fn batch() -> Arc<Batch<usize>> {
        Arc::new(Batch::new(WINDOW))
    }

    #[tokio::test(start_paused = true)]
    async fn questions_at_one_time_are_one_call() {
        let (batch, aws) = (batch(), Counting::default());
        let ask = |key: &'static str| batch.get(key, aws.read());
        let (a, b, again, gone) = tokio::join!(ask("a"), ask("b"), ask("a"), ask("gone"));
        assert_eq!(
            (a.unwrap(), b.unwrap(), again.unwrap(), gone.unwrap()),
            (vec![0], vec![0], vec![0], vec![])
        );
        assert_eq!(aws.calls(), [3]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_question_after_a_write_is_not_answered_by_a_call_before_it() {
        let (batch, aws) = (batch(), Counting::default());
        let (asking, reading) = (batch.clone(), aws.read());
        let first = tokio::spawn(async move { asking.get("a", reading).await });
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert_eq!(aws.calls(), [1], "the first call is on its way");
        aws.state.store(1, Ordering::SeqCst);
        assert_eq!(batch.get("a", aws.read()).await.unwrap(), [1]);
        assert_eq!(first.await.unwrap().unwrap(), [0]);
    }

    #[tokio::test(start_paused = true)]
    async fn two_hundred_values_are_one_call_and_one_more_is_another() {
        let (batch, aws) = (batch(), Counting::default());
        let keys: Vec<String> = (0..=MOST).map(|index| format!("vpc-{index}")).collect();
        let answers = futures::future::join_all(keys.iter().map(|key| batch.get(key, aws.read()))).await;
        assert!(answers.iter().all(|answer| *answer == Ok(vec![0])));
        assert_eq!(aws.calls(), [MOST, 1]);
    }

    #[tokio::test(start_paused = true)]
    async fn an_error_reaches_all_who_asked_with_its_request_id() {
        let (batch, aws) = (batch(), Counting::default());
        let (a, b) = tokio::join!(batch.get("a", aws.read()), batch.get("denied", aws.read()));
        assert_eq!(a, b);
        assert_eq!(a.unwrap_err().request_id.as_deref(), Some("request-1"));
        assert_eq!(batch.get("a", aws.read()).await, Ok(vec![0]), "the next call is a new one");
    }

    #[tokio::test(start_paused = true)]
    async fn who_gives_up_or_panics_keeps_nobody_waiting() {
        let (batch, aws) = (batch(), Counting::default());
        for wait in [1, 20] {
            // The first who asked goes, before the call is sent and while it is on its way.
            let (asking, reading) = (batch.clone(), aws.read());
            let first = tokio::spawn(async move { asking.get("a", reading).await });
            tokio::task::yield_now().await;
            let (asking, reading) = (batch.clone(), aws.read());
            let second = tokio::spawn(async move { asking.get("b", reading).await });
            tokio::time::sleep(Duration::from_millis(wait)).await;
            first.abort();
            assert_eq!(second.await.unwrap(), Ok(vec![0]));
        }
        let calls = aws.calls().len();
        // All go: nothing is asked for them, and the next who asks does not wait for a call that nobody drives.
        let (asking, reading) = (batch.clone(), aws.read());
        let alone = tokio::spawn(async move { asking.get("a", reading).await });
        tokio::task::yield_now().await;
        alone.abort();
        assert!(alone.await.unwrap_err().is_cancelled());
        assert_eq!(batch.get("b", aws.read()).await, Ok(vec![0]));
        assert_eq!(aws.calls()[calls..], [1]);

        let (a, panicked) = tokio::join!(batch.get("a", aws.read()), batch.get("panic", aws.read()));
        assert_eq!(
            (a.unwrap_err().class, panicked.unwrap_err().code.as_str()),
            (ErrorClass::Transient, "Defect")
        );
        assert_eq!(batch.get("a", aws.read()).await, Ok(vec![0]));
    }
}
