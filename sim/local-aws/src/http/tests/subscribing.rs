//! Subscriptions on the wire.

use super::*;
use aws_smithy_eventstream::frame::{DecodedFrame, MessageFrameDecoder};
use bytes::BytesMut;
use hyper::body::Incoming;
use hyper::client::conn::http2::SendRequest;
use hyper_util::rt::{TokioExecutor, TokioIo};

type Client = SendRequest<Full<Bytes>>;

/// A client of HTTP/2 with prior knowledge, as SDKs use for subscriptions.
async fn client(server: &Server) -> Client {
    let socket = TokioIo::new(TcpStream::connect(server.address).await.unwrap());
    let (client, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), socket).await.unwrap();
    tokio::spawn(connection);
    client
}

fn request(operation: &str, body: &Value) -> hyper::Request<Full<Bytes>> {
    hyper::Request::post("http://localhost/")
        .header("content-type", "application/x-amz-json-1.1")
        .header("x-amz-target", format!("Kinesis_20131202.{operation}"))
        .body(Full::new(Bytes::from(body.to_string())))
        .unwrap()
}

/// A stream with this many shards, and the ARN of its consumer.
async fn consumer(server: &Server, shards: u32) -> String {
    server.call("CreateStream", json!({"StreamName": "s", "ShardCount": shards})).await;
    let stream = "arn:aws:kinesis:us-east-1:000000000000:stream/s";
    let answer =
        server.call("RegisterStreamConsumer", json!({"StreamARN": stream, "ConsumerName": "c"})).await;
    answer.json()["Consumer"]["ConsumerARN"].as_str().unwrap().to_owned()
}

fn from_latest(arn: &str, shard: u32) -> Value {
    json!({
        "ConsumerARN": arn,
        "ShardId": format!("shardId-{shard:012}"),
        "StartingPosition": {"Type": "LATEST"},
    })
}

/// A subscription as its client sees it.
struct Subscriber {
    body: Incoming,
    bytes: BytesMut,
    decoder: MessageFrameDecoder,
}

impl Subscriber {
    async fn begin(client: &mut Client, arn: &str, shard: u32) -> Self {
        let answer =
            client.send_request(request("SubscribeToShard", &from_latest(arn, shard))).await.unwrap();
        assert_eq!(answer.status(), 200);
        assert_eq!(answer.headers()["content-type"], "application/vnd.amazon.eventstream");
        assert!(answer.headers().get("content-length").is_none());
        let body = answer.into_body();
        Self { body, bytes: BytesMut::new(), decoder: MessageFrameDecoder::new() }
    }

    /// The type and the payload of the next frame, within five seconds. None at the end of the body.
    async fn next(&mut self) -> Option<(String, Value)> {
        loop {
            if let DecodedFrame::Complete(message) = self.decoder.decode_frame(&mut self.bytes).unwrap() {
                let header = &message.headers()[1];
                let name = header.value().as_string().unwrap().as_str().to_owned();
                return Some((name, serde_json::from_slice(message.payload()).unwrap()));
            }
            let frame = tokio::time::timeout(Duration::from_secs(5), self.body.frame()).await.unwrap();
            self.bytes.extend_from_slice(&frame?.unwrap().into_data().unwrap());
        }
    }

    async fn event(&mut self) -> Value {
        let (name, event) = self.next().await.unwrap();
        assert_eq!(name, "SubscribeToShardEvent");
        event
    }
}

