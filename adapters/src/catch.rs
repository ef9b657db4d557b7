//! Futures that may panic, or may be stopped. Both work on any runtime, however the runtime treats a panicking task.

use futures_util::FutureExt;
use futures_util::future::{Either, select};
use std::any::Any;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use tokio::sync::oneshot;

/// A panic, by its message.
#[derive(Debug)]
pub(crate) struct Panicked(pub(crate) String);

/// Runs `future`; a panic becomes an error. After a panic the future is only dropped, never polled again.
pub(crate) async fn catch<F: Future>(future: F) -> Result<F::Output, Panicked> {
    AssertUnwindSafe(future).catch_unwind().await.map_err(|payload| Panicked(message(&*payload)))
}

/// Runs `future` until `stop` fires; then drops the future and gives the value sent with the stop.
pub(crate) async fn until<S, F: Future>(stop: oneshot::Receiver<S>, future: F) -> Result<F::Output, S> {
    match select(stop, pin!(future)).await {
        Either::Left((Ok(why), _)) => Err(why),
        // Nobody is left who could stop it.
        Either::Left((Err(_), future)) => Ok(future.await),
        Either::Right((output, _)) => Ok(output),
    }
}

fn message(payload: &(dyn Any + Send)) -> String {
    if let Some(text) = payload.downcast_ref::<&str>() {
        (*text).to_owned()
    } else if let Some(text) = payload.downcast_ref::<String>() {
        text.clone()
    } else {
        "a panic without a message".to_owned()
    }
}
