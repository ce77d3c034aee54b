//! Names and addresses that no other test uses.

use std::{
    net::TcpListener,
    sync::atomic::{AtomicU32, Ordering},
    time::{SystemTime, UNIX_EPOCH},
};

/// A name of lower-case letters, digits and `_`, unique over tests, processes and runs.
pub fn unique(stem: &str) -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("the clock is past 1970");
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!(
        "{stem}_{:x}_{:x}_{number}",
        since.as_millis(),
        std::process::id()
    )
}

/// A loopback address that was free a moment ago.
///
/// # Panics
/// When the system has no free port.
pub fn free_address() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port on loopback");
    listener
        .local_addr()
        .expect("a bound socket has an address")
        .to_string()
}
