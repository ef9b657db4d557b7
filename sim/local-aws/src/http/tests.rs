//! The server as seen by clients, byte by byte.

use super::server::{Limits, serve_with};
use super::*;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

mod silent;
mod subscribing;

const T0: i64 = 1_770_000_000_000;

struct Server {
    address: std::net::SocketAddr,
    now: Arc<AtomicI64>,
    aws: SharedAws,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<std::io::Result<()>>,
}

/// What came back.
#[derive(Debug)]
struct Reply {
    status: u16,
    head: String,
    body: Vec<u8>,
}

impl Reply {
    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then_some(value.trim())
        })
    }
}

impl Server {
    async fn start() -> Self {
        Self::start_with(LocalOptions::default(), Limits::default()).await
    }

    /// A server with these accounts and regions, and these limits for stalled clients.
    async fn start_with(mut options: LocalOptions, limits: Limits) -> Self {
        let now = Arc::new(AtomicI64::new(T0));
        let clock = now.clone();
        let (kinesis, dynamo) = (&mut options.kinesis, &mut options.dynamo);
        (kinesis.create_ms, kinesis.consumer_ms, kinesis.update_ms, kinesis.delete_ms) = (0, 0, 0, 0);
        (dynamo.create_ms, dynamo.delete_ms) = (0, 0);
        kinesis.limits = false;
        let aws = SharedAws::new(LocalAws::new(options), Arc::new(move || clock.load(Ordering::SeqCst)));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let shutdown = async {
            let _ = stopped.await;
        };
        let task = tokio::spawn(serve_with(limits, listener, aws.clone(), shutdown));
        Server { address, now, aws, stop: Some(stop), task }
    }

    /// The answer to a request without a body.
    async fn head(&self, method: &str, headers: &str) -> Reply {
        self.raw(format!("{method} / HTTP/1.1\r\nconnection: close\r\n{headers}\r\n").as_bytes()).await
    }

    /// Sends raw bytes on a new connection, and reads to its end.
    async fn raw(&self, request: &[u8]) -> Reply {
        let mut socket = TcpStream::connect(self.address).await.unwrap();
        socket.write_all(request).await.unwrap();
        let mut answer = Vec::new();
        // A reset connection has no more bytes to read.
        let _ = tokio::time::timeout(Duration::from_secs(10), socket.read_to_end(&mut answer)).await.unwrap();
        let split = answer.windows(4).position(|window| window == b"\r\n\r\n").unwrap_or(answer.len());
        let head = String::from_utf8_lossy(&answer[..split]).into_owned();
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        Reply { status, head, body: answer.get(split + 4..).unwrap_or_default().to_vec() }
    }

    async fn post(&self, content_type: &str, target: &str, body: &[u8]) -> Reply {
        self.post_with("", content_type, target, body).await
    }

    /// A request with further headers, each with its end of line.
    async fn post_with(&self, headers: &str, content_type: &str, target: &str, body: &[u8]) -> Reply {
        let mut request = format!(
            "POST / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: {content_type}\r\n{headers}\
             x-amz-target: {target}\r\ncontent-length: {}\r\n\r\n",
            body.len()
        )
        .into_bytes();
        request.extend(body);
        self.raw(&request).await
    }

    async fn call(&self, operation: &str, body: Value) -> Reply {
        let target = format!("Kinesis_20131202.{operation}");
        self.post("application/x-amz-json-1.1", &target, body.to_string().as_bytes()).await
    }

    async fn stop(mut self) {
        let _ = self.stop.take().unwrap().send(());
        tokio::time::timeout(Duration::from_secs(10), self.task).await.unwrap().unwrap().unwrap();
    }
}

