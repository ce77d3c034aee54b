//! Metric families, made and registered in one step.
//!
//! Owns no name and no label: each service keeps its own in one file. Promise: a family that is
//! handed out is in the registry.

use prometheus::{
    Error, Gauge, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge,
    IntGaugeVec, Opts, Registry, core::Collector,
};

/// Makes families in a registry. Every method fails when the name is taken or is none.
#[derive(Clone, Copy, Debug)]
pub struct Families<'a>(&'a Registry);

impl<'a> Families<'a> {
    /// Families in `registry`.
    pub const fn of(registry: &'a Registry) -> Self {
        Self(registry)
    }

    /// A counter.
    ///
    /// # Errors
    /// See [`Families`].
    pub fn counter(self, name: &str, help: &str) -> Result<IntCounter, Error> {
        self.keep(IntCounter::new(name, help)?)
    }

    /// A counter for each value of the labels.
    ///
    /// # Errors
    /// See [`Families`].
    pub fn counters(self, name: &str, help: &str, labels: &[&str]) -> Result<IntCounterVec, Error> {
        self.keep(IntCounterVec::new(Opts::new(name, help), labels)?)
    }

    /// A whole number that rises and falls.
    ///
    /// # Errors
    /// See [`Families`].
    pub fn gauge(self, name: &str, help: &str) -> Result<IntGauge, Error> {
        self.keep(IntGauge::new(name, help)?)
    }

    /// A whole number for each value of the labels.
    ///
    /// # Errors
    /// See [`Families`].
    pub fn gauges(self, name: &str, help: &str, labels: &[&str]) -> Result<IntGaugeVec, Error> {
        self.keep(IntGaugeVec::new(Opts::new(name, help), labels)?)
    }

    /// Seconds that rise and fall.
    ///
    /// # Errors
    /// See [`Families`].
    pub fn seconds(self, name: &str, help: &str) -> Result<Gauge, Error> {
        self.keep(Gauge::new(name, help)?)
    }

    /// A histogram with these upper bounds.
    ///
    /// # Errors
    /// See [`Families`].
    pub fn histogram(self, name: &str, help: &str, bounds: &[f64]) -> Result<Histogram, Error> {
        self.keep(Histogram::with_opts(
            HistogramOpts::new(name, help).buckets(bounds.to_vec()),
        )?)
    }

    /// A histogram for each value of the labels.
    ///
    /// # Errors
    /// See [`Families`].
    pub fn histograms(
        self,
        name: &str,
        help: &str,
        labels: &[&str],
        bounds: &[f64],
    ) -> Result<HistogramVec, Error> {
        let options = HistogramOpts::new(name, help).buckets(bounds.to_vec());
        self.keep(HistogramVec::new(options, labels)?)
    }

    /// Registers a family of any other kind.
    ///
    /// # Errors
    /// See [`Families`].
    pub fn keep<C: Collector + Clone + 'static>(self, family: C) -> Result<C, Error> {
        self.0.register(Box::new(family.clone()))?;
        Ok(family)
    }
}
