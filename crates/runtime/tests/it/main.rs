//! Configuration, admin port and start-up, from the outside.

mod admin;
mod config;
mod startup;
