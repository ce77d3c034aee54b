//! The signal to stop: SIGTERM or SIGINT, or another part of the process.

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Says, once and for all clones, that the process is to stop.
#[derive(Clone, Debug, Default)]
pub struct Shutdown(CancellationToken);

impl Shutdown {
    /// A signal that only [`Shutdown::trigger`] raises; for tests and for parts of a process.
    pub fn new() -> Self {
        Self::default()
    }

    /// A signal that SIGTERM and SIGINT raise.
    ///
    /// # Errors
    /// When the handlers cannot be installed.
    pub fn on_signals() -> std::io::Result<Self> {
        let shutdown = Self::new();
        let mut term = signal(SignalKind::terminate())?;
        let mut int = signal(SignalKind::interrupt())?;
        let raised = shutdown.clone();
        // Ends with the process; it owns nothing that would have to be given back.
        let _listener = tokio::spawn(async move {
            tokio::select! {
                _ = term.recv() => {}
                _ = int.recv() => {}
                () = raised.requested() => {}
            }
            raised.trigger();
        });
        Ok(shutdown)
    }

    /// Asks all holders to stop.
    pub fn trigger(&self) {
        self.0.cancel();
    }

    /// Whether the process is to stop.
    pub fn is_requested(&self) -> bool {
        self.0.is_cancelled()
    }

    /// Waits until the process is to stop.
    ///
    /// # Cancel safety
    /// Safe: holds no state.
    pub async fn requested(&self) {
        self.0.cancelled().await;
    }
}
