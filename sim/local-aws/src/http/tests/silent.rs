//! Silent clients, and clients for another host.

use super::*;

async fn server(patience_ms: u64, silence_ms: u64, connections: usize) -> Server {
    let limits = Limits {
        patience: Duration::from_millis(patience_ms),
        silence: Duration::from_millis(silence_ms),
        connections,
    };
    Server::start_with(LocalOptions::default(), limits).await
}

/// Whether the server closes a connection within ten seconds.
async fn is_closed(socket: &mut TcpStream) -> bool {
    let mut rest = Vec::new();
    let read = socket.read_to_end(&mut rest);
    tokio::time::timeout(Duration::from_secs(10), read).await.is_ok()
}

#[tokio::test]
async fn a_connection_that_says_nothing_or_half_a_word_is_closed() {
    let server = server(300, 300, 100).await;
    // The last could be the beginning of HTTP/2 as of HTTP/1.1.
    for said in ["", "GET / HTTP/1.1\r\nhost: ", "PRI * HTTP/2.0\r\n", "P"] {
        let mut socket = TcpStream::connect(server.address).await.unwrap();
        socket.write_all(said.as_bytes()).await.unwrap();
        assert!(is_closed(&mut socket).await, "{said:?}");
    }
    server.stop().await;
}

#[tokio::test]
async fn a_client_that_does_not_take_its_answers_is_closed() {
    let server = server(30_000, 500, 100).await;
    let mut socket = TcpStream::connect(server.address).await.unwrap();
    let request = b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let asked = async {
        // The loop ends when the server has closed the connection.
        while socket.write_all(&request.repeat(1_000)).await.is_ok() {}
    };
    tokio::time::timeout(Duration::from_secs(30), asked).await.expect("the connection to be closed");
    server.stop().await;
}

#[tokio::test]
async fn silent_connections_make_way_for_those_that_ask() {
    let server = server(30_000, 60_000, 20).await;
    let mut silent = Vec::new();
    for _ in 0..50 {
        silent.push(TcpStream::connect(server.address).await.unwrap());
    }
    for _ in 0..3 {
        assert_eq!(server.call("ListStreams", json!({})).await.status, 200);
    }
    assert!(is_closed(&mut silent[0]).await);
    assert!(is_closed(&mut silent[29]).await);
    // One of the last connections is still open, and is served.
    let last = silent.last_mut().expect("a connection");
    let request = b"GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    last.write_all(request).await.unwrap();
    let mut answer = String::new();
    last.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    server.stop().await;
}

#[tokio::test]
async fn requests_for_another_host_are_refused_before_anything_else() {
    let options = LocalOptions { allow_hosts: vec!["leasehold".to_owned()], ..LocalOptions::default() };
    let server = Server::start_with(options, Limits::default()).await;
    for method in ["GET", "POST", "OPTIONS"] {
        let reply = server.head(method, "host: evil.example:80\r\n").await;
        assert_eq!(reply.status, 421, "{method}");
        let told = reply.json();
        assert_eq!(told["__type"], "MisdirectedRequestException");
        let message = told["message"].as_str().unwrap_or_default();
        assert!(message.contains("start it with --allow-host evil.example."), "{message}");
    }
    assert_eq!(server.head("GET", "host: leasehold:4567\r\n").await.status, 200);
    let page = server.head("GET", "host: localhost\r\norigin: https://evil.example\r\n").await;
    assert_eq!((page.status, page.header("x-amzn-errortype")), (403, Some("ForbiddenOriginException")));
    server.stop().await;
}
