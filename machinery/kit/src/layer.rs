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
    pub struct LayerFuture<F: Future> {
        #[pin]
        state: LayerState<F>,
    }
}

pin_project! {
    #[project = LayerStateProjection]
    enum LayerState<F: Future> {
        Ready { #[pin] future: Ready<F::Output> },
        Inner { #[pin] future: F },
        Boxed { #[pin] future: BoxFuture<'static, F::Output> },
    }
}

impl<F: Future> LayerFuture<F> {
    /// Returns the layer's response.
    pub fn from_response(response: F::Output) -> Self {
        Self { state: LayerState::Ready { future: ready(response) } }
    }

    /// Forwards the request: `future` is the future of the inner service.
    pub fn from_inner(future: F) -> Self {
        Self { state: LayerState::Inner { future } }
    }

    /// Waits for a boxed future that decides and then responds.
    pub fn from_boxed(future: impl Future<Output = F::Output> + Send + 'static) -> Self {
        Self { state: LayerState::Boxed { future: Box::pin(future) } }
    }
}

impl<F: Future> Future for LayerFuture<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        match self.project().state.project() {
            LayerStateProjection::Ready { future } => future.poll(cx),
            LayerStateProjection::Inner { future } => future.poll(cx),
            LayerStateProjection::Boxed { future } => future.poll(cx),
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
pub trait ResponseTransform<R> {
    /// Transforms the response. Called once.
    fn apply(self, response: R) -> R;
}

/// `None` returns the response unchanged.
impl<R, A: ResponseTransform<R>> ResponseTransform<R> for Option<A> {
    fn apply(self, response: R) -> R {
        match self {
            Some(after) => after.apply(response),
            None => response,
        }
    }
}

pin_project! {
    /// Future of a layer that transforms the response.
    pub struct TransformFuture<F, A> {
        #[pin]
        future: F,
        after: Option<A>,
    }
}

impl<F, A> TransformFuture<F, A> {
    /// Applies `after` to the output of `future`.
    pub fn new(future: F, after: A) -> Self {
        Self { future, after: Some(after) }
    }
}

impl<F, A, R, E> Future for TransformFuture<F, A>
where
    F: Future<Output = Result<R, E>>,
    A: ResponseTransform<R>,
{
    type Output = Result<R, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let response = ready!(this.future.poll(cx))?;
        Poll::Ready(Ok(this.after.take().apply(response)))
    }
}

/// Layer whose function inspects each request and returns a transformation of the response. Its service is [`Intercept`].
#[derive(Clone)]
pub struct InterceptLayer<B> {
    before: B,
}

impl<B> InterceptLayer<B> {
    /// Returns a layer of a function from `&mut` request to a [`ResponseTransform`].
    pub fn new(before: B) -> Self {
        Self { before }
    }
}

impl<S, B: Clone> Layer<S> for InterceptLayer<B> {
    type Service = Intercept<B, S>;

    fn layer(&self, inner: S) -> Intercept<B, S> {
        Intercept { before: self.before.clone(), inner }
    }
}

/// Service of an [`InterceptLayer`].
#[derive(Clone)]
pub struct Intercept<B, S> {
    before: B,
    inner: S,
}

impl<Q, A, B, S> Service<Q> for Intercept<B, S>
where
    A: ResponseTransform<S::Response>,
    B: FnMut(&mut Q) -> A,
    S: Service<Q>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = TransformFuture<S::Future, A>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Q) -> Self::Future {
        let after = (self.before)(&mut request);
        TransformFuture::new(self.inner.call(request), after)
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    struct Add(u8);

    impl ResponseTransform<u8> for Add {
        fn apply(self, response: u8) -> u8 {
            response + self.0
        }
    }

    #[tokio::test]
    async fn every_kind_of_step_resolves_to_the_response() {
        type Inner = Ready<u8>;
        assert_eq!(LayerFuture::<Inner>::from_response(1).await, 1);
        assert_eq!(LayerFuture::from_inner(ready(2)).await, 2);
        let waited = async {
            tokio::task::yield_now().await;
            3
        };
        assert_eq!(LayerFuture::<Inner>::from_boxed(waited).await, 3);
    }

    #[tokio::test]
    async fn a_response_is_transformed_and_an_error_is_not() {
        assert_eq!(TransformFuture::new(ready(Ok::<_, Infallible>(1)), Add(2)).await, Ok(3));
        assert_eq!(TransformFuture::new(ready(Ok::<_, Infallible>(1)), None::<Add>).await, Ok(1));
        assert_eq!(TransformFuture::new(ready(Err::<u8, _>("no")), Add(2)).await, Err("no"));
    }

    #[tokio::test]
    async fn an_intercept_layer_sees_the_request_and_then_the_response() {
        let inner = tower::service_fn(|request: u8| ready(Ok::<_, Infallible>(request * 10)));
        let before = |request: &mut u8| {
            *request += 1;
            Add(*request)
        };
        assert_eq!(InterceptLayer::new(before).layer(inner).call(1).await, Ok(22));
    }
}
