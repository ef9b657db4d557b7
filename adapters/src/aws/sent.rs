//! Whether a request has left the SDK. What fails before that has certainly not been executed.

use aws_smithy_runtime_api::box_error::BoxError;
use aws_smithy_runtime_api::client::interceptors::Intercept;
use aws_smithy_runtime_api::client::interceptors::context::BeforeTransmitInterceptorContextRef;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::config_bag::ConfigBag;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Attached to one request, notes the moment it is handed to the HTTP client: after serialization, credentials and
/// signing.
#[derive(Clone, Debug, Default)]
pub(super) struct Sent(Arc<AtomicBool>);

impl Sent {
    pub(super) fn is_sent(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

#[aws_smithy_runtime_api::client::interceptors::dyn_dispatch_hint]
impl Intercept for Sent {
    fn name(&self) -> &'static str {
        "leasehold::Sent"
    }

    fn read_before_transmit(
        &self,
        _context: &BeforeTransmitInterceptorContextRef<'_>,
        _components: &RuntimeComponents,
        _config: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        self.0.store(true, Ordering::Release);
        Ok(())
    }
}
