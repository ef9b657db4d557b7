//! SDK clients.

use crate::exit::Failure;
use aws_config::default_provider::credentials::DefaultCredentialsChain;
use aws_config::environment::EnvironmentVariableCredentialsProvider;
use aws_config::meta::credentials::CredentialsProviderChain;
use aws_config::{BehaviorVersion, Region, SdkConfig};
use leasehold::aws::dynamodb;
use leasehold::aws::kinesis;
use leasehold::aws::kinesis::config::{Credentials, ProvideCredentials, SharedCredentialsProvider};

/// The clients of both services.
#[derive(Clone, Debug)]
pub(super) struct Clients {
    pub kinesis: kinesis::Client,
    pub dynamodb: dynamodb::Client,
}

impl Clients {
    fn of(config: &SdkConfig) -> Self {
        Self { kinesis: kinesis::Client::new(config), dynamodb: dynamodb::Client::new(config) }
    }

    /// Clients of an in-memory AWS on this machine. The clients belong to the runtime of their first use.
    pub(super) fn in_memory(endpoint: &str) -> Self {
        let config = SdkConfig::builder()
            .behavior_version(BehaviorVersion::latest())
            .endpoint_url(endpoint)
            .region(Region::new("us-east-1"))
            .credentials_provider(SharedCredentialsProvider::new(anybody()))
            .http_client(leasehold::aws::http_client())
            .sleep_impl(aws_smithy_async::rt::sleep::SharedAsyncSleep::new(
                aws_smithy_async::rt::sleep::TokioSleep::new(),
            ))
            .build();
        Self::of(&config)
    }

    /// Clients with the credentials of every AWS tool: from the environment, profile files, web identity, the container
    /// or the instance. A server on this machine needs neither credentials nor region.
    pub(super) async fn from_environment(
        endpoint: Option<&str>, region: Option<String>,
    ) -> Result<Self, Failure> {
        check_endpoints(endpoint)?;
        let here = endpoint.is_some_and(is_on_this_machine);
        let http = match endpoint {
            Some(url) if url.starts_with("http://") => leasehold::aws::http_client(),
            _ => leasehold::aws::https_client(),
        };
        let mut loader = aws_config::defaults(BehaviorVersion::latest()).http_client(http);
        if let Some(url) = endpoint {
            loader = loader.endpoint_url(url);
        }
        if let Some(region) = region {
            loader = loader.region(Region::new(region));
        } else if here {
            let from_environment =
                ["AWS_REGION", "AWS_DEFAULT_REGION"].iter().find_map(|name| std::env::var(name).ok());
            loader = loader.region(Region::new(from_environment.unwrap_or_else(|| "us-east-1".to_owned())));
        }
        if here {
            loader = loader.credentials_provider(
                CredentialsProviderChain::first_try(
                    "environment",
                    EnvironmentVariableCredentialsProvider::new(),
                )
                .or_else("anybody", anybody()),
            );
        }
        let config = loader.load().await;
        if config.region().is_none() {
            return Err(Failure::unusable(
                "expected an AWS region, found none; give --region, or set AWS_REGION or the profile's `region`",
            ));
        }
        check_credentials(&config).await?;
        Ok(Self::of(&config))
    }
}

/// An endpoint that no request can be sent to is told at once instead of being retried for ever.
fn check_endpoints(option: Option<&str>) -> Result<(), Failure> {
    if let Some(url) = option {
        check_endpoint("--endpoint-url", url)?;
    }
    for name in ["AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_KINESIS", "AWS_ENDPOINT_URL_DYNAMODB"] {
        match std::env::var(name) {
            Ok(url) if !url.is_empty() => check_endpoint(name, &url)?,
            _ => {}
        }
    }
    Ok(())
}

fn check_endpoint(setting: &str, url: &str) -> Result<(), Failure> {
    let parsed = url.parse::<http::Uri>().ok();
    let scheme = parsed.as_ref().and_then(http::Uri::scheme_str);
    let host = parsed.as_ref().and_then(http::Uri::host).unwrap_or_default();
    if matches!(scheme, Some("http" | "https")) && !host.is_empty() {
        return Ok(());
    }
    let example = match scheme {
        None if !host.is_empty() => format!("http://{url}"),
        _ => "http://127.0.0.1:4567".to_owned(),
    };
    Err(Failure::unusable(format!(
        "expected {setting} to be a URL with a scheme (http or https) and a host, found {url:?}; write it as in {example}"
    )))
}

/// Missing credentials are told at once instead of being retried for ever.
async fn check_credentials(config: &SdkConfig) -> Result<(), Failure> {
    let found = match config.credentials_provider() {
        Some(provider) => provider.provide_credentials().await,
        None => DefaultCredentialsChain::builder().build().await.provide_credentials().await,
    };
    match found {
        Ok(_) => Ok(()),
        Err(error) => Err(Failure::unusable(format!(
            "expected AWS credentials, found none that work ({}); set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or \
             AWS_PROFILE (of an SSO profile: `aws configure export-credentials`)",
            in_full(&error)
        ))),
    }
}

/// An error with its causes, on one line.
pub(super) fn in_full(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(deeper) = cause {
        text = format!("{text}: {deeper}");
        cause = deeper.source();
    }
    text
}

/// Credentials for a server without a check of signatures.
fn anybody() -> Credentials {
    Credentials::new("local", "local", None, None, "local")
}

fn is_on_this_machine(url: &str) -> bool {
    let Ok(uri) = url.parse::<http::Uri>() else {
        return false;
    };
    let host = uri.host().unwrap_or_default();
    host == "localhost"
        || host
            .trim_matches(['[', ']'])
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::{check_endpoint, is_on_this_machine};

    #[test]
    fn an_endpoint_has_a_scheme_and_a_host() {
        for url in [
            "http://127.0.0.1:4567",
            "https://kinesis.eu-west-1.amazonaws.com",
            "http://[::1]:80/",
            "HTTP://localhost",
        ] {
            assert_eq!(check_endpoint("--endpoint-url", url), Ok(()), "{url}");
        }
        for url in ["foo", "127.0.0.1:9", "", "http://", "ftp://host", "/path", "http://a b", ":9"] {
            let told = check_endpoint("--endpoint-url", url).unwrap_err().to_string();
            let found = format!(
                "expected --endpoint-url to be a URL with a scheme (http or https) and a host, found {url:?}"
            );
            assert!(told.starts_with(&found), "{told}");
        }
        let told = check_endpoint("--endpoint-url", "127.0.0.1:9").unwrap_err();
        assert!(told.to_string().ends_with("write it as in http://127.0.0.1:9"), "{told}");
    }

    #[test]
    fn only_loopback_is_this_machine() {
        for url in ["http://127.0.0.1:4567", "http://localhost", "http://[::1]:80/"] {
            assert!(is_on_this_machine(url), "{url}");
        }
        for url in ["https://kinesis.eu-west-1.amazonaws.com", "http://10.0.0.1:1", "127", ""] {
            assert!(!is_on_this_machine(url), "{url}");
        }
    }
}
