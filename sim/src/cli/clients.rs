//! SDK clients.

use super::exit::Failure;
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
        Self {
            kinesis: kinesis::Client::new(config),
            dynamodb: dynamodb::Client::new(config),
        }
    }

    /// Clients of an in-memory AWS on this machine. They belong to the runtime they are first used in.
    pub fn in_memory(endpoint: &str) -> Self {
        let config = SdkConfig::builder()
            .behavior_version(BehaviorVersion::latest())
            .endpoint_url(endpoint)
            .region(Region::new("us-east-1"))
            .credentials_provider(SharedCredentialsProvider::new(anybody()))
            .http_client(aws_smithy_http_client::Builder::new().build_http())
            .sleep_impl(aws_smithy_async::rt::sleep::SharedAsyncSleep::new(
                aws_smithy_async::rt::sleep::TokioSleep::new(),
            ))
            .build();
        Self::of(&config)
    }

    /// Clients as every AWS tool makes them: from the environment, profile files, web identity, the container or the
    /// instance. A server on this machine gets by without credentials and region.
    pub async fn from_environment(endpoint: Option<&str>, region: Option<String>) -> Result<Self, Failure> {
        let here = endpoint.is_some_and(is_on_this_machine);
        let http = match endpoint {
            Some(url) if url.starts_with("http://") => aws_smithy_http_client::Builder::new().build_http(),
            _ => leasehold::aws::https_client(),
        };
        let mut loader = aws_config::defaults(BehaviorVersion::latest()).http_client(http);
        if let Some(url) = endpoint {
            loader = loader.endpoint_url(url);
        }
        if let Some(region) = region {
            loader = loader.region(Region::new(region));
        } else if here {
            let from_environment = ["AWS_REGION", "AWS_DEFAULT_REGION"]
                .iter()
                .find_map(|name| std::env::var(name).ok());
            loader = loader.region(Region::new(
                from_environment.unwrap_or_else(|| "us-east-1".to_owned()),
            ));
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

/// Missing credentials are told at once instead of being retried for ever.
async fn check_credentials(config: &SdkConfig) -> Result<(), Failure> {
    let found = match config.credentials_provider() {
        Some(provider) => provider.provide_credentials().await,
        None => {
            DefaultCredentialsChain::builder()
                .build()
                .await
                .provide_credentials()
                .await
        }
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

/// What a server that checks no signatures is satisfied with.
fn anybody() -> Credentials {
    Credentials::new("local", "local", None, None, "local")
}

fn is_on_this_machine(url: &str) -> bool {
    let Ok(uri) = url.parse::<hyper::Uri>() else {
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
    use super::is_on_this_machine;

    #[test]
    fn only_loopback_is_this_machine() {
        for url in ["http://127.0.0.1:4567", "http://localhost", "http://[::1]:80/"] {
            assert!(is_on_this_machine(url), "{url}");
        }
        for url in [
            "https://kinesis.eu-west-1.amazonaws.com",
            "http://10.0.0.1:1",
            "127",
            "",
        ] {
            assert!(!is_on_this_machine(url), "{url}");
        }
    }
}