#[tokio::test]
async fn a_stream_is_created_written_and_read() {
    let server = Server::start().await;
    let created = server.call("CreateStream", json!({"StreamName": "s", "ShardCount": 1})).await;
    assert_eq!((created.status, &created.body[..]), (200, &b""[..]));
    let put = server.call("PutRecord", json!({"StreamName": "s", "PartitionKey": "k", "Data": "aGk="})).await;
    assert_eq!(put.json()["ShardId"], "shardId-000000000000");
    assert_eq!(put.header("content-type"), Some("application/x-amz-json-1.1"));
    assert_eq!(put.header("x-amz-crc32"), Some(&*crc32fast::hash(&put.body).to_string()));
    assert_ne!(put.header("x-amzn-requestid"), created.header("x-amzn-requestid"));
    let ask =
        json!({"StreamName": "s", "ShardId": "shardId-000000000000", "ShardIteratorType": "TRIM_HORIZON"});
    let iterator = server.call("GetShardIterator", ask).await.json();
    let read = json!({"ShardIterator": iterator["ShardIterator"]});
    assert_eq!(server.call("GetRecords", read.clone()).await.json()["Records"][0]["Data"], "aGk=");
    assert!(server.aws.lock().kinesis.stream("s").is_some());
    server.now.fetch_add(300_001, Ordering::SeqCst);
    let expired = server.call("GetRecords", read).await;
    assert_eq!((expired.status, expired.header("x-amzn-errortype")), (400, Some("ExpiredIteratorException")));
    assert_eq!(expired.json()["__type"], "ExpiredIteratorException");
    server.stop().await;
}

#[tokio::test]
async fn a_request_is_refused_as_the_rule_says() {
    let server = Server::start().await;
    let denied = ("AccessDeniedException", "not you");
    server.aws.refuse(Some(Box::new(move |_, body| body.contains("bad").then_some(denied))));
    let refused = server.call("CreateStream", json!({"StreamName": "bad", "ShardCount": 1})).await;
    assert_eq!((refused.status, &refused.json()["message"]), (400, &"not you".into()));
}

#[tokio::test]
async fn cbor_is_answered_in_cbor() {
    use ciborium::Value as Cbor;
    let server = Server::start().await;
    server.call("CreateStream", json!({"StreamName": "s", "ShardCount": 1})).await;
    let text = |text: &str| Cbor::Text(text.into());
    let send = async |operation: &str, members: Vec<(&str, Cbor)>| {
        let mut body = Vec::new();
        let map = members.into_iter().map(|(key, value)| (text(key), value)).collect();
        ciborium::into_writer(&Cbor::Map(map), &mut body).unwrap();
        let reply =
            server.post("application/x-amz-cbor-1.1", &format!("Kinesis_20131202.{operation}"), &body).await;
        assert_eq!(reply.header("content-type"), Some("application/x-amz-cbor-1.1"));
        let Cbor::Map(members) = ciborium::from_reader(&*reply.body).unwrap() else { panic!("not a map") };
        (reply.status, members)
    };
    let member = |members: &[(Cbor, Cbor)], name: &str| {
        members.iter().find(|(key, _)| key == &text(name)).map(|(_, value)| value.clone()).unwrap()
    };
    let data = Cbor::Bytes(vec![0, 255, 1]);
    let put = vec![("StreamName", text("s")), ("PartitionKey", text("k")), ("Data", data.clone())];
    assert_eq!(send("PutRecord", put).await.0, 200);
    let time = Cbor::Tag(1, Box::new(Cbor::Integer((T0 - 1).into())));
    let ask = vec![
        ("StreamName", text("s")),
        ("ShardId", text("shardId-000000000000")),
        ("ShardIteratorType", text("AT_TIMESTAMP")),
        ("Timestamp", time),
    ];
    let (_, iterator) = send("GetShardIterator", ask).await;
    let (_, page) = send("GetRecords", vec![("ShardIterator", member(&iterator, "ShardIterator"))]).await;
    let Cbor::Array(records) = member(&page, "Records") else { panic!("not a list") };
    let Cbor::Map(record) = &records[0] else { panic!("not a map") };
    assert_eq!(member(record, "Data"), data);
    let arrival = Cbor::Tag(1, Box::new(Cbor::Integer(T0.into())));
    assert_eq!(member(record, "ApproximateArrivalTimestamp"), arrival);
    let (status, error) = send("DeleteStream", vec![("StreamName", text("t"))]).await;
    assert_eq!((status, member(&error, "__type")), (400, text("ResourceNotFoundException")));
    server.stop().await;
}

