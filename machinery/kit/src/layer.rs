//! Futures of tower layers that avoid a boxed future for requests that do not wait.
//!
//! Generic over requests and responses.

use std::future::{Ready, ready};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures::future::BoxFuture;
use pin_project_lite::pin_project;
use tower::{Layer, Service};

pin_project! {
    /// Future of a layer that responds itself, forwards the request, or has to wait before it can decide.
    pub struct Step<F: Future> {
        #[pin]
        state: State<F>,
    }
}

pin_project! {
    #[project = StateProjection]
    enum State<F: Future> {
        Answered { #[pin] answer: Ready<F::Output> },
        Passed { #[pin] answer: F },
        Waiting { #[pin] answer: BoxFuture<'static, F::Output> },
    }
}

impl<F: Future> Step<F> {
    /// Returns the layer's response.
    pub fn answered(answer: F::Output) -> Self {
        Self { state: State::Answered { answer: ready(answer) } }
    }

    /// Forwards the request: `answer` is the future of the inner service.
    pub fn passed(answer: F) -> Self {
        Self { state: State::Passed { answer } }
    }

    /// Waits for a boxed future that decides and then responds.
    pub fn waiting(answer: impl Future<Output = F::Output> + Send + 'static) -> Self {
        Self { state: State::Waiting { answer: Box::pin(answer) } }
    }
}

impl<F: Future> Future for Step<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        match self.project().state.project() {
            StateProjection::Answered { answer } => answer.poll(cx),
            StateProjection::Passed { answer } => answer.poll(cx),
            StateProjection::Waiting { answer } => answer.poll(cx),
        }
    }
}

/// Takes the service that `poll_ready` reported as ready and replaces it by a clone, which may not be ready (see the
/// documentation of [`tower::Service`], "Be careful when cloning inner services").
pub fn take_ready<S: Clone>(service: &mut S) -> S {
    let next = service.clone();
    std::mem::replace(service, next)
}

/// Transformation that a layer applies to a response.
pub trait AfterResponse<R> {
    /// Transforms the response. Called once.
    fn after(self, response: R) -> R;
}

/// `None` returns the response unchanged.
impl<R, A: AfterResponse<R>> AfterResponse<R> for Option<A> {
    fn after(self, response: R) -> R {
        match self {
            Some(after) => after.after(response),
            None => response,
        }
    }
}

pin_project! {
    /// Future of a layer that transforms the response.
    pub struct OnResponse<F, A> {
        #[pin]
        answer: F,
        after: Option<A>,
    }
}

impl<F, A> OnResponse<F, A> {
    /// Applies `after` to the output of `answer`.
    pub fn new(answer: F, after: A) -> Self {
        Self { answer, after: Some(after) }
    }
}

impl<F, A, R, E> Future for OnResponse<F, A>
where
    F: Future<Output = Result<R, E>>,
    A: AfterResponse<R>,
{
    type Output = Result<R, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let response = ready!(this.answer.poll(cx))?;
        Poll::Ready(Ok(this.after.take().after(response)))
    }
}

/// Layer whose function inspects each request and returns a transformation of the response. Its service is [`Intercept`].
#[derive(Clone)]
pub struct AroundLayer<B> {
    before: B,
}

impl<B> AroundLayer<B> {
    /// Returns a layer of a function from `&mut` request to a [`ResponseTransform`].
    pub fn new(before: B) -> Self {
        Self { before }
    }
}

impl<S, B: Clone> Layer<S> for AroundLayer<B> {
    type Service = Around<B, S>;

    fn layer(&self, inner: S) -> Around<B, S> {
        Around { before: self.before.clone(), inner }
    }
}

/// Service of an [`InterceptLayer`].
#[derive(Clone)]
pub struct Around<B, S> {
    before: B,
    inner: S,
}

impl<Q, A, B, S> Service<Q> for Around<B, S>
where
    A: AfterResponse<S::Response>,
    B: FnMut(&mut Q) -> A,
    S: Service<Q>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = OnResponse<S::Future, A>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Q) -> Self::Future {
        let after = (self.before)(&mut request);
        OnResponse::new(self.inner.call(request), after)
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    struct Add(u8);

    impl AfterResponse<u8> for Add {
        fn after(self, response: u8) -> u8 {
            response + self.0
        }
    }

    #[tokio::test]
    async fn a_step_ends_with_its_response_whichever_it_is() {
        type Inner = Ready<u8>;
        assert_eq!(Step::<Inner>::answered(1).await, 1);
        assert_eq!(Step::passed(ready(2)).await, 2);
        let waited = async {
            tokio::task::yield_now().await;
            3
        };
        assert_eq!(Step::<Inner>::waiting(waited).await, 3);
    }

    #[tokio::test]
    async fn a_response_is_changed_on_its_way_out_and_an_error_is_not() {
        assert_eq!(OnResponse::new(ready(Ok::<_, Infallible>(1)), Add(2)).await, Ok(3));
        assert_eq!(OnResponse::new(ready(Ok::<_, Infallible>(1)), None::<Add>).await, Ok(1));
        assert_eq!(OnResponse::new(ready(Err::<u8, _>("no")), Add(2)).await, Err("no"));
    }

    #[tokio::test]
    async fn a_layer_around_a_service_sees_the_request_and_then_its_response() {
        let inner = tower::service_fn(|request: u8| ready(Ok::<_, Infallible>(request * 10)));
        let before = |request: &mut u8| {
            *request += 1;
            Add(*request)
        };
        assert_eq!(AroundLayer::new(before).layer(inner).call(1).await, Ok(22));
    }
}
