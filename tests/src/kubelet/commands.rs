//! Commands of the kubelet.

use std::collections::BTreeMap;

use portico_spdy::{Frame, Headers, RstStatus};
use tokio::io::{AsyncRead, AsyncWrite};

use super::wire::FrameConnection;

const SUCCESS: &str = r#"{"metadata":{},"status":"Success"}"#;

/// Serves one connection to its end; `None` if the client disconnects first.
pub(super) async fn serve<I: AsyncRead + AsyncWrite + Unpin>(
    mut wire: FrameConnection<I>,
    target: &str,
) -> Option<()> {
    if target.starts_with("/portForward/") {
        return echo_ports(&mut wire).await;
    }
    if target.contains("command=unaccepted") {
        while wire.next().await.is_some() {}
        return None;
    }
    let (streams, status) = command(&mut wire, target).await?;
    if let Some(status) = status {
        wire.data(streams["error"], status).await?;
    }
    // Closes the connection as `httpstream` does: resets every stream, then accepts no more.
    for stream in streams.into_values() {
        wire.send(Frame::RstStream { stream, status: RstStatus::CANCEL }).await?;
    }
    wire.send(Frame::GoAway { last_good: 0, status: 0 }).await
}

type Streams = BTreeMap<String, u32>;

/// Runs the command of the target; attaching is a `cat` that starts with a greeting. Without a status, the connection breaks.
async fn command<I: AsyncRead + AsyncWrite + Unpin>(
    wire: &mut FrameConnection<I>,
    target: &str,
) -> Option<(Streams, Option<String>)> {
    let streams = accept_streams(wire, expected_streams(target)).await?;
    let output = |name: &str| streams.get(name).copied();
    // Tests that the peer responds to a PING at any time, as SPDY requires.
    wire.send(Frame::Ping(2)).await?;
    let status = if target.contains("command=fail") {
        wire.data(output("stdout")?, "out\n").await?;
        wire.data(output("stderr")?, "err\n").await?;
        let cause = r#"{"causes":[{"reason":"ExitCode","message":"7"}]}"#;
        Some(format!(
            r#"{{"metadata":{{}},"status":"Failure","message":"x","reason":"NonZeroExitCode","details":{cause}}}"#
        ))
    } else if target.contains("command=vanish") {
        wire.data(output("stdout")?, "out\n").await?;
        return None;
    } else if target.contains("command=flood") {
        loop {
            wire.data(output("stdout")?, vec![b'x'; 32 << 10]).await?;
        }
    } else {
        if target.starts_with("/attach/") {
            wire.data(output("stdout")?, "attached\n").await?;
        }
        echo(wire, &streams).await?;
        Some(SUCCESS.to_owned())
    };
    Some((streams, status))
}

/// Echoes input and terminal sizes as output until the input ends.
async fn echo<I: AsyncRead + AsyncWrite + Unpin>(
    wire: &mut FrameConnection<I>,
    streams: &Streams,
) -> Option<()> {
    let (stdin, resize) = (streams.get("stdin").copied(), streams.get("resize").copied());
    if stdin.is_none() {
        return Some(());
    }
    loop {
        match wire.next().await? {
            Frame::Data { stream, fin, data } if Some(stream) == stdin || Some(stream) == resize => {
                if !data.is_empty() {
                    wire.data(streams["stdout"], data).await?;
                }
                if fin && Some(stream) == stdin {
                    return Some(());
                }
            }
            Frame::Ping(id) if id % 2 == 1 => wire.send(Frame::Ping(id)).await?,
            Frame::GoAway { .. } => return None,
            _ => {}
        }
    }
}

/// Number of streams that `cri-streaming` waits for.
fn expected_streams(target: &str) -> usize {
    let requested = |flag: &str| usize::from(target.contains(&format!("{flag}=1")));
    let tty = requested("tty");
    1 + requested("input") + requested("output") + if tty == 1 { tty } else { requested("error") }
}

async fn accept_streams<I: AsyncRead + AsyncWrite + Unpin>(
    wire: &mut FrameConnection<I>,
    expected: usize,
) -> Option<Streams> {
    let mut streams = Streams::new();
    while streams.len() < expected {
        if let Frame::SynStream { stream, headers, .. } = wire.next().await? {
            let kind = String::from_utf8_lossy(headers.get("streamtype")?).into_owned();
            wire.send(Frame::SynReply { stream, fin: false, headers: Headers::default() }).await?;
            assert!(streams.insert(kind.clone(), stream).is_none(), "duplicate stream {kind}");
        }
    }
    Some(streams)
}

/// Echoes the data of ports. Each connection to a port is a pair of streams, distinguished by their type header.
async fn echo_ports<I: AsyncRead + AsyncWrite + Unpin>(wire: &mut FrameConnection<I>) -> Option<()> {
    let mut errors = BTreeMap::new();
    let mut ports = BTreeMap::new();
    loop {
        match wire.next().await? {
            Frame::SynStream { stream, headers, .. } => {
                let request = headers.get("requestid").map(<[u8]>::to_vec);
                match headers.get("streamtype")? {
                    b"error" => drop(errors.insert(request, stream)),
                    _ => drop(ports.insert(stream, request)),
                }
                wire.send(Frame::SynReply { stream, fin: false, headers: Headers::default() }).await?;
            }
            Frame::Data { stream, fin, data } if ports.contains_key(&stream) => {
                if !data.is_empty() {
                    wire.data(stream, data).await?;
                }
                if fin {
                    wire.end(stream).await?;
                    if let Some(error) = errors.get(&ports[&stream]) {
                        wire.end(*error).await?;
                    }
                }
            }
            Frame::Ping(id) if id % 2 == 1 => wire.send(Frame::Ping(id)).await?,
            Frame::GoAway { .. } => return Some(()),
            _ => {}
        }
    }
}