#[tokio::test]
async fn both_services_are_on_one_port() {
    let server = Server::start().await;
    let dynamo = async |operation: &str, body: Value| {
        let target = format!("DynamoDB_20120810.{operation}");
        server.post("application/x-amz-json-1.0", &target, body.to_string().as_bytes()).await
    };
    let create = json!({
        "TableName": "table",
        "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [{"AttributeName": "k", "AttributeType": "S"}],
        "KeySchema": [{"AttributeName": "k", "KeyType": "HASH"}],
    });
    let created = dynamo("CreateTable", create).await;
    assert_eq!(created.status, 200, "{}", created.json());
    let item = json!({"TableName": "table", "Item": {"k": {"S": "a"}, "Data": {"B": "aGk="}}});
    assert_eq!(dynamo("PutItem", item.clone()).await.status, 200);
    let key = json!({"TableName": "table", "Key": {"k": {"S": "a"}}});
    let got = dynamo("GetItem", key.clone()).await;
    assert_eq!(got.json()["Item"]["Data"], json!({"B": "aGk="}));
    assert_eq!(got.header("content-type"), Some("application/x-amz-json-1.0"));
    assert_eq!(got.header("x-amz-crc32"), Some(&*crc32fast::hash(&got.body).to_string()));
    let mut once = item;
    once["ConditionExpression"] = json!("attribute_not_exists(k)");
    let refused = dynamo("PutItem", once).await;
    assert_eq!(refused.header("x-amzn-errortype"), Some("ConditionalCheckFailedException"));
    let kind = refused.json()["__type"].as_str().unwrap().to_owned();
    assert!(kind.ends_with("#ConditionalCheckFailedException"), "{kind}");
    let cbor = server.post("application/x-amz-cbor-1.1", "DynamoDB_20120810.GetItem", b"\xa0").await;
    assert_eq!(cbor.header("x-amzn-errortype"), Some("UnknownOperationException"));
    server.stop().await;
}

#[tokio::test]
async fn a_request_of_no_service_is_refused_in_its_terms() {
    let server = Server::start().await;
    let json = "application/x-amz-json-1.1";
    let list = "Kinesis_20131202.ListStreams";
    for (content_type, target, body, status, code) in [
        (json, list, "{", 400, "SerializationException"),
        (json, list, "[]", 400, "SerializationException"),
        (json, list, "\u{0}", 400, "SerializationException"),
        (json, "Kinesis_20131202.Nonsense", "{}", 400, "UnknownOperationException"),
        (json, "Kinesis_20131202", "{}", 400, "UnknownOperationException"),
        (json, "Other_1.ListStreams", "{}", 400, "UnknownOperationException"),
        ("text/plain", list, "{}", 404, "UnknownOperationException"),
        ("application/x-amz-cbor-1.1", list, "\u{7f}", 400, "SerializationException"),
    ] {
        let reply = server.post(content_type, target, body.as_bytes()).await;
        assert_eq!(
            (reply.status, reply.header("x-amzn-errortype")),
            (status, Some(code)),
            "{target} {body:?}"
        );
    }
    let deep = "[".repeat(100_000);
    assert_eq!(server.post(json, list, deep.as_bytes()).await.status, 400);
    let missing = server
        .raw(b"POST / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}")
        .await;
    assert_eq!(missing.status, 400);
    assert_eq!(missing.json()["message"], "The header X-Amz-Target is missing.");
    let empty = server.post("application/x-amz-json-1.0; charset=utf-8", list, b"").await;
    assert_eq!((empty.status, empty.header("content-type")), (200, Some("application/x-amz-json-1.0")));
    server.stop().await;
}

