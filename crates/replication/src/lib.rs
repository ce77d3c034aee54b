//! Replication connection to Postgres.
//!
//! ```text
//! ReplicationConfig::from_url ──> Connection::connect ──query──> rows of text
//!                                        │ start(slot, publication)
//!                                        v
//!                    Reader::next ──> StreamEvent      Writer::status, finish
//! ```
//!
//! **Owns** the only socket that speaks the streaming protocol: start-up,
//! passwords, simple queries on the same connection (so that no failover can
//! slip in between a check and the stream) and the two halves of the stream.
//! **Does not own** what the payloads mean (`pgoutput`), when a position may be
//! confirmed, or reconnecting (the relay); ordinary SQL goes through
//! `database`.
//!
//! **Promise**: reading is cancel-safe, because reads only append to a buffer
//! that frames are cut from; a frame's announced size is checked before a byte
//! of it is stored; writing never waits for anything but the socket, so status
//! messages leave while the sink is blocked. Every wait on the server has a
//! timeout, except [`Reader::next`], which waits as long as its caller does.
//! After an error the connection is used up.
//!
//! TLS is not built yet: a URL that requires it is refused, one that prefers it
//! goes without.

mod auth;
mod config;
mod connection;
mod copy_both;
mod error;
mod frame;
mod query;
mod server_message;
mod startup;
mod wire;

pub use config::{ConfigError, Password, ReplicationConfig};
pub use connection::{Connection, StreamOptions, SystemIdentity};
pub use copy_both::{Reader, StreamEvent, Writer};
pub use error::{AuthError, ReplicationError, Step};
pub use frame::FrameError;
pub use query::Row;
pub use server_message::ServerMessage;