#[tokio::test]
async fn a_record_is_pushed_to_a_waiting_subscriber() {
    let server = Server::start().await;
    let arn = consumer(&server, 1).await;
    let mut client = client(&server).await;
    let mut subscriber = Subscriber::begin(&mut client, &arn, 0).await;
    assert_eq!(subscriber.next().await, Some(("initial-response".to_owned(), json!({}))));
    assert_eq!(subscriber.event().await["Records"], json!([]));
    server.call("PutRecord", json!({"StreamName": "s", "PartitionKey": "k", "Data": "eA=="})).await;
    assert_eq!(subscriber.event().await["Records"][0]["Data"], "eA==");
    // Five idle seconds.
    server.now.fetch_add(5_000, Ordering::SeqCst);
    assert_eq!(subscriber.event().await["Records"], json!([]));
    let split = json!({"StreamName": "s", "ShardToSplit": "shardId-000000000000", "NewStartingHashKey": "9"});
    server.call("SplitShard", split).await;
    assert_eq!(subscriber.event().await["ChildShards"].as_array().map(Vec::len), Some(2));
    assert_eq!(subscriber.next().await, None);
    server.stop().await;
}

#[tokio::test]
async fn a_later_subscriber_ends_an_earlier_one_with_an_exception() {
    let server = Server::start().await;
    let arn = consumer(&server, 1).await;
    let mut client = client(&server).await;
    let mut former = Subscriber::begin(&mut client, &arn, 0).await;
    let refused = server.call("SubscribeToShard", from_latest(&arn, 0)).await;
    assert_eq!(refused.json()["__type"], "ResourceInUseException");
    server.now.fetch_add(5_000, Ordering::SeqCst);
    let mut later = Subscriber::begin(&mut client, &arn, 0).await;
    later.next().await.unwrap();
    let mut last = String::new();
    while let Some((name, _)) = former.next().await {
        last = name;
    }
    assert_eq!(last, "ResourceInUseException");
    server.stop().await;
}

#[tokio::test]
async fn http1_carries_a_subscription_until_the_server_ends() {
    let server = Server::start().await;
    let arn = consumer(&server, 1).await;
    let body = from_latest(&arn, 0).to_string();
    let mut socket = TcpStream::connect(server.address).await.unwrap();
    let head = format!(
        "POST / HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/x-amz-json-1.1\r\n\
         x-amz-target: Kinesis_20131202.SubscribeToShard\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    socket.write_all(head.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    while !String::from_utf8_lossy(&answer).contains("MillisBehindLatest") {
        assert!(socket.read_buf(&mut answer).await.unwrap() > 0);
    }
    assert!(String::from_utf8_lossy(&answer).contains("transfer-encoding: chunked"));
    server.stop().await;
    socket.read_to_end(&mut answer).await.unwrap();
    assert!(answer.ends_with(b"0\r\n\r\n"), "the body ends as bodies do");
}

#[tokio::test]
async fn many_subscriptions_of_a_connection_leave_nothing() {
    const SHARDS: u32 = 130;
    let server = Server::start().await;
    let arn = consumer(&server, SHARDS).await;
    let mut client = client(&server).await;
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let before = tasks();
    let mut subscribers = Vec::new();
    for shard in 0..SHARDS {
        subscribers.push(Subscriber::begin(&mut client, &arn, shard).await);
    }
    for subscriber in &mut subscribers {
        subscriber.next().await.unwrap();
        subscriber.event().await;
    }
    // Some tasks of the connection may have begun after the count.
    let few = 10;
    assert!(tasks() >= before + SHARDS as usize);
    drop(subscribers);
    tokio::time::timeout(Duration::from_secs(10), async {
        while tasks() > before + few {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await
    .unwrap();
    server.stop().await;
}

/// A client that does not read stops the service: what is not read stays in the stream.
#[tokio::test]
async fn a_subscriber_that_does_not_read_costs_one_event() {
    let server = Server::start().await;
    let arn = consumer(&server, 1).await;
    let mut client = client(&server).await;
    let mut subscriber = Subscriber::begin(&mut client, &arn, 0).await;
    let data = "eHh4".repeat(100_000);
    let put = json!({"StreamName": "s", "PartitionKey": "k", "Data": data});
    for _ in 0..20 {
        server.call("PutRecord", put.clone()).await;
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    let mut records = 0;
    while records < 20 {
        let (_, event) = subscriber.next().await.unwrap();
        records += event["Records"].as_array().map_or(0, Vec::len);
    }
    assert_eq!(records, 20);
    server.stop().await;
}