/// The parser's own words name a place in the parser, and mean nothing to the caller of an SDK.
#[tokio::test]
async fn refusals_show_nothing_of_the_parser() {
    let server = Server::start().await;
    let json = "application/x-amz-json-1.1";
    let cbor = "application/x-amz-cbor-1.1";
    let deep = "[".repeat(1_000);
    let bodies: [(&str, &[u8], &str); 9] = [
        (json, b"{", "cannot be read as JSON"),
        (json, b"{\"StreamName\": }", "cannot be read as JSON"),
        (json, b"{} {}", "cannot be read as JSON"),
        (json, b"{\"StreamName\": \"\xff\"}", "cannot be read as JSON"),
        (json, b"{\"Limit\": 1e999}", "cannot be read as JSON"),
        (json, deep.as_bytes(), "cannot be read as JSON"),
        (
            json,
            b"{\"StreamName\": \"s\", \"PartitionKey\": \"k\", \"Data\": \"!\"}",
            "is not base64 with padding",
        ),
        (cbor, b"\x7f", "cannot be read as CBOR"),
        (cbor, b"\xa1\x01\x01", "The key of a map in the request's body is not a text."),
    ];
    for (content_type, body, expected) in bodies {
        let reply = server.post(content_type, "Kinesis_20131202.PutRecord", body).await;
        let code = reply.header("x-amzn-errortype");
        assert_eq!((reply.status, code), (400, Some("SerializationException")));
        let message = match content_type == json {
            true => reply.json()["message"].as_str().unwrap().to_owned(),
            false => String::from_utf8_lossy(&reply.body).into_owned(),
        };
        assert!(message.contains(expected), "{message}");
        for word in ["line", "column", "offset", "Semantic", "Syntax", "EOF", "symbol"] {
            assert!(!message.contains(word), "{message}");
        }
    }
    server.stop().await;
}

#[tokio::test]
async fn a_body_that_stalls_is_refused_and_a_slow_one_is_not() {
    let limits = Limits { patience: Duration::from_secs(3), ..Limits::default() };
    let server = Server::start_with(LocalOptions::default(), limits).await;
    let head = "POST / HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/x-amz-json-1.1\r\n\
        x-amz-target: Kinesis_20131202.ListStreams\r\ncontent-length: 6\r\n";
    let mut slow = TcpStream::connect(server.address).await.unwrap();
    let mut stalled = TcpStream::connect(server.address).await.unwrap();
    let closing = format!("{head}connection: close\r\n\r\n");
    slow.write_all(closing.as_bytes()).await.unwrap();
    // The request asks for a connection that stays.
    stalled.write_all(format!("{head}\r\n{{").as_bytes()).await.unwrap();
    for byte in ["{", " ", " ", " ", " ", "}"] {
        tokio::time::sleep(Duration::from_millis(700)).await;
        slow.write_all(byte.as_bytes()).await.unwrap();
    }
    let read = async |socket: &mut TcpStream| {
        let mut answer = String::new();
        tokio::time::timeout(Duration::from_secs(20), socket.read_to_string(&mut answer))
            .await
            .expect("the connection to be closed")
            .unwrap();
        answer
    };
    let answer = read(&mut slow).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let answer = read(&mut stalled).await;
    assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
    assert!(answer.contains("Nothing of the request's body was received for 3 seconds."), "{answer}");
    server.stop().await;
}

