//! Tests that frames of this crate and of `moby/spdystream` are decoded, for any split of the bytes.

use super::*;
use crate::Encoder;

/// `SYN_STREAM` frames of `moby/spdystream`: stream 1 with `streamtype: error`, then stream 3 with `streamtype: stdin`.
const SPDYSTREAM_FRAMES: &[u8] = &[
    0x80, 0x03, 0x00, 0x01, 0x00, 0x00, 0x00, 0x29, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x78, 0xf9, 0xe3, 0xc6, 0xa7, 0xc2, 0x62, 0x60, 0x60, 0x60, 0x04, 0xa7, 0xb3, 0x92, 0xa2, 0xd4,
    0xc4, 0x5c, 0x68, 0x51, 0xc2, 0x9a, 0x0a, 0x0a, 0x68, 0x00, 0x00, 0x00, 0x00, 0xff, 0xff, 0x80, 0x03,
    0x00, 0x01, 0x00, 0x00, 0x00, 0x17, 0x00, 0x00, 0x00, 0x03, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xc2,
    0x2e, 0x55, 0x5c, 0x92, 0x92, 0x99, 0x07, 0x00, 0x00, 0x00, 0xff, 0xff,
];

fn decode_all(decoder: &mut Decoder, bytes: &mut BytesMut) -> Result<Vec<Frame>, SpdyError> {
    let mut frames = Vec::new();
    while let Some(frame) = decoder.decode(bytes)? {
        frames.push(frame);
    }
    Ok(frames)
}

fn all_frames() -> Vec<Frame> {
    let headers = Headers::single("streamtype", "stdout");
    vec![
        Frame::SynStream {
            stream: 1,
            associated: 0,
            priority: 7,
            fin: false,
            unidirectional: true,
            headers: headers.clone(),
        },
        Frame::SynReply { stream: 1, fin: false, headers: Headers::default() },
        Frame::Headers { stream: 3, fin: true, headers },
        Frame::RstStream { stream: 3, status: RstStatus::CANCEL },
        Frame::Settings(vec![Setting { flags: 1, id: 4, value: 100 }]),
        Frame::Ping(7),
        Frame::GoAway { last_good: 0, status: 0 },
        Frame::WindowUpdate { stream: 0, delta: 65_536 },
        Frame::Data { stream: 5, fin: false, data: Bytes::from_static(b"x") },
        Frame::Data { stream: 5, fin: true, data: Bytes::new() },
    ]
}

#[test]
fn frames_round_trip_for_any_split_of_the_bytes() {
    let (mut encoder, mut written) = (Encoder::new().unwrap(), BytesMut::new());
    for frame in all_frames() {
        encoder.encode(&frame, &mut written).unwrap();
    }
    for step in [1, 3, 8, 1000] {
        let (mut decoder, mut buffer, mut frames) =
            (Decoder::new(DecoderLimits::default()), BytesMut::new(), Vec::new());
        for piece in written.chunks(step) {
            buffer.extend_from_slice(piece);
            frames.extend(decode_all(&mut decoder, &mut buffer).unwrap());
        }
        assert_eq!(frames, all_frames(), "{step} bytes at once");
        assert!(decoder.is_between_frames(&buffer));
    }
}

#[test]
fn frames_of_spdystream_are_decoded() {
    let frames =
        decode_all(&mut Decoder::new(DecoderLimits::default()), &mut BytesMut::from(SPDYSTREAM_FRAMES))
            .unwrap();
    let types: Vec<_> = frames
        .iter()
        .map(|frame| match frame {
            Frame::SynStream { stream, headers, fin: false, .. } => {
                (*stream, headers.get("streamtype").unwrap())
            }
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(types, [(1, &b"error"[..]), (3, b"stdin")]);
}

#[test]
fn data_is_returned_as_it_arrives_and_ends_once() {
    let (mut decoder, mut buffer) = (Decoder::new(DecoderLimits::default()), BytesMut::new());
    buffer.extend_from_slice(&[0, 0, 0, 9, 1, 0xff, 0xff, 0xff]);
    assert_eq!(decoder.decode(&mut buffer), Ok(None));
    buffer.extend_from_slice(&[b'a'; 1000]);
    let piece = Frame::Data { stream: 9, fin: false, data: Bytes::from_static(&[b'a'; 1000]) };
    assert_eq!(decoder.decode(&mut buffer), Ok(Some(piece)));
    assert!(!decoder.is_between_frames(&buffer));
    buffer.extend_from_slice(&vec![b'b'; 0x00ff_ffff - 1000 + 3]);
    let Ok(Some(Frame::Data { stream: 9, fin: true, data })) = decoder.decode(&mut buffer) else { panic!() };
    assert_eq!((data.len(), &buffer[..]), (0x00ff_ffff - 1000, &b"bbb"[..]));
}

#[test]
fn unknown_control_frames_are_skipped_and_invalid_ones_refused() {
    let decode = |bytes: &[u8]| Decoder::new(DecoderLimits::default()).decode(&mut BytesMut::from(bytes));
    let passed = [&[0x80, 3, 0, 99, 0, 0, 0, 2, 1, 2][..], &[0x80, 3, 0, 6, 0, 0, 0, 4, 0, 0, 0, 2]].concat();
    assert_eq!(decode(&passed), Ok(Some(Frame::Ping(2))));
    for (bytes, error) in [
        (&[0x80, 2, 0, 6, 0, 0, 0, 4][..], SpdyError::Version(2)),
        (&[0x80, 3, 0, 6, 0, 1, 0, 4], SpdyError::TooLarge),
        (&[0, 0, 0, 0, 0, 0, 0, 1], SpdyError::Malformed("stream 0")),
        (&[0x80, 3, 0, 6, 0, 0, 0, 3, 0, 0, 0], SpdyError::Malformed("truncated control frame")),
        (
            &[0x80, 3, 0, 6, 0, 0, 0, 5, 0, 0, 0, 1, 0],
            SpdyError::Malformed("control frame with trailing bytes"),
        ),
        (&[0x80, 3, 0, 2, 0, 0, 0, 6, 0, 0, 0, 1, 9, 9], SpdyError::Compression),
        (
            &[0x80, 3, 0, 4, 0, 0, 0, 4, 0xff, 0xff, 0xff, 0xff],
            SpdyError::Malformed("the length does not match the number of settings"),
        ),
    ] {
        assert_eq!(decode(bytes), Err(error), "{bytes:?}");
    }
}
