//! The frames of an event stream, in the codec of AWS' SDK.

use crate::kinesis::{ApiError, SubscribedEvent};
use aws_smithy_eventstream::frame::write_message_to;
use aws_smithy_types::event_stream::{Header, HeaderValue, Message};
use bytes::Bytes;
use serde_json::{Value, json};

/// The first frame. Clients take the call for answered when this frame is there.
pub fn initial_response() -> Bytes {
    frame(("event", ":event-type", "initial-response"), &json!({}))
}

/// An event.
pub fn event(event: &SubscribedEvent) -> Bytes {
    frame(("event", ":event-type", "SubscribeToShardEvent"), &event.to_json())
}

/// The exception that ends a subscription.
pub fn exception(error: &ApiError) -> Bytes {
    frame(("exception", ":exception-type", error.code), &json!({ "message": error.message }))
}

fn frame((kind, type_of, name): (&'static str, &'static str, &'static str), payload: &Value) -> Bytes {
    let text = |value: &'static str| HeaderValue::String(value.into());
    let message = Message::new(payload.to_string())
        .add_header(Header::new(":message-type", text(kind)))
        .add_header(Header::new(type_of, text(name)))
        .add_header(Header::new(":content-type", text("application/json")));
    let mut bytes = Vec::new();
    let written = write_message_to(&message, &mut bytes);
    debug_assert!(written.is_ok(), "a frame of 4 GiB does not exist");
    bytes.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame that an SDK has accepted.
    const ACCEPTED: &str = "00000068000000564e6817240d3a6d6573736167652d747970650700056576656e740b3a6576656e742d747970\
        65070010696e697469616c2d726573706f6e73650d3a636f6e74656e742d747970650700106170706c69636174696f6e2f6a736f6e7b7d\
        fe942c1d";

    #[test]
    fn the_first_frame_is_byte_for_byte_one_that_sdks_accept() {
        let hex: String = initial_response().iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, ACCEPTED);
    }
}