/// A request that is signed for a region, or not signed.
async fn signed(server: &Server, region: Option<&str>, target: &str, body: Value) -> Value {
    let signature = region.map_or(String::new(), |region| {
        format!(
            "authorization: AWS4-HMAC-SHA256 Credential=k/20260202/{region}/s/aws4_request, SignedHeaders=host, \
             Signature=0\r\n"
        )
    });
    let body = body.to_string();
    let reply = server.post_with(&signature, "application/x-amz-json-1.1", target, body.as_bytes()).await;
    assert_eq!(reply.status, 200, "{}", String::from_utf8_lossy(&reply.body));
    match reply.body.is_empty() {
        true => Value::Null,
        false => reply.json(),
    }
}

#[tokio::test]
async fn each_signed_region_has_its_own_streams_and_tables() {
    let mut options = LocalOptions::default();
    options.kinesis.account_id = "123456789012".into();
    options.dynamo.account_id = "123456789012".to_owned();
    let server = Server::start_with(options, Limits::default()).await;
    let stream = json!({"StreamName": "s", "ShardCount": 1});
    let table = json!({
        "TableName": "tab", "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [{"AttributeName": "k", "AttributeType": "S"}],
        "KeySchema": [{"AttributeName": "k", "KeyType": "HASH"}]
    });
    let eu = Some("eu-west-1");
    signed(&server, eu, "Kinesis_20131202.CreateStream", stream.clone()).await;
    signed(&server, eu, "DynamoDB_20120810.CreateTable", table).await;
    let name = json!({"StreamName": "s"});
    let shown = signed(&server, eu, "Kinesis_20131202.DescribeStreamSummary", name.clone()).await;
    assert_eq!(
        shown["StreamDescriptionSummary"]["StreamARN"],
        "arn:aws:kinesis:eu-west-1:123456789012:stream/s"
    );
    let shown = signed(&server, eu, "DynamoDB_20120810.DescribeTable", json!({"TableName": "tab"})).await;
    assert_eq!(shown["Table"]["TableArn"], "arn:aws:dynamodb:eu-west-1:123456789012:table/tab");
    // Requests without a valid region mean the first region.
    for region in [None, Some("us-east-1"), Some("No Region")] {
        let list = signed(&server, region, "Kinesis_20131202.ListStreams", json!({})).await;
        assert_eq!(list["StreamNames"], json!([]), "{region:?}");
        let list = signed(&server, region, "DynamoDB_20120810.ListTables", json!({})).await;
        assert_eq!(list["TableNames"], json!([]), "{region:?}");
    }
    signed(&server, None, "Kinesis_20131202.CreateStream", stream).await;
    let shown = signed(&server, Some("us-east-1"), "Kinesis_20131202.DescribeStreamSummary", name).await;
    assert_eq!(
        shown["StreamDescriptionSummary"]["StreamARN"],
        "arn:aws:kinesis:us-east-1:123456789012:stream/s"
    );
    server.stop().await;
}

#[tokio::test]
async fn one_region_may_be_all_there_is() {
    let mut options = LocalOptions { one_region: true, ..LocalOptions::default() };
    options.kinesis.region = "eu-north-1".into();
    let server = Server::start_with(options, Limits::default()).await;
    let stream = json!({"StreamName": "s", "ShardCount": 1});
    signed(&server, Some("us-east-1"), "Kinesis_20131202.CreateStream", stream).await;
    for region in [None, Some("ap-southeast-1")] {
        let name = json!({"StreamName": "s"});
        let shown = signed(&server, region, "Kinesis_20131202.DescribeStreamSummary", name).await;
        let arn = "arn:aws:kinesis:eu-north-1:000000000000:stream/s";
        assert_eq!(shown["StreamDescriptionSummary"]["StreamARN"], arn);
    }
    server.stop().await;
}

#[tokio::test]
async fn it_says_that_it_is_there() {
    let server = Server::start().await;
    let health = server.head("GET", "host: localhost\r\n").await;
    let ready = b"leasehold local: Kinesis and DynamoDB are ready\n";
    assert_eq!((health.status, &health.body[..]), (200, &ready[..]));
    assert_eq!(server.head("DELETE", "host: localhost\r\n").await.status, 405);
    server.stop().await;
}

