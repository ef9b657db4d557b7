//! The in-memory AWS of `leasehold local` in this process, behind a gate.

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use leasehold_local_aws::dynamo::DynamoConfig;
use leasehold_local_aws::http::{LocalOptions, Loopback, SharedAws};
use leasehold_local_aws::kinesis::KinesisConfig;
use serde_json::json;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::net::TcpListener;

/// A refusal by the common front of all AWS services.
#[derive(Clone, Copy, Debug)]
pub struct Refusal {
    /// The error's code.
    pub code: &'static str,
    /// The error's message.
    pub message: &'static str,
}

/// Decides by operation (such as `Kinesis_20131202.GetRecords`) and body whether to refuse a request.
type Rule = Box<dyn Fn(&str, &str) -> Option<Refusal> + Send>;

/// The in-memory AWS. The server ends with the runtime of its start.
#[derive(Clone)]
pub struct Local {
    /// Where it listens.
    pub endpoint: String,
    /// The services themselves.
    pub aws: SharedAws,
    gate: Arc<Mutex<Gate>>,
}

#[derive(Default)]
struct Gate {
    rule: Option<Rule>,
    refused: BTreeMap<String, u64>,
}

impl fmt::Debug for Local {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Local").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

/// Without limits, and with every transition immediate.
pub fn instant() -> LocalOptions {
    LocalOptions {
        kinesis: KinesisConfig::instant(),
        dynamo: DynamoConfig { create_ms: 0, backfill_ms: 0, delete_ms: 0, ..DynamoConfig::default() },
        ..LocalOptions::default()
    }
}

impl Local {
    /// Starts one, with a gate that refuses nothing.
    ///
    /// # Panics
    /// If there is no free port.
    pub async fn start(options: LocalOptions) -> Self {
        let server = Loopback::start(options).await.expect("a free port");
        let aws = server.aws().clone();
        let (endpoint, front) = listen().await;
        let gate = Arc::new(Mutex::new(Gate::default()));
        tokio::spawn(guard(front, server, gate.clone()));
        Self { endpoint, aws, gate }
    }

    /// From now on, refuses the operations refused by the rule, and no further operations.
    pub fn refuse(&self, rule: impl Fn(&str) -> Option<Refusal> + Send + 'static) {
        self.refuse_by_body(move |target, _| rule(target));
    }

    /// As [`refuse`](Self::refuse). The rule sees the operation, and then the body in JSON.
    pub fn refuse_by_body(&self, rule: impl Fn(&str, &str) -> Option<Refusal> + Send + 'static) {
        lock(&self.gate).rule = Some(Box::new(rule));
    }

    /// From now on, refuses nothing.
    pub fn refuse_nothing(&self) {
        lock(&self.gate).rule = None;
    }

    /// The number of refused requests up to now, by operation.
    pub fn refused(&self) -> BTreeMap<String, u64> {
        lock(&self.gate).refused.clone()
    }
}

fn lock(gate: &Mutex<Gate>) -> MutexGuard<'_, Gate> {
    gate.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn listen() -> (String, TcpListener) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
    let address = listener.local_addr().expect("a bound listener");
    (format!("http://{address}"), listener)
}

/// Passes requests on, except refused requests.
async fn guard(listener: TcpListener, server: Loopback, gate: Arc<Mutex<Gate>>) {
    let behind = server.endpoint().to_owned();
    let client: Client<HttpConnector, Full<Bytes>> = Client::builder(TokioExecutor::new()).build_http();
    while let Ok((socket, _)) = listener.accept().await {
        let (client, behind, gate) = (client.clone(), behind.clone(), gate.clone());
        let service = service_fn(move |request| {
            let (client, behind, gate) = (client.clone(), behind.clone(), gate.clone());
            async move { Ok::<_, Infallible>(pass(&client, &behind, &gate, request).await) }
        });
        tokio::spawn(
            hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(socket), service),
        );
    }
}

async fn pass(
    client: &Client<HttpConnector, Full<Bytes>>, behind: &str, gate: &Mutex<Gate>, request: Request<Incoming>,
) -> Response<Full<Bytes>> {
    let (head, body) = request.into_parts();
    let target = head.headers.get("x-amz-target").and_then(|target| target.to_str().ok());
    let Ok(body) = body.collect().await else {
        return status(StatusCode::BAD_REQUEST);
    };
    let body = body.to_bytes();
    if let Some(refusal) = refusal(gate, target.unwrap_or_default(), &String::from_utf8_lossy(&body)) {
        return refuse(refusal);
    }
    let mut forward = Request::new(Full::new(body));
    *forward.method_mut() = head.method;
    *forward.uri_mut() = behind.parse().unwrap_or_default();
    for name in ["authorization", "content-type", "x-amz-target"] {
        if let Some(value) = head.headers.get(name) {
            forward.headers_mut().insert(name, value.clone());
        }
    }
    let Ok(answer) = client.request(forward).await else {
        return status(StatusCode::BAD_GATEWAY);
    };
    let (head, body) = answer.into_parts();
    match body.collect().await {
        Ok(body) => Response::from_parts(head, Full::new(body.to_bytes())),
        Err(_) => status(StatusCode::BAD_GATEWAY),
    }
}

fn refusal(gate: &Mutex<Gate>, target: &str, body: &str) -> Option<Refusal> {
    let mut gate = lock(gate);
    let refusal = gate.rule.as_ref()?(target, body)?;
    *gate.refused.entry(target.to_owned()).or_default() += 1;
    Some(refusal)
}

fn refuse(refusal: Refusal) -> Response<Full<Bytes>> {
    let body = json!({ "__type": refusal.code, "message": refusal.message }).to_string();
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = StatusCode::BAD_REQUEST;
    response
}

fn status(status: StatusCode) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::new()));
    *response.status_mut() = status;
    response
}
