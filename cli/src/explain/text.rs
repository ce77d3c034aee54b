//! The story for people: one fact a line.

use std::fmt;

use events::{Micros, UserId, moment::rfc3339};

use super::{
    copies::Copies,
    postgres::Notes,
    story::{EventStory, StageStory, Story},
    timelines::Timelines,
};

impl fmt::Display for Story {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "post {}", self.id)?;
        if !self.is_known() {
            return writeln!(
                f,
                "  nowhere      no row in posts, no event in the outbox of the time in its id, no \
                 delivery, no dead letter"
            );
        }
        match &self.post {
            None => writeln!(
                f,
                "  gone         no row in posts; what names it is told below"
            )?,
            Some(post) => {
                writeln!(f, "  author       {}", post.author)?;
                writeln!(f, "  created      {}", rfc3339(post.created_us))?;
                if let Some(deleted_us) = post.deleted_us {
                    writeln!(f, "  deleted      {}", rfc3339(deleted_us))?;
                }
                if self.events.is_empty() {
                    writeln!(
                        f,
                        "  never announced: the outbox has no event of it, or its day was dropped"
                    )?;
                }
            }
        }
        for event in &self.events {
            event.fmt(f)?;
        }
        match &self.timelines {
            None => Ok(()),
            Some(Err(error)) => writeln!(f, "timelines\n  unknown      {error}"),
            Some(Ok(timelines)) => timelines.fmt(f),
        }
    }
}

impl fmt::Display for EventStory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let type_name = self.found.type_name.as_deref();
        writeln!(
            f,
            "event {}  {}",
            self.found.event,
            type_name.unwrap_or("of an unknown type")
        )?;
        match self.found.created_us {
            Some(created_us) => writeln!(f, "  outbox       {}", rfc3339(created_us))?,
            None => writeln!(f, "  outbox       no row: its day was dropped")?,
        }
        match &self.copies {
            Ok(None) => {}
            Ok(Some(copies)) => copies.fmt(f)?,
            Err(error) => writeln!(f, "  kafka        unknown: {error}")?,
        }
        for stage in &self.account.stages {
            stage.fmt(f)?;
        }
        if let Some(delivery) = &self.account.delivery {
            write!(
                f,
                "  fan-out      audience {}, rows {}",
                delivery.audience, delivery.rows
            )?;
            if let (Some(first), Some(last)) = (delivery.first_row_us, delivery.last_row_us) {
                write!(f, ", first {}, last {}", rfc3339(first), rfc3339(last))?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

impl fmt::Display for Copies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (topic, partition) = (&self.topic, self.partition);
        for copy in &self.found {
            write!(
                f,
                "  kafka        {topic} partition {partition} offset {}, by {}, at {}",
                copy.offset,
                copy.path,
                rfc3339(copy.appended())
            )?;
            match &copy.source {
                Some(source) => writeln!(f, ", from {source}")?,
                None => writeln!(f)?,
            }
        }
        if self.found.is_empty() || !self.complete {
            let extent = if self.complete {
                "the partition's end"
            } else {
                "the time was over"
            };
            let count = self.found.len();
            writeln!(
                f,
                "  kafka        {count} copies in {topic} partition {partition} from offset {} \
                 to {}: {extent}",
                self.from, self.to
            )?;
        }
        Ok(())
    }
}

impl fmt::Display for StageStory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = if self.in_ledger {
            "in the ledger"
        } else {
            "missing"
        };
        write!(f, "  {:<12} {state}", self.stage)?;
        if let Some(outlook) = &self.outlook {
            write!(f, "; {outlook}")?;
        }
        writeln!(f)?;
        self.notes.fmt(f)
    }
}

impl fmt::Display for Notes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let indent = " ".repeat(15);
        if let Some(letter) = &self.dead_letter {
            writeln!(
                f,
                "{indent}dead letter, {}: {}; record {} partition {} offset {}",
                letter.state, letter.reason, letter.topic, letter.partition, letter.offset
            )?;
        }
        if let Some(reason) = &self.discarded {
            writeln!(f, "{indent}discarded: {reason}")?;
        }
        if self.attempts > 0 {
            let last = self.last_us.unwrap_or(Micros(0));
            writeln!(
                f,
                "{indent}sent again by the sweep {} times, last at {}",
                self.attempts,
                rfc3339(last)
            )?;
        }
        Ok(())
    }
}

impl fmt::Display for Timelines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let extent = if self.sampled {
            "; there may be more, see --full"
        } else {
            ""
        };
        writeln!(f, "timelines")?;
        writeln!(
            f,
            "  looked at    {} followers, {} former ones{extent}",
            self.followers, self.former
        )?;
        if self.past_retention {
            writeln!(f, "  retention    is over: nobody must have it any more")?;
        }
        writeln!(
            f,
            "  must have it {} of {} have it",
            self.must_have, self.must
        )?;
        writeln!(f, "  may have it  {} have it", self.may_have)?;
        if self.must_not_have > 0 {
            writeln!(f, "  must not     {} have it", self.must_not_have)?;
        }
        if !self.wrong.is_empty() {
            let owners: Vec<String> = self.wrong.iter().map(UserId::to_string).collect();
            writeln!(f, "  wrong        timelines {}", owners.join(", "))?;
        }
        if let Some(row) = &self.example {
            write!(
                f,
                "  a row        of {}, written at {}",
                row.owner,
                rfc3339(row.write_us)
            )?;
            match row.ttl_seconds {
                Some(left) => writeln!(f, ", {left} s left")?,
                None => writeln!(f, ", without an end")?,
            }
        }
        Ok(())
    }
}
