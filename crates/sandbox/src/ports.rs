//! The block of ports of one instance: which ports it has, how one is chosen.
//!
//! Blocks start at 17400 and are 20 ports wide, so several checkouts run side
//! by side. The choice is remembered by the instance; this module only knows
//! numbers and whether a port can be bound on the loopback interface now.

use std::net::{Ipv4Addr, TcpListener};

use crate::error::Error;

const FIRST: u16 = 17400;
const STEP: u16 = 20;
const BLOCKS: u16 = 20;

/// Offsets that are used; 17 to 19 are spare.
const USED: [u16; 17] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16];

/// One block of ports, named by its first port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ports {
    base: u16,
}

impl Ports {
    /// The block an instance tries first: the sandbox that people call has the
    /// very first one, so that its documented addresses are also the usual ones.
    pub(crate) fn preferred(name: &str) -> Self {
        let block = u16::from(name != "sandbox");
        Self {
            base: FIRST + block * STEP,
        }
    }

    /// Reads the first port of a remembered block.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let base: u16 = text.trim().parse().ok()?;
        let known = FIRST..FIRST + BLOCKS * STEP;
        let fits = known.contains(&base) && (base - FIRST).is_multiple_of(STEP);
        fits.then_some(Self { base })
    }

    /// Picks `wish` when it is free, else the next free block.
    ///
    /// # Errors
    /// [`Error::NoPortBlock`] when each block has a busy port.
    pub(crate) fn choose(wish: Self, busy_port: &dyn Fn(u16) -> bool) -> Result<Self, Error> {
        let mut busy = Vec::new();
        let start = (wish.base - FIRST) / STEP;
        for n in 0..BLOCKS {
            let block = Self {
                base: FIRST + (start + n) % BLOCKS * STEP,
            };
            match block.all().find(|port| busy_port(*port)) {
                None => return Ok(block),
                Some(port) => busy.push((block.base, port)),
            }
        }
        Err(Error::NoPortBlock { busy })
    }

    /// The first busy port of the block, if any.
    pub(crate) fn first_busy(self) -> Option<u16> {
        self.all().find(|port| busy(*port))
    }

    fn all(self) -> impl Iterator<Item = u16> {
        USED.into_iter().map(move |offset| self.base + offset)
    }

    pub(crate) fn base(self) -> u16 {
        self.base
    }

    pub(crate) fn postgres(self) -> u16 {
        self.base
    }

    pub(crate) fn kafka(self) -> u16 {
        self.base + 1
    }

    pub(crate) fn kafka_controller(self) -> u16 {
        self.base + 2
    }

    pub(crate) fn cql(self) -> u16 {
        self.base + 3
    }

    pub(crate) fn cql_storage(self) -> u16 {
        self.base + 4
    }

    pub(crate) fn cql_ssl_storage(self) -> u16 {
        self.base + 5
    }

    /// Where the broker listens for what comes through a proxy.
    pub(crate) fn kafka_behind_proxy(self) -> u16 {
        self.base + 6
    }

    /// Where such a proxy has to listen: the broker tells clients to come here.
    pub(crate) fn kafka_proxy(self) -> u16 {
        self.base + 7
    }

    pub(crate) fn write_api(self) -> u16 {
        self.base + 8
    }

    pub(crate) fn read_api(self) -> u16 {
        self.base + 9
    }

    pub(crate) fn write_api_admin(self) -> u16 {
        self.base + 10
    }

    pub(crate) fn relay_admin(self) -> u16 {
        self.base + 11
    }

    pub(crate) fn fanout_admin(self) -> u16 {
        self.base + 12
    }

    pub(crate) fn read_api_admin(self) -> u16 {
        self.base + 13
    }

    pub(crate) fn sweep_admin(self) -> u16 {
        self.base + 14
    }

    /// Where the broker listens for what comes by its name.
    pub(crate) fn kafka_behind_name(self) -> u16 {
        self.base + 15
    }

    /// Where the broker sends clients that came there, at whatever address its name has.
    pub(crate) fn kafka_named(self) -> u16 {
        self.base + 16
    }
}

/// Whether something listens on the port already.
pub(crate) fn busy(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_err()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sandbox_has_the_documented_block() {
        assert_eq!(Ports::preferred("sandbox").base(), 17400);
        assert_eq!(Ports::preferred("sandbox-test").base(), 17420);
    }

    #[test]
    fn a_busy_port_moves_to_the_next_block() {
        let wish = Ports::preferred("sandbox");
        let got = Ports::choose(wish, &|port| port == 17403 || port == 17433).expect("a block");
        assert_eq!(got.base(), 17440);
    }

    #[test]
    fn spare_offsets_do_not_matter() {
        let wish = Ports::preferred("sandbox");
        let got = Ports::choose(wish, &|port| port == 17417).expect("a block");
        assert_eq!(got, wish);
    }

    #[test]
    fn the_search_wraps_around() {
        let wish = Ports::parse("17780").expect("the last block");
        let got = Ports::choose(wish, &|port| port >= 17780).expect("a block");
        assert_eq!(got.base(), 17400);
    }

    #[test]
    fn no_block_lists_all_that_were_tried() {
        let error = Ports::choose(Ports::preferred("sandbox"), &|_| true).expect_err("all busy");
        assert!(matches!(error, Error::NoPortBlock { busy } if busy.len() == 20));
    }

    #[test]
    fn only_a_true_block_is_remembered() {
        assert_eq!(Ports::parse("17440\n").map(Ports::base), Some(17440));
        for bad in ["", "x", "17441", "17380", "17800", "99999"] {
            assert_eq!(Ports::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_listener_makes_its_port_busy() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let port = listener.local_addr().expect("an address").port();
        assert!(busy(port));
        drop(listener);
        assert!(!busy(port));
    }
}
