//! The way into the simulator over a socket: HTTP/1.1 on a listener that the caller bound.

use std::io;
use std::net::SocketAddr;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::debug;

use super::{ConnectionReset, Simulator, admin};

/// Larger than any request of the simulated services, whose largest are launch templates and policies.
const MAX_BODY: usize = 4 * 1024 * 1024;

/// Why a connection ends without an answer.
#[derive(Debug, thiserror::Error)]
#[error("connection reset by a fault rule")]
struct Reset;

/// Serves until the token is cancelled, then lets the connections finish what they do.
pub(crate) async fn serve(
    simulator: Simulator,
    listener: TcpListener,
    shutdown: CancellationToken,
) -> io::Result<()> {
    let connections = TaskTracker::new();
    loop {
        let (stream, peer) = tokio::select! {
            biased;
            () = shutdown.cancelled() => break,
            accepted = listener.accept() => accepted?,
        };
        connections.spawn(connection(simulator.clone(), stream, peer, shutdown.clone()));
    }
    connections.close();
    connections.wait().await;
    Ok(())
}

async fn connection(simulator: Simulator, stream: TcpStream, peer: SocketAddr, shutdown: CancellationToken) {
    // Small answers to small requests: Nagle's algorithm would only add its delay.
    if let Err(error) = stream.set_nodelay(true) {
        debug!(%peer, %error, "no TCP_NODELAY");
    }
    let service = service_fn(move |request| {
        let simulator = simulator.clone();
        async move { answer(simulator, request, peer).await }
    });
    let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    let outcome = tokio::select! {
        outcome = connection.as_mut() => outcome,
        () = shutdown.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = outcome {
        debug!(%peer, %error, "connection ended");
    }
}

async fn answer(
    simulator: Simulator,
    request: Request<Incoming>,
    peer: SocketAddr,
) -> Result<Response<Full<Bytes>>, Reset> {
    let (parts, body) = request.into_parts();
    let Ok(body) = Limited::new(body, MAX_BODY).collect().await else {
        let mut response = Response::new(Full::default());
        *response.status_mut() = StatusCode::PAYLOAD_TOO_LARGE;
        return Ok(response);
    };
    let request = Request::from_parts(parts, body.to_bytes());
    let response = if request.uri().path().starts_with(admin::PREFIX) {
        admin::handle(&simulator, &request, peer.ip().is_loopback())
    } else {
        simulator.handle(request).await
    };
    if response.extensions().get::<ConnectionReset>().is_some() {
        return Err(Reset);
    }
    Ok(response.map(Full::new))
}
