//! Errors that are told in other words than those of Kubernetes: a proxy answers with text, with a web page or with nothing. They become what
//! an API server would have sent, so that the HTTP status decides what they mean.

use std::error::Error;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, HeaderMap, RETRY_AFTER};
use http::{Response, StatusCode};
use http_body::{Body, Frame};
use serde_json::{Value, json};

/// The most bytes of an error that are read.
const MAX_ERROR: usize = 4 << 20;
/// The longest text of an error that is told, in characters.
const MAX_TOLD: usize = 200;

/// An answer, or the Status that an error is.
pub(super) async fn as_status<B>(answer: Response<B>) -> Response<Answer<B>>
where
    B: Body<Data = Bytes> + Unpin,
{
    let (mut parts, body) = answer.into_parts();
    if !parts.status.is_client_error() && !parts.status.is_server_error() {
        return Response::from_parts(parts, Answer::Own(body));
    }
    let status = status(parts.status, &parts.headers, &beginning(body).await);
    parts.headers.remove(CONTENT_LENGTH);
    Response::from_parts(parts, Answer::Status(Some(status.to_string().into())))
}

/// The body of an answer, or the Status that takes its place.
pub(super) enum Answer<B> {
    Own(B),
    Status(Option<Bytes>),
}

impl<B> Body for Answer<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    type Data = Bytes;
    type Error = Box<dyn Error + Send + Sync>;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        match &mut *self {
            Self::Own(body) => {
                Pin::new(body).poll_frame(context).map(|frame| frame.map(|frame| frame.map_err(Into::into)))
            }
            Self::Status(text) => Poll::Ready(text.take().map(|text| Ok(Frame::data(text)))),
        }
    }
}

/// What can be read of a body: one that breaks off says something too.
async fn beginning<B: Body<Data = Bytes> + Unpin>(mut body: B) -> Vec<u8> {
    let mut read = Vec::new();
    while read.len() < MAX_ERROR
        && let Some(Ok(frame)) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await
    {
        read.extend_from_slice(frame.data_ref().map(Bytes::as_ref).unwrap_or_default());
    }
    read
}

/// An error as Kubernetes tells it, with the code of HTTP.
fn status(code: StatusCode, headers: &HeaderMap, body: &[u8]) -> Value {
    let mut status = match serde_json::from_slice::<Value>(body) {
        Ok(status) if status["kind"] == "Status" => status,
        Ok(other) => {
            let text = |field: &str| other[field].as_str().unwrap_or_default();
            json!({"reason": text("reason"), "message": text("message")})
        }
        Err(_) => json!({"message": first_line(body)}),
    };
    for (field, value) in [("kind", "Status"), ("apiVersion", "v1"), ("status", "Failure")] {
        status[field] = value.into();
    }
    status["code"] = code.as_u16().into();
    let after = headers.get(RETRY_AFTER).and_then(|after| after.to_str().ok()?.parse::<u32>().ok());
    if let (true, Some(after)) = (status["details"].is_null(), after) {
        status["details"] = json!({"retryAfterSeconds": after});
    }
    // `Status` of kube refuses fields that are null.
    if let Some(fields) = status.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
    status
}

/// The first line of a text, as far as it is one to be read: a web page is not.
fn first_line(body: &[u8]) -> String {
    let text = std::str::from_utf8(body).unwrap_or_default().trim_start();
    if text.starts_with('<') {
        return String::new();
    }
    let line = text.lines().next().unwrap_or_default().trim_end();
    let line = line.chars().map(|letter| if letter.is_control() { ' ' } else { letter });
    line.take(MAX_TOLD).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(code: u16, body: &str) -> Value {
        let headers = HeaderMap::from_iter([(RETRY_AFTER, "7".parse().unwrap())]);
        status(StatusCode::from_u16(code).unwrap(), &headers, body.as_bytes())
    }

    #[test]
    fn an_error_that_is_no_status_has_the_code_of_http_and_its_first_line() {
        let text = told(429, "The queue is full, please try again later.\nmore\n");
        assert_eq!((&text["code"], &text["details"]["retryAfterSeconds"]), (&json!(429), &json!(7)));
        assert_eq!(text["message"], "The queue is full, please try again later.");
        for empty in ["", "{}", "null", "<html>upstream down</html>", "\n <!doctype html>"] {
            let status = told(503, empty);
            assert_eq!((&status["code"], &status["message"]), (&json!(503), &json!("")), "{empty}");
        }
        let own = r#"{"kind":"Status","message":"no","reason":"TooManyRequests","code":429,"details":{"retryAfterSeconds":1}}"#;
        let own = told(429, own);
        assert_eq!(own["details"]["retryAfterSeconds"], 1);
        assert_eq!((&own["reason"], &own["message"]), (&json!("TooManyRequests"), &json!("no")));
    }
}
