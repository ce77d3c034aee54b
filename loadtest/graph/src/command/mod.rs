//! The commands of the program, and how they fail.

pub(crate) mod describe;
pub(crate) mod generate;
pub(crate) mod load;

use std::io;

use anyhow::Context;
use graph::{Graph, Shape};

/// A failure with its exit code, after `sysexits.h`.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: u8,
    pub(crate) error: anyhow::Error,
}

impl Failure {
    /// The arguments are wrong.
    pub(crate) const USAGE: u8 = 64;
    /// The input is wrong.
    pub(crate) const DATA: u8 = 65;
    /// The input cannot be read.
    pub(crate) const INPUT: u8 = 66;
    /// A server did not answer, or refused.
    pub(crate) const SERVER: u8 = 69;
    /// The output cannot be written.
    pub(crate) const OUTPUT: u8 = 74;

    pub(crate) fn new(code: u8, error: impl Into<anyhow::Error>) -> Self {
        Self {
            code,
            error: error.into(),
        }
    }

    pub(crate) fn output(error: io::Error) -> Self {
        Self::new(Self::OUTPUT, error)
    }
}

/// The shape of a generated graph.
#[derive(Debug, clap::Args)]
pub(crate) struct ShapeArguments {
    /// Ordinary accounts, numbered from 1.
    #[arg(long, value_name = "N")]
    users: u64,
    /// Decides who follows whom.
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Exponent of audiences: 2.05 is Higgs/Twitter 2012, 2.276 all of Twitter in 2009.
    #[arg(long, value_name = "X")]
    exponent: Option<f64>,
    /// The smallest audience.
    #[arg(long, value_name = "N")]
    smallest: Option<u64>,
    /// The largest audience [default: 11.25 % of the accounts, as published].
    #[arg(long, value_name = "N")]
    largest: Option<u64>,
    /// Spread of how many accounts somebody follows: sigma of a log-normal distribution.
    #[arg(long, value_name = "X")]
    follows_sigma: Option<f64>,
    /// The most accounts that somebody follows.
    #[arg(long, value_name = "N")]
    most_follows: Option<u64>,
    /// An extra author with this audience; may be given several times. Their numbers come after
    /// the others.
    #[arg(long = "celebrity", value_name = "AUDIENCE")]
    celebrities: Vec<u64>,
}

impl ShapeArguments {
    pub(crate) fn graph(&self) -> Result<Graph, Failure> {
        let published = Shape::of(self.users, self.seed);
        let shape = Shape {
            exponent: self.exponent.unwrap_or(published.exponent),
            smallest: self.smallest.unwrap_or(published.smallest),
            largest: self.largest.unwrap_or(published.largest),
            follows_sigma: self.follows_sigma.unwrap_or(published.follows_sigma),
            most_follows: self.most_follows.unwrap_or(published.most_follows),
            celebrities: self.celebrities.clone(),
            ..published
        };
        Graph::new(shape)
            .context("there is no such graph")
            .map_err(|error| Failure::new(Failure::USAGE, error))
    }
}
