//! How names become addresses. A seam: tests answer with addresses of their own, and count how often they are asked.

use std::fmt;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;

/// Resolves names. Asked once for each hop of a request, from whatever thread a guest runs on; what it answers is judged
/// whole, and the connection goes to one of these addresses and no other.
#[async_trait::async_trait]
pub trait Resolve: Send + Sync {
    /// All addresses of a name.
    async fn addresses(&self, name: &str) -> io::Result<Vec<IpAddr>>;
}

/// The resolver in use.
#[derive(Clone)]
pub struct Names(pub(super) Arc<dyn Resolve>);

impl Names {
    /// Another resolver than the system's.
    pub fn new(resolver: impl Resolve + 'static) -> Self {
        Self(Arc::new(resolver))
    }
}

impl Default for Names {
    fn default() -> Self {
        Self::new(System)
    }
}

impl fmt::Debug for Names {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Names")
    }
}

/// The system's own resolver.
struct System;

#[async_trait::async_trait]
impl Resolve for System {
    async fn addresses(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        Ok(tokio::net::lookup_host((name, 0)).await?.map(|address| address.ip()).collect())
    }
}