#[tokio::test]
async fn garbage_does_not_hurt() {
    let server = Server::start().await;
    let long = format!("GET / HTTP/1.1\r\nx: {}\r\n\r\n", "y".repeat(2_000_000));
    let huge = b"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 99999999999999999999\r\n\r\n";
    for request in [
        &b"\r\n\r\n\r\n"[..],
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
        b"POST / HTTP/9.9\r\n\r\n",
        huge,
        long.as_bytes(),
    ] {
        let mut socket = TcpStream::connect(server.address).await.unwrap();
        let _ = socket.write_all(request).await;
        let _ = socket.shutdown().await;
        let mut answer = Vec::new();
        let _ = tokio::time::timeout(Duration::from_secs(10), socket.read_to_end(&mut answer)).await.unwrap();
    }
    // A client that leaves in the middle of a body.
    let mut socket = TcpStream::connect(server.address).await.unwrap();
    let head = b"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/x-amz-json-1.1\r\n\
        x-amz-target: Kinesis_20131202.ListStreams\r\ncontent-length: 100\r\n\r\n{";
    socket.write_all(head).await.unwrap();
    drop(socket);
    assert_eq!(server.call("ListStreams", json!({})).await.status, 200);
    server.stop().await;
}

#[tokio::test]
async fn a_request_has_a_greatest_size() {
    let server = Server::start().await;
    let head = "POST / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/x-amz-json-1.1\r\n\
        x-amz-target: Kinesis_20131202.PutRecords\r\ntransfer-encoding: chunked\r\n\r\n";
    let mut socket = TcpStream::connect(server.address).await.unwrap();
    socket.write_all(head.as_bytes()).await.unwrap();
    let chunk = format!("100000\r\n{}\r\n", " ".repeat(1 << 20));
    for _ in 0..40 {
        // The server may close before all is sent.
        if socket.write_all(chunk.as_bytes()).await.is_err() {
            break;
        }
    }
    let mut answer = vec![0; 12];
    if socket.read_exact(&mut answer).await.is_ok() {
        assert_eq!(&answer, b"HTTP/1.1 413");
    }
    assert_eq!(server.call("ListStreams", json!({})).await.status, 200);
    server.stop().await;
}

#[tokio::test]
async fn http2_with_prior_knowledge_carries_many_requests() {
    use hyper_util::rt::{TokioExecutor, TokioIo};
    let server = Server::start().await;
    let socket = TokioIo::new(TcpStream::connect(server.address).await.unwrap());
    let (client, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), socket).await.unwrap();
    let driver = tokio::spawn(connection);
    let mut calls = tokio::task::JoinSet::new();
    for i in 0..50 {
        let mut client = client.clone();
        calls.spawn(async move {
            let body = json!({"StreamName": format!("s{i}"), "ShardCount": 1}).to_string();
            let request = hyper::Request::post("http://localhost/")
                .header("content-type", "application/x-amz-json-1.1")
                .header("x-amz-target", "Kinesis_20131202.CreateStream")
                .body(Full::new(Bytes::from(body)))
                .unwrap();
            let response = client.send_request(request).await.unwrap();
            let status = response.status();
            response.into_body().collect().await.unwrap();
            status
        });
    }
    assert!(calls.join_all().await.into_iter().all(|status| status == 200));
    assert_eq!(server.aws.lock().kinesis.streams().count(), 50);
    drop(client);
    driver.await.unwrap().unwrap();
    server.stop().await;
}

#[tokio::test]
async fn it_ends_although_clients_stay() {
    let server = Server::start().await;
    let idle = TcpStream::connect(server.address).await.unwrap();
    let mut half = TcpStream::connect(server.address).await.unwrap();
    half.write_all(b"POST / HTTP/1.1\r\nhost:").await.unwrap();
    server.stop().await;
    drop((idle, half));
}
