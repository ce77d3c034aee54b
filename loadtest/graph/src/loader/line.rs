//! Lines of a reader, one at a time, in a buffer that does not grow.

use std::io::{self, BufRead, Read};

/// No edge is as long as this.
const LONGEST: u64 = 4_096;

/// Reads lines.
#[derive(Debug)]
pub(super) struct Lines<R> {
    reader: R,
    buffer: Vec<u8>,
    number: u64,
    bytes: u64,
}

/// One line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Line<'a> {
    /// From 1.
    pub(super) number: u64,
    /// Without its end; `None` when it is too long to be an edge.
    pub(super) text: Option<&'a [u8]>,
}

impl<R: BufRead> Lines<R> {
    pub(super) const fn new(reader: R) -> Self {
        Self {
            reader,
            buffer: Vec::new(),
            number: 0,
            bytes: 0,
        }
    }

    /// How many bytes were read so far.
    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The next line, `None` at the end.
    pub(super) fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        if self.fill()? == 0 {
            return Ok(None);
        }
        self.number += 1;
        let whole = self.buffer.len() as u64 <= LONGEST;
        if !whole {
            while self.buffer.last() != Some(&b'\n') && self.fill()? > 0 {}
        }
        let text = self.buffer.as_slice();
        let text = text.strip_suffix(b"\n").unwrap_or(text);
        let text = text.strip_suffix(b"\r").unwrap_or(text);
        // Some editors put a byte order mark in front of a file.
        let mark = if self.number == 1 {
            &b"\xef\xbb\xbf"[..]
        } else {
            b""
        };
        Ok(Some(Line {
            number: self.number,
            text: whole.then(|| text.strip_prefix(mark).unwrap_or(text)),
        }))
    }

    /// Reads up to the end of a line, or one byte more than the longest one has.
    fn fill(&mut self) -> io::Result<usize> {
        self.buffer.clear();
        let mut reader = (&mut self.reader).take(LONGEST + 1);
        let read = reader.read_until(b'\n', &mut self.buffer)?;
        self.bytes += read as u64;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &[u8]) -> Vec<(u64, Option<String>)> {
        let mut lines = Lines::new(text);
        let mut all = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            let text = line
                .text
                .map(|text| String::from_utf8_lossy(text).into_owned());
            all.push((line.number, text));
        }
        assert_eq!(lines.bytes(), text.len() as u64);
        all
    }

    #[test]
    fn ends_of_lines_are_cut_off() {
        let expected = [(1, "1 2"), (2, "3 4"), (3, ""), (4, "5 6")];
        let expected = expected.map(|(number, text)| (number, Some(text.to_owned())));
        assert_eq!(all(b"\xef\xbb\xbf1 2\r\n3 4\n\n5 6"), expected);
        assert_eq!(all(b""), []);
    }

    #[test]
    fn a_line_without_an_end_fills_no_memory() {
        for length in [4_097, 100_000, 8_194] {
            let mut text = vec![b'7'; length];
            text.extend(b"\n1 2\n");
            assert_eq!(all(&text), [(1, None), (2, Some("1 2".into()))], "{length}");
        }
        let longest = vec![b'7'; 4_095];
        assert!(all(&[&longest[..], b"\n"].concat())[0].1.is_some());
    }
}
