//! Names and addresses that no other test uses.

use std::{
    net::TcpListener,
    ops::Range,
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

/// Behind the ports of the sandbox and of single tests' servers, and below those that the system
/// hands out: no outgoing connection takes one before its service listens.
const PORTS: Range<u16> = 19_000..32_000;
/// Processes that start one after the other begin so many ports apart.
const STRIDE: u32 = 101;

/// A loopback address that was free a moment ago, another one with each call.
///
/// # Panics
/// When every port for it is busy.
pub fn free_address() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let count = u32::from(PORTS.end - PORTS.start);
    let own = std::process::id().wrapping_mul(STRIDE);
    for _ in 0..count {
        let number = own.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % count;
        let offset = u16::try_from(number).expect("less than the count of ports");
        let port = PORTS.start + offset;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return format!("127.0.0.1:{port}");
        }
    }
    panic!("every port of {PORTS:?} is busy");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_address_is_given_twice_and_none_that_is_busy() {
        let addresses: Vec<String> = (0..50).map(|_| free_address()).collect();
        let distinct: std::collections::BTreeSet<_> = addresses.iter().collect();
        assert_eq!(distinct.len(), 50);
        let last = addresses.last().expect("fifty");
        let port: u16 = last
            .rsplit(':')
            .next()
            .expect("host:port")
            .parse()
            .expect("a number");
        let taken: Vec<_> = (1..20)
            .filter_map(|n| TcpListener::bind(("127.0.0.1", port + n)).ok())
            .collect();
        let address = free_address();
        for listener in &taken {
            assert_ne!(address, listener.local_addr().expect("bound").to_string());
        }
    }
}
