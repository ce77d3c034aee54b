//! What happened, in words. Nothing is put into words unless somebody will read it: a run that
//! fails is run once more, since the seed is all there is to it.

/// The story of one run.
#[derive(Debug)]
pub(crate) struct History {
    is_kept: bool,
    lines: Vec<String>,
}

impl History {
    pub(crate) const fn new(is_kept: bool) -> Self {
        Self {
            is_kept,
            lines: Vec::new(),
        }
    }

    pub(crate) fn tell(&mut self, step: u64, now: u64, who: &str, text: impl FnOnce() -> String) {
        if self.is_kept {
            #[expect(clippy::cast_precision_loss, reason = "seconds for people")]
            let seconds = now as f64 / 1e6;
            self.lines
                .push(format!("{step:>6} {seconds:>12.3}s {who:<9} {}", text()));
        }
    }

    pub(crate) fn into_lines(self) -> Vec<String> {
        self.lines
    }
}
